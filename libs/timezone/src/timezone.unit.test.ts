import { migrationWindow, UTC } from '@kronos/rules';
import { describe, expect, it } from 'vitest';
import { timeZoneRules } from './index.ts';

describe('the rules of a time zone', () => {
  it('lists the changes of daylight saving time until 2050', () => {
    const berlin = timeZoneRules('Europe/Berlin');
    expect(berlin?.since.slice(0, 4).map((second) => new Date(second * 1000).toISOString())).toEqual([
      '2024-01-01T00:00:00.000Z',
      '2024-03-31T01:00:00.000Z',
      '2024-10-27T01:00:00.000Z',
      '2025-03-30T01:00:00.000Z',
    ]);
    expect(berlin?.offsetSeconds.slice(0, 4)).toEqual([3600, 7200, 3600, 7200]);
    expect([berlin?.since.length, berlin?.offsetSeconds.length]).toEqual([53, 53]);
  });

  it('has one entry for a zone without daylight saving time, and none for UTC', () => {
    expect(timeZoneRules('Asia/Kolkata')).toEqual({
      name: 'Asia/Kolkata',
      since: [Date.parse('2024-01-01T00:00:00Z') / 1000],
      offsetSeconds: [19_800],
    });
    expect(timeZoneRules('UTC')).toBe(UTC);
  });

  it('refuses what is no name of a zone', () => {
    for (const name of ['Europe/Berln', '+02:00', '', 'CEST2', 'Europe/Berlin; x'])
      expect(timeZoneRules(name)).toBeNull();
  });

  it('agrees with the clock of the zone at every hour of two years', () => {
    const zone = timeZoneRules('America/St_Johns') ?? UTC;
    const clock = new Intl.DateTimeFormat('en-GB', {
      timeZone: 'America/St_Johns',
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
    const options = { windows: ['Mon-Fri 09:30-17:00'], blackouts: [], timezone: zone };
    const wrong: string[] = [];
    for (let at = Date.parse('2026-01-01T00:00:00Z'); at < Date.parse('2028-01-01T00:00:00Z'); at += 1_800_000) {
      const shown = clock.format(at);
      const time = shown.slice(-5);
      const open = !/^S/.test(shown) && time >= '09:30' && time < '17:00';
      if (migrationWindow(options, at).open !== open) wrong.push(`${new Date(at).toISOString()} ${shown}`);
    }
    expect(wrong).toEqual([]);
  });
});
