import { shareOn } from '../../cluster.ts';
import { check, type Room } from '../../constraints.ts';
import { LoadOrder } from '../../loadOrder.ts';
import { EPSILON } from '../../measure.ts';
import { codeNumber, type RefusalCounts } from '../../reasons.ts';
import type { Field } from './field.ts';
import { Fronts } from './fronts.ts';
import { GuideCost, type GuideShape } from './guideCost.ts';
import { Ranges } from './ranges.ts';
import { Tournament } from './tree.ts';

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

/**
 * Makes the best single move by the guide again and again, up to the budget, and marks the prefix that is best by the
 * real measure. It stops early at the work limit.
 *
 * What makes it fast: each VM keeps its best destination, and each source host its best move. As destinations only get
 * worse while they fill up, a kept one is worked out anew only when it comes first; a host that has got better is offered to
 * all VMs. Only the {@link Fronts} are looked at; where a front refuses a VM, some of the least loaded hosts stand in for all.
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
/** A gain below this is rounding, in the unit of the guide. */
const LEAST_GAIN = 1e-13;

const NONE = -1;

class Guide {
  readonly #field: Field;
  readonly #refusals: RefusalCounts;
  readonly #score: Float64Array;
  readonly #cost: GuideCost;
  readonly #place: Int32Array;
  readonly #room: Room;
  /** VMs that have not moved, by host: `list[field.start[h]] .. list[end[h] - 1]`. */
  readonly #list: Int32Array;
  readonly #end: Int32Array;
  readonly #fronts: Fronts;
  readonly #byLoad: LoadOrder;
  /** For each VM key the host classes it may go to. */
  readonly #classesOf: number[][];

  /** By VM: what leaving does to its source, as the source is now. */
  readonly #leave: Float64Array;
  /** By VM: what arriving does to its best destination, as that was when last looked at: it can only have got worse. */
  readonly #arrive: Float64Array;
  readonly #vmTo: Int32Array;
  /** By VM: the version of the destination that `arrive` is of. */
  readonly #vmSeen: Int32Array;

  /** By source host: its best move, when last looked at; the tournament holds the gains. */
  readonly #best: Tournament;
  readonly #bestVm: Int32Array;
  readonly #bestTo: Int32Array;
  readonly #seen: Int32Array;
  /** By host: how often something has arrived. */
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
    this.#list = Int32Array.from(field.vmsOf);
    this.#end = Int32Array.from({ length: H }, (_, h) => field.start[h + 1] as number);
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
    const trail: Trail = { vms: [], hosts: [], best: 0, evaluated: 0, tight: false };
    const ranges = new Ranges(this.#field, this.#score);
    let within = ranges.within();
    let combined = ranges.combined();
    while (trail.vms.length < budget && !within && this.#evaluated < workLimit) {
      const a = best.top();
      if (!(best.topKey() > LEAST_GAIN)) break;
      const to = this.#bestTo[a] as number;
      if (this.#seen[a] !== this.#version[to]) {
        best.set(a, this.#bestMoveOf(a));
        continue;
      }
      const vm = this.#bestVm[a] as number;
      this.#move(vm, a, to);
      ranges.update(this.#score, a, to);
      trail.vms.push(vm);
      trail.hosts.push(to);
      if (!ranges.acceptable()) continue;
      within = ranges.within();
      const now = ranges.combined();
      if (!within && now >= combined - EPSILON) continue;
      combined = now;
      trail.best = trail.vms.length;
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
    const end = (this.#end[a] as number) - 1;
    let i = start[a] as number;
    while (list[i] !== vm) i++;
    list[i] = list[end] as number;
    this.#end[a] = end;
    this.#version[b] = (this.#version[b] as number) + 1;
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

  /** A host that has got better is a destination that nobody has looked at yet. */
  #offer(b: number): void {
    const { H, start } = this.#field;
    const list = this.#list;
    const arrive = this.#arrive;
    this.#cost.lookAt(b);
    for (let a = 0; a < H; a++) {
      if (a === b) continue;
      let best = this.#best.key(a);
      const from = start[a] as number;
      const end = this.#end[a] as number;
      this.#evaluated += end - from;
      let found = NONE;
      for (let i = from; i < end; i++) {
        const vm = list[i] as number;
        const arriving = this.#cost.arrivingBelow(vm, b, arrive[vm] as number);
        if (arriving >= (arrive[vm] as number) || !this.#legal(vm, b)) continue;
        this.#keep(vm, b, arriving);
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

  /** Finds the host's best move, and leaves it in `bestVm` and `bestTo`. Returns its gain; minus infinity: there is none. */
  #bestMoveOf(a: number): number {
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
      if (to !== NONE && this.#vmSeen[vm] !== this.#version[to]) {
        this.#findDestination(vm);
        continue;
      }
      this.#bestVm[a] = vm;
      this.#bestTo[a] = to;
      this.#seen[a] = to === NONE ? 0 : (this.#version[to] as number);
      return vm === NONE ? Number.NEGATIVE_INFINITY : best;
    }
  }

  /** Finds the VM's best destination, and what its arrival does there. */
  #findDestination(vm: number): void {
    const { cluster } = this.#field;
    const cost = this.#cost;
    const own = this.#place[vm] as number;
    const classes = this.#classesOf[cluster.vmKey[vm] as number] as number[];
    let to = NONE;
    cost.begin();
    for (let i = 0; i < classes.length; i++) {
      const front = this.#fronts.of(classes[i] as number);
      to = cost.cheapest(vm, own, front, to);
      this.#evaluated += front.length;
    }
    if (to !== NONE && this.#legal(vm, to)) {
      this.#keep(vm, to, cost.arrival);
      return;
    }
    const hosts = this.#byLoad.hosts;
    let least = Number.POSITIVE_INFINITY;
    let looked = 0;
    to = NONE;
    for (; looked < hosts.length && (looked < FALLBACK || to === NONE); looked++) {
      const b = hosts[looked] as number;
      if (b === own) continue;
      const arriving = cost.arriving(vm, b);
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
    this.#vmSeen[vm] = to === NONE ? 0 : (this.#version[to] as number);
  }

  #legal(vm: number, b: number): boolean {
    const refusal = check(this.#field.cluster, this.#place, this.#room, vm, b);
    if (refusal === 0) return true;
    this.#refusals.add(refusal);
    if (refusal === codeNumber.capacity || refusal === codeNumber['anti-affinity']) this.#tight = true;
    return false;
  }

  /** Works out anew what leaving this host does, after its values have changed. */
  #findLeaving(h: number): void {
    const end = this.#end[h] as number;
    for (let i = this.#field.start[h] as number; i < end; i++) {
      const vm = this.#list[i] as number;
      this.#leave[vm] = this.#cost.leaving(vm, h);
    }
  }
}
