import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SEED } from './runs.ts';

it('properties of tests draw the same cases in every run', () => {
  expect(fc.readConfigureGlobal().seed).toBe(SEED);
});
