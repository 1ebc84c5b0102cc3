import { describe, expect, it } from 'vitest';
import { planCluster } from '../file/clusterFile.ts';

/** A pair that is apart: v0 with v2 on a loaded host, v1 alone. Only a move of `mover` to the other lowers the imbalance. */
const pair = (loads: readonly [v0: number, v1: number], others: readonly (readonly [string, number])[]) => ({
  policies: ['cpu'],
  weights: [1],
  thresholds: [0.05],
  hosts: ['a', 'b'].map((id) => ({ id, az: id })),
  vms: [
    { id: 'v0', host: 'a', w: [loads[0]] },
    { id: 'v1', host: 'b', w: [loads[1]] },
    ...others.map(([host, w], i) => ({ id: `o${i}`, host, w: [w], pin: host })),
  ],
  groups: [{ id: 'g', policy: 'affinity' as const, vms: ['v0', 'v1'] }],
});
const moved = (file: object) => planCluster(file, { maxMigrations: 5 }).moves.map(({ vm, to }) => [vm, to]);

describe('an affinity pair that is apart', () => {
  it('acts: the first member moves to the second, or the second to the first', () => {
    expect(moved(pair([0.2, 0.1], [['a', 0.4]]))).toEqual([['v0', 'b']]);
    expect(moved(pair([0.1, 0.2], [['b', 0.4]]))).toEqual([['v1', 'a']]);
  });

  it('refuses: both never exchange their hosts', () => {
    const file = pair([0.5, 0.1], []);
    expect(moved({ ...file, vms: file.vms.map((vm) => ({ ...vm })) }).length).toBeLessThanOrEqual(1);
  });

  it('does nothing: within the threshold', () => {
    expect(moved(pair([0.2, 0.2], []))).toEqual([]);
  });
});
