import { describe, expect, it } from 'vitest';
import { Random } from '../base/random.ts';
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
    const without = arrange(cluster, [move(0, A, C), move(2, B, A)]);
    expect(without.blocked).toEqual([1]);
    expect(without.tried, 'a plan that no order makes legal costs a search for one').toBeGreaterThan(4);
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

type Amounts = { readonly host: number; readonly to: number; readonly needs: readonly number[] };

/** Random moves on full hosts that fit at their end: VMs with memory, CPUs and GPUs. */
function tightMoves(seed: number): {
  readonly hosts: readonly (readonly number[])[];
  readonly vms: readonly Amounts[];
} {
  const random = new Random(seed);
  const below = (n: number): number => random.below(n);
  const count = 3 + below(2);
  const vms = Array.from({ length: 4 + below(5) }, (): Amounts => {
    const host = below(count);
    return { host, to: below(10) < 7 ? below(count) : host, needs: [1 + below(4), 1 + below(3), below(2)] };
  });
  const more = (vm: Amounts, h: number): number => Number(vm.to === h) - Number(vm.host === h);
  const hosts = Array.from({ length: count }, (_, h) =>
    [0, 1, 2].map(
      (r) =>
        Math.max(
          0,
          vms.reduce((sum, vm) => sum + more(vm, h) * (vm.needs[r] ?? 0), 0),
        ) + below(2),
    ),
  );
  return { hosts, vms };
}

/** Whether moves that end one after the other have an order, by trying all. */
function anyOrder({ hosts, vms }: ReturnType<typeof tightMoves>): boolean {
  const movers = vms.filter(({ host, to }) => host !== to);
  const dead = new Set<string>();
  const complete = (left: readonly Amounts[], free: readonly (readonly number[])[]): boolean => {
    const key = left.map((vm) => movers.indexOf(vm)).join();
    if (left.length === 0 || dead.has(key)) return left.length === 0;
    dead.add(key);
    return left.some((vm) => {
      if (vm.needs.some((amount, r) => amount > (free[vm.to]?.[r] ?? 0))) return false;
      const after = free.map((amounts, h) =>
        amounts.map((amount, r) => amount + (Number(h === vm.host) - Number(h === vm.to)) * (vm.needs[r] ?? 0)),
      );
      return complete(
        left.filter((other) => other !== vm),
        after,
      );
    });
  };
  return complete(movers, hosts);
}

describe('an order', () => {
  it('is found wherever all orders have a legal one', () => {
    let [orders, none] = [0, 0];
    for (let seed = 1; seed <= 600; seed++) {
      const { hosts, vms } = tightMoves(seed);
      const file: ClusterFile = {
        policies: ['cpu'],
        weights: [1],
        hosts: hosts.map(([memFreeMb = 0, vcpusFree = 0, VGPU = 0], h) => ({
          ...{ id: `h${h}`, memFreeMb, vcpusFree, free: { VGPU } },
        })),
        vms: vms.map(({ host, needs: [memMb = 0, vcpus = 0, VGPU = 0] }, v) => ({
          ...{ id: `v${v}`, host: `h${host}`, w: [0], memMb, vcpus, resources: { VGPU } },
        })),
      };
      const moves = vms.flatMap(({ host, to }, v) => (host === to ? [] : [move(v, host, to)]));
      const exists = anyOrder({ hosts, vms });
      if (exists) orders++;
      else none++;
      expect(arrange(clusterOf(file, { maxMigrations: 9 }), moves).blocked.length === 0, `seed ${seed}`).toBe(exists);
    }
    expect(Math.min(orders, none)).toBeGreaterThan(50);
  });
});
