import { UNASSIGNED } from '@kronos/contracts';
import type { ComputeService } from '@kronos/openstack';
import { describe, expect, it } from 'vitest';
import {
  sampleAggregate as aggregate,
  sampleOptions as options,
  sampleTask,
  sampleServer as server,
  sampleService as service,
  wordsOf as words,
} from '../testing/sample.ts';
import {
  type CheckOptions,
  type GroupFacts,
  judgeHosts,
  judgeRepair,
  judgeRoom,
  type MoveFacts,
  newestId,
} from './preflightRules.ts';
import type { Task } from './taskFacts.ts';

const facts = (changes: Partial<MoveFacts> = {}): MoveFacts => ({
  server: server(),
  services: ['h1', 'h2', 'h3'].map((host) => service(host)),
  aggregates: [aggregate('gpu', 'h1', 'h2', 'h3')],
  migrations: [{ id: 4 }, { id: 9 }, { id: 7 }],
  ...changes,
});
const task = (changes: Partial<Task> = {}): Task => sampleTask({ to: 'h2', alternates: ['h3'], ...changes });

const OPT_OUT = [...options.optOut, 'project:p9', 'name:db-*'];
const judge = (changes: Partial<MoveFacts>, of: Partial<Task> = {}, how: Partial<CheckOptions> = {}): string =>
  words(judgeHosts(task(of), facts(changes), { ...options, optOut: OPT_OUT, ...how }));
const withService = (host: string, changes: Partial<ComputeService>): Partial<MoveFacts> => ({
  services: ['h1', 'h2', 'h3'].map((each) => service(each, each === host ? changes : {})),
});

describe('the server', () => {
  it.each<[string, Partial<MoveFacts>, string]>([
    ['as planned', {}, 'nothing against it'],
    ['paused', { server: server({ vmState: 'paused', status: 'PAUSED', powerState: 3 }) }, 'nothing against it'],
    ['gone', { server: 'gone' }, 'server-gone Cancelled none'],
    ['in a cell that is down', { server: server({ cellDown: true }) }, 'unreachable'],
    ['on its destination', { server: server({ host: 'h2' }) }, 'there'],
    ['on a third host', { server: server({ host: 'h9' }) }, 'moved-by-others Cancelled none'],
    ['on an alternate that was not tried', { server: server({ host: 'h3' }) }, 'moved-by-others Cancelled none'],
    ['on no host', { server: server({ host: null }) }, 'moved-by-others Cancelled none'],
    [
      'outside its own window',
      { server: server({ metadata: { 'kronos:window': '13:00-14:00' } }) },
      'vm-outside-window Cancelled none',
    ],
    [
      'with a window that cannot be read',
      { server: server({ tags: ['kronos:window=later'] }) },
      'vm-window-unreadable Cancelled none',
    ],
    ['inside its own window', { server: server({ tags: ['kronos:window=11:00-14:00'] }) }, 'nothing against it'],
    ['opted out by its project since', { server: server({ projectId: 'p9' }) }, 'vm-opted-out Cancelled none'],
    ['opted out by its name since', { server: server({ name: 'db-1' }) }, 'vm-opted-out Cancelled none'],
    ['opted out by a tag', { server: server({ tags: ['kronos:exclude'] }) }, 'vm-opted-out Cancelled none'],
    ['locked', { server: server({ locked: true }) }, 'vm-locked PreFlightError none'],
    ['stopped', { server: server({ vmState: 'stopped' }) }, 'vm-status PreFlightError none'],
    ['of no power state', { server: server({ powerState: 0 }) }, 'vm-power-state PreFlightError none'],
    ['shut down though ACTIVE', { server: server({ powerState: 4 }) }, 'vm-power-state PreFlightError none'],
    ['of a power state that Nova does not show', { server: server({ powerState: null }) }, 'nothing against it'],
    ['busy', { server: server({ taskState: 'image_snapshot' }) }, 'vm-busy PreFlightError infrastructure'],
  ])('%s: %s', (_, changes, expected) => {
    expect(judge(changes)).toBe(expected);
  });

  it('may be opted out by a property of its image, and is where Nova shows no properties', () => {
    const optOut = ['image:fixed=yes'];
    const of = (imageProperties: Record<string, string>) => ({ server: server({ imageProperties }) });
    expect(judge(of({ fixed: 'yes' }), {}, { optOut })).toBe('vm-opted-out Cancelled none');
    expect(judge(of({ fixed: 'no' }), {}, { optOut })).toBe('nothing against it');
    expect(judge({}, {}, { optOut })).toBe('vm-opted-out Cancelled none');
  });

  it('on a destination of an earlier attempt has arrived after all', () => {
    expect(judge({ server: server({ host: 'h2' }) }, { destination: 'h3', attempt: 2 })).toBe('there');
  });
});

describe('the services', () => {
  it.each<[string, string, Partial<ComputeService>, string]>([
    ['source down', 'h1', { state: 'down' }, 'vm-source-down NovaClientError infrastructure'],
    ['source forced down', 'h1', { forcedDown: true }, 'vm-source-down NovaClientError infrastructure'],
    ['source unknown', 'h1', { state: 'unknown' }, 'vm-source-down NovaClientError infrastructure'],
    ['source disabled', 'h1', { status: 'disabled' }, 'vm-source-disabled Cancelled none'],
    ['destination down', 'h2', { state: 'down' }, 'host-down PreFlightError destination h2'],
    ['destination unknown', 'h2', { state: 'unknown' }, 'host-down PreFlightError destination h2'],
    ['destination forced down', 'h2', { forcedDown: true }, 'host-down PreFlightError destination h2'],
    ['destination disabled', 'h2', { status: 'disabled' }, 'host-disabled PreFlightError destination'],
    ['destination gone', 'h2', { host: 'h8' }, 'destination-unknown PreFlightError destination h2'],
  ])('%s', (_, host, changes, expected) => {
    expect(judge(withService(host, changes))).toBe(expected);
  });

  it('an evacuation tolerates a disabled source, and no source that is down', () => {
    expect(judge(withService('h1', { status: 'disabled' }), { phase: 'evacuate' })).toBe('nothing against it');
    expect(judge(withService('h1', { state: 'down' }), { phase: 'evacuate' })).toContain('vm-source-down');
  });

  it('an evacuation off a host that is enabled again has lost its reason', () => {
    expect(judge({}, { phase: 'evacuate' })).toBe('reason-gone Cancelled none');
  });

  it('a resident that makes room for an evacuation leaves a host that is enabled', () => {
    expect(judge({}, { phase: 'evacuate' }, { awaited: true })).toBe('nothing against it');
  });

  it('two services of one name are no certain knowledge', () => {
    expect(judge({ services: [service('h1'), service('h2'), service('h2')] })).toContain('destination-unknown');
  });
});

describe('aggregate and zone', () => {
  it.each<[string, Partial<MoveFacts>, Partial<Task>, Partial<CheckOptions>, string]>([
    [
      'destination out of the aggregate',
      { aggregates: [aggregate('gpu', 'h1', 'h3')] },
      {},
      {},
      'destination-left PreFlightError destination',
    ],
    ['source out of the aggregate', { aggregates: [aggregate('gpu', 'h2')] }, {}, {}, 'source-left Cancelled none'],
    [
      'destination in a second aggregate in scope',
      { aggregates: [aggregate('gpu', 'h1', 'h2'), aggregate('web', 'h2')] },
      {},
      { aggregates: ['gpu', 'web'] },
      'host-in-two-aggregates PreFlightError destination',
    ],
    [
      'destination in a second aggregate out of scope',
      { aggregates: [aggregate('gpu', 'h1', 'h2'), aggregate('ssd', 'h2')] },
      {},
      {},
      'nothing against it',
    ],
    ['pool, both in no aggregate', { aggregates: [] }, { aggregate: UNASSIGNED }, {}, 'nothing against it'],
    [
      'pool, destination joined an aggregate',
      { aggregates: [aggregate('new', 'h2')] },
      { aggregate: UNASSIGNED },
      {},
      'destination-left PreFlightError destination',
    ],
    [
      'pool, source joined an aggregate',
      { aggregates: [aggregate('new', 'h1')] },
      { aggregate: UNASSIGNED },
      {},
      'source-left Cancelled none',
    ],
    [
      'pinned to another zone',
      { server: server({ pinnedAvailabilityZone: 'az2' }) },
      {},
      {},
      'pinned-zone PreFlightError destination',
    ],
    ['another zone, not restricted', withService('h2', { zone: 'az2' }), {}, {}, 'nothing against it'],
    [
      'another zone, restricted',
      withService('h2', { zone: 'az2' }),
      {},
      { restrictToAz: true },
      'other-zone PreFlightError destination',
    ],
  ])('%s', (_, changes, of, how, expected) => {
    expect(judge(changes, of, how)).toBe(expected);
  });
});

describe('server groups', () => {
  const member = (id: string, ...hosts: string[]) => ({ id, hosts });
  const group = (policy: string | null, others: GroupFacts['others'], most = 1): GroupFacts => ({
    group: { id: 'g', name: 'g', policy, maxServersPerHost: most },
    others,
  });
  const room = (
    of: GroupFacts,
    changes: Partial<Task> = {},
    softRules: CheckOptions['softRules'] = 'veto',
    awaited = false,
  ): string =>
    words(
      judgeRoom(
        task(changes),
        facts(),
        { groups: [of], fits: true, resources: {}, cells: null, refusedBefore: null, forced: false },
        { softRules, awaited },
      ),
    );
  const apart = 'anti-affinity PreFlightError destination';
  const together = 'affinity PreFlightError destination';
  const immovable = 'affinity-gathered PreFlightError none';

  it.each<[string, GroupFacts, Partial<Task>, boolean, string]>([
    ['apart already', group('anti-affinity', [member('a', 'h3')]), {}, false, 'reason-gone Cancelled none'],
    ['together already', group('soft-affinity', [member('a', 'h1')]), {}, false, 'reason-gone Cancelled none'],
    ['still on one host', group('anti-affinity', [member('a', 'h1')]), {}, false, 'go'],
    ['still apart', group('affinity', [member('a', 'h2')]), {}, false, 'go'],
    ['making room for another step', group('anti-affinity', [member('a', 'h3')]), {}, true, 'go'],
    ['of another phase', group('anti-affinity', [member('a', 'h3')]), { phase: 'spread' }, false, 'go'],
  ])('a repair of a group that is %s', (_, of, changes, awaited, expected) => {
    expect(room(of, { phase: 'affinity', ...changes }, 'veto', awaited)).toBe(expected);
  });

  it.each<[string, GroupFacts, string]>([
    ['anti-affinity, nobody there', group('anti-affinity', [member('a', 'h3')]), 'go'],
    ['anti-affinity, one there', group('anti-affinity', [member('a', 'h2')]), apart],
    ['anti-affinity, one on its way there', group('anti-affinity', [member('a', 'h3', 'h2')]), apart],
    ['anti-affinity, one there and two allowed', group('anti-affinity', [member('a', 'h2')], 2), 'go'],
    ['soft-anti-affinity, one there', group('soft-anti-affinity', [member('a', 'h2')]), apart],
    ['affinity, alone', group('affinity', []), immovable],
    ['affinity, all on the source', group('affinity', [member('a', 'h1')]), immovable],
    ['affinity, all others there', group('affinity', [member('a', 'h2'), member('b', 'h2')]), 'go'],
    ['affinity, some there', group('affinity', [member('a', 'h2'), member('b', 'h3')]), together],
    ['affinity, one is not placed', group('affinity', [member('a', 'h2'), member('b')]), 'go'],
    ['affinity, one is out of the aggregate', group('affinity', [member('a', 'h2'), member('b', 'x9')]), 'go'],
    ['soft-affinity, alone', group('soft-affinity', []), 'go'],
    ['soft-affinity, some there', group('soft-affinity', [member('a', 'h2'), member('b', 'h3')]), together],
    ['no policy', group(null, [member('a', 'h2')]), 'go'],
    ['a policy of a later Nova', group('weather', []), 'server-group-policy-unknown PreFlightError none'],
  ])('%s', (_, of, expected) => {
    expect(room(of)).toBe(expected);
  });

  it.each<[string, GroupFacts, string]>([
    ['soft-anti-affinity, one there', group('soft-anti-affinity', [member('a', 'h2')]), 'go'],
    ['soft-affinity, some there', group('soft-affinity', [member('a', 'h2'), member('b', 'h3')]), 'go'],
    ['anti-affinity, one there', group('anti-affinity', [member('a', 'h2')]), apart],
    ['affinity, some there', group('affinity', [member('a', 'h2'), member('b', 'h3')]), together],
  ])('soft_rules = penalty, which the planner weighed: %s', (_, of, expected) => {
    expect(room(of, {}, 'penalty')).toBe(expected);
  });

  it('a repair gathers a split group on a host that has members', () => {
    const split = group('affinity', [member('a', 'h2'), member('b', 'h3')]);
    expect(room(split, { phase: 'affinity' })).toBe('go');
    expect(room(group('soft-affinity', [member('b', 'h3')]), { phase: 'affinity' })).toBe(together);
  });
});

describe('a repair', () => {
  const full = [
    { used: 10, capacity: 8 },
    { used: 5, capacity: 9 },
  ];
  const within = [{ used: 8, capacity: 8 }];
  const { zone } = service('h1');
  it.each<[string, string | null | undefined, Parameters<typeof judgeRepair>[3], string]>([
    ['off a host on which more is claimed than it has', null, full, 'nothing against it'],
    ['of a server that is pinned to another zone', 'elsewhere', within, 'nothing against it'],
    ['off a host within its capacity', null, within, 'reason-gone Cancelled none'],
    ['of a server in the zone to which it is pinned', zone, within, 'reason-gone Cancelled none'],
    ['off a host of which nothing is known', null, null, 'nothing against it'],
    ['of a server whose pin Nova does not show', undefined, within, 'nothing against it'],
  ])('%s', (_, pinnedAvailabilityZone, claims, expected) => {
    expect(words(judgeRepair(task({ phase: 'repair' }), { pinnedAvailabilityZone }, facts(), claims))).toBe(expected);
  });
});

describe('room on the destination', () => {
  const roomy = { groups: [], fits: true, resources: {}, cells: null, refusedBefore: null, forced: false };
  const judged = (more: Partial<Parameters<typeof judgeRoom>[2]> = {}) =>
    judgeRoom(task(), facts(), { ...roomy, ...more }, options);

  it('is what Placement says', () => {
    expect(words(judged({ fits: false, resources: { VCPU: 2 } }))).toBe('capacity PreFlightError destination');
  });

  it('is refused where Nova refused it for a server of this shape', () => {
    const verdict = judged({ refusedBefore: 'No valid host was found.' });
    expect(words(verdict)).toBe('refused-before PreFlightError destination');
  });

  it('lets the move go, with the newest migration known', () => {
    expect(judged()).toEqual({ kind: 'go', newestMigrationId: 9, forced: false });
    expect(newestId([])).toBe(0);
  });
});
