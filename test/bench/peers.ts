import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ClusterFile, clusterOf, type PlanClusterOptions, parseClusterFile, planParsed } from '@kronos/placement';
import { cpuMs, cpuTime } from './cpuTime.ts';
import { emptyHosts, type Placement, peerCluster, placementOf, spreadOf } from './peers/cluster.ts';
import { findHbal, hbal, hbalScore } from './peers/hbal.ts';
import { findWatcher, watcher } from './peers/watcher.ts';

/**
 * Kronos beside Ganeti's hbal and OpenStack Watcher on the same clusters, with no more moves than they make. Prints JSON.
 *
 *   node test/bench/peers.ts [--seeds 1,2,3] [--hbal 50x500] [--watcher 100x2000] [--limit 600] [--only hbal|watcher]
 *   node test/bench/peers.ts --only hbal FILE.json ...      on given clusters of 64-core hosts with 512 GiB
 *
 * A peer that is not there is left out, and the output says how to get it. Times are those of the peers' own runs; Kronos
 * plans on a parsed cluster, after a second to warm up. Seconds of hbal and Kronos are of CPU. `command` is `kronos plan --cluster`, with its start.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '1,2,3' },
    hbal: { type: 'string', default: '50x500' },
    watcher: { type: 'string', default: '100x2000' },
    limit: { type: 'string', default: '600' },
    only: { type: 'string' },
  },
});
const limitSeconds = Number(values.limit);
const directory = mkdtempSync(join(tmpdir(), 'kronos-bench-peers-'));

/** A search with so little work is done in a thousandth of hbal's time, and in a two-hundredth of Watcher's. */
const FAST = { hbal: 600_000, watcher: 400_000 };
/** A planner runs for days: what it plans in its first second, while the compiler still works, is not timed. */
const WARM_UP_SECONDS = 1;
/** Number of plans after that; the fastest counts. */
const RUNS = 5;

function clusters(size: string): [name: string, file: ClusterFile][] {
  if (positionals.length > 0)
    return positionals.map((path) => [path, parseClusterFile(JSON.parse(readFileSync(path, 'utf8')))]);
  const [hosts = 0, vms = 0] = size.split('x').map(Number);
  return values.seeds.split(',').map((seed) => [`${size} seed ${seed}`, peerCluster(hosts, vms, Number(seed))]);
}

const main = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));

/** CPU seconds of `kronos plan --cluster`, start and all. */
async function cold(file: ClusterFile, moves: number): Promise<number> {
  const path = join(directory, 'cluster.json');
  writeFileSync(path, JSON.stringify(file));
  const args = [main, 'plan', '--cluster', path, '--max-migrations', String(moves), '-o', 'json'];
  return (await cpuTime(process.execPath, args, limitSeconds)).seconds;
}

type Planned = { seconds: number; moves: number; placement: Placement };

function kronos(file: ClusterFile, options: PlanClusterOptions): Planned {
  const cluster = clusterOf(file, options);
  let plan = planParsed(cluster, options);
  const began = cpuMs();
  while (cpuMs() - began < 1000 * WARM_UP_SECONDS) plan = planParsed(cluster, options);
  let seconds = Number.POSITIVE_INFINITY;
  for (let i = 0; i < RUNS; i++) {
    const cpu = cpuMs();
    plan = planParsed(cluster, options);
    seconds = Math.min(seconds, (cpuMs() - cpu) / 1000);
  }
  const placement = placementOf(file);
  for (const move of plan.moves) placement.set(move.vm, move.to);
  return { seconds, moves: plan.moves.length, placement };
}

/** Compares two plans: Kronos' spread as a part of the peer's, and the peer's time as a multiple of Kronos'. */
const versus = (file: ClusterFile, ours: Planned, theirs: Planned) => ({
  seconds: ours.seconds,
  moves: ours.moves,
  spread: spreadOf(file, ours.placement),
  spreadRatio: spreadOf(file, ours.placement) / spreadOf(file, theirs.placement),
  timesFaster: theirs.seconds / ours.seconds,
});

async function besideHbal(command: string) {
  const rows: unknown[] = [];
  for (const [name, file] of clusters(values.hbal)) {
    const theirs = await hbal(command, directory, file, limitSeconds);
    const row = async (searchWorkLimit?: number) => {
      const more = searchWorkLimit === undefined ? {} : { searchWorkLimit };
      const ours = kronos(file, { maxMigrations: theirs.moves, ...more });
      return { ...versus(file, ours, theirs), hbalScore: await hbalScore(command, directory, file, ours.placement) };
    };
    const { seconds, moves, score } = theirs;
    rows.push({
      cluster: name,
      spreadBefore: spreadOf(file, placementOf(file)),
      hbal: { seconds, moves, spread: spreadOf(file, theirs.placement), hbalScore: score },
      kronosFast: await row(FAST.hbal),
      kronos: await row(),
      command: { seconds: await cold(file, moves) },
    });
  }
  return rows;
}

async function besideWatcher(packages: string) {
  const rows: unknown[] = [];
  for (const [name, file] of clusters(values.watcher)) {
    const stabilization = await watcher({ packages, directory }, file, 'stabilization', limitSeconds);
    const consolidation = await watcher({ packages, directory }, file, 'consolidation', limitSeconds);
    const maxMigrations = stabilization.moves;
    const packed = kronos(file, {
      maxMigrations: consolidation.moves,
      mode: 'pack',
      capacityThreshold: 1,
      packReachCycles: 1,
    });
    rows.push({
      cluster: name,
      spreadBefore: spreadOf(file, placementOf(file)),
      stabilization: {
        watcher: {
          seconds: stabilization.seconds,
          moves: stabilization.moves,
          spread: spreadOf(file, stabilization.placement),
        },
        kronosFast: versus(file, kronos(file, { maxMigrations, searchWorkLimit: FAST.watcher }), stabilization),
        kronos: versus(file, kronos(file, { maxMigrations }), stabilization),
      },
      consolidation: {
        watcher: {
          seconds: consolidation.seconds,
          moves: consolidation.moves,
          emptyHosts: emptyHosts(file, consolidation.placement),
        },
        kronos: {
          seconds: packed.seconds,
          moves: packed.moves,
          emptyHosts: emptyHosts(file, packed.placement),
          movesRatio: packed.moves / consolidation.moves,
          timesFaster: consolidation.seconds / packed.seconds,
        },
      },
    });
  }
  return rows;
}

try {
  const command = values.only === 'watcher' ? null : findHbal();
  const packages = values.only === 'hbal' ? null : findWatcher();
  console.log(
    JSON.stringify(
      {
        bench: 'peers',
        hbal:
          command === null
            ? 'left out: install the Debian package ganeti-htools, or name the command in KRONOS_BENCH_HBAL'
            : await besideHbal(command),
        watcher:
          packages === null
            ? 'left out: unpack the Debian package python3-watcher and what it depends on with dpkg -x into one folder, and name it in KRONOS_BENCH_WATCHER'
            : await besideWatcher(packages),
      },
      null,
      2,
    ),
  );
} finally {
  rmSync(directory, { recursive: true, force: true });
}
