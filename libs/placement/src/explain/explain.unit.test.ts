import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch } from '../../testing/index.ts';
import { explain } from './explain.ts';

const explained = (sketch: Sketch) => explain(decideInput(sketch));

/** a is hot, b is cold, c takes nothing. v1 goes to b. */
const hot: Sketch = {
  policies: { cpu: { threshold: 0.2 } },
  hosts: { a: {}, b: {}, c: { disabled: true } },
  vms: {
    v1: { host: 'a', w: { cpu: 0.3 } },
    v2: { host: 'a', w: { cpu: 0.4 } },
    v3: { host: 'b', w: { cpu: 0.1 }, set: { locked: true } },
  },
};

describe('an explanation', () => {
  it('of a plan says what each step leads to, and how good it is', () => {
    const plan = explained(hot).plan();
    expect(plan).toMatchObject({ planner: 'search', budget: 10, endedBy: 'done' });
    expect(plan?.shareOfPossible).toBeCloseTo(1, 9);
    expect(plan?.course).toHaveLength(1);
    expect(plan?.course[0]?.combined).toBeCloseTo(0, 9);
  });

  it('of a step says what it does to both hosts, and why not elsewhere', () => {
    const step = explained(hot).step(1);
    expect(step?.step.serverId).toBe('v1');
    expect(step?.source.before.cpu).toBeCloseTo(0.7, 9);
    expect(step?.source.after.cpu).toBeCloseTo(0.4, 9);
    expect(step?.destination.after.cpu).toBeCloseTo(0.4, 9);
    expect(step?.combined.withoutStep).toBeCloseTo(0.6, 9);
    expect(step?.elsewhere.map((d) => [d.host, d.refusal])).toEqual([['c', 'host-disabled']]);
    expect(explained(hot).step(2)).toBeNull();
  });

  it('of a VM that stays says what keeps it', () => {
    const it = explained(hot);
    expect(it.vm('v1')).toMatchObject({ steps: [1], verdict: { code: 'planned' } });
    expect(it.vm('v2')?.verdict.code).toBe('not-better');
    expect(it.vm('v3')?.verdict.code).toBe('vm-locked');
    expect(it.vm('v9')).toBeNull();
  });

  it('of a VM that may not move says so, also while the cycle is gated', () => {
    const it = explained({ ...hot, memory: { paused: { atMs: Date.parse('2026-01-01T11:00:00.000Z'), by: 'ann' } } });
    expect(it.decision.outcome).toBe('gated');
    expect(it.vm('v2')).toMatchObject({ refusal: null, verdict: { code: 'paused' } });
    expect(it.vm('v3')).toMatchObject({ refusal: 'vm-locked', verdict: { code: 'vm-locked' } });
  });

  it('of a VM with a released move says where it was seen, and that its arrival is assumed', () => {
    const task = {
      taskId: 'gpu-1-s1',
      serverId: 'v1',
      from: 'a',
      destination: 'b',
      resources: {},
      weights: { cpu: { source: 0.3, destination: 0.3 } },
      ramMb: 1024,
      startedAtMs: Date.parse('2026-01-01T11:59:00.000Z'),
    };
    const it = explained({ ...hot, memory: { inFlight: [task] } });
    const assumed = {
      observed: 'a',
      host: 'b',
      tasks: [{ taskId: 'gpu-1-s1', startedAt: '2026-01-01T11:59:00.000Z' }],
    };
    expect(it.vm('v1')).toMatchObject({ host: 'a', assumed, verdict: { code: 'vm-in-flight' } });
    expect(it.vm('v2')).toMatchObject({ host: 'a', assumed: null });
    expect(it.cycle().assumed).toBe(1);
    expect(it.host('a')).toMatchObject({ vms: [{ serverId: 'v2', assumed: null }], assumedGone: [{ serverId: 'v1' }] });
    expect(it.host('b')?.vms).toMatchObject([
      { serverId: 'v1', assumed },
      { serverId: 'v3', assumed: null },
    ]);
    // Once the snapshot sees it there, nothing is assumed.
    const arrived = { ...hot, vms: { ...hot.vms, v1: { host: 'b', w: { cpu: 0.3 } } }, memory: { inFlight: [task] } };
    expect(explained(arrived).vm('v1')).toMatchObject({ host: 'b', assumed: null });
    expect(explained(hot).cycle().assumed).toBe(0);
  });

  it('of a VM in a cycle that planned nothing gives the reason of the cycle', () => {
    const calm = explained({ ...hot, policies: { cpu: { threshold: 0.9 } } });
    expect(calm.plan()).toBeNull();
    expect(calm.vm('v1')?.verdict.code).toBe('balanced');
    expect(calm.vm('v3')?.verdict.code).toBe('vm-locked');
    const paused = explained({
      ...hot,
      memory: { paused: { atMs: Date.parse('2026-01-01T11:00:00.000Z'), by: 'ada' } },
    });
    expect(paused.vm('v1')?.verdict.code).toBe('paused');
  });

  it('of a VM that no host may take counts the reasons of the hosts', () => {
    const full = { ...hot, hosts: { a: {}, b: { free: { MEMORY_MB: 0 } }, c: { disabled: true } } };
    expect(explained(full).vm('v1')?.verdict).toEqual({
      code: 'capacity',
      detail: { capacity: 1, 'host-disabled': 1 },
    });
  });

  it('of a host says what it holds, its place, and what comes and goes', () => {
    const it = explained(hot);
    expect(it.host('a')).toMatchObject({
      counted: true,
      refusal: null,
      rank: { cpu: 1 },
      departures: [1],
      arrivals: [],
    });
    expect(it.host('b')).toMatchObject({ rank: { cpu: 2 }, arrivals: [1] });
    expect(it.host('c')).toMatchObject({ counted: false, rank: null, refusal: { code: 'host-disabled' }, vms: [] });
    expect(it.host('z')).toBeNull();
  });

  it('of a cycle says which hosts make the imbalance, and what may move where', () => {
    const cycle = explained(hot).cycle();
    expect(cycle.policies[0]).toMatchObject({ detected: true, highest: { host: 'a' }, lowest: { host: 'b' } });
    expect(cycle.hosts).toEqual({ all: 3, destinations: 2, refused: { 'host-disabled': 1 } });
    expect(cycle.vms).toEqual({ all: 3, movable: 2, refused: { 'vm-locked': 1 }, evacuationOnly: {} });
    const onDisabled = { ...hot.vms, v4: { host: 'c', w: { cpu: 0.1 } } };
    expect(explained({ ...hot, vms: onDisabled }).cycle().vms).toEqual({
      all: 4,
      movable: 3,
      refused: { 'vm-locked': 1 },
      evacuationOnly: { 'vm-source-disabled': 1 },
    });
  });

  it('in pack mode speaks of drains: who is emptied, and why not', () => {
    const it = explained({
      policies: { cpu: { mode: 'pack', capacityThreshold: 0.8 } },
      hosts: { a: {}, b: {}, c: {} },
      vms: {
        v1: { host: 'a', w: { cpu: 0.7 } },
        v2: { host: 'b', w: { cpu: 0.6 } },
        v3: { host: 'c', w: { cpu: 0.1 } },
        v4: { host: 'c', w: { cpu: 0.05 } },
      },
      options: { planner: 'greedy' },
    });
    const drains = it.cycle().drains.map(({ host, refusal }) => [host, refusal]);
    expect(drains).toContainEqual(['c', null]);
    expect(it.vm('v3')?.verdict.code).toBe('planned');
    expect(it.vm('v1')?.destinations.map((d) => [d.host, d.refusal])).toContainEqual(['b', 'capacity-threshold']);
    expect(it.host('c')?.drainRefusal).toBeNull();
    expect(it.vm('v1')?.verdict.code).toBe('no-destination');
  });

  it('of an evacuation says who is stuck', () => {
    const it = explained({
      ...hot,
      vms: { ...hot.vms, v4: { host: 'c', w: { cpu: 0.1 }, ramMb: 2_000_000 } },
      options: { evacuateDisabledHosts: true },
    });
    expect(it.vm('v4')?.verdict.code).toBe('capacity');
    expect(it.host('c')?.evacuation).toEqual({ host: 'c', state: 'stuck', left: 1 });
  });
});
