import { systemClock } from '@kronos/clock';
import { DAY_MS, MAX_FORECAST_VALUES, type Policy } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import type { Prometheus, RangeSeries } from '@kronos/prometheus';
import { describe, expect, it } from 'vitest';
import { forecastOf, HistoryReader } from './history.ts';

const NOW = Date.parse('2026-03-10T12:03:00Z');
const signal = new AbortController().signal;
const { policies } = snapshotOf({ policies: { cpu: { vmProfileLabel: 'uuid' } }, hosts: {}, vms: {} });
const vms = ['v1', 'v2'];
const names = vms.map((uuid) => ({ uuid, internalName: null, displayName: null }));
const servers = vms.map((id) => ({ id }));

/** A Prometheus that has, at each time since `sinceMs`, what `value` says of each VM. */
function prometheusOf(
  value: (vm: string, ms: number) => number,
  { sinceMs = 0, of = vms, more = [] as RangeSeries[] } = {},
) {
  const asked: { startMs: number; endMs: number; stepMs: number }[] = [];
  let down = false;
  let warnings: string[] = [];
  const range: Prometheus['range'] = async (_, { startMs, endMs, stepMs }) => {
    asked.push({ startMs, endMs, stepMs });
    if (down) throw new Error('connection refused');
    const series = of.map((vm): RangeSeries => {
      const samples: { timeMs: number; value: number }[] = [];
      for (let ms = startMs; ms <= endMs; ms += stepMs)
        if (ms >= sinceMs) samples.push({ timeMs: ms, value: value(vm, ms) });
      return { labels: { uuid: vm }, samples };
    });
    return { series: [...series, ...more], warnings, infos: [] };
  };
  const refuse = () => Promise.reject(new Error('only ranges are asked'));
  return {
    asked,
    fail: (fails: boolean) => {
      down = fails;
    },
    warn: (...texts: string[]) => {
      warnings = texts;
    },
    prometheus: {
      range,
      instant: refuse,
      runtimeInfo: refuse,
      metricNames: refuse,
      metricType: refuse,
      inProgress: () => [],
      close: async () => undefined,
    },
  };
}
const readerOf = (prometheus: Prometheus, horizonMs = 3_600_000) =>
  new HistoryReader({
    prometheus,
    clock: systemClock,
    horizonMs,
    days: 3,
    concurrency: 2,
    deadlineMs: 30_000,
  });
async function whole(reader: HistoryReader, of: readonly Policy[] = policies, nowMs = NOW) {
  let history = await reader.read(of, nowMs, signal);
  for (let cycle = 1; cycle < 7; cycle++) history = await reader.read(of, nowMs, signal);
  return history;
}
const hours = (ms: number) => Math.round(((ms % DAY_MS) / 3_600_000) * 1e4) / 1e4;

describe('the history that forecasts are made of', () => {
  it('acts: after a few cycles it has each point of each day, with two range queries per policy and cycle at most', async () => {
    const { prometheus, asked } = prometheusOf((vm, ms) => (vm === 'v1' ? hours(ms) / 24 : 0.123456));
    const reader = readerOf(prometheus);
    for (let cycle = 1; cycle <= 7; cycle++) {
      const before = asked.length;
      const { readings } = forecastOf(await reader.read(policies, NOW, signal), policies, servers, names);
      expect(asked.length - before).toBeLessThanOrEqual(2);
      const text = cycle === 7 ? '' : `${2 * cycle} of 13 points of the former days are read`;
      expect(readings).toMatchObject([{ text }]);
    }
    expect(asked[0]).toEqual({
      startMs: Date.parse('2026-03-07T12:00:00Z'),
      endMs: Date.parse('2026-03-09T12:00:00Z'),
      stepMs: DAY_MS,
    });
    const { stepSeconds, points, readings } = forecastOf(await whole(reader), policies, servers, names);
    expect({ stepSeconds, points }).toEqual({ stepSeconds: 300, points: 13 });
    expect(readings[0]?.days.map(({ ago }) => ago)).toEqual([1, 2, 3]);
    expect(readings[0]?.days[2]?.servers.v1?.slice(0, 2)).toEqual([0.5, 0.5035]);
    expect(readings[0]?.days[0]?.servers.v2).toEqual(Array(13).fill(0.1235));
  });

  it('reads one more point when a step is over, and nothing before', async () => {
    const { prometheus, asked } = prometheusOf(() => 0.1);
    const reader = readerOf(prometheus);
    await whole(reader);
    const before = asked.length;
    await reader.read(policies, NOW + 60_000, signal);
    expect(asked.length).toBe(before);
    await reader.read(policies, NOW + 120_000, signal);
    expect(asked.slice(before).map(({ endMs }) => new Date(endMs).toISOString())).toEqual(['2026-03-09T13:05:00.000Z']);
  });

  it('asks at most 13 points of a long horizon', async () => {
    const { prometheus } = prometheusOf(() => 0.1);
    const { stepSeconds, points } = forecastOf(await whole(readerOf(prometheus, 21_600_000)), policies, servers, names);
    expect({ stepSeconds, points }).toEqual({ stepSeconds: 1800, points: 13 });
  });

  it('refuses what is no history: it says why there is none', async () => {
    const empty = prometheusOf(() => 0.1, { sinceMs: NOW });
    expect(forecastOf(await whole(readerOf(empty.prometheus)), policies, servers, names).readings).toMatchObject([
      { text: 'Prometheus has no values of former days', days: [] },
    ]);
    const { prometheus, fail } = prometheusOf(() => 0.1);
    fail(true);
    const reader = readerOf(prometheus);
    expect(forecastOf(await whole(reader), policies, servers, names).readings).toMatchObject([
      { text: '0 of 13 points of the former days are read: connection refused', days: [] },
    ]);
    fail(false);
    expect(forecastOf(await whole(reader), policies, servers, names).readings).toMatchObject([{ text: '' }]);
  });

  it('keeps no point of an answer that may be partial, and reads it again once the store is back', async () => {
    const { prometheus, warn } = prometheusOf(() => 0.1);
    warn('No StoreAPIs matched for this query');
    const reader = readerOf(prometheus);
    expect(forecastOf(await whole(reader), policies, servers, names).readings).toMatchObject([
      {
        text: '0 of 13 points of the former days are read: the answer may be partial: No StoreAPIs matched for this query',
        days: [],
      },
    ]);
    warn();
    expect(forecastOf(await whole(reader), policies, servers, names).readings).toMatchObject([{ text: '' }]);
  });

  it('leaves out servers without all points, with values outside [0,1] and with two series, and days without any server', async () => {
    const { prometheus } = prometheusOf(
      (vm, ms) => (vm === 'v2' && NOW - ms < 1.5 * DAY_MS ? 1.5 : vm === 'v1' ? 0.2 : 0.1),
      { sinceMs: NOW - 2.5 * DAY_MS, of: ['v1', 'v2', 'v3', 'v3'] },
    );
    const all = [...names, { uuid: 'v3', internalName: null, displayName: null }];
    const { readings } = forecastOf(await whole(readerOf(prometheus)), policies, [...servers, { id: 'v3' }], all);
    expect(readings[0]?.days.map((day) => [day.ago, Object.keys(day.servers)])).toEqual([
      [1, ['v1']],
      [2, ['v1', 'v2']],
    ]);
  });

  it('is bounded: the oldest days are left out of a history that is too large, which says so', async () => {
    const many = Array.from({ length: Math.floor(MAX_FORECAST_VALUES / 13 / 2) }, (_, i) => `v${i}`);
    const { prometheus } = prometheusOf(() => 0.1, { of: many });
    const history = await whole(readerOf(prometheus));
    const { readings } = forecastOf(
      history,
      policies,
      many.map((id) => ({ id })),
      many.map((uuid) => ({ uuid, internalName: null, displayName: null })),
    );
    expect(readings[0]?.days.map(({ ago }) => ago)).toEqual([1, 2]);
    expect(readings[0]?.text).toContain('days before the last 2 are left out');
  });

  it('does nothing for policies that do not ask Prometheus', async () => {
    const { prometheus, asked } = prometheusOf(() => 0.1);
    const allocated = policies.map((policy) => ({ ...policy, allocation: 'VCPU' }));
    const history = await whole(readerOf(prometheus), allocated);
    expect(asked).toEqual([]);
    expect(forecastOf(history, allocated, servers, names).readings).toEqual([]);
  });
});
