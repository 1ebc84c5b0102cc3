/** The state of a search for room: the VMs that have moved so far, and the slots that are asked of each host. */
import { float, int, item } from '../base/array.ts';
import { type Cluster, destinationsOf } from '../cluster/cluster.ts';
import { Checker, Room } from '../cluster/constraints.ts';
import type { ShapeSlots } from './slots.ts';

export type RoomStep = { readonly vm: number; readonly from: number; readonly to: number };

/** A number of further slots on a host, and the fewest VMs that must leave it for them. */
export type Gain = { readonly host: number; readonly more: number; readonly least: number };

/** The amounts on each host while VMs move, with what is asked of it. */
export class Flow {
  readonly #cluster: Cluster;
  readonly #slots: ShapeSlots;
  readonly #checker: Checker;
  readonly #place: Int32Array;
  readonly #room: Room;
  readonly destinations: readonly number[];
  /** By host: the VMs that may leave it, the largest first. */
  readonly #movable: readonly (readonly number[])[];
  /** Place of each VM in that list. */
  readonly #rank: Int32Array;
  /** Rank of the last VM that left each host: later ones have a higher rank, so that no set of VMs is tried in two orders. */
  readonly #last: Int32Array;
  /** Slots that are asked of each host. */
  readonly #wanted: Int32Array;
  /** The fewest VMs that must still leave each host; infinite when no VMs are enough. */
  readonly #needs: Float64Array;
  readonly steps: RoomStep[] = [];
  /** Slots that are asked for beyond those that there are at the start. */
  asked = 0;

  constructor(cluster: Cluster, slots: ShapeSlots) {
    const { H, V, R } = cluster;
    this.#cluster = cluster;
    this.#slots = slots;
    this.#place = Int32Array.from(cluster.vmHost);
    this.#room = new Room(cluster, { departuresFree: true });
    this.#checker = new Checker(this.#place, this.#room);
    this.destinations = [...destinationsOf(cluster)];
    const size = (vm: number): number => {
      let most = 0;
      for (let r = 0; r < R; r++)
        if (float(slots.amounts, r) > 0)
          most = Math.max(most, float(cluster.demand, vm * R + r) / float(slots.amounts, r));
      return most;
    };
    const movable = Array.from({ length: V }, (_, vm) => vm).filter(
      (vm) => int(cluster.vmRefusal, vm) === 0 && int(cluster.evacuationOnly, vm) === 0,
    );
    const by = Map.groupBy(movable, (vm) => int(cluster.vmHost, vm));
    this.#movable = Array.from({ length: H }, (_, h) =>
      (by.get(h) ?? []).sort(
        (a, b) => size(b) - size(a) || float(cluster.copyGib, a) - float(cluster.copyGib, b) || a - b,
      ),
    );
    this.#rank = new Int32Array(V).fill(-1);
    for (const vms of this.#movable) for (const [rank, vm] of vms.entries()) this.#rank[vm] = rank;
    this.#last = new Int32Array(H).fill(-1);
    this.#wanted = new Int32Array(H);
    this.#needs = new Float64Array(H);
    this.reset();
  }

  /** Takes all back: each host has the VMs that it has, and is asked for the slots that it has. */
  reset(): void {
    for (const { vm, from, to } of this.steps.toReversed()) {
      this.#room.undo(vm, from, to);
      this.#place[vm] = from;
    }
    this.steps.length = 0;
    this.#last.fill(-1);
    this.asked = 0;
    for (let h = 0; h < this.#cluster.H; h++) {
      this.#wanted[h] = this.#slots.on(h, this.#room);
      this.#needs[h] = 0;
    }
  }

  /** Asks of each host for the slots that it has now. */
  askWhatIs(): void {
    for (let h = 0; h < this.#cluster.H; h++) {
      const before = int(this.#wanted, h);
      this.#wanted[h] = this.#slots.on(h, this.#room);
      this.asked += int(this.#wanted, h) - before;
      this.#needs[h] = this.#least(h);
    }
  }

  ask(host: number, more: number): void {
    this.#wanted[host] = int(this.#wanted, host) + more;
    this.asked += more;
    this.#needs[host] = this.#least(host);
  }

  /** Further slots of each host up to a number of them, those for which the fewest VMs must leave first. */
  gains(most: number): Gain[] {
    const found: Gain[] = [];
    for (let host = 0; host < this.#cluster.H; host++) {
      const limit = Math.min(most, this.#slots.most(host) - int(this.#wanted, host));
      for (let more = 1; more <= limit; more++) {
        this.#wanted[host] = int(this.#wanted, host) + more;
        const least = this.#least(host);
        this.#wanted[host] = int(this.#wanted, host) - more;
        if (!Number.isFinite(least)) break;
        found.push({ host, more, least });
      }
    }
    const first = new Map<number, number>();
    for (const { host, least } of found) if (!first.has(host)) first.set(host, least);
    return found.sort(
      (a, b) => (first.get(a.host) ?? 0) - (first.get(b.host) ?? 0) || a.host - b.host || a.more - b.more,
    );
  }

  /** Slots that are asked of all hosts together. */
  get today(): number {
    return this.#wanted.reduce((sum, slots) => sum + slots, 0);
  }

  /** Hosts that are asked for slots: one slot of theirs could be given up. */
  get spare(): readonly number[] {
    return [...this.#wanted.keys()].filter((host) => int(this.#wanted, host) > 0);
  }

  /** The fewest VMs that must still leave all hosts together. */
  get leastMoves(): number {
    let sum = 0;
    for (const need of this.#needs) sum += need;
    return sum;
  }

  /** The host that most VMs must leave; -1: none. */
  neediest(): number {
    let best = -1;
    for (let h = 0; h < this.#cluster.H; h++)
      if (float(this.#needs, h) > (best < 0 ? 0 : float(this.#needs, best))) best = h;
    return best;
  }

  /** VMs that may leave a host; of VMs that are alike, one. */
  mayLeave(host: number): readonly number[] {
    const { R, demand, vmKey, vmGroups } = this.#cluster;
    const seen = new Set<string>();
    return item(this.#movable, host).filter((vm) => {
      if (int(this.#rank, vm) <= int(this.#last, host) || this.#place[vm] !== host) return false;
      if ((vmGroups[vm] ?? []).length > 0) return true;
      const key = `${int(vmKey, vm)} ${demand.subarray(vm * R, (vm + 1) * R).join()}`;
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    });
  }

  /** Whether the host may ever take the VM: by its own rules, and by members of an anti-affinity group that stay on it. */
  lawful(vm: number, to: number): boolean {
    const { groups, vmGroups, vmHost } = this.#cluster;
    if (this.#checker.rule(vm, to) !== 0) return false;
    return (vmGroups[vm] ?? []).every((g) => {
      const group = item(groups, g);
      if (!group.strict || group.affine) return true;
      const stay = group.members.filter(
        (other) => this.#place[other] === to && (int(this.#rank, other) < 0 || int(vmHost, other) !== to),
      );
      return stay.length < group.max;
    });
  }

  /** The fewest moves left after a move, and how little room it leaves on its destination. */
  preview(vm: number, to: number): { readonly least: number; readonly gap: number } {
    const from = int(this.#place, vm);
    const least = this.leastMoves - float(this.#needs, from) - float(this.#needs, to);
    const last = int(this.#last, from);
    this.#shift(vm, from, to);
    const after = least + this.#least(from) + this.#least(to);
    const gap = this.#gap(to);
    this.#shift(vm, to, from);
    this.#last[from] = last;
    return { least: after, gap };
  }

  /** @returns the rank of the last VM that left before */
  apply(vm: number, to: number): number {
    const from = int(this.#place, vm);
    const last = int(this.#last, from);
    this.#shift(vm, from, to);
    this.#needs[from] = this.#least(from);
    this.#needs[to] = this.#least(to);
    this.steps.push({ vm, from, to });
    return last;
  }

  undo(vm: number, to: number, last: number): void {
    const from = int(this.#cluster.vmHost, vm);
    this.#shift(vm, to, from);
    this.#last[from] = last;
    this.#needs[from] = this.#least(from);
    this.#needs[to] = this.#least(to);
    this.steps.pop();
  }

  #shift(vm: number, from: number, to: number): void {
    if (from === int(this.#cluster.vmHost, vm)) {
      this.#room.move(vm, from, to);
      this.#last[from] = int(this.#rank, vm);
    } else this.#room.undo(vm, to, from);
    this.#place[vm] = to;
  }

  #gap(host: number): number {
    const { R } = this.#cluster;
    let gap = 0;
    for (let r = 0; r < R; r++) {
      const amount = float(this.#slots.amounts, r);
      if (amount > 0) gap += Math.max(0, float(this.#room.free, host * R + r) / amount - int(this.#wanted, host));
    }
    return gap;
  }

  /** The fewest VMs that must leave the host for what is asked of it; infinite when all are not enough. */
  #least(host: number): number {
    const { R, demand } = this.#cluster;
    let most = 0;
    for (let r = 0; r < R; r++) {
      let missing = int(this.#wanted, host) * float(this.#slots.amounts, r) - float(this.#room.free, host * R + r);
      if (missing <= 0) continue;
      const own = float(this.#cluster.free, host * R + r);
      // VMs claim more of it than it has: a host that is asked for nothing need not repair that.
      if (int(this.#wanted, host) === 0 && own < 0 && missing <= -own) continue;
      const amounts: number[] = [];
      for (const vm of item(this.#movable, host))
        if (int(this.#rank, vm) > int(this.#last, host) && this.#place[vm] === host)
          amounts.push(float(demand, vm * R + r));
      amounts.sort((a, b) => b - a);
      let count = 0;
      while (missing > 0 && count < amounts.length) missing -= item(amounts, count++);
      if (missing > 0) return Number.POSITIVE_INFINITY;
      most = Math.max(most, count);
    }
    return most;
  }
}
