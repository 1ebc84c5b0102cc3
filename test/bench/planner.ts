import { readFileSync } from 'node:fs';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { searchThreads } from '@kronos/cycle';
import { type ClusterFile, clusterOf, type PlannedCluster, parseClusterFile, planParsed } from '@kronos/placement';
import type { CarryOut } from '@kronos/placement/runs';
import { greedyPhase, guidePhase } from '@kronos/placement/testing';
import { largeCluster } from './clusters.ts';
import { naiveEvaluationsPerSecond } from './naive.ts';

/**
 * Plan time and quality by size: greedy, one guide and the full search apart, without parsing, beside the naive evaluator of
 * the same run; and what twice as many hosts and VMs cost. Prints JSON.
 *
 *   node test/bench/planner.ts [--sizes 20x200,113x15769] [--moves 1000] [--seed 1] [--runs 3] [--threads 1,2] [--doubling 500x10000]
 *   node test/bench/planner.ts --sizes 50x500 --moves 5 --threshold 0.1      a course of ten plans
 *   node test/bench/planner.ts --moves 100 --file CLUSTER.json
 *
 * Times are the best of the runs, after one to warm up; `cpuMs` is what the process used, compiling and collecting included. `onThreads` has the
 * full search on as many threads: `callerCpuMs` is of the thread that asked for the plan alone.
 */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '20x200,113x15769,400x8000,1000x20000,5000x50000' },
    moves: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '3' },
    threads: { type: 'string', default: '1,2' },
    doubling: { type: 'string', default: '500x10000' },
    threshold: { type: 'string' },
    file: { type: 'string' },
  },
});
const maxMigrations = Number(values.moves);

const msOf = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

/** The best of some runs, in ms. */
function timed<T>(run: () => T): { result: T; ms: number; cpuMs: number; callerCpuMs: number } {
  const worst = Number.POSITIVE_INFINITY;
  let best = { result: run(), ms: worst, cpuMs: worst, callerCpuMs: worst };
  for (let i = 0; i < Number(values.runs); i++) {
    const cpu = process.cpuUsage();
    const callerCpu = process.threadCpuUsage();
    const started = performance.now();
    const result = run();
    best = {
      result,
      ms: Math.min(best.ms, performance.now() - started),
      cpuMs: Math.min(best.cpuMs, msOf(process.cpuUsage(cpu))),
      callerCpuMs: Math.min(best.callerCpuMs, msOf(process.threadCpuUsage(callerCpu))),
    };
  }
  return best;
}

/** The full search on several threads. */
async function onThreads(threads: number, search: (carryOut: CarryOut) => PlannedCluster, plan: PlannedCluster) {
  const threadsOfRuns = searchThreads(threads);
  const { result, ms, cpuMs, callerCpuMs } = timed(() => search(threadsOfRuns.carryOut));
  await threadsOfRuns.close();
  return { threads, ms, cpuMs, callerCpuMs, samePlan: isDeepStrictEqual(result, plan) };
}

async function measure(name: string, file: ClusterFile) {
  const options = { maxMigrations };
  const cluster = clusterOf(file, options);
  const phase = (run: typeof guidePhase) => {
    const { result, ms, cpuMs } = timed(() => run(cluster, maxMigrations));
    return { ms, cpuMs, ...result, evaluationsPerSecond: Math.round((1000 * result.evaluated) / cpuMs) };
  };
  const greedy = phase(greedyPhase);
  const guide = phase(guidePhase);
  const { result: plan, ms, cpuMs } = timed(() => planParsed(cluster, options));
  const search = (carryOut: CarryOut) => planParsed(cluster, options, carryOut);
  const threaded: Awaited<ReturnType<typeof onThreads>>[] = [];
  for (const threads of values.threads.split(',').map(Number)) threaded.push(await onThreads(threads, search, plan));
  const naive = naiveEvaluationsPerSecond(file, Math.max(200, Math.floor(2_000_000 / file.hosts.length)));
  return {
    cluster: name,
    hosts: file.hosts.length,
    vms: file.vms.length,
    before: plan.before.combined,
    lowerBound: plan.lowerBound,
    greedy,
    guide,
    search: {
      ms,
      cpuMs,
      moves: plan.moves.length,
      /** Moves of the course, of which the plan is the first part. */
      course: plan.course?.moves ?? null,
      combined: plan.after.combined,
      shareOfPossible: plan.shareOfPossible,
      evaluated: plan.stats.candidatesEvaluated,
      endedBy: plan.stats.endedBy,
    },
    onThreads: threaded,
    naiveEvaluationsPerSecond: Math.round(naive),
    guideTimesNaive: Math.round(guide.evaluationsPerSecond / naive),
    // A round of the specification's greedy decides over every pair of a VM and a host; the naive evaluator looks at each.
    greedyTimesNaive: Math.round((1000 * greedy.moves * file.vms.length * file.hosts.length) / greedy.cpuMs / naive),
    heapMb: Math.round(process.memoryUsage().heapUsed / 2 ** 20),
    peakRssMb: Math.round(process.resourceUsage().maxRSS / 1024),
  };
}

const sizeOf = (size: string): [hosts: number, vms: number] => {
  const [hosts = 0, vms = 0] = size.split('x').map(Number);
  return [hosts, vms];
};
function seeded(hosts: number, vms: number): ClusterFile {
  const file = largeCluster(hosts, vms, Number(values.seed));
  const { threshold } = values;
  return threshold === undefined ? file : { ...file, thresholds: file.policies.map(() => Number(threshold)) };
}

/** The cost of twice the hosts and VMs with as many moves, as ratios to the cost of `size`. */
function doubling(size: string) {
  const [hosts, vms] = sizeOf(size);
  const time = (file: ClusterFile) => {
    const cluster = clusterOf(file, { maxMigrations });
    return {
      greedy: timed(() => greedyPhase(cluster, maxMigrations)).cpuMs,
      guide: timed(() => guidePhase(cluster, maxMigrations)).cpuMs,
      search: timed(() => planParsed(cluster, { maxMigrations })).cpuMs,
    };
  };
  const once = time(seeded(hosts, vms));
  const twice = time(seeded(2 * hosts, 2 * vms));
  return {
    from: `${hosts}x${vms}`,
    to: `${2 * hosts}x${2 * vms}`,
    greedy: twice.greedy / once.greedy,
    guide: twice.guide / once.guide,
    search: twice.search / once.search,
  };
}

const clusters: [string, ClusterFile][] =
  values.file === undefined
    ? values.sizes.split(',').map((size) => [size, seeded(...sizeOf(size))])
    : [[values.file, parseClusterFile(JSON.parse(readFileSync(values.file, 'utf8')))]];

const sizes: Awaited<ReturnType<typeof measure>>[] = [];
for (const [name, file] of clusters) sizes.push(await measure(name, file));
console.log(
  JSON.stringify(
    {
      bench: 'planner',
      maxMigrations,
      seed: Number(values.seed),
      sizes,
      ...(values.file === undefined ? { doubling: doubling(values.doubling) } : {}),
    },
    null,
    2,
  ),
);
