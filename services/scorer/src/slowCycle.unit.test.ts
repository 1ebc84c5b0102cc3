import { describe, expect, it } from 'vitest';
import { longestRead, slowCycleText } from './slowCycle.ts';

const taking = { intervalMs: 60_000, beforeMs: 63_000, ended: true, longest: null };

describe('the text about a slow cycle', () => {
  it('is there when it takes 2 s longer than the interval, not before', () => {
    expect(slowCycleText({ ...taking, ms: 62_000 })).toBeNull();
    expect(slowCycleText({ ...taking, ms: 62_001 })).toBe(
      'a cycle took 62.1 s, and one is due every 60 s: cycles are skipped',
    );
    expect(slowCycleText({ ...taking, ms: 75_000, ended: false })).toBe(
      'a cycle has taken 75 s so far, and one is due every 60 s',
    );
  });

  it('is not there for a single cycle of less than two intervals', () => {
    const alone = { ...taking, beforeMs: 62_000 };
    expect(slowCycleText({ ...alone, ms: 122_000 })).toBeNull();
    expect(slowCycleText({ ...alone, ms: 122_001, ended: false })).toBe(
      'a cycle has taken 122.1 s so far, and one is due every 60 s',
    );
  });

  it('names the read that took longest', () => {
    const lists = [
      { of: 'query', use: 'imbalance', milliseconds: 9000 },
      { of: 'list', part: 'serverGroups', ok: true, milliseconds: 40_000 },
    ] as const;
    const read = (capacityMs?: number) =>
      slowCycleText({ ...taking, ms: 75_000, longest: longestRead(lists, capacityMs) });
    expect(read()).toBe(
      "a cycle took 75 s, and one is due every 60 s: cycles are skipped; Nova's list of server groups took longest, 40 s",
    );
    expect(read(50_000)).toMatch(/; the capacity of hosts took longest, 50 s$/);
    expect(longestRead([], undefined)).toBeNull();
  });
});
