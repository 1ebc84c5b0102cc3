import { expect, it } from 'vitest';

const { stillWaits, waitsForPerson } = await import(new URL('./approval.js', import.meta.url).href);

it('a plan waits for a person until it expires, the last moment included, and never without a time limit', () => {
  const expiresAt = '2026-01-05T00:15:00.000Z';
  const atMs = Date.parse(expiresAt);
  expect([-1, 0, 1].map((ms) => stillWaits({ expiresAt }, atMs + ms))).toEqual([true, true, false]);
  expect([null, 'never'].map((never) => stillWaits({ expiresAt: never }, atMs))).toEqual([false, false]);
  const states = [{ state: 'proposed', expiresAt }, { state: 'released', expiresAt: null }, null];
  expect(states.map((plan) => waitsForPerson(plan, atMs))).toEqual([true, false, false]);
  expect(waitsForPerson(states[0], atMs + 1)).toBe(false);
});
