import { type ActInput, openSim, parseScenario } from '@kronos/simcloud';
import { expect, it } from 'vitest';
import { Chance } from './chance.ts';
import { SimulatedRecord } from './cloudRecord.ts';
import { kinds } from './faults.ts';
import { cloudActs } from './stage/cloud.ts';
import type { Stage } from './stage/stage.ts';
import { serverSettings } from './windows.ts';

/** The acts of a kind of fault on the cloud, over many draws. */
function actsOf(kind: string): ActInput[] {
  const acts: ActInput[] = [];
  const stage: Partial<Stage> = {
    act(act) {
      acts.push(act);
      return null;
    },
  };
  for (let draw = 0; draw < 500; draw++) kinds[kind]?.act(stage as Stage, new Chance(`${kind}/${draw}`));
  return acts;
}

it.each(['api-status', 'post-unknown'])('%s: what is answered with 4xx was not carried out', (kind) => {
  const effects = actsOf(kind).flatMap((act) => (act.act === 'faultApi' ? [act.fault.effect] : []));
  const statuses = effects.filter((effect) => effect.kind === 'status');
  expect(statuses.filter(({ processed }) => processed === true).length).toBeGreaterThan(0);
  expect(statuses.filter(({ status, processed }) => status < 500 && processed === true)).toEqual([]);
});

it.each(['metadata', 'tags'] as const)(
  'person-excludes: a server is opted out and in again, and its own windows in its %s stay',
  (how) => {
    const own = serverSettings([{ days: null, fromMinute: 60, toMinute: 120 }], how);
    const scenario = parseScenario({
      hosts: [{ name: 'a' }],
      flavors: [{ name: 'small', vcpus: 1, memoryMb: 512, diskGb: 1 }],
      servers: [{ name: 'vm', host: 'a', flavor: 'small', ...own }],
    });
    const sim = openSim({ scenario, seed: 1, clock: { now: () => 0 }, after: () => () => undefined });
    const kept = () => sim.cloud.server('vm');
    const { tags, metadata } = kept();
    const after: (() => void)[] = [];
    const stage: Partial<Stage> = {
      ...cloudActs(sim, new SimulatedRecord(sim.cloud), scenario),
      after: (_, act) => void after.push(act),
    };
    const ways = new Set<string>();
    for (let draw = 0; draw < 20; draw++) {
      kinds['person-excludes']?.act(stage as Stage, new Chance(`excludes/${draw}`));
      const out = kept();
      if (out.tags.includes('kronos:exclude')) ways.add('tag');
      if (out.metadata['kronos:exclude'] === 'yes') ways.add('metadata');
      expect(out.tags).toEqual(expect.arrayContaining([...tags]));
      expect(out.metadata).toMatchObject(metadata);
      after.pop()?.();
      expect({ tags: kept().tags, metadata: kept().metadata }).toEqual({ tags, metadata });
    }
    expect(ways).toEqual(new Set(['tag', 'metadata']));
  },
);

it('people: a cold migration waits for its confirmation, a migration is stopped, and a host leaves its aggregate and returns', () => {
  const scenario = parseScenario({
    hosts: [{ name: 'a' }, { name: 'b' }],
    aggregates: [{ name: 'all', hosts: ['a', 'b'] }],
    flavors: [{ name: 'small', vcpus: 1, memoryMb: 512, diskGb: 1 }],
    servers: ['one', 'two'].map((name) => ({ name, host: 'a', flavor: 'small' })),
  });
  let now = 0;
  const sim = openSim({ scenario, seed: 1, clock: { now: () => now }, after: () => () => undefined });
  const later = (ms: number): void => {
    now += ms;
    sim.settle();
  };
  const people = cloudActs(sim, new SimulatedRecord(sim.cloud), scenario);
  const [one, two] = [sim.cloud.server('one'), sim.cloud.server('two')];
  people.migrateCold(one.uuid);
  later(3_600_000);
  expect([one.host, one.vmState]).toEqual(['b', 'resized']);
  people.endResize(one.uuid, 'revertResize');
  later(3_600_000);
  expect([one.host, one.vmState]).toEqual(['a', 'active']);
  people.act({ act: 'faultServer', server: 'two', fault: { kind: 'hang' } });
  people.act({ act: 'migrateServer', server: 'two', host: 'b' });
  later(60_000);
  people.stopMigration(two.uuid);
  later(60_000);
  expect([two.host, sim.migrations().at(-1)?.status]).toEqual(['a', 'cancelled']);
  people.setMember('a', false);
  expect(sim.cloud.aggregate('all').hosts).toEqual(['b']);
  people.setMember('a', true);
  expect([...sim.cloud.aggregate('all').hosts].sort()).toEqual(['a', 'b']);
});

it('a cloud around its aggregates: a host is in a second one, computes are upgraded one by one, the cell is not reached, exporters die', () => {
  const scenario = parseScenario({
    hosts: [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
    aggregates: [
      { name: 'one', hosts: ['a', 'b'] },
      { name: 'two', hosts: ['c'] },
    ],
  });
  let now = 0;
  const sim = openSim({ scenario, seed: 1, clock: { now: () => now }, after: () => () => undefined });
  const record = new SimulatedRecord(sim.cloud);
  const later: { readonly atMs: number; readonly act: () => void }[] = [];
  const stage: Partial<Stage> = {
    ...cloudActs(sim, record, scenario),
    after: (ms, act) => void later.push({ atMs: now + ms, act }),
    onNext: (_, act) => act('executor-1'),
  };
  const seen = { shared: 0, unreachable: 0, mixed: 0, unmeasured: 0 };
  const look = (): void => {
    const hosts = [...sim.cloud.hosts.keys()];
    if (hosts.some((host) => record.aggregatesWith(host).length > 1)) seen.shared++;
    if (!hosts.every((host) => record.reachable(host))) seen.unreachable++;
    if (new Set(hosts.map((host) => record.hypervisorVersion(host))).size > 1) seen.mixed++;
    if (hosts.every((host) => record.unmeasuredSince(host) !== null)) seen.unmeasured++;
  };
  for (const kind of ['host-in-two-aggregates', 'computes-upgraded', 'cell-unreachable', 'exporters-die'])
    for (let draw = 0; draw < 20; draw++) {
      kinds[kind]?.act(stage as Stage, new Chance(`${kind}/${draw}`));
      look();
      for (let next = later.shift(); next !== undefined; next = later.sort((a, b) => a.atMs - b.atMs).shift()) {
        now = Math.max(now, next.atMs);
        next.act();
        look();
      }
    }
  for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
  expect([...sim.cloud.hosts.keys()].filter((host) => record.aggregatesWith(host).length !== 1)).toEqual([]);
  expect(sim.cloud.unreachable.size).toBe(0);
  expect(record.unmeasuredSince('a')).toBeNull();
});
