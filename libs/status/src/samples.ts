import type { AggregateState } from '@kronos/projections';
import type { NewestSnapshot } from './facts.ts';

/** After a move, a host and its VMs have samples of different times for as long as Prometheus looks back. */
const SAMPLES_MS = 5 * 60_000;

/** The time after a move by which there is a snapshot without its samples. */
export const settledAfterMs = ({ intervalSeconds }: Pick<NewestSnapshot, 'intervalSeconds'>): number =>
  SAMPLES_MS + 2 * intervalSeconds * 1000;

/**
 * The time (ms since the epoch) since which moves ended whose samples the newest snapshot mixes: sums of VMs and values of their hosts may
 * differ because of these moves alone. Null: it mixes none.
 */
export function mixedSinceMs(
  { lastMoveEnd, tasks, recentPlans }: Pick<AggregateState, 'lastMoveEnd' | 'tasks' | 'recentPlans'>,
  newest: Pick<NewestSnapshot, 'timeMs' | 'intervalSeconds'>,
): number | null {
  if (lastMoveEnd === null || newest.timeMs - lastMoveEnd.atMs > SAMPLES_MS) return null;
  const ends = [...tasks.values()].flatMap(({ end, lastFailure }) => [end, lastFailure]).filter((one) => one !== null);
  const spans = [
    ...ends.map(({ atMs }) => ({ fromMs: atMs, toMs: atMs })),
    // The end times of the moves of a finished plan are no longer known.
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
