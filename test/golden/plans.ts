import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { canonicalJson } from '@kronos/contracts';
import { type ClusterFile, decide, type PlannedCluster, planCluster, plannerVersion } from '@kronos/placement';
import { decideInput } from '@kronos/placement/testing';
import { z } from 'zod';
import { largeCluster } from '../bench/clusters.ts';
import { drawnCluster } from '../property/drawnCluster.ts';
import { drawnEvacuation } from '../property/drawnEvacuation.ts';
import { goldens } from './golden.ts';

/** Number of drawn clusters. Together they use every pass and every kind of rule. */
const DRAWN = 60;
/** Large enough for the search to anneal, and the last one to follow guides. */
const LARGE = [
  { hosts: 24, vms: 240, budget: 8, seed: 1, searchWorkLimit: 3_000_000 },
  { hosts: 60, vms: 700, budget: 12, seed: 1, searchWorkLimit: 3_000_000 },
  { hosts: 110, vms: 900, budget: 8, seed: 2, searchWorkLimit: 300_000 },
];
/** A large one whose hosts have next to no free memory: the search also looks for plans that need an order. */
const TIGHT = { hosts: 16, vms: 160, budget: 12, seed: 1, searchWorkLimit: 2_000_000, freeMemory: 0.05 };
/** Drawn clusters of other scales, and evacuations: the digest is of all plans of a batch. The largest scale follows guides. */
const BATCH = 20;
const SCALED = [
  { scale: 2, batches: 8, searchWorkLimit: 100_000 },
  { scale: 4, batches: 1, searchWorkLimit: 200_000 },
  { scale: 24, batches: 1, searchWorkLimit: 200_000 },
];
const EVACUATION_BATCHES = 18;

/** By name of the input: a digest of the decision or the plan that this planner makes of it. */
export type PlanSet = Readonly<Record<string, string>>;

const planSetSchema = z.record(z.string(), z.string());
const releasedSchema = z.record(z.string(), z.string());

const read = <T>(name: string, schema: z.ZodType<T>): T | null => {
  const file = new URL(`plans/${name}.json`, import.meta.url);
  return existsSync(file) ? schema.parse(JSON.parse(readFileSync(file, 'utf8'))) : null;
};

/** Release -> its planner version. */
export const released = (): Readonly<Record<string, string>> => read('released', releasedSchema) ?? {};

export const setFile = (version: string): URL => new URL(`plans/planner-${version}.json`, import.meta.url);

export const recordedSet = (version: string): PlanSet | null => read(`planner-${version}`, planSetSchema);

/** The digests of this planner for every input of the set. */
export function planSet(): PlanSet {
  const set: Record<string, string> = {};
  for (const { file, input } of goldens())
    for (const planner of ['search', 'greedy'] as const)
      set[`${file} ${planner}`] = digest(decide({ ...input, options: { ...input.options, planner } }));
  for (let seed = 1; seed <= DRAWN; seed++) {
    const { file, budget, restrictToAz } = drawnCluster(seed);
    set[`drawn ${seed}`] = planned(planCluster(file, { maxMigrations: budget, restrictToAz }));
  }
  for (const { hosts, vms, budget, seed, searchWorkLimit } of LARGE)
    set[`${hosts} hosts, ${vms} VMs`] = planned(
      planCluster(largeCluster(hosts, vms, seed), { maxMigrations: budget, searchWorkLimit }),
    );
  set[`${TIGHT.hosts} hosts, ${TIGHT.vms} VMs, little memory`] = planned(
    planCluster(tightCluster(), { maxMigrations: TIGHT.budget, searchWorkLimit: TIGHT.searchWorkLimit }),
  );
  for (const { scale, batches, searchWorkLimit } of SCALED)
    batched(set, `drawn ${scale} times as large`, batches, (seed) => {
      const { file, budget, restrictToAz } = drawnCluster(seed, scale);
      return planned(planCluster(file, { maxMigrations: budget, restrictToAz, searchWorkLimit }));
    });
  batched(set, 'drawn evacuations', EVACUATION_BATCHES, (seed) => digest(decide(decideInput(drawnEvacuation(seed)))));
  return set;
}

function tightCluster(): ClusterFile {
  const file = largeCluster(TIGHT.hosts, TIGHT.vms, TIGHT.seed);
  const hosts = file.hosts.map((host) => ({
    ...host,
    memFreeMb: Math.round((host.memFreeMb ?? 0) * TIGHT.freeMemory),
  }));
  return { ...file, hosts };
}

function batched(set: Record<string, string>, name: string, batches: number, of: (seed: number) => string): void {
  for (let first = 1; first <= batches * BATCH; first += BATCH) {
    const digests = Array.from({ length: BATCH }, (_, i) => of(first + i));
    set[`${name}, ${first} to ${first + BATCH - 1}`] = digest(digests);
  }
}

const planned = (plan: PlannedCluster): string => digest(plan);

const digest = (value: unknown): string => createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 16);

/** The remedy for plans that differ from the recorded ones; null if they are the same. */
export function verdict(
  recorded: PlanSet | null,
  made: PlanSet,
  releases: Readonly<Record<string, string>>,
): string | null {
  const write = 'npm run golden:plans';
  if (recorded === null) return `planner version ${plannerVersion} has no plans on record: run ${write}`;
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(made)])].sort();
  const differing = names.filter((name) => recorded[name] !== made[name]);
  if (differing.length === 0) return null;
  const some = differing.slice(0, 5).join('; ');
  const what = `planner version ${plannerVersion} now decides otherwise: ${differing.length} of ${names.length} inputs (${some})`;
  const release = Object.entries(releases).find(([, version]) => version === plannerVersion)?.[0];
  return release === undefined
    ? `${what}. If that is meant, run ${write} and commit the file with the change`
    : `${what}. Kronos ${release} was released with this version, and its decisions must replay: raise plannerVersion in libs/placement/src/version.ts, then run ${write}`;
}
