import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until as untilTrue } from '@kronos/clock/testing';
import { parsePolicies } from '@kronos/config';
import type { Snapshot } from '@kronos/contracts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bedUrls } from '../../../test/openstack/urls.ts';
import { type BedScorer, openStand, type Stand } from '../testing/bed.ts';

const script = fileURLToPath(new URL('../../../test/openstack/bed', import.meta.url));
const bed = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(script, args, { maxBuffer: 64 * 1024 ** 2 })).stdout;

const AGGREGATE = 'kronos-scorer';
const policies = parsePolicies({
  file: 'policies.yaml',
  text: `policies:
  - {name: cpu, mode: spread, weight: 0.5, threshold: 0.2, max_migrations_per_cycle: 1, imbalance_query: host_cpu_utilisation,
     vm_profile_query: vm_cpu_cores / 64, vm_profile_label: instance_uuid}
  - {name: memory, mode: spread, weight: 0.5, threshold: 0.2, max_migrations_per_cycle: 1,
     imbalance_query: 'avg_over_time(host_mem_utilisation[10s])', vm_profile_query: vm_mem_mb / 262144, vm_profile_label: instance_uuid}
`,
}).policies;

describe('the scorer on a real OpenStack with a real Prometheus', () => {
  let stand: Stand;
  let scorer: BedScorer;
  let ids: string[];
  let cycle = 0;

  const take = async (): Promise<Snapshot> => {
    cycle += 1;
    expect(await scorer.cycle(cycle)).toEqual({ published: 1, duplicates: 0, failed: 0 });
    return stand.newest(AGGREGATE);
  };
  /** Snapshots until one of them fulfils the condition. */
  const until = async (condition: (snapshot: Snapshot) => boolean): Promise<Snapshot> => {
    let last: Snapshot | null = null;
    const found = async () => {
      last = await take();
      return condition(last) && last;
    };
    return untilTrue(found, 120_000, () => `a snapshot; the last: ${JSON.stringify(last)}`, 300);
  };
  const id = (place: number): string => ids[place] ?? '';

  beforeAll(async () => {
    await bed('reset');
    await bed('aggregate', AGGREGATE, 'cmp1', 'cmp2', 'cmp3');
    const group = /[0-9a-f-]{36}/.exec(await bed('group', 'kronos-scorer', 'anti-affinity'))?.[0] ?? '';
    const made = [
      await bed('servers', '2', 'cmp1', '4', '8000'),
      await bed('servers', '1', 'cmp2', '2', '4000', group),
    ];
    ids = made.join(' ').match(/[0-9a-f-]{36}/g) ?? [];
    expect(ids).toHaveLength(3);
    stand = await openStand({
      scope: [AGGREGATE],
      urls: bedUrls,
      policies,
    });
    scorer = stand.scorer({ stalenessMs: 30_000 });
  });
  afterAll(async () => {
    await stand?.close();
    await bed('reset');
  });

  test('sees hosts, servers, groups, capacity and load as they are', async () => {
    const snapshot = await until(({ vmReadings, hostReadings }) =>
      [...hostReadings, ...vmReadings].every((one) => one.health === 'HEALTHY' && Object.keys(one.values).length === 3),
    );
    expect(snapshot.problems).toEqual([]);
    expect(snapshot.hosts.map((one) => [one.name, one.service.state, one.service.status])).toEqual([
      ['cmp1', 'up', 'enabled'],
      ['cmp2', 'up', 'enabled'],
      ['cmp3', 'up', 'enabled'],
    ]);
    expect(snapshot.hosts.map((one) => one.inventory?.VCPU)).toEqual([
      { capacity: 256, total: 64, used: 4, minUnit: 1, maxUnit: 64, stepSize: 1 },
      { capacity: 256, total: 64, used: 2, minUnit: 1, maxUnit: 64, stepSize: 1 },
      { capacity: 256, total: 64, used: 0, minUnit: 1, maxUnit: 64, stepSize: 1 },
    ]);
    expect(snapshot.servers.map((one) => one.id)).toEqual([...ids].sort());
    for (const one of snapshot.servers) {
      expect(one).toMatchObject({
        status: 'ACTIVE',
        vmState: 'active',
        taskState: null,
        alsoOn: [],
        resources: { VCPU: 2, MEMORY_MB: 4096, DISK_GB: 1 },
      });
    }
    expect(snapshot.serverGroups).toMatchObject([{ policy: 'anti-affinity', members: [id(2)] }]);
    const cpu = snapshot.hostReadings[0]?.values;
    expect(cpu).toEqual({ cmp1: 0.125, cmp2: 0.03125, cmp3: 0 });
    expect(snapshot.vmReadings[0]?.values[id(0)]).toBe(0.0625);
    expect(snapshot.scores.policies.find((one) => one.policy === 'cpu')?.imbalance).toBe(0.125);
  });

  test('sees what users and operators do: a lock, a tag, a disabled host', async () => {
    await bed('api', 'POST', `/servers/${id(0)}/action`, '{"lock": {}}');
    await bed('api', 'PUT', `/servers/${id(1)}/tags/kronos:exclude`);
    await bed('host', 'cmp3', 'disable');
    const snapshot = await take();
    expect(snapshot.servers.find((one) => one.id === id(0))?.locked).toBe(true);
    expect(snapshot.servers.find((one) => one.id === id(1))?.optedOutBy).toBe('kronos:exclude');
    expect(snapshot.hosts[2]?.service).toMatchObject({ status: 'disabled', state: 'up' });
    await bed('host', 'cmp3', 'enable');
    await bed('api', 'POST', `/servers/${id(0)}/action`, '{"unlock": null}');
  });

  test('sees a live migration from its start to its end, on both hosts while it runs', async () => {
    const before = await take();
    const usedBefore = before.hosts.map((one) => one.inventory?.VCPU?.used);
    // It goes on when all has been seen that is to be seen meanwhile.
    await bed('fault', id(0), 'hang');
    await bed(
      'api',
      'POST',
      `/servers/${id(0)}/action`,
      '{"os-migrateLive": {"host": "cmp3", "block_migration": "auto"}}',
    );
    const running = await until(({ migrations }) => migrations.some((one) => one.destHost !== null));
    expect(running.migrations).toMatchObject([
      { serverId: id(0), type: 'live-migration', sourceHost: 'cmp1', destHost: 'cmp3' },
    ]);
    expect(running.servers.find((one) => one.id === id(0))).toMatchObject({
      host: 'cmp1',
      alsoOn: ['cmp3'],
      status: 'MIGRATING',
      taskState: 'migrating',
    });
    expect(running.problems).toEqual([]);
    // Placement holds the claim on both hosts.
    const both = await until(({ hosts }) => hosts[2]?.inventory?.VCPU?.used === 2);
    expect(both.hosts[0]?.inventory?.VCPU?.used).toBe(usedBefore[0]);
    await bed('fault', id(0), 'clear');
    // The lists are read one after the other: the servers may be older than the migrations.
    const after = await until(
      ({ migrations, servers }) =>
        migrations.length === 0 && servers.find((one) => one.id === id(0))?.taskState === null,
    );
    expect(after.servers.find((one) => one.id === id(0))).toMatchObject({
      host: 'cmp3',
      alsoOn: [],
      status: 'ACTIVE',
      taskState: null,
    });
    const settled = await until(({ hostReadings }) => hostReadings[0]?.values.cmp3 === 0.0625);
    expect(settled.hostReadings[0]?.values).toEqual({ cmp1: 0.0625, cmp2: 0.03125, cmp3: 0.0625 });
    expect(settled.vmReadings[0]).toMatchObject({ health: 'HEALTHY', values: { [id(0)]: 0.0625 } });
  });

  test('is not troubled by a deleted server, and finds it gone by itself', async () => {
    await bed('api', 'DELETE', `/servers/${id(1)}`);
    const snapshot = await until(({ servers }) => servers.every((one) => one.id !== id(1)));
    expect(snapshot.problems).toEqual([]);
  });

  test('does not miss the metrics of a host whose nova-compute is down', async () => {
    await bed('host', 'cmp2', 'stop');
    try {
      const snapshot = await until(({ hosts }) => hosts[1]?.service.state === 'down');
      expect(snapshot.problems).toEqual([]);
      expect(snapshot.hostReadings.map((one) => one.health)).toEqual(['HEALTHY', 'HEALTHY']);
      expect(snapshot.scores.policies.every((one) => one.participates)).toBe(true);
    } finally {
      await bed('host', 'cmp2', 'start');
    }
  });
});
