import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cloud, failure, playCloud, type Route } from '../testing/index.ts';
import { BadAnswer, MicroversionUnsupported } from './errors.ts';
import { createPlacement, type Placement } from './placement.ts';

let cloud: Cloud;
let placement: Placement;
beforeEach(async () => {
  cloud = await playCloud();
  placement = createPlacement(cloud.session());
});
afterEach(() => cloud.close());

const CANDIDATES = 'GET /placement/allocation_candidates';
const offers = (max: string): Record<string, Route> => ({
  'GET /placement/': () => ({
    body: { versions: [{ id: 'v1.0', max_version: max, min_version: '1.0', status: 'CURRENT' }] },
  }),
});
const summary = (root: string, parent: string | null = null): unknown => ({
  resources: { VCPU: { capacity: 16, used: 4 } },
  traits: ['HW_CPU_X86_AVX2'],
  parent_provider_uuid: parent,
  root_provider_uuid: root,
});
const body = {
  allocation_requests: [
    { allocations: { a: { resources: { VCPU: 1 } }, a1: { resources: { PCPU: 1 } } }, mappings: {} },
    { allocations: { b: { resources: { VCPU: 1 } } } },
  ],
  provider_summaries: { a: summary('a'), a1: summary('a', 'a'), b: summary('b') },
};

describe('allocationCandidates', () => {
  it('counts the requests and reads the summaries', async () => {
    cloud.on({ [CANDIDATES]: () => ({ body }) });
    const found = await placement.allocationCandidates({
      resources: { VCPU: 2, MEMORY_MB: 4096, DISK_GB: 0 },
      memberOf: ['agg1', 'agg2'],
      required: ['COMPUTE_NODE'],
      forbidden: ['COMPUTE_STATUS_DISABLED'],
      limit: 50,
    });
    expect(found).toMatchObject({ allocationRequestCount: 2 });
    expect(found.providers.a1).toEqual({
      id: 'a1',
      rootId: 'a',
      resources: { VCPU: { capacity: 16, used: 4 } },
      traits: ['HW_CPU_X86_AVX2'],
    });
    expect(Object.fromEntries(cloud.of(CANDIDATES)[0]?.url.searchParams ?? [])).toEqual({
      resources: 'VCPU:2,MEMORY_MB:4096',
      member_of: 'in:agg1,agg2',
      required: 'COMPUTE_NODE,!COMPUTE_STATUS_DISABLED',
      limit: '50',
    });
    expect(cloud.of(CANDIDATES)[0]?.headers).toMatchObject({ 'openstack-api-version': 'placement 1.36' });
  });

  it('asks for one tree, or below 1.31 picks it out of all candidates', async () => {
    cloud.on({ [CANDIDATES]: () => ({ body }) });
    await placement.allocationCandidates({ resources: { VCPU: 1 }, inTree: 'a', limit: 1 });
    expect(cloud.of(CANDIDATES)[0]?.url.search).toBe('?resources=VCPU%3A1&in_tree=a&limit=1');

    cloud.on(offers('1.30'));
    const older = createPlacement(cloud.session());
    const found = await older.allocationCandidates({ resources: { VCPU: 1 }, inTree: 'a', limit: 1 });
    expect(cloud.of(CANDIDATES)[1]?.url.search).toBe('?resources=VCPU%3A1');
    expect(found).toMatchObject({ allocationRequestCount: 1 });
    expect(Object.keys(found.providers)).toEqual(['a', 'a1']);
    expect(await older.allocationCandidates({ resources: { VCPU: 1 }, inTree: 'z' })).toEqual({
      allocationRequestCount: 0,
      providers: {},
    });
  });

  it('below 1.29, without trees, takes each provider for its own root', async () => {
    const flat = { resources: { VCPU: { capacity: 1, used: 0 } }, traits: [] };
    cloud.on({
      ...offers('1.17'),
      [CANDIDATES]: () => ({
        body: {
          allocation_requests: [{ allocations: { a: { resources: { VCPU: 1 } } } }],
          provider_summaries: { a: flat },
        },
      }),
    });
    expect(await placement.allocationCandidates({ resources: { VCPU: 1 } })).toMatchObject({
      providers: { a: { rootId: 'a' } },
    });
    expect(await failure(placement.allocationCandidates({ resources: { VCPU: 1 }, memberOf: ['x'] }))).toBeInstanceOf(
      MicroversionUnsupported,
    );
  });

  it('names the field that an answer lacks', async () => {
    cloud.on({ [CANDIDATES]: () => ({ body: { allocation_requests: [], provider_summaries: { a: {} } } }) });
    const error = await failure(placement.allocationCandidates({ resources: { VCPU: 1 } }));
    expect(error).toBeInstanceOf(BadAnswer);
    expect(error).toMatchObject({ field: 'provider_summaries.a.resources' });
  });
});

describe('a provider', () => {
  it('shows its inventories with the capacity that Placement computes', async () => {
    const inventory = { total: 10, reserved: 1, allocation_ratio: 1.5, min_unit: 1, max_unit: 10, step_size: 1 };
    cloud.on({
      'GET /placement/resource_providers/a/inventories': () => ({
        body: { inventories: { VCPU: inventory }, resource_provider_generation: 3 },
      }),
    });
    expect(await placement.getInventories('a')).toEqual({
      VCPU: { total: 10, reserved: 1, allocationRatio: 1.5, minUnit: 1, maxUnit: 10, stepSize: 1, capacity: 13 },
    });
  });

  it('shows usages, traits and allocations', async () => {
    const of = (what: string): string => `GET /placement/resource_providers/a/${what}`;
    cloud.on({
      [of('usages')]: () => ({ body: { usages: { VCPU: 3 } } }),
      [of('traits')]: () => ({ body: { traits: ['T'] } }),
      [of('allocations')]: () => ({ body: { allocations: { vm: { resources: { VCPU: 3 } } } } }),
    });
    expect(await placement.getUsages('a')).toEqual({ VCPU: 3 });
    expect(await placement.getTraits('a')).toEqual(['T']);
    expect(await placement.getProviderAllocations('a')).toEqual({ vm: { VCPU: 3 } });
  });
});
