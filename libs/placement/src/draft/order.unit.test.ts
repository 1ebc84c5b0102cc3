import { describe, expect, it } from 'vitest';
import { NO_REPAIR } from '../cluster/constraints.ts';
import { imbalances } from '../cluster/measure.ts';
import { type ClusterFile, clusterOf, planCluster } from '../file/clusterFile.ts';
import { fieldOf } from '../search/problem/field.ts';
import { blockedMoves } from '../search/problem/sequence.ts';
import type { Move } from './draft.ts';
import { Draft } from './draft.ts';
import { arrange } from './order.ts';

const [A, B, C] = [0, 1, 2];
const move = (vm: number, from: number, to: number): Move => ({
  vm,
  from,
  to,
  phase: 'spread',
  parking: false,
  why: 'lowers-imbalance',
  repairs: NO_REPAIR,
});

describe('the order of moves', () => {
  /** Nothing is free on a and b; c has 4 GiB and 4 vCPUs free. */
  const full = (vms: ClusterFile['vms']) =>
    clusterOf(
      {
        policies: ['cpu'],
        weights: [1],
        hosts: [
          { id: 'a', memFreeMb: 0, vcpusFree: 0 },
          { id: 'b', memFreeMb: 0, vcpusFree: 0 },
          { id: 'c', memFreeMb: 4096, vcpusFree: 4 },
        ],
        vms,
      },
      { maxMigrations: 5 },
    );

  it('a move takes of the departures that it waits for anyway first', () => {
    const cluster = full([
      { id: 'v1', host: 'a', w: [0.1], vcpus: 1 },
      { id: 'v2', host: 'a', w: [0.1], memMb: 1024, vcpus: 1 },
      { id: 'v3', host: 'b', w: [0.1], memMb: 1024, vcpus: 1 },
    ]);
    const { dependsOn, blocked } = arrange(cluster, [move(0, A, C), move(1, A, C), move(2, B, A)]);
    expect({ dependsOn, blocked }).toEqual({ dependsOn: [[], [], [1]], blocked: [] });
  });

  it('a move waits for several departures where no single one makes enough room', () => {
    const cluster = full([
      { id: 'v1', host: 'a', w: [0.1], memMb: 1024 },
      { id: 'v2', host: 'a', w: [0.1], memMb: 1024 },
      { id: 'v3', host: 'b', w: [0.1], memMb: 2048 },
    ]);
    const { dependsOn, blocked } = arrange(cluster, [move(0, A, C), move(1, A, C), move(2, B, A)]);
    expect({ dependsOn, blocked }).toEqual({ dependsOn: [[], [], [0, 1]], blocked: [] });
    expect(arrange(cluster, [move(0, A, C), move(2, B, A)]).blocked).toEqual([1]);
  });

  it('the second half of a parking move is no parking move', () => {
    const cluster = full([
      { id: 'v1', host: 'a', w: [0.1], memMb: 1024 },
      { id: 'v2', host: 'b', w: [0.1], memMb: 1024 },
    ]);
    const draft = new Draft(cluster, 5);
    const field = fieldOf(draft, imbalances(cluster, draft.score), 5);
    const place = Int32Array.of(B, B);
    expect(blockedMoves(draft, field, place, new Map([[0, C]]))).toEqual([move(0, C, B)]);
  });

  it('a departure pays the move that has no other place', () => {
    const host = (id: string, memFreeMb: number, vcpusFree: number, VGPU: number) => ({
      id,
      memFreeMb,
      vcpusFree,
      free: { VGPU },
    });
    const vm = (id: string, at: string, w: number, gib: number, vcpus: number, VGPU = 0) => ({
      id,
      host: at,
      w: [w],
      memMb: 1024 * gib,
      vcpus,
      ...(VGPU === 0 ? {} : { resources: { VGPU } }),
    });
    const plan = planCluster(
      {
        policies: ['p0'],
        weights: [1],
        hosts: [host('h0', 1024, 0, 0), host('h1', 4096, 8, 4), host('h2', 4096, 1, 2), host('h3', 0, 2, 0)],
        vms: [
          vm('v0', 'h2', 0.0419, 4, 4),
          vm('v1', 'h1', 0.0862, 8, 4),
          vm('v2', 'h3', 0.0015, 1, 1),
          vm('v3', 'h3', 0.0028, 8, 4, 1),
          vm('v4', 'h1', 0.4341, 8, 1),
          vm('v5', 'h0', 0.1065, 8, 1, 2),
        ],
      },
      { maxMigrations: 6 },
    );
    // Without other sequences: 0.3894.
    expect(plan.after.combined).toBeCloseTo(0.3879, 4);
  });
});
