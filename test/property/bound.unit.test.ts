import { type ClusterFile, clusterOf } from '@kronos/placement';
import { lowerBound } from '@kronos/placement/testing';
import { describe, expect, it } from 'vitest';
import { type Checked, checkBound, isFalse, isTight } from './bound.ts';
import { RUNS } from './runs.ts';

describe('the lower bound', () => {
  it('is 0 where a VM of a disabled host makes two hosts equal, on a lattice that their mean is not on', () => {
    const file: ClusterFile = {
      policies: ['cpu'],
      weights: [1],
      hosts: [{ id: 'a' }, { id: 'b' }, { id: 'c', status: 'disabled' }],
      vms: [
        { id: 'v1', host: 'a', w: [0.1] },
        { id: 'v2', host: 'b', w: [0.05] },
        { id: 'v3', host: 'c', w: [0.05] },
      ],
    };
    expect(lowerBound(clusterOf(file, { maxMigrations: 1 }), 1)).toBe(0);
  });

  it('is never above an optimum that an exact solver proves', async () => {
    const checked: Checked[] = [];
    for (let seed = 1; seed <= RUNS / 3; seed++) {
      const one = await checkBound(seed);
      if (one !== null) checked.push(one);
    }
    expect(checked.length).toBeGreaterThan((RUNS / 3) * 0.97);
    expect(checked.filter(isFalse)).toEqual([]);
    // A bound of 0 would pass too: it has to say something.
    expect(checked.filter((one) => one.optimum > 1e-6 && isTight(one)).length).toBeGreaterThan(RUNS / 12);
  });
});
