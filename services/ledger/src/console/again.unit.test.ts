import { expect, it } from 'vitest';

const { againMs } = await import(new URL('./again.js', import.meta.url).href);

it('what fails again waits twice as long, and at most half a minute', () => {
  expect([1, 2, 3, 6, 2000].map((failures) => againMs(failures))).toEqual([1000, 2000, 4000, 30_000, 30_000]);
  expect(againMs(2, 5000)).toBe(10_000);
});
