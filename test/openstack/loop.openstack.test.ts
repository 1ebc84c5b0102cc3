import { createPrometheus } from '@kronos/prometheus';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { ended, released, settled, type Watch, watch } from '../e2e/world.ts';
import { bed, bedConfig, bedCpu, bedMemory, bedPolicy, bedUrls } from './urls.ts';

const AGGREGATE = 'kronos-loop';
const hosts = ['cmp1', 'cmp2', 'cmp3', 'cmp4', 'cmp5', 'cmp6'];
const thresholds = { cpu: 0.15, memory: 0.1 };

const config = ({ natsUrl, policiesFile }: { natsUrl: string; policiesFile: string }) => `[engine]
aggregates = ${AGGREGATE}
policies_file = ${policiesFile}
dry_run = false
evaluation_interval = 5
search_work_limit = 200000
cooldown = 10
instance_cooldown = 60
settle_seconds = 6
[executor]
max_concurrent_migrations = 4
poll_interval = 1
[prometheus]
url = ${bedUrls.prometheus}
staleness_threshold = 30
${bedConfig({ natsUrl })}`;

/** The host of each server of the test by Nova. */
async function placements(): Promise<Map<string, { host: string; status: string }>> {
  const stdout = await bed('api', 'GET', '/servers/detail?all_tenants=1');
  const { servers } = JSON.parse(stdout) as {
    servers: { id: string; status: string; 'OS-EXT-SRV-ATTR:host': string }[];
  };
  return new Map(servers.map((s) => [s.id, { host: s['OS-EXT-SRV-ATTR:host'], status: s.status }]));
}

type NovaMigration = {
  id: number;
  instance_uuid: string;
  status: string;
  source_compute: string;
  dest_compute: string;
};

async function novaMigrations(): Promise<NovaMigration[]> {
  const stdout = await bed('api', 'GET', '/os-migrations?migration_type=live-migration');
  return (JSON.parse(stdout) as { migrations: NovaMigration[] }).migrations;
}

describe('the four services on a real OpenStack', () => {
  let kronos: DemoInstallation;
  let log: Watch;
  let ids: string[];

  beforeAll(async () => {
    await bed('reset');
    await bed('seconds', '1');
    await bed('aggregate', AGGREGATE, ...hosts);
    // One host has high CPU load, another high memory use. All servers start on these two.
    const busy = await bed('servers', '9', 'cmp1', '5', '6000');
    const large = await bed('servers', '6', 'cmp2', '1', '20000');
    ids = `${busy}${large}`.split(/\s+/).filter((id) => /^[0-9a-f-]{36}$/.test(id));
    expect(ids).toHaveLength(15);
    kronos = await openInstallation({
      config,
      policies: `policies:\n${[bedCpu, bedMemory]
        .map((of) => bedPolicy({ ...of, weight: 0.5, threshold: thresholds[of.name], moves: 12 }))
        .join('')}`,
      say: () => {},
      onExit: () => {},
    });
    log = watch(kronos);
  });
  afterAll(async () => {
    await kronos?.close();
    await bed('reset');
  });

  it('bring both policies below their thresholds by real live migrations', async () => {
    await log.until('a balanced cloud', settled, 280_000);
    const prometheus = createPrometheus({ url: bedUrls.prometheus });
    for (const [query, threshold] of [
      ['host_cpu_utilisation', thresholds.cpu],
      ['host_mem_utilisation', thresholds.memory],
    ] as const) {
      const { samples } = await prometheus.instant(query, { timeMs: Date.now() });
      const values = samples.filter((s) => hosts.includes(s.labels.host ?? '')).map((s) => s.value);
      expect(values).toHaveLength(hosts.length);
      expect(Math.max(...values) - Math.min(...values), query).toBeLessThanOrEqual(threshold);
    }
    await prometheus.close();
  }, 290_000);

  it('every server is where the log says it is, and ran on', async () => {
    const at = await placements();
    const last = new Map<string, string>();
    for (const e of log.events) if (e.type === 'migration.completed') last.set(e.data.serverId, e.data.host);
    expect(last.size).toBeGreaterThan(0);
    for (const [id, host] of last) expect(at.get(id), id).toEqual({ host, status: 'ACTIVE' });
    for (const id of ids) if (!last.has(id)) expect(['cmp1', 'cmp2']).toContain(at.get(id)?.host);
  });

  it("Nova's record has one live migration per attempt, and each task ended once", async () => {
    expect(ended(log.events)).toEqual(new Set(released(log.events)));
    const started = log.events.filter((e) => e.type === 'migration.started');
    const mine = (await novaMigrations()).filter((m) => ids.includes(m.instance_uuid));
    expect(mine).toHaveLength(started.length);
    for (const e of log.events) {
      if (e.type !== 'migration.completed' || e.data.nova?.migrationId == null) continue;
      const own = mine.find((m) => m.id === e.data.nova?.migrationId);
      expect(own).toMatchObject({ instance_uuid: e.data.serverId, status: 'completed', dest_compute: e.data.host });
    }
  });
});
