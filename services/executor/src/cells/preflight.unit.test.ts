import type { NamedFlavor, Server } from '@kronos/openstack';
import { describe, expect, it } from 'vitest';
import {
  sampleAggregate,
  sampleOptions,
  sampleServer,
  sampleService,
  sampleTask,
  wordsOf,
} from '../../testing/sample.ts';
import type { CheckedCloud } from '../preflight.ts';
import type { MoveFacts } from '../preflightRules.ts';
import type { PreflightVerdict, Task } from '../taskFacts.ts';
import { cellPreflight, judgeCell, startOf } from './preflight.ts';

const MOVE: NonNullable<Task['cell']> = {
  method: 'migrate',
  target: 'new',
  oldFlavor: 'm1',
  newFlavor: 'm1',
  fromCell: 'cell1',
  toCell: 'cell2',
  downtimeSeconds: 60,
  confirm: 'auto',
  verifySeconds: 60,
};
const RESIZE = { ...MOVE, method: 'resize' as const, newFlavor: 'm2' };
const options = { ...sampleOptions, aggregates: ['old', 'new', 'spare'] };

const flavor = (name: string, id = `id-of-${name}`): NamedFlavor => ({
  id,
  name,
  vcpus: 2,
  ramMb: 4096,
  rootGb: 1,
  ephemeralGb: 0,
  swapMb: 0,
  extraSpecs: {},
});
const server = (changes: Partial<Server> = {}): Server => sampleServer({ flavor: flavor('m1'), ...changes });
const task = (changes: Partial<Task> = {}): Task =>
  sampleTask({
    aggregate: 'old',
    phase: 'cell',
    to: 'n1',
    destination: 'n1',
    alternates: ['n2'],
    cell: MOVE,
    ...changes,
  });
const facts = (changes: Partial<MoveFacts> = {}): MoveFacts => ({
  server: server(),
  services: ['h1', 'n1', 'n2'].map((host) => sampleService(host)),
  aggregates: [sampleAggregate('old', 'h1'), sampleAggregate('new', 'n1', 'n2')],
  migrations: [],
  ...changes,
});
const verdict = (
  changes: Partial<MoveFacts> = {},
  of: Partial<Task> = {},
  flavors: readonly NamedFlavor[] | null = null,
): PreflightVerdict | null => judgeCell(task(of), facts(changes), flavors, options);
const judge = (...given: Parameters<typeof verdict>): string => wordsOf(verdict(...given));
const ofServer = (changes: Partial<Server>): Partial<MoveFacts> => ({ server: server(changes) });
const ofService = (host: string, changes: Parameters<typeof sampleService>[1]): Partial<MoveFacts> => ({
  services: ['h1', 'n1', 'n2'].map((each) => sampleService(each, each === host ? changes : {})),
});
const textOf = (found: PreflightVerdict | null): string => (found?.kind === 'no' ? found.failure.reason.text : '');

const NOTHING = 'nothing against it';

describe('the server', () => {
  it.each<[string, Partial<MoveFacts>, string]>([
    ['ACTIVE', {}, NOTHING],
    ['SHUTOFF', ofServer({ status: 'SHUTOFF', vmState: 'stopped', powerState: 4 }), NOTHING],
    ['gone', { server: 'gone' }, 'server-gone Cancelled none'],
    ['in a cell that is down', ofServer({ cellDown: true }), 'unreachable'],
    ['on its destination', ofServer({ host: 'n1' }), 'there'],
    ['on its destination, stopped', ofServer({ host: 'n1', vmState: 'stopped' }), 'there'],
    [
      'on its destination in VERIFY_RESIZE',
      ofServer({ host: 'n1', vmState: 'resized' }),
      'moved-by-others Cancelled none',
    ],
    ['on an alternate that was not tried', ofServer({ host: 'n2' }), 'moved-by-others Cancelled none'],
    ['on another host', ofServer({ host: 'h9' }), 'moved-by-others Cancelled none'],
    ['on no host', ofServer({ host: null }), 'moved-by-others Cancelled none'],
    ['paused', ofServer({ status: 'PAUSED', vmState: 'paused' }), 'cell-status PreFlightError none'],
    ['in VERIFY_RESIZE', ofServer({ status: 'VERIFY_RESIZE', vmState: 'resized' }), 'cell-status PreFlightError none'],
    ['in ERROR', ofServer({ status: 'ERROR', vmState: 'error' }), 'cell-status PreFlightError none'],
    ['of an unknown power state', ofServer({ powerState: null }), 'power-unknown PreFlightError infrastructure'],
    ['busy', ofServer({ taskState: 'image_snapshot' }), 'vm-busy PreFlightError infrastructure'],
    ['locked', ofServer({ locked: true }), 'vm-locked PreFlightError none'],
    ['opted out', ofServer({ tags: ['kronos:exclude'] }), 'vm-opted-out Cancelled none'],
    ['outside its window', ofServer({ tags: ['kronos:window=13:00-14:00'] }), 'vm-outside-window Cancelled none'],
    [
      'with a window that cannot be read',
      ofServer({ tags: ['kronos:window=later'] }),
      'vm-window-unreadable Cancelled none',
    ],
    ['inside its window', ofServer({ tags: ['kronos:window=11:00-14:00'] }), NOTHING],
  ])('%s: %s', (_, changes, expected) => {
    expect(judge(changes)).toBe(expected);
  });

  it('that an earlier attempt has brought to an alternate has arrived', () => {
    expect(judge(ofServer({ host: 'n1' }), { destination: 'n2', attempt: 2 })).toBe('there');
  });

  it('of a task that names no method is not moved', () => {
    const { cell: _, ...bare } = task();
    expect(wordsOf(judgeCell(bare, facts(), null, options))).toBe('no-method Cancelled none');
    expect(startOf(bare, server(), null, [])).toBeNull();
  });
});

it.each<[string, Partial<MoveFacts>, string]>([
  ['the reason of the lock', ofServer({ locked: true, lockedReason: 'audit until Friday' }), 'audit until Friday'],
  ['the state', ofServer({ vmState: 'rescued', status: 'RESCUE' }), 'rescued'],
  ['the status where Nova gives no state', ofServer({ vmState: null, status: 'UNKNOWN' }), 'UNKNOWN'],
  ['the task', ofServer({ taskState: 'rebuilding' }), 'rebuilding'],
  ['the host', ofServer({ host: 'h9' }), 'h9'],
  ['the zone', ofServer({ pinnedAvailabilityZone: 'az9' }), 'az9'],
])('a refusal quotes Nova: %s', (_, changes, said) => {
  expect(textOf(verdict(changes))).toContain(said);
});

describe('the flavor', () => {
  const flavors = [flavor('m1'), flavor('m2')];
  it.each<[string, Partial<Server>, Partial<Task>, readonly NamedFlavor[] | null, string]>([
    ['of the plan, a cold migration', {}, {}, null, NOTHING],
    ['of the plan, a resize', {}, { cell: RESIZE }, flavors, NOTHING],
    ['changed since', { flavor: flavor('m9') }, {}, null, 'flavor-changed Cancelled none'],
    ['changed since, a resize', { flavor: flavor('m2') }, { cell: RESIZE }, flavors, 'flavor-changed Cancelled none'],
    ['that the plan did not know', { flavor: flavor('m9') }, { cell: { ...MOVE, oldFlavor: null } }, null, NOTHING],
    ['that Nova does not tell', { flavor: null }, {}, null, NOTHING],
    ['to resize to is gone', {}, { cell: RESIZE }, [flavor('m1')], 'flavor-unknown PreFlightError none'],
    ['to resize to was not read', {}, { cell: RESIZE }, null, 'flavor-unknown PreFlightError none'],
    [
      'to resize to is not named',
      {},
      { cell: { ...RESIZE, newFlavor: null } },
      flavors,
      'flavor-unknown PreFlightError none',
    ],
  ])('%s', (_, changes, of, known, expected) => {
    expect(judge(ofServer(changes), of, known)).toBe(expected);
  });
});

describe('services, aggregates and zone', () => {
  it.each<[string, Partial<MoveFacts>, string]>([
    ['source down', ofService('h1', { state: 'down' }), 'vm-source-down NovaClientError infrastructure'],
    ['source disabled: it is being emptied', ofService('h1', { status: 'disabled' }), NOTHING],
    ['destination down', ofService('n1', { state: 'down' }), 'host-down PreFlightError destination n1'],
    ['destination disabled', ofService('n1', { status: 'disabled' }), 'host-disabled PreFlightError destination'],
    ['destination gone', ofService('n1', { host: 'n8' }), 'destination-unknown PreFlightError destination n1'],
    ['an alternate down', ofService('n2', { state: 'down' }), NOTHING],
    [
      'source out of its aggregate',
      { aggregates: [sampleAggregate('old'), sampleAggregate('new', 'n1')] },
      'source-left Cancelled none',
    ],
    [
      'destination out of the target',
      { aggregates: [sampleAggregate('old', 'h1', 'n1'), sampleAggregate('new', 'n2')] },
      'destination-left PreFlightError destination',
    ],
    [
      'destination in a second aggregate in scope',
      { aggregates: [...facts().aggregates, sampleAggregate('spare', 'n1')] },
      'host-in-two-aggregates PreFlightError destination',
    ],
    [
      'destination in a second aggregate out of scope',
      { aggregates: [...facts().aggregates, sampleAggregate('ssd', 'n1')] },
      NOTHING,
    ],
    ['pinned to another zone', ofServer({ pinnedAvailabilityZone: 'az9' }), 'pinned-zone PreFlightError destination'],
    ['pinned to the zone of the destination', ofServer({ pinnedAvailabilityZone: 'az1' }), NOTHING],
  ])('%s', (_, changes, expected) => {
    expect(judge(changes)).toBe(expected);
  });
});

describe('what goes onto the log with the start', () => {
  const before = { powerState: 4, vmState: 'stopped', addresses: ['10.0.0.2', '10.0.0.1'], volumeIds: ['v2', 'v1'] };

  it('of a cold migration: the state before, in order, and both flavors the same', () => {
    expect(startOf(task(), server(before), null, ['a', 'b', 'a'])).toEqual({
      method: 'migrate',
      oldFlavor: 'm1',
      newFlavor: 'm1',
      flavorId: null,
      before: { vmState: 'stopped', powerState: 4, addresses: ['10.0.0.1', '10.0.0.2'], volumes: ['v1', 'v2'] },
      knownMigrations: ['a', 'b'],
    });
  });

  it('of a resize: the id of the new flavor, by its name', () => {
    const flavors = [flavor('m1'), flavor('m2', 'other'), flavor('m3')];
    expect(startOf(task({ cell: RESIZE }), server(), flavors, [])).toMatchObject({
      method: 'resize',
      oldFlavor: 'm1',
      newFlavor: 'm2',
      flavorId: 'other',
    });
  });

  it('where Nova does not tell the flavor, the one of the plan', () => {
    expect(startOf(task(), server({ flavor: null }), null, [])).toMatchObject({ oldFlavor: 'm1', newFlavor: 'm1' });
  });
});

describe('the ports that a server has now', () => {
  const { services, aggregates } = facts();
  const cloud = (kinds: readonly string[] | null): CheckedCloud => ({
    nova: {
      versionFor: async () => '2.56',
      getServer: async () => server(),
      listServices: async () => services,
      listAggregates: async () => aggregates,
      listMigrations: async () => [],
    } as unknown as CheckedCloud['nova'],
    placement: {
      allocationCandidates: async () => ({ allocationRequestCount: 1 }),
    } as unknown as CheckedCloud['placement'],
    portKindsOf: async () => kinds,
    providerOf: async () => 'provider',
  });

  it.each([
    [null, 'go'],
    [['normal', 'virtio-forwarder'], 'go'],
    [['normal', 'direct'], 'cell-pci-device'],
    [['accelerator-direct'], 'cell-accelerator'],
  ] as const)('of the kinds %j: %s', async (kinds, words) => {
    const devices = { ...options, movableDevices: ['sriov-port'] } as const;
    const found = await cellPreflight(task(), cloud(kinds), devices, new AbortController().signal);
    expect(wordsOf(found)).toContain(words);
  });
});
