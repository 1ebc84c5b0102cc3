import { defaultEngineOptions } from '@kronos/contracts';
import { type ClusterFile, clusterOf, type PlannedCluster, planCluster } from '@kronos/placement';
import type { CarryOut } from '@kronos/placement/runs';
import { imbalanceOfFile } from '@kronos/placement/testing';
import { random as seeded } from '@kronos/projections/testing';
import { largeCluster } from './clusters.ts';
import { cpuMs } from './cpuTime.ts';

/** Clusters that take more than one cycle, and cycles that apply one plan after the other while the load stands still. */
export type CourseFamily = {
  readonly name: string;
  readonly hosts: number;
  readonly restrictToAz?: boolean;
  /** No moves of any number reach the thresholds; else a plan without a limit does. */
  readonly outOfReach?: true;
  readonly make: (seed: number) => ClusterFile;
};

type Vm = { readonly host: number; readonly w: readonly number[]; readonly memMb: number; readonly vcpus: number };

const THRESHOLD = 0.2;

type Shape = {
  readonly hosts: number;
  readonly policies?: readonly string[];
  readonly sizes?: readonly number[];
  readonly zones?: number;
  readonly vms: readonly Vm[];
};

function fileOf({ hosts, policies = ['cpu'], sizes, zones, vms }: Shape): ClusterFile {
  return {
    policies,
    weights: policies.map(() => 1),
    thresholds: policies.map(() => THRESHOLD),
    hosts: Array.from({ length: hosts }, (_, h) => ({
      id: `h${String(h).padStart(4, '0')}`,
      ...(sizes === undefined ? {} : { size: policies.map(() => sizes[h] ?? 1) }),
      ...(zones === undefined ? {} : { az: `zone${h % zones}` }),
    })),
    vms: vms.map(({ host, w, memMb, vcpus }, v) => ({
      id: `vm${String(v).padStart(5, '0')}`,
      host: `h${String(host).padStart(4, '0')}`,
      w,
      memMb,
      vcpus,
    })),
  };
}

const equalVm = (host: number, w: number): Vm => ({ host, w: [w], memMb: 8192, vcpus: 2 });

/** `full` hosts with `each` equal VMs and a load of `load`, and `empty` hosts. */
const equal = (full: number, each: number, load: number, empty: number): ClusterFile =>
  fileOf({ hosts: full + empty, vms: Array.from({ length: full * each }, (_, v) => equalVm(v % full, load / each)) });

const GIB = [4, 4, 8, 8, 8, 16, 16, 32, 64] as const;

/** Full hosts with VMs of 4 to 64 GiB whose load follows their size, until the host has its load; then empty hosts. */
function unequal(
  [full, empty]: readonly [number, number],
  load: number,
  seed: number,
  more: Partial<Shape> = {},
): ClusterFile {
  const random = seeded(seed);
  const vms: Vm[] = [];
  for (let h = 0; h < full; h++)
    for (let left = load * (0.9 + 0.2 * random()); left > 0.005; ) {
      const gib = GIB[Math.floor(random() * GIB.length)] ?? 8;
      const w = Math.min(left, (gib / 640) * (0.4 + 1.2 * random()));
      left -= w;
      vms.push({ host: h, w: [w], memMb: gib * 1024, vcpus: gib / 4 });
    }
  return fileOf({ hosts: full + empty, vms, ...more });
}

/** By allocation: the vCPUs and the memory of the flavors, as parts of a host. */
function allocated(full: number, empty: number, seed: number): ClusterFile {
  const random = seeded(seed);
  const vms: Vm[] = [];
  for (let h = 0; h < full; h++)
    for (let left = 78 + Math.floor(random() * 8); left > 0; ) {
      const vcpus = Math.min(left, [1, 2, 2, 4, 4, 8][Math.floor(random() * 6)] ?? 2);
      const gib = vcpus * ([2, 4, 4, 8][Math.floor(random() * 4)] ?? 4);
      left -= vcpus;
      vms.push({ host: h, w: [vcpus / 128, gib / 640], memMb: gib * 1024, vcpus });
    }
  return fileOf({ hosts: full + empty, policies: ['vcpus', 'memory'], vms });
}

/** Some hosts are twice as hot as the others. */
function hotSpots(hosts: number, hot: number, seed: number): ClusterFile {
  const random = seeded(seed);
  const vms: Vm[] = [];
  for (let h = 0; h < hosts; h++)
    for (let v = 0; v < 20; v++) {
      const gib = GIB[Math.floor(random() * GIB.length)] ?? 8;
      vms.push({ host: h, w: [(h < hot ? 0.8 : 0.4) / 20], memMb: gib * 1024, vcpus: 2 });
    }
  return fileOf({ hosts, vms });
}

function lognormal(hosts: number, count: number, seed: number): ClusterFile {
  const random = seeded(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const vms = Array.from({ length: count }, (): Vm => {
    const gib = GIB[Math.floor(random() * GIB.length)] ?? 8;
    const w = (0.45 * hosts * Math.exp(0.8 * normal() - 0.32)) / count;
    return { host: Math.floor(random() * hosts), w: [w], memMb: gib * 1024, vcpus: gib / 4 };
  });
  return fileOf({ hosts, vms });
}

/** A large VM alone on a host, above the threshold, and small ones that crowd on few of the hosts. */
function oneLargeVm(hosts: number, seed: number): ClusterFile {
  const random = seeded(seed);
  const host = (): number => Math.floor(hosts * random() ** 1.5);
  const vms: Vm[] = Array.from({ length: 9 * hosts }, () => {
    const gib = 2 ** (2 + Math.floor(3 * random()));
    return { host: host(), w: [0.01 + 0.13 * random() ** 1.9], memMb: gib * 1024, vcpus: 2 };
  });
  return fileOf({ hosts, vms: [{ host: 0, w: [0.85], memMb: 65_536, vcpus: 16 }, ...vms] });
}

/** A threshold that no moves reach. */
const tooLow = (file: ClusterFile): ClusterFile => ({ ...file, thresholds: file.policies.map(() => 0.005) });

const unlike = (hosts: number): number[] => Array.from({ length: hosts }, (_, h) => (h % 3 === 0 ? 1 : 0.5));

export const courseFamilies: readonly CourseFamily[] = [
  { name: 'new hosts, small', hosts: 13, make: () => equal(10, 10, 0.6, 3) },
  { name: 'new hosts, equal VMs', hosts: 52, make: () => equal(40, 20, 0.6, 12) },
  { name: 'new hosts, unequal VMs', hosts: 52, make: (seed) => unequal([40, 12], 0.6, seed) },
  { name: 'new hosts, by allocation', hosts: 40, make: (seed) => allocated(30, 10, seed) },
  { name: 'back from maintenance', hosts: 40, make: (seed) => unequal([38, 2], 0.55, seed) },
  { name: 'hot spots', hosts: 40, make: (seed) => hotSpots(40, 10, seed) },
  { name: 'unequal hosts', hosts: 45, make: (seed) => unequal([36, 9], 0.55, seed, { sizes: unlike(45) }) },
  { name: 'zones', hosts: 48, restrictToAz: true, make: (seed) => unequal([36, 12], 0.55, seed, { zones: 3 }) },
  { name: 'lognormal 250x5000', hosts: 250, make: (seed) => lognormal(250, 5000, seed) },
  { name: 'out of reach, one large VM', hosts: 10, outOfReach: true, make: (seed) => oneLargeVm(10, seed) },
  { name: 'out of reach, 6x40', hosts: 6, outOfReach: true, make: (seed) => tooLow(largeCluster(6, 40, seed)) },
  { name: 'out of reach, 20x200', hosts: 20, outOfReach: true, make: (seed) => tooLow(largeCluster(20, 200, seed)) },
  { name: 'out of reach, new hosts', hosts: 52, outOfReach: true, make: () => tooLow(equal(40, 20, 0.6, 12)) },
];

export type Cycles = {
  readonly cycles: number;
  readonly moves: number;
  readonly gib: number;
  /** VMs that moved more than once. */
  readonly twice: number;
  /** The sum over the cycles of the imbalance at their start. */
  readonly area: number;
  /** The combined imbalance at the end, and whether every policy is within its threshold. */
  readonly left: number;
  readonly within: boolean;
  /** The statement of the first decision with a course: the cycles and the moves, including earlier ones, and the combined imbalance at the end. */
  readonly promised: { readonly cycles: number; readonly moves: number; readonly left: number } | null;
  readonly worstCpuMs: number;
};

type Limits = {
  readonly budget: number;
  readonly restrictToAz?: boolean;
  readonly mostCycles: number;
  readonly searchWorkLimit?: number;
  readonly minGain?: number;
  readonly planner?: 'search' | 'greedy';
};

/** Applies one plan after the other until a cycle makes none. */
export function runCycles(
  file: ClusterFile,
  limits: Limits,
  carryOut?: CarryOut,
  watch: (plan: PlannedCluster) => void = () => {},
): Cycles {
  const { budget, restrictToAz = false, mostCycles, planner = 'search' } = limits;
  const { searchWorkLimit = defaultEngineOptions.searchWorkLimit, minGain = defaultEngineOptions.minGain } = limits;
  const options = { maxMigrations: budget, minGain, restrictToAz, searchWorkLimit, planner };
  const memory = new Map(file.vms.map((vm) => [vm.id, (vm.memMb ?? 0) / 1024]));
  const times = new Map<string, number>();
  let [cycles, moves, gib, area, worstCpuMs] = [0, 0, 0, 0, 0];
  let now = file;
  let courseMoves = 0;
  let promised: Cycles['promised'] = null;
  for (; cycles < mostCycles; cycles++) {
    const began = cpuMs();
    const plan: PlannedCluster = planCluster(
      now,
      { ...options, ...(courseMoves > 0 ? { courseMoves } : {}) },
      carryOut,
    );
    worstCpuMs = Math.max(worstCpuMs, cpuMs() - began);
    promised ??= promisedBy(plan, budget, { cycles, moves });
    if (plan.moves.length === 0) break;
    watch(plan);
    courseMoves = plan.course?.reaches === true ? plan.course.moves - plan.moves.length : 0;
    area += plan.before.combined;
    moves += plan.moves.length;
    for (const { vm } of plan.moves) {
      gib += memory.get(vm) ?? 0;
      times.set(vm, (times.get(vm) ?? 0) + 1);
    }
    now = applied(now, plan.moves);
  }
  const { combined, within } = imbalanceOfFile(clusterOf(now, options));
  const twice = [...times.values()].filter((n) => n > 1).length;
  return { cycles, moves, gib, twice, area, left: combined, within, promised, worstCpuMs };
}

function promisedBy(
  { course }: PlannedCluster,
  budget: number,
  made: Pick<Cycles, 'cycles' | 'moves'>,
): Cycles['promised'] {
  if (course === null || course.needed > budget) return null;
  const cycles = made.cycles + Math.ceil(course.moves / budget);
  return { cycles, moves: made.moves + course.moves, left: course.combined };
}

/** The cluster after the moves: a VM's share depends on the size of its host. */
export function applied(
  file: ClusterFile,
  moves: readonly { readonly vm: string; readonly from: string; readonly to: string }[],
): ClusterFile {
  const to = new Map(moves.map((move) => [move.vm, move.to]));
  const sizes = new Map(file.hosts.map((host) => [host.id, host.size]));
  const free = new Map(file.hosts.map((host) => [host.id, host.memFreeMb]));
  const add = (host: string, mb: number): void => {
    const amount = free.get(host);
    if (amount !== undefined) free.set(host, amount + mb);
  };
  const vms = file.vms.map((vm) => {
    const host = to.get(vm.id);
    if (host === undefined || host === vm.host) return vm;
    add(vm.host, vm.memMb ?? 0);
    add(host, -(vm.memMb ?? 0));
    const w = vm.w.map((x, p) => (x * (sizes.get(vm.host)?.[p] ?? 1)) / (sizes.get(host)?.[p] ?? 1));
    return { ...vm, host, w, recentMoves: (vm.recentMoves ?? 0) + 1 };
  });
  const hosts = file.hosts.map((host) => {
    const memFreeMb = free.get(host.id);
    return memFreeMb === undefined ? host : { ...host, memFreeMb };
  });
  return { ...file, vms, hosts };
}
