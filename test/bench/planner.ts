import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type ClusterFile, clusterOf, type PlannedCluster, parseClusterFile, planParsed } from '@kronos/placement';
import { largeCluster } from './clusters.ts';
import { naiveEvaluationsPerSecond } from './naive.ts';

/**
 * Plan time and quality by size, beside greedy and the naive evaluator of the same run, without parsing. Prints JSON.
 *
 *   node test/bench/planner.ts [--sizes 20x200,113x15769] [--moves 1000] [--seed 1] [--file CLUSTER.json]
 *
 * Guide phase: the search with a work limit that leaves nothing for the local search.
 */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '20x200,113x15769,400x8000,1000x20000,5000x50000' },
    moves: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    file: { type: 'string' },
  },
});
const maxMigrations = Number(values.moves);

/** Enough for the guides of any size, as far as they are not cut; the local search gets what little is left. */
const GUIDES_ONLY = 1_000_000;

function timed(run: () => PlannedCluster) {
  const cpu = process.cpuUsage();
  const started = performance.now();
  const planned = run();
  return {
    ms: performance.now() - started,
    cpuMs: process.cpuUsage(cpu).user / 1000,
    moves: planned.moves.length,
    combined: planned.after.combined,
    share: planned.shareOfPossible,
    evaluated: planned.stats.candidatesEvaluated,
    endedBy: planned.stats.endedBy,
  };
}

function measure(name: string, file: ClusterFile) {
  const cluster = clusterOf(file, { maxMigrations });
  const plan = (planner: 'search' | 'greedy', searchWorkLimit?: number) =>
    timed(() =>
      planParsed(cluster, { maxMigrations, planner, ...(searchWorkLimit === undefined ? {} : { searchWorkLimit }) }),
    );
  // Once to warm up, so that the first size does not pay for the compiler.
  plan('search', GUIDES_ONLY);
  const greedy = plan('greedy');
  const guides = plan('search', GUIDES_ONLY);
  const search = plan('search');
  const naive = naiveEvaluationsPerSecond(file, Math.max(20, Math.floor(2_000_000 / file.hosts.length / 20)));
  return {
    cluster: name,
    hosts: file.hosts.length,
    vms: file.vms.length,
    before: planParsed(cluster, { maxMigrations: 0, planner: 'greedy' }).before.combined,
    greedy,
    guides,
    search,
    naiveEvaluationsPerSecond: Math.round(naive),
    guideEvaluationsPerSecond: Math.round(guides.evaluated / (guides.cpuMs / 1000)),
    heapMb: Math.round(process.memoryUsage().heapUsed / 2 ** 20),
    peakRssMb: Math.round(process.resourceUsage().maxRSS / 1024),
  };
}

const clusters: [string, ClusterFile][] =
  values.file === undefined
    ? values.sizes.split(',').map((size) => {
        const [hosts = 0, vms = 0] = size.split('x').map(Number);
        return [size, largeCluster(hosts, vms, Number(values.seed))];
      })
    : [[values.file, parseClusterFile(JSON.parse(readFileSync(values.file, 'utf8')))]];

console.log(
  JSON.stringify(
    {
      bench: 'planner',
      maxMigrations,
      seed: Number(values.seed),
      sizes: clusters.map(([name, file]) => measure(name, file)),
    },
    null,
    2,
  ),
);
