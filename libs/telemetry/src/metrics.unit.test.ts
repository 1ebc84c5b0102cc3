import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, describe, expect, it } from 'vitest';
import { createLogger } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { startTracing, withSpan } from './tracing.ts';

let metrics: Metrics | null = null;
const create = () => {
  metrics = createMetrics(resourceFromAttributes({ 'service.name': 'kronos-test' }));
  return metrics;
};
afterEach(async () => {
  await metrics?.shutdown();
});

const lines = (text: string, name: string) => text.split('\n').filter((line) => line.startsWith(name));

describe('metrics', () => {
  it('are served in the text format of Prometheus: help, type, labels', async () => {
    const { instruments, scrape } = create();
    instruments.decisions.add(1, { aggregate: 'gpu "A"', outcome: 'quiet', reason: 'balanced' });
    instruments.decisions.add(2, { aggregate: 'gpu "A"', outcome: 'quiet', reason: 'balanced' });
    instruments.imbalance.set(0.25, { aggregate: 'gpu', policy: 'cpu' });
    instruments.imbalance.set(0.5, { aggregate: 'gpu', policy: 'cpu' });
    instruments.decideDuration.record(0.02, { aggregate: 'gpu' });
    const text = await scrape();
    expect(text).toContain(
      '# HELP kronos_decisions_total Decided snapshots by outcome and reason.\n# TYPE kronos_decisions_total counter\n',
    );
    expect(lines(text, 'kronos_decisions_total')).toEqual([
      'kronos_decisions_total{aggregate="gpu \\"A\\"",outcome="quiet",reason="balanced"} 3',
    ]);
    expect(lines(text, 'kronos_imbalance_ratio')).toEqual(['kronos_imbalance_ratio{aggregate="gpu",policy="cpu"} 0.5']);
    expect(text).toContain('# TYPE kronos_decide_duration_seconds histogram');
    expect(lines(text, 'kronos_decide_duration_seconds_bucket{aggregate="gpu",le="0.01"}')).toEqual([
      'kronos_decide_duration_seconds_bucket{aggregate="gpu",le="0.01"} 0',
    ]);
    expect(lines(text, 'kronos_decide_duration_seconds_bucket{aggregate="gpu",le="0.025"}')).toEqual([
      'kronos_decide_duration_seconds_bucket{aggregate="gpu",le="0.025"} 1',
    ]);
    expect(lines(text, 'target_info')).toEqual(['target_info{service_name="kronos-test"} 1']);
    for (const line of text
      .trim()
      .split('\n')
      .filter((l) => l !== ''))
      expect(line).toMatch(/^(# (HELP|TYPE) |[a-z_:]+(\{.*\})? [-+0-9.e]+$|[a-z_:]+(\{.*\})? (NaN|\+Inf)$)/);
  });

  it('are served in the OpenMetrics format too, where a histogram names the trace of its newest value', async () => {
    const tracing = await startTracing({
      resource: resourceFromAttributes({}),
      endpoint: null,
      headers: {},
      timeoutMs: 1000,
      samplingRatio: 1,
      log: createLogger({ service: 'test', version: '0', level: 'silent' }),
    });
    metrics = createMetrics(resourceFromAttributes({ 'service.name': 'kronos-test' }), { traced: true });
    const { instruments, scrape } = metrics;
    instruments.decisions.add(3, { aggregate: 'gpu "A"', outcome: 'quiet', reason: 'balanced' });
    instruments.imbalance.set(Number.NaN, { aggregate: 'gpu', policy: 'cpu' });
    instruments.decideDuration.record(0.02, { aggregate: 'gpu' });
    let traceId = '';
    for (const value of [0.9, 0.7, 40])
      await withSpan(tracing.tracer, 'decide', {}, (span) => {
        if (value < 1) ({ traceId } = span.spanContext());
        instruments.decideDuration.record(value, { aggregate: 'gpu' });
      });
    await tracing.shutdown();
    const text = await scrape('openmetrics');
    expect(text).toContain(
      '# TYPE kronos_decisions counter\n# HELP kronos_decisions Decided snapshots by outcome and reason.\nkronos_decisions_total{aggregate="gpu \\"A\\"",outcome="quiet",reason="balanced"} 3\n',
    );
    expect(text).toContain('kronos_imbalance_ratio{aggregate="gpu",policy="cpu"} NaN\n');
    expect(text).toContain('target_info{service_name="kronos-test"} 1\n');
    const buckets = lines(text, 'kronos_decide_duration_seconds_bucket');
    const bucket = (le: string) => buckets.find((line) => line.includes(`le="${le}"`));
    expect(bucket('0.025')).toBe('kronos_decide_duration_seconds_bucket{aggregate="gpu",le="0.025"} 1');
    expect(bucket('1.0')).toMatch(
      new RegExp(`aggregate="gpu",le="1.0"} 3 # {trace_id="${traceId}",span_id="[0-9a-f]{16}"} 0.7 [0-9.]+$`),
    );
    expect(bucket('+Inf')).toMatch(/} 4 # {trace_id="[0-9a-f]{32}",span_id="[0-9a-f]{16}"} 40 [0-9.]+$/);
    expect(lines(text, 'kronos_decide_duration_seconds_count')).toEqual([
      'kronos_decide_duration_seconds_count{aggregate="gpu"} 4',
    ]);
    expect(text.endsWith('\n# EOF\n')).toBe(true);
    expect(text).not.toContain('\n\n');
  });

  it('tell about the process itself', async () => {
    const text = await create().scrape();
    for (const name of [
      'process_start_time_seconds',
      'process_resident_memory_bytes',
      'process_cpu_seconds_total',
      'nodejs_heap_used_bytes',
      'nodejs_eventloop_utilization_ratio',
    ])
      expect(Number(lines(text, name)[0]?.split(' ')[1])).toBeGreaterThanOrEqual(0);
    expect(
      Math.abs(
        Number(lines(text, 'process_start_time_seconds')[0]?.split(' ')[1]) - (Date.now() / 1000 - process.uptime()),
      ),
    ).toBeLessThan(2);
  });

  it('of a group are replaced as a whole: a host that is gone ends, and other groups stay', async () => {
    const { instruments, scrape } = create();
    const host = (aggregate: string, name: string, value: number) => ({
      value,
      labels: { aggregate, host: name, policy: 'cpu' },
    });
    instruments.hostValue.replace('gpu', [host('gpu', 'a', 0.25), host('gpu', 'b', 0.5)]);
    instruments.hostValue.replace('web', [host('web', 'c', 1)]);
    expect(lines(await scrape(), 'kronos_host_value_ratio')).toHaveLength(3);
    instruments.hostValue.replace('gpu', [host('gpu', 'b', 0.75)]);
    const text = await scrape();
    expect(text).toContain('# TYPE kronos_host_value_ratio gauge');
    expect(lines(text, 'kronos_host_value_ratio')).toEqual([
      'kronos_host_value_ratio{aggregate="gpu",host="b",policy="cpu"} 0.75',
      'kronos_host_value_ratio{aggregate="web",host="c",policy="cpu"} 1',
    ]);
  });

  it('have room for each host of a large cloud', async () => {
    const { instruments, scrape } = create();
    const hosts = Array.from({ length: 6000 }, (_, i) => `compute-${i}`);
    instruments.hostValue.replace(
      'gpu',
      hosts.map((host) => ({ value: 0.5, labels: { aggregate: 'gpu', host, policy: 'cpu' } })),
    );
    expect(lines(await scrape(), 'kronos_host_value_ratio{aggregate="gpu"')).toHaveLength(6000);
  });

  it('take a value outside of a closed list of labels as "other", so that no data adds series without end', async () => {
    const { instruments, scrape } = create();
    for (let i = 0; i < 5; i++)
      instruments.openstackRequests.add(1, { api: 'nova', method: `M${i}` as 'GET', status: '2xx' });
    expect(lines(await scrape(), 'kronos_openstack_requests_total')).toEqual([
      'kronos_openstack_requests_total{api="nova",method="other",status="2xx"} 5',
    ]);
  });

  it('set computed gauges right before each scrape', async () => {
    const { instruments, scrape, onScrape } = create();
    let left = 10;
    onScrape(() => instruments.aggregateCooldown.set(left--, { aggregate: 'gpu' }));
    expect(lines(await scrape(), 'kronos_aggregate_cooldown_seconds')[0]).toMatch(/ 10$/);
    expect(lines(await scrape(), 'kronos_aggregate_cooldown_seconds')[0]).toMatch(/ 9$/);
  });
});
