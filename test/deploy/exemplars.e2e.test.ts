import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openWorld, type World } from '../e2e/world.ts';
import { findPrometheus, startPrometheus } from './prometheus.ts';

const prometheus = await findPrometheus('prometheus');
if (prometheus === null) console.warn('skipped: there is no prometheus, and its package cannot be downloaded');

describe.skipIf(prometheus === null)('exemplars, scraped by a Prometheus that keeps them', () => {
  let world: World;
  let server: Awaited<ReturnType<typeof startPrometheus>>;

  beforeAll(async () => {
    // Nobody takes the traces here: that is no concern of the metrics.
    world = await openWorld({ speed: 20, env: { OS_TELEMETRY__OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
    await world.until('a service of each kind', () => world.stage.urls.size === 4);
    const targets = [...world.stage.urls].map(([service, url]) => ({
      job: `kronos-${service}`,
      address: new URL(url).host,
    }));
    server = await startPrometheus(prometheus ?? '', targets, ['--enable-feature=exemplar-storage']);
    await world.until('a move that has ended', (events) => events.some((e) => e.type === 'migration.completed'));
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    await world?.close();
  });

  it.each([
    'kronos_cycle_duration_seconds_bucket',
    'kronos_openstack_request_duration_seconds_bucket',
    'kronos_decide_duration_seconds_bucket',
    'kronos_migration_duration_seconds_bucket',
  ])('%s leads to a trace', async (metric) => {
    const ask = async () => {
      const url = `${server.url}/api/v1/query_exemplars?query=${metric}&start=${Date.now() / 1000 - 300}&end=${Date.now() / 1000 + 60}`;
      const answer = (await (await fetch(url)).json()) as {
        data: { exemplars: { labels: { trace_id?: string } }[] }[];
      };
      return answer.data.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels.trace_id));
    };
    await expect.poll(ask, { timeout: 20_000 }).toContainEqual(expect.stringMatching(/^[0-9a-f]{32}$/));
  });
});
