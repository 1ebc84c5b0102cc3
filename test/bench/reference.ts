import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { defaultSearchThreads, searchThreads } from '@kronos/cycle';
import { type ClusterFile, clusterOf, planParsed } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';
import { z } from 'zod';
import { largeCluster } from './clusters.ts';
import { cpuMs } from './cpuTime.ts';
import { Kept } from './kept.ts';
import { peerCluster } from './peers/cluster.ts';

/**
 * The default plan beside a long annealing run on all cores with the same number of moves. The annealer shares no code with the
 * planner. Its moves have an order in which each fits; `relaxed` is what it found without one. Prints JSON.
 *
 *   node test/bench/reference.ts [--seconds 60] [--sizes 50x500:50,113x2260:113,400x8000:400] [--seeds 1,2] [--references FILE]
 *
 * With `--references`, what the annealer found is kept in that file and used again: only the planner runs anew.
 *
 * The seconds of the annealer are of CPU, on each core: other load on the machine changes nothing. `ms` is the time of the plan with as
 * many threads as a planner has by default, `cpuMs` the CPU that it takes on all of them. `excess` is the combined imbalance of the plan
 * over that of the reference, less 1.
 */

type Problem = {
  readonly hosts: number;
  readonly policies: number;
  readonly weights: Float64Array;
  readonly home: Int32Array;
  readonly load: Float64Array;
  readonly memory: Float64Array;
  readonly free: Float64Array;
  readonly open: readonly number[];
  readonly isOpen: Uint8Array;
  readonly rivals: readonly (readonly number[])[];
  readonly budget: number;
};

/** The lowest combined imbalance that the annealer found: with an order of the moves, and without. */
type Reference = { readonly best: number; readonly relaxed: number };

type Task = { readonly problem: Problem; readonly seconds: number; readonly worker: number };

/** Clusters of hosts of equal size, with memory and anti-affinity as their only rules. */
function problemOf(file: ClusterFile, budget: number): Problem {
  const at = new Map(file.hosts.map((host, h) => [host.id, h]));
  const vmAt = new Map(file.vms.map((vm, v) => [vm.id, v]));
  const rivals: number[][] = file.vms.map(() => []);
  for (const { vms } of file.groups ?? [])
    for (const a of vms) for (const b of vms) if (a !== b) rivals[vmAt.get(a) ?? 0]?.push(vmAt.get(b) ?? 0);
  const isOpen = Uint8Array.from(file.hosts, (host) => (host.status === 'disabled' ? 0 : 1));
  const total = file.weights.reduce((sum, weight) => sum + weight, 0);
  return {
    hosts: file.hosts.length,
    policies: file.policies.length,
    weights: Float64Array.from(file.weights, (weight) => weight / total),
    home: Int32Array.from(file.vms, (vm) => at.get(vm.host) ?? 0),
    load: Float64Array.from(file.vms.flatMap((vm) => vm.w)),
    memory: Float64Array.from(file.vms, (vm) => vm.memMb ?? 0),
    free: Float64Array.from(file.hosts, (host) => host.memFreeMb ?? Number.POSITIVE_INFINITY),
    open: [...isOpen.keys()].filter((h) => isOpen[h] === 1),
    isOpen,
    rivals,
    budget,
  };
}

/* Indexes below are of the arrays' own making: `as` says so once instead of a check in each of a billion steps. */
const at = (array: Float64Array | Int32Array | readonly number[], i: number): number => array[i] as number;

class State {
  readonly #of: Problem;
  readonly place: Int32Array;
  readonly value: Float64Array;
  readonly away: number[] = [];
  readonly #awayAt: Int32Array;
  readonly #free: Float64Array;

  constructor(problem: Problem, start: Int32Array) {
    const { home, hosts, policies, load } = problem;
    this.#of = problem;
    this.place = Int32Array.from(home);
    this.value = new Float64Array(hosts * policies);
    home.forEach((h, v) => {
      for (let p = 0; p < policies; p++)
        this.value[h * policies + p] = at(this.value, h * policies + p) + at(load, v * policies + p);
    });
    this.#awayAt = new Int32Array(home.length).fill(-1);
    this.#free = Float64Array.from(problem.free);
    start.forEach((h, v) => {
      if (h !== at(home, v)) this.put(v, h);
    });
  }

  put(v: number, to: number): void {
    const { home, policies, load, memory } = this.#of;
    const from = at(this.place, v);
    for (let p = 0; p < policies; p++) {
      const l = at(load, v * policies + p);
      this.value[from * policies + p] = at(this.value, from * policies + p) - l;
      this.value[to * policies + p] = at(this.value, to * policies + p) + l;
    }
    this.#free[from] = at(this.#free, from) + at(memory, v);
    this.#free[to] = at(this.#free, to) - at(memory, v);
    this.place[v] = to;
    const k = at(this.#awayAt, v);
    if (to === at(home, v)) {
      const last = this.away.pop() as number;
      if (last !== v) {
        this.away[k] = last;
        this.#awayAt[last] = k;
      }
      this.#awayAt[v] = -1;
    } else if (k < 0) {
      this.#awayAt[v] = this.away.length;
      this.away.push(v);
    }
  }

  combined(): number {
    const { open, policies, weights } = this.#of;
    let sum = 0;
    for (let p = 0; p < policies; p++) {
      let low = Number.POSITIVE_INFINITY;
      let high = Number.NEGATIVE_INFINITY;
      for (const h of open) {
        const x = at(this.value, h * policies + p);
        low = Math.min(low, x);
        high = Math.max(high, x);
      }
      sum += at(weights, p) * (high - low);
    }
    return sum;
  }

  /** Is the state legal, as far as the hosts go to which these VMs came? */
  isLegal(vms: readonly number[]): boolean {
    const { home, isOpen, rivals } = this.#of;
    return vms.every((v) => {
      const h = at(this.place, v);
      if (h === at(home, v)) return true;
      return isOpen[h] === 1 && at(this.#free, h) >= 0 && !(rivals[v] as number[]).some((u) => at(this.place, u) === h);
    });
  }
}

/** Do the moves to a placement have an order in which each fits when it is made? */
function hasOrder({ home, memory, free: atStart, rivals }: Problem, place: Int32Array): boolean {
  const free = Float64Array.from(atStart);
  const now = Int32Array.from(home);
  let waiting = [...home.keys()].filter((v) => at(place, v) !== at(home, v));
  for (let before = -1; before !== waiting.length; ) {
    before = waiting.length;
    waiting = waiting.filter((v) => {
      const to = at(place, v);
      if (at(free, to) < at(memory, v) || (rivals[v] as number[]).some((u) => at(now, u) === to)) return true;
      free[to] = at(free, to) - at(memory, v);
      free[at(home, v)] = at(free, at(home, v)) + at(memory, v);
      now[v] = to;
      return false;
    });
  }
  return waiting.length === 0;
}

/** Stages of one run: the penalty gets steeper, and the temperature falls. */
const STAGES = 50;

/** A change of a state that is tried: the VMs that go, where to, and the values of the hosts that it touches, after it. */
interface Trial {
  readonly touched: number[];
  readonly value: Float64Array;
  readonly moved: number[];
  readonly to: number[];
}

/** A trial without a change; `add` lets a VM go to a host. */
function emptyTrial({ policies: P, load }: Problem, state: State) {
  const value = new Float64Array(6 * P);
  const touched: number[] = [];
  const moved: number[] = [];
  const to: number[] = [];
  const touch = (h: number): number => {
    const known = touched.indexOf(h);
    if (known >= 0) return known;
    for (let p = 0; p < P; p++) value[touched.length * P + p] = at(state.value, h * P + p);
    return touched.push(h) - 1;
  };
  const add = (v: number, b: number): void => {
    const i = touch(at(state.place, v));
    const j = touch(b);
    for (let p = 0; p < P; p++) {
      value[i * P + p] = at(value, i * P + p) - at(load, v * P + p);
      value[j * P + p] = at(value, j * P + p) + at(load, v * P + p);
    }
    moved.push(v);
    to.push(b);
  };
  const clear = (): void => {
    touched.length = moved.length = to.length = 0;
  };
  const trial: Trial = { touched, value, moved, to };
  return { trial, add, clear };
}

/** Draws changes of a state into a trial: one VM that goes somewhere, one that takes the place of another, one that goes home, or an exchange. */
function drawer(problem: Problem, state: State, random: () => number): { readonly trial: Trial; draw(): boolean } {
  const { home, hosts, open, budget } = problem;
  const vmsAt: number[][] = Array.from({ length: hosts }, () => []);
  for (const [v, h] of home.entries()) vmsAt[h]?.push(v);
  const below = (n: number): number => Math.floor(random() * n);
  const anyHost = (): number => at(open, below(open.length));
  const { trial, add, clear } = emptyTrial(problem, state);
  const goSomewhere = (kind: number): boolean => {
    const { away, place } = state;
    const n = away.length;
    const v = n > 0 && (n >= budget || kind === 0) ? at(away, below(n)) : below(home.length);
    if (n >= budget && at(place, v) === at(home, v)) return false;
    const b = anyHost();
    if (b !== at(place, v)) add(v, b);
    return true;
  };
  const replace = (): boolean => {
    const { away, place } = state;
    const u = at(away, below(away.length));
    const others = vmsAt[below(2) === 0 ? at(home, u) : below(hosts)] as number[];
    if (others.length === 0) return false;
    const v = at(others, below(others.length));
    const b = below(3) === 0 ? anyHost() : at(place, u);
    if (at(place, v) !== at(home, v) || b === at(place, v)) return false;
    add(u, at(home, u));
    add(v, b);
    return true;
  };
  const exchange = (): boolean => {
    const { away, place } = state;
    const n = away.length;
    const u = at(away, below(n));
    const v = below(2) === 0 ? at(away, below(n)) : below(home.length);
    const [a, b] = [at(place, u), at(place, v)];
    if (a === b || (at(place, v) === at(home, v) && n >= budget && b !== at(home, u))) return false;
    add(u, b);
    add(v, a);
    return true;
  };
  const goHome = (): boolean => {
    const u = at(state.away, below(state.away.length));
    add(u, at(home, u));
    return true;
  };
  const draw = (): boolean => {
    clear();
    const kind = below(8);
    const drawn =
      state.away.length === 0 || kind < 3
        ? goSomewhere(kind)
        : kind < 5
          ? replace()
          : kind === 5
            ? goHome()
            : exchange();
    return drawn && trial.moved.length > 0;
  };
  return { trial, draw };
}

/** The penalty of hosts near the extremes, and the temperature, which both change from stage to stage. */
function penalty(problem: Problem, state: State, scale: readonly number[]) {
  const { home, policies: P, weights, load, open, isOpen } = problem;
  const [t0 = 0, t1 = 0, c0 = 0, c1 = 0] = scale;
  const middle = new Float64Array(P);
  const tau = new Float64Array(P);
  const up = new Float64Array(P);
  const down = new Float64Array(P);
  const mean = new Float64Array(P);
  load.forEach((l, i) => {
    mean[i % P] = at(mean, i % P) + l / home.length;
  });
  const costOf = (h: number, values: Float64Array, from: number): number => {
    if (isOpen[h] !== 1) return 0;
    let sum = 0;
    for (let p = 0; p < P; p++) {
      const e = Math.exp((at(values, from + p) - at(middle, p)) / at(tau, p));
      sum += at(up, p) * e + at(down, p) / e;
    }
    return sum;
  };
  /** Begins a stage; gives its temperature. */
  const begin = (stage: number): number => {
    const x = stage / (STAGES - 1);
    let temperature = 0;
    for (let p = 0; p < P; p++) {
      let low = Number.POSITIVE_INFINITY;
      let high = Number.NEGATIVE_INFINITY;
      for (const h of open) {
        low = Math.min(low, at(state.value, h * P + p));
        high = Math.max(high, at(state.value, h * P + p));
      }
      middle[p] = (low + high) / 2;
      tau[p] = Math.max(1e-6, t0 * (t1 / t0) ** x * (high - low));
      let [a, aa, b, bb] = [0, 0, 0, 0];
      for (const h of open) {
        const e = Math.exp((at(state.value, h * P + p) - at(middle, p)) / at(tau, p));
        a += e;
        aa += e * e;
        b += 1 / e;
        bb += 1 / (e * e);
      }
      up[p] = (at(weights, p) * at(tau, p)) / a;
      down[p] = (at(weights, p) * at(tau, p)) / b;
      temperature += (at(weights, p) * at(mean, p) * (aa / (a * a) + bb / (b * b))) / 2;
    }
    return temperature * (c0 * (c1 / c0) ** x);
  };
  return { costOf, begin };
}

interface Course {
  readonly steps: number;
  readonly random: () => number;
  readonly scale: readonly number[];
}

/**
 * One annealing run on an exponential penalty for hosts near the extremes: `t` of the imbalance is the scale of the exponent, `c` the
 * temperature in typical changes.
 */
function run(problem: Problem, start: Int32Array, { steps, random, scale }: Course) {
  const { hosts, policies: P, budget } = problem;
  const state = new State(problem, start);
  let best = state.combined();
  let relaxed = best;
  let found = Int32Array.from(state.place);
  const keep = (): void => {
    const now = state.combined();
    relaxed = Math.min(relaxed, now);
    if (now >= best - 1e-12 || !hasOrder(problem, state.place)) return;
    best = now;
    found = Int32Array.from(state.place);
  };
  const { costOf, begin } = penalty(problem, state, scale);
  const { trial, draw } = drawer(problem, state, random);
  const { touched, value, moved, to } = trial;
  const cost = new Float64Array(hosts);
  for (let stage = 0; stage < STAGES; stage++) {
    const temperature = begin(stage);
    for (let h = 0; h < hosts; h++) cost[h] = costOf(h, state.value, h * P);
    for (let step = 0, accepted = 0; step < steps / STAGES; step++) {
      if (!draw()) continue;
      let change = 0;
      for (let i = 0; i < touched.length; i++)
        change += costOf(at(touched, i), value, i * P) - at(cost, at(touched, i));
      if (change > 0 && random() >= Math.exp(-change / temperature)) continue;
      const was = moved.map((v) => at(state.place, v));
      moved.forEach((v, i) => {
        state.put(v, at(to, i));
      });
      if (state.away.length > budget || !state.isLegal(moved)) {
        moved.forEach((v, i) => {
          state.put(v, at(was, i));
        });
        continue;
      }
      for (const h of touched) cost[h] = costOf(h, state.value, h * P);
      if (++accepted % Math.max(1, hosts >> 2) === 0) keep();
    }
    keep();
  }
  return { best, relaxed, place: found };
}

/** Run after run until its CPU time is used, some from home and some from the best placement, of different lengths and temperatures. */
function anneal({ problem, seconds, worker }: Task): Reference {
  const used = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1e6;
  };
  const end = used() + seconds;
  const random = seeded(7919 * (worker + 1));
  let best = Number.POSITIVE_INFINITY;
  let relaxed = Number.POSITIVE_INFINITY;
  let place = problem.home;
  const scales = [
    [0.1, 0.02, 0.1, 0.01],
    [0.1, 0.01, 0.3, 0.005],
    [0.1, 0.005, 0.1, 0.003],
  ];
  for (let i = 0; used() < end; i++) {
    const steps = (i % 3 === 0 ? 1000 : 3000) * problem.home.length;
    const start = i % 4 === 3 ? place : problem.home;
    const found = run(problem, start, { steps, random, scale: scales[i % scales.length] as number[] });
    relaxed = Math.min(relaxed, found.relaxed);
    if (found.best >= best) continue;
    best = found.best;
    place = found.place;
  }
  return { best, relaxed };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '60' },
      sizes: { type: 'string', default: '50x500:50,113x2260:113,400x8000:400' },
      seeds: { type: 'string', default: '1,2' },
      references: { type: 'string' },
    },
  });
  const references = new Kept(values.references, referenceSchema);
  const threads = searchThreads(defaultSearchThreads());
  const rows: { cluster: string; excess: number; ms: number }[] = [];
  for (const size of values.sizes.split(','))
    for (const seed of values.seeds.split(',').map(Number))
      for (const [name, make] of [
        ['large', largeCluster],
        ['peer', peerCluster],
      ] as const) {
        const [hosts = 0, vms = 0, maxMigrations = 0] = size.split(/[x:]/).map(Number);
        const file = make(hosts, vms, seed);
        const cluster = clusterOf(file, { maxMigrations });
        planParsed(cluster, { maxMigrations }, threads.carryOut);
        const cpu = cpuMs();
        const began = performance.now();
        const plan = planParsed(cluster, { maxMigrations }, threads.carryOut);
        const ms = performance.now() - began;
        const usedMs = cpuMs() - cpu;
        const title = `${name} ${hosts}x${vms} seed ${seed}, ${plan.moves.length} moves`;
        const { best: reference, relaxed } = await references.get(title, async () => {
          const problem = problemOf(file, plan.moves.length);
          const tasks = Array.from({ length: availableParallelism() }, (_, worker) =>
            inWorker({ problem, seconds: Number(values.seconds), worker }),
          );
          const found = await Promise.all(tasks);
          return {
            best: Math.min(...found.map(({ best }) => best)),
            relaxed: Math.min(...found.map((one) => one.relaxed)),
          };
        });
        const combined = plan.after.combined;
        const row = {
          cluster: title,
          combined,
          reference,
          relaxed,
          excess: combined / reference - 1,
          ms,
          cpuMs: usedMs,
        };
        rows.push(row);
        console.error(JSON.stringify(row));
      }
  const sorted = rows.map((row) => row.excess).sort((a, b) => a - b);
  const [median, worst] = [sorted[sorted.length >> 1], sorted.at(-1)];
  await threads.close();
  const slowestMs = Math.max(...rows.map((row) => row.ms));
  const seconds = Number(values.seconds);
  console.log(JSON.stringify({ bench: 'reference', seconds, median, worst, slowestMs, rows }, null, 2));
}

const referenceSchema = z.strictObject({ best: z.number(), relaxed: z.number() });

const inWorker = (task: Task): Promise<Reference> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: task });
    worker.once('message', resolve);
    worker.once('error', reject);
  });

if (isMainThread) await main();
else parentPort?.postMessage(anneal(workerData as Task));
