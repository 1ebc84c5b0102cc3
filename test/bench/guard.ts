import { readFileSync, writeFileSync } from 'node:fs';
import { clusterOf, planCluster, planParsed } from '@kronos/placement';
import { greedyPhase, guidePhase } from '@kronos/placement/testing';
import { z } from 'zod';
import { largeCluster } from './clusters.ts';
import { smallCluster, smallKinds } from './instances.ts';
import { optimum } from './optimum.ts';
import { peerCluster } from './peers/cluster.ts';

/**
 * The planner's figures on a few clusters that take little time, all of them counted and so the same on every machine. The
 * last ones are in recorded.json; a test fails where today's are worse.
 *
 *   node test/bench/guard.ts      records today's figures, with optima proven by HiGHS
 */
const path = new URL('./recorded.json', import.meta.url);

const recordedSchema = z.strictObject({
  /** By instance: the proven minimum of the combined imbalance, and the result of the search. */
  optima: z.record(z.string(), z.strictObject({ optimum: z.number(), search: z.number() })),
  /** By cluster and budget: share of the possible reduction. More is better. */
  shares: z.record(z.string(), z.number()),
  /** Less is better: hosts that pack leaves in use; candidates looked at, as a part of all there are or of half the size. */
  ratios: z.record(z.string(), z.number()),
});

export type Recorded = z.infer<typeof recordedSchema>;

export const recorded = (): Recorded => recordedSchema.parse(JSON.parse(readFileSync(path, 'utf8')));

/** Small instances with a proven optimum. */
export const instances = smallKinds.slice(0, 5).flatMap((kind) =>
  [1, 2].map((seed) => ({
    name: `${kind.name} seed ${seed}`,
    file: smallCluster(kind, seed),
    budget: seed === 1 ? 3 : 5,
  })),
);

export const reached = ({ file, budget }: (typeof instances)[number]): number =>
  planCluster(file, { maxMigrations: budget }).after.combined;

/** Work limit for these plans: a tenth of the default. */
const searchWorkLimit = 2_000_000;

export function shares(): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [hosts, vms, maxMigrations] of [
    [20, 200, 30],
    [50, 500, 50],
    [100, 2000, 100],
  ] as const)
    for (const [name, file] of [
      ['large', largeCluster(hosts, vms, 1)],
      ['peer', peerCluster(hosts, vms, 1)],
    ] as const)
      found[`${name} ${hosts}x${vms}, ${maxMigrations} moves`] =
        planCluster(file, { maxMigrations, searchWorkLimit }).shareOfPossible ?? 1;
  // A long run of the search has another start than the short ones, and many moves make the most of it.
  found['peer 100x2000, 381 moves, default work'] =
    planCluster(peerCluster(100, 2000, 1), { maxMigrations: 381 }).shareOfPossible ?? 1;
  return found;
}

export function ratios(): Record<string, number> {
  const budget = 200;
  const cluster = clusterOf(largeCluster(100, 2000, 1), { maxMigrations: budget });
  const twice = clusterOf(largeCluster(200, 4000, 1), { maxMigrations: budget });
  const all = (phase: typeof guidePhase): number => {
    const { moves, evaluated } = phase(cluster, budget);
    return evaluated / (moves * cluster.H * cluster.V);
  };
  const file = peerCluster(100, 2000, 1);
  const options = { maxMigrations: 500, mode: 'pack', capacityThreshold: 1, packReachCycles: 1 } as const;
  const packed = planParsed(clusterOf(file, options), options);
  const place = new Map(file.vms.map((vm) => [vm.id, vm.host]));
  for (const move of packed.moves) place.set(move.vm, move.to);
  return {
    'greedy looks at, of all candidates': all(greedyPhase),
    'the guide looks at, of all candidates': all(guidePhase),
    'greedy on twice the cluster': greedyPhase(twice, budget).evaluated / greedyPhase(cluster, budget).evaluated,
    'the guide on twice the cluster': guidePhase(twice, budget).evaluated / guidePhase(cluster, budget).evaluated,
    'pack leaves in use, of all hosts': new Set(place.values()).size / file.hosts.length,
  };
}

if (import.meta.main) {
  const optima: Recorded['optima'] = {};
  for (const instance of instances) {
    const best = await optimum(instance.file, instance.budget, 60);
    if (best.proven) optima[instance.name] = { optimum: best.combined, search: reached(instance) };
  }
  writeFileSync(path, `${JSON.stringify({ optima, shares: shares(), ratios: ratios() }, null, 2)}\n`);
}
