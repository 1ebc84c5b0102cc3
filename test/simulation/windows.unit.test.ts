import { expect, it } from 'vitest';
import { drawWindows, isOpen, openingsOf, readSpan, serverSettings, spanText, windowOptions } from './windows.ts';

const at = (iso: string): number => Date.parse(`${iso}:00Z`);
/** 2026-01-05 is a Monday; Kolkata is 5:30 ahead of UTC. */
const hours = (days: readonly [number, number] | null, fromMinute: number, toMinute: number) => ({
  zone: 'Asia/Kolkata',
  spans: [{ days, fromMinute, toMinute }],
  blackouts: [],
});

it('a window is open from its first minute up to its last, by the clock on the wall', () => {
  const night = hours([0, 3], 60, 120);
  const open = ['2026-01-05T19:29', '2026-01-05T19:30', '2026-01-05T20:29', '2026-01-05T20:30'].map((iso) =>
    isOpen(night, at(iso)),
  );
  expect(open).toEqual([false, true, true, false]);
  expect(isOpen(night, at('2026-01-08T20:00')), 'Friday').toBe(false);
});

it('a window that ends on the next day belongs to the day of its start', () => {
  const late = hours([6, 6], 1380, 60);
  const open = ['2026-01-04T17:30', '2026-01-04T19:00', '2026-01-04T19:30', '2026-01-05T17:30'].map((iso) =>
    isOpen(late, at(iso)),
  );
  expect(open).toEqual([true, true, false, false]);
});

it('a blackout closes what a window opens', () => {
  const black = { ...hours(null, 0, 1440), blackouts: [['2026-01-05T06:00', '2026-01-05T07:00']] as const };
  const open = ['2026-01-05T00:29', '2026-01-05T00:30', '2026-01-05T01:30'].map((iso) => isOpen(black, at(iso)));
  expect(open).toEqual([true, false, true]);
});

it('a server is limited by its own windows and by those of its aggregate', () => {
  const drawn = {
    usual: hours(null, 0, 600),
    own: new Map([['other', hours(null, 600, 1440)]]),
    servers: new Map([['vm', { spans: [{ days: null, fromMinute: 300, toMinute: 900 }], how: 'tags' as const }]]),
    evacuationIgnoresWindows: false,
  };
  const { open } = openingsOf(drawn, (uuid) => (uuid === 'u' ? 'vm' : null));
  // 04:00, 08:00 and 12:00 in Kolkata.
  const times = ['2026-01-05T22:30', '2026-01-05T02:30', '2026-01-05T06:30'].map(at);
  expect(times.map((ms) => open('usual', 'u', ms))).toEqual([false, true, false]);
  expect(times.map((ms) => open('usual', null, ms))).toEqual([true, true, false]);
  expect(times.map((ms) => open('other', 'u', ms))).toEqual([false, false, true]);
});

it('text says the same as the figures', () => {
  const span = { days: [6, 4] as const, fromMinute: 1439, toMinute: 61 };
  expect(spanText(span)).toBe('Sun-Fri 23:59-01:01');
  expect([span, { ...span, days: null }].map((one) => readSpan(spanText(one)))).toEqual([
    span,
    { ...span, days: null },
  ]);
  expect(serverSettings([span], 'tags')).toEqual({ tags: ['kronos:window=Sun-Fri 23:59-01:01'] });
  expect(serverSettings([span, span], 'metadata').metadata?.['kronos:window']).toContain(', ');
  expect(windowOptions(hours(null, 0, 1440))).toEqual({
    windows: ['00:00-24:00'],
    blackouts: [],
    timezone: 'Asia/Kolkata',
  });
});

it('some seeds have windows, and the same seed has the same ones', () => {
  const draw = (seed: number) =>
    drawWindows(
      seed,
      { aggregates: ['a', 'b'], servers: ['vm-1', 'vm-2', 'vm-3'] },
      at('2026-01-05T00:00'),
      86_400_000,
    );
  const drawn = Array.from({ length: 50 }, (_, seed) => draw(seed));
  const some = drawn.filter((one) => one !== null);
  expect(some.length).toBeGreaterThan(5);
  expect(some.length).toBeLessThan(45);
  expect(some.some(({ servers }) => servers.size > 0)).toBe(true);
  expect(Array.from({ length: 50 }, (_, seed) => draw(seed))).toEqual(drawn);
});

it('some seeds have windows that are shorter than most plans take, others have windows of hours', () => {
  const longest = Array.from({ length: 50 }, (_, seed) =>
    drawWindows(seed, { aggregates: [], servers: [] }, at('2026-01-05T00:00'), 86_400_000),
  ).flatMap((drawn) => {
    const lengths = (drawn?.usual.spans ?? []).map(({ fromMinute, toMinute }) => (toMinute - fromMinute + 1440) % 1440);
    return lengths.length === 0 ? [] : [Math.max(...lengths)];
  });
  expect(longest.filter((minutes) => minutes <= 12).length).toBeGreaterThan(3);
  expect(longest.filter((minutes) => minutes > 60).length).toBeGreaterThan(3);
});
