import type { Alarm, Facts } from '@kronos/status';
import { expect, it } from 'vitest';
import { seenSince } from './alarms.ts';

const alarm = (code: Alarm['code']): Alarm =>
  ({
    ...{ code, severity: 'alarm', about: 'gpu', text: code, remedy: '', runbook: '', explains: [] },
    places: [{ aggregate: 'gpu' }],
  }) as unknown as Alarm;

it('keeps since when alarms are seen over a time in which the log cannot be read', () => {
  const at =
    (timeMs: number, nats: Facts['nats']['state'], ...codes: Alarm['code'][]) =>
    (before: ReadonlyMap<string, number>) =>
      seenSince(before, { timeMs, alarms: codes.map(alarm) }, nats);
  const times = (...looks: ReturnType<typeof at>[]) => [
    ...looks.reduce((before, look) => look(before), new Map<string, number>() as ReadonlyMap<string, number>).values(),
  ];
  const seen = at(1000, 'ok', 'log-full');
  const outage = at(2000, 'unreachable', 'nats-unreachable');
  expect(times(seen, outage, at(3000, 'ok', 'log-full'))).toEqual([1000]);
  expect(times(seen, outage, at(3000, 'ok', 'clock-skew'))).toEqual([3000]);
  expect(times(seen, at(2000, 'ok'), at(3000, 'ok', 'log-full'))).toEqual([3000]);
});
