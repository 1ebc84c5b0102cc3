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

/** Where the front refuses a VM, so many of the least loaded hosts are looked at, or more until one takes it. */
const FALLBACK = 64;

const NONE = -1;
const CLOSED = -2;
const FRONT = -3;

class Guide {
  readonly #field: Field;
  readonly #shape: GuideShape;
  readonly #refusals: RefusalCounts;
  #tight = false;
  readonly #middle: Float64Array;
  readonly #share: Float64Array;
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
  /** What the VM's leaving does to its source, as the source is now. */
  readonly #leave: Float64Array;
  /** What its arrival does to its best destination, as that was when last looked at: it can only have got worse. */
  readonly #arrive: Float64Array;
  readonly #vmTo: Int32Array;
  readonly #vmSeen: Int32Array;
  /** Destinations, least loaded first; where each is in that order, and the loads. */
  readonly #order: Int32Array;
  readonly #orderAt: Int32Array;
  readonly #loads: Float64Array;
  readonly #best: Tournament;
  readonly #bestVm: Int32Array;
  readonly #bestTo: Int32Array;
  readonly #seen: Int32Array;
  readonly #version: Int32Array;
  readonly #smallest: Float64Array;
  #evaluated = 0;
  #delta = 0;

  constructor(field: Field, shape: GuideShape, refusals: RefusalCounts) {
    const { cluster, H, V } = field;
    this.#field = field;
    this.#shape = shape;
    this.#refusals = refusals;
    this.#middle = shape.low.map((low, p) => (low + (shape.high[p] as number)) / 2);
    this.#share = new Float64Array(field.P);
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
    this.#loads = new Float64Array(H);
    for (let h = 0; h < H; h++) this.#loads[h] = this.#loadOf(h);
    const loads = this.#loads;
    this.#order = Int32Array.from(field.destinations).sort(
      (x, y) => (loads[x] as number) - (loads[y] as number) || x - y,
    );
    this.#orderAt = new Int32Array(H).fill(NONE);
    this.#order.forEach((h, i) => {
      this.#orderAt[h] = i;
    });
    this.#leave = new Float64Array(V);
    this.#arrive = new Float64Array(V).fill(Number.NEGATIVE_INFINITY);
    this.#vmTo = new Int32Array(V).fill(NONE);
    this.#vmSeen = new Int32Array(V);
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
    for (const h of field.destinations) if (this.#receives(h)) this.#enter(h);
    for (let h = 0; h < H; h++) this.#findLeaving(h);
  }

  run(budget: number, workLimit: number): Trail {
    const { H } = this.#field;
    const best = this.#best;
    for (const vm of this.#list) this.#destination(vm);
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
    this.#fill(b);
    const open = this.#field.cluster.hostRefusal[a] === 0 && this.#rise(a);
    this.#reorder(a);
    this.#reorder(b);
    this.#findLeaving(a);
    this.#findLeaving(b);
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
        const arriving = this.#arriving(vm, b);
        if (arriving >= (this.#arrive[vm] as number) || !this.#legal(vm, b)) continue;
        this.#arrive[vm] = arriving;
        this.#vmTo[vm] = b;
        this.#vmSeen[vm] = this.#version[b] as number;
        const gain = -(this.#leave[vm] as number) - arriving;
        if (gain <= best) continue;
        best = gain;
        found = vm;
      }
      if (found === NONE) continue;
      this.#bestVm[a] = found;
      this.#bestTo[a] = b;
      this.#seen[a] = this.#version[b] as number;
      this.#best.set(a, best);
    }
  }

  /** Finds the host's best move: its gain is left in `#delta`, the move in `#bestVm` and `#bestTo`. */
  #evaluate(a: number): void {
    const from = this.#field.start[a] as number;
    const end = this.#end[a] as number;
    const list = this.#list;
    const leave = this.#leave;
    const arrive = this.#arrive;
    for (;;) {
      // What a VM would gain with its kept destination is no less than what it gains now: the first that is up to date wins.
      let best = 0;
      let vm = NONE;
      for (let i = from; i < end; i++) {
        const v = list[i] as number;
        const gain = -(leave[v] as number) - (arrive[v] as number);
        if (gain > best) {
          best = gain;
          vm = v;
        }
      }
      const to = vm === NONE ? NONE : (this.#vmTo[vm] as number);
      if (vm !== NONE && (to === NONE || this.#vmSeen[vm] !== this.#version[to])) {
        this.#destination(vm);
        continue;
      }
      this.#bestVm[a] = vm;
      this.#bestTo[a] = to;
      this.#seen[a] = to === NONE ? 0 : (this.#version[to] as number);
      this.#delta = vm === NONE ? Number.NEGATIVE_INFINITY : best;
      return;
    }
  }

  /** Finds the VM's best destination, and what its arrival does there. */
  #destination(vm: number): void {
    const { cluster } = this.#field;
    const place = this.#place;
    const own = place[vm] as number;
    const classes = this.#classesOf[cluster.vmKey[vm] as number] as number[];
    let to = NONE;
    let delta = Number.POSITIVE_INFINITY;
    const { P, weights } = this.#field;
    const { low, high, power, slope } = this.#shape;
    const score = this.#score;
    const cost = this.#cost;
    const share = this.#share;
    const middle = this.#middle;
    for (let p = 0; p < P; p++) share[p] = cluster.load[vm * P + p] as number;
    for (const c of classes) {
      const front = this.#fronts[c] as number[];
      for (let i = 0; i < front.length; i++) {
        const b = front[i] as number;
        if (b === own) continue;
        let d = 0;
        if (cluster.alike) {
          // The same as #arriving, without its calls: this is where the time goes.
          d = -(cost[b] as number);
          for (let p = 0; p < P && d < delta; p++) {
            const x = (score[b * P + p] as number) + (share[p] as number);
            const h = high[p] as number;
            const l = low[p] as number;
            let e = x > h ? x - h : x < l ? l - x : 0;
            e *= e;
            if (power > 2) {
              e *= e;
              if (power > 4) e *= e;
            }
            if (slope > 0) e += slope * (x - (middle[p] as number)) ** 2;
            d += (weights[p] as number) * e;
          }
        } else d = this.#arriving(vm, b);
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
      const order = this.#order;
      let looked = 0;
      for (; looked < order.length && (looked < FALLBACK || to === NONE); looked++) {
        const b = order[looked] as number;
        if (b === own) continue;
        const d = this.#arriving(vm, b);
        if (d < delta && this.#legal(vm, b)) {
          delta = d;
          to = b;
        }
      }
      this.#evaluated += looked;
    }
    this.#vmTo[vm] = to;
    this.#vmSeen[vm] = to === NONE ? 0 : (this.#version[to] as number);
    this.#arrive[vm] = delta;
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

  #loadOf(h: number): number {
    const { P, weights } = this.#field;
    let sum = 0;
    for (let p = 0; p < P; p++) sum += (weights[p] as number) * (this.#score[h * P + p] as number);
    return sum;
  }

  /** Puts a host where it belongs in the order of loads, after its values have changed. */
  #reorder(h: number): void {
    const order = this.#order;
    const loads = this.#loads;
    loads[h] = this.#loadOf(h);
    let i = this.#orderAt[h] as number;
    if (i === NONE) return;
    const load = loads[h] as number;
    for (; i > 0 && (loads[order[i - 1] as number] as number) > load; i--) {
      order[i] = order[i - 1] as number;
      this.#orderAt[order[i] as number] = i;
    }
    for (; i + 1 < order.length && (loads[order[i + 1] as number] as number) < load; i++) {
      order[i] = order[i + 1] as number;
      this.#orderAt[order[i] as number] = i;
    }
    order[i] = h;
    this.#orderAt[h] = i;
  }

  /** True for hosts with room for the smallest VM: only these can be on the front. */
  #receives(h: number): boolean {
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
  #fill(b: number): void {
    const { cluster, destinations } = this.#field;
    const c = cluster.hostClass[b] as number;
    const front = this.#fronts[c] as number[];
    const at = front.indexOf(b);
    if (at < 0) {
      if (!this.#receives(b)) this.#dominator[b] = CLOSED;
      return;
    }
    front.splice(at, 1);
    const open = this.#receives(b);
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
    if (!this.#receives(a)) return false;
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

  /** Works out anew what leaving this host does, after its values have changed. */
  #findLeaving(h: number): void {
    const end = this.#end[h] as number;
    for (let i = this.#field.start[h] as number; i < end; i++) {
      const vm = this.#list[i] as number;
      this.#leave[vm] = this.#leaving(vm, h);
    }
  }
}
