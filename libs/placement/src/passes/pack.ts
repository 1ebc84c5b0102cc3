import type { EngineOptions } from '@kronos/contracts';
import { float, int, item } from '../base/array.ts';
import { type Cluster, keysAt, shareOn } from '../cluster/cluster.ts';
import { Checker, NO_REPAIR, Room } from '../cluster/constraints.ts';
import type { Draft } from '../draft/draft.ts';
import { byHardRules, findRefuge, type Ground } from '../failover/refuge.ts';
import { codeNumber, type ReasonCode } from '../reasons.ts';

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

type PackOptions = Pick<EngineOptions, 'packHeadroomHosts' | 'packReachCycles' | 'planner'>;

/**
 * Imbalance planner in pack mode (First Fit Decreasing). Hosts are emptied one after the other, lowest combined score first:
 * their VMs, largest first, each go to the fullest host that is not drained and not empty and where every policy's
 * capacity value stays below its threshold. A drain starts only if all the VMs can leave within the remaining budget and
 * `packReachCycles - 1` further ones, and if the other hosts could still take the VMs of `packHeadroomHosts` hosts that fail: of each
 * host, together with the fullest others. Each drain is finished before the next one starts.
 *
 * `planner=search` also tries the hosts with the fewest VMs first, and it packs the VMs of all hosts that the budget can empty at once.
 * It takes the result that empties the most hosts; then the one that leaves the least work to the next cycles; then the one with the
 * fewest moved VMs; then the one with the least memory.
 */
export function pack(draft: Draft, fullBudget: number, options: PackOptions): Drain[] {
  const scores = Float64Array.from({ length: draft.cluster.H }, (_, h) => combinedValue(draft.cluster, draft.score, h));
  const byScore = new Packing(draft, fullBudget, options, scores);
  if (options.planner === 'greedy') return byScore.oneByOne();
  const counts = Float64Array.from({ length: draft.cluster.H }, (_, h) => byScore.count(h));
  const byCount = new Packing(draft, fullBudget, options, counts);
  const mark = draft.moves.length;
  let best: { way: () => Drain[]; result: readonly number[] } | null = null;
  let emptied = 0;
  for (const way of [() => byScore.oneByOne(), () => byCount.oneByOne(), () => byCount.atOnce(emptied)]) {
    const drains = way();
    const result = resultOf(draft, drains, mark);
    emptied = Math.max(emptied, -item(result, 0));
    if (best === null || isBelow(result, best.result)) best = { way, result };
    draft.rollback(mark);
  }
  return best?.way() ?? [];
}

/** The measures of drains; lower is better: hosts emptied (negative), VMs still to leave, moves, memory moved. */
function resultOf(draft: Draft, drains: readonly Drain[], mark: number): readonly number[] {
  let emptied = 0;
  let rest = 0;
  for (const drain of drains) {
    if (drain.refusal !== null) continue;
    if (drain.moves === drain.vms) emptied++;
    rest += drain.vms - drain.moves;
  }
  let ram = 0;
  for (const move of draft.moves.slice(mark)) ram += float(draft.cluster.ramMb, move.vm);
  return [-emptied, rest, draft.moves.length - mark, ram];
}

function isBelow(a: readonly number[], b: readonly number[]): boolean {
  for (const [i, x] of a.entries()) if (x !== b[i]) return x < item(b, i);
  return false;
}

class Packing {
  readonly #draft: Draft;
  readonly #fullBudget: number;
  readonly #options: PackOptions;
  readonly #checker: Checker;
  /** VMs that are on a host or count on it. */
  readonly #onHost: Int32Array;
  /** VMs of each host, largest combined weight first. */
  readonly #vms: number[][];
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
    this.#vms = Array.from({ length: H }, () => []);
    const weights = Float64Array.from({ length: V }, (_, v) => combinedWeight(cluster, v));
    for (let v = 0; v < V; v++) {
      const host = int(place, v);
      this.#vms[host]?.push(v);
      for (const h of [host, ...(cluster.alsoOn.get(v) ?? [])]) this.#onHost[h] = int(this.#onHost, h) + 1;
    }
    for (const vms of this.#vms) vms.sort((a, b) => float(weights, b) - float(weights, a) || a - b);
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

  /** Drains one host after the other, until the budget is used or no further host can be drained. */
  oneByOne(): Drain[] {
    this.#reset();
    const draft = this.#draft;
    const drains: Drain[] = [];
    const received = new Uint8Array(draft.cluster.H);
    for (const move of draft.moves) received[move.to] = 1;
    for (const host of this.#order) {
      if (draft.budget === 0) break;
      // No VM moves twice: a plan does not drain a host to which it moves VMs.
      if (received[host] === 1) continue;
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

  /** The most hosts of the drain order that can be emptied together, at least `least`; their VMs are packed largest first. */
  atOnce(least: number): Drain[] {
    const draft = this.#draft;
    const mark = draft.moves.length;
    const received = new Set(draft.moves.map((move) => move.to));
    const drainable = this.#order.filter((h) => !received.has(h) && this.#undrainable(h, draft.budget) === null);
    const sizes = this.#sizes();
    let best: { hosts: readonly number[]; to: ReadonlyMap<number, number> } | null = null;
    let vms = 0;
    for (let n = 1; n <= drainable.length; n++) {
      vms += item(this.#vms, item(drainable, n - 1)).length;
      if (vms > draft.budget) break;
      if (n < least) continue;
      const hosts = drainable.slice(0, n);
      const to = this.#packTogether(hosts, sizes);
      this.#rollback(mark);
      if (to === null) break;
      best = { hosts, to };
    }
    if (best === null) return [];
    const drains: Drain[] = [];
    for (const host of best.hosts) {
      const leaving = item(this.#vms, host);
      for (const vm of leaving) draft.apply(vm, best.to.get(vm) ?? host, 'pack', 'drains-host');
      drains.push({ host, vms: leaving.length, moves: leaving.length, refusal: null });
    }
    return drains;
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
      this.#draft.apply(vm, to, 'pack', 'drains-host');
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
    const ground = loadedGround(this.#draft);
    for (const host of largest) {
      const lost = new Set([host, ...largest.filter((other) => other !== host).slice(0, count - 1)]);
      if (findRefuge(ground, lost, open, { limit: HEADROOM_CHECKS }).stranded.length > 0) return 'drain-headroom';
    }
    return null;
  }

  /** Size of each VM relative to a host, in its scarcest resource. */
  #sizes(): Float64Array {
    const { cluster } = this.#draft;
    const { V, P, R, H } = cluster;
    const mean = new Float64Array(R);
    for (let r = 0; r < R; r++) {
      let count = 0;
      for (let h = 0; h < H; h++) {
        const capacity = float(cluster.capacity, h * R + r);
        if (!Number.isFinite(capacity)) continue;
        mean[r] = float(mean, r) + capacity;
        count++;
      }
      mean[r] = count > 0 ? float(mean, r) / count : Number.POSITIVE_INFINITY;
    }
    return Float64Array.from({ length: V }, (_, v) => {
      let size = 0;
      for (let r = 0; r < R; r++) size = Math.max(size, float(cluster.demand, v * R + r) / float(mean, r));
      for (let p = 0; p < P; p++) size = Math.max(size, float(cluster.load, v * P + p));
      return size;
    });
  }

  /** Empties all these hosts, largest VMs first, each to the host that it leaves the least room on; null if one does not fit. */
  #packTogether(hosts: readonly number[], sizes: Float64Array): ReadonlyMap<number, number> | null {
    this.#reset();
    const open = this.#open;
    for (const h of hosts) open[h] = 0;
    const vms = hosts.flatMap((h) => item(this.#vms, h));
    vms.sort((a, b) => float(sizes, b) - float(sizes, a) || a - b);
    const to = new Map<number, number>();
    const { cluster } = this.#draft;
    for (const vm of vms) {
      let best = -1;
      let bestRoom = Number.POSITIVE_INFINITY;
      for (let h = 0; h < cluster.H; h++) {
        if (open[h] !== 1) continue;
        const room = this.#roomAfter(vm, h);
        if (room < 0 || room >= bestRoom || !this.#takes(vm, h, NO_REPAIR)) continue;
        best = h;
        bestRoom = room;
      }
      if (best < 0) return null;
      this.#draft.apply(vm, best, 'pack', 'drains-host');
      to.set(vm, best);
    }
    return this.#headroomObstacle() === null ? to : null;
  }

  /** The least share of anything that is left on a host with the VM on it; below 0 when it does not fit. */
  #roomAfter(vm: number, host: number): number {
    const { cluster, fullness, room } = this.#draft;
    const { P, R } = cluster;
    let least = Number.POSITIVE_INFINITY;
    for (let r = 0; r < R; r++) {
      const capacity = float(cluster.capacity, host * R + r);
      if (!Number.isFinite(capacity) || capacity <= 0) continue;
      least = Math.min(least, (float(room.free, host * R + r) - float(cluster.demand, vm * R + r)) / capacity);
    }
    for (let p = 0; p < P; p++)
      least = Math.min(
        least,
        item(cluster.policies, p).capacityThreshold - float(fullness, host * P + p) - shareOn(cluster, vm, host, p),
      );
    return least;
  }
}

/** The state in which hosts may fail: every policy's capacity value must stay below its threshold. */
function loadedGround({ cluster, place, room, fullness: now }: Draft): Ground {
  const fullness = Float64Array.from(now);
  const { P, policies, size, load, vmKind, hostSource, sources } = cluster;
  const hard = { ...byHardRules(cluster), vmKey: keysAt(vmKind, hostSource, sources, place) };
  return {
    cluster: hard,
    place: Int32Array.from(place),
    room: new Room(hard, false, room),
    load: {
      policies: P,
      amount: (vm, p) => float(load, vm * P + p),
      left: (host, p) =>
        (item(policies, p).capacityThreshold - float(fullness, host * P + p)) * float(size, host * P + p),
      takes: (vm, host) => staysBelow(cluster, fullness, vm, host),
      add: (vm, host, sign) => {
        for (let p = 0; p < P; p++)
          fullness[host * P + p] = float(fullness, host * P + p) + sign * shareOn(cluster, vm, host, p);
      },
    },
  };
}

/** True when every policy's capacity value of the host stays below its threshold with the VM on it. */
export function staysBelow(cluster: Cluster, fullness: Float64Array, vm: number, host: number): boolean {
  for (let p = 0; p < cluster.P; p++) {
    const threshold = item(cluster.policies, p).capacityThreshold;
    if (!(float(fullness, host * cluster.P + p) + shareOn(cluster, vm, host, p) < threshold)) return false;
  }
  return true;
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
