import { describe, expect, it } from 'vitest';
import { matchesPattern } from './pattern.ts';

describe('a pattern', () => {
  it.each([
    ['alarm.*', 'alarm.host-down', true],
    ['*', 'anything', true],
    ['migration.failed', 'migration.failed', true],
    ['*.failed', 'migration.failed', true],
    ['host.*ed', 'host.drained', true],
    ['a*a', 'a', false],
    ['a*b*a', 'aba', true],
    ['a*b*ba', 'aba', false],
    ['migration.failed', 'migration.failed.more', false],
    ['alarm.*', 'migration.failed', false],
    ['alarm.+', 'alarm.x', false],
    ['', 'x', false],
  ])('%s takes %s: %s', (pattern, text, fit) => {
    expect(matchesPattern(pattern, text)).toBe(fit);
  });
});
