import { byte, float, int, item } from '../../base/array.ts';
import { Random } from '../../base/random.ts';
import { countedHosts } from '../../cluster/cluster.ts';
import type { Room } from '../../cluster/constraints.ts';
import type { RefusalCounts } from '../../reasons.ts';
import { Walk } from '../changes/walk.ts';
import type { Band } from '../problem/bands.ts';
import type { Field } from '../problem/field.ts';
import type { Annealed } from './anneal.ts';

export type SettleSettings = {
  readonly band: Band;
  readonly seed: number;
  readonly steps: number;
  readonly refusals: RefusalCounts;
};

/** Parts of a run between which the price of load outside the band changes. */
const STAGES = 200;
/** The first price of load outside the band: cheap VMs with much load move first. In average costs per average load, like all prices here. */
const FIRST_PRICE = 0.3;
/** The price rises by this factor in each stage that ends with load outside the band, and falls by the other one else. */
const RISE = 1.12;
const FALL = 0.96;
const HIGHEST_PRICE = 200;
/** In each stage the band moves by this part of its width towards the end with more hosts outside. */
const FOLLOW = 0.01;
/** First and last temperature, in average costs. */
const HOT = 0.3;
const COLD = 0.005;
/** A proposal that costs more than this many temperatures is rejected without a draw. */
const HOPELESS = 16;

/**
 * Simulated annealing for the cheapest moves within the budget after which every counted host is in a band, which may move during the run. Load outside the band has a price, which
 * rises until none is left. What a proposal changes depends on the hosts that it touches alone: so each host that comes nearer to the
 * band is progress, however many share the extreme. Returns the cheapest placement of the run with all hosts in the band; the start
 * when there is none.
 *
 * @param room the room at the start of the pass; the run changes it.
 */
export function settle(field: Field, start: Int32Array, room: Room, settings: SettleSettings): Annealed {
  const run = new Run(field, start, room, settings);
  if (field.vmsOf.length > 0 && field.destinations.length > 0 && field.P > 0) run.execute();
  return run.found();
}

class Run {
  readonly #field: Field;
  readonly #settings: SettleSettings;
  readonly #random: Random;
  readonly #walk: Walk;
  readonly #outside: Outside;
  readonly #cost: number;
  #breaches = 0;
  #breachesNext = 0;
  #best = Number.POSITIVE_INFINITY;
  #unsaved = false;
  #steps = 0;
  #price = FIRST_PRICE;

  constructor(field: Field, start: Int32Array, room: Room, settings: SettleSettings) {
    this.#field = field;
    this.#settings = settings;
    this.#random = new Random(settings.seed);
    this.#walk = new Walk(field, start, room, field.budget, settings.refusals);
    // The run moves its band.
    const { low, high } = settings.band;
    const band = { low: Float64Array.from(low), high: Float64Array.from(high) };
    this.#outside = new Outside(field, this.#walk.score, band);
    let all = 0;
    for (const v of field.vmsOf) all += float(field.costs, v);
    this.#cost = all > 0 ? all / field.vmsOf.length : 1;
    this.#breaches = field.lax.length === 0 ? 0 : this.#walk.breachesAfter();
    this.#walk.save();
    this.#improved();
  }

  execute(): void {
    const { steps } = this.#settings;
    for (let stage = 0; stage < STAGES; stage++) {
      const temperature = HOT * (COLD / HOT) ** (stage / (STAGES - 1));
      this.#anneal(Math.floor((steps * (stage + 1)) / STAGES), temperature);
      const isOut = this.#outside.sum > NOTHING || this.#breaches > this.#field.breaches;
      this.#outside.follow(FOLLOW);
      this.#price = Math.min(HIGHEST_PRICE, Math.max(FIRST_PRICE, this.#price * (isOut ? RISE : FALL)));
    }
  }

  found(): Annealed {
    if (this.#unsaved) this.#walk.save();
    this.#walk.goBack();
    return { place: this.#walk.place, steps: this.#steps, tight: this.#walk.tight };
  }

  #anneal(end: number, temperature: number): void {
    const walk = this.#walk;
    const random = this.#random;
    const price = this.#price;
    const unit = 1 / this.#cost;
    const hopeless = HOPELESS * temperature;
    const breaks = this.#field.lax.length > 0;
    for (; this.#steps < end; this.#steps++) {
      if (!this.#draw()) continue;
      walk.work();
      let change = (walk.costAfter() - walk.cost) * unit + price * this.#outside.change(walk);
      if (breaks) {
        this.#breachesNext = walk.breachesAfter();
        change +=
          price * (Math.max(this.#breachesNext, this.#field.breaches) - Math.max(this.#breaches, this.#field.breaches));
      }
      if (change > hopeless || (change > 0 && random.unit() >= Math.exp(-change / temperature))) continue;
      if (this.#unsaved) walk.save();
      this.#unsaved = false;
      if (!walk.commit()) continue;
      this.#outside.changed(walk);
      this.#breaches = this.#breachesNext;
      this.#improved();
    }
  }

  #improved(): void {
    const walk = this.#walk;
    if (this.#outside.sum > NOTHING || walk.cost >= this.#best - NOTHING || this.#breaches > this.#field.breaches)
      return;
    this.#best = walk.cost;
    this.#unsaved = true;
  }

  /** Half of the proposals are about hosts outside the band while there are some. */
  #draw(): boolean {
    const random = this.#random;
    const walk = this.#walk;
    const { above, below } = this.#outside;
    const kind = random.below(8);
    if (kind < 5 && above.count + below.count > 0) {
      const a = above.draw(random);
      const b = below.draw(random);
      if (kind < 2 && a >= 0 && b >= 0) return walk.drawBetween(random, a, b);
      const down = b < 0 || (a >= 0 && random.below(2) === 0);
      return walk.aimAt(random, down ? a : b, down) && walk.draw(random);
    }
    switch (random.below(6)) {
      case 0:
        return walk.drawInstead(random, 0);
      case 1:
        return walk.drawInstead(random, 1);
      case 2:
        return walk.drawInstead(random, 2);
      case 3:
        return walk.drawForTwo(random);
      case 4: {
        if (walk.count === 0) return false;
        const v = int(walk.away, random.below(walk.count));
        const down = random.below(2) === 0;
        return walk.aimAt(random, down ? int(this.#field.home, v) : int(walk.place, v), down) && walk.draw(random);
      }
      default:
        return walk.aimAny(random) && walk.draw(random);
    }
  }
}

/** Sums below this are rounding. */
const NOTHING = 1e-9;

/** The load outside the band by host, in average loads of a VM. */
class Outside {
  readonly #field: Field;
  readonly #score: Float64Array;
  readonly #band: Band;
  readonly #unit: Float64Array;
  readonly #of: Float64Array;
  readonly above: HostSet;
  readonly below: HostSet;
  sum = 0;

  constructor(field: Field, score: Float64Array, band: Band) {
    const { H, P, cluster, vmsOf } = field;
    this.#field = field;
    this.#score = score;
    this.#band = band;
    this.#of = new Float64Array(H);
    this.above = new HostSet(H);
    this.below = new HostSet(H);
    const counted = countedHosts(cluster);
    this.#unit = new Float64Array(P);
    for (let p = 0; p < P; p++) {
      let loads = 0;
      for (const v of vmsOf) loads += float(cluster.load, v * P + p);
      let sizes = 0;
      for (const h of counted) sizes += float(cluster.size, h * P + p);
      const typical = sizes === 0 ? 0 : (loads / Math.max(1, vmsOf.length)) * (counted.length / sizes);
      this.#unit[p] = typical > NOTHING ? 1 / typical : 1;
    }
    for (const h of counted) this.#evaluate(h);
  }

  /** Moves the band of each policy by a part of its width towards the end with more hosts outside. */
  follow(part: number): void {
    const { H, P, cluster } = this.#field;
    const { low, high } = this.#band;
    if (this.above.count + this.below.count === 0 || part === 0) return;
    for (let p = 0; p < P; p++) {
      let pull = 0;
      for (let h = 0; h < H; h++) {
        if (byte(cluster.counted, h) !== 1) continue;
        const x = float(this.#score, h * P + p);
        if (x > float(high, p) + NOTHING) pull++;
        else if (x < float(low, p) - NOTHING) pull--;
      }
      const by = Math.sign(pull) * part * (float(high, p) - float(low, p));
      high[p] = float(high, p) + by;
      low[p] = float(low, p) + by;
    }
    for (let h = 0; h < H; h++) if (byte(cluster.counted, h) === 1) this.#evaluate(h);
  }

  /** What the walk's proposal changes; the walk's values are up to date. */
  change({ touched, touchedCount, value }: Walk): number {
    const { P, cluster } = this.#field;
    let change = 0;
    for (let i = 0; i < touchedCount; i++) {
      const h = int(touched, i);
      if (byte(cluster.counted, h) !== 1) continue;
      change += this.#distance(value, i * P) - float(this.#of, h);
    }
    return change;
  }

  changed({ touched, touchedCount }: Walk): void {
    for (let i = 0; i < touchedCount; i++)
      if (byte(this.#field.cluster.counted, int(touched, i)) === 1) this.#evaluate(int(touched, i));
  }

  #evaluate(h: number): void {
    const { P } = this.#field;
    const { low, high } = this.#band;
    const distance = this.#distance(this.#score, h * P);
    this.sum += distance - float(this.#of, h);
    this.#of[h] = distance;
    let [isAbove, isBelow] = [false, false];
    for (let p = 0; p < P; p++) {
      const x = float(this.#score, h * P + p);
      if (x > float(high, p) + NOTHING) isAbove = true;
      else if (x < float(low, p) - NOTHING) isBelow = true;
    }
    this.above.put(h, isAbove);
    this.below.put(h, isBelow);
    if (this.above.count + this.below.count === 0) this.sum = 0;
  }

  #distance(values: Float64Array, from: number): number {
    const { P } = this.#field;
    const { low, high } = this.#band;
    let sum = 0;
    for (let p = 0; p < P; p++) {
      const x = float(values, from + p);
      const over = x - float(high, p);
      const under = float(low, p) - x;
      if (over > 0) sum += over * float(this.#unit, p);
      else if (under > 0) sum += under * float(this.#unit, p);
    }
    return sum;
  }
}

class HostSet {
  readonly #hosts: number[] = [];
  readonly #at: Int32Array;

  constructor(H: number) {
    this.#at = new Int32Array(H).fill(-1);
  }

  get count(): number {
    return this.#hosts.length;
  }

  put(h: number, isIn: boolean): void {
    const at = int(this.#at, h);
    if (isIn === at >= 0) return;
    if (isIn) {
      this.#at[h] = this.#hosts.push(h) - 1;
      return;
    }
    const last = this.#hosts.pop() as number;
    if (last !== h) {
      this.#hosts[at] = last;
      this.#at[last] = at;
    }
    this.#at[h] = -1;
  }

  draw(random: Random): number {
    return this.#hosts.length === 0 ? -1 : item(this.#hosts, random.below(this.#hosts.length));
  }
}
