import { type ManualClock, manualClock } from '@kronos/clock/testing';
import { expect, test } from 'vitest';
import { backoffMs, Deadline } from './deadline.ts';

/** A clock whose timers do not fire while it jumps, as in a process that does not run. */
function jumping(clock: ManualClock) {
  let jumpedMs = 0;
  return {
    clock: { ...clock, monotonic: () => clock.monotonic() + jumpedMs },
    jump: (ms: number) => {
      jumpedMs += ms;
    },
  };
}

test('time in which the process did not run does not count', async () => {
  const { clock, jump } = jumping(manualClock(0));
  const deadline = new Deadline(clock, 10_000);
  await deadline.attempt(3_000, async () => jump(60_000));
  expect(deadline.leftMs).toBe(7_000);
});

test('an attempt that ends late by a timer on time counts as long as it takes', async () => {
  const clock = manualClock(0);
  const deadline = new Deadline(clock, 10_000);
  await deadline.attempt(3_000, async () => clock.advance(8_000));
  expect(deadline.leftMs).toBe(2_000);
});

test('an attempt within its limit counts as long as it takes, also when it fails', async () => {
  const { clock, jump } = jumping(manualClock(0));
  const deadline = new Deadline(clock, 10_000);
  const failed = deadline.attempt(3_000, async () => {
    jump(1_000);
    throw new Error('no answer');
  });
  await expect(failed).rejects.toThrow('no answer');
  expect(deadline.leftMs).toBe(9_000);
});

test.each([
  [0, 25],
  [1, 50],
  [5, 800],
  [6, 1000],
  [2000, 1000],
])('after attempt %i the wait is %i ms', (tries, ms) => {
  expect(backoffMs(tries, 1000)).toBe(ms);
});
