/** Calls that were sent and are not answered yet. */
import type { CallPlace } from './errors.ts';

/** One call, with all its attempts. */
export interface CallInProgress extends CallPlace {
  readonly route: string;
  /** Monotonic milliseconds at which its first attempt began. */
  readonly sinceMs: number;
  /** 1 is the first attempt. */
  readonly attempt: number;
  /** How the attempt before this one ended; null for the first. */
  readonly lastFailure: string | null;
}

/** The calls of a client, or of several, that are under way. */
export class CallsInProgress {
  readonly #calls = new Set<CallInProgress & { attempt: number; lastFailure: string | null }>();

  /** Notes a call. `attempt` notes a further attempt; `end` must be called once. */
  begin(
    place: CallPlace,
    route: string,
    sinceMs: number,
  ): { readonly attempt: (number: number, lastFailure: string | null) => void; readonly end: () => void } {
    const call = { ...place, route, sinceMs, attempt: 1, lastFailure: null as string | null };
    this.#calls.add(call);
    return {
      attempt(number, lastFailure) {
        call.attempt = number;
        call.lastFailure = lastFailure;
      },
      end: () => void this.#calls.delete(call),
    };
  }

  /** Those that are under way, the oldest first. */
  list(): readonly CallInProgress[] {
    return [...this.#calls].map((call) => ({ ...call })).sort((a, b) => a.sinceMs - b.sinceMs);
  }
}
