import { describe, expect, it } from 'vitest';
import {
  migrationWindow,
  parseBlackout,
  parseWindow,
  serverWindow,
  serverWindows,
  UTC,
  type WindowOptions,
  windowText,
} from './window.ts';

const at = (iso: string): number => Date.parse(iso);
/** Berlin in 2026: summer time from 29 March 01:00 UTC to 25 October 01:00 UTC. */
const BERLIN = {
  name: 'Europe/Berlin',
  since: ['2025-10-26T01:00:00Z', '2026-03-29T01:00:00Z', '2026-10-25T01:00:00Z'].map((change) => at(change) / 1000),
  offsetSeconds: [3600, 7200, 3600],
};
const options = (windows: string[], blackouts: string[] = [], timezone: WindowOptions['timezone'] = UTC) => ({
  windows,
  blackouts,
  timezone,
});
/** `open` or `closed`, and until when. */
const state = (given: WindowOptions, iso: string): string => {
  const { open, untilMs } = migrationWindow(given, at(iso));
  return `${open ? 'open' : 'closed'} ${untilMs === null ? 'for good' : new Date(untilMs).toISOString().slice(0, 16)}`;
};

describe('a migration window', () => {
  const nights = options(['Mon-Fri 22:00-06:00', 'Sat-Sun 00:00-24:00']);

  it('acts: closed outside the windows, with the next opening', () => {
    expect(state(nights, '2026-11-23T12:00:00Z')).toBe('closed 2026-11-23T22:00');
    expect(state(nights, '2026-11-23T06:00:00Z')).toBe('closed 2026-11-23T22:00');
    expect(windowText(migrationWindow(nights, at('2026-11-23T12:00:00Z')))).toBe(
      'blocked by the window until 2026-11-23T22:00:00.000Z',
    );
  });

  it('does nothing: open inside, until the last of the windows that meet has closed', () => {
    expect(state(nights, '2026-11-23T22:00:00Z')).toBe('open 2026-11-24T06:00');
    // Friday night, the weekend; on Monday nothing is open until 22:00.
    expect(state(nights, '2026-11-27T23:00:00Z')).toBe('open 2026-11-30T00:00');
    expect(windowText(migrationWindow(nights, at('2026-11-27T23:00:00Z')))).toBeNull();
  });

  it('does nothing: without windows and blackouts, and with windows that cover the week', () => {
    expect(state(options([]), '2026-11-23T12:00:00Z')).toBe('open for good');
    expect(state(options(['00:00-24:00']), '2026-11-23T12:00:00Z')).toBe('open for good');
  });

  it('acts: a night belongs to the day on which it begins', () => {
    const friday = options(['Fri 22:00-06:00']);
    expect(state(friday, '2026-11-28T05:59:00Z')).toBe('open 2026-11-28T06:00');
    expect(state(friday, '2026-11-27T05:00:00Z')).toBe('closed 2026-11-27T22:00');
  });

  it('acts: days over the end of the week', () => {
    const days = options(['Sun-Mon 10:00-11:00']);
    expect(state(days, '2026-11-22T10:30:00Z')).toBe('open 2026-11-22T11:00');
    expect(state(days, '2026-11-23T10:30:00Z')).toBe('open 2026-11-23T11:00');
    expect(state(days, '2026-11-24T10:30:00Z')).toBe('closed 2026-11-29T10:00');
  });
});

describe('a blackout', () => {
  it('acts: closed on its days, the last one included, until the next opening after it', () => {
    const given = options(['22:00-06:00'], ['2026-12-24/2026-12-26']);
    expect(state(given, '2026-12-24T00:00:00Z')).toBe('closed 2026-12-27T00:00');
    expect(state(given, '2026-12-26T23:59:00Z')).toBe('closed 2026-12-27T00:00');
    expect(windowText(migrationWindow(given, at('2026-12-26T12:00:00Z')))).toBe(
      'blocked by the blackout 2026-12-24/2026-12-26 until 2026-12-27T00:00:00.000Z',
    );
    // It ends at noon, when no window is open.
    const noon = options(['22:00-06:00'], ['2026-12-24T23:00/2026-12-26T12:00']);
    expect(state(noon, '2026-12-25T00:00:00Z')).toBe('closed 2026-12-26T22:00');
  });

  it('acts: it closes an open window', () => {
    expect(state(options(['22:00-06:00'], ['2026-12-24']), '2026-12-23T23:00:00Z')).toBe('open 2026-12-24T00:00');
  });

  it('does nothing: before and after it', () => {
    const given = options([], ['2026-12-24']);
    expect(state(given, '2026-11-23T12:00:00Z')).toBe('open 2026-12-24T00:00');
    expect(state(given, '2026-12-25T00:00:00Z')).toBe('open for good');
  });

  it('acts: for years', () => {
    expect(state(options(['Mon 01:00-02:00'], ['2026-01-01/2029-01-01']), '2026-05-05T00:00:00Z')).toBe(
      'closed 2029-01-08T01:00',
    );
  });
});

describe('the night on which the clock goes forward', () => {
  const open = (window: string, iso: string) => state(options([window], [], BERLIN), iso);

  it('acts: a night from 22:00 to 06:00 has 7 hours', () => {
    expect(open('Sat 22:00-06:00', '2026-03-28T20:59:00Z')).toBe('closed 2026-03-28T21:00');
    expect(open('Sat 22:00-06:00', '2026-03-28T21:00:00Z')).toBe('open 2026-03-29T04:00');
  });

  it('acts: a start that is skipped is the moment of the change', () => {
    expect(open('Sun 02:30-03:30', '2026-03-29T00:59:00Z')).toBe('closed 2026-03-29T01:00');
    expect(open('Sun 02:30-03:30', '2026-03-29T01:00:00Z')).toBe('open 2026-03-29T01:30');
  });

  it('refuses: a window whose every moment is skipped does not open that night', () => {
    expect(open('Sun 02:15-02:45', '2026-03-29T00:30:00Z')).toBe('closed 2026-04-05T00:15');
  });

  it('acts: a blackout ends at the change when its end is skipped', () => {
    const given = options([], ['2026-03-28/2026-03-28', '2026-03-29T00:00/2026-03-29T02:30'], BERLIN);
    expect(state(given, '2026-03-28T12:00:00Z')).toBe('closed 2026-03-29T01:00');
  });
});

describe('the night on which the clock goes back', () => {
  const open = (window: string, iso: string) => state(options([window], [], BERLIN), iso);

  it('acts: a night from 22:00 to 06:00 has 9 hours', () => {
    expect(open('Sat 22:00-06:00', '2026-10-24T20:00:00Z')).toBe('open 2026-10-25T05:00');
  });

  it('acts: an hour that comes twice opens a window once', () => {
    expect(open('Sun 02:15-02:45', '2026-10-25T00:15:00Z')).toBe('open 2026-10-25T00:45');
    expect(open('Sun 02:15-02:45', '2026-10-25T01:20:00Z')).toBe('closed 2026-11-01T01:15');
  });

  it('acts: a blackout that ends in that hour ends the second time', () => {
    const given = options([], ['2026-10-25T00:00/2026-10-25T02:30'], BERLIN);
    expect(state(given, '2026-10-25T00:45:00Z')).toBe('closed 2026-10-25T01:30');
  });
});

describe('text that is no window', () => {
  it('refuses: names what is wrong and what to write', () => {
    for (const [text, problem, remedy] of [
      ['Mon-Fry 22:00-06:00', /"Fry" is not a day/, /Write Mon/],
      ['Mon 22-6', /is not a window/, /Write days and times/],
      ['Mon 24:00-06:00', /a time that no day has/, /00:00 to 23:59/],
      ['Mon 10:60-11:00', /a time that no day has/, /00:00 to 23:59/],
      ['Mon 10:00-10:00', /ends when it starts/, /00:00-24:00/],
      ['', /is not a window/, /Write days and times/],
    ] as const)
      expect(parseWindow(text)).toMatchObject({
        ok: false,
        problem: expect.stringMatching(problem),
        remedy: expect.stringMatching(remedy),
      });
    for (const [text, problem] of [
      ['2026-02-30', /is not a blackout/],
      ['24.12.2026', /is not a blackout/],
      ['2026-12-24T10:00', /is not a blackout/],
      ['2026-12-24/2026-12-26/2026-12-28', /is not a blackout/],
      ['2026-12-26/2026-12-24', /ends before it starts/],
      ['2026-12-24T25:00/2026-12-26', /is not a blackout/],
    ] as const)
      expect(parseBlackout(text)).toMatchObject({ ok: false, problem: expect.stringMatching(problem) });
  });

  it('refuses: nothing is open by it', () => {
    const state = migrationWindow(options(['whenever']), at('2026-11-23T12:00:00Z'));
    expect(state).toMatchObject({ open: false, untilMs: null });
    expect(windowText(state)).toBe('blocked by the window: "whenever" is not a window');
  });
});

describe("a server's own windows", () => {
  it('come from its metadata, with commas between them, and from its tags, one each', () => {
    expect(serverWindows({ metadata: { 'kronos:window': 'Mon 01:00-02:00, Tue 01:00-02:00' }, tags: [] })).toEqual([
      'Mon 01:00-02:00',
      'Tue 01:00-02:00',
    ]);
    expect(
      serverWindows({ metadata: {}, tags: ['web', 'kronos:window=Tue 01:00-02:00', 'kronos:window=Mon 01:00-02:00'] }),
    ).toEqual(['Mon 01:00-02:00', 'Tue 01:00-02:00']);
  });

  it('are kept as text, also what cannot be read: the decision says so', () => {
    expect(serverWindows({ metadata: { 'kronos:window': '' }, tags: [] })).toEqual(['']);
  });

  it('are none without such a key or tag', () => {
    expect(
      serverWindows({ metadata: { window: 'Mon 01:00-02:00' }, tags: ['kronos:windows', 'kronos:exclude'] }),
    ).toEqual([]);
  });

  it('acts: closed until they open, and refuses what cannot be read', () => {
    const noon = at('2026-11-23T12:00:00Z');
    expect(serverWindow(['13:00-14:00'], UTC, noon)).toEqual({ kind: 'closed', untilMs: at('2026-11-23T13:00:00Z') });
    expect(serverWindow(['11:00-14:00'], UTC, noon)).toEqual({ kind: 'open', endMs: at('2026-11-23T14:00:00Z') });
    expect(serverWindow([], UTC, noon)).toEqual({ kind: 'open', endMs: null });
    expect(serverWindow([''], UTC, noon)).toMatchObject({ kind: 'unreadable' });
  });
});
