import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bugs } from './bugs.ts';
import { withBug } from './plant.ts';

const root = join(import.meta.dirname, '../..');

it.each(bugs.map((bug) => [bug.name, bug] as const))('the planted bug "%s" still fits its place', (_, bug) => {
  for (const [file, source] of withBug(bug)) expect(source).not.toBe(readFileSync(join(root, file), 'utf8'));
});

it('there are at least 30 planted bugs, each with a name of its own', () => {
  expect(new Set(bugs.map((bug) => bug.name)).size).toBe(bugs.length);
  expect(bugs.length).toBeGreaterThanOrEqual(30);
});
