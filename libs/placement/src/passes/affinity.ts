import { type CompleteEngineOptions, count, type Reason, some } from '@kronos/contracts';
import { EPSILON } from '@kronos/rules';
import { int, item } from '../base/array.ts';
import { subsets } from '../base/sort.ts';
import type { Cluster, Group } from '../cluster/cluster.ts';
import { Checker, NO_REPAIR } from '../cluster/constraints.ts';
import { combinedOf, imbalances, worsened } from '../cluster/measure.ts';
import { Draft } from '../draft/draft.ts';
import { type Placing, place } from '../draft/placing.ts';
import { type Target, Targets } from '../draft/targets.ts';
import { codeNumber, codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';

type AffinityOptions = Pick<
  CompleteEngineOptions,
  'enforceHardAffinity' | 'enforceSoftAffinity' | 'evacuationThresholds'
>;

/**
 * Affinity enforcer: repairs server groups whose members share a host against their rule, or are on several hosts against it. It moves
 * the fewest VMs that the repair needs, by the evacuator's rule. If there is no room, other VMs move to make room. Hard groups come first,
 * then by id. A repair can make room for another one, so groups without a legal repair are tried again after the others. Those that have
 * none at the end are recorded and not changed.
 */
export function enforceAffinity(draft: Draft, options: AffinityOptions): void {
  const { groups } = draft.cluster;
  const required = options.evacuationThresholds === 'require';
  const isHard = (g: number): boolean => groups[g]?.hard === true;
  const hopeless = contradictions(draft, options);
  const broken = groups
    .map((_, g) => g)
    .filter((g) => enforced(groups[g], options) && isBroken(draft, item(groups, g)) && !hopeless.has(g));
  const order = [...broken.filter(isHard), ...broken.filter((g) => !isHard(g))];
  const mark = draft.moves.length;
  const left = repairAll(draft, order, required);
  const made = draft.moves.length - mark;
  const { budget } = draft;
  const better = budget === 0 ? null : together(draft, order, { mark, made, left: left.length, required });
  if (better === null) report(draft, left, options);
  else {
    draft.rollback(mark);
    for (const { vm, to, wanted, repairs } of better)
      draft.apply(vm, to, {
        phase: 'affinity',
        why: wanted ? whyOf(groups, repairs) : 'makes-room',
        repairs: wanted ? repairs : NO_REPAIR,
      });
  }
}

const whyOf = (groups: readonly Group[], g: number): ReasonCode =>
  groups[g]?.affine === true ? 'repairs-affinity' : 'repairs-anti-affinity';

/**
 * Groups whose rules contradict each other: more VMs are in both than a host may hold of the one, and the other wants them on one host.
 * Warns about each pair, instead of about the repairs that cannot be made.
 */
function contradictions(draft: Draft, options: AffinityOptions): ReadonlySet<number> {
  const { groups, vmNames, vmGroups, vmIds } = draft.cluster;
  const found = new Set<number>();
  groups.forEach((affine, a) => {
    if (!affine.affine || !enforced(affine, options)) return;
    const others = new Set(affine.members.flatMap((vm) => [...(vmGroups[vm] ?? [])]));
    for (const b of [...others].sort((x, y) => x - y)) {
      const apart = item(groups, b);
      if (apart.affine || !enforced(apart, options)) continue;
      const both = affine.members.filter((vm) => apart.members.includes(vm));
      if (both.length <= apart.max) continue;
      for (const g of [a, b]) found.add(g);
      const names = some(both.map((vm) => item(vmNames, vm)));
      draft.warnings.push({
        code: 'groups-contradict' satisfies ReasonCode,
        text: `the ${affine.policy} group ${affine.name} and the ${apart.policy} group ${apart.name} contradict each other: ${names} are in both`,
        detail: { groups: [affine.id, apart.id], servers: both.map((vm) => item(vmIds, vm)) },
      });
    }
  });
  return found;
}

/** Says of each group that cannot be repaired why: in one sentence where no placement keeps its rule. */
function report(draft: Draft, left: readonly Repair[], options: AffinityOptions): void {
  const said = new Set<string>();
  for (const repair of left) {
    const never = neverKept(draft.cluster, repair.g, options);
    if (never === null) repair.report();
    else if (!said.has(never.text)) draft.warnings.push(never);
    if (never !== null) said.add(never.text);
  }
}

/**
 * Why no placement keeps the rule of a group: it has more members than the hosts may hold, or affinity groups that share members want more
 * VMs on one host than an anti-affinity group allows there. Null: neither is so.
 */
function neverKept(
  { groups, vmGroups, vmNames, vmIds, H }: Cluster,
  g: number,
  options: AffinityOptions,
): Reason | null {
  const holds = (group: Group): boolean => group.strict || enforced(group, options);
  const { affine, members, max, name, policy, id } = item(groups, g);
  if (!affine && members.length > max * H)
    return {
      code: 'repair-impossible' satisfies ReasonCode,
      text: `the ${policy} group ${name} has ${members.length} members, and the ${count(H, 'host')} of the aggregate may hold ${max} each`,
      detail: { group: id, policy, servers: members.map((vm) => item(vmIds, vm)) },
    };
  for (const apart of affine ? groups.filter((one) => !one.affine && holds(one)) : [item(groups, g)])
    for (const vm of apart.members) {
      const { together, near } = gatheredWith(vm);
      const both = apart.members.filter((one) => together.has(one));
      if (both.length <= apart.max || (affine && !near.has(g))) continue;
      const names = [...near].sort((a, b) => a - b).map((one) => item(groups, one).name);
      return {
        code: 'groups-contradict' satisfies ReasonCode,
        text: `the affinity groups ${some(names)} and the ${apart.policy} group ${apart.name} contradict each other: ${some(both.map((one) => item(vmNames, one)))} must share a host, and may not`,
        detail: {
          groups: [...[...near].sort((a, b) => a - b).map((one) => item(groups, one).id), apart.id],
          servers: both.map((one) => item(vmIds, one)),
        },
      };
    }
  return null;

  /** The VMs that must share a host with this one, and the groups by which. */
  function gatheredWith(vm: number): { readonly together: ReadonlySet<number>; readonly near: ReadonlySet<number> } {
    const together = new Set([vm]);
    const near = new Set<number>();
    for (const one of together)
      for (const of of vmGroups[one] ?? []) {
        const group = item(groups, of);
        if (!group.affine || !holds(group)) continue;
        near.add(of);
        for (const member of group.members) together.add(member);
      }
    return { together, near };
  }
}

/** Groups that are repaired together, the ways to repair them, and the work on all of these, at most. */
const MOST_TOGETHER = 5;
const MOST_WAYS = 400;
const MOST_WORK = 1_500_000;

/** The VMs that leave their hosts in one way to repair a group, and where they go: null: anywhere. */
type Way = { readonly g: number; readonly vms: readonly number[]; readonly host: number | null };

/**
 * One search for the repairs of all groups: it moves fewer VMs than the repairs one by one did, or repairs more groups. Null when it finds
 * nothing better.
 */
function together(
  draft: Draft,
  broken: readonly number[],
  than: { readonly mark: number; readonly made: number; readonly left: number; readonly required: boolean },
): readonly (Placing['moves'][number] & { readonly repairs: number })[] | null {
  const { cluster } = draft;
  if (broken.length > MOST_TOGETHER) return null;
  const start = new Draft(cluster, draft.budget + than.made);
  for (const move of draft.moves.slice(0, than.mark))
    start.apply(move.vm, move.to, { phase: move.phase, why: move.why, repairs: move.repairs });
  for (const vm of draft.held) start.held.add(vm);
  const choices = broken.map((g) => waysOf(start, g, item(cluster.groups, g)));
  const least = choices.reduce((sum, ways) => sum + Math.min(...ways.map(({ vms }) => vms.length)), 0);
  const product = choices.reduce((n, ways) => n * ways.length, 1);
  if (product === 0 || product > MOST_WAYS || (than.left === 0 && least === than.made)) return null;
  let all: readonly (readonly Way[])[] = [[]];
  for (const ways of choices) all = all.flatMap((some) => ways.map((way) => [...some, way]));
  const sized = all
    .map((ways) => ({ ways, vms: [...new Set(ways.flatMap(({ vms }) => vms))] }))
    .filter(({ ways, vms }) => vms.length === ways.reduce((n, way) => n + way.vms.length, 0))
    .sort((a, b) => a.vms.length - b.vms.length);
  let most = than.left > 0 ? least + MOST_OTHERS + MOST_TOGETHER : than.made - 1;
  let best: ReturnType<typeof together> = null;
  for (const { ways, vms } of sized) {
    if (vms.length > most || start.evaluated > MOST_WORK) break;
    const repairs = new Map(
      ways.flatMap(({ g, vms, host }) => (host === null ? [] : vms.map((vm) => [vm, g] as const))),
    );
    const groupOf = new Map(ways.flatMap(({ g, vms }) => vms.map((vm) => [vm, g] as const)));
    const hosts = new Map(
      ways.flatMap(({ vms, host }) => (host === null ? [] : vms.map((vm) => [vm, [host]] as const))),
    );
    const found = place(start, {
      vms,
      hosts,
      repairs,
      residents: true,
      most: most - vms.length,
      stranded: 1,
      strict: true,
      thresholds: than.required,
      work: MOST_WORK / 10,
    });
    if (found === null || found.moves.length > start.budget) continue;
    most = found.moves.length - 1;
    best = found.moves.map((move) => ({ ...move, repairs: groupOf.get(move.vm) ?? NO_REPAIR }));
  }
  draft.evaluated += start.evaluated;
  return best;
}

/** The ways to repair a group by moves of its own members. */
function waysOf(draft: Draft, g: number, group: Group): readonly Way[] {
  const on = membersByHost(draft, group);
  if (group.affine) {
    return [...on.keys()]
      .map((host) => ({ g, host, vms: group.members.filter((vm) => draft.place[vm] !== host) }))
      .filter(({ vms }) => vms.every((vm) => draft.movable(vm)));
  }
  let ways: readonly (readonly number[])[] = [[]];
  for (const members of on.values()) {
    const movable = members.filter((vm) => draft.movable(vm));
    const sets = subsets(movable, members.length - group.max);
    ways = ways.flatMap((some) => sets.map((set) => [...some, ...set])).slice(0, MOST_WAYS);
  }
  return ways.map((vms) => ({ g, vms, host: null }));
}

/** Makes the repairs in this order; returns those without a legal way. */
function repairAll(draft: Draft, order: readonly number[], required: boolean): readonly Repair[] {
  let waiting = order.map((g) => new Repair(draft, g, item(draft.cluster.groups, g), required));
  for (const effort of ['alone', 'with-others'] as const)
    for (let before = -1; before !== draft.moves.length; ) {
      before = draft.moves.length;
      waiting = waiting.filter((repair) => !repair.make(effort));
    }
  return waiting;
}

function isBroken(draft: Draft, group: Group): boolean {
  const on = membersByHost(draft, group);
  return group.affine ? on.size > 1 : [...on.values()].some((members) => members.length > group.max);
}

const enforced = (group: Group | undefined, options: AffinityOptions): boolean =>
  group !== undefined && (group.hard ? options.enforceHardAffinity : options.enforceSoftAffinity);

/** Other VMs that may move for one group. */
const MOST_OTHERS = 4;

/** The repair of one group. */
class Repair {
  readonly #draft: Draft;
  readonly g: number;
  readonly #group: Group;
  readonly #required: boolean;
  /** VMs that had to move and could not, with the reasons. */
  #obstacles: { readonly vm: number; readonly code: ReasonCode; readonly text: string }[] = [];
  #outOfBudget = false;

  constructor(draft: Draft, g: number, group: Group, required: boolean) {
    this.#draft = draft;
    this.g = g;
    this.#group = group;
    this.#required = required;
  }

  /** Makes the repair as far as the budget allows. False when no legal one was found. */
  make(effort: 'alone' | 'with-others'): boolean {
    this.#obstacles = [];
    if (this.#outOfBudget) return true;
    return this.#group.affine ? this.#gather(effort) : this.#part(effort);
  }

  report(): void {
    const { affine, members } = this.#group;
    if (this.#outOfBudget) return;
    const servers = affine ? members : [...new Set(this.#obstacles.map(({ vm }) => vm))];
    warn(this.#draft, this.#group, 'repair-impossible', servers);
    for (const { vm, code, text } of affine ? this.#obstacles.slice(0, 1) : this.#obstacles)
      this.#draft.addStuck(vm, 'affinity', { code, text, detail: { group: this.#group.id } });
  }

  /** Anti-affinity: moves members off hosts that hold too many of them. */
  #part(effort: 'alone' | 'with-others'): boolean {
    const on = membersByHost(this.#draft, this.#group);
    let whole = true;
    for (const [host, members] of [...on].sort(([a], [b]) => a - b)) {
      let surplus = members.length - this.#group.max;
      while (surplus > 0) {
        if (this.#spent()) return true;
        const still = members.filter((vm) => this.#draft.place[vm] === host);
        if (!this.#leave(still, effort)) {
          whole = false;
          this.#blame(still);
          break;
        }
        surplus--;
      }
    }
    return whole;
  }

  /** Moves one of these members to another host. */
  #leave(members: readonly number[], effort: 'alone' | 'with-others'): boolean {
    const draft = this.#draft;
    const movable = members.filter((vm) => draft.movable(vm));
    for (const past of this.#required ? [false] : [false, true]) {
      const best = bestOf(new Targets(draft, { strict: true, past }), movable);
      if (best === null) continue;
      draft.apply(best.vm, best.to, { phase: 'affinity', why: 'repairs-anti-affinity', repairs: this.g });
      return true;
    }
    if (effort === 'alone') return false;
    const least = fewestMoves(movable, (vm, known) => this.#withOthers([vm], null, (known ?? MOST_OTHERS + 2) - 2));
    return least !== null && this.#apply(least, 'repairs-anti-affinity');
  }

  /** Affinity: moves all members to the legal host that already has most of them. */
  #gather(effort: 'alone' | 'with-others'): boolean {
    const draft = this.#draft;
    const group = this.#group;
    const { alsoOn, vmRefusal } = draft.cluster;
    const on = membersByHost(draft, group);
    if (on.size < 2) return true;
    const underway = group.members.find((vm) => alsoOn.has(vm));
    if (underway !== undefined) {
      // The outcome of a member's running migration is unknown.
      const code = codeOfNumber(vmRefusal[underway] || codeNumber['vm-migrating']);
      this.#obstacles.push({ vm: underway, code, text: reasonMeanings[code] });
      return false;
    }
    const hosts = [...on.keys()].sort((a, b) => (on.get(b)?.length ?? 0) - (on.get(a)?.length ?? 0) || a - b);
    const limits = this.#required ? [true] : [true, false];
    for (const thresholds of limits) {
      const best = this.#bestGathering(hosts, thresholds);
      if (best !== null) return this.#moveAll(best);
    }
    if (effort === 'alone') return false;
    const least = fewestMoves(hosts, (host, known) => {
      const vms = group.members.filter((vm) => draft.place[vm] !== host);
      const most = (known ?? vms.length + MOST_OTHERS + 1) - vms.length - 1;
      return most < 0 || !vms.every((vm) => draft.movable(vm)) ? null : this.#withOthers(vms, host, most);
    });
    return least !== null && this.#apply(least, 'repairs-affinity');
  }

  #withOthers(vms: readonly number[], host: number | null, most: number): Placing | null {
    if (most < 0) return null;
    const wanted = { vms, residents: true, most, stranded: 1, strict: true, thresholds: this.#required };
    return place(this.#draft, {
      ...wanted,
      ...(host === null
        ? {}
        : { hosts: new Map(vms.map((vm) => [vm, [host]])), repairs: new Map(vms.map((vm) => [vm, this.g])) }),
    });
  }

  #apply({ moves }: Placing, why: ReasonCode): boolean {
    for (const { vm, to, wanted } of moves) {
      if (this.#spent()) return true;
      this.#draft.apply(vm, to, {
        phase: 'affinity',
        why: wanted ? why : 'makes-room',
        repairs: wanted ? this.g : NO_REPAIR,
      });
    }
    return true;
  }

  #bestGathering(hosts: readonly number[], thresholds: boolean): Gathering | null {
    let best: Gathering | null = null;
    for (const host of hosts) {
      const vms = this.#group.members.filter((vm) => this.#draft.place[vm] !== host);
      if (best !== null && vms.length > best.vms.length) break;
      const tried = tryGathering(this.#draft, this.g, { host, vms, thresholds });
      if (tried.ok) {
        if (best === null || tried.combined < best.combined - EPSILON) best = { host, vms, combined: tried.combined };
      } else this.#obstacles.push(tried);
    }
    return best;
  }

  #moveAll({ host, vms }: Gathering): boolean {
    for (const vm of vms) {
      if (this.#spent()) return true;
      this.#draft.apply(vm, host, { phase: 'affinity', why: 'repairs-affinity', repairs: this.g });
    }
    return true;
  }

  /** True, with a warning, when no move is left of the budget. */
  #spent(): boolean {
    if (this.#draft.budget > 0) return false;
    warn(this.#draft, this.#group, 'budget-used', []);
    this.#outOfBudget = true;
    return true;
  }

  #blame(members: readonly number[]): void {
    const targets = new Targets(this.#draft, { strict: true });
    for (const vm of members) {
      const own = this.#draft.refusalOf(vm);
      const code = own !== 0 ? codeOfNumber(own) : targets.whyNot(vm).code;
      const text = own !== 0 ? reasonMeanings[code] : `No host takes it: ${targets.obstacle(vm)}.`;
      this.#obstacles.push({ vm, code, text });
    }
  }
}

/** The target with the lowest imbalance. */
function bestOf(targets: Targets, vms: readonly number[]): Target | null {
  let best: Target | null = null;
  for (const vm of vms) {
    const target = targets.of(vm);
    if (target !== null && (best === null || target.combined < best.combined - EPSILON)) best = target;
  }
  return best;
}

/** @param find looks for one with fewer moves than are known; undefined: none is known */
function fewestMoves(
  from: readonly number[],
  find: (one: number, known: number | undefined) => Placing | null,
): Placing | null {
  let least: Placing | null = null;
  for (const one of from) {
    const found = find(one, least?.moves.length);
    if (found !== null && (least === null || found.moves.length < least.moves.length)) least = found;
  }
  return least;
}

type Gathering = { readonly host: number; readonly vms: readonly number[]; readonly combined: number };

type Tried = { ok: true; combined: number } | { ok: false; vm: number; code: ReasonCode; text: string };

/** Can all these VMs go to the host, one after the other, without breaking a rule or, with `thresholds`, raising a policy above its threshold? */
function tryGathering(
  draft: Draft,
  g: number,
  { host, vms, thresholds }: { readonly host: number; readonly vms: readonly number[]; readonly thresholds: boolean },
): Tried {
  const { cluster } = draft;
  const checker = new Checker(draft.place, draft.room, { strict: true });
  const mark = draft.moves.length;
  const failed = (vm: number, refusal: number): Tried => {
    draft.refusals.add(refusal);
    const text = checker.text(refusal, { vm, host, repairs: g });
    draft.rollback(mark);
    return { ok: false, vm, code: codeOfNumber(refusal), text };
  };
  let before = imbalances(cluster, draft.score);
  for (const vm of vms) {
    const refusal = draft.refusalOf(vm) || checker.refusal(vm, host, g);
    if (refusal !== 0) return failed(vm, refusal);
    draft.evaluated++;
    draft.apply(vm, host, { phase: 'affinity', why: 'repairs-affinity', repairs: g });
    const after = imbalances(cluster, draft.score);
    if (thresholds && worsened(cluster, before, after)) return failed(vm, codeNumber['past-threshold']);
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

function warn(draft: Draft, group: Group, code: 'repair-impossible' | 'budget-used', vms: readonly number[]): void {
  draft.warnings.push({
    code,
    text:
      code === 'budget-used'
        ? `${group.policy} group ${group.name}: ${reasonMeanings[code]}`
        : `no legal move repairs the ${group.policy} group ${group.name}${vms.length === 0 ? '' : ` (${some(vms.map((vm) => item(draft.cluster.vmNames, vm)))})`}`,
    detail: { group: group.id, policy: group.policy, servers: vms.map((vm) => item(draft.cluster.vmIds, vm)) },
  });
}
