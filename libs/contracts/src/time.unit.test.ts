import { describe, expect, it } from 'vitest';
import { timeOf } from './messages.ts';
import { eventTimeMs, snapshotTimeMs, timeMs } from './time.ts';

const STORED = Date.UTC(2026, 10, 21, 22, 0, 0);
const iso = (ms: number): string => new Date(ms).toISOString();

describe('the time of an event', () => {
  it.each([0, 1, -1, 59_999, -60_000, 60_000])('is the one in its body, %i ms from the timestamp', (by) =>
    expect(eventTimeMs(iso(STORED + by), STORED)).toBe(STORED + by),
  );
  it.each([
    ['2099-01-01T00:00:00.000Z', 60_000],
    ['1970-01-01T00:00:00Z', -60_000],
    [iso(STORED + 60_001), 60_000],
    [iso(STORED - 1_500_000), -60_000],
    ['no time', 0],
  ])('is at most a minute from the timestamp where the body says %s', (time, by) =>
    expect(eventTimeMs(time, STORED)).toBe(STORED + by),
  );
  it.each(['2026-02-28T23:59:59.999Z', '1999-12-31T12:34:56Z', '2026-01-05T00:00:00.123456Z'])('is read: %s', (time) =>
    expect(timeMs(time)).toBe(Date.parse(time)),
  );
  it('is compared with the timestamp that the event had before its log was restored', () => {
    const event = {
      type: 'unreadable' as const,
      aggregate: 'gpu',
      claimedType: 'x',
      claimedVersion: 1,
      problem: '',
      remedy: 'skip' as const,
    };
    expect(timeOf({ sequence: 1, storedAt: STORED, event })).toBe(STORED);
    expect(timeOf({ sequence: 1, storedAt: STORED, originallyStoredAt: 5, event })).toBe(5);
  });
});

describe('the time of a snapshot', () => {
  it.each([60_000, 0, -60_001, -86_400_000])('is the one in its body, %i ms from the timestamp', (by) =>
    expect(snapshotTimeMs(iso(STORED + by), STORED)).toBe(STORED + by),
  );
  it.each(['2099-01-01T00:00:00.000Z', iso(STORED + 60_001)])(
    'is at most a minute after the timestamp where the body says %s',
    (time) => expect(snapshotTimeMs(time, STORED)).toBe(STORED + 60_000),
  );
});
