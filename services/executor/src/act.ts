/** One request that changes the cloud: sent within a window or never, and its outcome. */
import type { Clock } from '@kronos/clock';
import { errorText } from '@kronos/contracts';
import {
  type ActionOutcome,
  type ActOptions,
  HttpError,
  MicroversionUnsupported,
  NotSent,
  type Nova,
  Timeout,
  Unauthorized,
  Unreachable,
} from '@kronos/openstack';
import type { PostAnswer } from './taskFacts.ts';

/** The window in which an act on the cloud may be sent. */
export interface ActWindow {
  /** Monotonic, by `clock`. */
  readonly by: number;
  readonly clock: Clock;
  /** Whether the delivery is held, looked up now. */
  readonly held: () => boolean;
  readonly lost: AbortSignal;
}

/**
 * Sends one request that changes something in the cloud, within a window. What decides is the clock at the moment at which the
 * first byte is about to be written. The signal beside it ends the wait for a token, for a connection or for the answer: what
 * became of a request that was written by then shows in Nova.
 */
export async function actWithin<T>(window: ActWindow, send: (options: ActOptions) => Promise<T>): Promise<T> {
  const { by, clock, held, lost } = window;
  const checkSend = (): string | null => {
    if (!held()) return 'its delivery was lost';
    return clock.read().mono > by ? LATE : null;
  };
  const late = new AbortController();
  const cancel = clock.after(Math.max(0, by - clock.read().mono), () => late.abort(new SendWindowOver()));
  try {
    return await send({ signal: AbortSignal.any([late.signal, lost]), checkSend });
  } finally {
    cancel();
  }
}

const LATE = 'its time had passed';

/** Sends the one request of an attempt and returns its known outcome. */
export const postOnce = (
  nova: Pick<Nova, 'liveMigrate'>,
  request: { readonly serverId: string; readonly host: string; readonly force: boolean },
  options: ActOptions,
): Promise<PostAnswer> => answered(options, () => nova.liveMigrate(request, options));

/** The outcome of a request that changes the cloud; `unknown` where nothing proves that it was accepted, refused or not sent. */
export async function answered(options: ActOptions, send: () => Promise<ActionOutcome>): Promise<PostAnswer> {
  try {
    const outcome = await send();
    if (outcome.outcome === 'accepted') return { kind: 'accepted', requestId: outcome.requestId ?? null };
    return { kind: 'unknown', text: errorText(outcome.error) };
  } catch (error) {
    if (error instanceof HttpError) return { kind: 'refused', status: error.status, text: error.reason };
    if (error instanceof Unauthorized) return { kind: 'refused', status: 401, text: error.message };
    if (error instanceof NotSent) return { kind: 'notSent', text: error.reason };
    const unsent = (error instanceof Unreachable || error instanceof Timeout) && !error.maybeSent;
    if (unsent || error instanceof MicroversionUnsupported) return { kind: 'notSent', text: errorText(error) };
    // The signal's own reason: the client throws it only for a request of which no byte was written.
    if (options.signal?.aborted === true && error === options.signal.reason)
      return { kind: 'notSent', text: errorText(error) };
    return { kind: 'unknown', text: errorText(error) };
  }
}

/** The window of an act was over before its request could be sent, or before its answer came. */
class SendWindowOver extends Error {
  constructor() {
    super(LATE);
    this.name = 'SendWindowOver';
  }
}
