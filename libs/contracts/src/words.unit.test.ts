import { expect, it } from 'vitest';
import { count, some } from './words.ts';

it('one is counted in the singular', () => {
  expect([0, 1, 2].map((n) => count(n, 'move'))).toEqual(['0 moves', '1 move', '2 moves']);
  expect([1, 2].map((n) => count(n, 'entry', 'entries'))).toEqual(['1 entry', '2 entries']);
});

it('long lists of names are cut short and counted', () => {
  expect(some(['a', 'b'], 2)).toBe('a, b');
  expect(some(['a', 'b', 'c', 'd'], 2)).toBe('a, b and 2 more');
});
