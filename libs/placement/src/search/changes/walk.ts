import { float, int, item } from '../../base/array.ts';
import type { Random } from '../../base/random.ts';
import { shareOn } from '../../cluster/cluster.ts';
import { Checker, type Room } from '../../cluster/constraints.ts';
import type { Extremes } from '../../cluster/extremes.ts';
import { shift } from '../../cluster/measure.ts';
import { breachesOf } from '../../cluster/softRules.ts';
import { codeNumber, type RefusalCounts } from '../../reasons.ts';
import { costOfChange, type Field } from '../problem/field.ts';

/** The most VMs that one proposal moves, and the most hosts that it touches. */
const VMS = 3;
const HOSTS = 2 * VMS;

// The kinds of changes.
/** A VM moves to any host, or home. */
const MOVE = 0;
/** A VM exchanges hosts with one that is away. */
const SWAP_AWAY = 1;
/** A VM of the host leaves it. */
const LEAVE = 2;
/** Any VM comes to the host. */
const COME = 3;
/** A VM that came goes home, and another from the same home comes instead. */
const COME_NEAR_INSTEAD = 4;
/** A VM that came goes home, and any other comes instead. */
const COME_INSTEAD = 5;
/** A VM that left returns, and another of the host leaves instead. */
const LEAVE_INSTEAD = 6;
/** A VM of the host exchanges hosts with any. */
const SWAP = 7;

/**
 * The placement that the local search changes: the VMs that are away from home, and their hosts. The search builds a proposal with
 * {@link add}, judges it, and applies it with {@link commit}.
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

  /** The VMs of the current proposal, with their sources and destinations. */
  readonly vms = new Int32Array(VMS);
  readonly from = new Int32Array(VMS);
  readonly to = new Int32Array(VMS);
  size = 0;
  /** The hosts of the proposal and their values after it, as the last call of {@link work} left them. */
  readonly touched = new Int32Array(HOSTS);
  readonly value: Float64Array;
  touchedCount = 0;

  /** The subject of the next changes: their kind, their first VM and the host that they are about. */
  #kind = MOVE;
  #first = -1;
  #host = -1;

  readonly #savedVms: Int32Array;
  readonly #savedHosts: Int32Array;
  #saved = 0;

  readonly #room: Room;
  readonly #checker: Checker;
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
    this.#checker = new Checker(this.place, room);
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
  }

  /** Adds a VM's change of host to the proposal; no VM may be added twice. */
  add(vm: number, to: number): void {
    const k = this.size++;
    this.vms[k] = vm;
    this.from[k] = int(this.place, vm);
    this.to[k] = to;
  }

  /** Computes {@link touched}, and {@link value}: the values of these hosts after the proposal. */
  work(): void {
    const { P, cluster } = this.field;
    const { value } = this;
    this.touchedCount = 0;
    for (let k = 0; k < this.size; k++) {
      const vm = int(this.vms, k);
      const a = int(this.from, k);
      const b = int(this.to, k);
      const i = this.#touch(a) * P;
      const j = this.#touch(b) * P;
      for (let p = 0; p < P; p++) {
        value[i + p] = float(value, i + p) - shareOn(cluster, vm, a, p);
        value[j + p] = float(value, j + p) + shareOn(cluster, vm, b, p);
      }
    }
  }

  /** Is the proposal legal? Refusals are counted. */
  isLegal(): boolean {
    if (!this.#enter()) return false;
    this.#withdraw(this.size);
    return true;
  }

  /** Carries the proposal out. False, and nothing is changed, when it is not legal. */
  commit(): boolean {
    if (!this.#enter()) return false;
    for (let i = 0; i < this.size; i++) this.#settle(int(this.vms, i), int(this.from, i), int(this.to, i));
    return true;
  }

  /** Takes the VMs to their destinations, in `place` and in the room. False, and nothing is changed, when one may not go. */
  #enter(): boolean {
    const { home } = this.field;
    const place = this.place;
    const room = this.#room;
    const n = this.size;
    for (let i = 0; i < n; i++) {
      const v = int(this.vms, i);
      this.#leaveRoom(v, int(this.from, i));
      place[v] = -1;
    }
    for (let i = 0; i < n; i++) {
      const v = int(this.vms, i);
      const b = int(this.to, i);
      let refusal: number;
      if (b === home[v]) refusal = room.departuresFree && !room.holds(v, b) ? codeNumber.capacity : 0;
      else refusal = this.#checker.refusal(v, b);
      if (refusal !== 0) {
        this.#refusals.add(refusal);
        if (refusal === codeNumber.capacity || refusal === codeNumber['anti-affinity']) this.tight = true;
        this.#withdraw(i);
        return false;
      }
      this.#enterRoom(v, b);
      place[v] = b;
    }
    return true;
  }

  /** Takes the VMs back, of which the first `entered` are at their destinations. */
  #withdraw(entered: number): void {
    const n = this.size;
    for (let i = 0; i < n; i++) this.place[int(this.vms, i)] = int(this.from, i);
    for (let i = 0; i < entered; i++) this.#leaveRoom(int(this.vms, i), int(this.to, i));
    for (let i = 0; i < n; i++) this.#enterRoom(int(this.vms, i), int(this.from, i));
  }

  /** Increase of the number of VMs away from home after the proposal. */
  growth(): number {
    const { home } = this.field;
    let sum = 0;
    for (let i = 0; i < this.size; i++) {
      const v = int(this.vms, i);
      if (this.place[v] === home[v]) sum++;
      if (int(this.to, i) === home[v]) sum--;
    }
    return sum;
  }

  /** Cost of the VMs away from home after the proposal. */
  costAfter(): number {
    const { field } = this;
    let sum = this.cost;
    for (let i = 0; i < this.size; i++) {
      const v = int(this.vms, i);
      sum += costOfChange(field, v, int(this.place, v), int(this.to, i));
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
    for (let i = 0; i < n; i++) this.place[int(this.vms, i)] = int(this.to, i);
    act();
    for (let i = 0; i < n; i++) this.place[int(this.vms, i)] = int(this.from, i);
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

  /** Chooses the subject of an arbitrary change. False when there is none. */
  aimAny(random: Random): boolean {
    const { vmsOf } = this.field;
    const { count, away } = this;
    const kind = random.below(8);
    const v = kind < 3 && count > 0 ? away[random.below(count)] : vmsOf[random.below(vmsOf.length)];
    if (v === undefined) return false;
    this.#kind = kind === 7 && count > 0 ? SWAP_AWAY : MOVE;
    this.#first = v;
    this.#host = int(this.place, v);
    return true;
  }

  /**
   * Chooses the subject of a change that involves host `a`: the move of one VM makes it lighter (`down`) or heavier. False when there is
   * none.
   */
  aimAt(random: Random, a: number, down: boolean): boolean {
    const { count, budget } = this;
    this.#host = a;
    const kind = random.below(8);
    if (kind < 1) {
      this.#kind = down ? LEAVE : COME;
      if (down) this.#first = random.below(2) === 0 ? any(random, item(this.#arrivals, a)) : this.#native(random, a);
      return !down || this.#first >= 0;
    }
    if (kind < 4) {
      this.#kind = kind === 1 ? COME_NEAR_INSTEAD : kind === 2 ? COME_INSTEAD : LEAVE_INSTEAD;
      this.#first = any(random, item(kind < 3 ? this.#arrivals : this.#departures, a));
      return this.#first >= 0;
    }
    this.#kind = SWAP;
    // With a full budget only VMs that are away are drawn; the changes above replace one by another.
    this.#first =
      count >= budget || random.below(3) > 0 ? any(random, item(this.#arrivals, a)) : this.#native(random, a);
    return this.#first >= 0;
  }

  /** Proposes that a VM that is at home on host `a` goes to `b`. False when the draw gives none. */
  drawBetween(random: Random, a: number, b: number): boolean {
    this.size = 0;
    const v = this.#native(random, a);
    if (v < 0 || a === b || this.count >= this.budget) return false;
    this.add(v, b);
    return true;
  }

  /** Proposes that a VM that is away goes home, and that one or two others of its home take its place. False when the draw gives none. */
  drawInstead(random: Random, others: 0 | 1 | 2): boolean {
    const { home } = this.field;
    this.size = 0;
    if (this.count === 0) return false;
    const v = int(this.away, random.below(this.count));
    const [a, b] = [int(home, v), int(this.place, v)];
    const u = others > 0 ? this.#native(random, a) : -1;
    const w = others > 1 ? this.#native(random, a) : -1;
    if ((others > 0 && u < 0) || (others > 1 && (w < 0 || w === u))) return false;
    this.add(v, a);
    if (u >= 0) this.add(u, b);
    if (w >= 0) this.add(w, b);
    return this.count + this.growth() <= this.budget;
  }

  /** Proposes that a VM of one home takes the places of two others of it. False when the draw gives none. */
  drawForTwo(random: Random): boolean {
    const { home } = this.field;
    this.size = 0;
    if (this.count < 2) return false;
    const v = int(this.away, random.below(this.count));
    const a = int(home, v);
    const u = any(random, item(this.#departures, a));
    const w = this.#native(random, a);
    if (u < 0 || u === v || w < 0) return false;
    this.add(v, a);
    this.add(u, a);
    this.add(w, int(this.from, random.below(2)));
    return true;
  }

  /** Draws a change of the subject that was chosen last, any number of times. False when the draw gives none. */
  draw(random: Random): boolean {
    const { home, destinationsNear } = this.field;
    const { count, away, place, budget } = this;
    const v = this.#first;
    const a = this.#host;
    this.size = 0;
    switch (this.#kind) {
      case MOVE: {
        const isHome = a === home[v];
        let b = !isHome && random.below(4) === 0 ? int(home, v) : anyHost(random, item(destinationsNear, a));
        if (b < 0) return false;
        if (!isHome || count === 0 || (count < budget && random.below(4) > 0)) {
          if (b === a || (isHome && count >= budget)) return false;
          this.add(v, b);
          return true;
        }
        const u = int(away, random.below(count));
        // Half of the time the added VM takes the place of the VM that goes home.
        if (random.below(2) === 0) b = int(place, u);
        if (b === a) return false;
        this.add(v, b);
        this.add(u, int(home, u));
        return true;
      }
      case SWAP_AWAY: {
        const u = int(away, random.below(count));
        return u !== v && this.#exchange(v, u);
      }
      case LEAVE: {
        const isHome = place[v] === home[v];
        const b = !isHome && random.below(6) === 0 ? int(home, v) : anyHost(random, item(destinationsNear, a));
        return b >= 0 && b !== a && this.#paid(random, v, b);
      }
      case COME: {
        const { H } = this.field;
        let w: number;
        if (random.below(2) === 0) w = count > 0 ? int(away, random.below(count)) : -1;
        else w = random.below(3) === 0 ? any(random, item(this.#departures, a)) : this.#native(random, random.below(H));
        return w >= 0 && place[w] !== a && this.#paid(random, w, a);
      }
      case COME_NEAR_INSTEAD:
      case COME_INSTEAD: {
        // Another VM comes instead of one that came: of the same home, or of any.
        const w = this.#native(random, this.#kind === COME_INSTEAD ? random.below(this.field.H) : int(home, v));
        if (w < 0 || place[w] === a) return false;
        this.add(v, int(home, v));
        this.add(w, a);
        return true;
      }
      case LEAVE_INSTEAD: {
        // Another VM of this host leaves instead of one that left.
        const w = this.#native(random, a);
        if (w < 0) return false;
        this.add(w, int(place, v));
        this.add(v, a);
        return true;
      }
      default: {
        let u: number;
        if (count >= budget || random.below(3) > 0) u = count > 0 ? int(away, random.below(count)) : -1;
        else {
          const b = anyHost(random, item(destinationsNear, a));
          u = b < 0 ? -1 : this.#native(random, b);
        }
        return u >= 0 && u !== v && this.#exchange(v, u);
      }
    }
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
    const a = int(this.place, v);
    this.#leaveRoom(v, a);
    this.#enterRoom(v, h);
    this.place[v] = h;
    this.#settle(v, a, h);
  }

  /** Position of a host among {@link touched}, with its present values where it is new there. */
  #touch(h: number): number {
    const { P } = this.field;
    const n = this.touchedCount;
    for (let i = 0; i < n; i++) if (this.touched[i] === h) return i;
    this.touched[n] = h;
    for (let p = 0; p < P; p++) this.value[n * P + p] = float(this.score, h * P + p);
    this.touchedCount = n + 1;
    return n;
  }

  #leaveRoom(v: number, h: number): void {
    if (h !== this.field.home[v] || this.#room.departuresFree) this.#room.depart(v, h);
  }

  #enterRoom(v: number, h: number): void {
    if (h !== this.field.home[v] || this.#room.departuresFree) this.#room.arrive(v, h);
  }

  /** Notes that a VM went from `a` to `b`. */
  #settle(v: number, a: number, b: number): void {
    const { cluster, home, lax } = this.field;
    const h = int(home, v);
    this.cost += costOfChange(this.field, v, a, b);
    shift(cluster, this.score, v, a, b);
    if (a === h) item(this.#departures, h).push(v);
    else drop(item(this.#arrivals, a), v);
    if (b === h) drop(item(this.#departures, h), v);
    else item(this.#arrivals, b).push(v);
    for (let g = 0; g < lax.length; g++) {
      const group = item(lax, g);
      if (group.members.includes(v)) this.#breaches[g] = breachesOf(cluster, group, this.place);
    }
    const at = int(this.#awayAt, v);
    if (b === h && at >= 0) {
      this.count--;
      const last = int(this.away, this.count);
      this.away[at] = last;
      this.#awayAt[last] = at;
      this.#awayAt[v] = -1;
    } else if (b !== h && at < 0) {
      this.#awayAt[v] = this.count;
      this.away[this.count++] = v;
    }
  }
}

/** Draws a proposal: half of them change a policy's highest or lowest host. False when the draw gives none. */
export function propose(walk: Walk, extremes: Extremes, random: Random): boolean {
  return (random.below(2) === 1 ? walk.aimAny(random) : aimAtEnd(walk, extremes, random)) && walk.draw(random);
}

function aimAtEnd(walk: Walk, extremes: Extremes, random: Random): boolean {
  const p = random.below(walk.field.P);
  const down = random.below(2) === 0;
  const extreme = down ? extremes.highest(p) : extremes.lowest(p);
  return extreme >= 0 && walk.aimAt(random, extreme, down);
}

/** Any VM of a list; -1 when it has none. */
const any = (random: Random, list: readonly number[]): number => list[random.below(list.length)] ?? -1;

/** Any host of a list; -1 when it has none. */
const anyHost = (random: Random, list: Int32Array): number => list[random.below(list.length)] ?? -1;

function drop(list: number[], v: number): void {
  const last = list.pop() as number;
  if (last !== v) list[list.indexOf(v)] = last;
}
