import { describe, expect, it } from 'vitest';
import { decisionMs } from './memory.ts';

describe('the moment of a decision', () => {
  const time = '2026-01-05T00:01:00.000Z';

  it('is the time of its snapshot', () => {
    expect(decisionMs({ time }, { lastDecidedTime: null })).toBe(Date.parse(time));
    expect(decisionMs({ time }, { lastDecidedTime: '2026-01-05T00:00:00.000Z' })).toBe(Date.parse(time));
  });

  it('is never before the snapshot of the last decision', () => {
    const lastDecidedTime = '2026-01-05T00:01:00.500Z';
    expect(decisionMs({ time }, { lastDecidedTime })).toBe(Date.parse(lastDecidedTime));
  });
});
