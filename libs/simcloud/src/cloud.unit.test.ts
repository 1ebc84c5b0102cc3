import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cloud, capacity } from './cloud.ts';
import { NovaRefusal } from './errors.ts';
import { ENDED, type Migration } from './model.ts';
import { parseScenario, type ScenarioInput } from './scenario.ts';

const START = Date.UTC(2026, 0, 1);

function scenario(more: Partial<ScenarioInput> = {}): ReturnType<typeof parseScenario> {
  return parseScenario({
    hosts: [{ name: 'h1' }, { name: 'h2' }, { name: 'h3' }, { name: 'other', cell: 'cell2' }],
    flavors: [{ name: 'small', vcpus: 2, memoryMb: 4096, diskGb: 10 }],
    timing: { jitter: 0 },
    servers: ['v1', 'v2', 'v3'].map((name) => ({ name, host: 'h1', flavor: 'small' })),
    ...more,
  });
}

function cloudOf(more: Partial<ScenarioInput> = {}): Cloud {
  return new Cloud(scenario(more), { startMs: START });
}

let requests = 0;
const callerOf = ({ admin }: Cloud, request = ++requests) => ({
  userId: admin.id,
  projectId: admin.projectId,
  requestId: `req-${request}`,
});
function migrate(cloud: Cloud, nowMs: number, name: string, host: string | null): void {
  cloud.liveMigrate(nowMs, callerOf(cloud), cloud.server(name).uuid, { host, force: false, async: true });
}
const abort = (cloud: Cloud, nowMs: number, server: string, migration = '1') =>
  cloud.abort(nowMs, callerOf(cloud), { server, migration }, { queuedToo: true });

/** A cloud in which v1 moves to h2, at that time. */
function migrating(untilMs: number, fault: Parameters<Cloud['serverFaults']['set']>[1]): Cloud {
  const cloud = cloudOf();
  cloud.serverFaults.set(cloud.server('v1').uuid, fault);
  migrate(cloud, START, 'v1', 'h2');
  cloud.advance(untilMs);
  return cloud;
}

function statuses(migration: Migration | undefined): string[] {
  return migration?.history.map((each) => each.status) ?? [];
}

/** A group of v1 on h1 and v2 on h2. */
const pairOf = (policy: 'affinity' | 'anti-affinity'): Partial<ScenarioInput> => ({
  groups: [{ name: 'g', policy }],
  servers: [1, 2].map((n) => ({ name: `v${n}`, host: `h${n}`, flavor: 'small', group: 'g' })),
});

const ALWAYS = START + 10 * 60_000;

describe('a live migration', () => {
  test('twenty times as fast takes a twentieth of the time', () => {
    const ended = (speed: number): number => {
      const cloud = new Cloud(scenario(), { startMs: START, speed });
      migrate(cloud, START, 'v1', 'h2');
      cloud.advance(ALWAYS);
      return (cloud.migrations[0]?.history.at(-1)?.atMs ?? 0) - START;
    };
    expect(ended(1) / ended(20)).toBeCloseTo(20, 5);
  });

  test('a change of speed keeps the share that is done', () => {
    const cloud = migrating(START + 20_000, { kind: 'slow', seconds: 100 });
    const [migration] = cloud.migrations;
    expect(migration?.status).toBe('running');
    const before = migration === undefined ? null : cloud.progress(migration);
    cloud.setSpeed(START + 20_000, 10);
    expect(migration === undefined ? null : cloud.progress(migration)).toEqual(before);
    cloud.advance(START + 32_000);
    expect(migration?.status).toBe('completed');
  });

  test('a request lost on its way leaves the server migrating for ever', () => {
    const cloud = migrating(ALWAYS, { kind: 'lost' });
    expect([cloud.migrations.length, cloud.server('v1').taskState]).toEqual([0, 'migrating']);
  });

  test('a late conductor makes the row late', () => {
    const cloud = migrating(START + 30_000, { kind: 'conductor-delay', seconds: 30 });
    expect(cloud.migrations.length).toBe(0);
    cloud.advance(START + 32_000);
    expect(cloud.migrations.length).toBe(1);
  });

  test('a fault with times goes away by itself', () => {
    const cloud = migrating(ALWAYS, { kind: 'fail', times: 1 });
    migrate(cloud, ALWAYS, 'v1', 'h2');
    cloud.advance(2 * ALWAYS - START);
    expect(cloud.migrations.map((each) => each.status)).toEqual(['failed', 'completed']);
  });

  test('an abort after the switch-over comes too late', () => {
    const cloud = cloudOf();
    migrate(cloud, START, 'v1', 'h2');
    const [v1] = [cloud.server('v1')];
    let at = START;
    while (v1.guestHost === 'h1') {
      at += 20;
      cloud.advance(at);
    }
    abort(cloud, at, v1.uuid);
    cloud.advance(ALWAYS);
    expect([cloud.migrations[0]?.status, v1.host]).toEqual(['completed', 'h2']);
  });

  test('a migration is abandoned when the compute that worked on it is another one by now', () => {
    let arrived = 0;
    const status = (afterMs: number): [string | undefined, boolean | null] => {
      const cloud = cloudOf();
      migrate(cloud, START, 'v1', 'h2');
      while (cloud.nowMs < START + afterMs) cloud.advance(cloud.nowMs + 50);
      const at = cloud.nowMs;
      const [row] = cloud.migrations;
      if (row === undefined) return [undefined, null];
      expect(cloud.abandoned(row)).toBe(false);
      cloud.killHost(at, 'h1');
      cloud.advance(at + 60_000);
      // The source's compute only had to write that it is over.
      const hasArrived = !ENDED.has(row.status) && cloud.server('v1').host === 'h2';
      arrived += hasArrived ? 1 : 0;
      expect(cloud.abandoned(row)).toBe(hasArrived);
      cloud.startHost(at + 60_000, 'h1');
      cloud.advance(ALWAYS);
      return [row.status, cloud.abandoned(row)];
    };
    const found = new Map(Array.from({ length: 200 }, (_, i) => status(i * 100)).map((each) => [String(each), each]));
    // Cast to nobody, forgotten, and what Nova ends by itself.
    const ends = ['accepted,true', 'preparing,true', 'error,false', 'running,true'];
    expect([...found.keys()]).toEqual(expect.arrayContaining(ends));
    expect(arrived).toBeGreaterThan(0);
    for (const [how, isAbandoned] of found.values())
      if (how === 'completed' || how === 'failed' || how === 'error') expect(isAbandoned).toBe(false);
  });

  test('a restart of the source frees a server whose request the conductor has; it goes on, and the server is broken', () => {
    const cloud = cloudOf();
    const v1 = cloud.server('v1');
    cloud.serverFaults.set(v1.uuid, { kind: 'conductor-delay', seconds: 30 });
    migrate(cloud, START, 'v1', 'h2');
    cloud.killHost(START + 5_000, 'h1');
    expect(v1.taskState).toBe('migrating');
    cloud.startHost(START + 6_000, 'h1');
    expect([v1.taskState, cloud.migrations.length]).toEqual([null, 0]);
    cloud.advance(ALWAYS);
    expect([cloud.migrations[0]?.status, v1.host, v1.vmState]).toEqual(['error', 'h2', 'error']);
  });

  test('a request that comes while the conductor has another one ends in error', () => {
    const cloud = cloudOf();
    const { uuid } = cloud.server('v1');
    cloud.serverFaults.set(uuid, { kind: 'conductor-delay', seconds: 30, times: 1 });
    migrate(cloud, START, 'v1', 'h2');
    cloud.killHost(START + 5_000, 'h1');
    cloud.startHost(START + 6_000, 'h1');
    cloud.serverFaults.set(uuid, { kind: 'hang' });
    migrate(cloud, START + 7_000, 'v1', 'h2');
    cloud.advance(ALWAYS);
    expect(cloud.migrations.map(({ status }) => status)).toEqual(['running', 'error']);
  });

  test('a hanging move goes on once its fault is cleared, and no other move does', () => {
    const cloud = cloudOf();
    const { uuid } = cloud.server('v1');
    cloud.serverFaults.set(uuid, { kind: 'hang' });
    cloud.mendServer(START, uuid);
    cloud.serverFaults.set(uuid, { kind: 'hang' });
    migrate(cloud, START, 'v1', 'h2');
    cloud.advance(START + 60_000);
    expect(cloud.migrations[0]?.status).toBe('running');
    cloud.mendServer(START + 60_000, uuid);
    cloud.advance(ALWAYS);
    expect([cloud.migrations[0]?.status, cloud.server('v1').host]).toEqual(['completed', 'h2']);
  });

  test('a hanging move whose source has died does not go on', () => {
    const cloud = migrating(START + 60_000, { kind: 'hang' });
    const { uuid, host } = cloud.server('v1');
    cloud.killHost(START + 60_000, host);
    cloud.mendServer(START + 60_000, uuid);
    cloud.advance(ALWAYS);
    expect([cloud.migrations[0]?.status, cloud.server('v1').host]).toEqual(['running', host]);
  });

  test('an abort that is ignored leaves a hanging move where it is', () => {
    const cloud = migrating(START + 60_000, { kind: 'hang' });
    cloud.serverFaults.set(cloud.server('v1').uuid, { kind: 'abort-ignored' });
    abort(cloud, START + 60_000, cloud.server('v1').uuid);
    cloud.advance(ALWAYS);
    expect(cloud.migrations[0]?.status).toBe('running');
  });

  test('two members of an anti-affinity group that follow each other: the one that leaves still counts', () => {
    const cloud = cloudOf(pairOf('anti-affinity'));
    migrate(cloud, START, 'v1', 'h3');
    // v1 is on its way to h3 and still counted on h1.
    migrate(cloud, START, 'v2', 'h1');
    cloud.advance(ALWAYS);
    expect(cloud.migrations.map((each) => [each.status, each.dest])).toEqual([
      ['completed', 'h3'],
      ['error', null],
    ]);
  });

  test('of two schedulers none knows the moves of the other: the compute refuses, and Nova puts the server into ERROR', () => {
    const both = (schedulers: number): Cloud => {
      const cloud = cloudOf({ schedulers, ...pairOf('anti-affinity') });
      cloud.serverFaults.set(cloud.server('v1').uuid, { kind: 'hang' });
      migrate(cloud, START, 'v1', 'h3');
      cloud.advance(START + 30_000);
      migrate(cloud, START + 30_000, 'v2', 'h3');
      cloud.advance(ALWAYS);
      return cloud;
    };
    expect([both(1).migrations[1]?.status, both(1).server('v2').vmState]).toEqual(['error', 'active']);
    expect([both(2).migrations[1]?.status, both(2).server('v2').vmState]).toEqual(['error', 'error']);
  });

  test('a split affinity group can be gathered on the host of a member, and nowhere else', () => {
    const cloud = cloudOf(pairOf('affinity'));
    migrate(cloud, START, 'v2', 'h3');
    cloud.advance(ALWAYS);
    migrate(cloud, ALWAYS, 'v2', 'h1');
    cloud.advance(2 * ALWAYS - START);
    expect(cloud.migrations.map((each) => [each.status, each.dest])).toEqual([
      ['error', null],
      ['completed', 'h1'],
    ]);
  });

  test('a pinned zone, an older hypervisor and another type of it are never a destination', () => {
    const cloud = cloudOf({
      hosts: [
        { name: 'h1' },
        { name: 'h2' },
        { name: 'old', hypervisorVersion: 1 },
        { name: 'metal', hypervisorType: 'ironic' },
      ],
      aggregates: [{ name: 'a', hosts: ['h1', 'old'], availabilityZone: 'az-a' }],
      servers: [
        { name: 'pinned', host: 'h1', flavor: 'small', pinnedZone: 'az-a' },
        { name: 'free', host: 'h1', flavor: 'small' },
      ],
    });
    const tries: [string, string][] = [
      ['pinned', 'h2'],
      ['free', 'old'],
      ['free', 'metal'],
    ];
    let at = START;
    for (const [name, host] of tries) {
      migrate(cloud, at, name, host);
      at += 60_000;
      cloud.advance(at);
    }
    expect(cloud.migrations.map((each) => each.status)).toEqual(['error', 'error', 'error']);
  });

  test('what Nova cannot move at all is refused at once', () => {
    const cloud = cloudOf({
      flavors: [
        { name: 'small', vcpus: 2, memoryMb: 4096, extraSpecs: { 'hw:tpm_version': '2.0' } },
        { name: 'sev', vcpus: 2, memoryMb: 4096, extraSpecs: { 'hw:mem_encryption': 'true' } },
      ],
      servers: [
        { name: 'v1', host: 'h1', flavor: 'small' },
        { name: 'v2', host: 'h1', flavor: 'sev' },
      ],
    });
    expect(() => migrate(cloud, START, 'v1', 'h2')).toThrow(/vTPM-enabled/);
    expect(() => migrate(cloud, START, 'v2', 'h2')).toThrow(/SEV-enabled/);
    expect(() => migrate(cloud, START, 'v1', 'other')).toThrow(NovaRefusal);
  });
});

/** One random thing done to a random cloud. */
const step = fc.record({
  what: fc.constantFrom('migrate', 'abort', 'delete', 'fault', 'down', 'up', 'disable', 'enable', 'speed'),
  server: fc.nat(5),
  host: fc.nat(3),
  fault: fc.constantFrom('fail', 'error', 'hang', 'slow', 'error-after-switchover', 'pre-check', 'lost'),
  afterMs: fc.nat(9000),
});
type RandomStep = typeof step extends fc.Arbitrary<infer T> ? T : never;

function play(steps: readonly RandomStep[], seed: number, check?: (cloud: Cloud) => void): Cloud {
  const cloud = new Cloud(
    scenario({
      timing: {},
      groups: [{ name: 'g', policy: 'anti-affinity' }],
      servers: Array.from({ length: 6 }, (_, index) => ({
        name: `v${index}`,
        id: `00000000-0000-4000-8000-00000000000${index}`,
        host: `h${(index % 3) + 1}`,
        flavor: 'small',
        ...(index < 2 ? { group: 'g' } : {}),
      })),
    }),
    { startMs: START, seed },
  );
  let at = START;
  const hosts = [...cloud.hosts.keys()];
  for (const [index, each] of steps.entries()) {
    at += each.afterMs;
    const name = `v${each.server}`;
    const host = hosts[each.host] ?? 'h1';
    const caller = callerOf(cloud, index);
    const uuid = `00000000-0000-4000-8000-00000000000${each.server}`;
    try {
      if (each.what === 'migrate') cloud.liveMigrate(at, caller, uuid, { host, force: false, async: true });
      if (each.what === 'abort') abort(cloud, at, uuid, String(cloud.migrationsByServer.get(uuid)?.at(-1)?.id ?? 0));
      if (each.what === 'delete' && cloud.servers.has(uuid)) cloud.deleteServer(at, name);
      if (each.what === 'fault') {
        const fault = each.fault === 'slow' ? { kind: each.fault, seconds: 20 } : { kind: each.fault };
        cloud.serverFaults.set(uuid, { vmError: true, ...fault } as never);
      }
      if (each.what === 'down' || each.what === 'up') cloud.setHost(at, host, { up: each.what === 'up' });
      if (each.what === 'disable' || each.what === 'enable')
        cloud.setHost(at, host, { disabled: each.what === 'disable' });
      if (each.what === 'speed') cloud.setSpeed(at, 1 + each.host);
    } catch (error) {
      if (!(error instanceof NovaRefusal)) throw error;
    }
    cloud.advance(at);
    check?.(cloud);
  }
  return cloud;
}

/** The cloud's own account of itself: what must hold at every moment. */
function consistent(cloud: Cloud): void {
  for (const host of cloud.hosts.values()) {
    const used = [...host.consumers.values()].reduce((sum, each) => sum + each.vcpus, 0);
    expect(host.used.vcpus).toBe(used);
    expect(host.used.vcpus).toBeLessThanOrEqual(capacity(host, 'vcpus'));
  }
  for (const [consumer, { host }] of cloud.allocations)
    expect(cloud.hosts.get(host)?.consumers.has(consumer)).toBe(true);
  const busy = new Map<string, number>();
  for (const migration of cloud.migrations) {
    if (['preparing', 'running'].includes(migration.status))
      busy.set(migration.source, (busy.get(migration.source) ?? 0) + 1);
    // A server that is deleted while it moves leaves its source taken: that is Nova's own way.
    if (ENDED.has(migration.status) && cloud.servers.has(migration.serverUuid))
      expect(cloud.allocations.has(migration.uuid)).toBe(false);
    const order = ['accepted', 'queued', 'preparing', 'running'];
    const went = statuses(migration).filter((each) => !ENDED.has(each));
    expect(went).toEqual(order.slice(0, went.length));
    expect(statuses(migration).filter((each) => ENDED.has(each)).length).toBeLessThanOrEqual(1);
  }
  for (const count of busy.values()) expect(count).toBeLessThanOrEqual(1);
  for (const server of cloud.servers.values()) {
    const open = cloud.migrationsByServer.get(server.uuid)?.filter((each) => !ENDED.has(each.status)) ?? [];
    expect(open.length).toBeLessThanOrEqual(1);
    if (open.length === 0) expect(cloud.allocations.get(server.uuid)?.host).toBe(server.host);
    if (server.taskState === null && open.length === 0) expect(server.guestHost).toBe(server.host);
  }
}

describe('always', () => {
  test('every server has its one place and its one claim, and every source one move at a time', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(1000), (steps, seed) => {
        play(steps, seed, consistent);
      }),
      { numRuns: 200 },
    );
  });

  test('every migration ends once nothing is broken any more', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), fc.nat(1000), (steps, seed) => {
        const cloud = play(steps, seed);
        const at = cloud.nowMs + 3_600_000;
        cloud.serverFaults.clear();
        cloud.advance(at);
        for (const migration of cloud.migrations)
          if (migration.copyMs !== Number.POSITIVE_INFINITY && statuses(migration).includes('running'))
            expect(ENDED.has(migration.status)).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test('the same seed, calls and times give the same record', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), fc.nat(1000), (steps, seed) => {
        const record = (cloud: Cloud): unknown =>
          cloud.migrations.map((each) => [each.uuid, each.source, each.dest, each.history]);
        expect(record(play(steps, seed))).toEqual(record(play(steps, seed)));
      }),
      { numRuns: 50 },
    );
  });
});
