import type { CompleteEngineOptions, Decision, Step } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, SKETCH_TIME } from '../../testing/index.ts';
import { headroom } from '../capacity/capacity.ts';
import { destinationsOf } from '../cluster/cluster.ts';
import { decide } from '../decide.ts';
import { observe } from '../snapshot/observe.ts';
import { FailureRoom } from './failureRoom.ts';

type Vm = { readonly host: number; readonly ram: number; readonly load: number };
type World = { readonly capacity: readonly number[]; readonly vms: readonly Vm[]; readonly apart: readonly number[] };

const unit = { minUnit: null, maxUnit: null, stepSize: null };

function inputOf({ capacity, vms, apart }: World, options: Partial<CompleteEngineOptions> = {}) {
  return decideInput({
    policies: { cpu: { threshold: 0.2, maxMigrationsPerCycle: 5 } },
    hosts: Object.fromEntries(
      capacity.map((ram, h) => {
        const here = vms.filter(({ host }) => host === h);
        const used = here.reduce((sum, vm) => sum + vm.ram, 0);
        return [`h${h}`, { set: { inventory: { MEMORY_MB: { ...unit, capacity: ram, used } } } }];
      }),
    ),
    vms: Object.fromEntries(
      vms.map(({ host, ram, load }, v) => [
        `v${v}`,
        { host: `h${host}`, w: { cpu: load }, ramMb: ram, set: { resources: { MEMORY_MB: ram } } },
      ]),
    ),
    groups: apart.length === 0 ? {} : { g: { policy: 'anti-affinity', members: apart.map((v) => `v${v}`) } },
    options: { failoverHosts: 1, searchWorkLimit: 100_000, ...options },
  });
}

/** The most VMs of the failed hosts that the others can take, by trying every placement. It shares no code with the planner. */
function stranded({ capacity, vms, apart }: World, place: readonly number[], lost: readonly number[]): number {
  const free = capacity.map((ram, h) => ram - vms.reduce((sum, vm, v) => sum + (place[v] === h ? vm.ram : 0), 0));
  const members = capacity.map((_, h) => apart.filter((v) => place[v] === h).length);
  const homeless = vms.flatMap((vm, v) => (lost.includes(place[v] ?? -1) ? [{ ...vm, v }] : []));
  const fewest = (i: number): number => {
    const vm = homeless[i];
    if (vm === undefined) return 0;
    let least = 1 + fewest(i + 1);
    for (let h = 0; h < capacity.length; h++) {
      const grouped = apart.includes(vm.v);
      if (lost.includes(h) || (free[h] ?? 0) < vm.ram || (grouped && (members[h] ?? 0) > 0)) continue;
      free[h] = (free[h] ?? 0) - vm.ram;
      if (grouped) members[h] = (members[h] ?? 0) + 1;
      least = Math.min(least, fewest(i + 1));
      free[h] = (free[h] ?? 0) + vm.ram;
      if (grouped) members[h] = (members[h] ?? 0) - 1;
    }
    return least;
  };
  return fewest(0);
}

const gapsOf = (world: World, place: readonly number[]): number[] =>
  world.capacity.map((_, h) => stranded(world, place, [h]));

function* statesOf({ vms }: World, steps: readonly Step[]): Generator<readonly number[]> {
  const place = vms.map(({ host }) => host);
  yield [...place];
  for (const { serverId, to } of steps) {
    place[Number(serverId.slice(1))] = Number(to.slice(1));
    yield [...place];
  }
}

/** A cluster of four hosts, some of them nearly full. */
function someWorld(seed: number): World {
  let state = seed * 2_654_435_761;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const capacity = [0, 1, 2, 3].map(() => 9 + below(4));
  const vms: Vm[] = [];
  capacity.forEach((ram, host) => {
    for (let left = Math.floor(ram * (0.55 + below(30) / 100)); left > 0; ) {
      const size = Math.min(left, 1 + below(4));
      vms.push({ host, ram: size, load: Math.round(size * (2 + below(9))) / 100 });
      left -= size;
    }
  });
  const apart = below(2) === 0 ? [] : capacity.flatMap((_, h) => vms.findIndex(({ host }) => host === h)).slice(0, 2);
  return { capacity, vms, apart: apart.filter((v) => v >= 0) };
}

const stepsOf = ({ plan }: Decision): readonly Step[] => plan?.steps ?? [];

describe('room for the failure of a host', () => {
  it('is what exhaustive search says, for each host and for two', () => {
    let lacking = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const world = someWorld(seed);
      const place = world.vms.map(({ host }) => host);
      for (const { losses } of headroom(inputOf(world), 2).failures)
        for (const loss of losses) {
          const lost = loss.hosts.map((name) => Number(name.slice(1)));
          expect(loss.stranded.length, `seed ${seed}, ${loss.hosts}`).toBe(stranded(world, place, lost));
          expect(loss.proven).toBe(true);
          if (loss.stranded.length > 0) lacking++;
        }
    }
    expect(lacking).toBeGreaterThan(20);
  });

  it('is never taken by a plan: in no state between its moves do more VMs lack a host', () => {
    let planned = 0;
    let differs = 0;
    let restored = 0;
    let lacked = 0;
    for (let seed = 1; seed <= 80; seed++) {
      const world = someWorld(seed);
      const options = { enforceHardAffinity: true };
      const decision = decide(inputOf(world, options));
      const steps = stepsOf(decision);
      const [first = [], ...later] = [...statesOf(world, steps)].map((place) => gapsOf(world, place));
      for (const gaps of later)
        gaps.forEach((gap, h) => {
          expect(gap, `seed ${seed}, h${h}`).toBeLessThanOrEqual(first[h] ?? 0);
        });
      expect(decision.failover?.lacking, `seed ${seed}`).toBe(first.filter((gap) => gap > 0).length);
      const sum = (gaps: readonly number[]): number => gaps.reduce((a, b) => a + b, 0);
      if (sum(first) > 0) lacked++;
      if (sum(later.at(-1) ?? first) < sum(first)) restored++;
      if (steps.length > 0) planned++;
      const free = stepsOf(decide(inputOf(world, { ...options, failoverHosts: 0 })));
      if ([...statesOf(world, free)].some((place) => gapsOf(world, place).some((gap, h) => gap > (first[h] ?? 0))))
        differs++;
    }
    expect({ planned: planned > 50, differs: differs > 5, lacked: lacked > 10, restored: restored > 5 }).toEqual({
      planned: true,
      differs: true,
      lacked: true,
      restored: true,
    });
  });

  const sizes = (host: number, ...ram: number[]): Vm[] => ram.map((size) => ({ host, ram: size, load: 0.05 }));

  it('is restored by the fewest moves off the hosts that must take the VMs', () => {
    // The 7 of h1 fits nowhere (2 and 6 are free) until a VM leaves h2.
    const world = {
      capacity: [10, 10, 10],
      vms: [...sizes(0, 2, 2, 2, 2), ...sizes(1, 7), ...sizes(2, 1, 1, 1, 1)],
      apart: [],
    };
    const { reason, plan, failover } = decide(inputOf(world));
    expect(reason.code).toBe('planned');
    expect(plan?.steps).toMatchObject([
      { phase: 'headroom', from: 'h2', alternates: [], why: { code: 'restores-failover-room' } },
    ]);
    expect(failover).toEqual({
      hosts: 1,
      tested: 3,
      lacking: 1,
      failures: [{ hosts: ['h1'], servers: 1, stranded: 1, names: ['v4'], proven: true }],
    });
  });

  it('holds back a repair that would take it, and says so', () => {
    // Only h1 has room for one of the two, and then none for h0.
    const vms = [...sizes(0, 3, 3), ...sizes(1, 4), ...sizes(2, 6)];
    const world = { capacity: [10, 10, 6], vms, apart: [0, 1] };
    const options = { enforceHardAffinity: true };
    const { plan, reason, warnings } = decide(inputOf(world, options));
    expect({ plan, reason: reason.code }).toEqual({ plan: null, reason: 'stuck' });
    expect(warnings.map(({ code }) => code)).toEqual(['repair-impossible']);
    expect(stepsOf(decide(inputOf(world, { ...options, failoverHosts: 0 })))).toHaveLength(1);
  });

  it.each([1, 2, 3])('after a move is what a search finds, also where an equal move was tried: %i hosts', (count) => {
    let [equal, moved] = [0, 0];
    for (let seed = 1; seed <= 5; seed++) {
      const { snapshot, memory, options } = inputOf(someWorld(seed));
      const { cluster } = observe(snapshot, memory, options, Date.parse(SKETCH_TIME));
      const room = new FailureRoom(cluster, count);
      const made: { readonly vm: number; readonly to: number }[] = [];
      /** Nothing is kept of other states. */
      const anew = (): FailureRoom => {
        const fresh = new FailureRoom(cluster, count);
        for (const { vm, to } of made) fresh.move(vm, to);
        return fresh;
      };
      for (;;) {
        const gaps = room.gaps();
        expect(anew().gaps()).toEqual(gaps);
        const tried = new Map();
        let kept: { readonly vm: number; readonly to: number } | null = null;
        for (let vm = 0; vm < cluster.V; vm++)
          for (const to of destinationsOf(cluster)) {
            if (room.at(vm) === to) continue;
            const [before, move] = [tried.size, { vm, to }];
            const left = room.gapsAfter(move, gaps, tried);
            const name = `seed ${seed}, v${vm} to h${to} after ${made.length} moves`;
            expect(left, name).toEqual(anew().gapsAfter(move, gaps, new Map()));
            if (tried.size === before) equal++;
            if (left !== null) kept ??= move;
          }
        if (kept === null || made.length === 2) break;
        room.move(kept.vm, kept.to);
        made.push(kept);
        moved++;
      }
    }
    expect(equal).toBeGreaterThan(50);
    expect(moved).toBeGreaterThan(0);
  });

  it.each([4, 42])('lets the moves that keep it balance, where no plan of the pass keeps it whole: seed %i', (seed) => {
    const { outcome, before, plan, refusals } = decide(inputOf(someWorld(seed)));
    expect(outcome).toBe('planned');
    expect(refusals['failover-room']).toBeGreaterThan(0);
    expect(plan?.after.combined).toBeLessThan(before.combined ?? 0);
  });

  it('does nothing when failover_hosts is 0, and says nothing of it', () => {
    const world = { capacity: [10, 10], vms: [...sizes(0, 7), ...sizes(1, 7)], apart: [] };
    const decision = decide(inputOf(world, { failoverHosts: 0 }));
    expect(decision).toMatchObject({ outcome: 'quiet', reason: { code: 'balanced' } });
    expect(decision).not.toHaveProperty('failover');
  });

  it('keeps the balance from taking it, which the reason says', () => {
    const world = someWorld(40);
    const decision = decide(inputOf(world));
    expect(decision).toMatchObject({ outcome: 'quiet', reason: { code: 'failover-room' }, failover: { lacking: 0 } });
    expect(decision.refusals['failover-room']).toBeGreaterThan(0);
    expect(stepsOf(decide(inputOf(world, { failoverHosts: 0 }))).length).toBeGreaterThan(0);
  });
});
