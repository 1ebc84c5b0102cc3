import { UNASSIGNED } from '@kronos/contracts';
import { describe, expect, test } from 'vitest';
import { aggregate, cloud, hypervisor, options, service, unread } from '../testing/given.ts';
import { cellOf, topologyOf } from './topology.ts';

const codes = (reasons: readonly { code: string }[]) => reasons.map((one) => one.code);

describe('the hosts of an aggregate', () => {
  test('are those that Nova lists in it, by name, with hypervisor and service', () => {
    const topology = topologyOf(cloud({ aggregates: [aggregate('gpu', ['c', 'a'])] }), 'gpu', ['gpu'], options);
    expect(topology.hosts.map((host) => host.name)).toEqual(['a', 'c']);
    expect(topology.hosts[0]).toEqual({
      name: 'a',
      hypervisorHostname: 'a.example',
      hypervisorId: 'id-of-a',
      hypervisorType: 'QEMU',
      hypervisorVersion: 8_002_000,
      availabilityZone: 'nova',
      cell: null,
      service: { status: 'enabled', state: 'up', forcedDown: false, disabledReason: null },
      otherAggregates: [],
    });
    expect(topology.placementAggregate).toBe('uuid-of-gpu');
    expect(topology.problems).toEqual([]);
    expect(topology.notes).toEqual([]);
  });

  test('keep disabled, down and forced down ones, as they are', () => {
    const services = [
      service('a', { status: 'disabled', disabledReason: 'maintenance' }),
      service('b', { state: 'down' }),
      service('c', { state: 'down', forcedDown: true }),
    ];
    const { hosts } = topologyOf(cloud({ services }), 'gpu', ['gpu'], options);
    expect(hosts.map((host) => host.service)).toEqual([
      { status: 'disabled', state: 'up', forcedDown: false, disabledReason: 'maintenance' },
      { status: 'enabled', state: 'down', forcedDown: false, disabledReason: null },
      { status: 'enabled', state: 'down', forcedDown: true, disabledReason: null },
    ]);
  });

  test('are none, with a problem, when Nova has no such aggregate', () => {
    const topology = topologyOf(cloud(), 'hpc', ['hpc'], options);
    expect(topology.hosts).toEqual([]);
    expect(codes(topology.problems)).toEqual(['aggregate-not-found']);
    expect(topology.problems[0]?.text).toContain('"hpc"');
  });

  test('are none, with a note and no problem, when the aggregate is empty', () => {
    const topology = topologyOf(cloud({ aggregates: [aggregate('gpu', [])] }), 'gpu', ['gpu'], options);
    expect(topology.problems).toEqual([]);
    expect(codes(topology.notes)).toEqual(['aggregate-empty']);
  });
});

describe('the pool of unassigned hosts', () => {
  test('has the hypervisors that are in no aggregate at all, also not in one out of scope', () => {
    const lists = cloud({ aggregates: [aggregate('gpu', ['a']), aggregate('zone-1', ['b'])] });
    const topology = topologyOf(lists, UNASSIGNED, [UNASSIGNED], options);
    expect(topology.hosts.map((host) => host.name)).toEqual(['c']);
    expect(topology.placementAggregate).toBeNull();
    expect(topology.problems).toEqual([]);
  });

  test('has a host of which only the service is known, as in a cell that is down: it is not counted, and is named', () => {
    const lists = cloud({ aggregates: [aggregate('gpu', ['a'])], hypervisors: [hypervisor('a'), hypervisor('b')] });
    const { hosts, unknownHosts, notes } = topologyOf(lists, UNASSIGNED, [UNASSIGNED], options);
    expect(hosts.map((host) => host.name)).toEqual(['b']);
    expect(unknownHosts).toEqual(['c']);
    expect(notes).toMatchObject([{ code: 'host-without-hypervisor', detail: { hosts: ['c'] } }]);
  });
});

describe('hypervisor types', () => {
  test('that are not wanted do not count, and a note names their hosts', () => {
    const hypervisors = [hypervisor('a'), hypervisor('b', { hypervisorType: 'ironic' }), hypervisor('c')];
    const { hosts, notes, problems } = topologyOf(cloud({ hypervisors }), 'gpu', ['gpu'], options);
    expect(hosts.map((host) => host.name)).toEqual(['a', 'c']);
    expect(codes(notes)).toEqual(['hypervisor-type-ignored']);
    expect(notes[0]?.text).toContain('b (ironic)');
    expect(problems).toEqual([]);
  });

  test('are compared without regard to case', () => {
    const hypervisors = [hypervisor('a', { hypervisorType: 'qemu' }), hypervisor('b', { hypervisorType: 'Kvm' })];
    const lists = cloud({ hypervisors, aggregates: [aggregate('gpu', ['a', 'b'])] });
    expect(topologyOf(lists, 'gpu', ['gpu'], options).hosts.map((host) => host.name)).toEqual(['a', 'b']);
  });

  test('bare metal: many nodes under one service host neither count nor hinder', () => {
    const nodes = [1, 2, 3].map((n) => hypervisor('b', { id: `node-${n}`, hypervisorType: 'ironic' }));
    const { hosts, problems } = topologyOf(
      cloud({ hypervisors: [hypervisor('a'), ...nodes, hypervisor('c')] }),
      'gpu',
      ['gpu'],
      options,
    );
    expect(hosts.map((host) => host.name)).toEqual(['a', 'c']);
    expect(problems).toEqual([]);
  });
});

describe('a host in two configured aggregates', () => {
  const lists = cloud({ aggregates: [aggregate('gpu', ['a', 'b']), aggregate('std', ['b', 'c'])] });

  test('makes each of them unplannable, naming both and the host', () => {
    for (const name of ['gpu', 'std']) {
      const { problems, hosts } = topologyOf(lists, name, ['gpu', 'std'], options);
      expect(codes(problems)).toEqual(['host-in-two-aggregates']);
      expect(problems[0]?.text).toContain('the host b is in "gpu" and "std"');
      expect(problems[0]?.detail).toEqual({ host: 'b', aggregates: ['gpu', 'std'] });
      expect(hosts.find((host) => host.name === 'b')?.otherAggregates).toEqual([name === 'gpu' ? 'std' : 'gpu']);
    }
  });

  test('is no problem when only one of the two is in scope', () => {
    expect(topologyOf(lists, 'gpu', ['gpu'], options).problems).toEqual([]);
  });

  test('is no problem when the host is bare metal', () => {
    const hypervisors = [hypervisor('a'), hypervisor('b', { hypervisorType: 'ironic' }), hypervisor('c')];
    const both = { ...lists, hypervisors: { ok: true as const, value: hypervisors } };
    expect(topologyOf(both, 'gpu', ['gpu', 'std'], options).problems).toEqual([]);
  });
});

describe('what could not be read is unknown', () => {
  test('services: every host is recorded with an unknown service, and nothing is guessed from the hypervisor', () => {
    const { hosts, notes } = topologyOf({ ...cloud(), services: unread }, 'gpu', ['gpu'], options);
    expect(hosts).toHaveLength(3);
    for (const host of hosts) {
      expect(host.service).toEqual({ status: 'unknown', state: 'unknown', forcedDown: false, disabledReason: null });
    }
    expect(codes(notes)).toEqual(['services-unknown']);
  });

  test('one service that Nova does not have: that host alone is unknown', () => {
    const { hosts, notes } = topologyOf(cloud({ services: [service('a'), service('c')] }), 'gpu', ['gpu'], options);
    expect(hosts.map((host) => host.service.state)).toEqual(['up', 'unknown', 'up']);
    expect(codes(notes)).toEqual(['host-without-service']);
  });

  test('aggregates: the aggregate is unplannable', () => {
    const topology = topologyOf({ ...cloud(), aggregates: unread }, 'gpu', ['gpu'], options);
    expect(topology.hosts).toEqual([]);
    expect(codes(topology.problems)).toEqual(['aggregates-unknown']);
  });

  test('hypervisors: the aggregate is unplannable', () => {
    const topology = topologyOf({ ...cloud(), hypervisors: unread }, 'gpu', ['gpu'], options);
    expect(topology.hosts).toEqual([]);
    expect(codes(topology.problems)).toEqual(['hypervisors-unknown']);
  });

  test('of a cell that is down Nova lists no hypervisors, nor of any other: its hosts are named with every aggregate', () => {
    const services = [service('a'), service('z2', { cellDown: true }), service('z1', { cellDown: true })];
    const lists = { ...cloud({ services }), hypervisors: unread };
    const named = { ...options, cells: [{ cell: 'far', hosts: 'z*' }] };
    for (const [with_, which] of [
      [options, 'the cell of z1, z2'],
      [named, 'far (hosts z1, z2)'],
    ] as const) {
      const topology = topologyOf(lists, 'gpu', ['gpu'], with_);
      expect(codes(topology.problems)).toEqual(['hosts-of-down-cell', 'hypervisors-unknown']);
      expect(topology.problems[0]).toMatchObject({
        text: `a cell is down: Nova does not reach the database of ${which}`,
        detail: { hosts: ['z1', 'z2'] },
      });
    }
  });

  test('of a cell that is down where Nova lists the hypervisors: a problem of the aggregates with its hosts', () => {
    const services = [service('a'), service('b'), service('c', { cellDown: true }), service('z', { cellDown: true })];
    const { problems } = topologyOf(cloud({ services }), 'gpu', ['gpu'], options);
    expect(problems.map(({ code, detail }) => [code, detail])).toEqual([['hosts-of-down-cell', { hosts: ['c'] }]]);
    const elsewhere = topologyOf(cloud({ services: services.with(2, service('c')) }), 'gpu', ['gpu'], options);
    expect(elsewhere.problems).toEqual([]);
  });

  test('a member without a hypervisor is left out and reported as unknown', () => {
    const topology = topologyOf(cloud({ hypervisors: [hypervisor('a'), hypervisor('b')] }), 'gpu', ['gpu'], options);
    expect(topology.hosts.map((host) => host.name)).toEqual(['a', 'b']);
    expect(topology.unknownHosts).toEqual(['c']);
    expect(codes(topology.notes)).toEqual(['host-without-hypervisor']);
  });

  test('a host with two counted hypervisors is a problem', () => {
    const hypervisors = [hypervisor('a'), hypervisor('a', { id: 'other' }), hypervisor('b'), hypervisor('c')];
    const topology = topologyOf(cloud({ hypervisors }), 'gpu', ['gpu'], options);
    expect(codes(topology.problems)).toEqual(['host-with-several-hypervisors']);
    expect(topology.unknownHosts).toEqual(['a']);
  });
});

describe('availability zones', () => {
  test('come from the aggregate that carries the zone, of whatever scope', () => {
    const aggregates = [aggregate('gpu', ['a', 'b', 'c']), aggregate('z', ['b'], { availabilityZone: 'zone-2' })];
    const { hosts } = topologyOf(cloud({ aggregates }), 'gpu', ['gpu'], options);
    expect(hosts.map((host) => host.availabilityZone)).toEqual(['nova', 'zone-2', 'nova']);
  });

  test('come from the metadata where the field is empty', () => {
    const aggregates = [aggregate('gpu', ['a', 'b', 'c'], { metadata: { availability_zone: 'zone-3' } })];
    const { hosts } = topologyOf(cloud({ aggregates }), 'gpu', ['gpu'], options);
    expect(hosts.map((host) => host.availabilityZone)).toEqual(['zone-3', 'zone-3', 'zone-3']);
  });

  test('are unknown when neither says', () => {
    const { hosts } = topologyOf({ ...cloud(), services: unread }, 'gpu', ['gpu'], options);
    expect(hosts.map((host) => host.availabilityZone)).toEqual([null, null, null]);
  });
});

test('a cell is that of the first pattern that fits the whole name', () => {
  const cells = [
    { cell: 'cell1', hosts: 'cmp1*' },
    { cell: 'cell2', hosts: 'cmp*.example' },
    { cell: 'cell3', hosts: 'a.b' },
  ];
  expect(cellOf(cells, 'cmp12.example')).toBe('cell1');
  expect(cellOf(cells, 'cmp2.example')).toBe('cell2');
  expect(cellOf(cells, 'cmp2.example.org')).toBeNull();
  expect(cellOf(cells, 'a.b')).toBe('cell3');
  expect(cellOf(cells, 'axb')).toBeNull();
});
