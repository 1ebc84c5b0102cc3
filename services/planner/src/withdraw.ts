/** Plans that wait for approval and have lost their reason. Pure. */
import { type Actor, iso, messageId, type PlanWithdrawn, type Reason, type Snapshot } from '@kronos/contracts';
import { evacuationIsOver, groupIsWhole, type ReasonOf, repairIsOver, type TaskReasonCode } from '@kronos/facts';
import { causeOf, type PlanFacts } from '@kronos/projections';

type StepFacts = PlanFacts['proposed'][number];

/** Why the reason of a step of the plan is gone by the snapshot; null: nothing shows that. */
export function goneReason(plan: Pick<PlanFacts, 'proposed'>, snapshot: Snapshot): Reason | null {
  const { proposed } = plan;
  const awaited = new Set(proposed.flatMap(({ dependsOn }) => dependsOn));
  for (const step of proposed) {
    const { phase, serverName, from } = step;
    const source = snapshot.hosts.find(({ name }) => name === from);
    // A step that others wait for may move a resident off an enabled host to make room: the others show whether their reason holds.
    if (phase === 'evacuate' && !awaited.has(step.taskId) && source !== undefined && evacuationIsOver(source.service))
      return gone(`${from} is enabled again: its VMs stay`, step);
    if (phase === 'affinity' && !awaited.has(step.taskId) && repairsNothing(step, snapshot))
      return gone(`the server groups of ${serverName} hold their rules again`, step);
    if (phase === 'repair' && !awaited.has(step.taskId) && staysAtHome(step, snapshot))
      return gone(`${serverName} is where it is pinned to, and ${from} has no more claimed than its capacity`, step);
  }
  return null;
}

/** An unknown host or inventory proves nothing. */
function staysAtHome({ serverId, from }: StepFacts, { servers, hosts }: Snapshot): boolean {
  const server = servers.find(({ id }) => id === serverId);
  const host = hosts.find(({ name }) => name === from);
  if (server === undefined || server.host !== from || host === undefined || host.inventory === null) return false;
  return repairIsOver(
    { pin: server.pinnedAvailabilityZone, zone: host.availabilityZone },
    Object.values(host.inventory),
  );
}

const gone = (text: string, { step, serverId }: StepFacts): ReasonOf<TaskReasonCode> => ({
  code: 'reason-gone',
  text,
  detail: { step, server: serverId },
});

/** A group without a known member beside the server proves nothing. */
function repairsNothing({ parking, groups, serverId, from }: StepFacts, snapshot: Snapshot): boolean {
  if (parking || groups.length === 0) return false;
  const places = new Map(snapshot.servers.map((server) => [server.id, [server.host, ...server.alsoOn]]));
  if (places.get(serverId)?.[0] !== from) return false;
  return groups.every(({ id }) => {
    const group = snapshot.serverGroups.find((one) => one.id === id);
    if (group === undefined) return false;
    const others = group.members.flatMap((member) => {
      const hosts = member === serverId ? undefined : places.get(member);
      return hosts === undefined ? [] : [{ hosts }];
    });
    return groupIsWhole({ policy: group.policy, most: group.maxServerPerHost }, from, others);
  });
}

export const withdrawnEvent = (
  plan: PlanFacts,
  { snapshot, reason, by, nowMs }: { snapshot: Snapshot; reason: Reason; by: Actor; nowMs: number },
): PlanWithdrawn => ({
  type: 'plan.withdrawn',
  version: 1,
  id: messageId.withdrawn(plan.id),
  time: iso(nowMs),
  aggregate: snapshot.aggregate,
  by,
  correlationId: plan.id,
  causationId: causeOf(plan),
  data: { planId: plan.id, snapshotId: snapshot.id, reason },
});
