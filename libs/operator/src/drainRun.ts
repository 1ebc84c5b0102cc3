/** How hosts are drained one after the other: pure. The command line performs what this names; the console offers it to a person. */
import type { AggregateState, FinishedDrain } from '@kronos/projections';
import { type DrainStatus, drainStatus } from '@kronos/status';

/** One host of a run, as far as the command has come with it. */
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

/** How far the drain of a host is, by the log. */
export type HostProgress =
  | { readonly at: 'todo' }
  | { readonly at: DrainStatus['state']; readonly status: DrainStatus }
  | { readonly at: 'over'; readonly finished: FinishedDrain | null };

export function progressOf(
  { host, drainId }: Pick<RunHost, 'host' | 'drainId'>,
  state: Pick<AggregateState, 'drains' | 'recentDrains'>,
): HostProgress {
  if (drainId === null) return { at: 'todo' };
  const drain = state.drains.get(host);
  if (drain === undefined || drain.asked.commandId !== drainId) {
    const finished = state.recentDrains.findLast((one) => one.asked.commandId === drainId) ?? null;
    return { at: 'over', finished };
  }
  const status = drainStatus(drain);
  return { at: status.state, status };
}

/**
 * A host of a run of which only the start is known: the drain that it is in, or its last one that was asked for after the
 * log sequence `since`. One that came to be empty had its maintenance: a person ended its drain.
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
  /** Nothing more is done; `problem` null: because everything is. */
  | { readonly do: 'end'; readonly problem: string | null };

/** The next act of a run, from the log's facts about each of its hosts. */
export function nextRunAct(
  hosts: readonly RunHost[],
  stateOf: (aggregate: string) => Pick<AggregateState, 'drains' | 'recentDrains'>,
  { maxParallel, rolling }: RunOptions,
): RunAct {
  let busy = 0;
  let stuck = 0;
  let todo: RunHost | null = null;
  for (const host of hosts) {
    const progress = progressOf(host, stateOf(host.aggregate));
    switch (progress.at) {
      case 'todo':
        todo ??= host;
        break;
      case 'drained':
        if (!rolling) break;
        if (!host.hooked) return { do: 'hook', host };
        if (!host.undrainAsked) return { do: 'undrain', host };
        busy += 1;
        break;
      case 'stuck':
        if (rolling) return { do: 'end', problem: `${host.host} is ${progress.status.text}` };
        stuck += 1;
        break;
      case 'over':
        // A run that was told to come back to a host must not go on past one that somebody took out of its hands.
        if (rolling && !host.hooked)
          return {
            do: 'end',
            problem: `the drain of ${host.host} ended before its maintenance: ${endText(progress.finished)}`,
          };
        break;
      default:
        busy += 1;
    }
  }
  if (todo !== null && busy + stuck < maxParallel) return { do: 'drain', host: todo };
  if (busy > 0) return { do: 'wait' };
  if (stuck > 0) return { do: 'end', problem: stuck === 1 ? 'a drain is stuck' : `${stuck} drains are stuck` };
  return { do: 'end', problem: null };
}

/** How a drain ended. */
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
