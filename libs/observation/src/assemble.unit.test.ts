import { canonicalJson, snapshotSchema } from '@kronos/contracts';
import { server } from '@kronos/openstack/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  aggregate,
  answer,
  cloud,
  group,
  hypervisor,
  indexOf,
  migration,
  options,
  policy,
  service,
  unread,
} from '../testing/given.ts';
import { type AssembleInput, assemble } from './assemble.ts';
import type { Capacity, CloudLists } from './cloud.ts';
import { hostNamesOf, vmNamesOf } from './names.ts';
import { matchAnswers, type QueryAnswer } from './readings.ts';

const hosts = ['a', 'b', 'c'];
const units = { minUnit: 1, maxUnit: 64, stepSize: 1 };
const capacity: Capacity = {
  providers: new Map(
    hosts.map((host) => [
      `id-of-${host}`,
      { inventory: { VCPU: { capacity: 256, used: 4, ...units } }, traits: ['HW_CPU_X86_AVX'] },
    ]),
  ),
  failures: new Map(),
  failure: null,
};
const unknownCapacity: Capacity = { providers: new Map(), failures: new Map(), failure: null };

const answersOf = (values: readonly number[]): QueryAnswer[] => [
  answer(
    'host_cpu',
    hosts.map((host, i) => [{ host }, values[i] ?? 0]),
  ),
  answer('vm_cpu', [[{ uuid: '1' }, 0.1]]),
];

const given = (
  lists: CloudLists,
  more: Partial<AssembleInput> & { readonly given?: readonly QueryAnswer[] } = {},
): AssembleInput => {
  const index = indexOf(lists);
  const policies = more.policies ?? [policy('cpu')];
  return {
    identity: {
      id: 'gpu-29401920',
      purpose: 'cycle',
      cycle: 29_401_920,
      intervalSeconds: 60,
      observedFrom: '2026-01-01T12:00:00.000Z',
      time: '2026-01-01T12:00:02.000Z',
    },
    aggregate: 'gpu',
    scope: ['gpu'],
    options,
    policies,
    balance: true,
    lists,
    index,
    listings: new Map(),
    capacity,
    answers: matchAnswers({
      policies,
      answers: more.given ?? answersOf([0.1, 0.5, 0.9]),
      stalenessMs: 300_000,
      hosts: hostNamesOf(lists),
      vms: vmNamesOf(index),
    }),
    known: [],
    fates: new Map(),
    ...more,
  };
};

const full = cloud({
  servers: [server('1', 'a'), server('2', 'b')],
  serverGroups: [group('g', 'anti-affinity', ['1', '2'])],
  migrations: [migration('2', 'b', 'c')],
});

describe('a snapshot', () => {
  test('holds everything that a decision reads, and fits its schema', () => {
    const snapshot = assemble(given(full));
    expect(snapshotSchema.parse(snapshot)).toEqual(snapshot);
    expect(snapshot).toMatchObject({
      version: 1,
      id: 'gpu-29401920',
      aggregate: 'gpu',
      policies: [policy('cpu')],
      problems: [],
      notes: [],
    });
    expect(snapshot.hosts[0]).toMatchObject({
      name: 'a',
      inventory: { VCPU: { capacity: 256, used: 4, ...units } },
      traits: ['HW_CPU_X86_AVX'],
    });
    expect(snapshot.servers.map((one) => one.id)).toEqual(['1', '2']);
    expect(snapshot.serverGroups).toHaveLength(1);
    expect(snapshot.migrations).toHaveLength(1);
    expect(snapshot.hostReadings[0]?.health).toBe('HEALTHY');
    expect(snapshot.vmReadings[0]?.values).toEqual({ 1: 0.1 });
  });

  test('has raw and normalised scores, and the imbalance', () => {
    const { scores } = assemble(given(full));
    expect(scores.policies[0]).toMatchObject({ policy: 'cpu', participates: true, detected: true });
    expect(scores.policies[0]?.hosts).toEqual({
      a: { raw: 0.1, normalised: 0 },
      b: { raw: 0.5, normalised: 0.5 },
      c: { raw: 0.9, normalised: 1 },
    });
    expect(scores.combined).toBeCloseTo(0.8, 12);
  });

  test('a disabled host takes no part in the imbalance', () => {
    const lists = cloud({ services: [service('a'), service('b'), service('c', { status: 'disabled' })] });
    expect(assemble(given(lists)).scores.combined).toBeCloseTo(0.4, 12);
  });

  test('a value outside [0,1] skips its policy and names host and value', () => {
    const { scores } = assemble(given(full, { given: answersOf([0.1, 1.5, 0.9]) }));
    expect(scores.policies[0]?.participates).toBe(false);
    expect(scores.policies[0]?.reason?.text).toContain('b has the value 1.5');
    expect(scores.combined).toBeNull();
  });

  test('a policy without healthy host answers takes no part, with the reason', () => {
    const failure = {
      kind: 'unreachable',
      code: 'KRONOS_HTTP_UNREACHABLE',
      text: 'prometheus is unreachable',
    } as const;
    const [first, second] = answersOf([0, 0, 0]);
    if (first === undefined || second === undefined) throw new Error('two answers are given');
    const snapshot = assemble(given(full, { given: [{ ...first, instant: null, range: null, failure }, second] }));
    expect(snapshot.scores.policies[0]).toMatchObject({ participates: false, imbalance: null });
    expect(snapshot.scores.policies[0]?.reason?.text).toBe('prometheus is unreachable');
    expect(snapshot.problems).toEqual([]);
  });

  test('in the rules-only mode has no policies, readings or scores', () => {
    const snapshot = assemble(given(full, { policies: [], balance: false, given: [] }));
    expect(snapshot).toMatchObject({ policies: [], hostReadings: [], vmReadings: [] });
    expect(snapshot.scores).toEqual({ policies: [], combined: null });
    expect(snapshot.servers).toHaveLength(2);
  });

  test('records unknown capacity as unknown, and says why', () => {
    const failures = new Map([['id-of-a', 'placement is unreachable']]);
    const snapshot = assemble(
      given(full, { capacity: { providers: capacity.providers, failures: new Map(), failure: null } }),
    );
    expect(snapshot.hosts.every((host) => host.inventory !== null)).toBe(true);
    const without = assemble(given(full, { capacity: { providers: new Map(), failures, failure: null } }));
    expect(without.hosts.map((host) => [host.inventory, host.traits])).toEqual(hosts.map(() => [null, null]));
    expect(without.notes.map((one) => one.code)).toEqual(['capacity-unknown']);
    expect(without.notes[0]?.text).toContain('placement is unreachable');
    expect(without.problems).toEqual([]);
  });

  test('with nothing readable is still a snapshot, with a problem for each part', () => {
    const nothing: CloudLists = {
      aggregates: unread,
      services: unread,
      hypervisors: unread,
      servers: unread,
      serverGroups: unread,
      migrations: unread,
    };
    const snapshot = assemble(given(nothing, { capacity: unknownCapacity }));
    expect(snapshotSchema.parse(snapshot)).toEqual(snapshot);
    expect(snapshot.problems.map((one) => one.code)).toEqual([
      'aggregates-unknown',
      'servers-unknown',
      'server-groups-unknown',
      'migrations-unknown',
    ]);
  });
});

describe('properties', () => {
  const host = fc.constantFrom('a', 'b', 'c', 'x', null);
  const anyServer = fc.record({
    id: fc.constantFrom('1', '2', '3', '4', '5'),
    host,
    taskState: fc.constantFrom(null, 'migrating'),
    cellDown: fc.boolean(),
    flavorless: fc.boolean(),
  });
  const anyCloud = fc
    .record({
      servers: fc.array(anyServer, { maxLength: 8 }),
      migrations: fc.array(fc.tuple(fc.constantFrom('1', '2', '3'), host, host), { maxLength: 3 }),
      states: fc.array(fc.constantFrom('up', 'down', 'unknown'), { minLength: 3, maxLength: 3 }),
      types: fc.array(fc.constantFrom('QEMU', 'ironic'), { minLength: 3, maxLength: 3 }),
      members: fc.uniqueArray(fc.constantFrom('a', 'b', 'c')),
      lost: fc.uniqueArray(
        fc.constantFrom('aggregates', 'services', 'hypervisors', 'servers', 'serverGroups', 'migrations'),
      ),
      group: fc.uniqueArray(fc.constantFrom('1', '2', '3', '9')),
    })
    .map((one): CloudLists => {
      const lists = cloud({
        aggregates: [aggregate('gpu', one.members)],
        services: hosts.map((name, i) => service(name, { state: one.states[i] ?? 'up' })),
        hypervisors: hosts.map((name, i) => hypervisor(name, { hypervisorType: one.types[i] ?? 'QEMU' })),
        servers: one.servers.map(({ id, host, taskState, cellDown, flavorless }) =>
          server(id, cellDown ? null : host, { taskState, cellDown, ...(flavorless ? { flavor: null } : {}) }),
        ),
        serverGroups: [group('g', 'anti-affinity', one.group)],
        migrations: one.migrations.map(([id, from, to], i) => migration(id, from, to, { id: i })),
      });
      return { ...lists, ...Object.fromEntries(one.lost.map((part) => [part, unread])) };
    });
  const anyAnswers = fc
    .array(fc.oneof(fc.double(), fc.constantFrom(0, 0.5, 1)), { minLength: 3, maxLength: 3 })
    .map(answersOf);

  test('every snapshot fits its schema, whatever was read', () => {
    fc.assert(
      fc.property(anyCloud, anyAnswers, (lists, answers) => {
        const snapshot = assemble(given(lists, { given: answers }));
        expect(snapshotSchema.parse(snapshot)).toEqual(snapshot);
      }),
    );
  });

  test('the order in which Nova lists things does not change one byte', () => {
    const reversed = (lists: CloudLists): CloudLists => {
      const flip = <T>(part: CloudLists[keyof CloudLists] & { readonly ok: boolean }): T =>
        (part.ok ? { ok: true, value: [...part.value].reverse() } : part) as T;
      return {
        aggregates: flip(lists.aggregates),
        services: flip(lists.services),
        hypervisors: flip(lists.hypervisors),
        // The order of two sights of one server says which is newer, so the servers are left as they are.
        servers: lists.servers,
        serverGroups: flip(lists.serverGroups),
        migrations: flip(lists.migrations),
      };
    };
    fc.assert(
      fc.property(anyCloud, (lists) => {
        expect(canonicalJson(assemble(given(reversed(lists))))).toBe(canonicalJson(assemble(given(lists))));
      }),
    );
  });

  test('no host is a possible destination whose service, capacity or aggregate is unknown', () => {
    fc.assert(
      fc.property(anyCloud, (lists) => {
        const snapshot = assemble(given(lists, { capacity: unknownCapacity }));
        for (const one of snapshot.hosts) {
          expect(one.inventory).toBeNull();
          if (!lists.services.ok) expect(one.service.state).toBe('unknown');
        }
        if (!lists.aggregates.ok || !lists.hypervisors.ok) expect(snapshot.hosts).toEqual([]);
      }),
    );
  });

  test('no server on a host of the aggregate is left out without a problem', () => {
    fc.assert(
      fc.property(anyCloud, (lists) => {
        const snapshot = assemble(given(lists));
        if (!lists.servers.ok || snapshot.problems.length > 0) return;
        const counted = new Set(snapshot.hosts.map((one) => one.name));
        const seen = new Set(snapshot.servers.map((one) => one.id));
        for (const one of lists.servers.value) {
          if (one.host !== null && counted.has(one.host)) expect(seen).toContain(one.id);
        }
      }),
    );
  });
});
