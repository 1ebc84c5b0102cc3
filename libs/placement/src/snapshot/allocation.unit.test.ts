import type { Policy, ServerObservation } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { type AllocationInput, allocationReadings } from './allocation.ts';

type Host = AllocationInput['hosts'][number];
const service = { status: 'enabled', state: 'up', forcedDown: false, disabledReason: null } as const;
const host = (name: string, capacity: number | null, used = 0, state: 'up' | 'down' = 'up'): Host => ({
  name,
  service: { ...service, state },
  inventory: capacity === null ? null : { VCPU: { capacity, used, minUnit: null, maxUnit: null, stepSize: null } },
});
type Server = Pick<ServerObservation, 'id' | 'host' | 'alsoOn' | 'resources'>;
const server = (id: string, on: string, vcpus: number, alsoOn: string[] = []): Server => ({
  id,
  host: on,
  alsoOn,
  resources: { VCPU: vcpus },
});
const policy = (allocation: string, enabled = true): Policy => ({ allocation, enabled }) as Policy;
const read = (allocation: string, hosts: readonly Host[], servers: readonly Server[]) =>
  allocationReadings({ policies: [policy(allocation)], hosts, servers });

describe('readings of allocation policies', () => {
  it('of a resource class are used / capacity, with the size of each host', () => {
    const { hostReadings, vmReadings } = read(
      'VCPU',
      [host('a', 100, 50), host('b', 200, 20)],
      [server('1', 'a', 10), server('2', 'b', 10)],
    );
    expect(hostReadings).toMatchObject([
      { query: 'allocated VCPU', health: 'HEALTHY', values: { a: 0.5, b: 0.1 }, missing: [] },
      { query: 'total VCPU', health: 'HEALTHY', values: { a: 100, b: 200 } },
    ]);
    expect(vmReadings).toMatchObject([{ query: 'allocated VCPU', health: 'HEALTHY', values: { 1: 0.1, 2: 0.05 } }]);
  });

  it('count a migrating VM on its source only, though Placement counts it on both hosts', () => {
    const [a] = read('VCPU', [host('a', 100, 50), host('b', 100, 20)], [server('1', 'a', 10, ['b'])]).hostReadings;
    expect(a?.values).toEqual({ a: 0.5, b: 0.1 });
  });

  it('stay within [0,1] where a ratio was lowered after the VMs were placed', () => {
    const { hostReadings, vmReadings } = read('VCPU', [host('a', 10, 40)], [server('1', 'a', 20)]);
    expect(hostReadings[0]?.values).toEqual({ a: 1 });
    expect(vmReadings[0]?.values).toEqual({ 1: 1 });
  });

  it('are PARTIAL while the capacity of a host that is up is unknown, and leave its VMs without a value', () => {
    const hosts = [host('a', 100, 50), host('b', null), host('c', 0), host('d', null, 0, 'down')];
    const { hostReadings, vmReadings } = read('VCPU', hosts, [server('1', 'b', 10)]);
    for (const reading of hostReadings)
      expect(reading).toMatchObject({
        health: 'PARTIAL',
        missing: ['b', 'c'],
        text: 'Placement gives no VCPU for b, c',
      });
    expect(vmReadings[0]?.values).toEqual({});
  });

  it('of instances are shares of the fullest host', () => {
    const hosts = [host('a', null), host('b', null), host('c', null)];
    const servers = [
      server('1', 'a', 1),
      server('2', 'a', 1),
      server('3', 'a', 1),
      server('4', 'a', 1),
      server('5', 'b', 1),
    ];
    const { hostReadings, vmReadings } = read('instances', hosts, servers);
    expect(hostReadings).toMatchObject([{ query: 'allocated instances', values: { a: 1, b: 0.25, c: 0 } }]);
    expect(vmReadings[0]?.values).toEqual({ 1: 0.25, 2: 0.25, 3: 0.25, 4: 0.25, 5: 0.25 });
    expect(read('instances', hosts, []).hostReadings[0]?.values).toEqual({ a: 0, b: 0, c: 0 });
  });

  it('are made once for policies that share a resource, and not for disabled policies or those with queries', () => {
    const hosts = [host('a', 100, 50)];
    const twice = allocationReadings({ policies: [policy('VCPU'), policy('VCPU')], hosts, servers: [] });
    expect(twice.hostReadings).toHaveLength(2);
    const none = { policies: [policy('VCPU', false), { enabled: true } as Policy], hosts, servers: [] };
    expect(allocationReadings(none)).toEqual({ hostReadings: [], vmReadings: [] });
  });
});
