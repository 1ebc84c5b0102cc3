import { samples } from '@kronos/observation/testing';
import { describe, expect, it } from 'vitest';
import { grows, metricsOf, typesNeeded, wrongType } from './metricType.ts';

const of = (name: string, value = 0.5) => samples([[{ __name__: name, host: 'a' }, value]]);
const over = (...values: number[]) => [
  { labels: {}, samples: values.map((value, i) => ({ timeMs: i * 15_000, value })) },
];
const judged = (name: string, type: string | null, range = over(0.5, 0.5), value = 0.5) =>
  wrongType(name, { samples: of(name, value), range }, new Map(type === null ? [] : [[name, type]]));

describe('the type of a metric', () => {
  it('is wrong for a counter that its exporter declares, whatever its name', () => {
    expect(judged('ceilometer_cpu', 'counter')?.remedy).toContain('rate(ceilometer_cpu[5m])');
  });
  it('is wrong for an undeclared metric with the name of a counter that grows', () => {
    expect(judged('node_cpu_seconds_total', null, over(10, 20, 20))?.text).toContain('is a counter');
  });
  it('is wrong for a part of a histogram or summary', () => {
    const types = new Map([['latency_seconds', 'histogram']]);
    const found = wrongType('latency_seconds_bucket', { samples: of('latency_seconds_bucket'), range: [] }, types);
    expect(found?.text).toContain('a series of the histogram latency_seconds');
    expect(judged('load', 'summary')?.text).toContain('a series of the summary load');
  });
  it('is wrong for an info metric', () => {
    expect(judged('node_uname_info', 'gauge', over(1, 1), 1)?.text).toContain('always 1');
    expect(judged('node_uname', 'info')?.text).toContain('always 1');
  });
  it('is right for a gauge, also one with the name of a counter', () => {
    expect(judged('host_load', 'gauge')).toBeNull();
    expect(judged('memory_used_total', 'gauge', over(1, 2))).toBeNull();
    expect(judged('memory_used_total', null, over(2, 1, 3))).toBeNull();
    expect(judged('load_info', 'gauge', over(0.5), 0.5)).toBeNull();
  });
  it('does not matter where a function took the name', () => {
    const sum = samples([[{ host: 'a' }, 0.5]]);
    expect(metricsOf(sum)).toEqual([]);
    expect(wrongType('sum by (host) (x_total)', { samples: sum, range: over(1, 2) }, new Map())).toBeNull();
  });
  it('is asked for a metric and for the histogram that it may be a part of', () => {
    expect(typesNeeded(of('latency_seconds_sum'))).toEqual(['latency_seconds_sum', 'latency_seconds']);
    expect(typesNeeded(of('load'))).toEqual(['load']);
  });
});

describe('values grow', () => {
  it.each([
    [true, over(1, 2, 2)],
    [false, over(1, 2, 1)],
    [false, over(1, 1)],
    [false, over(1)],
    [false, [...over(1, 2), ...over(2, 1)]],
  ])('%s: %j', (expected, range) => {
    expect(grows(range)).toBe(expected);
  });
});
