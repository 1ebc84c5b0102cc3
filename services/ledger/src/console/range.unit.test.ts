import { describe, expect, it } from 'vitest';

const { episodesOf, following, isWhole, nearestTo, partOf, partText, usualPart, zoomed } = await import(
  new URL('./range.js', import.meta.url).href
);
const { merged } = await import(new URL('./markGroups.js', import.meta.url).href);

const MINUTE = 60_000;
/** A cycle a minute for six hours. */
const times = Array.from({ length: 361 }, (_, i) => i * MINUTE);
const nowMs = 360 * MINUTE + 20_000;
const known = (happened: readonly number[]) => ({ times, happened, nowMs });
const width = ({ fromMs, toMs }: { fromMs: number; toMs: number }) => toMs - fromMs;

describe('the part of the time that is shown', () => {
  it('around a moment is what happened then: it fills at least a third of it', () => {
    const happened = [60, 60.2, 61, 62, 300].map((minute) => minute * MINUTE);
    const part = usualPart(known(happened), 61.5 * MINUTE);
    expect(part.fromMs).toBeLessThan(60 * MINUTE);
    expect(part.toMs).toBeGreaterThan(62 * MINUTE);
    expect(width(part)).toBeLessThan(15 * MINUTE);
    // Far from everything: half an hour to both sides.
    expect(usualPart(known(happened), 180 * MINUTE)).toMatchObject({ fromMs: 132 * MINUTE, toMs: 228 * MINUTE });
  });

  it('now is what happened lately, if that is spread; else the whole', () => {
    const often = Array.from({ length: 20 }, (_, i) => i * 18 * MINUTE);
    expect(isWhole(usualPart(known(often), null), known(often))).toBe(true);
    const lately = [340, 343, 346, 350, 355].map((minute) => minute * MINUTE);
    const part = usualPart(known(lately), null);
    expect(part.toMs).toBe(nowMs);
    expect(part.fromMs).toBeLessThan(340 * MINUTE);
    expect(width(part)).toBeLessThan(200 * MINUTE);
    for (const happened of [[], [MINUTE]])
      expect(isWhole(usualPart(known(happened), null), known(happened))).toBe(true);
  });

  it('is named by an address, never reaches beyond what is recorded, and a wrong address is the usual part', () => {
    const part = { fromMs: 60 * MINUTE, toMs: 80 * MINUTE };
    expect(partOf(partText(part), known([]), null)).toEqual(part);
    expect(isWhole(partOf('all', known([MINUTE]), 5 * MINUTE), known([]))).toBe(true);
    expect(partOf('999999-1999999', known([]), null)).toEqual({ fromMs: 0, toMs: nowMs });
    for (const wrong of ['', '9-3', 'x-y', '1-99999999999999', null])
      expect(partOf(wrong, known([]), null)).toEqual(usualPart(known([]), null));
  });

  it('is zoomed around the moment, down to a few cycles and up to the whole', () => {
    const half = zoomed({ fromMs: 0, toMs: nowMs }, 0.5, 100 * MINUTE, known([]));
    expect(width(half)).toBe(nowMs / 2);
    expect((half.fromMs + half.toMs) / 2).toBe(100 * MINUTE);
    let part = half;
    for (let i = 0; i < 9; i++) part = zoomed(part, 0.5, 100 * MINUTE, known([]));
    expect(width(part)).toBe(12 * MINUTE);
    for (let i = 0; i < 9; i++) part = zoomed(part, 2, 100 * MINUTE, known([]));
    expect(isWhole(part, known([]))).toBe(true);
  });

  it('stays where it is while the moment is in it, and follows it beyond', () => {
    const part = { fromMs: 60 * MINUTE, toMs: 80 * MINUTE };
    expect(following(part, 60 * MINUTE, known([]))).toBe(part);
    expect(following(part, 100 * MINUTE, known([]))).toEqual({ fromMs: 90 * MINUTE, toMs: 110 * MINUTE });
  });

  it('has the cycle that is next to a time', () => {
    expect([-1, 29_000, 31_000, 9e9].map((ms) => nearestTo(times, ms))).toEqual([0, 0, 1, 360]);
  });
});

describe('what happened', () => {
  it('is one episode as long as it goes on', () => {
    expect(episodesOf([0, 1, 2, 10].map((minute) => minute * MINUTE))).toEqual([
      { fromMs: 0, toMs: 2 * MINUTE },
      { fromMs: 10 * MINUTE, toMs: 10 * MINUTE },
    ]);
  });

  it('is marked so that each mark can be hit: those that are too near are one, with all of them', () => {
    const marks = [0, 10, 23, 24, 30, 90].map((ms) => ({ ms, kind: ms === 23 ? 'plan' : 'moved' }));
    type Group = { x: number; marks: unknown[]; kind: string };
    const groups: Group[] = merged(marks, (ms: number) => ms, 24);
    expect(groups.map(({ x, marks: own, kind }) => [x, own.length, kind])).toEqual([
      [0, 3, 'plan'],
      [24, 2, 'moved'],
      [90, 1, 'moved'],
    ]);
  });
});
