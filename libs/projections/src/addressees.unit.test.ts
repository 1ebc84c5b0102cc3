import { addressAll } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { ADDRESS_ALL } from './addressees.ts';

it('the fold takes the same events for all aggregates as the definitions name', () => {
  expect([...ADDRESS_ALL].sort()).toEqual([...addressAll].sort());
});
