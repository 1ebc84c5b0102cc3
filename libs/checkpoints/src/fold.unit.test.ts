import type { LogPosition } from '@kronos/eventlog';
import { createFolder, type LogState } from '@kronos/projections';
import { expect, it } from 'vitest';
import { aggregateFold } from './fold.ts';

/** A view that has folded the log up to event 3, of 7. */
const behind = () => {
  const upTo = (sequence: number): LogPosition<LogState> => ({
    state: createFolder().snapshot(),
    sequence,
    expectedOn: () => sequence,
  });
  return aggregateFold({ at: () => upTo(3), refresh: async () => upTo(7) });
};

it('a decision is made on the log to its end, not as far as it happens to be folded', async () => {
  const at = await behind().refresh('gpu');
  expect([at.sequence, at.expectedOn('kronos.plans.gpu')]).toEqual([7, 7]);
});

it('a read of what is folded waits for nothing', () => {
  expect(behind().at('gpu').sequence).toBe(3);
});

it('a later position of the log is not mixed up with the one that was read before', async () => {
  const fold = behind();
  expect(fold.at('gpu').sequence).toBe(3);
  expect((await fold.refresh('gpu')).sequence).toBe(7);
  expect(fold.at('gpu').sequence).toBe(3);
});
