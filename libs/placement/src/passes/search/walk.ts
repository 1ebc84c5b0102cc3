import { float, int, item } from '../../base/array.ts';
import type { Random } from '../../base/random.ts';
import { shareOn } from '../../cluster/cluster.ts';
import { check, type Room } from '../../cluster/constraints.ts';
import type { Extremes } from '../../cluster/extremes.ts';
import { shift } from '../../cluster/measure.ts';
import { breachesOf } from '../../cluster/softRules.ts';
import { codeNumber, type RefusalCounts } from '../../reasons.ts';
import type { Field } from './field.ts';

/** The most VMs that one proposal moves, and the most hosts that it touches. */
const VMS = 2;
export const HOSTS = 2 * VMS;

/**
 * The placement that the local search changes: the VMs that are away from home, and their hosts. The search builds a proposal with
 * {@link add}, judges it by the values that it leads to ({@link touched}, {@link value}), and applies it with {@link commit} if it
 * {@link isLegal}.
 */
export class Walk {
  readonly field: Field;
  readonly place: Int32Array;
  readonly score: Float64Array;
  /** The most VMs that a proposal may leave away from home; the caller may change it. */
  budget: number;
  /** The first `count` are the VMs away from home. */
  readonly away: Int32Array;
  count = 0;
  /** Cost of moving these, in GiB. */
  cost = 0;
  /** By lax group of the field: how many VMs break it. */
  readonly #breaches: Int32Array;

  /** The hosts of the current proposal and their values after it. */
  readonly touched = new Int32Array(HOSTS);
  readonly value: Float64Array;
  touchedCount = 0;
  /** The VMs of the current proposal, with the positions of source and destination among `touched`. */
  readonly vms = new Int32Array(VMS);
  readonly leaves = new Int32Array(VMS);
  readonly arrives = new Int32Array(VMS);
  size = 0;
  readonly #was = new Int32Array(VMS);

  readonly #savedVms: Int32Array;
  readonly #savedHosts: Int32Array;
  #saved = 0;

  readonly #room: Room;
  readonly #refusals: RefusalCounts;
  /** Some proposal was refused for lack of room that departures would create. */
  tight = false;
  readonly #awayAt: Int32Array;
  readonly #arrivals: number[][];
  readonly #departures: number[][];

  /** @param room the room at the start of the pass; its `departuresFree` says whether departures free room. */
  constructor(field: Field, start: Int32Array, room: Room, budget: number, refusals: RefusalCounts) {
    const { H, V, P } = field;
    this.field = field;
    this.budget = budget;
    this.place = Int32Array.from(field.home);
    this.score = Float64Array.from(field.score);
    this.away = new Int32Array(V);
    this.#savedVms = new Int32Array(V);
    this.#savedHosts = new Int32Array(V);
    this.value = new Float64Array(HOSTS * P);
    this.#room = room;
    this.#refusals = refusals;
    this.#awayAt = new Int32Array(V).fill(-1);
    this.#arrivals = Array.from({ length: H }, () => []);
    this.#departures = Array.from({ length: H }, () => []);
    this.#breaches = Int32Array.from(field.lax, (group) => breachesOf(field.cluster, group, field.home));
    for (let v = 0; v < V; v++) {
      const b = int(start, v);
      if (b === field.home[v]) continue;
      this.#put(v, b);
    }
  }

  /** Starts a new proposal. */
  reset(): void {
    this.size = 0;
    this.touchedCount = 0;
  }

  /** Adds a VM's change of host to the proposal; no VM may be added twice. */
  add(vm: number, to: number): void {
    const k = this.size++;
    this.vms[k] = vm;
    this.leaves[k] = this.#touch(int(this.place, vm));
    this.arrives[k] = this.#touch(to);
  }

  /** Computes {@link value}: the values of the touched hosts after the proposal. */
  work(): void {
    const { P, cluster } = this.field;
    const { value, touched } = this;
    for (let i = 0; i < this.touchedCount; i++)
      for (let p = 0; p < P; p++) value[i * P + p] = float(this.score, int(touched, i) * P + p);
    for (let k = 0; k < this.size; k++) {
      const vm = int(this.vms, k);
      const i = int(this.leaves, k);
      const j = int(this.arrives, k);
      if (cluster.alike) {
        for (let p = 0; p < P; p++) {
          const l = float(cluster.load, vm * P + p);
          value[i * P + p] = float(value, i * P + p) - l;
          value[j * P + p] = float(value, j * P + p) + l;
        }
      } else
        for (let p = 0; p < P; p++) {
          value[i * P + p] = float(value, i * P + p) - shareOn(cluster, vm, int(touched, i), p);
          value[j * P + p] = float(value, j * P + p) + shareOn(cluster, vm, int(touched, j), p);
        }
    }
  }

  /** Is the proposal legal? Refusals are counted. */
  isLegal(): boolean {
    const { cluster, home } = this.field;
    const place = this.place;
    const room = this.#room;
    const n = this.size;
    for (let i = 0; i < n; i++) {
      const v = int(this.vms, i);
      this.#was[i] = int(place, v);
      this.#leaveRoom(v, int(place, v));
      place[v] = -1;
    }
    let done = 0;
    for (; done < n; done++) {
      const v = int(this.vms, done);
      const b = this.#to(done);
      let refusal: number;
      if (b === home[v]) refusal = room.departuresFree && !room.holds(v, b) ? codeNumber.capacity : 0;
      else refusal = check(cluster, place, room, v, b);
      if (refusal !== 0) {
        this.#refusals.add(refusal);
        if (refusal === codeNumber.capacity || refusal === codeNumber['anti-affinity']) this.tight = true;
        break;
      }
      this.#enterRoom(v, b);
      place[v] = b;
    }
    for (let i = 0; i < n; i++) place[int(this.vms, i)] = int(this.#was, i);
    for (let i = 0; i < done; i++) this.#leaveRoom(int(this.vms, i), this.#to(i));
    for (let i = 0; i < n; i++) this.#enterRoom(int(this.vms, i), int(this.#was, i));
    return done === n;
  }

  /** Carries the proposal out; it must be legal. */
  commit(): void {
    const n = this.size;
    for (let i = 0; i < n; i++) this.#put(int(this.vms, i), this.#to(i));
  }

  /** Increase of the number of VMs away from home after the proposal. */
  growth(): number {
    const { home } = this.field;
    let sum = 0;
    for (let i = 0; i < this.size; i++) {
      const v = int(this.vms, i);
      if (this.place[v] === home[v]) sum++;
      if (this.#to(i) === home[v]) sum--;
    }
    return sum;
  }

  /** Cost of the VMs away from home after the proposal. */
  costAfter(): number {
    const { home, costs } = this.field;
    let sum = this.cost;
    for (let i = 0; i < this.size; i++) {
      const v = int(this.vms, i);
      if (int(this.place, v) === int(home, v)) sum += float(costs, v);
      if (this.#to(i) === int(home, v)) sum -= float(costs, v);
    }
    return sum;
  }

  /** The number of VMs that would break soft groups after the proposal. */
  breachesAfter(): number {
    const { cluster, lax } = this.field;
    let sum = 0;
    for (const n of this.#breaches) sum += n;
    if (this.size === 0) return sum;
    this.#tentatively(() => {
      lax.forEach((group, g) => {
        if (this.#concerns(group.members)) sum += breachesOf(cluster, group, this.place) - int(this.#breaches, g);
      });
    });
    return sum;
  }

  /** Is any of these VMs in the proposal? */
  #concerns(members: readonly number[]): boolean {
    for (let i = 0; i < this.size; i++) if (members.includes(int(this.vms, i))) return true;
    return false;
  }

  /** Calls a function while every VM is where the proposal puts it. */
  #tentatively(act: () => void): void {
    const n = this.size;
    for (let i = 0; i < n; i++) {
      this.#was[i] = int(this.place, int(this.vms, i));
      this.place[int(this.vms, i)] = this.#to(i);
    }
    act();
    for (let i = 0; i < n; i++) this.place[int(this.vms, i)] = int(this.#was, i);
  }

  /** Saves the placement for {@link goBack}. */
  save(): void {
    this.#saved = this.count;
    for (let i = 0; i < this.count; i++) {
      const v = int(this.away, i);
      this.#savedVms[i] = v;
      this.#savedHosts[i] = int(this.place, v);
    }
  }

  /** Restores the placement that was saved last. */
  goBack(): void {
    const { home } = this.field;
    for (const v of this.away.slice(0, this.count)) this.#put(v, int(home, v));
    for (let i = 0; i < this.#saved; i++) this.#put(int(this.#savedVms, i), int(this.#savedHosts, i));
  }

  /** Draws an arbitrary change. False when the draw gives none. */
  drawAny(random: Random): boolean {
    const { home, vmsOf, destinationsNear } = this.field;
    const { count, away, place, budget } = this;
    this.reset();
    const kind = random.below(8);
    const v = kind < 3 && count > 0 ? away[random.below(count)] : vmsOf[random.below(vmsOf.length)];
    if (v === undefined) return false;
    const a = int(place, v);
    if (kind === 7 && count > 0) {
      const u = int(away, random.below(count));
      return u !== v && this.#exchange(v, u);
    }
    let b: number;
    if (a !== home[v] && random.below(4) === 0) b = int(home, v);
    else b = any(random, item(destinationsNear, a));
    if (b < 0) return false;
    if (a === home[v] && count > 0 && (count >= budget || random.below(4) === 0)) {
      const u = int(away, random.below(count));
      // Half of the time the added VM takes the place of the VM that goes home.
      if (random.below(2) === 0) b = int(place, u);
      if (b === a) return false;
      this.add(v, b);
      this.add(u, int(home, u));
      return true;
    }
    if (b === a || (a === home[v] && count >= budget)) return false;
    this.add(v, b);
    return true;
  }

  /** Draws a change that involves host `a`: the move of one VM makes it lighter (`down`) or heavier. False when the draw gives none. */
  drawAt(random: Random, a: number, down: boolean): boolean {
    const { H, home, destinationsNear } = this.field;
    const near = item(destinationsNear, a);
    const { count, away, place } = this;
    this.reset();
    const arrived = item(this.#arrivals, a);
    const departed = item(this.#departures, a);
    const full = count >= this.budget;
    const kind = random.below(8);
    if (kind < 1) {
      // One VM leaves or comes.
      let v: number;
      let b = a;
      if (down) {
        v = random.below(2) === 0 ? any(random, arrived) : this.#native(random, a);
        b = any(random, near);
        if (v >= 0 && place[v] !== home[v] && random.below(6) === 0) b = int(home, v);
      } else if (random.below(2) === 0) v = count > 0 ? int(away, random.below(count)) : -1;
      else v = random.below(3) === 0 ? any(random, departed) : this.#native(random, random.below(H));
      if (v < 0 || b < 0 || place[v] === b) return false;
      return this.#paid(random, v, b);
    }
    if (kind < 3) {
      // Another VM comes instead of one that came: of the same home, or of any.
      const u = any(random, arrived);
      if (u < 0) return false;
      const w = this.#native(random, kind === 1 ? int(home, u) : random.below(H));
      if (w < 0 || place[w] === a) return false;
      this.add(u, int(home, u));
      this.add(w, a);
      return true;
    }
    if (kind < 4) {
      // Another VM of this host leaves instead of one that left.
      const u = any(random, departed);
      const w = this.#native(random, a);
      if (u < 0 || w < 0) return false;
      this.add(w, int(place, u));
      this.add(u, a);
      return true;
    }
    // Two VMs exchange their hosts. With a full budget only VMs that are away are drawn; the changes above replace one by another.
    const v = full || random.below(3) > 0 ? any(random, arrived) : this.#native(random, a);
    if (v < 0) return false;
    let u: number;
    if (full || random.below(3) > 0) u = count > 0 ? int(away, random.below(count)) : -1;
    else u = near.length === 0 ? -1 : this.#native(random, any(random, near));
    return u >= 0 && u !== v && this.#exchange(v, u);
  }

  /** Adds a move; if the budget is used, also sends another VM home. */
  #paid(random: Random, v: number, b: number): boolean {
    this.add(v, b);
    if (this.place[v] !== this.field.home[v] || this.count < this.budget) return true;
    if (this.count === 0) return false;
    const u = int(this.away, random.below(this.count));
    this.add(u, int(this.field.home, u));
    return true;
  }

  /** Two VMs exchange their hosts, if the budget allows. */
  #exchange(v: number, u: number): boolean {
    const a = int(this.place, v);
    const b = int(this.place, u);
    if (a === b) return false;
    this.add(v, b);
    this.add(u, a);
    return this.count + this.growth() <= this.budget;
  }

  /** A VM at home on its own host; -1 when the draw hit one that is away. */
  #native(random: Random, h: number): number {
    const { start, vmsOf } = this.field;
    const from = int(start, h);
    const n = int(start, h + 1) - from;
    if (n === 0) return -1;
    const v = int(vmsOf, from + random.below(n));
    return this.place[v] === h ? v : -1;
  }

  #put(v: number, h: number): void {
    this.#leaveRoom(v, int(this.place, v));
    this.#settle(v, h);
    this.#enterRoom(v, h);
  }

  #touch(h: number): number {
    const n = this.touchedCount;
    for (let i = 0; i < n; i++) if (this.touched[i] === h) return i;
    this.touched[n] = h;
    this.touchedCount = n + 1;
    return n;
  }

  /** Destination of the k-th VM of the proposal. */
  #to(k: number): number {
    return int(this.touched, int(this.arrives, k));
  }

  #leaveRoom(v: number, h: number): void {
    if (h !== this.field.home[v] || this.#room.departuresFree) this.#room.depart(v, h);
  }

  #enterRoom(v: number, h: number): void {
    if (h !== this.field.home[v] || this.#room.departuresFree) this.#room.arrive(v, h);
  }

  #settle(v: number, b: number): void {
    const { cluster, home, costs, lax } = this.field;
    const a = int(this.place, v);
    const h = int(home, v);
    shift(cluster, this.score, v, a, b);
    if (a === h) item(this.#departures, h).push(v);
    else drop(item(this.#arrivals, a), v);
    if (b === h) drop(item(this.#departures, h), v);
    else item(this.#arrivals, b).push(v);
    this.place[v] = b;
    lax.forEach((group, g) => {
      if (group.members.includes(v)) this.#breaches[g] = breachesOf(cluster, group, this.place);
    });
    const at = int(this.#awayAt, v);
    if (b === h && at >= 0) {
      this.count--;
      const last = int(this.away, this.count);
      this.away[at] = last;
      this.#awayAt[last] = at;
      this.#awayAt[v] = -1;
      this.cost -= float(costs, v);
    } else if (b !== h && at < 0) {
      this.#awayAt[v] = this.count;
      this.away[this.count++] = v;
      this.cost += float(costs, v);
    }
  }
}

/** Draws a proposal: half of them change a policy's highest or lowest host. False when the draw gives none. */
export function propose(walk: Walk, extremes: Extremes, random: Random): boolean {
  if (random.below(2) === 1) return walk.drawAny(random);
  const p = random.below(walk.field.P);
  const down = random.below(2) === 0;
  const extreme = down ? extremes.highest(p) : extremes.lowest(p);
  return extreme >= 0 && walk.drawAt(random, extreme, down);
}

/** Any element of a list; -1 when it has none. */
const any = (random: Random, list: ArrayLike<number>): number => list[random.below(list.length)] ?? -1;

function drop(list: number[], v: number): void {
  const last = list.pop() as number;
  if (last !== v) list[list.indexOf(v)] = last;
}
