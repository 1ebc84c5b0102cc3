import { commandSnapshotId, DAY_MS, snapshotSchema, UNASSIGNED } from '@kronos/contracts';
import { commandEvent } from '@kronos/eventlog/testing';
import type { Nova } from '@kronos/openstack';
import {
  type ActInput,
  demoCloud,
  generate,
  type ManualClock,
  manualClock,
  type ScenarioInput,
} from '@kronos/simcloud';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Bed, openBed, policies } from '../testing/bed.ts';
import { commandRequests } from './requests.ts';

const codes = (reasons: readonly { code: string }[]) => reasons.map((one) => one.code);

test('a snapshot has the NUMA cells of hosts, and of the servers that need some', async () => {
  const cells = [0, 1].map((id) => ({ id, dedicatedCpus: 8, sharedCpus: 8, memoryMb: 65_536, pages: { 1048576: 16 } }));
  const scenario: ScenarioInput = {
    hosts: ['cmp1', 'cmp2'].map((name) => ({ name, vcpus: 16, memoryMb: 131_072, cells })),
    aggregates: [{ name: 'numa', hosts: ['cmp1', 'cmp2'] }],
    flavors: [
      { name: 'plain', vcpus: 2, memoryMb: 2048 },
      {
        name: 'pinned',
        vcpus: 4,
        memoryMb: 4096,
        extraSpecs: {
          'hw:cpu_policy': 'dedicated',
          'hw:mem_page_size': '1GB',
          'hw:emulator_threads_policy': 'isolate',
        },
      },
    ],
    servers: [
      { name: 'a', host: 'cmp1', flavor: 'pinned' },
      { name: 'b', host: 'cmp1', flavor: 'pinned' },
      { name: 'c', host: 'cmp1', flavor: 'plain' },
    ],
  };
  await using bed = await openBed({ scenario, scope: ['numa'] });
  await bed.scorer().cycle(1);
  const snapshot = await bed.newest('numa');
  expect(snapshot.notes).toEqual([]);
  const own = ({ name }: { name: string }) => snapshot.servers.find((one) => one.name === name)?.topology?.cells;
  const held = { dedicatedCpus: 4, sharedCpus: 0, memoryMb: 4096, pageSizeKb: 1_048_576 };
  expect([own({ name: 'a' }), own({ name: 'b' }), own({ name: 'c' })]).toEqual([
    [{ ...held, hostCell: 0 }],
    [{ ...held, hostCell: 1 }],
    undefined,
  ]);
  expect(snapshot.servers.find(({ name }) => name === 'a')?.resources).toMatchObject({ PCPU: 5, MEMORY_MB: 4096 });
  expect(snapshot.hosts.map(({ topology }) => topology?.cells)).toEqual(
    [0, 1].map(() => cells.map(({ pages: _, ...cell }) => ({ ...cell, pages: [{ sizeKb: 1_048_576, total: 16 }] }))),
  );
});

describe('a snapshot of the demo cloud', () => {
  let bed: Bed;
  beforeAll(async () => {
    bed = await openBed({ scenario: demoCloud(), scope: ['general'] });
  });
  afterAll(() => bed.close());

  test('holds the cloud as it is', async () => {
    expect(await bed.scorer().cycle(1)).toEqual({ published: 1, duplicates: 0, failed: 0 });
    const snapshot = await bed.newest('general');
    expect(snapshotSchema.parse(snapshot)).toEqual(snapshot);
    expect(snapshot).toMatchObject({ id: 'general-1', purpose: 'cycle', problems: [], notes: [] });
    expect(snapshot.hosts).toHaveLength(12);
    expect(snapshot.servers).toHaveLength(150);
    expect(snapshot.serverGroups.map((one) => one.policy).sort()).toEqual([
      'affinity',
      'anti-affinity',
      'soft-affinity',
      'soft-anti-affinity',
    ]);
    const [first, ...others] = snapshot.hosts;
    expect(first).toMatchObject({
      name: 'compute-01',
      availabilityZone: 'az-a',
      service: { status: 'enabled', state: 'up' },
      inventory: {
        VCPU: { capacity: 256, minUnit: 1, maxUnit: 64, stepSize: 1 },
        MEMORY_MB: { capacity: 392_448, maxUnit: 262_144 },
        DISK_GB: { capacity: 8000 },
      },
    });
    expect(others.at(-1)?.service).toEqual({
      status: 'disabled',
      state: 'up',
      forcedDown: false,
      disabledReason: 'firmware upgrade',
    });
    const onFirst = snapshot.servers.filter((one) => one.host === 'compute-01');
    expect(first?.inventory?.VCPU?.used).toBe(onFirst.reduce((sum, one) => sum + (one.resources.VCPU ?? 0), 0));
    expect(snapshot.servers.filter((one) => one.optedOutBy === 'kronos:exclude')).toHaveLength(2);
    expect(snapshot.servers.filter((one) => one.locked)).toHaveLength(1);
    expect(snapshot.hostReadings.map((one) => one.health)).toEqual(['HEALTHY', 'HEALTHY']);
    expect(snapshot.vmReadings.map((one) => [one.health, Object.keys(one.values).length])).toEqual([
      ['HEALTHY', 150],
      ['HEALTHY', 150],
    ]);
    const { scores } = snapshot;
    expect(scores.policies.map((one) => [one.policy, one.participates, one.detected])).toEqual([
      ['cpu', true, true],
      ['memory', true, true],
    ]);
    expect(scores.combined).toBeCloseTo(
      scores.policies.reduce((sum, one) => sum + one.weight * (one.imbalance ?? 0), 0),
      12,
    );
  });

  test('is taken once over all scorers: the second one finds it there', async () => {
    const scorers = [bed.scorer({ name: 'one' }), bed.scorer({ name: 'two' })];
    const before = (await bed.taken()).length;
    const outcomes = await Promise.all(scorers.map((one) => one.cycle(2)));
    expect(outcomes.map((one) => one.published).sort()).toEqual([0, 1]);
    expect(outcomes.map((one) => one.duplicates).sort()).toEqual([0, 1]);
    expect((await bed.taken()).slice(before).map((one) => one.data.snapshotId)).toEqual(['general-2']);
  });

  test('in the rules-only mode asks no Prometheus', async () => {
    const before = bed.sim.counts();
    await bed.scorer({ balances: () => false, policiesOf: () => [] }).cycle(3);
    const after = bed.sim.counts();
    const asked = Object.keys(after).filter((route) => route.includes('prometheus') && after[route] !== before[route]);
    expect(asked).toEqual([]);
    const snapshot = await bed.newest('general');
    expect(snapshot).toMatchObject({ id: 'general-3', policies: [], hostReadings: [], vmReadings: [], problems: [] });
    expect(snapshot.scores).toEqual({ policies: [], combined: null });
  });

  test('shows a migration that people started, on both hosts', async () => {
    const server = (await bed.newest('general')).servers.find((one) => one.host === 'compute-02' && !one.locked);
    if (server === undefined) throw new Error('the demo has servers on compute-02');
    bed.sim.act({ act: 'setSpeed', speed: 50 });
    bed.sim.act({ act: 'faultServer', server: server.id, fault: { kind: 'hang' } });
    bed.sim.act({ act: 'migrateServer', server: server.id, host: 'compute-11' });
    const scorer = bed.scorer();
    for (let cycle = 100; ; cycle++) {
      await scorer.cycle(cycle);
      const snapshot = await bed.newest('general');
      const [migration] = snapshot.migrations;
      if (migration === undefined || migration.destHost === null) continue;
      expect(migration).toMatchObject({ serverId: server.id, sourceHost: 'compute-02', destHost: 'compute-11' });
      expect(snapshot.servers.find((one) => one.id === server.id)).toMatchObject({
        host: 'compute-02',
        alsoOn: ['compute-11'],
        status: 'MIGRATING',
        taskState: 'migrating',
      });
      break;
    }
  });
});

test('a forecast: what the VMs did on former days is in the snapshot, once all of it is read', async () => {
  const clock = manualClock();
  await using bed = await openBed({ scenario: demoCloud(), scope: ['general'], clock });
  clock.advance(3.5 * DAY_MS);
  const scorer = bed.scorer({ forecasts: () => true });
  await scorer.cycle(1);
  expect((await bed.newest('general')).forecast?.readings.map(({ text }) => text)).toEqual([
    '2 of 13 points of the former days are read',
    '2 of 13 points of the former days are read',
  ]);
  for (let number = 2; number <= 7; number++) await scorer.cycle(number);
  const { forecast, servers } = await bed.newest('general');
  expect(forecast).toMatchObject({ stepSeconds: 300, points: 13 });
  for (const { text, days } of forecast?.readings ?? []) {
    expect(text).toBe('');
    expect(days.map((day) => [day.ago, Object.keys(day.servers).length])).toEqual(
      [1, 2, 3].map((ago) => [ago, servers.length]),
    );
  }
  await bed.scorer({ name: 'without' }).cycle(8);
  expect((await bed.newest('general')).forecast).toBeUndefined();
});

test('pack mode: what the capacity and size queries say is in the snapshot too', async () => {
  await using bed = await openBed({ scenario: demoCloud(), scope: ['general'] });
  const packing = policies.map((one) => ({
    ...one,
    mode: 'pack' as const,
    capacityQuery: 'max_over_time(host_mem_utilisation[5m])',
    capacityThreshold: 0.8,
    hostSizeQuery: 'host_cpu_cores',
  }));
  await bed.scorer({ policiesOf: () => packing }).cycle(1);
  const snapshot = await bed.newest('general');
  expect(snapshot.policies).toEqual(packing);
  expect(snapshot.hostReadings.map((one) => [one.query, one.health])).toEqual([
    ['host_cpu_utilisation', 'HEALTHY'],
    ['max_over_time(host_mem_utilisation[5m])', 'HEALTHY'],
    ['host_cpu_cores', 'HEALTHY'],
    ['host_mem_utilisation', 'HEALTHY'],
  ]);
  expect(snapshot.hostReadings[2]?.values['compute-01']).toBe(64);
  expect(snapshot.scores.policies.every((one) => one.participates)).toBe(true);
});

describe('the number of calls', () => {
  const callsFor = async (vms: number, pageSize: number): Promise<Record<string, number>> => {
    await using bed = await openBed({ scenario: generate({ hosts: 6, vms }), scope: ['aggregate-1'] });
    const scorer = bed.scorer({ pageSize });
    // The first one also reads what is kept: versions, the token, the limits of the providers.
    await scorer.cycle(1);
    const before = bed.sim.counts();
    await scorer.cycle(2);
    const after = bed.sim.counts();
    return Object.fromEntries(
      Object.entries(after)
        .map(([route, count]): [string, number] => [route, count - (before[route] ?? 0)])
        .filter(([, count]) => count > 0),
    );
  };
  const sum = (calls: Record<string, number>): number => Object.values(calls).reduce((a, b) => a + b, 0);

  test('does not grow with the VMs', async () => {
    const [few, many] = [await callsFor(40, 1000), await callsFor(400, 1000)];
    expect(many).toEqual(few);
    expect(few['GET placement /allocation_candidates']).toBe(1);
    expect(Object.keys(few).filter((route) => route.includes('inventories'))).toEqual([]);
  });

  test('grows with the pages and nothing else', async () => {
    const [one, four] = [await callsFor(35, 1000), await callsFor(35, 10)];
    const servers = 'GET compute /v2.1/servers/detail';
    expect(four[servers]).toBe((one[servers] ?? 0) + 3);
    // Everything else fits into one page of ten.
    expect(sum(four) - sum(one)).toBe(3);
  });
});

describe('two aggregates and the pool', () => {
  const host = (name: string) => ({ name, vcpus: 16, memoryMb: 65_536, diskGb: 500 });
  const scenario: ScenarioInput = {
    hosts: ['a1', 'a2', 'b1', 'b2', 'free'].map(host),
    aggregates: [
      { name: 'left', hosts: ['a1', 'a2'] },
      { name: 'right', hosts: ['b1', 'b2'] },
    ],
    flavors: [{ name: 'm1', vcpus: 2, memoryMb: 4096, diskGb: 10 }],
    servers: ['a1', 'a2', 'b1', 'free'].map((name) => ({ name: `vm-${name}`, host: name, flavor: 'm1' })),
  };
  let bed: Bed;
  beforeEach(async () => {
    bed = await openBed({ scenario, scope: ['left', 'right', UNASSIGNED] });
  });
  afterEach(() => bed.close());
  const of = (name: string) => bed.newest(name);

  test('are scored on their own, from one observation', async () => {
    const scorer = bed.scorer();
    expect(await scorer.cycle(1)).toEqual({ published: 3, duplicates: 0, failed: 0 });
    const hosts = async (name: string) => (await of(name)).hosts.map((one) => one.name);
    expect(await hosts('left')).toEqual(['a1', 'a2']);
    expect(await hosts('right')).toEqual(['b1', 'b2']);
    expect(await hosts(UNASSIGNED)).toEqual(['free']);
    expect((await of(UNASSIGNED)).hosts[0]?.inventory?.VCPU?.used).toBe(2);
    const counts = bed.sim.counts();
    expect(counts['GET compute /v2.1/servers/detail']).toBe(1);
    // Two host queries are plain selectors: their age is asked too. Four queries, each also over a range.
    const instant = Object.entries(counts).filter(([route]) => /prometheus .*\/query$/.test(route));
    const range = Object.entries(counts).filter(([route]) => /prometheus .*\/query_range$/.test(route));
    expect(instant.reduce((total, [, count]) => total + count, 0)).toBe(4 + 2);
    expect(range.reduce((total, [, count]) => total + count, 0)).toBe(4);
  });

  test('have their own policies; a snapshot holds the readings of its own policies only', async () => {
    const [cpu, memory] = policies;
    if (cpu === undefined || memory === undefined) throw new Error('the demo has two policies');
    const [ofLeft, ofRight] = [[{ ...cpu, weight: 1 }], [{ ...memory, weight: 1, threshold: 0.5 }]];
    const policiesOf = (name: string) => (name === 'left' ? ofLeft : name === 'right' ? ofRight : []);
    const scorer = bed.scorer({ policiesOf, balances: (name) => name !== UNASSIGNED });
    expect(await scorer.cycle(1)).toEqual({ published: 3, duplicates: 0, failed: 0 });
    const queries = async (name: string) => (await of(name)).hostReadings.map((one) => one.query);
    expect([(await of('left')).policies, await queries('left')]).toEqual([ofLeft, [cpu.imbalanceQuery]]);
    expect([(await of('right')).policies, await queries('right')]).toEqual([ofRight, [memory.imbalanceQuery]]);
    expect((await of('left')).vmReadings.map((one) => one.query)).toEqual([cpu.vmProfileQuery]);
    expect(await of(UNASSIGNED)).toMatchObject({ policies: [], hostReadings: [], vmReadings: [] });
    expect((await of(UNASSIGNED)).scores).toEqual({ policies: [], combined: null });
  });

  test('one that cannot be published does not hinder the others', async () => {
    bed.onWrite = (write) => {
      if (write.kind === 'snapshot' && write.snapshot.aggregate === 'left') throw new Error('no room');
    };
    expect(await bed.scorer().cycle(1)).toEqual({ published: 2, duplicates: 0, failed: 1 });
    expect((await bed.taken()).map((one) => one.aggregate).sort()).toEqual([UNASSIGNED, 'right']);
  });

  test('one whose log was read too long ago is stored with the log that is read again', async () => {
    let asked = 0;
    const logMark = async () => {
      asked += 1;
      const aged = asked === 1 ? 'read too long ago' : null;
      return { mark: { installationId: null, sequence: asked }, aged: () => aged };
    };
    expect(await bed.scorer({ logMark }).cycle(1, ['left'])).toEqual({ published: 1, duplicates: 0, failed: 0 });
    expect((await bed.taken()).map(({ data }) => data.log)).toEqual([{ installationId: null, sequence: 2 }]);
  });

  test('a host in both makes both unplannable, and the pool not', async () => {
    bed.sim.act({ act: 'setAggregate', aggregate: 'right', hosts: ['b1', 'b2', 'a1'] });
    await bed.scorer().cycle(1);
    for (const name of ['left', 'right']) {
      expect((await of(name)).problems).toMatchObject([
        { code: 'host-in-two-aggregates', detail: { host: 'a1', aggregates: ['left', 'right'] } },
      ]);
    }
    expect((await of(UNASSIGNED)).problems).toEqual([]);
  });

  test('a deleted server is found deleted, and a vanished one makes its aggregate skip a cycle', async () => {
    let hidden = '';
    const nova = (whole: Nova): Nova => ({
      ...whole,
      listServers: async (...call) => (await whole.listServers(...call)).filter((one) => one.name !== hidden),
    });
    const scorer = bed.scorer({ nova });
    await scorer.cycle(1);
    bed.sim.act({ act: 'deleteServer', server: 'vm-a1' });
    await scorer.cycle(2);
    expect((await of('left')).problems).toEqual([]);
    expect((await of('left')).servers.map((one) => one.name)).toEqual(['vm-a2']);

    hidden = 'vm-a2';
    await scorer.cycle(3);
    const missed = await of('left');
    expect(codes(missed.problems)).toEqual(['server-vanished']);
    expect(missed.problems[0]?.text).toContain('Nova still has it on a2');
    expect((await of('right')).problems).toEqual([]);

    // It stays known, to another scorer too, which has only the stream to know it from.
    const other = bed.scorer({ name: 'other', nova });
    for (const [place, taken] of (await bed.taken()).entries()) other.seen.note(taken, place + 1);
    await other.cycle(4);
    expect(codes((await of('left')).problems)).toEqual(['server-vanished']);

    hidden = '';
    await scorer.cycle(5);
    expect((await of('left')).problems).toEqual([]);
    expect((await of('left')).servers.map((one) => one.name)).toEqual(['vm-a2']);
  });
});

describe('clouds of other ages', () => {
  const takeOn = async (versions: Pick<ScenarioInput, 'compute' | 'placement'>) => {
    await using bed = await openBed({ scenario: { ...demoCloud(), ...versions }, scope: ['general'] });
    await bed.scorer().cycle(1);
    return { snapshot: await bed.newest('general'), counts: bed.sim.counts() };
  };

  test('Queens: the snapshot is the same, except for what that Nova cannot tell', async () => {
    const { snapshot, counts } = await takeOn({ compute: '2.60', placement: '1.17' });
    expect(snapshot.problems).toEqual([]);
    expect(snapshot.notes).toEqual([]);
    expect(snapshot.servers).toHaveLength(150);
    expect(snapshot.servers.every((one) => !('pinnedAvailabilityZone' in one))).toBe(true);
    expect(snapshot.serverGroups).toHaveLength(4);
    expect(snapshot.servers.filter((one) => one.optedOutBy !== null)).toHaveLength(2);
    // Placement has no candidates of nested providers there, so each provider has a request of its own.
    expect(snapshot.hosts.every((one) => one.inventory?.VCPU?.maxUnit === 64 && one.traits !== null)).toBe(true);
    expect(counts['GET placement /resource_providers/{id}/usages']).toBe(12);
  });

  test('today: pinned zones are known, and capacity takes one call', async () => {
    const { snapshot, counts } = await takeOn({ compute: '2.100', placement: '1.39' });
    expect(snapshot.servers.filter((one) => one.pinnedAvailabilityZone === 'az-a')).toHaveLength(1);
    expect(counts['GET placement /allocation_candidates']).toBe(1);
    expect(counts['GET placement /resource_providers/{id}/usages']).toBeUndefined();
  });
});

describe('when a part of the cloud does not answer', () => {
  let bed: Bed;
  beforeAll(async () => {
    bed = await openBed({ scenario: demoCloud(), scope: ['general'] });
  });
  afterAll(() => bed.close());
  afterEach(() => {
    bed.sim.act({ act: 'mendAll' });
  });
  let cycle = 0;
  const take = async (acts: readonly ActInput[], scorer = bed.scorer()) => {
    for (const act of acts) bed.sim.act(act);
    cycle += 1;
    expect(await scorer.cycle(cycle)).toMatchObject({ published: 1 });
    return bed.newest('general');
  };
  const broken = (api: 'compute' | 'placement' | 'prometheus', path?: string): ActInput => ({
    act: 'faultApi',
    fault: { api, ...(path === undefined ? {} : { path }), effect: { kind: 'status', status: 503 } },
  });

  test('Nova: the snapshot says so, and forbids planning', async () => {
    const scorer = bed.scorer();
    expect(scorer.openstack()).toEqual({ ok: true });
    const snapshot = await take([broken('compute')], scorer);
    expect(scorer.openstack()).toMatchObject({ ok: false, reason: expect.stringContaining('servers: ') });
    expect(scorer.prometheus()).toEqual({ ok: true });
    expect(codes(snapshot.problems)).toEqual([
      'aggregates-unknown',
      'servers-unknown',
      'server-groups-unknown',
      'migrations-unknown',
    ]);
    expect(snapshot.hosts).toEqual([]);
  });

  test.each([
    ['/servers/detail', 'servers-unknown'],
    ['/os-server-groups', 'server-groups-unknown'],
    ['/os-migrations', 'migrations-unknown'],
    ['/os-hypervisors', 'hypervisors-unknown'],
    ['/os-aggregates', 'aggregates-unknown'],
  ])('Nova at %s only: %s', async (path, code) => {
    const snapshot = await take([broken('compute', path)]);
    expect(codes(snapshot.problems)).toEqual([code]);
  });

  test('Placement: capacity is unknown, and nothing else is', async () => {
    const snapshot = await take([broken('placement')]);
    expect(snapshot.hosts.every((one) => one.inventory === null && one.traits === null)).toBe(true);
    expect(codes(snapshot.notes)).toEqual(['capacity-unknown']);
    expect(snapshot.problems).toEqual([]);
    expect(snapshot.scores.combined).not.toBeNull();
  });

  test('one provider of Placement: that host alone is unknown', async () => {
    const scorer = bed.scorer();
    const { hosts } = await take([], scorer);
    const id = hosts[3]?.hypervisorId ?? '';
    const snapshot = await take([broken('placement', `/resource_providers/${id}/inventories`)]);
    expect(snapshot.hosts.filter((one) => one.inventory === null).map((one) => one.name)).toEqual(['compute-04']);
    // A scorer that knows the provider's limits needs no second read of them.
    const known = await take([], scorer);
    expect(known.hosts.every((one) => one.inventory !== null)).toBe(true);
  });

  test('a full host, which is in no allocation candidates: its capacity is read by itself', async () => {
    bed.sim.act({ act: 'setHost', host: 'compute-09', full: true });
    try {
      const snapshot = await take([]);
      const full = snapshot.hosts.find((one) => one.name === 'compute-09');
      expect(full?.inventory?.MEMORY_MB?.used).toBe(full?.inventory?.MEMORY_MB?.capacity);
      expect(full?.inventory?.VCPU).toMatchObject({ capacity: 256, maxUnit: 64 });
      expect(full?.traits).not.toBeNull();
    } finally {
      bed.sim.act({ act: 'setHost', host: 'compute-09', full: false });
    }
  });

  test('a token that ends meanwhile is renewed, and nothing shows', async () => {
    const scorer = bed.scorer();
    await take([], scorer);
    const snapshot = await take([{ act: 'revokeTokens' }], scorer);
    expect(snapshot.problems).toEqual([]);
    expect(snapshot.notes).toEqual([]);
    expect(snapshot.servers).toHaveLength(150);
  });

  test('Prometheus: the policies take no part, and the rest is as ever', async () => {
    const scorer = bed.scorer();
    const snapshot = await take([broken('prometheus')], scorer);
    expect(scorer.prometheus()).toMatchObject({ ok: false, reason: expect.stringContaining('503') });
    expect(scorer.openstack()).toEqual({ ok: true });
    expect(snapshot.hostReadings.map((one) => one.health)).toEqual(['UNREACHABLE', 'UNREACHABLE']);
    expect(snapshot.hostReadings[0]?.text).toContain('503');
    expect(snapshot.hostReadings[0]?.text).toContain('it does not answer /api/v1/status/runtimeinfo either');
    expect(snapshot.scores.combined).toBeNull();
    expect(snapshot.scores.policies.map((one) => one.reason?.code)).toEqual([
      'policy-unreachable',
      'policy-unreachable',
    ]);
    expect(snapshot.problems).toEqual([]);
    expect(snapshot.servers).toHaveLength(150);
  });

  test('Prometheus that takes calls and never answers costs no more than the deadline', async () => {
    const snapshot = await take([{ act: 'pauseApi', api: 'prometheus' }], bed.scorer({ queryDeadlineMs: 300 }));
    expect(snapshot.hostReadings.map((one) => [one.health, one.text])).toEqual([
      ['UNREACHABLE', 'Prometheus did not answer within 0.3 s'],
      ['UNREACHABLE', 'Prometheus did not answer within 0.3 s'],
    ]);
  });

  test('a query that Prometheus refuses is an ERROR of its policy alone', async () => {
    const wrong = policies.map((one) => (one.name === 'cpu' ? { ...one, imbalanceQuery: 'sum(((' } : one));
    const snapshot = await take([], bed.scorer({ policiesOf: () => wrong }));
    expect(snapshot.hostReadings.map((one) => one.health)).toEqual(['ERROR', 'HEALTHY']);
    expect(snapshot.hostReadings[0]?.text).toContain('sum(((');
    expect(snapshot.scores.policies.map((one) => one.participates)).toEqual([false, true]);
  });
});

describe('the health of an answer', () => {
  let bed: Bed;
  let clock: ManualClock;
  beforeEach(async () => {
    clock = manualClock();
    bed = await openBed({ scenario: demoCloud(), scope: ['general'], clock });
    clock.advance(600_000);
  });
  afterEach(() => bed.close());
  let cycle = 0;
  const cpu = async () => {
    cycle += 1;
    await bed.scorer().cycle(cycle);
    const snapshot = await bed.newest('general');
    const reading = snapshot.hostReadings.find((one) => one.query === 'host_cpu_utilisation');
    const scores = snapshot.scores.policies.find((one) => one.policy === 'cpu');
    if (reading === undefined || scores === undefined) throw new Error('the demo has a policy cpu');
    return { snapshot, reading, scores };
  };
  const fault = (kind: 'missing' | 'stale' | 'duplicate' | 'nan' | 'inf' | 'value', value?: number): void => {
    bed.sim.act({
      act: 'faultSeries',
      fault: {
        kind,
        metric: 'host_cpu_utilisation',
        labels: { host: 'compute-05' },
        ...(value === undefined ? {} : { value }),
      },
    });
  };

  test('is STALE while a series that is gone was there within the threshold, and PARTIAL later', async () => {
    fault('missing');
    clock.advance(10_000);
    const stale = await cpu();
    expect(stale.reading).toMatchObject({ health: 'STALE', missing: ['compute-05'] });
    expect(stale.reading.text).toContain('compute-05');
    expect(stale.scores).toMatchObject({ participates: false, reason: { code: 'policy-stale' } });
    clock.advance(400_000);
    const partial = await cpu();
    expect(partial.reading).toMatchObject({ health: 'PARTIAL', missing: ['compute-05'] });
    expect(partial.scores).toMatchObject({ participates: false, reason: { code: 'policy-partial' } });
    expect(partial.snapshot.scores.policies.find((one) => one.policy === 'memory')?.participates).toBe(true);
  });

  test('is STALE when the sample of a plain selector is older than the threshold', async () => {
    fault('stale');
    clock.advance(200_000);
    expect((await cpu()).reading.health).toBe('HEALTHY');
    const scorer = bed.scorer({ stalenessMs: 120_000 });
    await scorer.cycle(1_000_000);
    const [reading] = (await bed.newest('general')).hostReadings;
    expect(reading).toMatchObject({ health: 'STALE', missing: ['compute-05'] });
  });
});

test('a request for moves between cells gets all aggregates, volumes, ports and flavors in one snapshot', async () => {
  const server = (name: string, host: string, ports: { vnicType?: string; minKbps?: number }[] = []) => ({
    name,
    host,
    flavor: 'small',
    ports,
  });
  await using bed = await openBed({
    scope: ['old', 'new'],
    scenario: {
      hosts: ['o1', 'o2', 'n1'].map((name) => ({ name, vcpus: 8, memoryMb: 16384, diskGb: 100 })),
      aggregates: [
        { name: 'old', hosts: ['o1', 'o2'] },
        { name: 'new', hosts: ['n1'], metadata: { hw: 'new' } },
      ],
      flavors: [
        { name: 'small', vcpus: 1, memoryMb: 1024, diskGb: 5 },
        { name: 'new.small', vcpus: 2, memoryMb: 2048, diskGb: 10, extraSpecs: { 'hw:cpu_policy': 'shared' } },
      ],
      servers: [
        server('a', 'o1', [{}, { vnicType: 'direct' }]),
        server('b', 'o2', [{ minKbps: 1000 }]),
        server('c', 'n1'),
      ],
    },
  });
  const asked = { from: ['old'], to: 'new', flavorMap: { small: 'new.small' }, servers: null, project: null, limit: 5 };
  const [request] = commandRequests(commandEvent('cells.moveAsked', 'old', 'c1', { ...asked, comment: 'why' }), null, [
    'old',
    'new',
  ]);
  if (request === undefined) throw new Error('nothing is requested');
  const taken = await bed.scorer().take([request], new AbortController().signal);
  expect(taken).toEqual({ published: 1, duplicates: 0, failed: 0 });
  const snapshot = await bed.newest('old');
  expect(snapshotSchema.parse(snapshot)).toEqual(snapshot);
  const { cells, servers, hosts } = snapshot;
  expect(snapshot).toMatchObject({ id: commandSnapshotId('old', 'c1'), purpose: 'cells', problems: [] });
  expect(hosts.map(({ name }) => name)).toEqual(['o1', 'o2']);
  expect(cells).toMatchObject({
    commandId: 'c1',
    asked,
    others: [{ aggregate: 'new', purpose: 'cells', hosts: [{ name: 'n1' }], servers: [{ name: 'c' }] }],
    metadata: { n1: { hw: 'new' } },
    flavors: { 'new.small': { vcpus: 2, ramMb: 2048, diskGb: 10, extraSpecs: { 'hw:cpu_policy': 'shared' } } },
    unread: [],
  });
  const portsOf = (name: string) => {
    const id = servers.find((one) => one.name === name)?.id ?? '';
    return cells?.facts[id]?.ports.map(({ vnicType, requestsResources }) => [vnicType, requestsResources]);
  };
  expect(portsOf('a')).toEqual([
    ['normal', false],
    ['direct', false],
  ]);
  expect(portsOf('b')).toEqual([['normal', true]]);
  // Neutron shows an administrator the ports of all projects.
  const kinds = Object.fromEntries(servers.map(({ name, vnicTypes }) => [name, vnicTypes]));
  expect(kinds).toEqual({ a: ['direct'], b: undefined });
});
