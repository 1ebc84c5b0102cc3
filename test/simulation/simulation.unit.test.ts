import { beforeAll, expect, it } from 'vitest';
import { defaultAsked } from './asked.ts';
import { simulate } from './simulation.ts';

/** Small and short: a run takes some seconds. */
const short = { ...defaultAsked, hosts: 5, vms: 20, days: 0.04 };
/** Many moves are in the second; the first runs twice, and takes little. */
const SEEDS = [3, 7] as const;
const run = (seed: number) => simulate({ ...short, seed }, { stopAtBreach: true });
const runs = new Map<number, Awaited<ReturnType<typeof run>>>();
beforeAll(async () => {
  for (const seed of SEEDS) runs.set(seed, await run(seed));
});

it('the same seed gives the same log, byte by byte', async () => {
  const [first, second] = [runs.get(SEEDS[0]), await run(SEEDS[0])];
  expect(second.digest).toBe(first?.digest);
  expect(second.counts['migration.completed']).toBeGreaterThan(0);
});

it('another seed gives another log', () => {
  expect(new Set([...runs.values()].map(({ digest }) => digest)).size).toBe(SEEDS.length);
});

// `npm run simulate -- --seed N --days 0.04 --hosts 5 --vms 20` runs one of them again.
it.each(SEEDS)('nothing that must always hold is broken with seed %i', (seed) => {
  expect(runs.get(seed)?.breaches.map(({ rule, text }) => `${rule}: ${text}`)).toEqual([]);
});

// `npm run simulate -- --inventory MODE --seed 7 --days 0.04 --hosts 5 --vms 20` runs one of them again.
it.each(['changes', 'notifications'] as const)(
  'the inventory of the mode %s is right, and only of trusted hosts',
  async (inventory) => {
    const { breaches, counts } = await simulate({ ...short, seed: 7, inventory }, { stopAtBreach: true });
    expect(breaches.map(({ rule, text }) => `${rule}: ${text}`)).toEqual([]);
    expect(counts[`from ${inventory}`]).toBeGreaterThan(0);
  },
);
