import { expect, it } from 'vitest';
import { bugs } from './bugs.ts';
import { sourceOf, withBug } from './plant.ts';

it.each(bugs.map((bug) => [bug.name, bug] as const))('the planted bug "%s" still fits its place', (_, bug) => {
  expect(withBug(bug, sourceOf(bug))).not.toBe(sourceOf(bug));
});

it('there are at least 30 planted bugs, each with a name of its own', () => {
  expect(new Set(bugs.map((bug) => bug.name)).size).toBe(bugs.length);
  expect(bugs.length).toBeGreaterThanOrEqual(30);
});
