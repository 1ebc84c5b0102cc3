import { DAY_MS, type LogEventOf, timeOf } from '@kronos/contracts';
import type { History } from './history.ts';

/** Failures that are told. */
const TOLD = 20;

/** A failed attempt that a host was at fault for. */
export type HostFailure = {
  readonly atMs: number;
  readonly data: LogEventOf<'migration.failed'>['data'];
};

/**
 * The newest failures that a host was at fault for, oldest first: those of the day up to a time (ms since the epoch), from the first decision
 * of that day on. The host breaker counts them.
 */
export async function findHostFailures(history: History, host: string, untilMs: number): Promise<HostFailure[]> {
  let from: number | null = null;
  for await (const { sequence } of history.decisions({ sinceMs: untilMs - DAY_MS, untilMs })) {
    from = sequence;
    break;
  }
  if (from === null) return [];
  const found: HostFailure[] = [];
  for await (const stored of history.events(undefined, from)) {
    const { event } = stored;
    const atMs = timeOf(stored);
    if (event.type === 'migration.failed' && event.data.hostAtFault === host && atMs <= untilMs)
      found.push({ atMs, data: event.data });
  }
  return found.slice(-TOLD);
}
