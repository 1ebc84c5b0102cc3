import { cyclePhases, type Decision } from '@kronos/contracts';
import type { SnapshotReasonCode } from '@kronos/facts';
import type { Predicted } from '@kronos/projections';
import type { Instruments } from '@kronos/telemetry';

/** The counters of the planner. */
export type PlannerMeters = {
  readonly decided: (
    aggregate: string,
    decision: Decision,
    release: 'released' | 'proposed' | 'dryRun' | 'none',
    ms: number,
  ) => void;
  readonly compared: (aggregate: string, comparisons: readonly Predicted[]) => void;
  readonly notDecided: (aggregate: string, reason: SnapshotReasonCode) => void;
  readonly dispatched: (aggregate: string, tasks: number) => void;
};

const AFTER = { soon: '1m', later: '10m' } as const;

export function plannerMeters(metrics: Instruments): PlannerMeters {
  return {
    decided(aggregate, decision, release, ms) {
      metrics.decideDuration.record(ms / 1000, { aggregate });
      metrics.decisions.add(1, { aggregate, outcome: decision.outcome, reason: decision.reason.code });
      for (const [reason, count] of Object.entries(decision.refusals))
        metrics.refusals.add(count, { aggregate, reason });
      if (decision.failover !== undefined) metrics.failoverLacking.set(decision.failover.lacking, { aggregate });
      for (const phase of cyclePhases) {
        metrics.stuck.set(decision.stuck.filter((s) => s.phase === phase).length, { aggregate, phase });
        const steps = decision.plan?.steps.filter((s) => s.phase === phase).length ?? 0;
        if (steps > 0) metrics.stepsPlanned.add(steps, { aggregate, phase });
      }
      if (decision.plan === null || release === 'none') return;
      metrics.releases.add(1, { aggregate, release });
      metrics.candidates.add(decision.plan.candidatesEvaluated, { aggregate });
    },
    compared(aggregate, comparisons) {
      for (const { policy, after, measured, predicted } of comparisons)
        metrics.predictionError.record(Math.abs(measured - predicted), { aggregate, policy, after: AFTER[after] });
    },
    notDecided: (aggregate, reason) => metrics.snapshotsNotDecided.add(1, { aggregate, reason }),
    dispatched: (aggregate, tasks) => metrics.tasksDispatched.add(tasks, { aggregate }),
  };
}
