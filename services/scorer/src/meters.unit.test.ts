import { emptySnapshot } from '@kronos/eventlog/testing';
import { createMetrics } from '@kronos/telemetry';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { describe, expect, it } from 'vitest';
import { measure } from './meters.ts';

const snapshot = (hosts: Readonly<Record<string, number>>) => ({
  ...emptySnapshot('gpu-1'),
  scores: {
    combined: 0.4,
    policies: [
      {
        policy: 'cpu',
        participates: true,
        reason: null,
        threshold: 0.2,
        weight: 1,
        imbalance: 0.4,
        detected: true,
        hosts: Object.fromEntries(Object.entries(hosts).map(([host, raw]) => [host, { raw, normalised: 0 }])),
      },
    ],
  },
});

describe('the metrics of hosts', () => {
  const scraped = async (hosts: boolean): Promise<string[]> => {
    const metrics = createMetrics(resourceFromAttributes({}));
    measure(metrics.instruments, snapshot({ a: 0.9, gone: 0.1 }), { hosts });
    measure(metrics.instruments, snapshot({ a: 0.7, b: 0.3 }), { hosts });
    const text = await metrics.scrape();
    await metrics.shutdown();
    return text.split('\n').filter((line) => line.startsWith('kronos_host_value_ratio'));
  };

  it('are those of the last snapshot: one series for each host and policy', async () => {
    expect(await scraped(true)).toEqual([
      'kronos_host_value_ratio{aggregate="gpu",host="a",policy="cpu"} 0.7',
      'kronos_host_value_ratio{aggregate="gpu",host="b",policy="cpu"} 0.3',
    ]);
  });

  it('are left out with [telemetry] host_metrics = false', async () => {
    expect(await scraped(false)).toEqual([]);
  });
});
