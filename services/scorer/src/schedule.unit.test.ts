import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cycleAt, due, type ScheduleInput } from './schedule.ts';

const at = 60_000 * 1000;
const given = (more: Partial<ScheduleInput>): ScheduleInput => ({
  nowMs: at,
  intervalMs: 60_000,
  last: 999,
  standby: false,
  scope: ['gpu', 'std'],
  seen: () => null,
  ...more,
});

describe('a cycle', () => {
  test('is observed as it begins', () => {
    expect(due(given({}))).toEqual({ do: 'observe', cycle: 1000, aggregates: ['gpu', 'std'], skipped: 0 });
  });

  test('is observed at the start of the process, wherever in the cycle that is', () => {
    expect(due(given({ nowMs: at + 59_999, last: null }))).toMatchObject({ do: 'observe', cycle: 1000 });
  });

  test('is observed once', () => {
    expect(due(given({ last: 1000, nowMs: at + 1 }))).toEqual({ do: 'wait', milliseconds: 59_999 });
  });

  test('leaves out the aggregates that somebody else observed', () => {
    const seen = (aggregate: string) => (aggregate === 'gpu' ? 1000 : 999);
    expect(due(given({ seen }))).toMatchObject({ do: 'observe', aggregates: ['std'] });
    expect(due(given({ seen: () => 1000 }))).toEqual({ do: 'nothing', cycle: 1000 });
  });

  test('is left to somebody whose clock is a little ahead', () => {
    expect(due(given({ nowMs: at + 59_990, last: 999, seen: () => 1001 }))).toEqual({ do: 'nothing', cycle: 1000 });
  });

  test('that overran makes the next ones be skipped, and their number known', () => {
    expect(due(given({ last: 996 }))).toMatchObject({ do: 'observe', cycle: 1000, skipped: 3 });
  });

  test('follows a clock that was set back', () => {
    expect(due(given({ last: 2000 }))).toEqual({ do: 'wait', milliseconds: 60_000 });
    expect(due(given({ last: 999, seen: () => 2000 }))).toMatchObject({ do: 'observe' });
  });
});

describe('a standby', () => {
  test('waits half a cycle for somebody else', () => {
    expect(due(given({ standby: true, nowMs: at + 10_000 }))).toEqual({ do: 'wait', milliseconds: 20_000 });
  });

  test('takes over what is still missing then', () => {
    const seen = (aggregate: string) => (aggregate === 'gpu' ? 1000 : 999);
    expect(due(given({ standby: true, nowMs: at + 30_000, seen }))).toMatchObject({ aggregates: ['std'] });
  });

  test('has nothing to do when all is there', () => {
    expect(due(given({ standby: true, nowMs: at + 10_000, seen: () => 1000 }))).toEqual({ do: 'nothing', cycle: 1000 });
  });
});

test('two clocks that agree give the same cycle, and a wait ends at a boundary', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4e12 }), fc.integer({ min: 1000, max: 86_400_000 }), (nowMs, intervalMs) => {
      const cycle = cycleAt(nowMs, intervalMs);
      expect(cycle * intervalMs).toBeLessThanOrEqual(nowMs);
      expect((cycle + 1) * intervalMs).toBeGreaterThan(nowMs);
      const next = due(given({ nowMs, intervalMs, last: cycle }));
      expect(next).toEqual({ do: 'wait', milliseconds: (cycle + 1) * intervalMs - nowMs });
    }),
  );
});
