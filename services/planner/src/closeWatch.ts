import type { AggregateFold } from '@kronos/checkpoints';
import type { Cancel } from '@kronos/clock';
import type { StoredEvent } from '@kronos/contracts';
import type { PlannerDeps } from './deps.ts';
import { CLOSE_GRACE_MS } from './overdue.ts';

/** A timer may fire a moment before its time by the wall clock: the task would not be due yet. */
const MARGIN_MS = 100;

/** Looks at tasks that were closed with force when their executors must have ended them, without waiting for the next snapshot. */
export function closeWatch(
  { clock, aggregates }: Pick<PlannerDeps, 'clock' | 'aggregates'>,
  { at }: Pick<AggregateFold, 'at'>,
  look: (aggregate: string) => void,
) {
  /** By task: its timer. */
  const open = new Map<string, Cancel>();
  /** Sets the timers anew. Called at each close, at the start for earlier closes, and when the clock may have changed. */
  function begin(): void {
    for (const aggregate of aggregates)
      for (const { id, end, closeAsked } of at(aggregate).state.tasks.values()) {
        if (end !== null || closeAsked?.force !== true) continue;
        open.get(id)?.();
        const waitMs = Math.max(0, closeAsked.atMs + CLOSE_GRACE_MS - clock.now()) + MARGIN_MS;
        const cancel = clock.after(waitMs, () => {
          open.delete(id);
          look(aggregate);
        });
        open.set(id, cancel);
      }
  }
  return {
    begin,
    changed({ event }: StoredEvent): void {
      if (event.type === 'migration.closed') begin();
    },
    stop(): void {
      for (const cancel of open.values()) cancel();
    },
  };
}
