import { type ClusterFile, planCluster } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { applied } from '../bench/courses.ts';
import { lowestCost } from '../bench/optimum.ts';

const NIGHTLY = process.env.KRONOS_NIGHTLY === '1';
/** By seed. A plan starts above the threshold and aims at the target: where both are equal, cycles end at the target. */
const TARGETS = [0.2, 0.1, 0.04, 0.02];
const targetOf = (seed: number): number => TARGETS[seed % TARGETS.length] ?? 0.2;
const OVERHEAD_GIB = 8;

/** Hosts with few VMs of unlike loads and sizes, little free memory, and a group: some have no way to the target. */
function clusterOf(seed: number): ClusterFile {
  const random = seeded(7919 * seed);
  const hosts = 3 + Math.floor(random() * 3);
  const vms = Array.from({ length: 2 * hosts + Math.floor(random() * 4) }, (_, v) => ({
    id: `vm${v}`,
    host: `h${Math.floor(random() * hosts)}`,
    w: [Math.round(1000 * (0.05 + 0.25 * random())) / 1000],
    memMb: 1024 * 2 ** Math.floor(random() * 4),
  }));
  const apart = vms.filter((vm, v) => vms.findIndex(({ host }) => host === vm.host) === v).slice(0, 2);
  return {
    policies: ['cpu'],
    weights: [1],
    thresholds: [targetOf(seed)],
    targets: [targetOf(seed)],
    hosts: Array.from({ length: hosts }, (_, h) => ({ id: `h${h}`, memFreeMb: 1024 * Math.floor(random() * 20) })),
    vms,
    groups: [{ id: 'g', policy: 'anti-affinity', vms: apart.map(({ id }) => id) }],
  };
}

const planOf = (file: ClusterFile, maxMigrations: number) => planCluster(file, { maxMigrations, minGain: 0 });

/** Cycles until one moves nothing. A budget below the smallest exchange is raised to what the decision asks for. */
function cycles(file: ClusterFile, first: number) {
  let [now, budget] = [file, first];
  const left: number[] = [];
  const imbalances: number[] = [];
  const moved = new Map<string, number>();
  for (let cycle = 0; cycle < 40; cycle++) {
    const plan = planOf(now, budget);
    if (plan.moves.length === 0) {
      const ended = plan.course === null || plan.course.needed <= budget;
      if (ended) return { left, imbalances, moved, imbalance: plan.before.combined };
      budget = plan.course.needed;
      continue;
    }
    left.push(plan.course?.moves ?? plan.moves.length);
    imbalances.push(plan.after.combined);
    for (const { vm } of plan.moves) moved.set(vm, (moved.get(vm) ?? 0) + 1);
    now = applied(now, plan.moves);
  }
  throw new Error(`cycles without an end: ${left.join(', ')}`);
}

const falls = (values: readonly number[]): boolean => values.every((x, i) => i === 0 || x < (values[i - 1] ?? 0));

describe('cycles with a small budget, beside an exact solver', () => {
  /** In 50, 55, 130 and 170, the cheapest moves have no order, and few others reach the target. In 2, no moves reach it. */
  const seeds = NIGHTLY ? Array.from({ length: 200 }, (_, i) => i + 1) : [1, 2, 130];
  it('end at the targets where the solver reaches them, each one shortens the course, and no VM moves twice; elsewhere no cycle raises the imbalance', async () => {
    const found = { reachable: 0, unreachable: 0 };
    for (const seed of seeds) {
      const file = clusterOf(seed);
      const costs = file.vms.map(({ memMb = 0 }) => OVERHEAD_GIB + memMb / 1024);
      const lowest = await lowestCost(file, { targets: [targetOf(seed)], costs }, 20);
      if (lowest === 'unknown') continue;
      const { imbalance, imbalances, left, moved } = cycles(file, 1 + (seed % 3));
      const ends = imbalance <= targetOf(seed) + 1e-9;
      expect({ seed, ends }).toEqual({ seed, ends: lowest !== null });
      const twice = [...moved].filter(([, times]) => times > 1);
      if (ends) {
        found.reachable++;
        expect({ seed, twice, left, isShorter: falls(left) }).toEqual({ seed, twice: [], left, isShorter: true });
      } else {
        found.unreachable++;
        const rises = imbalances.some((x, i) => x > (imbalances[i - 1] ?? Number.POSITIVE_INFINITY) + 1e-9);
        expect({ seed, imbalances, rises }).toEqual({ seed, imbalances, rises: false });
      }
    }
    expect(Math.min(found.reachable, found.unreachable)).toBeGreaterThan(seeds.length / 8);
  });
});
