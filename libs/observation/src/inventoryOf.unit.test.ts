import { expect, test } from 'vitest';
import { inventoryOf, limitsHold } from './inventoryOf.ts';

const vcpu = { total: 64, reserved: 0, allocationRatio: 4, minUnit: 1, maxUnit: 64, stepSize: 2, capacity: 256 };

test('an inventory has capacity and use of now, and the limits of one allocation', () => {
  expect(inventoryOf({ VCPU: vcpu }, { VCPU: { capacity: 256, used: 8 } })).toEqual({
    VCPU: { capacity: 256, total: 64, used: 8, minUnit: 1, maxUnit: 64, stepSize: 2 },
  });
});

test('limits that are not known are null', () => {
  expect(inventoryOf({}, { CUSTOM_X: { capacity: 1, used: 0 } })).toEqual({
    CUSTOM_X: { capacity: 1, used: 0, minUnit: null, maxUnit: null, stepSize: null },
  });
});

test('limits hold while the classes and capacities are the same, whatever is used', () => {
  const limits = { VCPU: vcpu };
  expect(limitsHold(limits, { resources: { VCPU: { capacity: 256, used: 200 } } })).toBe(true);
  expect(limitsHold(limits, { resources: { VCPU: { capacity: 512, used: 0 } } })).toBe(false);
  expect(limitsHold(limits, { resources: {} })).toBe(false);
  expect(limitsHold(limits, { resources: { VCPU: { capacity: 256, used: 0 }, PCPU: { capacity: 4, used: 0 } } })).toBe(
    false,
  );
  expect(limitsHold({ MEMORY_MB: vcpu }, { resources: { VCPU: { capacity: 256, used: 0 } } })).toBe(false);
});
