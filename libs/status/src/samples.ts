import type { AggregateState } from '@kronos/projections';
import type { NewestSnapshot } from './facts.ts';

/** After a move, a host and its VMs have samples of different times for as long as Prometheus looks back. */
const SAMPLES_MS = 5 * 60_000;

/** The time after a move by which there is a snapshot without its samples. */
export const settledAfterMs = ({ intervalSeconds }: Pick<NewestSnapshot, 'intervalSeconds'>): number =>
  SAMPLES_MS + 2 * intervalSeconds * 1000;

/**
 * Since when (ms since the epoch) moves end whose samples the newest snapshot mixes: sums of VMs and values of their hosts may differ by
 * these moves alone. Null: it mixes none.
 */
export function mixedSinceMs(
  { lastMoveEnd, tasks, recentPlans }: Pick<AggregateState, 'lastMoveEnd' | 'tasks' | 'recentPlans'>,
  newest: Pick<NewestSnapshot, 'timeMs' | 'intervalSeconds'>,
): number | null {
  if (lastMoveEnd === null || newest.timeMs - lastMoveEnd.atMs > SAMPLES_MS) return null;
  const ends = [...tasks.values()].flatMap(({ end, lastFailure }) => [end, lastFailure]).filter((one) => one !== null);
  const spans = [
    ...ends.map(({ atMs }) => ({ fromMs: atMs, toMs: atMs })),
    // When the moves of a plan that is over ended is no longer known.
    ...recentPlans.flatMap(({ releasedAtMs, endedAtMs }) =>
      releasedAtMs === null ? [] : [{ fromMs: releasedAtMs, toMs: endedAtMs }],
    ),
  ].sort((a, b) => b.toMs - a.toMs);
  let sinceMs = lastMoveEnd.atMs;
  for (const { fromMs, toMs } of spans) {
    if (toMs < sinceMs - settledAfterMs(newest)) break;
    sinceMs = Math.min(sinceMs, fromMs);
  }
  return newest.timeMs < sinceMs ? null : sinceMs;
}
