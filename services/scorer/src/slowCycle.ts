/** Says that taking the snapshots of a cycle takes longer than the interval. Pure. */
import { INTERVAL_GRACE_MS, secondsUp } from '@kronos/contracts';
import type { ReadDuration } from '@kronos/observation';

/** A read of a cycle, and how long it took. */
export type LongRead = { readonly name: string; readonly ms: number };

export type CycleTaking = {
  readonly ms: number;
  /** Of the cycle before it; 0: there was none. */
  readonly beforeMs: number;
  readonly intervalMs: number;
  /** False: it goes on. */
  readonly ended: boolean;
  /** The read of the last cycle that took longest; null: not known. */
  readonly longest: LongRead | null;
};

/** Null: it does not take too long. One cycle alone may take two intervals: then the newest snapshot is not late. */
export function slowCycleText({ ms, beforeMs, intervalMs, ended, longest }: CycleTaking): string | null {
  const most = beforeMs > intervalMs + INTERVAL_GRACE_MS ? intervalMs : 2 * intervalMs;
  if (ms <= most + INTERVAL_GRACE_MS) return null;
  const due = `and one is due every ${intervalMs / 1000} s`;
  if (!ended) return `a cycle has taken ${secondsUp(ms)} s so far, ${due}`;
  const read = longest === null ? '' : `; ${longest.name} took longest, ${secondsUp(longest.ms)} s`;
  return `a cycle took ${secondsUp(ms)} s, ${due}: cycles are skipped${read}`;
}

/** The read that took longest. @param capacityMs how long the capacities of the aggregate took that took longest; undefined: none was read */
export function longestRead(durations: readonly ReadDuration[], capacityMs: number | undefined): LongRead | null {
  const reads: LongRead[] = durations.map((one) => ({
    name: one.of === 'list' ? `Nova's list of ${LISTS[one.part]}` : 'a query of Prometheus',
    ms: one.milliseconds,
  }));
  if (capacityMs !== undefined) reads.push({ name: 'the capacity of hosts', ms: capacityMs });
  return reads.reduce<LongRead | null>((most, one) => (most === null || one.ms > most.ms ? one : most), null);
}

const LISTS = {
  aggregates: 'aggregates',
  services: 'services',
  hypervisors: 'hypervisors',
  servers: 'servers',
  serverGroups: 'server groups',
  migrations: 'migrations',
} as const satisfies Record<Extract<ReadDuration, { readonly of: 'list' }>['part'], string>;
