import { defaultEngineOptions } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { Draft } from '../draft/draft.ts';
import { type ClusterFile, clusterOf } from '../file/clusterFile.ts';
import { inTurn } from './anneal/runs.ts';
import { DEFAULT_ROUND, search } from './search.ts';

/** Hosts of unlike load; every VM is pinned. */
const pinned: ClusterFile = {
  policies: ['cpu'],
  weights: [1],
  hosts: Array.from({ length: 4 }, (_, h) => ({ id: `h${h}` })),
  vms: Array.from({ length: 40 }, (_, v) => ({ id: `v${v}`, host: `h${v % 3}`, w: [0.01], pin: 'by the test' })),
};

describe('the search', () => {
  it.each([
    [1, 1],
    [1, 1_000_000],
    [5, 1],
  ])('ends at once where no VM may move, with a budget of %d and a work limit of %d', (budget, workLimit) => {
    const draft = new Draft(clusterOf(pinned, { maxMigrations: budget }), budget);
    const settings = { minGain: 0, moveOverheadGib: 1, allowParking: true, spent: 0, carryOut: inTurn };
    const { solution, end } = search(draft, { ...settings, workLimit });
    expect(solution.moves).toBe(0);
    expect(end).toBe('done');
  });

  it('makes moves that reach no target only if each gains min_gain', () => {
    // The immovable VM keeps the target out of reach. Two moves of the others gain 0.1 each.
    const file: ClusterFile = {
      policies: ['cpu'],
      weights: [1],
      thresholds: [0.2],
      hosts: ['large', 'full', 'empty'].map((id) => ({ id })),
      vms: [
        { id: 'still', host: 'large', w: [0.9], immovable: true },
        ...Array.from({ length: 4 }, (_, v) => ({ id: `v${v}`, host: 'full', w: [0.1] })),
      ],
    };
    const movesWith = (minGain: number): number => {
      const draft = new Draft(clusterOf(file, { maxMigrations: 3 }), 3);
      const settings = { minGain, moveOverheadGib: 1, allowParking: true, spent: 0, carryOut: inTurn };
      return search(draft, { ...settings, workLimit: 200_000 }).solution.moves;
    };
    expect([0.05, 0.12].map(movesWith)).toEqual([2, 0]);
  });

  it('looks for nothing where each move gains less than min_gain, and no number of them reaches the targets', () => {
    // All 40 moves together would gain more than min_gain.
    const file: ClusterFile = {
      policies: ['cpu'],
      weights: [1],
      thresholds: [0.2],
      hosts: [0.8, 0.3, 0.5, 0.5, 0.5].map((score, h) => ({ id: `h${h}`, score: [score], size: [1 + (h % 2)] })),
      vms: Array.from({ length: 40 }, (_, v) => ({ id: `v${v}`, host: `h${v % 5}`, w: [1e-4] })),
    };
    const found = (minGain: number) => {
      const draft = new Draft(clusterOf(file, { maxMigrations: 4 }), 4);
      const settings = { minGain, moveOverheadGib: 1, allowParking: true, spent: 0, carryOut: inTurn };
      const { work, end, proven, solution } = search(draft, { ...settings, workLimit: 50_000 });
      return { short: work < 1000, end, proven, moves: solution.moves };
    };
    expect(found(0.001)).toEqual({ short: true, end: 'done', proven: true, moves: 0 });
    expect(found(0.00005)).toMatchObject({ short: false, proven: false, moves: 4 });
  });

  it('says which budget the lowest imbalance needs where no moves reach the target and fewer lower nothing', () => {
    // .5 + .27 and .35 + .3 are the nearest to each other: an exchange of two VMs, which lowers .18 to .12.
    const loads = { first: [0.5, 0.3], second: [0.35, 0.27] };
    const file: ClusterFile = {
      policies: ['cpu'],
      weights: [1],
      thresholds: [0.05],
      hosts: Object.keys(loads).map((id) => ({ id })),
      vms: Object.entries(loads).flatMap(([host, own]) => own.map((w, v) => ({ id: `${host}${v}`, host, w: [w] }))),
    };
    const foundWith = (budget: number) => {
      const draft = new Draft(clusterOf(file, { maxMigrations: budget }), budget);
      const settings = { minGain: 0, moveOverheadGib: 1, allowParking: true, spent: 0, carryOut: inTurn };
      const { solution, course } = search(draft, { ...settings, workLimit: 20_000_000 });
      const rest = course === null ? null : { moves: course.solution.moves, needed: course.needed };
      return { moves: solution.moves, combined: Number(solution.combined.toFixed(9)), rest };
    };
    expect(foundWith(1)).toEqual({ moves: 0, combined: 0.18, rest: { moves: 2, needed: 2 } });
    expect(foundWith(2)).toEqual({ moves: 2, combined: 0.12, rest: null });
  });

  it('has a round that ends at the default work limit', () => {
    expect(DEFAULT_ROUND).toBe(defaultEngineOptions.searchWorkLimit);
  });
});
