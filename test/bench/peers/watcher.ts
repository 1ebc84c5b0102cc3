import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ClusterFile } from '@kronos/placement';
import { z } from 'zod';
import type { Placement } from './cluster.ts';

const run = promisify(execFile);

/** The folder with Watcher's packages and those that it needs, or null where there is none. */
export function findWatcher(): string | null {
  const root = process.env.KRONOS_BENCH_WATCHER;
  if (root === undefined) return null;
  const packages = join(root, 'usr/lib/python3/dist-packages');
  return existsSync(join(packages, 'watcher')) ? packages : null;
}

const answer = z.object({ seconds: z.number(), moves: z.number(), placement: z.record(z.string(), z.string()) });

/** One of Watcher's strategies on the cluster: its own time, without starting Python and reading the file. */
export async function watcher(
  { packages, directory }: { readonly packages: string; readonly directory: string },
  file: ClusterFile,
  strategy: 'stabilization' | 'consolidation',
  limitSeconds: number,
): Promise<{ seconds: number; moves: number; placement: Placement }> {
  const path = join(directory, 'cluster.json');
  writeFileSync(path, JSON.stringify(file));
  const { stdout } = await run(
    process.env.KRONOS_BENCH_PYTHON ?? '/usr/bin/python3',
    ['-W', 'ignore', join(import.meta.dirname, 'watcher_strategy.py'), path, strategy],
    { env: { ...process.env, PYTHONPATH: packages }, timeout: limitSeconds * 1000, maxBuffer: 2 ** 26 },
  );
  const { seconds, moves, placement } = answer.parse(JSON.parse(stdout));
  return { seconds, moves, placement: new Map(Object.entries(placement)) };
}
