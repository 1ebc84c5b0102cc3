import type { Migration, Server } from '@kronos/openstack';
import { flavor, server } from '@kronos/openstack/testing';
import { describe, expect, test } from 'vitest';
import { cloud, group, indexOf, migration, unread } from '../testing/given.ts';
import type { CloudLists, Fate, KnownServer } from './cloud.ts';
import { knownAfter, serversOf, stillKnown } from './servers.ts';

const codes = (reasons: readonly { code: string }[]) => reasons.map((one) => one.code);

const observe = (
  lists: CloudLists,
  more: {
    known?: readonly KnownServer[];
    fates?: ReadonlyMap<string, Fate>;
    hosts?: readonly string[];
    unsure?: readonly string[];
    unknownHosts?: readonly string[];
  } = {},
) =>
  serversOf({
    lists,
    index: indexOf(lists),
    hosts: (more.hosts ?? ['a', 'b', 'c']).map((name) => ({ name, unsure: (more.unsure ?? []).includes(name) })),
    unknownHosts: more.unknownHosts ?? [],
    optOut: ['kronos:exclude'],
    known: more.known ?? [],
    fates: more.fates ?? new Map(),
  });

describe('the servers of an aggregate', () => {
  test('are those on its hosts, by id; those elsewhere and those on no host are not', () => {
    const servers = [server('2', 'b'), server('1', 'a'), server('3', 'elsewhere'), server('4', null)];
    const seen = observe(cloud({ servers }));
    expect(seen.servers.map((one) => [one.id, one.host])).toEqual([
      ['1', 'a'],
      ['2', 'b'],
    ]);
    expect(seen.problems).toEqual([]);
    expect(seen.notes).toEqual([]);
  });

  test('carry what they claim and what a person sees', () => {
    const { servers } = observe(cloud({ servers: [server('1', 'a', { locked: true, taskState: 'rebuilding' })] }));
    expect(servers[0]).toEqual({
      id: '1',
      name: 'name-of-1',
      internalName: 'instance-1',
      projectId: 'project',
      host: 'a',
      alsoOn: [],
      status: 'ACTIVE',
      vmState: 'active',
      taskState: 'rebuilding',
      powerState: 1,
      locked: true,
      createdAt: '2026-01-01T00:00:00.000Z',
      vcpus: 2,
      ramMb: 4096,
      diskGb: 25.5,
      resources: { VCPU: 2, MEMORY_MB: 4096, DISK_GB: 26 },
      flavor: 'm1.small',
      extraSpecs: {},
      bootFromVolume: false,
      availabilityZone: 'nova',
      pinnedAvailabilityZone: null,
      optedOutBy: null,
    });
  });

  test('booted from a volume claim no root disk', () => {
    const { servers } = observe(cloud({ servers: [server('1', 'a', { bootFromVolume: true })] }));
    expect(servers[0]?.diskGb).toBe(5.5);
    expect(servers[0]?.resources).toEqual({ VCPU: 2, MEMORY_MB: 4096, DISK_GB: 6 });
  });

  test('of a cloud that cannot tell whether they are pinned say neither', () => {
    const { servers } = observe(cloud({ servers: [server('1', 'a', { pinnedAvailabilityZone: undefined })] }));
    expect(servers[0]).not.toHaveProperty('pinnedAvailabilityZone');
  });

  test('without a flavor make the aggregate unplannable: what they need is unknown', () => {
    const seen = observe(cloud({ servers: [server('1', 'a', { flavor: null })] }));
    expect(codes(seen.problems)).toEqual(['server-without-flavor']);
    expect(seen.servers[0]?.resources).toEqual({});
  });

  test('on a host that cannot be counted make the aggregate unplannable', () => {
    const lists = cloud({ servers: [server('1', 'x')] });
    expect(codes(observe(lists, { unknownHosts: ['x'] }).problems)).toEqual(['servers-on-unknown-host']);
    expect(observe(lists, { unknownHosts: ['y'] }).problems).toEqual([]);
  });
});

describe('a server seen twice', () => {
  test('counts where it was seen last and also where it was seen before', () => {
    const seen = observe(cloud({ servers: [server('1', 'a'), server('1', 'b')] }));
    expect(seen.servers.map((one) => [one.host, one.alsoOn])).toEqual([['b', ['a']]]);
    expect(codes(seen.notes)).toEqual(['server-seen-twice']);
  });

  test('shows its task state, whichever sight had one', () => {
    const servers = [server('1', 'a', { taskState: 'migrating', status: 'MIGRATING' }), server('1', 'b')];
    const seen = observe(cloud({ servers }));
    expect(seen.servers[0]).toMatchObject({ host: 'b', alsoOn: ['a'], taskState: 'migrating', status: 'MIGRATING' });
  });

  test('on the same host is simply seen', () => {
    const seen = observe(cloud({ servers: [server('1', 'a'), server('1', 'a')] }));
    expect(seen.servers).toHaveLength(1);
    expect(seen.servers[0]?.alsoOn).toEqual([]);
    expect(seen.notes).toEqual([]);
  });

  test('on hosts of two aggregates is in the snapshots of both', () => {
    const lists = cloud({ servers: [server('1', 'a'), server('1', 'x')] });
    expect(observe(lists, { hosts: ['a'] }).servers).toMatchObject([{ host: 'a', alsoOn: ['x'] }]);
    expect(observe(lists, { hosts: ['x'] }).servers).toMatchObject([{ host: 'x', alsoOn: ['a'] }]);
  });
});

describe('a running migration', () => {
  test('makes its server count at the other end too', () => {
    const servers = [server('1', 'a'), server('2', 'b')];
    const migrations = [migration('1', 'a', 'c', { id: 9 }), migration('2', 'a', 'b', { id: 8, type: 'resize' })];
    const seen = observe(cloud({ servers, migrations }));
    expect(seen.servers.map((one) => [one.host, one.alsoOn])).toEqual([
      ['a', ['c']],
      ['b', ['a']],
    ]);
    expect(seen.migrations.map((one) => [one.id, one.sourceHost, one.destHost, one.status])).toEqual([
      [8, 'a', 'b', 'running'],
      [9, 'a', 'c', 'running'],
    ]);
  });

  test('whose destination is not chosen yet is listed, and adds no host', () => {
    const seen = observe(cloud({ servers: [server('1', 'a')], migrations: [migration('1', 'a', null)] }));
    expect(seen.servers[0]?.alsoOn).toEqual([]);
    expect(seen.migrations).toMatchObject([{ serverId: '1', destHost: null }]);
  });

  test('towards this aggregate brings its server into the snapshot, on the host where it will be', () => {
    const lists = cloud({ servers: [server('1', 'elsewhere')], migrations: [migration('1', 'elsewhere', 'a')] });
    expect(observe(lists).servers).toMatchObject([
      { id: '1', host: 'a', alsoOn: ['elsewhere'], listedOn: 'elsewhere' },
    ]);
    expect(observe(lists, { hosts: ['elsewhere'] }).servers[0]).not.toHaveProperty('listedOn');
  });

  test('of a server that is not there any more is left out', () => {
    expect(observe(cloud({ migrations: [migration('gone', 'a', 'b')] })).migrations).toEqual([]);
  });
});

describe('a row that Nova has abandoned', () => {
  const old = { updatedAt: '2026-01-01T11:00:00Z' };
  const seen = (more: Partial<Migration>, of: Partial<Server> = {}) => {
    const servers = [{ ...server('1', 'a'), ...of }];
    const found = observe(
      cloud({ servers, migrations: [migration('1', 'a', 'b', { status: 'queued', ...old, ...more })] }),
    );
    return {
      counted: found.migrations.length,
      alsoOn: found.servers[0]?.alsoOn,
      notes: found.notes.map(({ code }) => code),
    };
  };
  const counts = { counted: 1, alsoOn: ['b'], notes: [] };

  test.each(['queued', 'preparing', 'running'])(
    'counts nowhere and is named: %s, and the server long idle',
    (status) => {
      expect(seen({ status })).toEqual({ counted: 0, alsoOn: [], notes: ['migration-abandoned'] });
    },
  );

  test('counts nowhere when it waits for the confirmation of a move, and the state of its server was reset', () => {
    const row = { type: 'migration', status: 'finished' } as const;
    expect(seen(row)).toEqual({ counted: 0, alsoOn: [], notes: ['migration-abandoned'] });
    expect(seen(row, { status: 'VERIFY_RESIZE' })).toMatchObject(counts);
    expect(seen({ ...row, status: 'confirming' })).toEqual(counts);
  });

  test.each<[string, Partial<Migration>, Partial<Server>]>([
    ['while its server is migrating', {}, { taskState: 'migrating' }],
    ['while it has changed lately', { updatedAt: '2026-01-01T11:58:00Z' }, {}],
    ['when its time cannot be read', { updatedAt: 'soon' }, {}],
    ['when it is accepted: the conductor may still begin it', { status: 'accepted' }, {}],
    ['when it is a resize', { type: 'resize' }, {}],
  ])('counts %s', (_, row, of) => {
    expect(seen(row, of)).toEqual(counts);
  });
});

describe('a server known before and now absent', () => {
  const known = [{ id: '1', name: 'one', host: 'a' }];

  test('makes the aggregate unplannable while nobody knows what became of it', () => {
    const seen = observe(cloud(), { known });
    expect(codes(seen.problems)).toEqual(['server-vanished']);
    expect(seen.problems[0]?.text).toContain('1 of a');
  });

  test('is no problem once it is found deleted', () => {
    expect(observe(cloud(), { known, fates: new Map([['1', { fate: 'deleted' }]]) }).problems).toEqual([]);
  });

  test('is a problem when Nova still has it', () => {
    const fates = new Map<string, Fate>([['1', { fate: 'exists', host: 'b' }]]);
    const seen = observe(cloud(), { known, fates });
    expect(codes(seen.problems)).toEqual(['server-vanished']);
    expect(seen.problems[0]?.text).toContain('still has it on b');
  });

  test('is a problem when the targeted read failed', () => {
    const fates = new Map<string, Fate>([['1', { fate: 'unknown', text: 'nova did not answer' }]]);
    expect(observe(cloud(), { known, fates }).problems[0]?.text).toContain('nova did not answer');
  });

  test('is no problem when it went to another aggregate, or to no host', () => {
    for (const host of ['elsewhere', null]) {
      expect(observe(cloud({ servers: [server('1', host)] }), { known }).problems).toEqual([]);
    }
  });

  test('is not blamed when the whole list could not be read', () => {
    const seen = observe({ ...cloud(), servers: unread }, { known });
    expect(codes(seen.problems)).toEqual(['servers-unknown']);
  });

  test('stays known after the snapshot that missed it, from the snapshot alone', () => {
    const seen = observe(cloud({ servers: [server('2', 'b')] }), { known });
    expect(knownAfter(seen)).toEqual([...known, { id: '2', name: 'name-of-2', host: 'b' }]);
  });

  test.each([
    [
      'its host is not known',
      observe(cloud({ servers: [server('1', 'a')] }), { known, hosts: [], unknownHosts: ['a'] }),
    ],
    ['the servers were not read', observe({ ...cloud(), servers: unread }, { known })],
    ['the hosts were not read', { servers: [], problems: [{ code: 'hypervisors-unknown', text: 'not read' }] }],
  ])('stays known after a snapshot that lacks it because %s', (_, seen) => {
    expect(knownAfter(seen, known)).toEqual(known);
    const index = { listed: new Set(['1']) };
    expect(stillKnown(seen, known, index, new Map())).toEqual(known);
    expect(stillKnown(seen, known, index, new Map([['1', { fate: 'deleted' }]]))).toEqual([]);
  });

  test('is forgotten once it is elsewhere', () => {
    const seen = observe(cloud({ servers: [server('1', 'elsewhere')] }), { known });
    expect(knownAfter(seen, known)).toEqual([]);
    expect(stillKnown(seen, known, { listed: new Set(['1']) }, new Map())).toEqual([]);
  });

  test('is forgotten after the snapshot that found it deleted', () => {
    const seen = observe(cloud(), { known, fates: new Map([['1', { fate: 'deleted' }]]) });
    expect(knownAfter(seen)).toEqual([]);
  });
});

describe('a cell that is down', () => {
  const down = server('1', null, { cellDown: true, status: 'UNKNOWN', name: null, flavor: null });

  test('makes the aggregate unplannable that knew one of its servers', () => {
    const known = [{ id: '1', name: 'one', host: 'a' }];
    const seen = observe(cloud({ servers: [down] }), { known });
    expect(codes(seen.problems)).toEqual(['servers-of-down-cell']);
    expect(knownAfter(seen)).toEqual(known);
  });

  test('makes an aggregate unplannable that has hosts of unknown state, also without knowledge from before', () => {
    expect(codes(observe(cloud({ servers: [down] }), { unsure: ['b'] }).problems)).toEqual(['servers-of-down-cell']);
  });

  test('does not touch the other aggregates', () => {
    expect(observe(cloud({ servers: [down] })).problems).toEqual([]);
  });
});

describe('opting out', () => {
  test('is recorded on the server', () => {
    const { servers } = observe(cloud({ servers: [server('1', 'a', { tags: ['kronos:exclude'] })] }));
    expect(servers[0]?.optedOutBy).toBe('kronos:exclude');
  });

  test('windows of its own are recorded on the server, as text', () => {
    const tags = ['kronos:window=Sat 02:00-05:00'];
    const { servers } = observe(cloud({ servers: [server('1', 'a', { tags }), server('2', 'a')] }));
    expect(servers.map(({ windows }) => windows)).toEqual([['Sat 02:00-05:00'], undefined]);
  });
});

describe('server groups', () => {
  const servers = [server('1', 'a'), server('2', 'b'), server('9', 'elsewhere')];

  test('with a member in the aggregate are kept with all their members, by id', () => {
    const serverGroups = [
      group('g2', 'soft-affinity', ['9', '2']),
      group('g1', 'anti-affinity', ['1', '2']),
      group('g3', 'affinity', ['9']),
    ];
    const seen = observe(cloud({ servers, serverGroups }));
    expect(seen.serverGroups).toEqual([
      { id: 'g1', name: 'name-of-g1', policy: 'anti-affinity', maxServerPerHost: 1, members: ['1', '2'] },
      { id: 'g2', name: 'name-of-g2', policy: 'soft-affinity', maxServerPerHost: 1, members: ['2', '9'] },
    ]);
    expect(seen.problems).toEqual([]);
  });

  test('have the most members on one host that Nova says', () => {
    const seen = observe(
      cloud({ servers, serverGroups: [group('g1', 'anti-affinity', ['1'], { maxServersPerHost: 3 })] }),
    );
    expect(seen.serverGroups.map((one) => one.maxServerPerHost)).toEqual([3]);
  });

  test.each<[string, Parameters<typeof group>[], string | null]>([
    [
      'anti-affinity with two members on a host',
      [['g1', 'anti-affinity', ['1', '3', '2']]],
      'the rule of a server group is broken: anti-affinity group name-of-g1 (name-of-1, name-of-3 on a)',
    ],
    [
      'affinity with members on two hosts, and another one',
      [
        ['g1', 'affinity', ['1', '2', '9']],
        ['g2', 'anti-affinity', ['1', '3']],
      ],
      'the rules of 2 server groups are broken: affinity group name-of-g1 (name-of-1 on a, name-of-2 on b), anti-affinity group name-of-g2 (name-of-1, name-of-3 on a)',
    ],
    ['as many members as a host may have', [['g1', 'anti-affinity', ['1', '3'], { maxServersPerHost: 2 }]], null],
    [
      'soft rules',
      [
        ['g1', 'soft-anti-affinity', ['1', '3']],
        ['g2', 'soft-affinity', ['1', '2']],
      ],
      null,
    ],
    [
      'rules that hold',
      [
        ['g1', 'anti-affinity', ['1', '2']],
        ['g2', 'affinity', ['1', '3']],
      ],
      null,
    ],
  ])('that are hard and broken are noted: %s', (_, given, text) => {
    const serverGroups = given.map((one) => group(...one));
    const { notes } = observe(cloud({ servers: [...servers, server('3', 'a')], serverGroups }));
    expect(notes.map((one) => one.text)).toEqual(text === null ? [] : [text]);
  });

  test('without a policy are no rule', () => {
    const seen = observe(cloud({ servers, serverGroups: [group('g1', null, ['1'])] }));
    expect(seen.serverGroups).toEqual([]);
    expect(seen.problems).toEqual([]);
  });

  test('with an unknown policy make the aggregate unplannable, and only the one that has a member', () => {
    const serverGroups = [group('g1', 'rack-affinity', ['1']), group('g2', 'rack-affinity', ['9'])];
    const seen = observe(cloud({ servers, serverGroups }));
    expect(codes(seen.problems)).toEqual(['server-group-policy-unknown']);
    expect(seen.problems[0]?.text).toContain('rack-affinity');
  });
});

test('each part that could not be read is a problem of its own', () => {
  const seen = observe({ ...cloud(), servers: unread, serverGroups: unread, migrations: unread });
  expect(codes(seen.problems)).toEqual(['servers-unknown', 'server-groups-unknown', 'migrations-unknown']);
  for (const one of seen.problems) expect(one.text).toContain('nova is unreachable');
});

test('a flavor that claims other resources is recorded with those', () => {
  const pinned = { ...flavor, extraSpecs: { 'hw:cpu_policy': 'dedicated', 'resources:CUSTOM_X': '3' } };
  const { servers } = observe(cloud({ servers: [server('1', 'a', { flavor: pinned })] }));
  expect(servers[0]?.resources).toEqual({ PCPU: 2, CUSTOM_X: 3, MEMORY_MB: 4096, DISK_GB: 26 });
});
