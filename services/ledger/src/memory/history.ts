import { iso, type LogEventOf, type Reason, type StoredEvent, snapshotTimeMs } from '@kronos/contracts';
import { type PlanRun, PlanRuns } from '@kronos/projections';
import { worstRatio } from '@kronos/status';

/** Events kept in memory, over all aggregates. */
export const RECENT_EVENTS = 10_000;
/** Decisions kept in memory per aggregate: two days of a cycle a minute. */
export const RECENT_DECISIONS = 2_880;

/** One decision as the chart of the console needs it. */
export type DecisionPoint = {
  readonly sequence: number;
  /** Of its snapshot, see `snapshotTimeMs`. ISO-8601. */
  readonly time: string;
  readonly snapshotId: string;
  readonly outcome: 'planned' | 'quiet' | 'gated';
  readonly release: 'released' | 'proposed' | 'dryRun' | 'none';
  readonly reason: Reason;
  /** Steps of its plan; 0 without one. */
  readonly steps: number;
  readonly combined: number | null;
  readonly combinedAfter: number | null;
  /** See `worstRatio`: before the plan, and after it. */
  readonly ratio: number | null;
  readonly ratioAfter: number | null;
  readonly policies: readonly {
    readonly policy: string;
    readonly imbalance: number | null;
    readonly threshold: number;
    readonly detected: boolean;
    readonly sustainedCycles: number;
  }[];
};

type LastDecision = { readonly sequence: number; readonly data: LogEventOf<'cycle.decided'>['data'] };

/** The latest events, for people. What is older is on the log. */
export type EventHistory = {
  add(stored: StoredEvent): void;
  /** Puts events that are older than all in memory before them, as far as there is room. */
  prepend(older: readonly StoredEvent[]): void;
  /** The oldest event in memory; null when there is none. */
  readonly oldest: StoredEvent | null;
  /** Newest first. */
  events(): Iterable<StoredEvent>;
  /** Oldest first. */
  decisions(aggregate: string): readonly DecisionPoint[];
  /** The latest plans of an aggregate and their moves, oldest first. They are kept longer than their events. */
  runs(aggregate: string): readonly PlanRun[];
  /** The last decision about an aggregate; null when it is not in memory. */
  lastDecision(aggregate: string): LastDecision | null;
  /** Sequence of the decision that made a plan; null when it is older than what is kept. */
  planSequence(planId: string): number | null;
};

export function history(limits = { events: RECENT_EVENTS, decisions: RECENT_DECISIONS }): EventHistory {
  let ring: StoredEvent[] = [];
  let next = 0;
  const points = new Map<string, DecisionPoint[]>();
  const plans = new Map<string, number>();
  const last = new Map<string, LastDecision>();
  const runs = new PlanRuns();

  function decided(stored: StoredEvent, event: LogEventOf<'cycle.decided'>): void {
    const of = points.get(event.aggregate) ?? [];
    points.set(event.aggregate, of);
    last.set(event.aggregate, { sequence: stored.sequence, data: event.data });
    of.push(pointOf(stored, event));
    // Cut in larger pieces: cheap, and never more than a quarter above the limit.
    if (of.length > limits.decisions * 1.25) of.splice(0, of.length - limits.decisions);
    if (event.data.plan === null) return;
    plans.set(event.data.plan.id, stored.sequence);
    for (const id of plans.keys()) {
      if (plans.size <= limits.events) break;
      plans.delete(id);
    }
  }

  function add(stored: StoredEvent): void {
    if (ring.length < limits.events) ring.push(stored);
    else ring[next] = stored;
    next = (next + 1) % limits.events;
    runs.add(stored);
    if (stored.event.type === 'cycle.decided') decided(stored, stored.event);
  }

  return {
    add,
    prepend(older) {
      const room = limits.events - ring.length;
      if (room === 0) return;
      const events = [...older.slice(-room), ...ring];
      ring = [];
      next = 0;
      points.clear();
      plans.clear();
      last.clear();
      runs.clear();
      for (const stored of events) add(stored);
    },
    get oldest() {
      return ring[ring.length < limits.events ? 0 : next] ?? null;
    },
    *events() {
      for (let back = 1; back <= ring.length; back++) {
        const stored = ring[(next - back + limits.events) % limits.events];
        if (stored !== undefined) yield stored;
      }
    },
    decisions: (aggregate) => (points.get(aggregate) ?? []).slice(-limits.decisions),
    runs: (aggregate) => runs.of(aggregate),
    lastDecision: (aggregate) => last.get(aggregate) ?? null,
    planSequence: (planId) => plans.get(planId) ?? null,
  };
}

/** The point of a decision on the chart. */
function pointOf(
  { sequence, storedAt, originallyStoredAt = storedAt }: StoredEvent,
  { data }: LogEventOf<'cycle.decided'>,
): DecisionPoint {
  return {
    sequence,
    time: iso(snapshotTimeMs(data.snapshotTime, originallyStoredAt)),
    snapshotId: data.snapshotId,
    outcome: data.outcome,
    release: data.release,
    reason: data.reason,
    steps: data.plan?.steps.length ?? 0,
    combined: data.before.combined,
    combinedAfter: data.plan?.after.combined ?? null,
    ratio: worstRatio(data.before.policies),
    ratioAfter: data.plan === null ? null : worstRatio(data.plan.after.policies),
    policies: data.before.policies.map(({ policy, imbalance, threshold, detected, sustainedCycles }) => ({
      policy,
      imbalance,
      threshold,
      detected,
      sustainedCycles,
    })),
  };
}
