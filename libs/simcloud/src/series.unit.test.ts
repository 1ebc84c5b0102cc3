import { describe, expect, test } from 'vitest';
import { Cloud } from './cloud.ts';
import type { SeriesFaultSetting } from './faults.ts';
import { seriesFaultSchema } from './faults.ts';
import { evaluatePromql } from './promql.ts';
import { PromqlError, parse } from './promqlParser.ts';
import { parseScenario } from './scenario.ts';
import type { SimSample } from './series.ts';

const START = Date.UTC(2026, 0, 1);

function cloud(): Cloud {
  return new Cloud(
    parseScenario({
      hosts: [
        { name: 'h1', vcpus: 10, memoryMb: 10_000 },
        { name: 'h2', vcpus: 20, memoryMb: 20_000 },
      ],
      flavors: [{ name: 'f', vcpus: 4, memoryMb: 4000 }],
      timing: { jitter: 0 },
      servers: [
        { name: 'a', host: 'h1', flavor: 'f', demand: { cpuCores: 2, memoryMb: 1000 } },
        { name: 'b', host: 'h1', flavor: 'f', demand: { cpuCores: 3, memoryMb: 3000 } },
        {
          name: 'wave',
          host: 'h2',
          flavor: 'f',
          demand: { cpuCores: 2, memoryMb: 1000, curve: { amplitude: 0.5, periodSeconds: 400 } },
        },
      ],
    }),
    { startMs: START },
  );
}

function ask(of: Cloud, query: string, atMs: number): readonly SimSample[] {
  const value = evaluatePromql(of, parse(query), atMs);
  return 'vector' in value ? value.vector : [];
}

function byHost(samples: readonly SimSample[]): Record<string, number> {
  return Object.fromEntries(samples.map((sample) => [sample.labels.host ?? '', sample.value]));
}

describe('load', () => {
  test('a host uses what its guests use, as a share of its size', () => {
    const it = cloud();
    expect(byHost(ask(it, 'host_cpu_utilisation', START))).toEqual({ h1: 0.5, h2: 0.1 });
    expect(byHost(ask(it, 'host_mem_utilisation', START))).toEqual({ h1: 0.4, h2: 0.05 });
  });

  test('stays on the source until the switch-over, then follows the guest', () => {
    const it = cloud();
    const { admin } = it;
    const caller = { userId: admin.id, projectId: admin.projectId, requestId: 'req-1' };
    it.liveMigrate(START, caller, it.server('a').uuid, { host: 'h2', force: false, async: true });
    let at = START;
    while (it.server('a').guestHost === 'h1') {
      expect(byHost(ask(it, 'host_cpu_utilisation', at)).h1).toBe(0.5);
      at += 1000;
      it.advance(at);
    }
    const later = at + 2000;
    it.advance(later);
    expect(byHost(ask(it, 'host_cpu_utilisation', later)).h1).toBe(0.3);
    // Earlier values can still be queried.
    expect(byHost(ask(it, 'host_cpu_utilisation', START)).h1).toBe(0.5);
  });

  test('a curve goes up and down with its period', () => {
    const it = cloud();
    const at = (seconds: number) => byHost(ask(it, 'vm_cpu_cores{host="h2"}', START + seconds * 1000)).h2;
    expect(at(0)).toBeCloseTo(2);
    expect(at(100)).toBeCloseTo(3);
    expect(at(300)).toBeCloseTo(1);
    expect(byHost(ask(it, 'avg_over_time(vm_cpu_cores{host="h2"}[400s])', START + 400_000)).h2).toBeCloseTo(2, 1);
  });

  test('a deleted server is gone from then on', () => {
    const it = cloud();
    it.deleteServer(START + 10_000, 'b');
    expect(byHost(ask(it, 'host_cpu_utilisation', START + 12_000)).h1).toBe(0.2);
    expect(byHost(ask(it, 'host_cpu_utilisation', START + 8000)).h1).toBe(0.5);
  });
});

describe('series faults', () => {
  const broken = (fault: SeriesFaultSetting): Cloud => {
    const it = cloud();
    it.faultSeries(START + 10_000, seriesFaultSchema.parse(fault));
    return it;
  };

  test('missing: gone at once, and still there before', () => {
    const it = broken({ kind: 'missing', metric: 'host_cpu_utilisation', labels: { host: 'h1' } });
    expect(byHost(ask(it, 'host_cpu_utilisation', START + 12_000))).toEqual({ h2: expect.any(Number) });
    expect(byHost(ask(it, 'host_cpu_utilisation', START + 8000)).h1).toBe(0.5);
    expect(byHost(ask(it, 'host_mem_utilisation', START + 12_000)).h1).toBe(0.4);
    it.clearSeries(START + 20_000);
    expect(byHost(ask(it, 'host_cpu_utilisation', START + 22_000)).h1).toBe(0.5);
  });

  test('stale: the last sample stays with its time, and is gone after five minutes', () => {
    const it = broken({ kind: 'stale', labels: { host: 'h1' } });
    const late = START + 100_000;
    expect(byHost(ask(it, 'host_cpu_utilisation', late)).h1).toBe(0.5);
    expect(byHost(ask(it, 'timestamp(host_cpu_utilisation)', late)).h1).toBe((START + 10_000) / 1000);
    expect(byHost(ask(it, 'timestamp(host_cpu_utilisation)', late)).h2).toBe(late / 1000);
    expect(byHost(ask(it, 'host_cpu_utilisation', START + 311_000)).h1).toBeUndefined();
  });

  test('frozen, duplicate, NaN, Inf and a value of choice', () => {
    const at = START + 100_000;
    expect(byHost(ask(broken({ kind: 'frozen' }), 'vm_cpu_cores{host="h2"}', at)).h2).toBeCloseTo(
      2 * (1 + 0.5 * Math.sin((2 * Math.PI * 10) / 400)),
    );
    expect(ask(broken({ kind: 'duplicate', labels: { host: 'h1' } }), 'host_cpu_utilisation', at).length).toBe(3);
    expect(byHost(ask(broken({ kind: 'nan' }), 'host_cpu_utilisation', at)).h1).toBeNaN();
    expect(byHost(ask(broken({ kind: 'inf' }), 'host_cpu_utilisation', at)).h1).toBe(Number.POSITIVE_INFINITY);
    expect(byHost(ask(broken({ kind: 'value', value: 1.5 }), 'host_cpu_utilisation', at)).h1).toBe(1.5);
  });
});

describe('PromQL', () => {
  test.each([
    ['host_cpu_utilisation{host="h1"}', { h1: 0.5 }],
    ['host_cpu_utilisation{host=~"h[12]"}', { h1: 0.5, h2: 0.1 }],
    ['host_cpu_utilisation{host!~"h1"}', { h2: 0.1 }],
    ['host_cpu_utilisation * 100', { h1: 50, h2: 10 }],
    ['(host_cpu_utilisation + 0.5) / 2', { h1: 0.5, h2: 0.3 }],
    ['host_cpu_utilisation - host_mem_utilisation', { h1: 0.1, h2: 0.05 }],
    ['sum by (host) (vm_cpu_cores)', { h1: 5, h2: 2 }],
    ['max(vm_cpu_cores) by (host)', { h1: 3, h2: 2 }],
    ['{__name__="host_cpu_cores"}', { h1: 10, h2: 20 }],
  ])('%s', (query, expected) => {
    const found = byHost(ask(cloud(), query, START));
    expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
    for (const [host, value] of Object.entries(expected)) expect(found[host]).toBeCloseTo(value);
  });

  test.each([
    '',
    'foo{',
    'foo{a}',
    'a b',
    '(',
    'rate(foo[5m])',
    'avg_over_time(foo)',
    'timestamp(foo[5m])',
    'foo[5x]',
    '{}',
    'a ^ b',
  ])('refuses %j', (query) => {
    expect(() => parse(query)).toThrow(PromqlError);
    expect(() => parse(query)).toThrow(/parse error/);
  });
});
