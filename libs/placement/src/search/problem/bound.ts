import { float, int } from '../../base/array.ts';
import type { Cluster } from '../../cluster/cluster.ts';
import { fitsUnits } from '../../cluster/constraints.ts';
import { type Parts, partsOf } from '../../cluster/parts.ts';

/** The state that a bound is for. */
export type BoundInput = {
  readonly cluster: Cluster;
  readonly place: Int32Array;
  readonly score: Float64Array;
  /** 1 for VMs that may move. */
  readonly movable: Uint8Array;
  /** The maximum number of moved VMs. */
  readonly budget: number;
};

/** Per policy: no plan within the budget brings the maximum below `high` or the minimum above `low`. */
export type Bound = { readonly high: Float64Array; readonly low: Float64Array; readonly combined: number };

/**
 * A lower bound on the combined imbalance of every plan within the budget. It ignores the order of moves and the server groups. It
 * bounds each policy by itself:
 *
 * - the maximum by the fewest VMs that must leave, host by host, largest first; the minimum by the fewest that must arrive, the largest
 *   that may arrive and could ever fit;
 * - both, part by part, by the mean, because load neither vanishes nor leaves its part;
 * - both, part by part, by the possible flow: with a minimum of m each host can give at most its excess over m; with a maximum of M
 *   each host can take at most its room below M; every host that gives or takes costs a move; the parts share the budget;
 * - when all weights are multiples of one quantum, by the lattice on which all values lie.
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
    combined += (policies[p]?.weight ?? 0) * Math.max(0, ends.high - ends.low);
  }
  return { high, low, combined: Math.max(0, combined - ROUNDING) };
}

/** Data that the bounds of all policies share. */
class Shared {
  /** Hosts whose values are bounded. */
  readonly counted: number[] = [];
  readonly parts: Parts;
  readonly onHost: number[][];
  /** By host and resource class: the free amount once all VMs that may leave have left. */
  readonly #most: Float64Array;
  readonly #cluster: Cluster;
  readonly #place: Int32Array;

  constructor({ cluster, place, movable }: BoundInput) {
    const { H, R, V, demand } = cluster;
    this.#cluster = cluster;
    this.#place = place;
    this.parts = partsOf(cluster, place, movable);
    this.onHost = Array.from({ length: H }, () => []);
    this.#most = Float64Array.from(cluster.free);
    for (let v = 0; v < V; v++) {
      if (this.parts.movable[v] !== 1) continue;
      const h = int(place, v);
      this.onHost[h]?.push(v);
      for (let r = 0; r < R; r++) this.#most[h * R + r] = float(this.#most, h * R + r) + float(demand, v * R + r);
    }
    for (let h = 0; h < H; h++) if (cluster.counted[h] === 1) this.counted.push(h);
  }

  /** False when the VM can never arrive at the host. */
  mayArrive(vm: number, host: number): boolean {
    const { R, demand, units, hostRefusal, keyLegal, vmKey, classes, hostClass } = this.#cluster;
    if (this.#place[vm] === host || hostRefusal[host] !== 0) return false;
    if (int(keyLegal, int(vmKey, vm) * classes + int(hostClass, host)) !== 0) return false;
    for (let r = 0; r < R; r++) {
      const amount = float(demand, vm * R + r);
      if (amount <= 0) continue;
      if (amount > float(this.#most, host * R + r)) return false;
      if (units !== null && !fitsUnits(units, host * R + r, amount)) return false;
    }
    return true;
  }
}

/** The data of a counted host for one policy. */
type Host = {
  readonly index: number;
  readonly value: number;
  readonly size: number;
  /** Loads of its movable VMs, largest first. */
  readonly own: Float64Array;
  /** The movable VMs of its part, largest load first. */
  readonly partVms: Int32Array;
  /** Loads of the VMs that may arrive, largest first; computed on demand. */
  readonly arriving: number[];
  /** Number of the part's VMs that have been checked for whether they may arrive. */
  looked: number;
};

type PolicyPart = {
  readonly hosts: Host[];
  /** Loads of the movable VMs of each of its hosts that is not counted, largest first. */
  readonly outside: Float64Array[];
};

class PolicyBound {
  readonly #cluster: Cluster;
  readonly #policy: number;
  readonly #budget: number;
  readonly #shared: Shared;
  readonly #hosts: readonly Host[];
  readonly #parts: readonly PolicyPart[];

  constructor({ cluster, score, budget }: BoundInput, shared: Shared, p: number) {
    const { P, load, size } = cluster;
    const { parts, onHost } = shared;
    this.#cluster = cluster;
    this.#policy = p;
    this.#budget = budget;
    this.#shared = shared;
    const loadOf = (v: number): number => float(load, v * P + p);
    const loads = (h: number): Float64Array =>
      Float64Array.from(onHost[h] ?? [], loadOf)
        .sort()
        .reverse();
    const byPart: { hosts: Host[]; outside: Float64Array[]; vms: number[] }[] = Array.from(
      { length: parts.count },
      () => ({ hosts: [], outside: [], vms: [] }),
    );
    for (let h = 0; h < cluster.H; h++) {
      const part = byPart[int(parts.ofHost, h)];
      const own = onHost[h] ?? [];
      if (part === undefined) continue;
      for (const v of own) part.vms.push(v);
      if (cluster.counted[h] !== 1 && own.length > 0) part.outside.push(loads(h));
    }
    const sorted = byPart.map((part) => Int32Array.from(part.vms).sort((x, y) => loadOf(y) - loadOf(x)));
    this.#hosts = shared.counted.map((h) => ({
      index: h,
      value: float(score, h * P + p),
      size: float(size, h * P + p),
      own: loads(h),
      partVms: sorted[int(parts.ofHost, h)] ?? new Int32Array(0),
      arriving: [],
      looked: 0,
    }));
    for (const host of this.#hosts) byPart[int(parts.ofHost, host.index)]?.hosts.push(host);
    this.#parts = byPart.filter((part) => part.hosts.length > 0);
  }

  ends(): { high: number; low: number } {
    if (this.#hosts.length === 0) return { high: 0, low: 0 };
    let bottom = Number.POSITIVE_INFINITY;
    let top = Number.NEGATIVE_INFINITY;
    for (const { value } of this.#hosts) {
      if (value < bottom) bottom = value;
      if (value > top) top = value;
    }
    let high = this.#leastMaximum();
    let low = this.#greatestMinimum();
    for (const part of this.#parts) {
      const { least, most } = this.#means(part);
      high = Math.max(high, least);
      low = Math.min(low, most);
    }
    high = bisect(high, top, (m) => this.#canTake(m));
    low = -bisect(-low, -bottom, (m) => this.#canGive(-m));
    const lattice = this.#cluster.alike ? this.#lattice() : null;
    if (lattice !== null) {
      high = lattice.up(high);
      low = lattice.down(low);
    }
    return { high, low };
  }

  /** The mean of the part's counted hosts as it is, and as it is at most once VMs have come from its other hosts. */
  #means(part: PolicyPart): { least: number; most: number } {
    let total = 0;
    let sizes = 0;
    for (const { value, size } of part.hosts) {
      total += value * size;
      sizes += size;
    }
    let incoming = 0;
    const outside = Float64Array.from(part.outside.flatMap((loads) => [...loads]))
      .sort()
      .reverse();
    for (let i = 0; i < Math.min(this.#budget, outside.length); i++) incoming += Math.max(0, float(outside, i));
    return { least: total / sizes, most: (total + incoming) / sizes };
  }

  /** The load of the n-th largest VM that may arrive at the host; undefined when there are no more. */
  #arrival(host: Host, n: number): number | undefined {
    const vms = host.partVms;
    while (host.arriving.length <= n && host.looked < vms.length) {
      const vm = int(vms, host.looked);
      // After this many VMs that do not fit, the next one is assumed to fit: that only lowers the bound.
      if (host.looked++ < LOOK + 2 * n && !this.#shared.mayArrive(vm, host.index)) continue;
      host.arriving.push(float(this.#cluster.load, vm * this.#cluster.P + this.#policy));
    }
    return host.arriving[n];
  }

  /** `budget` times the highest host loses its largest VM. */
  #leastMaximum(): number {
    const hosts = this.#hosts;
    const heap = new Heap(Float64Array.from(hosts, (host) => -host.value));
    const gone = new Int32Array(hosts.length);
    for (let k = 0; k < this.#budget; k++) {
      const i = heap.top();
      const host = hosts[i] as Host;
      const largest = host.own[int(gone, i)];
      if (largest === undefined || largest <= 0) break;
      gone[i] = int(gone, i) + 1;
      heap.replaceTop(heap.topKey() + largest / host.size);
    }
    return -heap.topKey();
  }

  /** `budget` times the lowest host gains the largest VM that it may take and has not had yet. */
  #greatestMinimum(): number {
    const hosts = this.#hosts;
    const heap = new Heap(Float64Array.from(hosts, (host) => host.value));
    const came = new Int32Array(hosts.length);
    for (let k = 0; k < this.#budget; k++) {
      const i = heap.top();
      const host = hosts[i] as Host;
      const largest = this.#arrival(host, int(came, i));
      if (largest === undefined || largest <= 0) break;
      came[i] = int(came, i) + 1;
      heap.replaceTop(heap.topKey() + largest / host.size);
    }
    return heap.topKey();
  }

  /** Can the hosts above a minimum fill the deficit below it, in at most as many moves as the budget has? */
  #canGive(minimum: number): boolean {
    let left = this.#budget;
    for (const part of this.#parts) {
      let missing = 0;
      const gains: number[] = [];
      for (const { value, size, own } of part.hosts) {
        const above = (value - minimum) * size;
        if (above < 0) missing -= above;
        else this.#addGains(gains, above, (n) => own[n]);
      }
      for (const loads of part.outside) this.#addGains(gains, Number.POSITIVE_INFINITY, (n) => loads[n]);
      left -= movesFor(missing, gains, left);
      if (left < 0) return false;
    }
    return true;
  }

  /** Can the hosts below a maximum take the excess above it? */
  #canTake(maximum: number): boolean {
    let left = this.#budget;
    for (const part of this.#parts) {
      let excess = 0;
      const gains: number[] = [];
      for (const host of part.hosts) {
        const room = (maximum - host.value) * host.size;
        if (room < 0) excess -= room;
        else this.#addGains(gains, room, (n) => this.#arrival(host, n));
      }
      left -= movesFor(excess, gains, left);
      if (left < 0) return false;
    }
    return true;
  }

  /** The most that a host can give or take, move by move: the largest VMs, in total at most the amount. */
  #addGains(gains: number[], amount: number, load: (n: number) => number | undefined): void {
    let left = amount;
    for (let n = 0; n < this.#budget && left > 0; n++) {
      const gain = Math.min(left, load(n) ?? 0);
      if (gain <= 0) return;
      gains.push(gain);
      left -= gain;
    }
  }

  /** The lattice that contains every value that a plan can reach; null when there is none that matters. */
  #lattice(): { up: (x: number) => number; down: (x: number) => number } | null {
    const { P, load } = this.#cluster;
    const origin = this.#hosts[0]?.value ?? 0;
    const terms = new Set(this.#hosts.map(({ value }) => Math.abs(value - origin)));
    // Hosts of one part share the list of its VMs.
    for (const vms of new Set(this.#hosts.map((host) => host.partVms)))
      for (const v of vms) terms.add(float(load, v * P + this.#policy));
    let quantum = 0;
    for (const term of terms) {
      quantum = commonDivisor(quantum, term);
      if (quantum > 0 && quantum < LEAST_QUANTUM) return null;
    }
    if (quantum === 0) return null;
    let error = 0;
    for (const term of terms) error = Math.max(error, Math.abs(term - quantum * Math.round(term / quantum)));
    // Each of the terms in a sum may be off by the error.
    const slack = error * (2 * this.#budget + 2);
    if (slack > quantum / 4) return null;
    return {
      up: (x) => origin + quantum * Math.ceil((x - origin - slack) / quantum) - slack,
      down: (x) => origin + quantum * Math.floor((x - origin + slack) / quantum) + slack,
    };
  }
}

/** How many of the gains, largest first, add up to the amount; more than `most` when they do not. */
function movesFor(amount: number, gains: readonly number[], most: number): number {
  let rest = amount - FLOW_SLACK;
  if (rest <= 0) return 0;
  const sorted = Float64Array.from(gains).sort();
  let moves = 0;
  for (let i = sorted.length - 1; i >= 0 && rest > 0 && moves <= most; i--, moves++) rest -= float(sorted, i);
  return rest > 0 ? Number.POSITIVE_INFINITY : moves;
}

/** Maximum number of VMs that are checked for whether they may arrive at a host; further ones are assumed to. */
const LOOK = 64;
/** Sums and quotients of values are off by less than this. */
const ROUNDING = 1e-9;
/** Tolerance of comparisons of flows, in favour of possible. */
const FLOW_SLACK = 1e-9;
/** A finer lattice hardly changes a bound. */
const LEAST_QUANTUM = 1e-4;

/** The least x of `from..to` that passes a monotonic test, within rounding and from below. */
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

/** Euclid's algorithm. A remainder that is almost 0 or almost the divisor counts as 0. */
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
    const order = Int32Array.from(keys, (_, i) => i).sort((a, b) => float(keys, a) - float(keys, b) || a - b);
    this.#items = order;
    this.#keys = Float64Array.from(order, (i) => float(keys, i));
  }

  top(): number {
    return int(this.#items, 0);
  }

  topKey(): number {
    return float(this.#keys, 0);
  }

  replaceTop(key: number): void {
    const items = this.#items;
    const keys = this.#keys;
    const item = int(items, 0);
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && float(keys, child + 1) < float(keys, child)) child++;
      if (float(keys, child) >= key) break;
      items[i] = int(items, child);
      keys[i] = float(keys, child);
      i = child;
    }
    items[i] = item;
    keys[i] = key;
  }
}
