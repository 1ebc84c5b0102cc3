import { float, int, item } from '../base/array.ts';
import { destinationsOf, sharesIn, staysBelow } from '../cluster/cluster.ts';
import { Checker, NO_REPAIR, type Room } from '../cluster/constraints.ts';
import { imbalances, valuesAfter, worsened } from '../cluster/measure.ts';
import { breachGrowth } from '../cluster/softRules.ts';
import type { Draft, Move } from './draft.ts';
import { arrange } from './order.ts';

/** VMs that must move, and what may be done for them. */
export type WantedPlaces = {
  readonly vms: readonly number[];
  /** By VM: the only hosts that it may go to; all destinations where it is not named. */
  readonly hosts?: ReadonlyMap<number, readonly number[]>;
  /** Other VMs may move to make room. */
  readonly residents: boolean;
  /** At most this many of them. */
  readonly most?: number;
  /** No policy may end both worse than before and above its threshold. */
  readonly thresholds: boolean;
  /** Fewer than this many VMs may stay where they are. */
  readonly stranded: number;
  /** Soft groups that may be broken at a penalty must not be. */
  readonly strict?: boolean;
  /** Hosts are filled only below the capacity thresholds of the policies. */
  readonly filledBelow?: boolean;
  /** By VM: the group that gathers where it goes. Its rule does not hold for that VM. */
  readonly repairs?: ReadonlyMap<number, number>;
  /** Legality checks and moves tried in an order, at most. */
  readonly work?: number;
};

/** Moves in an order in which each is legal once the ones before it have ended. */
export type Placing = {
  readonly moves: readonly { readonly vm: number; readonly to: number; readonly wanted: boolean }[];
  /** VMs that stay, although they should move. */
  readonly stranded: number;
  readonly proven: boolean;
};

/** Legality checks and moves tried in an order: of all attempts together, and the part of one attempt, at least. */
const MOST_WORK = 2_000_000;
const MOST_OF_ONE = 400_000;
const SHARE_OF_ONE = 0.2;
/** Other VMs that move to make room, at most. */
const MOST_RESIDENTS = 8;

/**
 * Finds destinations for VMs that must move. It strands as few of them as it can; then it moves as few other VMs as it can. An exact
 * search with a limit: for each number of stranded VMs, the least first, it allows none, one, two and more other VMs to move. Null when
 * it finds nothing that strands fewer than `wanted.stranded`.
 *
 * @param draft the state before any of the VMs moves. It is left as it is.
 */
export function place(draft: Draft, wanted: WantedPlaces): Placing | null {
  if (wanted.vms.length === 0) return { moves: [], stranded: 0, proven: true };
  let work = 0;
  let proven = true;
  const all = wanted.work ?? MOST_WORK;
  for (let behind = 0; behind < wanted.stranded; behind++)
    for (
      let extra = 0;
      extra <= (wanted.residents ? Math.min(MOST_RESIDENTS, wanted.most ?? MOST_RESIDENTS) : 0);
      extra++
    ) {
      const limit = Math.min(Math.max(MOST_OF_ONE, SHARE_OF_ONE * all), all - work);
      const attempt = new Attempt(draft, wanted, limit);
      const found = attempt.run(behind, extra);
      work += attempt.work;
      draft.evaluated += attempt.work;
      if (found !== null) return { moves: found, stranded: behind, proven };
      if (attempt.work >= limit) proven = false;
      if (attempt.hopeless || work >= all) break;
    }
  return null;
}

/** Members of affinity groups move only to the other members: they never make room. */
const isAffine = ({ cluster }: Draft, vm: number): boolean =>
  (cluster.vmGroups[vm] ?? []).some((g) => cluster.groups[g]?.affine === true);

class Attempt {
  readonly #draft: Draft;
  readonly #wanted: WantedPlaces;
  readonly #limit: number;
  readonly #place: Int32Array;
  readonly #room: Room;
  readonly #checker: Checker;
  readonly #destinations: readonly number[];
  readonly #isWanted: Uint8Array;
  /** 1 for residents that make room. */
  readonly #out: Uint8Array;
  /** VMs that have no host now. */
  readonly #pending: number[];
  /** VMs that have a new host, in the order of their placing. */
  readonly #placed: number[] = [];
  /** The capacity values, where they limit what a host takes. */
  readonly #fullness: Float64Array | null;
  readonly #fill: ReturnType<typeof sharesIn> | null;
  /** By host: the VMs that could make room, largest first. */
  readonly #residents: number[][];
  /** By VM, once it was asked for; -1 before. */
  readonly #kindOfVm: Int32Array;
  readonly #kinds = new Map<string, number>();
  /** The amounts of the VMs that have no host now, of one resource. */
  readonly #amounts: Float64Array;
  work = 0;
  /** True when no number of other moves can help. */
  hopeless = false;

  constructor(draft: Draft, wanted: WantedPlaces, limit: number) {
    const { cluster } = draft;
    this.#draft = draft;
    this.#wanted = wanted;
    this.#limit = limit;
    this.#place = Int32Array.from(draft.place);
    this.#room = draft.room.copy(false);
    this.#checker = new Checker(this.#place, this.#room, { strict: wanted.strict === true });
    this.#fullness = wanted.filledBelow === true ? Float64Array.from(draft.fullness) : null;
    this.#fill = this.#fullness === null ? null : sharesIn(cluster, this.#fullness);
    this.#destinations = [...destinationsOf(cluster)];
    this.#isWanted = new Uint8Array(cluster.V);
    this.#out = new Uint8Array(cluster.V);
    for (const vm of wanted.vms) this.#isWanted[vm] = 1;
    this.#pending = [...wanted.vms];
    for (const vm of wanted.vms) this.#room.depart(vm, int(this.#place, vm));
    this.#kindOfVm = new Int32Array(cluster.V).fill(-1);
    this.#amounts = new Float64Array(cluster.V);
    this.#residents = Array.from({ length: cluster.H }, () => []);
    if (wanted.residents)
      for (let vm = 0; vm < cluster.V; vm++)
        if (this.#isWanted[vm] === 0 && draft.movable(vm) && !isAffine(draft, vm))
          this.#residents[int(this.#place, vm)]?.push(vm);
  }

  run(behind: number, extra: number): Placing['moves'] | null {
    if (!this.#fitsAtAll(behind, Number.POSITIVE_INFINITY)) {
      this.hopeless = true;
      return null;
    }
    return this.#next(behind, extra) ? this.#found : null;
  }

  #found: Placing['moves'] | null = null;

  #next(behind: number, extra: number): boolean {
    if (this.#pending.length === 0) return this.#accept();
    if (!this.#fitsAtAll(behind, extra)) return false;
    const picked = this.#pick(behind, extra);
    if (picked === null) return false;
    const { vm, hosts } = picked;
    this.#pending.splice(this.#pending.indexOf(vm), 1);
    const done =
      hosts.some((to) => this.#enter(vm, to, () => this.#next(behind, extra))) ||
      (extra > 0 && this.#push(vm, hosts, behind, extra)) ||
      (behind > 0 && this.#isWanted[vm] === 1 && this.#stay(vm, () => this.#next(behind - 1, extra)));
    this.#pending.push(vm);
    return done;
  }

  #spent(): boolean {
    return this.work >= this.#limit;
  }

  #enter(vm: number, to: number, then: () => boolean): boolean {
    if (this.#spent()) return false;
    const from = int(this.#place, vm);
    this.#room.arrive(vm, to);
    this.#place[vm] = to;
    this.#placed.push(vm);
    this.#fill?.(vm, to, 1);
    const done = then();
    this.#fill?.(vm, to, -1);
    this.#placed.pop();
    this.#place[vm] = from;
    this.#room.depart(vm, to);
    return done;
  }

  #stay(vm: number, then: () => boolean): boolean {
    const home = int(this.#place, vm);
    this.#room.arrive(vm, home);
    const done = then();
    this.#room.depart(vm, home);
    return done;
  }

  /** Moves other VMs off hosts that have no room for this VM. */
  #push(vm: number, open: readonly number[], behind: number, extra: number): boolean {
    for (const to of this.#allowed(vm)) {
      if (open.includes(to) || to === int(this.#place, vm)) continue;
      const residents = (this.#residents[to] ?? []).filter(
        (other) => this.#place[other] === to && this.#out[other] === 0,
      );
      const alike = this.#alike(residents);
      if (this.#pushFrom({ vm, to, residents, alike }, 0, [], { behind, extra })) return true;
      if (this.#spent()) return false;
    }
    return false;
  }

  /** Tries the sets of residents of a host, without those that a smaller set replaces. */
  #pushFrom(
    pushed: {
      readonly vm: number;
      readonly to: number;
      readonly residents: readonly number[];
      readonly alike: readonly number[];
    },
    from: number,
    out: number[],
    left: { readonly behind: number; readonly extra: number },
  ): boolean {
    const { vm, to, residents, alike } = pushed;
    const { behind, extra } = left;
    for (let i = from; i < residents.length; i++) {
      // One that replaces it was tried.
      if (item(alike, i) >= from) continue;
      const other = residents[i] ?? -1;
      this.#room.depart(other, to);
      this.#pending.push(other);
      this.#out[other] = 1;
      out.push(other);
      const fits = this.#fits(vm, to);
      const done = fits
        ? this.#isLeast(vm, to, out) && this.#enter(vm, to, () => this.#next(behind, extra - out.length))
        : out.length < extra && this.#pushFrom(pushed, i + 1, out, left);
      out.pop();
      this.#out[other] = 0;
      this.#pending.splice(this.#pending.lastIndexOf(other), 1);
      this.#room.arrive(other, to);
      if (done) return true;
      if (this.#spent()) return false;
    }
    return false;
  }

  /** True when the VM needs every one of these to leave. */
  #isLeast(vm: number, to: number, out: readonly number[]): boolean {
    return out.slice(0, -1).every((other) => {
      this.#room.arrive(other, to);
      const fits = this.#fits(vm, to);
      this.#room.depart(other, to);
      return !fits;
    });
  }

  #fits(vm: number, to: number): boolean {
    this.work++;
    if (this.#fullness !== null && !staysBelow(this.#draft.cluster, this.#fullness, vm, to)) return false;
    return this.#checker.refusal(vm, to, this.#wanted.repairs?.get(vm)) === 0;
  }

  /** VMs of one kind on one host replace each other: for each of these, the place of the last one of its kind before it; -1: there is none. */
  #alike(vms: readonly number[]): number[] {
    const last = new Map<number, number>();
    return vms.map((vm, i) => {
      const kind = this.#kindOf(vm);
      const before = last.get(kind) ?? -1;
      last.set(kind, i);
      return before;
    });
  }

  #kindOf(vm: number): number {
    const known = int(this.#kindOfVm, vm);
    if (known >= 0) return known;
    const { R, demand, vmGroups, vmKey, numa } = this.#draft.cluster;
    const cells = numa?.vms[vm]?.kind ?? '';
    const text = `${demand.subarray(vm * R, vm * R + R).join()} ${vmGroups[vm]?.join() ?? ''} ${int(vmKey, vm)} ${cells}`;
    const kind = this.#kinds.get(text) ?? this.#kinds.size;
    this.#kinds.set(text, kind);
    this.#kindOfVm[vm] = kind;
    return kind;
  }

  #allowed(vm: number): readonly number[] {
    return this.#wanted.hosts?.get(vm) ?? this.#destinations;
  }

  /** The VM with the fewest destinations, the largest among these; null when too many have none. */
  #pick(behind: number, extra: number): { readonly vm: number; readonly hosts: readonly number[] } | null {
    let best = -1;
    let fewest: readonly number[] = [];
    let without = behind + extra;
    for (const vm of this.#pending) {
      const hosts = this.#allowed(vm).filter((to) => this.#fits(vm, to));
      if (hosts.length === 0 && --without < 0) return null;
      const closer = best < 0 || hosts.length < fewest.length;
      if (!closer && (hosts.length > fewest.length || !this.#isLarger(vm, best))) continue;
      best = vm;
      fewest = hosts;
    }
    return { vm: best, hosts: this.#inOrder(best, fewest) };
  }

  /** Hosts on which the VM breaks no soft rule come first, then those with the least room left. Of hosts that are alike, only one. */
  #inOrder(vm: number, hosts: readonly number[]): number[] {
    const { cluster } = this.#draft;
    const { R, demand, P } = cluster;
    const seen = new Set<string>();
    const ranked: { host: number; left: number; breaches: number }[] = [];
    for (const host of hosts) {
      let left = 0;
      for (let r = 0; r < R; r++) {
        const amount = float(demand, vm * R + r);
        const free = float(this.#room.free, host * R + r);
        if (amount > 0 && Number.isFinite(free)) left = Math.max(left, (free - amount) / amount);
      }
      const alike = `${this.#room.free.subarray(host * R, host * R + R).join()} ${int(cluster.hostClass, host)}`;
      if (cluster.groups.length === 0 && P === 0 && cluster.numa === null && !this.#wanted.residents) {
        if (seen.has(alike)) continue;
        seen.add(alike);
      }
      ranked.push({ host, left, breaches: Math.max(0, breachGrowth(cluster, this.#place, vm, host)) });
    }
    return ranked.sort((a, b) => a.breaches - b.breaches || a.left - b.left || a.host - b.host).map(({ host }) => host);
  }

  #isLarger(vm: number, than: number): boolean {
    const { R, demand } = this.#draft.cluster;
    for (let r = 0; r < R; r++) {
      const difference = float(demand, vm * R + r) - float(demand, than * R + r);
      if (difference !== 0) return difference > 0;
    }
    return false;
  }

  /** False when the amounts alone show that too many VMs would have no host. */
  #fitsAtAll(behind: number, extra: number): boolean {
    const { R, demand } = this.#draft.cluster;
    for (let r = 0; r < R; r++) {
      const count = this.#pending.length;
      const amounts = this.#amounts.subarray(0, count);
      for (let i = 0; i < count; i++) amounts[i] = float(demand, item(this.#pending, i) * R + r);
      amounts.sort();
      let needed = 0;
      for (let i = 0; i < count - behind; i++) needed += float(amounts, i);
      if (needed === 0) continue;
      let least = 0;
      for (let i = 0; i < count && least <= 0; i++) least = float(amounts, i);
      let free = 0;
      for (const host of this.#destinations) {
        const left = float(this.#room.free, host * R + r);
        if (left >= (extra === 0 ? least : 0)) free += left;
      }
      if (needed > free) return false;
    }
    return true;
  }

  /** The whole must be legal in some order of the moves, and keep the thresholds where they count. */
  #accept(): boolean {
    const { cluster } = this.#draft;
    if (this.#wanted.thresholds && cluster.P > 0) {
      const before = imbalances(cluster, this.#draft.score);
      const after = imbalances(cluster, valuesAfter(cluster, this.#draft.score, this.#draft.place, this.#place));
      if (worsened(cluster, before, after)) return false;
    }
    const moves: Move[] = this.#placed
      .toSorted((a, b) => a - b)
      .map((vm) => ({
        vm,
        from: int(this.#draft.place, vm),
        to: int(this.#place, vm),
        phase: 'evacuate',
        parking: false,
        why: 'makes-room',
        repairs: this.#wanted.repairs?.get(vm) ?? NO_REPAIR,
      }));
    const { order, blocked, tried } = arrange(cluster, [...this.#draft.moves, ...moves]);
    if (blocked.length > 0) {
      // Each whole placement that no order makes legal costs a search for an order.
      this.work += tried;
      return false;
    }
    const first = this.#draft.moves.length;
    this.#found = order.flatMap((i) => {
      const move = moves[i - first];
      return move === undefined ? [] : [{ vm: move.vm, to: move.to, wanted: this.#isWanted[move.vm] === 1 }];
    });
    return true;
  }
}
