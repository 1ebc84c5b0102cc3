import { describe, expect, it, test } from 'vitest';
import { OFTEN, typedSeconds, typedTime } from './typedTime.ts';

const NOW = '2026-03-10T10:20:30.000Z';
const read = (text: string, now = NOW): string | null => {
  const ms = typedTime(text, { nowMs: Date.parse(now), utc: true });
  return ms === null ? null : new Date(ms).toISOString();
};

describe('a time that a person types', () => {
  it.each([
    ['03:00', '2026-03-10T03:00:00.000Z'],
    ['3:00', '2026-03-10T03:00:00.000Z'],
    ['3am', '2026-03-10T03:00:00.000Z'],
    ['at 3 AM', '2026-03-10T03:00:00.000Z'],
    ['12am', '2026-03-10T00:00:00.000Z'],
    ['9:30:15z', '2026-03-10T09:30:15.000Z'],
    ['today 9:15', '2026-03-10T09:15:00.000Z'],
    ['yesterday 14:00', '2026-03-09T14:00:00.000Z'],
    ['yesterday at 2pm', '2026-03-09T14:00:00.000Z'],
    ['yesterday', '2026-03-09T10:20:30.000Z'],
    ['-2h', '2026-03-10T08:20:30.000Z'],
    ['2h', '2026-03-10T08:20:30.000Z'],
    ['1.5 h ago', '2026-03-10T08:50:30.000Z'],
    ['90m', '2026-03-10T08:50:30.000Z'],
    ['90 min ago', '2026-03-10T08:50:30.000Z'],
    ['1d', '2026-03-09T10:20:30.000Z'],
    ['now', NOW],
    ['2026-03-01 12:30', '2026-03-01T12:30:00.000Z'],
    ['2026-03-01', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01T12:30:15Z', '2026-03-01T12:30:15.000Z'],
    ['2026-03-01T12:30+02:00', '2026-03-01T10:30:00.000Z'],
  ])('%s is %s', (text, time) => {
    expect(read(text)).toBe(time);
  });

  it('is the last such time of day that has been', () => {
    expect(read('03:00', '2026-03-10T02:00:00Z')).toBe('2026-03-09T03:00:00.000Z');
    expect(read('11pm')).toBe('2026-03-09T23:00:00.000Z');
    expect(read('03:00', '2026-03-01T02:00:00Z')).toBe('2026-02-28T03:00:00.000Z');
  });

  it.each([
    '',
    'soon',
    '25:00',
    '3',
    '13pm',
    '0am',
    '12:60',
    '12:30:60',
    '12:30:15pmz',
    '600',
    'yesterday maybe',
    '2026-02-30',
    '2026-13-01',
    '10 weeks',
    'tomorrow 3am',
  ])('is not %j', (text) => {
    expect(read(text)).toBeNull();
  });

  it("is of the machine's zone where times are shown in that", () => {
    const nowMs = Date.parse(NOW);
    const local = new Date(typedTime('03:00', { nowMs, utc: false }) ?? Number.NaN);
    expect([local.getHours(), local.getMinutes()]).toEqual([3, 0]);
    expect(nowMs - local.getTime()).toBeLessThan(25 * 3_600_000);
  });

  it('is UTC where it says so', () => {
    expect(typedTime('03:00z', { nowMs: Date.parse(NOW), utc: false })).toBe(Date.parse('2026-03-10T03:00:00Z'));
  });

  it('is offered only where it is one', () => {
    for (const [, text] of OFTEN) expect(read(text)).not.toBeNull();
  });
});

test('durations have units, or are seconds', () => {
  expect(['600', '90s', '10 m', '1.5h', '1d'].map(typedSeconds)).toEqual([600, 90, 600, 5400, 86_400]);
  expect(['', '-1', '2 weeks', 'h', '1 2'].map(typedSeconds)).toEqual([null, null, null, null, null]);
});
