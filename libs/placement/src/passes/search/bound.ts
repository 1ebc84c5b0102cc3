import type { Cluster } from '../../cluster.ts';

/** The state that a bound is for. */
export type BoundInput = {
  readonly cluster: Cluster;
  readonly place: Int32Array;
  readonly score: Float64Array;
  /** 1 for VMs that may move. */
  readonly movable: Uint8Array;
  /** At most so many VMs move. */
  readonly budget: number;
};

/** Per policy: no plan within the budget brings the maximum below `high` or the minimum above `low`. */
export type Bound = { readonly high: Float64Array; readonly low: Float64Array; readonly combined: number };

/**
 * A lower bound on the combined imbalance that any plan with the budget can reach, rules and capacity left aside. Each
 * policy is bounded for itself:
 *
 * - the maximum by the fewest VMs that must leave, largest first, host by host; the minimum by the fewest that must arrive, the
 *   largest of all;
 * - both by the mean, as load does not vanish;
 * - both by what can flow: with a minimum of m no host gives more than it has above m, and with a maximum of M none takes
 *   more than it has room below M, and every host that gives or takes costs a move;
 * - where all weights are multiples of one quantum, by the lattice on which all values lie.
 */
export function bound(input: BoundInput): Bound {
  const { P, policies } = input.cluster;
  const high = new Float64Array(P);
  const low = new Float64Array(P);
  let combined = 0;
  const shared = new Shared(input);
  for (let p = 0; p < P; p++) {
    const ends = new PolicyBound(input, shared, p).ends();
    high[p] = ends.high;
    low[p] = ends.low;
    combined += (policies[p]?.weight ?? 0) * (ends.high - ends.low);
  }
  return { high, low, combined: Math.max(0, combined) };
}

/** What the bounds of all policies need. */
class Shared {
  readonly counted: number[] = [];
  readonly others: number[] = [];
  readonly vms: number[] = [];
  readonly onHost: number[][];

  constructor({ cluster, place, movable }: BoundInput) {
    this.onHost = Array.from({ length: cluster.H }, () => []);
    for (let v = 0; v < cluster.V; v++) {
      if (movable[v] !== 1) continue;
      this.vms.push(v);
      this.onHost[place[v] ?? 0]?.push(v);
    }
    for (let h = 0; h < cluster.H; h++) {
      if (cluster.counted[h] === 1) this.counted.push(h);
      else if ((this.onHost[h]?.length ?? 0) > 0) this.others.push(h);
    }
  }
}

class PolicyBound {
  readonly #budget: number;
  readonly #hosts: readonly number[];
  /** Values of the counted hosts, and their sizes. */
  readonly #value: Float64Array;
  readonly #size: Float64Array;
  /** Loads of the movable VMs of each counted and each other host, and of all; largest first. */
  readonly #own: Float64Array[];
  readonly #outside: Float64Array[];
  readonly #all: Float64Array;
  readonly #alike: boolean;

  constructor({ cluster, score, budget }: BoundInput, shared: Shared, p: number) {
    const { P, load, size } = cluster;
    const loads = (vms: readonly number[]): Float64Array =>
      Float64Array.from(vms, (v) => load[v * P + p] ?? 0)
        .sort()
        .reverse();
    this.#budget = budget;
    this.#hosts = shared.counted;
    this.#value = Float64Array.from(shared.counted, (h) => score[h * P + p] ?? 0);
    this.#size = Float64Array.from(shared.counted, (h) => size[h * P + p] ?? 1);
    this.#own = shared.counted.map((h) => loads(shared.onHost[h] ?? []));
    this.#outside = shared.others.map((h) => loads(shared.onHost[h] ?? []));
    this.#all = loads(shared.vms);
    this.#alike = cluster.alike;
  }

  ends(): { high: number; low: number } {
    const n = this.#hosts.length;
    if (n === 0) return { high: 0, low: 0 };
    let total = 0;
    let sizes = 0;
    let bottom = Number.POSITIVE_INFINITY;
    let top = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < n; i++) {
      const x = this.#value[i] as number;
      total += x * (this.#size[i] as number);
      sizes += this.#size[i] as number;
      if (x < bottom) bottom = x;
      if (x > top) top = x;
    }
    // Only VMs from other hosts can raise the mean.
    let incoming = 0;
    const outside = Float64Array.from(this.#outside.flatMap((loads) => [...loads]))
      .sort()
      .reverse();
    for (let i = 0; i < Math.min(this.#budget, outside.length); i++) incoming += outside[i] as number;
    let high = Math.max(this.#leastMaximum(), total / sizes);
    high = bisect(high, top, (m) => this.#canTake(m));
    let low = Math.min(this.#greatestMinimum(), (total + incoming) / sizes, high);
    low = -bisect(-low, -bottom, (m) => this.#canGive(-m));
    const lattice = this.#alike ? this.#lattice() : null;
    if (lattice !== null) {
      high = lattice.up(high);
      low = lattice.down(low);
    }
    return { high, low: Math.min(low, high) };
  }

  /** `budget` times the highest host loses its largest VM. */
  #leastMaximum(): number {
    const heap = new Heap(this.#value.map((x) => -x));
    const gone = new Int32Array(this.#hosts.length);
    for (let k = 0; k < this.#budget; k++) {
      const i = heap.top();
      const largest = this.#own[i]?.[gone[i] as number];
      if (largest === undefined || largest <= 0) break;
      gone[i] = (gone[i] as number) + 1;
      heap.replaceTop(heap.topKey() + largest / (this.#size[i] as number));
    }
    return -heap.topKey();
  }

  /** `budget` times the lowest host gains the largest VM that it has not had yet. */
  #greatestMinimum(): number {
    const heap = new Heap(this.#value);
    const came = new Int32Array(this.#hosts.length);
    for (let k = 0; k < this.#budget; k++) {
      const i = heap.top();
      const largest = this.#all[came[i] as number];
      if (largest === undefined || largest <= 0) break;
      came[i] = (came[i] as number) + 1;
      heap.replaceTop(heap.topKey() + largest / (this.#size[i] as number));
    }
    return heap.topKey();
  }

  /** Can what is missing below a minimum be given by the hosts above it, in as many moves as the budget has? */
  #canGive(minimum: number): boolean {
    let missing = 0;
    const gains: number[] = [];
    for (let i = 0; i < this.#hosts.length; i++) {
      const above = ((this.#value[i] as number) - minimum) * (this.#size[i] as number);
      if (above < 0) missing -= above;
      else this.#addGains(gains, above, this.#own[i] as Float64Array);
    }
    for (const loads of this.#outside) this.#addGains(gains, Number.POSITIVE_INFINITY, loads);
    return missing <= this.#best(gains) + FLOW_SLACK;
  }

  /** Can what is too much above a maximum be taken by the hosts below it? */
  #canTake(maximum: number): boolean {
    let excess = 0;
    const gains: number[] = [];
    for (let i = 0; i < this.#hosts.length; i++) {
      const room = (maximum - (this.#value[i] as number)) * (this.#size[i] as number);
      if (room < 0) excess -= room;
      else this.#addGains(gains, room, this.#all);
    }
    return excess <= this.#best(gains) + FLOW_SLACK;
  }

  /** What a host can give or take at most, move by move: the largest VMs, never more than the amount in all. */
  #addGains(gains: number[], amount: number, loads: Float64Array): void {
    let left = amount;
    for (let i = 0; i < loads.length && i < this.#budget && left > 0; i++) {
      const gain = Math.min(left, loads[i] as number);
      if (gain <= 0) return;
      gains.push(gain);
      left -= gain;
    }
  }

  #best(gains: readonly number[]): number {
    const sorted = Float64Array.from(gains).sort();
    let sum = 0;
    for (let i = sorted.length - 1; i >= 0 && i >= sorted.length - this.#budget; i--) sum += sorted[i] as number;
    return sum;
  }

  /** The lattice on which every value that a plan leads to lies; null where there is none that matters. */
  #lattice(): { up: (x: number) => number; down: (x: number) => number } | null {
    const origin = this.#value[0] ?? 0;
    const terms = new Set([...this.#all, ...this.#value.map((x) => Math.abs(x - origin))]);
    let quantum = 0;
    for (const term of terms) {
      quantum = commonDivisor(quantum, term);
      if (quantum > 0 && quantum < LEAST_QUANTUM) return null;
    }
    if (quantum === 0) return null;
    let error = 0;
    for (const term of terms) error = Math.max(error, Math.abs(term - quantum * Math.round(term / quantum)));
    // As many terms as can add up may each be off by the error.
    const slack = error * (2 * this.#budget + 2);
    if (slack > quantum / 4) return null;
    return {
      up: (x) => origin + quantum * Math.ceil((x - origin - slack) / quantum) - slack,
      down: (x) => origin + quantum * Math.floor((x - origin + slack) / quantum) + slack,
    };
  }
}

/** Flows are compared with this much in favour of what is possible. */
const FLOW_SLACK = 1e-9;
/** A finer lattice hardly changes a bound. */
const LEAST_QUANTUM = 1e-4;

/** The least x of `from..to` that passes a test which nothing below does, to within rounding and from below. */
function bisect(from: number, to: number, test: (x: number) => boolean): number {
  if (from >= to || test(from)) return from;
  let fails = from;
  let passes = to;
  for (let i = 0; i < 40 && passes - fails > 1e-10; i++) {
    const middle = (fails + passes) / 2;
    if (test(middle)) passes = middle;
    else fails = middle;
  }
  return fails;
}

/** Euclid's algorithm, where a remainder that is almost 0 or almost the divisor counts as 0. */
function commonDivisor(x: number, y: number): number {
  let a = Math.max(x, y);
  let b = Math.min(x, y);
  while (b > 1e-7) {
    const rest = a % b;
    a = b;
    b = rest > 1e-7 && a - rest > 1e-7 ? rest : 0;
  }
  return a;
}

/** A binary heap of positions by key, least first. */
class Heap {
  readonly #items: Int32Array;
  readonly #keys: Float64Array;

  constructor(keys: Float64Array) {
    const order = Int32Array.from(keys, (_, i) => i).sort((a, b) => (keys[a] as number) - (keys[b] as number) || a - b);
    this.#items = order;
    this.#keys = Float64Array.from(order, (i) => keys[i] as number);
  }

  top(): number {
    return this.#items[0] as number;
  }

  topKey(): number {
    return this.#keys[0] as number;
  }

  replaceTop(key: number): void {
    const items = this.#items;
    const keys = this.#keys;
    const item = items[0] as number;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && (keys[child + 1] as number) < (keys[child] as number)) child++;
      if ((keys[child] as number) >= key) break;
      items[i] = items[child] as number;
      keys[i] = keys[child] as number;
      i = child;
    }
    items[i] = item;
    keys[i] = key;
  }
}
