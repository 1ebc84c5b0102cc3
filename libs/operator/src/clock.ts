import { skewProblem } from '@kronos/clock';
import type { Control } from '@kronos/contracts';

/** Commands that only stop or withhold something: they do no harm when they come late or early. */
const STOPS: ReadonlySet<Control['type']> = new Set([
  'aggregate.paused',
  'plan.rejected',
  'migration.cancelled',
  'migration.aborted',
  'instance.quarantined',
]);

export type ClockVerdict = { readonly kind: 'right' } | { readonly kind: 'warn' | 'refuse'; readonly problem: string };

/**
 * Whether a command may be given by a clock that differs this much (ms) from the NATS server's. A command states its own
 * time, by which deadlines are judged: by a wrong clock a plan could be approved after it expired.
 */
export function judgeClock(type: Control['type'], skewMs: number, maxSkewMs: number): ClockVerdict {
  const problem = skewProblem(skewMs, maxSkewMs);
  if (problem === null) return { kind: 'right' };
  return { kind: STOPS.has(type) ? 'warn' : 'refuse', problem };
}
