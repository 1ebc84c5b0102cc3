import type { LogPosition } from '@kronos/eventlog';
import { createFolder, type LogState } from '@kronos/projections';
import { expect, it } from 'vitest';
import { folded } from './deps.ts';

/** A view that has folded the log up to event 3, of 7. */
const behind = () => {
  const upTo = (sequence: number): LogPosition<LogState> => ({
    state: createFolder().snapshot(),
    sequence,
    expectedOn: () => sequence,
  });
  return folded({ at: () => upTo(3), refresh: async () => upTo(7) });
};

it('a decision is made on the log to its end, not as far as it happens to be folded', async () => {
  const at = await behind().level('gpu');
  expect([at.sequence, at.expectedOn('kronos.plans.gpu')]).toEqual([7, 7]);
});

it('a look at what is folded waits for nothing', () => {
  expect(behind().now('gpu').sequence).toBe(3);
});
