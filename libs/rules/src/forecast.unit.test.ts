import { describe, expect, it } from 'vitest';
import { afterDecision, type Judged, notFollowed, noWaits, type Waits } from './forecast.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const after = (...decisions: readonly Judged[]): Waits => decisions.reduce(afterDecision, noWaits);
const waits = (atMs: number, waitsUntilMs: number): Judged => ({ atMs, waitsUntilMs, above: true });
const looks = (atMs: number, above: boolean | null): Judged => ({ atMs, waitsUntilMs: null, above });
/** One wait after the other, one an hour. */
const history = (...right: readonly boolean[]): Waits =>
  after(
    ...right.flatMap((ok, i) => {
      const at = i * 60 * MINUTE;
      return [waits(at, at + 5 * MINUTE), looks(at + 4 * MINUTE, !ok)];
    }),
  );

describe('waits for an imbalance that is expected to pass', () => {
  it('begin once, and end right when it has passed in time', () => {
    const begun = after(waits(0, 5 * MINUTE), waits(MINUTE, 9 * MINUTE));
    expect(begun.open).toEqual({ sinceMs: 0, untilMs: 5 * MINUTE });
    expect(afterDecision(begun, looks(4 * MINUTE, false))).toEqual({
      open: null,
      ended: [{ atMs: 4 * MINUTE, right: true }],
    });
  });

  it('end wrong when moves are made after all, and when it passed too late', () => {
    const begun = after(waits(0, 5 * MINUTE));
    for (const end of [looks(5 * MINUTE, true), looks(6 * MINUTE, false)])
      expect(afterDecision(begun, end).ended).toEqual([{ atMs: end.atMs, right: false }]);
  });

  it('go on through cycles that end before it matters', () => {
    const begun = after(waits(0, 5 * MINUTE));
    expect(afterDecision(begun, looks(MINUTE, null))).toBe(begun);
    expect(afterDecision(noWaits, looks(MINUTE, false))).toBe(noWaits);
  });
});

describe('a forecast', () => {
  it('is followed until the time that it named, and not longer', () => {
    const begun = after(waits(0, 5 * MINUTE));
    expect(notFollowed(begun, 5 * MINUTE - 1)).toBeNull();
    expect(notFollowed(begun, 5 * MINUTE)).toBe('late');
  });

  it('is followed while at most one wait was wrong, or three were right for each further one', () => {
    const followed = (...right: readonly boolean[]): boolean =>
      notFollowed(history(...right), 30 * 60 * MINUTE) === null;
    expect([followed(), followed(false), followed(false, true)]).toEqual([true, true, true]);
    expect(followed(false, false)).toBe(false);
    expect(followed(false, true, true, false)).toBe(false);
    expect(followed(false, true, true, true, false)).toBe(true);
  });

  it('is followed again when the wrong waits are a week old', () => {
    const wrong = history(false, false);
    expect(notFollowed(wrong, DAY)).toBe('wrong');
    expect(notFollowed(wrong, 8 * DAY)).toBeNull();
  });

  it('is judged by the last waits alone', () => {
    expect(history(...Array<boolean>(30).fill(true)).ended).toHaveLength(20);
  });
});
