import { beforeAll, expect, it } from 'vitest';
import { type CellsReport, simulateCells } from './cells.ts';

const SEEDS = [2, 3, 4];
const HOURS = 0.5;
const run = (seed: number) => simulateCells({ seed, hours: HOURS });
const runs = new Map<number, CellsReport>();
beforeAll(async () => {
  for (const seed of SEEDS) runs.set(seed, await run(seed));
});

// `npm run simulate -- --cells --seed N --days 0.0208333` runs one of them again.
it.each(SEEDS)('nothing that must always hold of moves between cells is broken with seed %i', (seed) => {
  expect(runs.get(seed)?.breaches.map(({ rule, text }) => `${rule}: ${text}`)).toEqual([]);
});

it('the same seed gives the same log, byte by byte', async () => {
  expect((await run(3)).digest).toBe(runs.get(3)?.digest);
});

it('moves are confirmed and reverted by Kronos and by others', () => {
  const total = (name: string) => [...runs.values()].reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);
  for (const name of ['migrate', 'resize', 'confirmResize', 'revertResize', 'migration.completed', 'migration.failed'])
    expect(total(name), name).toBeGreaterThan(0);
});
