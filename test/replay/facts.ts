import type { StoredEvent } from '@kronos/contracts';
import { toMemory } from '@kronos/cycle';
import { memoryText } from '@kronos/placement';
import { aggregateState, fold } from '@kronos/projections';

type Remembered = ReturnType<typeof memoryText>;

/** The facts of a memory that it had when the first history was written, under their names of then: it had no noise. */
const asWritten = ({ lastRelease, lastRefusal, waitingPlan, noise: _, ...memory }: Remembered) => ({
  ...memory,
  lastReleaseAt: lastRelease?.at ?? null,
  lastRejectionAt: lastRefusal?.at ?? null,
  waitingPlan: waitingPlan === null ? null : { planId: waitingPlan.planId, proposedAt: waitingPlan.proposedAt },
});

/** The state at the end of a log, in a form that does not depend on the version. */
export function factsOf(events: readonly StoredEvent[]): unknown {
  const state = fold(events);
  const facts = [...state.aggregates.keys()].sort().map((name) => {
    const of = aggregateState(state, name);
    const servers = [of.vmReleases, of.vmFailures, of.operatorQuarantines].flatMap((table) => [...table.keys()]);
    // The histories have the same VMs and hosts in all aggregates.
    const memory = toMemory(
      { ...of, elsewhere: [] },
      {
        servers: servers.map((id) => ({ id })),
        hosts: [...of.hostFailures.keys()].map((host) => ({ name: host })),
      },
    );
    const remembered = memoryText(memory);
    // The first version wrote a single quarantine per VM. A VM with one keeps that form.
    const quarantines = Object.fromEntries(
      Object.entries(remembered.quarantines).map(([id, all]) => [id, all.length === 1 ? all[0] : all]),
    );
    return [
      name,
      {
        remembered: { ...asWritten(remembered), quarantines },
        decided: of.decided?.snapshotId ?? null,
        plannerVersion: of.configured?.plannerVersion ?? null,
        plans: of.recentPlans.map(({ id, outcome, tasks, completed, failed, skipped }) => ({
          id,
          outcome,
          tasks,
          completed,
          failed,
          skipped,
        })),
        open: [...of.plans.keys()],
      },
    ];
  });
  return JSON.parse(JSON.stringify({ sequence: state.sequence, aggregates: Object.fromEntries(facts) }));
}
