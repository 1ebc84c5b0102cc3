import { expect, it } from 'vitest';
import { manualClock } from './index.ts';

it('stands still, and fires what comes due on the way, each at its own time', () => {
  const clock = manualClock(1000);
  const fired: string[] = [];
  clock.after(50, () => fired.push(`later at ${clock.now()}`));
  clock.after(20, () => {
    fired.push(`once at ${clock.monotonic()}`);
    clock.after(10, () => fired.push(`then at ${clock.read().wall}`));
  });
  clock.every(25, () => fired.push(`again at ${clock.now()}`));
  clock.after(5, () => fired.push('never'))();
  expect([clock.now(), fired]).toEqual([1000, []]);
  clock.advance(49);
  expect([clock.now(), fired]).toEqual([1049, ['once at 1020', 'again at 1025', 'then at 1030']]);
  clock.advance(1);
  expect(fired.slice(3)).toEqual(['later at 1050', 'again at 1050']);
});

it('ends a sleep when it has come to its time, and when its signal aborts', async () => {
  const clock = manualClock(0);
  const ending = new AbortController();
  const slept = [clock.sleep(10), clock.sleep(1000, ending.signal)];
  clock.advance(10);
  await slept[0];
  ending.abort();
  await slept[1];
  expect(clock.now()).toBe(10);
});

it('moves on from timer to timer', () => {
  const clock = manualClock(1000);
  const fired: string[] = [];
  clock.after(50, () => fired.push('once'));
  clock.every(30, () => fired.push('again'));
  expect([clock.advanceToNext(), clock.now(), fired]).toEqual([true, 1030, ['again']]);
  expect([clock.advanceToNext(), clock.now(), fired]).toEqual([true, 1050, ['again', 'once']]);
  expect(manualClock(0).advanceToNext()).toBe(false);
});
