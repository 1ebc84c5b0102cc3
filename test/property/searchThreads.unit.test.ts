import { searchThreads } from '@kronos/cycle';
import { decide, planCluster } from '@kronos/placement';
import type { CarryOut } from '@kronos/placement/runs';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { largeCluster } from '../bench/clusters.ts';
import { caseArb } from './arbitraries.ts';
import { RUNS, SEED } from './runs.ts';

vi.setConfig({ testTimeout: 600_000 });

/** However little work there is, it is handed out. */
const threads = [1, 2, 3].map((count) => searchThreads(count, 0));
afterAll(async () => void (await Promise.all(threads.map((one) => one.close()))));

describe('on any number of threads', () => {
  it('a decision is the same, byte for byte', () => {
    let shared = 0;
    fc.assert(
      fc.property(caseArb({ plain: true, options: { searchWorkLimit: 1_000_000 } }), (input) => {
        const inTurn = JSON.stringify(decide(input));
        for (const { carryOut } of threads) {
          const counting: CarryOut = (runs) => {
            if (runs.length > 1) shared++;
            return carryOut(runs);
          };
          expect(JSON.stringify(decide(input, counting))).toBe(inTurn);
        }
      }),
      { numRuns: Math.ceil(RUNS / 10), seed: SEED },
    );
    expect(shared).toBeGreaterThan(0);
  });

  it('the plan of a large cluster is the same', () => {
    const file = largeCluster(110, 1500, 1);
    const options = { maxMigrations: 60, searchWorkLimit: 6_000_000 };
    const inTurn = planCluster(file, options);
    for (const { carryOut } of threads) expect(planCluster(file, options, carryOut)).toEqual(inTurn);
  });
});
