import { decide } from '@kronos/placement';
import { decideInput, type Sketch } from '@kronos/placement/testing';
import { describe, expect, it, vi } from 'vitest';
import { evacuations, packings, repairs } from '../bench/dutyTrials.ts';
import { fitTrials } from '../bench/fitTrials.ts';

vi.setConfig({ testTimeout: 300_000 });

const stepsOf = (sketch: Sketch): string[] =>
  decide(decideInput(sketch)).plan?.steps.map(
    (step) => `${step.serverName}: ${step.from} -> ${step.to}, ${step.phase}`,
  ) ?? [];

/** Without a host: its VM may exceed a threshold nowhere. */
const full: Sketch = {
  policies: { p: { threshold: 0.2 } },
  hosts: { old: { disabled: true }, h1: {}, h2: {} },
  vms: {
    big: { host: 'old', w: { p: 0.3 } },
    a: { host: 'h1', w: { p: 0.15 } },
    b: { host: 'h1', w: { p: 0.15 } },
    c: { host: 'h2', w: { p: 0.15 } },
    d: { host: 'h2', w: { p: 0.15 } },
  },
  options: { evacuateDisabledHosts: true, minGain: 0 },
};

describe('what must be done', () => {
  it('is done although it exceeds a threshold, and the balance follows in the same plan', () => {
    expect(stepsOf(full)).toEqual(['big: old -> h1, evacuate', 'a: h1 -> h2, spread']);
    expect(decide(decideInput(full)).warnings).toEqual([]);
  });

  it('names the policy that it leaves above its threshold', () => {
    const empty = { ...full, vms: { big: { host: 'old', w: { p: 0.3 } } } };
    const { plan, warnings, stuck } = decide(decideInput(empty));
    expect(plan?.steps).toHaveLength(1);
    expect(warnings.map(({ code }) => code)).toEqual(['threshold-unreachable', 'past-threshold']);
    expect(stuck).toEqual([]);
  });

  it('waits for the thresholds where they are required', () => {
    const { plan, stuck } = decide(
      decideInput({ ...full, options: { ...full.options, evacuationThresholds: 'require' } }),
    );
    expect(plan).toBeNull();
    expect(stuck.map(({ reason }) => reason.code)).toEqual(['past-threshold']);
  });

  it('repairs a group although that exceeds a threshold', () => {
    const sketch: Sketch = {
      policies: { p: { threshold: 0.2 } },
      hosts: { h1: {}, h2: {} },
      vms: {
        a: { host: 'h1', w: { p: 0.3 } },
        b: { host: 'h1', w: { p: 0.3 } },
        c: { host: 'h2', w: { p: 0.3 } },
        d: { host: 'h2', w: { p: 0.3 } },
      },
      groups: { g: { policy: 'anti-affinity', members: ['a', 'b'] } },
      options: { enforceHardAffinity: true, minGain: 0 },
    };
    expect(stepsOf(sketch)).toEqual(['a: h1 -> h2, affinity', 'c: h2 -> h1, spread']);
  });

  const tight: Sketch = {
    policies: { p: { threshold: 0.9 } },
    hosts: { old: { disabled: true }, h1: { free: { MEMORY_MB: 30 } }, h2: { free: { MEMORY_MB: 30 } } },
    vms: {
      big: { host: 'old', w: { p: 0.3 }, ramMb: 40 },
      r1: { host: 'h1', w: { p: 0.1 }, ramMb: 20 },
      r2: { host: 'h2', w: { p: 0.1 }, ramMb: 20 },
    },
    options: { evacuateDisabledHosts: true },
  };

  it('moves a resident to make room, and waits for it', () => {
    const { plan } = decide(decideInput(tight));
    expect(stepsOf(tight)).toEqual(['r1: h1 -> h2, evacuate', 'big: old -> h1, evacuate']);
    expect(plan?.steps[0]?.why?.code).toBe('makes-room');
    expect(plan?.steps[1]?.dependsOn).toEqual([plan?.steps[0]?.taskId]);
  });

  it('moves no resident that may not move', () => {
    const locked = { set: { locked: true } };
    const vms = Object.fromEntries(
      Object.entries(tight.vms).map(([id, vm]) => [id, id === 'big' ? vm : { ...vm, ...locked }]),
    );
    const { plan, stuck } = decide(decideInput({ ...tight, vms }));
    expect(plan).toBeNull();
    expect(stuck).toHaveLength(1);
  });

  it('moves no resident where there is room without', () => {
    expect(stepsOf({ ...tight, hosts: { ...tight.hosts, h1: {} } })).toEqual(['big: old -> h1, evacuate']);
  });
});

describe('beside proven optima', () => {
  it('no VM is left on a disabled host that could leave it, and few others move', async () => {
    const { instances, done, possible, moves, fewestMoves } = await evacuations(0, 12);
    expect(instances).toBeGreaterThan(8);
    expect(done).toBe(possible);
    expect(moves).toBeLessThanOrEqual(1.05 * fewestMoves);
  });

  it('a packing that takes a long search strands nobody', async () => {
    const { done, possible, moves, fewestMoves } = await evacuations(144, 1);
    expect([done, moves]).toEqual([possible, fewestMoves]);
  });

  it('no group is left broken that could be repaired, and few VMs move', async () => {
    const { instances, done, possible, moves, fewestMoves } = await repairs(0, 12);
    expect(instances).toBeGreaterThan(8);
    expect(done).toBe(possible);
    expect(moves).toBeLessThanOrEqual(1.05 * fewestMoves);
  });

  it('pack empties as many hosts as one plan can, with the fewest moves, and a second run empties none', async () => {
    const { instances, done, possible, moves, fewestMoves, again } = await packings(0, 20);
    expect(instances).toBe(20);
    expect([done, moves, again]).toEqual([possible, fewestMoves, 0]);
  });

  it('fit gives up no request that moves make room for, and needs few moves', async () => {
    const { feasible, moves, fewest, failed } = await fitTrials({
      ...{ from: 2000, clusters: 4, hosts: [8, 12], wanted: 6, seconds: 60 },
    });
    expect(feasible).toBeGreaterThan(2);
    expect(failed).toEqual([]);
    expect(moves).toBeLessThanOrEqual(1.1 * fewest);
  });
});
