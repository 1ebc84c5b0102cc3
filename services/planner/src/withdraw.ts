/** Plans that wait for approval and have lost their reason. Pure. */
import {
  type Actor,
  iso,
  messageId,
  type PlanWithdrawn,
  type Reason,
  type Snapshot,
  timeMs,
  UNASSIGNED,
} from '@kronos/contracts';
import { evacuationIsOver, groupIsWhole, type ReasonOf, repairIsOver, type TaskReasonCode } from '@kronos/facts';
import { type AggregateState, causeOf, openCellPlans, type PlanFacts, waitingPlan } from '@kronos/projections';

type StepFacts = PlanFacts['proposed'][number];

/** The first plan that waits for approval and whose reason is gone by the snapshot; null: there is none. */
export function lostPlan(
  state: Pick<AggregateState, 'waiting' | 'plans'>,
  snapshot: Snapshot,
  nowMs: number,
): { readonly plan: PlanFacts; readonly reason: Reason } | null {
  const waiting = waitingPlan(state, nowMs);
  const open = [...(waiting?.open === true ? [waiting] : []), ...openCellPlans(state, nowMs)];
  for (const { plan } of open) {
    const reason = goneReason(plan, snapshot);
    if (reason !== null) return { plan, reason };
  }
  return null;
}

/** Why the reason of the plan is gone by the snapshot; null: nothing shows that. */
export function goneReason(
  { proposed, cells, decidedAtMs }: Pick<PlanFacts, 'proposed' | 'cells' | 'decidedAtMs'>,
  snapshot: Snapshot,
): Reason | null {
  // An observation that began before the plan does not show changes since.
  if (timeMs(snapshot.observedFrom) < decidedAtMs) return null;
  const left = proposed.map((step) => leftAggregate(step, proposed, snapshot));
  // Between cells each step stands alone, and its destination is in another aggregate.
  const lost = cells !== undefined && left.includes(null) ? null : left.find((reason) => reason !== null);
  return lost ?? overReason(proposed, snapshot);
}

/** Why a step can never start: its VM, its source or its destination is no longer where the plan has it. */
function leftAggregate(step: StepFacts, proposed: readonly StepFacts[], snapshot: Snapshot): Reason | null {
  const { serverId, serverName, from, to, phase } = step;
  const host = [from, ...(phase === 'cell' ? [] : [to])].find((one) => hasLeft(one, snapshot));
  if (host !== undefined) {
    const where = snapshot.aggregate === UNASSIGNED ? 'the pool of unassigned hosts' : snapshot.aggregate;
    return gone(`${host} is no longer in ${where}`, step, { host });
  }
  // A VM that is parked first is elsewhere when its second step begins.
  if (proposed.find((one) => one.serverId === serverId) !== step || !hasMoved(step, snapshot)) return null;
  return gone(`${serverName} is no longer on ${from}`, step);
}

/** Problems and notes about hosts of the aggregate that a snapshot does not count. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  'host-with-several-hypervisors',
  'host-without-hypervisor',
  'hypervisor-type-ignored',
]);
/** Without these lists of Nova it is not known which hosts an aggregate has. The pool has those that Nova's services name, too. */
const UNREAD: ReadonlySet<string> = new Set(['aggregates-unknown', 'hypervisors-unknown']);

/** Whether the snapshot shows that the host is in its aggregate no more. */
function hasLeft(name: string, { aggregate, hosts, problems, notes }: Snapshot): boolean {
  if (hosts.some((host) => host.name === name)) return false;
  return ![...problems, ...notes].some(({ code, detail }) => {
    if (UNREAD.has(code)) return true;
    if (code === 'services-unknown') return aggregate === UNASSIGNED;
    return UNCOUNTED.has(code) && [detail?.host, ...[detail?.hosts ?? []].flat()].includes(name);
  });
}

/** Whether the snapshot shows that the server is elsewhere, or in the aggregate no more. One with a problem may lack servers. */
function hasMoved({ serverId, from }: StepFacts, { servers, problems }: Snapshot): boolean {
  const server = servers.find(({ id }) => id === serverId);
  if (server === undefined) return problems.length === 0;
  return server.host !== from && !server.alsoOn.includes(from);
}

/** Why what a step was for is done or no longer wanted. */
function overReason(proposed: readonly StepFacts[], snapshot: Snapshot): Reason | null {
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

const gone = (
  text: string,
  { step, serverId }: StepFacts,
  more: NonNullable<Reason['detail']> = {},
): ReasonOf<TaskReasonCode> => ({
  code: 'reason-gone',
  text,
  detail: { step, server: serverId, ...more },
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
