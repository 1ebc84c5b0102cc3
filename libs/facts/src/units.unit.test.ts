import { describe, expect, it } from 'vitest';
import { providerFits } from './units.ts';

type Inventory = Parameters<typeof providerFits>[1][string];

describe('the resources of a server in a provider', () => {
  const inventory = (changes: Partial<Inventory> = {}): Inventory => ({
    minUnit: 1,
    maxUnit: 50,
    stepSize: 5,
    capacity: 100,
    ...changes,
  });
  it.each<[string, number, Partial<Inventory>, number, boolean]>([
    ['fit', 10, {}, 90, true],
    ['do not fit', 10, {}, 91, false],
    ['are more than one may have', 55, {}, 0, false],
    ['are less than one may have', 5, { minUnit: 10 }, 0, false],
    ['are out of step', 12, {}, 0, false],
    ['are none', 0, { capacity: 0 }, 0, true],
  ])('%s', (_, amount, changes, used, expected) => {
    expect(providerFits({ VCPU: amount }, { VCPU: inventory(changes) }, { VCPU: used })).toBe(expected);
  });

  it('do not fit into one without that class', () => {
    expect(providerFits({ PCPU: 1 }, { VCPU: inventory() }, {})).toBe(false);
  });
});
