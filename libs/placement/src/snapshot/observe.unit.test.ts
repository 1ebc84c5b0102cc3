import { describe, expect, it } from 'vitest';
import { decideInput, SKETCH_TIME, type Sketch } from '../../testing/index.ts';
import { decide } from '../decide.ts';
import type { InFlightTask } from './memory.ts';
import { observe } from './observe.ts';

const at = (seconds: number): string => new Date(Date.parse(SKETCH_TIME) + 1000 * seconds).toISOString();

/** Free memory of b while v1 of 1 GiB is on its way from a to b, where 4 GiB were free before. */
function freeOnDestination(startedAtMs: number | null, migrations: Sketch['migrations'] = []): number | undefined {
  const task: InFlightTask = {
    taskId: 'agg-1-s1',
    serverId: 'v1',
    from: 'a',
    destination: 'b',
    resources: { VCPU: 1, MEMORY_MB: 1024 },
    weights: { cpu: { source: 0.1, destination: 0.1 } },
    ramMb: 1024,
    startedAtMs,
  };
  const { snapshot, memory, options } = decideInput({
    policies: { cpu: {} },
    hosts: { a: {}, b: { free: { MEMORY_MB: 4096 } } },
    vms: { v1: { host: 'a', w: { cpu: 0.1 } } },
    migrations,
    memory: { inFlight: [task] },
  });
  const { cluster } = observe(snapshot, memory, options, Date.parse(SKETCH_TIME));
  const host = cluster.hostIndex.get('b') ?? -1;
  return cluster.free[host * cluster.R + cluster.resourceClasses.indexOf('MEMORY_MB')];
}

describe('what a released move claims on its destination', () => {
  const running = [{ serverId: 'v1', sourceHost: 'a', destHost: 'b' }];

  it('is counted until Nova counts it', () => {
    expect(freeOnDestination(null)).toBe(3072);
    expect(freeOnDestination(Date.parse(at(-60)))).toBe(3072);
  });

  it('is not counted again when Nova counts it: the migration was there when the snapshot was taken', () => {
    expect(freeOnDestination(Date.parse(at(-60)), running)).toBe(4096);
  });

  it('is counted where the migration began after the snapshot, or goes elsewhere', () => {
    expect(freeOnDestination(Date.parse(at(60)), running)).toBe(3072);
    expect(freeOnDestination(Date.parse(at(-60)), [{ serverId: 'v1', sourceHost: 'a', destHost: 'c' }])).toBe(3072);
  });
});

describe('a move of another aggregate', () => {
  const task: InFlightTask = {
    taskId: 'other-1-s1',
    serverId: 'v1',
    from: 'a',
    destination: 'b',
    resources: { MEMORY_MB: 1024 },
    weights: {},
    ramMb: 1024,
    startedAtMs: null,
    aggregate: 'other',
  };
  const given = (vm: string, of: InFlightTask = task) =>
    decideInput({
      policies: { cpu: { maxMigrationsPerCycle: 1, threshold: 0.1 } },
      hosts: { a: {}, b: { free: { MEMORY_MB: 4096 } } },
      vms: { [vm]: { host: 'a', w: { cpu: 0.2 } }, v2: { host: 'a', w: { cpu: 0.2 } } },
      memory: { inFlight: [of] },
    });
  const freeOnB = (vm: string): number | undefined => {
    const { snapshot, memory, options } = given(vm);
    const { cluster } = observe(snapshot, memory, options, Date.parse(SKETCH_TIME));
    const host = cluster.hostIndex.get('b') ?? -1;
    return cluster.free[host * cluster.R + cluster.resourceClasses.indexOf('MEMORY_MB')];
  };

  it('acts: its VM is in flight here, with the aggregate that moves it, and its claim counts, also where the VM is not here yet', () => {
    const { snapshot, memory, options } = given('v1');
    expect(observe(snapshot, memory, options, Date.parse(SKETCH_TIME)).vmGrounds.get('v1')).toEqual({
      code: 'vm-in-flight',
      detail: { task: 'other-1-s1', to: 'b', aggregate: 'other' },
    });
    expect(freeOnB('v1')).toBe(3072);
    expect(freeOnB('v3')).toBe(3072);
  });

  it('refuses nothing else, and takes nothing from the budget', () => {
    const { plan } = decide(given('v1'));
    expect(plan?.steps.map(({ serverId }) => serverId)).toEqual(['v2']);
    const { aggregate: _, ...own } = task;
    expect(decide(given('v1', own)).plan).toBeNull();
  });
});

describe('a VM of several kinds that cannot be moved', () => {
  const groundOf = (set: object) => {
    const { snapshot, memory, options } = decideInput({
      policies: { cpu: {} },
      hosts: { a: {} },
      vms: { v1: { host: 'a', w: { cpu: 0.1 }, set } },
    });
    return observe(snapshot, memory, options, Date.parse(SKETCH_TIME)).vmGrounds.get('v1');
  };
  const alias = { 'pci_passthrough:alias': 'gpu:1' };
  const accelerator = { 'accel:device_profile': 'x' };

  it('is refused for the first of them by name, in whatever order they come', () => {
    const first = { code: 'vm-accelerator', detail: { extraSpec: 'accel:device_profile=x' } };
    expect(groundOf({ extraSpecs: { ...alias, ...accelerator } })).toEqual(first);
    expect(groundOf({ extraSpecs: { ...accelerator, ...alias } })).toEqual(first);
  });

  it('is refused for an extra spec before a claim', () => {
    const resources = { VGPU: 1, FPGA: 1, VCPU: 1 };
    expect(groundOf({ resources })).toEqual({ code: 'vm-accelerator', detail: { resourceClass: 'FPGA' } });
    expect(groundOf({ resources, extraSpecs: alias })?.code).toBe('vm-pci-device');
  });
});
