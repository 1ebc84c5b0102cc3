import type { LogEvent, Snapshot } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { differences } from './diff.ts';
import { lay } from './overlay.ts';
import { allBreaks, ruleBreaks } from './rules.ts';
import { World } from './world.ts';

describe('differences of two JSON values', () => {
  it('finds none between equal values', () => {
    expect(differences({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toEqual([]);
  });

  it('names the place, and what is only on one side', () => {
    expect(differences({ a: [1, 2], c: 1 }, { a: [1, 3, 4], d: 2 })).toEqual([
      { path: 'a[1]', recorded: 2, replayed: 3 },
      { path: 'a[2]', recorded: undefined, replayed: 4 },
      { path: 'c', recorded: 1, replayed: undefined },
      { path: 'd', recorded: undefined, replayed: 2 },
    ]);
  });

  it('tells null from nothing, and an object from a list', () => {
    expect(differences({ a: null }, {})).toEqual([{ path: 'a', recorded: null, replayed: undefined }]);
    expect(differences({ a: {} }, { a: [] })).toHaveLength(1);
  });

  it('stops at the limit', () => {
    expect(differences([1, 2, 3], [4, 5, 6], 2)).toHaveLength(2);
  });
});

describe('rule breaks', () => {
  const placed = (places: Record<string, string>, group: Partial<Snapshot['serverGroups'][number]>) =>
    ruleBreaks({
      servers: snapshotOf({
        policies: {},
        hosts: { a: {}, b: {}, c: {} },
        vms: Object.fromEntries(Object.entries(places).map(([id, host]) => [id, { host }])),
      }).servers,
      serverGroups: [
        { id: 'g', name: 'g', policy: 'anti-affinity', maxServerPerHost: 1, members: Object.keys(places), ...group },
      ],
    });

  it('counts members beyond the maximum of a host', () => {
    expect(placed({ x: 'a', y: 'a', z: 'a' }, {})['anti-affinity']).toBe(2);
    expect(placed({ x: 'a', y: 'a', z: 'a' }, { maxServerPerHost: 2 })['anti-affinity']).toBe(1);
    expect(placed({ x: 'a', y: 'b' }, { policy: 'soft-anti-affinity' })['soft-anti-affinity']).toBe(0);
  });

  it('counts hosts beyond the first of an affinity group', () => {
    expect(placed({ x: 'a', y: 'b', z: 'c' }, { policy: 'affinity' }).affinity).toBe(2);
    expect(placed({ x: 'a', y: 'a' }, { policy: 'soft-affinity' })['soft-affinity']).toBe(0);
  });

  it('leaves members alone that are elsewhere', () => {
    expect(allBreaks(placed({ x: 'a' }, { policy: 'affinity', members: ['x', 'unknown', 'x'] }))).toBe(0);
  });
});

const two = (set: Parameters<typeof snapshotOf>[0]['snapshot'] = {}): Snapshot =>
  snapshotOf({
    policies: { cpu: {}, memory: {} },
    hosts: { a: {}, b: {}, c: { size: 2 } },
    vms: {
      x: { host: 'a', w: { cpu: 0.25, memory: 0.125 }, vcpus: 2 },
      y: { host: 'a', w: { cpu: 0.5, memory: 0.25 } },
      z: { host: 'b', w: { cpu: 0.125, memory: 0.5 } },
    },
    snapshot: set,
  });

const readings = (snapshot: Snapshot, query: string) =>
  snapshot.hostReadings.find((reading) => reading.query === query)?.values;

const none: ReadonlySet<string> = new Set();

describe('a snapshot with VMs elsewhere', () => {
  it('is the recorded one when nobody is elsewhere', () => {
    const snapshot = two();
    expect(lay({ hosts: new Map(), still: none }, snapshot)).toBe(snapshot);
    expect(lay({ hosts: new Map([['x', 'a']]), still: none }, snapshot)).toBe(snapshot);
  });

  it('takes the share of each reading along, by the size of the hosts', () => {
    const laid = lay({ hosts: new Map([['x', 'c']]), still: none }, two());
    expect(laid.servers.find((server) => server.id === 'x')?.host).toBe('c');
    expect(readings(laid, 'cpu_used')).toEqual({ a: 0.5, b: 0.125, c: 0.125 });
    expect(readings(laid, 'memory_used')).toEqual({ a: 0.25, b: 0.5, c: 0.0625 });
    expect(laid.vmReadings[0]?.values.x).toBe(0.125);
    expect(laid.scores.policies.find((policy) => policy.policy === 'cpu')?.imbalance).toBe(0.375);
  });

  it('takes its claims along', () => {
    const before = two();
    const laid = lay({ hosts: new Map([['x', 'b']]), still: none }, before);
    const used = (snapshot: Snapshot, host: string) =>
      snapshot.hosts.find((candidate) => candidate.name === host)?.inventory?.VCPU?.used;
    expect(used(laid, 'a')).toBe((used(before, 'a') ?? 0) - 2);
    expect(used(laid, 'b')).toBe((used(before, 'b') ?? 0) + 2);
  });

  it('leaves a VM where it is whose host in the other world is not there', () => {
    const snapshot = two();
    expect(lay({ hosts: new Map([['x', 'gone']]), still: none }, snapshot)).toBe(snapshot);
  });

  it('takes a migration of the recorded Kronos back, with its second claim', () => {
    const snapshot = two({
      migrations: [
        { id: 1, uuid: null, serverId: 'x', type: 'live-migration', status: 'running', sourceHost: 'a', destHost: 'b' },
        { id: 2, uuid: null, serverId: 'y', type: 'live-migration', status: 'running', sourceHost: 'a', destHost: 'b' },
      ],
    });
    const laid = lay({ hosts: new Map(), still: new Set(['x']) }, snapshot);
    expect(laid.migrations.map((migration) => migration.serverId)).toEqual(['y']);
    const used = (of: Snapshot) => of.hosts.find((host) => host.name === 'b')?.inventory?.VCPU?.used ?? 0;
    expect(used(laid)).toBe(Math.max(0, used(snapshot) - 2));
  });

  it('laying moves over and taking them back gives the readings that were recorded', () => {
    const hosts = ['a', 'b', 'c'];
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('x', 'y', 'z'), fc.constantFrom(...hosts))), (moves) => {
        const snapshot = two();
        const away = lay({ hosts: new Map(moves), still: none }, snapshot);
        const home = new Map(snapshot.servers.map((server) => [server.id, server.host]));
        const back = lay({ hosts: home, still: none }, away);
        for (const [host, value] of Object.entries(readings(snapshot, 'cpu_used') ?? {}))
          expect(readings(back, 'cpu_used')?.[host]).toBeCloseTo(value, 12);
        expect(back.servers).toEqual(snapshot.servers);
      }),
    );
  });
});

describe("a what-if's world", () => {
  const at = (seconds: number, places: Record<string, string>): Snapshot =>
    snapshotOf({
      time: new Date(Date.parse('2026-01-01T12:00:00Z') + seconds * 1000).toISOString(),
      policies: {},
      hosts: { a: {}, b: {}, c: {} },
      vms: Object.fromEntries(Object.entries(places).map(([id, host]) => [id, { host }])),
    });
  const entries = (map: ReadonlyMap<string, string>) => Object.fromEntries(map);

  it('lays its own moves over until the recording agrees', () => {
    const world = new World(new Map());
    world.next(at(0, { x: 'a' }));
    world.move('x', 'b');
    expect(entries(world.next(at(60, { x: 'a' })).hosts)).toEqual({ x: 'b' });
    expect(entries(world.next(at(120, { x: 'b' })).hosts)).toEqual({});
  });

  it('forgets a VM that is gone', () => {
    const world = new World(new Map());
    world.next(at(0, { x: 'a', y: 'a' }));
    world.move('x', 'b');
    expect(entries(world.next(at(60, { y: 'a' })).hosts)).toEqual({});
    expect(entries(world.next(at(120, { x: 'a', y: 'a' })).hosts)).toEqual({});
  });

  it('follows people who move a VM', () => {
    const world = new World(new Map());
    world.next(at(0, { x: 'a' }));
    world.move('x', 'b');
    expect(entries(world.next(at(60, { x: 'c' })).hosts)).toEqual({});
  });

  const started = Date.parse('2026-01-01T12:00:10Z');
  const kronos = [
    event('migration.started', started, { serverId: 'x', from: 'a', destination: 'b' }),
    event('migration.completed', started + 30_000, { serverId: 'x', from: 'a', destination: 'b' }),
  ];
  const worldWithMove = (): World => {
    const world = new World(new Map());
    for (const happened of kronos) world.note(happened);
    return world;
  };

  it('keeps a VM where it was that the recorded Kronos moved', () => {
    const world = worldWithMove();
    world.next(at(0, { x: 'a' }));
    expect(entries(world.next(at(60, { x: 'b' })).hosts)).toEqual({ x: 'a' });
  });

  it('has a VM stand still while the recorded Kronos moves it', () => {
    const world = worldWithMove();
    expect([...world.next(at(0, { x: 'a' })).still]).toEqual([]);
    expect([...world.next(at(20, { x: 'a' })).still]).toEqual(['x']);
    expect([...world.next(at(60, { x: 'b' })).still]).toEqual([]);
  });

  it('takes a migration for one of somebody else where Nova began none for Kronos', () => {
    const move = { serverId: 'x', from: 'a', destination: 'b', newestMigrationId: 6, nova: null };
    const shown = { id: 7, serverId: 'x', from: 'a', to: 'b', at: '2026-01-01T12:02:00.000Z' };
    const own = (end: 'migration.completed' | 'migration.failed') => {
      const world = new World(new Map());
      for (const type of ['migration.started', end] as const) world.note(event(type, started, move));
      return world.next({ ...at(180, { x: 'b' }), endedMigrations: [shown] }).own;
    };
    expect(own('migration.completed')).toEqual(new Set([7]));
    expect(own('migration.failed')).toBeUndefined();
  });

  it('has moves done that were under way when the recording began', () => {
    const world = new World(new Map([['x', 'b']]));
    expect(entries(world.next(at(0, { x: 'a' })).hosts)).toEqual({ x: 'b' });
    expect(entries(world.next(at(60, { x: 'b' })).hosts)).toEqual({});
  });
});

function event(type: 'migration.started' | 'migration.completed' | 'migration.failed', atMs: number, data: object) {
  return {
    type,
    version: 1,
    id: `${type}:1`,
    time: new Date(atMs).toISOString(),
    aggregate: 'agg',
    by: { service: 'executor', instance: 'e', version: '1' },
    correlationId: 'p',
    causationId: null,
    data: { taskId: 't', planId: 'p', attempt: 1, ...data },
  } as unknown as LogEvent;
}
