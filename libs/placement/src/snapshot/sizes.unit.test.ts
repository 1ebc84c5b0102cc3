import type { HostObservation } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { defaultSizes } from './sizes.ts';

type Totals = Readonly<Record<string, number>>;
const host = (name: string, totals: Totals | null): Pick<HostObservation, 'name' | 'inventory'> => ({
  name,
  inventory:
    totals === null
      ? null
      : Object.fromEntries(
          Object.entries(totals).map(([one, total]) => [
            one,
            { capacity: total * 4, total, used: 0, minUnit: 1, maxUnit: total, stepSize: 1 },
          ]),
        ),
});
const none = { hostSizeQuery: null };
const large = host('large', { VCPU: 64, MEMORY_MB: 524_288 });
const small = host('small', { VCPU: 8, MEMORY_MB: 131_072 });

describe('the sizes of hosts without a query', () => {
  it('are the totals of the resource class that the policy names', () => {
    expect(defaultSizes({ ...none, resourceClass: 'MEMORY_MB' }, [large, small])).toEqual({
      resourceClass: 'MEMORY_MB',
      named: true,
      totals: new Map([
        ['large', 524_288],
        ['small', 131_072],
      ]),
    });
  });

  it('are those of VCPU or MEMORY_MB in which the hosts differ more where it names none', () => {
    expect(defaultSizes(none, [large, small])).toMatchObject({ resourceClass: 'VCPU', named: false });
    const fat = host('fat', { VCPU: 64, MEMORY_MB: 4_194_304 });
    expect(defaultSizes(none, [large, fat])).toMatchObject({ resourceClass: 'MEMORY_MB', named: false });
  });

  it('count pinned CPUs', () => {
    const pinned = host('pinned', { PCPU: 60, VCPU: 4, MEMORY_MB: 524_288 });
    expect(defaultSizes(none, [large, pinned])).toBeNull();
  });

  it.each<[string, Parameters<typeof defaultSizes>]>([
    ['hosts are alike except for what firmware keeps', [none, [large, host('twin', { VCPU: 64, MEMORY_MB: 520_000 })]]],
    ['a query gives them', [{ hostSizeQuery: 'cores' }, [large, small]]],
    ['the policy is one of allocations', [{ hostSizeQuery: 'total VCPU', allocation: 'VCPU' }, [large, small]]],
    ['Placement gave nothing', [none, [large, host('unknown', null)]]],
  ])('are none where %s', (_, [policy, hosts]) => {
    expect(defaultSizes(policy, hosts)).toBeNull();
  });

  it('are none for a snapshot without totals, so that it replays as it was decided', () => {
    const old = [large, small].map(({ name, inventory }) => ({
      name,
      inventory: Object.fromEntries(Object.entries(inventory ?? {}).map(([one, { total: _, ...rest }]) => [one, rest])),
    }));
    expect(defaultSizes(none, old)).toBeNull();
  });
});
