import { describe, expect, it } from 'vitest';
import { type ClusterFile, planCluster } from '../file/clusterFile.ts';
import { type Emptiable, setsOf } from './hostSets.ts';

type Vm = ClusterFile['vms'][number];
const vms = (host: string, sizes: readonly number[], more: Partial<Vm> = {}): Vm[] =>
  sizes.map((size, i) => ({ id: `${host}-${i}`, host, w: [size / 100], memMb: size, ...more }));
const file = (free: Readonly<Record<string, number>>, all: readonly Vm[]): ClusterFile => ({
  policies: ['cpu'],
  weights: [1],
  hosts: Object.entries(free).map(([id, memFreeMb]) => ({ id, memFreeMb })),
  vms: all,
});
const plan = (of: ClusterFile, maxMigrations: number, more: object = {}) => {
  const { moves, warnings } = planCluster(of, { maxMigrations, mode: 'pack', ...more });
  return { moves: moves.map(({ vm, to }) => `${vm} ${to}`).sort(), warnings };
};

describe('pack', () => {
  it('begins a drain that takes more than one cycle, and goes on with it in the next', () => {
    const start = file({ a: 9, b: 20, c: 20 }, [
      ...vms('a', [1, 1, 1, 1]),
      ...vms('b', [2, 2, 2, 2, 2, 2, 2, 2]),
      ...vms('c', [1, 1, 1, 1, 1, 1, 1, 1]),
    ]);
    const first = planCluster(start, { maxMigrations: 3, mode: 'pack' }).moves;
    expect(first.map(({ from }) => from)).toEqual(['a', 'a', 'a']);
    const at = new Map(first.map(({ vm, to }) => [vm, to]));
    const next = { ...start, vms: start.vms.map((vm) => ({ ...vm, host: at.get(vm.id) ?? vm.host })) };
    expect(planCluster(next, { maxMigrations: 3, mode: 'pack' }).moves.at(0)?.from).toBe('a');
    expect(plan(start, 3, { packReachCycles: 1 }).moves).toEqual([]);
  });

  // Emptied one after the other, the VM of `small` takes the room on `x` that those of `pair` need together.
  const apart = file({ pair: 0, small: 0, x: 6, y: 5 }, [
    ...vms('pair', [3, 3]),
    ...vms('small', [5]),
    ...vms('x', [30], { immovable: true }),
    ...vms('y', [20], { immovable: true }),
  ]);

  it('empties hosts together that it cannot empty one after the other', () => {
    expect(plan(apart, 9, { planner: 'greedy' }).moves).toEqual(['small-0 x']);
    expect(plan(apart, 9).moves).toEqual(['pair-0 x', 'pair-1 x', 'small-0 y']);
    expect(plan(apart, 2).moves).toEqual(['small-0 x']);
  });

  it('says nothing about the imbalance that it makes', () => {
    expect(plan({ ...apart, thresholds: [0.01] }, 9).warnings).toEqual([]);
  });
});

describe('sets of hosts', () => {
  const hosts: Emptiable[] = [3, 1, 2, 2].map((count, host) => ({ host, vms: count, burden: Float64Array.of(count) }));
  const sets = (size: number, most: number, room: number, left = 1000) => [
    ...setsOf(hosts, { size, most, room: Float64Array.of(room), work: { left } }),
  ];

  it('come by their VMs, and fit the room and the budget', () => {
    expect(sets(2, 9, 9)).toEqual([
      [1, 2],
      [1, 3],
      [1, 0],
      [2, 3],
      [2, 0],
      [3, 0],
    ]);
    expect(sets(2, 3, 9)).toHaveLength(2);
    expect(sets(2, 9, 3)).toHaveLength(2);
    expect(sets(5, 99, 99)).toEqual([]);
  });

  it('end with the work', () => {
    expect(sets(2, 9, 9, 3).length).toBeLessThan(3);
  });
});
