import { readdirSync, readFileSync } from 'node:fs';
import { metricSpecs } from '@kronos/telemetry';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openWorld, settled, type World } from '../e2e/world.ts';
import { findPrometheus, startPrometheus } from './prometheus.ts';

type Panel = { title: string; type: string; targets: { expr?: string }[] };
type Dashboard = { uid: string; panels: Panel[] };

const directory = new URL('../../deploy/grafana/dashboards/', import.meta.url);
const dashboards = readdirSync(directory).map(
  (name) => JSON.parse(readFileSync(new URL(name, directory), 'utf8')) as Dashboard,
);
const queries = dashboards.flatMap(({ uid, panels }) =>
  panels.flatMap(({ title, targets }) =>
    targets.flatMap(({ expr }) => (expr === undefined ? [] : [{ name: `${uid}: ${title}`, expr }])),
  ),
);
/** Replaces the variables as Grafana does. */
const filled = (expr: string) =>
  expr.replaceAll('$aggregate', 'general').replaceAll('$policy', 'cpu').replaceAll('$__rate_interval', '10m');

const prometheus = await findPrometheus('prometheus');
if (prometheus === null) console.warn('skipped: there is no prometheus, and its package cannot be downloaded');

describe.skipIf(prometheus === null)('the dashboards, against services at work', () => {
  let world: World;
  let server: Awaited<ReturnType<typeof startPrometheus>>;

  beforeAll(async () => {
    // Nothing receives the traces here. The metrics only name them.
    world = await openWorld({ env: { OS_TELEMETRY__OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
    await world.until('a service of each kind', () => world.stage.urls.size === 4);
    const targets = [...world.stage.urls].map(([service, url]) => ({
      job: `kronos-${service}`,
      address: new URL(url).host,
    }));
    server = await startPrometheus(prometheus ?? '', targets, ['--enable-feature=exemplar-storage']);
    await world.until('a balanced cloud', settled);
  });
  afterAll(async () => {
    await server?.stop();
    await world?.close();
  });

  const ask = async (expr: string) => {
    const answer = await fetch(`${server.url}/api/v1/query?query=${encodeURIComponent(expr)}`);
    return (await answer.json()) as { status: string; error?: string; data?: { result: unknown[] } };
  };

  it('every query returns data', async () => {
    const empty: string[] = [];
    for (const { name, expr } of queries) {
      // A rate needs two scrapes. A gauge that a server has to be asked for appears in the next scrape.
      const answer = await expect
        .poll(async () => (await ask(filled(expr))).data?.result.length ?? 0, { timeout: 6000 })
        .toBeGreaterThan(0)
        .then(() => null)
        .catch(() => ask(filled(expr)));
      if (answer !== null) empty.push(`${name}: ${answer.error ?? 'no data'}\n  ${filled(expr)}`);
    }
    expect(empty).toEqual([]);
  });

  it.each([
    'kronos_cycle_duration_seconds_bucket',
    'kronos_openstack_request_duration_seconds_bucket',
    'kronos_decide_duration_seconds_bucket',
    'kronos_migration_duration_seconds_bucket',
  ])('%s leads to a trace', async (metric) => {
    const ask = async () => {
      const now = Date.now() / 1000;
      const url = `${server.url}/api/v1/query_exemplars?query=${metric}&start=${now - 600}&end=${now + 60}`;
      const answer = (await (await fetch(url)).json()) as {
        data: { exemplars: { labels: { trace_id?: string } }[] }[];
      };
      return answer.data.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels.trace_id));
    };
    await expect.poll(ask).toContainEqual(expect.stringMatching(/^[0-9a-f]{32}$/));
  });

  it('every metric that a dashboard shows is one that the services give', () => {
    const known = new Set<string>(Object.values(metricSpecs).map((spec) => spec.name));
    const used = queries.flatMap(({ expr }) => expr.match(/\bkronos_[a-z_]+/g) ?? []);
    expect(used.map((name) => name.replace(/_(bucket|sum|count)$/, '')).filter((name) => !known.has(name))).toEqual([]);
  });
});
