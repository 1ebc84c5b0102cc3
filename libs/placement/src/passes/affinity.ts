import type { EngineOptions } from '@kronos/contracts';
import { EPSILON } from '@kronos/rules';
import { int, item } from '../base/array.ts';
import type { Group } from '../cluster/cluster.ts';
import { Checker, NO_REPAIR } from '../cluster/constraints.ts';
import { combinedOf, imbalances, worsened } from '../cluster/measure.ts';
import { codeNumber, codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';
import type { Draft } from './draft.ts';
import { type Target, Targets } from './targets.ts';

/**
 * Affinity enforcer: repairs server groups whose members share a host against their rule, or are on several hosts against it. It moves
 * the fewest VMs that the repair needs, by the evacuator's rule. Hard groups come first, then by id. A group without a legal repair is
 * recorded and not changed.
 */
export function enforceAffinity(
  draft: Draft,
  options: Pick<EngineOptions, 'enforceHardAffinity' | 'enforceSoftAffinity'>,
): void {
  const { groups } = draft.cluster;
  const wanted = groups.map((_, g) => g).filter((g) => enforced(groups[g], options));
  const kept: Kept = { targets: null };
  const hardFirst = [...wanted.filter((g) => groups[g]?.hard), ...wanted.filter((g) => !groups[g]?.hard)];
  for (const g of hardFirst) {
    const group = groups[g];
    if (group === undefined) continue;
    if (group.affine) gather(draft, g, group, kept);
    else part(draft, g, group, kept);
  }
}

/** The targets for the present draft, kept from one group to the next; null when they must be computed again. */
type Kept = { targets: Targets | null };

const enforced = (
  group: Group | undefined,
  options: Pick<EngineOptions, 'enforceHardAffinity' | 'enforceSoftAffinity'>,
): boolean => group !== undefined && (group.hard ? options.enforceHardAffinity : options.enforceSoftAffinity);

/** Anti-affinity: moves members off hosts that hold too many of them. */
function part(draft: Draft, g: number, group: Group, kept: Kept): void {
  const { place } = draft;
  const on = membersByHost(draft, group);
  for (const [host, members] of [...on].sort(([a], [b]) => a - b)) {
    let surplus = members.length - group.max;
    while (surplus > 0) {
      if (draft.budget === 0) {
        warn(draft, group, 'budget-used', []);
        return;
      }
      kept.targets ??= new Targets(draft, { strict: true });
      const targets = kept.targets;
      let best: Target | null = null;
      for (const vm of members) {
        if (!draft.movable(vm) || place[vm] !== host) continue;
        const target = targets.of(vm);
        if (target !== null && (best === null || target.combined < best.combined - EPSILON)) best = target;
      }
      if (best === null) {
        const still = members.filter((vm) => place[vm] === host);
        warn(draft, group, 'repair-impossible', still);
        for (const vm of still) stuck(draft, vm, reasonFor(draft, targets, vm, NO_REPAIR), group);
        break;
      }
      draft.apply(best.vm, best.to, 'affinity', 'repairs-anti-affinity', g);
      targets.moved(host, best.to);
      surplus--;
    }
  }
}

/** Affinity: moves all members to the legal host that already has most of them. */
function gather(draft: Draft, g: number, group: Group, kept: Kept): void {
  const on = membersByHost(draft, group);
  if (on.size < 2) return;
  const { alsoOn, vmRefusal } = draft.cluster;
  const underway = group.members.find((vm) => alsoOn.has(vm));
  if (underway !== undefined) {
    // The outcome of a member's running migration is unknown.
    warn(draft, group, 'repair-impossible', group.members);
    stuck(draft, underway, codeOfNumber(vmRefusal[underway] || codeNumber['vm-migrating']), group);
    return;
  }
  const hosts = [...on.keys()].sort((a, b) => (on.get(b)?.length ?? 0) - (on.get(a)?.length ?? 0) || a - b);
  let best: { host: number; vms: readonly number[]; combined: number } | null = null;
  let firstObstacle: { vm: number; code: ReasonCode } | null = null;
  for (const host of hosts) {
    const vms = group.members.filter((vm) => draft.place[vm] !== host);
    if (best !== null && vms.length > best.vms.length) break;
    const tried = tryGathering(draft, g, host, vms);
    if (tried.ok) {
      if (best === null || tried.combined < best.combined - EPSILON) best = { host, vms, combined: tried.combined };
    } else firstObstacle ??= tried;
  }
  if (best === null) {
    warn(draft, group, 'repair-impossible', group.members);
    if (firstObstacle !== null) stuck(draft, firstObstacle.vm, firstObstacle.code, group);
    return;
  }
  for (const vm of best.vms) {
    if (draft.budget === 0) {
      warn(draft, group, 'budget-used', []);
      return;
    }
    draft.apply(vm, best.host, 'affinity', 'repairs-affinity', g);
    kept.targets = null;
  }
}

type Tried = { ok: true; combined: number } | { ok: false; vm: number; code: ReasonCode };

/** Can all these VMs go to the host, one after the other, without breaking a rule or raising a policy above its threshold? */
function tryGathering(draft: Draft, g: number, host: number, vms: readonly number[]): Tried {
  const { cluster } = draft;
  const checker = new Checker(draft.place, draft.room, { strict: true });
  const mark = draft.moves.length;
  const failed = (vm: number, refusal: number): Tried => {
    draft.refusals.add(refusal);
    draft.rollback(mark);
    return { ok: false, vm, code: codeOfNumber(refusal) };
  };
  let before = imbalances(cluster, draft.score);
  for (const vm of vms) {
    const refusal = draft.refusalOf(vm) || checker.refusal(vm, host, g);
    if (refusal !== 0) return failed(vm, refusal);
    draft.evaluated++;
    draft.apply(vm, host, 'affinity', 'repairs-affinity', g);
    const after = imbalances(cluster, draft.score);
    if (worsened(cluster, before, after)) return failed(vm, codeNumber['past-threshold']);
    before = after;
  }
  draft.rollback(mark);
  return { ok: true, combined: combinedOf(cluster, before) };
}

function membersByHost(draft: Draft, group: Group): Map<number, number[]> {
  const on = new Map<number, number[]>();
  for (const vm of group.members) {
    const host = int(draft.place, vm);
    const list = on.get(host);
    if (list === undefined) on.set(host, [vm]);
    else list.push(vm);
  }
  return on;
}

function reasonFor(draft: Draft, targets: Targets, vm: number, repairs: number): ReasonCode {
  const own = draft.refusalOf(vm);
  return own !== 0 ? codeOfNumber(own) : targets.whyNot(vm, repairs).code;
}

function warn(draft: Draft, group: Group, code: 'repair-impossible' | 'budget-used', vms: readonly number[]): void {
  draft.warnings.push({
    code,
    text: `${group.policy} group ${group.id}: ${reasonMeanings[code]}`,
    detail: { group: group.id, policy: group.policy, servers: vms.map((vm) => item(draft.cluster.vmIds, vm)) },
  });
}

function stuck(draft: Draft, vm: number, code: ReasonCode, group: Group): void {
  draft.addStuck(vm, 'affinity', { code, text: reasonMeanings[code], detail: { group: group.id } });
}
