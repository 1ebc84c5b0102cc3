/** The next act of a run that drains hosts one after the other: pure. The command line performs the act; the console offers it to a person. */
import type { AggregateState, FinishedDrain } from '@kronos/projections';
import { type DrainStatus, drainStatus } from '@kronos/status';

/** One host of a run, with its progress. */
export type RunHost = {
  readonly host: string;
  readonly aggregate: string;
  /** Id of its drain; null before it was asked for. */
  readonly drainId: string | null;
  /** The hook has succeeded for it. */
  readonly hooked: boolean;
  readonly undrainAsked: boolean;
};

export type RunOptions = {
  /** Hosts that are drained at the same time. */
  readonly maxParallel: number;
  /** Rolling maintenance: the hook runs on each empty host, which is enabled again afterwards. */
  readonly rolling: boolean;
};

/** The progress of a host's drain, by the log. */
export type HostProgress =
  | { readonly at: 'todo' }
  | { readonly at: DrainStatus['state']; readonly status: DrainStatus }
  | { readonly at: 'over'; readonly finished: FinishedDrain | null };

/** The progress of the drain that a run asked for on a host. */
export function progressOf({ host, drainId }: Pick<RunHost, 'host' | 'drainId'>, state: AggregateState): HostProgress {
  if (drainId === null) return { at: 'todo' };
  const drain = state.drains.get(host);
  if (drain === undefined || drain.asked.commandId !== drainId) {
    const finished = state.recentDrains.findLast((one) => one.asked.commandId === drainId) ?? null;
    return { at: 'over', finished };
  }
  const status = drainStatus(state, drain);
  return { at: status.state, status };
}

/**
 * The progress of a host when only the start of the run is known: by its open drain, or else by its last drain that was requested after the log
 * sequence `since`. A person ends a drain after the maintenance, so a drain that emptied the host counts as maintained.
 */
export function runHostOf(
  { aggregate, host, since }: { readonly aggregate: string; readonly host: string; readonly since: number },
  state: Pick<AggregateState, 'drains' | 'recentDrains'>,
): RunHost {
  const drain = state.drains.get(host);
  if (drain !== undefined) {
    const { asked, undrainAsked } = drain;
    return { host, aggregate, drainId: asked.commandId, hooked: false, undrainAsked: undrainAsked !== null };
  }
  const finished = state.recentDrains.findLast((one) => one.host === host && one.asked.sequence > since);
  if (finished === undefined) return { host, aggregate, drainId: null, hooked: false, undrainAsked: false };
  const { asked, drainedAtMs } = finished;
  return { host, aggregate, drainId: asked.commandId, hooked: drainedAtMs !== null, undrainAsked: true };
}

export type RunAct =
  | { readonly do: 'drain' | 'hook' | 'undrain'; readonly host: RunHost }
  | { readonly do: 'wait' }
  /** The run ends. `problem` null: everything is done. `stuck`: the hosts whose drains are stuck. */
  | { readonly do: 'end'; readonly problem: string | null; readonly stuck: readonly string[] };

const end = (problem: string | null, stuck: readonly string[] = []): RunAct => ({ do: 'end', problem, stuck });

/** The next act of a run, from the log's facts about each of its hosts. */
export function nextRunAct(
  hosts: readonly RunHost[],
  stateOf: (aggregate: string) => AggregateState,
  { maxParallel, rolling }: RunOptions,
): RunAct {
  let busy = 0;
  const stuck: string[] = [];
  let todo: RunHost | null = null;
  for (const host of hosts) {
    const progress = progressOf(host, stateOf(host.aggregate));
    const next = rolling ? nextOfRolling(host, progress) : null;
    if (next !== null) return next;
    if (progress.at === 'todo') todo ??= host;
    else if (progress.at === 'stuck') stuck.push(host.host);
    else if (progress.at === 'drained') busy += rolling ? 1 : 0;
    else if (progress.at !== 'over') busy += 1;
  }
  if (todo !== null && busy + stuck.length < maxParallel) return { do: 'drain', host: todo };
  if (busy > 0) return { do: 'wait' };
  if (stuck.length === 0) return end(null);
  const [drains, are] = stuck.length === 1 ? ['drain', 'is'] : ['drains', 'are'];
  return end(`the ${drains} of ${stuck.join(', ')} ${are} stuck`, stuck);
}

/** The next act of a run with maintenance on a host; null: none is due. */
function nextOfRolling(host: RunHost, progress: ReturnType<typeof progressOf>): RunAct | null {
  switch (progress.at) {
    case 'drained':
      if (!host.hooked) return { do: 'hook', host };
      return host.undrainAsked ? null : { do: 'undrain', host };
    case 'stuck':
      return end(`${host.host} is ${progress.status.text}`, [host.host]);
    case 'over':
      // Somebody else ended this drain, so the host had no maintenance. The run must not continue as if it had.
      if (host.hooked) return null;
      return end(`the drain of ${host.host} ended before its maintenance: ${endText(progress.finished)}`);
    default:
      return null;
  }
}

/** The end of a drain, in words. */
function endText(finished: FinishedDrain | null): string {
  if (finished === null) return 'it has ended; its outcome is no longer in the state';
  const { outcome, text } = finished;
  switch (outcome) {
    case 'enabled':
      return 'the host is enabled';
    case 'enabledByOthers':
      return 'somebody else enabled the host';
    case 'leftDisabled':
      return `the host stays disabled: ${text ?? ''}`;
    case 'withdrawn':
      return 'the drain was withdrawn before it started';
  }
}

/** One line about a host. */
export function progressText(progress: HostProgress): string {
  switch (progress.at) {
    case 'todo':
      return 'waiting';
    case 'over':
      return endText(progress.finished);
    default:
      return progress.status.text;
  }
}
