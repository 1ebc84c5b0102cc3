import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, describe, expect, it } from 'vitest';
import { createMetrics, type Metrics } from './metrics.ts';

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
