import { EPSILON } from '@kronos/rules';
import { float, int, item } from '../../base/array.ts';
import { Checker, type Room } from '../../cluster/constraints.ts';
import { Extremes } from '../../cluster/extremes.ts';
import { LoadOrder } from '../../cluster/loadOrder.ts';
import { shift } from '../../cluster/measure.ts';
import { codeNumber, type RefusalCounts } from '../../reasons.ts';
import type { Field } from '../problem/field.ts';
import { isAcceptable, reaches } from '../problem/solution.ts';
import { Fronts } from './fronts.ts';
import { GuideCost, type GuideShape } from './guideCost.ts';
import { Tournament } from './tree.ts';

export type Trail = {
  /** Moves in the order in which they were found. No VM moves twice. */
  readonly vms: number[];
  readonly hosts: number[];
  /** Length of the best prefix by the real measure. */
  best: number;
  /** The best prefix at each doubling of the number of evaluated candidates. */
  readonly marks: number[];
  evaluated: number;
  /** The work limit ended it. */
  cut: boolean;
  /** Some destination was refused for lack of room that departures would create. */
  tight: boolean;
};

/**
 * Makes the best single move by the guide, repeats this up to the budget, and marks the prefix that is best by the real measure. It stops
 * early at the work limit.
 *
 * Three things make it fast. Each VM keeps its best destination, and each source host its best move. Destinations become worse while they
 * fill up, so a kept destination is evaluated again only when its move comes first; a host that became better is offered to all VMs. Only
 * the {@link Fronts} are candidates; if a front refuses a VM, some of the least loaded hosts are tried instead.
 */
export function followGuide(
  field: Field,
  shape: GuideShape,
  { budget, workLimit }: { readonly budget: number; readonly workLimit: number },
  refusals: RefusalCounts,
): Trail {
  return new Guide(field, shape, refusals).run(budget, workLimit);
}

/** If the front refuses a VM, this many of the least loaded hosts are tried, and further ones until one takes it. */
const FALLBACK = 64;
/** A gain below this is rounding, in the unit of the guide. */
const LEAST_GAIN = 1e-13;

/** Candidates at the first mark. */
const FIRST_MARK = 2 ** 17;

const NONE = -1;

class Guide {
  readonly #field: Field;
  readonly #refusals: RefusalCounts;
  readonly #score: Float64Array;
  readonly #cost: GuideCost;
  readonly #place: Int32Array;
  readonly #room: Room;
  readonly #checker: Checker;
  /** VMs that have not moved, by host: `list[field.start[h]] .. list[end[h] - 1]`. */
  readonly #list: Int32Array;
  readonly #end: Int32Array;
  readonly #fronts: Fronts;
  readonly #byLoad: LoadOrder;
  /** For each VM key the host classes it may go to. */
  readonly #classesOf: number[][];

  /** By VM: the effect of its departure on its source, in the present state. */
  readonly #leave: Float64Array;
  /** By VM: the effect of its arrival on its best destination at the last evaluation. It can only be worse now. */
  readonly #arrive: Float64Array;
  readonly #vmTo: Int32Array;
  /** By VM: the version of the destination at that evaluation. */
  readonly #vmSeen: Int32Array;

  /** By source host: its best move at the last evaluation; the tournament holds the gains. */
  readonly #best: Tournament;
  readonly #bestVm: Int32Array;
  readonly #bestTo: Int32Array;
  readonly #seen: Int32Array;
  /** By host: number of arrivals. */
  readonly #version: Int32Array;
  #evaluated = 0;
  #tight = false;

  constructor(field: Field, shape: GuideShape, refusals: RefusalCounts) {
    const { cluster, H, V } = field;
    this.#field = field;
    this.#refusals = refusals;
    this.#score = Float64Array.from(field.score);
    this.#cost = new GuideCost(field, shape, this.#score);
    this.#place = Int32Array.from(field.home);
    this.#room = field.room.copy(false);
    this.#checker = new Checker(this.#place, this.#room, { strict: true });
    this.#list = Int32Array.from(field.vmsOf);
    this.#end = Int32Array.from({ length: H }, (_, h) => int(field.start, h + 1));
    this.#fronts = new Fronts(field, this.#score, this.#room);
    this.#byLoad = new LoadOrder(cluster, this.#score);
    const keys = cluster.classes === 0 ? 0 : cluster.keyLegal.length / cluster.classes;
    this.#classesOf = Array.from({ length: keys }, (_, k) => {
      const legal: number[] = [];
      for (let c = 0; c < cluster.classes; c++) if (cluster.keyLegal[k * cluster.classes + c] === 0) legal.push(c);
      return legal;
    });
    this.#leave = new Float64Array(V);
    this.#arrive = new Float64Array(V);
    this.#vmTo = new Int32Array(V).fill(NONE);
    this.#vmSeen = new Int32Array(V);
    this.#best = new Tournament(H);
    this.#bestVm = new Int32Array(H).fill(NONE);
    this.#bestTo = new Int32Array(H).fill(NONE);
    this.#seen = new Int32Array(H);
    this.#version = new Int32Array(H);
    for (let h = 0; h < H; h++) this.#findLeaving(h);
    for (const vm of this.#list) this.#findDestination(vm);
    for (let h = 0; h < H; h++) this.#best.put(h, this.#bestMoveOf(h));
    this.#best.rebuild();
  }

  run(budget: number, workLimit: number): Trail {
    const best = this.#best;
    const trail: Trail = { vms: [], hosts: [], best: 0, marks: [], evaluated: 0, cut: false, tight: false };
    const extremes = new Extremes(this.#field.cluster, this.#score);
    let reached = reaches(this.#field, extremes);
    let combined = extremes.combined();
    let mark = FIRST_MARK;
    while (trail.vms.length < budget && !reached && this.#evaluated < workLimit) {
      for (; this.#evaluated >= mark; mark *= 2) trail.marks.push(trail.best);
      const a = best.top();
      if (!(best.topKey() > LEAST_GAIN)) break;
      const to = int(this.#bestTo, a);
      if (int(this.#seen, a) !== int(this.#version, to)) {
        best.set(a, this.#bestMoveOf(a));
        continue;
      }
      const vm = int(this.#bestVm, a);
      this.#move(vm, a, to);
      extremes.changed([a, to]);
      trail.vms.push(vm);
      trail.hosts.push(to);
      if (!isAcceptable(this.#field, extremes)) continue;
      reached = reaches(this.#field, extremes);
      const now = extremes.combined();
      if (!reached && now >= combined - EPSILON) continue;
      combined = now;
      trail.best = trail.vms.length;
    }
    trail.cut = this.#evaluated >= workLimit;
    trail.evaluated = this.#evaluated;
    trail.tight = this.#tight;
    return trail;
  }

  #move(vm: number, a: number, b: number): void {
    const { cluster, start } = this.#field;
    shift(cluster, this.#score, vm, a, b);
    this.#room.move(vm, a, b);
    this.#place[vm] = b;
    const list = this.#list;
    const end = int(this.#end, a) - 1;
    let i = int(start, a);
    while (list[i] !== vm) i++;
    list[i] = int(list, end);
    this.#end[a] = end;
    this.#version[b] = int(this.#version, b) + 1;
    this.#cost.refresh(a);
    this.#cost.refresh(b);
    this.#fronts.fill(b);
    const onFront = cluster.hostRefusal[a] === 0 && this.#fronts.rise(a);
    this.#byLoad.update(a);
    this.#byLoad.update(b);
    this.#findLeaving(a);
    this.#findLeaving(b);
    this.#best.set(a, this.#bestMoveOf(a));
    this.#best.set(b, this.#bestMoveOf(b));
    if (onFront) this.#offer(a);
  }

  /** A host that improved is a destination that must be evaluated again. */
  #offer(b: number): void {
    const { H, start } = this.#field;
    const list = this.#list;
    const arrive = this.#arrive;
    for (let a = 0; a < H; a++) {
      if (a === b) continue;
      let best = this.#best.key(a);
      const from = int(start, a);
      const end = int(this.#end, a);
      this.#evaluated += end - from;
      let found = NONE;
      for (let i = from; i < end; i++) {
        const vm = int(list, i);
        const arriving = this.#cost.arriving(vm, b, float(arrive, vm));
        if (arriving >= float(arrive, vm) || !this.#legal(vm, b)) continue;
        this.#keep(vm, b, arriving);
        const gain = -float(this.#leave, vm) - arriving;
        if (gain <= best) continue;
        best = gain;
        found = vm;
      }
      if (found === NONE) continue;
      this.#bestVm[a] = found;
      this.#bestTo[a] = b;
      this.#seen[a] = int(this.#version, b);
      this.#best.set(a, best);
    }
  }

  /** Finds the host's best move and stores it in `bestVm` and `bestTo`. Returns its gain; minus infinity: it has no move. */
  #bestMoveOf(a: number): number {
    const from = int(this.#field.start, a);
    const end = int(this.#end, a);
    const list = this.#list;
    const leave = this.#leave;
    const arrive = this.#arrive;
    for (;;) {
      // The gain with the kept destination is an upper bound of the present gain: the first up-to-date gain wins.
      let best = 0;
      let vm = NONE;
      for (let i = from; i < end; i++) {
        const v = int(list, i);
        const gain = -float(leave, v) - float(arrive, v);
        if (gain > best) {
          best = gain;
          vm = v;
        }
      }
      const to = vm === NONE ? NONE : int(this.#vmTo, vm);
      if (to !== NONE && this.#vmSeen[vm] !== this.#version[to]) {
        this.#findDestination(vm);
        continue;
      }
      this.#bestVm[a] = vm;
      this.#bestTo[a] = to;
      this.#seen[a] = to === NONE ? 0 : int(this.#version, to);
      return vm === NONE ? Number.NEGATIVE_INFINITY : best;
    }
  }

  /** Finds the VM's best destination and the effect of its arrival there. */
  #findDestination(vm: number): void {
    const { cluster } = this.#field;
    const cost = this.#cost;
    const own = int(this.#place, vm);
    let to = NONE;
    let least = Number.POSITIVE_INFINITY;
    for (const hostClass of item(this.#classesOf, int(cluster.vmKey, vm))) {
      const front = this.#fronts.of(hostClass);
      for (let i = 0; i < front.length; i++) {
        const b = item(front, i);
        if (b === own) continue;
        const arriving = cost.arriving(vm, b, least);
        if (arriving >= least) continue;
        least = arriving;
        to = b;
      }
      this.#evaluated += front.length;
    }
    if (to !== NONE && this.#legal(vm, to)) {
      this.#keep(vm, to, least);
      return;
    }
    const hosts = this.#byLoad.hosts;
    let looked = 0;
    least = Number.POSITIVE_INFINITY;
    to = NONE;
    for (; looked < hosts.length && (looked < FALLBACK || to === NONE); looked++) {
      const b = int(hosts, looked);
      if (b === own) continue;
      const arriving = cost.arriving(vm, b, least);
      if (arriving >= least || !this.#legal(vm, b)) continue;
      least = arriving;
      to = b;
    }
    this.#evaluated += looked;
    this.#keep(vm, to, least);
  }

  #keep(vm: number, to: number, arriving: number): void {
    this.#arrive[vm] = arriving;
    this.#vmTo[vm] = to;
    this.#vmSeen[vm] = to === NONE ? 0 : int(this.#version, to);
  }

  #legal(vm: number, b: number): boolean {
    // Guides break no soft rule: the local search decides whether that pays.
    const refusal = this.#checker.refusal(vm, b);
    if (refusal === 0) return true;
    this.#refusals.add(refusal);
    if (refusal === codeNumber.capacity || refusal === codeNumber['anti-affinity']) this.#tight = true;
    return false;
  }

  /** Recomputes the effect of leaving this host, after its values have changed. */
  #findLeaving(h: number): void {
    const end = int(this.#end, h);
    for (let i = int(this.#field.start, h); i < end; i++) {
      const vm = int(this.#list, i);
      this.#leave[vm] = this.#cost.leaving(vm, h);
    }
  }
}
