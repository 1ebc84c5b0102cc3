import type { CompleteEngineOptions } from '@kronos/contracts';
import { float, int, item } from '../base/array.ts';
import { isBelow } from '../base/sort.ts';
import { type Cluster, keysAt, sharesIn, staysBelow } from '../cluster/cluster.ts';
import { Checker, NO_REPAIR, Room } from '../cluster/constraints.ts';
import type { Draft, Move } from '../draft/draft.ts';
import { place } from '../draft/placing.ts';
import { byHardRules, evacueesOf, type FailureState, findRefuge } from '../failover/refuge.ts';
import { codeNumber, type ReasonCode } from '../reasons.ts';
import { type Emptiable, emptiable, roomOn, type Sought, setsOf, type Work } from './hostSets.ts';

/** The result for a host in the drain order. */
export type Drain = {
  readonly host: number;
  readonly vms: number;
  /** Moves of this plan off the host. */
  readonly moves: number;
  /** Null when it is drained, in this cycle or in later ones. */
  readonly refusal: ReasonCode | null;
};

/** Legality checks of one failure, at most. Beyond it the room counts as not there. */
const HEADROOM_CHECKS = 20_000;

/** Legality checks of the search for more hosts, for as many with fewer moves, and of one set, at most. */
const SETS_WORK = 2_000_000;
const FEWER_WORK = 1_000_000;
const SET_WORK = 200_000;
/** VMs that a set's search copies in the time of a check. */
const VMS_PER_CHECK = 16;

type PackOptions = Pick<CompleteEngineOptions, 'packHeadroomHosts' | 'packReachCycles' | 'planner'>;

/**
 * Imbalance planner in pack mode (First Fit Decreasing). Hosts are emptied one after the other, lowest combined score first:
 * their VMs, largest first, each go to the fullest host that is not drained and not empty and where every policy's
 * capacity value stays below its threshold. A drain starts only if all the VMs can leave within the remaining budget and
 * `packReachCycles - 1` further ones, and if the other hosts could still take the VMs of `packHeadroomHosts` hosts that fail: of each
 * host, together with the fullest others. Each drain is finished before the next one starts.
 *
 * `planner=search` also tries the hosts with the fewest VMs first, and it looks for the most hosts that the budget can empty together: an
 * exact search with a limit. It takes the result that empties the most hosts; then one that begins a further drain; then the one that
 * leaves the least work to the next cycles; then the one with the fewest moved VMs; then the one with the least memory.
 */
export function pack(draft: Draft, fullBudget: number, options: PackOptions): Drain[] {
  const scores = Float64Array.from({ length: draft.cluster.H }, (_, h) => combinedValue(draft.cluster, draft.score, h));
  const byScore = new Packing(draft, fullBudget, options, scores);
  if (options.planner === 'greedy') return byScore.oneByOne();
  const counts = Float64Array.from({ length: draft.cluster.H }, (_, h) => byScore.count(h));
  const byCount = new Packing(draft, fullBudget, options, counts);
  const mark = draft.moves.length;
  type Way = { readonly drains: Drain[]; readonly moves: readonly Move[]; readonly result: readonly number[] };
  const tried = (way: () => Drain[]): Way => {
    const drains = way();
    const moves = draft.moves.slice(mark);
    const result = resultOf(draft, drains, moves);
    draft.rollback(mark);
    return { drains, moves, result };
  };
  let best = tried(() => byScore.oneByOne());
  const offer = (way: Way): void => {
    if (isBelow(way.result, best.result)) best = way;
  };
  offer(tried(() => byCount.oneByOne()));
  offer(tried(() => byCount.together(best.drains.flatMap((drain) => (isEmptied(drain) ? [drain.host] : [])))));
  for (const { vm, to } of best.moves) draft.apply(vm, to, { phase: 'pack', why: 'drains-host' });
  return best.drains;
}

const isEmptied = ({ refusal, moves, vms }: Drain): boolean => refusal === null && moves === vms;

/** The measures of drains; lower is better: hosts emptied (negative), drains begun (negative), VMs still to leave, moves, memory moved. */
function resultOf(draft: Draft, drains: readonly Drain[], moves: readonly Move[]): readonly number[] {
  const begun = drains.filter(({ refusal }) => refusal === null);
  const rest = begun.reduce((sum, drain) => sum + drain.vms - drain.moves, 0);
  const ram = moves.reduce((sum, { vm }) => sum + float(draft.cluster.ramMb, vm), 0);
  return [-begun.filter(isEmptied).length, -begun.length, rest, moves.length, ram];
}

/** Hosts, and the moves that empty all of them. */
type EmptiedSet = {
  readonly hosts: readonly number[];
  readonly moves: readonly { readonly vm: number; readonly to: number }[];
};

/** The set with the fewest VMs, the known set with one host more, and then all others. */
function* candidates(
  hosts: readonly Emptiable[],
  known: readonly number[],
  sought: Sought,
): Generator<readonly number[]> {
  const sets = setsOf(hosts, sought);
  const first = sets.next();
  if (first.done !== true) yield first.value;
  if (known.length > 0) for (const { host } of hosts) if (!known.includes(host)) yield [...known, host];
  yield* sets;
}

class Packing {
  readonly #draft: Draft;
  readonly #fullBudget: number;
  readonly #options: PackOptions;
  readonly #checker: Checker;
  /** VMs that are on a host or count on it. */
  readonly #onHost: Int32Array;
  /** VMs of each host, largest combined weight first. */
  readonly #vms: readonly (readonly number[])[];
  /** Combined weight of each VM. */
  readonly #weights: Float64Array;
  /** Hosts to drain, in order. */
  readonly #order: readonly number[];
  /** 1 for hosts that take VMs: neither drained nor empty. */
  #open: Uint8Array;
  /** Combined capacity value of each host. */
  #full: Float64Array;

  /** @param first hosts with the lowest value are drained first */
  constructor(draft: Draft, fullBudget: number, options: PackOptions, first: Float64Array) {
    const { cluster, place } = draft;
    const { H, V, counted } = cluster;
    this.#draft = draft;
    this.#fullBudget = fullBudget;
    this.#options = options;
    this.#checker = new Checker(place, draft.room);
    this.#onHost = new Int32Array(H);
    const on: number[][] = Array.from({ length: H }, () => []);
    this.#weights = Float64Array.from({ length: V }, (_, v) => combinedWeight(cluster, v));
    for (let v = 0; v < V; v++) {
      const host = int(place, v);
      on[host]?.push(v);
      for (const h of [host, ...(cluster.alsoOn.get(v) ?? [])]) this.#onHost[h] = int(this.#onHost, h) + 1;
    }
    this.#vms = on.map((vms) => this.#largestFirst(vms));
    const order: number[] = [];
    for (let h = 0; h < H; h++) if (counted[h] === 1 && int(this.#onHost, h) > 0) order.push(h);
    this.#order = order.sort((a, b) => float(first, a) - float(first, b) || a - b);
    this.#open = new Uint8Array(H);
    this.#full = new Float64Array(H);
    this.#reset();
  }

  count(host: number): number {
    return int(this.#onHost, host);
  }

  #largestFirst(vms: readonly number[]): readonly number[] {
    return vms.toSorted((a, b) => float(this.#weights, b) - float(this.#weights, a) || a - b);
  }

  /** Drains one host after the other, until the budget is used or no further host can be drained. */
  oneByOne(): Drain[] {
    this.#reset();
    return this.#further(new Set());
  }

  /** @param done hosts that the plan empties already. */
  #further(done: ReadonlySet<number>): Drain[] {
    const draft = this.#draft;
    const drains: Drain[] = [];
    const received = new Uint8Array(draft.cluster.H);
    for (const move of draft.moves) received[move.to] = 1;
    for (const host of this.#order) {
      if (draft.budget === 0) break;
      // No VM moves twice: a plan does not drain a host to which it moves VMs.
      if (received[host] === 1 || done.has(host)) continue;
      const vms = item(this.#vms, host);
      let refusal = this.#undrainable(host, draft.budget);
      const mark = draft.moves.length;
      const left = draft.budget;
      if (refusal === null) {
        this.#open[host] = 0;
        refusal = this.#empty(vms) ?? this.#headroomObstacle();
      }
      if (refusal !== null) {
        this.#rollback(mark);
        this.#open[host] = int(draft.cluster.hostRefusal, host) === 0 ? 1 : 0;
        drains.push({ host, vms: vms.length, moves: 0, refusal });
        draft.refusals.add(codeNumber[refusal]);
        continue;
      }
      this.#rollback(mark + Math.min(left, vms.length));
      for (const move of draft.moves.slice(mark)) received[move.to] = 1;
      drains.push({ host, vms: vms.length, moves: draft.moves.length - mark, refusal: null });
      if (draft.moves.length - mark < vms.length) break;
    }
    return drains;
  }

  /**
   * Empties the most hosts that are found together, with the fewest moves found, and goes on one by one.
   *
   * @param known hosts that can be emptied together.
   */
  together(known: readonly number[]): Drain[] {
    this.#reset();
    const draft = this.#draft;
    const best = this.#most(known);
    if (best === null) return [];
    for (const { vm, to } of best.moves) draft.apply(vm, to, { phase: 'pack', why: 'drains-host' });
    for (const { from, to } of draft.moves.slice(-best.moves.length)) this.#refill(from, to);
    const drains = best.hosts.map((host): Drain => {
      this.#open[host] = 0;
      const { length } = item(this.#vms, host);
      return { host, vms: length, moves: length, refusal: null };
    });
    return [...drains, ...this.#further(new Set(best.hosts))];
  }

  /** Sets of one host more, until none is found; then sets of as many with fewer VMs. */
  #most(known: readonly number[]): EmptiedSet | null {
    const draft = this.#draft;
    const received = new Set(draft.moves.map((move) => move.to));
    const hosts = this.#order
      .filter((h) => !received.has(h) && this.count(h) <= draft.budget && this.#undrainable(h, draft.budget) === null)
      .map((h) => emptiable(draft, h, item(this.#vms, h)));
    const room = this.#roomOfAll();
    const work: Work = { left: SETS_WORK };
    let best = known.length === 0 ? null : this.#emptied(known, work);
    for (let done = false; !done && work.left > 0; ) {
      const size = (best?.hosts.length ?? 0) + 1;
      const more = this.#firstOf(candidates(hosts, best?.hosts ?? [], { size, most: draft.budget, room, work }), work);
      if (more === null) done = true;
      else best = more;
    }
    if (best === null) return null;
    const fewer = { size: best.hosts.length, most: best.moves.length - 1, room, work: { left: FEWER_WORK } };
    return this.#firstOf(setsOf(hosts, fewer), fewer.work) ?? best;
  }

  #firstOf(sets: Iterable<readonly number[]>, work: Work): EmptiedSet | null {
    for (const hosts of sets) {
      const found = this.#emptied(hosts, work);
      if (found !== null) return found;
      if (work.left <= 0) return null;
    }
    return null;
  }

  /** Moves that empty all these hosts; null when none were found. */
  #emptied(hosts: readonly number[], work: Work): EmptiedSet | null {
    const draft = this.#draft;
    const vms = this.#largestFirst(hosts.flatMap((host) => item(this.#vms, host)));
    if (vms.length > draft.budget) return null;
    for (const host of hosts) this.#open[host] = 0;
    const before = draft.evaluated;
    const moves = this.#byFullest(vms) ?? this.#exactly(vms, Math.min(SET_WORK, work.left));
    work.left -= draft.evaluated - before + draft.cluster.V / VMS_PER_CHECK;
    const legal = moves !== null && this.#leavesRoom(moves);
    for (const host of hosts) this.#open[host] = int(draft.cluster.hostRefusal, host) === 0 ? 1 : 0;
    return legal ? { hosts, moves } : null;
  }

  /** Each VM to the fullest open host that takes it; null when that fails. */
  #byFullest(vms: readonly number[]): EmptiedSet['moves'] | null {
    const mark = this.#draft.moves.length;
    const refusal = this.#empty(vms);
    const moves = this.#draft.moves.slice(mark);
    this.#rollback(mark);
    return refusal === null ? moves : null;
  }

  #exactly(vms: readonly number[], work: number): EmptiedSet['moves'] | null {
    const open = Array.from({ length: this.#draft.cluster.H }, (_, h) => h).filter((h) => this.#open[h] === 1);
    const found = place(this.#draft, {
      vms,
      hosts: new Map(vms.map((vm) => [vm, open])),
      residents: false,
      thresholds: false,
      stranded: 1,
      filledBelow: true,
      work,
    });
    return found?.moves ?? null;
  }

  /** True when the open hosts have room for failures after the moves. */
  #leavesRoom(moves: EmptiedSet['moves']): boolean {
    const draft = this.#draft;
    const mark = draft.moves.length;
    for (const { vm, to } of moves) draft.apply(vm, to, { phase: 'pack', why: 'drains-host' });
    const obstacle = this.#headroomObstacle();
    draft.rollback(mark);
    return obstacle === null;
  }

  /** The room of the open hosts together, as {@link roomOn} gives it for one. */
  #roomOfAll(): Float64Array {
    const { cluster } = this.#draft;
    const sum = new Float64Array(cluster.R + cluster.P);
    for (let h = 0; h < cluster.H; h++)
      if (this.#open[h] === 1)
        for (const [i, amount] of roomOn(this.#draft, h).entries()) sum[i] = float(sum, i) + amount;
    return sum;
  }

  #reset(): void {
    const { cluster, fullness } = this.#draft;
    for (let h = 0; h < cluster.H; h++) {
      this.#open[h] = cluster.hostRefusal[h] === 0 && int(this.#onHost, h) > 0 ? 1 : 0;
      this.#full[h] = combinedValue(cluster, fullness, h);
    }
  }

  #rollback(mark: number): void {
    const touched = this.#draft.moves.slice(mark);
    this.#draft.rollback(mark);
    for (const { from, to } of touched) this.#refill(from, to);
  }

  #refill(...hosts: readonly number[]): void {
    for (const h of hosts) this.#full[h] = combinedValue(this.#draft.cluster, this.#draft.fullness, h);
  }

  /** The reason that a host cannot be drained even if the other hosts take all they can. */
  #undrainable(host: number, budget: number): ReasonCode | null {
    const vms = item(this.#vms, host);
    if (vms.length !== this.#onHost[host] || vms.some((vm) => !this.#draft.movable(vm))) return 'drain-unmovable';
    const reach = budget + (this.#options.packReachCycles - 1) * this.#fullBudget;
    return vms.length > reach ? 'drain-out-of-reach' : null;
  }

  /** Moves all the VMs without regard to the budget. Returns the reason when no host takes a VM. */
  #empty(vms: readonly number[]): ReasonCode | null {
    for (const vm of vms) {
      const to = this.#fullest(vm, this.#open, NO_REPAIR);
      if (to < 0) return 'no-destination';
      const from = int(this.#draft.place, vm);
      this.#draft.apply(vm, to, { phase: 'pack', why: 'drains-host' });
      this.#refill(from, to);
    }
    return null;
  }

  /** The fullest open host that takes the VM; -1 when none does. */
  #fullest(vm: number, open: Uint8Array, repairs: number): number {
    const { cluster } = this.#draft;
    let best = -1;
    let bestValue = Number.NEGATIVE_INFINITY;
    for (let h = 0; h < cluster.H; h++) {
      if (open[h] !== 1 || float(this.#full, h) <= bestValue || !this.#takes(vm, h, repairs)) continue;
      best = h;
      bestValue = float(this.#full, h);
    }
    return best;
  }

  #takes(vm: number, host: number, repairs: number): boolean {
    const { cluster, fullness, place, refusals } = this.#draft;
    if (place[vm] === host) return false;
    this.#draft.evaluated++;
    let refusal = this.#checker.refusal(vm, host, repairs);
    if (refusal === 0 && !staysBelow(cluster, fullness, vm, host)) refusal = codeNumber['capacity-threshold'];
    if (refusal !== 0) refusals.add(refusal);
    return refusal === 0;
  }

  /** Whether the VMs of hosts that fail would fit on the other open hosts, below the thresholds; also VMs that cannot be moved. */
  #headroomObstacle(): ReasonCode | null {
    const count = this.#options.packHeadroomHosts;
    if (count === 0) return null;
    const { cluster, fullness } = this.#draft;
    const open: number[] = [];
    for (let h = 0; h < cluster.H; h++) if (this.#open[h] === 1) open.push(h);
    const full = Float64Array.from({ length: cluster.H }, (_, h) => combinedValue(cluster, fullness, h));
    const largest = open.toSorted((a, b) => float(full, b) - float(full, a) || a - b);
    const state = loadedState(this.#draft);
    for (const host of largest) {
      const lost = new Set([host, ...largest.filter((other) => other !== host).slice(0, count - 1)]);
      if (findRefuge(state, evacueesOf(state, lost, open), { limit: HEADROOM_CHECKS }).stranded.length > 0)
        return 'drain-headroom';
    }
    return null;
  }
}

/** The state in which hosts may fail: every policy's capacity value must stay below its threshold. */
function loadedState({ cluster, place, room, fullness: now }: Draft): FailureState {
  const fullness = Float64Array.from(now);
  const { P, policies, size, load, vmKind, hostSource, sources } = cluster;
  const hard = { ...byHardRules(cluster), vmKey: keysAt(vmKind, hostSource, sources, place) };
  return {
    cluster: hard,
    place: Int32Array.from(place),
    room: new Room(hard, { departuresFree: false }, room),
    load: {
      policies: P,
      amount: (vm, p) => float(load, vm * P + p),
      left: (host, p) =>
        (item(policies, p).capacityThreshold - float(fullness, host * P + p)) * float(size, host * P + p),
      takes: (vm, host) => staysBelow(cluster, fullness, vm, host),
      add: sharesIn(cluster, fullness),
    },
  };
}

function combinedValue(cluster: Cluster, values: Float64Array, host: number): number {
  let sum = 0;
  for (let p = 0; p < cluster.P; p++) sum += item(cluster.policies, p).weight * float(values, host * cluster.P + p);
  return sum;
}

function combinedWeight(cluster: Cluster, vm: number): number {
  let sum = 0;
  for (let p = 0; p < cluster.P; p++)
    sum += item(cluster.policies, p).weight * float(cluster.weight, vm * cluster.P + p);
  return sum;
}
