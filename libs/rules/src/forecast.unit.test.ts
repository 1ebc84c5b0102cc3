import { describe, expect, it } from 'vitest';
import { afterDecision, type Judged, noWaits, type Waits, waitLimit } from './forecast.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const next = (before: Waits, ...decisions: readonly Judged[]): Waits => decisions.reduce(afterDecision, before);
const after = (...decisions: readonly Judged[]): Waits => next(noWaits, ...decisions);
/** The plan would have left 8 minutes above a threshold. */
const waits = (atMs: number, untilMs: number): Judged => ({
  atMs,
  waits: { untilMs, plannedMs: 8 * MINUTE },
  above: true,
});
const looks = (atMs: number, above: boolean | null): Judged => ({ atMs, waits: null, above });
/** One wait of 4 minutes after the other, one an hour: a right one saves 4 minutes, a wrong one loses 4. */
const history = (...right: readonly boolean[]): Waits =>
  after(
    ...right.flatMap((ok, i) => {
      const at = i * HOUR;
      return [waits(at, at + 5 * MINUTE), looks(at + 4 * MINUTE, !ok)];
    }),
  );

describe('waits for an imbalance that is expected to pass', () => {
  it('begin once, and save what the plan would have cost more when it has passed in time', () => {
    const begun = after(waits(0, 5 * MINUTE), waits(MINUTE, 9 * MINUTE));
    expect(begun.open).toEqual({ sinceMs: 0, untilMs: 5 * MINUTE, plannedMs: 8 * MINUTE });
    expect(afterDecision(begun, looks(3 * MINUTE, false))).toEqual({
      open: null,
      days: [{ day: 0, savedMs: 5 * MINUTE }],
    });
  });

  it('lose all of their time when moves are made after all, and when it passed too late', () => {
    const begun = after(waits(0, 5 * MINUTE));
    for (const end of [looks(5 * MINUTE, true), looks(6 * MINUTE, false)])
      expect(afterDecision(begun, end).days).toEqual([{ day: 0, savedMs: -end.atMs }]);
  });

  it('go on through cycles that end before it matters', () => {
    const begun = after(waits(0, 5 * MINUTE));
    expect(afterDecision(begun, looks(MINUTE, null))).toBe(begun);
    expect(afterDecision(noWaits, looks(MINUTE, false))).toBe(noWaits);
  });

  it('are remembered by day, a week', () => {
    const end = (day: number): Judged[] => [waits(day * DAY, day * DAY + MINUTE), looks(day * DAY + MINUTE, true)];
    const { days } = after(...end(0), ...end(1), ...end(1.5), ...end(7));
    expect(days).toEqual([
      { day: 1, savedMs: -2 * MINUTE },
      { day: 7, savedMs: -MINUTE },
    ]);
  });
});

describe('the longest wait', () => {
  const NOW = 10 * HOUR;
  const minutes = (before: Waits, nowMs = NOW): number => (waitLimit(before, nowMs) - nowMs) / MINUTE;

  it('is 10 minutes, also where waits have saved more', () => {
    expect([noWaits, history(true), history(true, true)].map((each) => minutes(each))).toEqual([10, 10, 10]);
  });

  it('is shorter by what waits have lost more than they saved; less than 5 minutes is none', () => {
    expect(minutes(history(false))).toBe(6);
    expect(minutes(history(false, false))).toBe(0);
    expect(minutes(history(false, false, true))).toBe(6);
    expect(minutes(history(true, false, false))).toBe(6);
  });

  it('of one that has begun is what it was', () => {
    const begun = after(waits(0, 5 * MINUTE));
    expect(waitLimit(begun, 4 * MINUTE)).toBe(5 * MINUTE);
    expect(waitLimit(begun, 6 * MINUTE)).toBe(5 * MINUTE);
  });

  it('is what it was at first when the lost time is a week old', () => {
    const wrong = history(false, false);
    expect(minutes(wrong, 6.9 * DAY)).toBe(0);
    expect(minutes(wrong, 7 * DAY)).toBe(10);
  });

  it('lets waits lose at most 10 minutes more than they saved, however they come out', () => {
    let waited = noWaits;
    let worst = 0;
    for (let i = 0; i < 150; i++) {
      const at = i * HOUR;
      const limit = waitLimit(waited, at);
      if (limit <= at) continue;
      waited = next(waited, waits(at, limit), looks(limit, (i * i) % 7 < 5));
      worst = Math.min(
        worst,
        waited.days.reduce((sum, { savedMs }) => sum + savedMs, 0),
      );
    }
    expect(waited.days.length).toBeGreaterThan(0);
    expect(worst).toBeLessThan(0);
    expect(worst).toBeGreaterThanOrEqual(-10 * MINUTE);
  });
});
