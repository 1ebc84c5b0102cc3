import { expect, it } from 'vitest';
import { defaultAsked } from './options.ts';
import { simulate } from './simulation.ts';

/** Small and short, so that all of them together take some twenty seconds. */
const short = { ...defaultAsked, hosts: 5, vms: 20, days: 0.04 };

it('the same seed gives the same log, byte by byte', async () => {
  const first = await simulate({ ...short, seed: 11 });
  const second = await simulate({ ...short, seed: 11 });
  expect(second.digest).toBe(first.digest);
  expect(first.counts['migration.completed']).toBeGreaterThan(0);
});

it('another seed gives another log', async () => {
  const [one, other] = [await simulate({ ...short, seed: 12 }), await simulate({ ...short, seed: 13 })];
  expect(other.digest).not.toBe(one.digest);
});

// `npm run simulate -- --seed N --days 0.04 --hosts 5 --vms 20` runs one of them again.
it.each([1, 2, 3, 4])('nothing that must always hold is broken with seed %i', async (seed) => {
  const { breaches } = await simulate({ ...short, seed }, { stopAtBreach: true });
  expect(breaches.map(({ rule, text }) => `${rule}: ${text}`)).toEqual([]);
});
