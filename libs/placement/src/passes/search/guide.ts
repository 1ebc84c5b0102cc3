import { shareOn } from '../../cluster.ts';
import { check, type Room } from '../../constraints.ts';
import { EPSILON } from '../../measure.ts';
import { codeNumber, type RefusalCounts } from '../../reasons.ts';
import type { Field } from './field.ts';
import { Ranges } from './ranges.ts';
import { Tournament } from './tree.ts';

/**
 * A smooth stand-in for the imbalance: per policy and host `distance ^ power` to the band `[low, high]`, plus a little of
 * the squared distance to the band's middle, so that ties inside the band are broken towards evenness.
 */
export type GuideShape = {
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly power: 2 | 4 | 8;
  readonly slope: number;
};

export type Trail = {
  /** Moves in the order in which they were found; none moves a VM twice. */
  readonly vms: number[];
  readonly hosts: number[];
  /** Length of the best prefix by the real measure. */
  best: number;
  evaluated: number;
  /** Some destination was refused for want of room that departures would make. */
  tight: boolean;
};

/** What a prefix reaches, in the order of aims. */
type Reached = { within: boolean; length: number; ram: number; combined: number };

/**
 * Makes the best single move by the guide again and again, up to the budget, and marks the prefix that is best by the
 * real measure. Each source host keeps its best move; a kept move whose destination has got fuller since is worked out
 * anew only when it comes first, as it can only have become worse. Only destinations that no other one beats in
 * every policy need to be looked at, unless these refuse the VM. It stops early at the work limit.
 */
export function followGuide(
  field: Field,
  shape: GuideShape,
  budget: number,
  workLimit: number,
  refusals: RefusalCounts,
): Trail {
  return new Guide(field, shape, refusals).run(budget, workLimit);
}

const NONE = -1;
const CLOSED = -2;
const FRONT = -3;

class Guide {
  readonly #field: Field;
  readonly #shape: GuideShape;
  readonly #refusals: RefusalCounts;
  #tight = false;
  readonly #middle: Float64Array;
  readonly #score: Float64Array;
  readonly #cost: Float64Array;
  readonly #place: Int32Array;
  readonly #room: Room;
  readonly #list: Int32Array;
  readonly #end: Int32Array;
  /** Front host that dominates each host, or one of the constants above. */
  readonly #dominator: Int32Array;
  readonly #fronts: number[][];
  /** For each VM key the host classes it may go to. */
  readonly #classesOf: number[][];
  readonly #ideal: Float64Array;
  readonly #best: Tournament;
  readonly #bestVm: Int32Array;
  readonly #bestTo: Int32Array;
  readonly #seen: Int32Array;
  readonly #version: Int32Array;
  readonly #smallest: Float64Array;
  #evaluated = 0;
  #to = NONE;
  #delta = 0;

  constructor(field: Field, shape: GuideShape, refusals: RefusalCounts) {
    const { cluster, H, V, P } = field;
    this.#field = field;
    this.#shape = shape;
    this.#refusals = refusals;
    this.#middle = shape.low.map((low, p) => (low + (shape.high[p] as number)) / 2);
    this.#score = Float64Array.from(field.score);
    this.#cost = new Float64Array(H);
    this.#place = Int32Array.from(field.home);
    this.#room = field.room.copy(false);
    this.#list = Int32Array.from(field.vmsOf);
    this.#end = Int32Array.from({ length: H }, (_, h) => field.start[h + 1] as number);
    this.#dominator = new Int32Array(H).fill(CLOSED);
    this.#fronts = Array.from({ length: cluster.classes }, () => []);
    const keys = cluster.classes === 0 ? 0 : cluster.keyLegal.length / cluster.classes;
    this.#classesOf = Array.from({ length: keys }, (_, k) => {
      const legal: number[] = [];
      for (let c = 0; c < cluster.classes; c++) if (cluster.keyLegal[k * cluster.classes + c] === 0) legal.push(c);
      return legal;
    });
    this.#ideal = new Float64Array(P);
    this.#best = new Tournament(H);
    this.#bestVm = new Int32Array(H).fill(NONE);
    this.#bestTo = new Int32Array(H).fill(NONE);
    this.#seen = new Int32Array(H);
    this.#version = new Int32Array(H);
    this.#smallest = new Float64Array(cluster.R).fill(Number.POSITIVE_INFINITY);
    for (let v = 0; v < V; v++)
      if (field.movable[v] === 1)
        for (let r = 0; r < cluster.R; r++)
          this.#smallest[r] = Math.min(this.#smallest[r] as number, cluster.demand[v * cluster.R + r] as number);
    for (let h = 0; h < H; h++) this.#cost[h] = this.#costOf(h);
    for (const h of field.destinations) if (this.#hasRoom(h)) this.#enter(h);
    this.#findIdeal();
  }

  run(budget: number, workLimit: number): Trail {
    const { H } = this.#field;
    const best = this.#best;
    for (let h = 0; h < H; h++) {
      this.#evaluate(h);
      best.put(h, this.#delta);
    }
    best.rebuild();
    const trail: Trail = { vms: [], hosts: [], best: 0, evaluated: 0, tight: false };
    const ranges = new Ranges(this.#field, this.#score);
    let ram = 0;
    let reached: Reached = { within: ranges.within(), length: 0, ram: 0, combined: ranges.combined() };
    while (trail.vms.length < budget && !reached.within && this.#evaluated < workLimit) {
      const a = best.top();
      if (!(best.topKey() > 1e-13)) break;
      const to = this.#bestTo[a] as number;
      if (this.#seen[a] !== this.#version[to]) {
        this.#evaluate(a);
        best.set(a, this.#delta);
        continue;
      }
      const vm = this.#bestVm[a] as number;
      this.#move(vm, a, to);
      ranges.update(this.#score, a, to);
      trail.vms.push(vm);
      trail.hosts.push(to);
      ram += this.#field.cluster.ramMb[vm] as number;
      const now: Reached = { within: ranges.within(), length: trail.vms.length, ram, combined: ranges.combined() };
      if (ranges.acceptable() && (now.within || now.combined < reached.combined - EPSILON)) {
        reached = now;
        trail.best = now.length;
      }
    }
    trail.evaluated = this.#evaluated;
    trail.tight = this.#tight;
    return trail;
  }

  #move(vm: number, a: number, b: number): void {
    const { P, cluster, start } = this.#field;
    for (let p = 0; p < P; p++) {
      this.#score[a * P + p] = (this.#score[a * P + p] as number) - shareOn(cluster, vm, a, p);
      this.#score[b * P + p] = (this.#score[b * P + p] as number) + shareOn(cluster, vm, b, p);
    }
    this.#room.move(vm, a, b);
    this.#place[vm] = b;
    const list = this.#list;
    const from = start[a] as number;
    const end = (this.#end[a] as number) - 1;
    let i = from;
    while (list[i] !== vm) i++;
    list[i] = list[end] as number;
    this.#end[a] = end;
    this.#cost[a] = this.#costOf(a);
    this.#cost[b] = this.#costOf(b);
    this.#version[b] = (this.#version[b] as number) + 1;
    this.#leave(b);
    const open = this.#dominator[a] !== CLOSED && this.#rise(a);
    this.#findIdeal();
    this.#evaluate(a);
    this.#best.set(a, this.#delta);
    this.#evaluate(b);
    this.#best.set(b, this.#delta);
    if (open) this.#offer(a);
  }

  /** A host that has got better is a destination that nobody has looked at yet. */
  #offer(b: number): void {
    const { H, start } = this.#field;
    const list = this.#list;
    for (let a = 0; a < H; a++) {
      if (a === b) continue;
      let best = this.#best.key(a);
      const end = this.#end[a] as number;
      this.#evaluated += end - (start[a] as number);
      let found = NONE;
      for (let i = start[a] as number; i < end; i++) {
        const vm = list[i] as number;
        const delta = -this.#leaving(vm, a) - this.#arriving(vm, b);
        if (delta > best && this.#legal(vm, b)) {
          best = delta;
          found = vm;
        }
      }
      if (found !== NONE) {
        this.#bestVm[a] = found;
        this.#bestTo[a] = b;
        this.#seen[a] = this.#version[b] as number;
        this.#best.set(a, best);
      }
    }
  }

  /** Finds the host's best move: its gain is left in `#delta`, the move in `#bestVm` and `#bestTo`. */
  #evaluate(a: number): void {
    const { P, start, cluster } = this.#field;
    const list = this.#list;
    const end = this.#end[a] as number;
    let best = 0;
    let bestVm = NONE;
    let bestTo = NONE;
    for (let i = start[a] as number; i < end; i++) {
      const vm = list[i] as number;
      const leaving = this.#leaving(vm, a);
      if (cluster.alike) {
        let least = leaving;
        for (let p = 0; p < P; p++) {
          const s = this.#ideal[p] as number;
          least += this.#at(p, s + (cluster.load[vm * P + p] as number)) - this.#at(p, s);
        }
        if (-least <= best) continue;
      }
      this.#destination(vm);
      if (this.#to !== NONE && -leaving - this.#delta > best) {
        best = -leaving - this.#delta;
        bestVm = vm;
        bestTo = this.#to;
      }
    }
    this.#bestVm[a] = bestVm;
    this.#bestTo[a] = bestTo;
    this.#seen[a] = bestTo === NONE ? 0 : (this.#version[bestTo] as number);
    this.#delta = bestVm === NONE ? Number.NEGATIVE_INFINITY : best;
  }

  /** Finds the VM's best destination, left in `#to`, and what it adds to the guide there, in `#delta`. */
  #destination(vm: number): void {
    const { cluster, destinations } = this.#field;
    const place = this.#place;
    const own = place[vm] as number;
    const classes = this.#classesOf[cluster.vmKey[vm] as number] as number[];
    let to = NONE;
    let delta = Number.POSITIVE_INFINITY;
    for (const c of classes) {
      const front = this.#fronts[c] as number[];
      for (let i = 0; i < front.length; i++) {
        const b = front[i] as number;
        if (b === own) continue;
        const d = this.#arriving(vm, b);
        if (d < delta) {
          delta = d;
          to = b;
        }
      }
      this.#evaluated += front.length;
    }
    if (to === NONE || !this.#legal(vm, to)) {
      to = NONE;
      delta = Number.POSITIVE_INFINITY;
      for (let i = 0; i < destinations.length; i++) {
        const b = destinations[i] as number;
        if (b === own) continue;
        const d = this.#arriving(vm, b);
        if (d < delta && this.#legal(vm, b)) {
          delta = d;
          to = b;
        }
      }
      this.#evaluated += destinations.length;
    }
    this.#to = to;
    this.#delta = delta;
  }

  #legal(vm: number, b: number): boolean {
    const refusal = check(this.#field.cluster, this.#place, this.#room, vm, b);
    if (refusal === 0) return true;
    this.#refusals.add(refusal);
    if (refusal === codeNumber.capacity || refusal === codeNumber['anti-affinity']) this.#tight = true;
    return false;
  }

  /** Change of the guide on the source when the VM leaves. */
  #leaving(vm: number, a: number): number {
    const { P, cluster } = this.#field;
    if (cluster.counted[a] !== 1) return 0;
    let sum = -(this.#cost[a] as number);
    for (let p = 0; p < P; p++) sum += this.#at(p, (this.#score[a * P + p] as number) - shareOn(cluster, vm, a, p));
    return sum;
  }

  /** Change of the guide on a destination when the VM arrives. */
  #arriving(vm: number, b: number): number {
    const { P, cluster } = this.#field;
    let sum = -(this.#cost[b] as number);
    for (let p = 0; p < P; p++) sum += this.#at(p, (this.#score[b * P + p] as number) + shareOn(cluster, vm, b, p));
    return sum;
  }

  #costOf(h: number): number {
    const { P, cluster } = this.#field;
    if (cluster.counted[h] !== 1) return 0;
    let sum = 0;
    for (let p = 0; p < P; p++) sum += this.#at(p, this.#score[h * P + p] as number);
    return sum;
  }

  /** The guide of one policy at a value. */
  #at(p: number, value: number): number {
    const { low, high, power, slope } = this.#shape;
    const l = low[p] as number;
    const h = high[p] as number;
    let e = value > h ? value - h : value < l ? l - value : 0;
    e *= e;
    if (power > 2) {
      e *= e;
      if (power > 4) e *= e;
    }
    const d = value - (this.#middle[p] as number);
    return (this.#field.weights[p] as number) * (e + slope * d * d);
  }

  #hasRoom(h: number): boolean {
    const { R } = this.#field.cluster;
    for (let r = 0; r < R; r++)
      if ((this.#room.free[h * R + r] as number) < (this.#smallest[r] as number)) return false;
    return true;
  }

  /** True when host `a` is at most as full as `b` in every policy (ties: the lower index), and no smaller. */
  #dominates(a: number, b: number): boolean {
    const { P, cluster } = this.#field;
    let equal = true;
    for (let p = 0; p < P; p++) {
      const x = this.#score[a * P + p] as number;
      const y = this.#score[b * P + p] as number;
      if (x > y) return false;
      if (x < y) equal = false;
      if (!cluster.alike && (cluster.size[a * P + p] as number) < (cluster.size[b * P + p] as number)) return false;
    }
    return !equal || a < b;
  }

  /** Puts an open host on its class's front, or under the host that dominates it. */
  #enter(h: number): boolean {
    const front = this.#fronts[this.#field.cluster.hostClass[h] as number] as number[];
    for (let i = 0; i < front.length; i++)
      if (this.#dominates(front[i] as number, h)) {
        this.#dominator[h] = front[i] as number;
        return false;
      }
    let kept = 0;
    for (let i = 0; i < front.length; i++) {
      const other = front[i] as number;
      if (this.#dominates(h, other)) this.#dominator[other] = h;
      else front[kept++] = other;
    }
    front.length = kept;
    front.push(h);
    this.#dominator[h] = FRONT;
    return true;
  }

  /** A host has got fuller: it may fall off the front, and those that it dominated may rise. */
  #leave(b: number): void {
    const { cluster, destinations } = this.#field;
    const c = cluster.hostClass[b] as number;
    const front = this.#fronts[c] as number[];
    const at = front.indexOf(b);
    if (at < 0) {
      if (!this.#hasRoom(b)) this.#dominator[b] = CLOSED;
      return;
    }
    front.splice(at, 1);
    const open = this.#hasRoom(b);
    this.#dominator[b] = CLOSED;
    if (open) this.#enter(b);
    for (let i = 0; i < destinations.length; i++) {
      const h = destinations[i] as number;
      if (this.#dominator[h] !== b) continue;
      if (open && this.#dominator[b] === FRONT && this.#dominates(b, h)) continue;
      this.#enter(h);
    }
  }

  /** A host has got emptier: true when it is on the front now. */
  #rise(a: number): boolean {
    if (this.#dominator[a] === FRONT) {
      const c = this.#field.cluster.hostClass[a] as number;
      const front = this.#fronts[c] as number[];
      front.splice(front.indexOf(a), 1);
    } else {
      const above = this.#dominator[a] as number;
      if (above >= 0 && this.#dominator[above] === FRONT && this.#dominates(above, a)) return false;
    }
    return this.#enter(a);
  }

  #findIdeal(): void {
    const { P } = this.#field;
    this.#ideal.fill(Number.POSITIVE_INFINITY);
    for (const front of this.#fronts)
      for (const h of front)
        for (let p = 0; p < P; p++) {
          const value = this.#score[h * P + p] as number;
          if (value < (this.#ideal[p] as number)) this.#ideal[p] = value;
        }
  }
}
