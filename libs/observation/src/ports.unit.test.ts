import { BadAnswer, EndpointNotFound, Forbidden, type Port } from '@kronos/openstack';
import { server } from '@kronos/openstack/testing';
import { expect, it } from 'vitest';
import { PortReader, type PortReaderDeps } from './ports.ts';
import { indexServers } from './servers.ts';

const port = (serverId: string, vnicType = 'normal', mac = `mac of ${serverId}`): Port => ({
  id: `${serverId}-${vnicType}`,
  serverId,
  vnicType,
  mac,
  requestsResources: false,
});
const vm = (id: string, projectId = 'p1') =>
  server(id, 'h1', { projectId, addresses: ['10.0.0.1'], macs: [`mac of ${id}`] });
const place = { service: 'neutron', method: 'GET', url: 'http://neutron/v2.0/ports' };
const HOUR_MS = 3_600_000;

/** Reads the ports of the same VMs at each of these times, of a Neutron that shows these. */
function world(mode: PortReaderDeps['mode'], ids: readonly ReturnType<typeof vm>[]) {
  const state = { ports: [] as readonly Port[] | Error, nowMs: 0, lists: 0, asked: [] as string[][] };
  const answer = (): Port[] => {
    if (state.ports instanceof Error) throw state.ports;
    return [...state.ports];
  };
  const reader = new PortReader({
    mode,
    clock: { monotonic: () => state.nowMs },
    neutron: {
      async listPortKinds() {
        state.lists++;
        return answer();
      },
      async listPorts(wanted) {
        state.asked.push([...wanted]);
        return answer().filter(({ serverId }) => wanted.includes(serverId));
      },
    },
  });
  const read = async (servers = ids) => {
    const { kinds, notes } = await reader.read(indexServers(servers, []), new AbortController().signal);
    return { kinds: kinds === null ? null : Object.fromEntries(kinds), notes: notes.map(({ code }) => code) };
  };
  return Object.assign(state, { read });
}

it('tells the kinds of ports that are not ordinary, and asks for all of them once an hour', async () => {
  const neutron = world('auto', [vm('a'), vm('b', 'p2'), server('c', 'h1')]);
  neutron.ports = [port('a'), port('a', 'direct'), port('b')];
  expect(await neutron.read()).toEqual({ kinds: { a: ['direct'], b: [], c: [] }, notes: [] });
  neutron.nowMs = HOUR_MS - 1;
  await neutron.read();
  expect([neutron.lists, neutron.asked]).toEqual([1, []]);
  neutron.nowMs = HOUR_MS;
  await neutron.read();
  expect(neutron.lists).toBe(2);
});

it('reads the ports of a new VM at once; one with addresses and no port in the answer is not known', async () => {
  const neutron = world('auto', [vm('a'), vm('b', 'p2')]);
  neutron.ports = [port('a'), port('b')];
  await neutron.read();
  neutron.ports = [...neutron.ports, port('new', 'macvtap')];
  const seen = await neutron.read([vm('a'), vm('b', 'p2'), vm('new'), vm('young')]);
  expect(seen).toEqual({ kinds: { a: [], b: [], new: ['macvtap'], young: null }, notes: ['ports-unread'] });
  expect(neutron.asked).toEqual([['new', 'young']]);
});

it('reads the ports of a VM again when it was built, and when its addresses are others', async () => {
  const neutron = world('auto', [vm('a'), server('b', 'h1', { status: 'BUILD' })]);
  neutron.ports = [port('a'), port('b')];
  expect(await neutron.read()).toEqual({ kinds: { a: [], b: null }, notes: [] });
  neutron.ports = [port('a'), port('b'), port('b', 'direct')];
  expect(await neutron.read([vm('a'), vm('b')])).toEqual({ kinds: { a: [], b: ['direct'] }, notes: [] });
  neutron.ports = [...neutron.ports, port('a', 'direct')];
  const two = server('a', 'h1', { addresses: ['10.0.0.2', '10.0.0.1'] });
  expect(await neutron.read([two, vm('b')])).toEqual({ kinds: { a: ['direct'], b: ['direct'] }, notes: [] });
  expect(neutron.asked).toEqual([['b'], ['a']]);
});

it('with auto, a first list that fails is read again soon, one that Neutron cuts short after an hour', async () => {
  const neutron = world('auto', [vm('a'), vm('b', 'p2')]);
  neutron.ports = new Error('down');
  expect((await neutron.read()).notes).toEqual(['ports-unseen']);
  neutron.ports = [port('a', 'direct'), port('b')];
  neutron.nowMs = HOUR_MS / 6;
  expect(await neutron.read()).toEqual({ kinds: { a: ['direct'], b: [] }, notes: [] });
  const hiding = world('auto', [vm('a'), vm('b', 'p2')]);
  await hiding.read();
  hiding.nowMs = HOUR_MS - 1;
  await hiding.read();
  expect(hiding.lists).toBe(1);
});

it.each([
  ['shows the ports of its own project only', [port('a', 'direct')]],
  ['shows no ports', []],
  ['is missing from the catalog', new EndpointNotFound('network', 'none')],
  ['is forbidden', new Forbidden(place, 403, 'no')],
  ['hides the attribute', new BadAnswer(place, 'missing')],
] as const)('with auto, a Neutron that %s keeps no VM from moving; with read, none moves', async (_, ports) => {
  for (const [mode, kinds, note] of [
    ['auto', null, 'ports-unseen'],
    ['read', {}, 'ports-unread'],
  ] as const) {
    const neutron = world(mode, [vm('a'), vm('b', 'p2')]);
    neutron.ports = ports;
    expect(await neutron.read()).toEqual({ kinds, notes: [note] });
  }
});

it('a VM with an address on a port that Neutron does not show stays, as the owner of a shared network sees it', async () => {
  const shared = [
    vm('a', 'owner'),
    server('b', 'h1', { projectId: 'p2', addresses: ['10.0.0.1', '10.1.0.1'], macs: ['m1', 'm2'] }),
  ];
  const neutron = world('auto', [...shared, vm('c', 'p3')]);
  neutron.ports = [port('a'), port('b', 'normal', 'm1'), port('c')];
  expect(await neutron.read()).toEqual({ kinds: { a: [], b: null, c: [] }, notes: ['ports-unread'] });
  neutron.ports = [...neutron.ports, port('b', 'direct', 'm2')];
  expect(await neutron.read()).toEqual({ kinds: { a: [], b: ['direct'], c: [] }, notes: [] });
});

it('with ignore nobody asks', async () => {
  const ignoring = world('ignore', [vm('a')]);
  expect(await ignoring.read()).toEqual({ kinds: null, notes: [] });
  expect(ignoring.lists).toBe(0);
});

it('while Neutron fails, what it showed is known for two hours; new VMs stay, and then all do', async () => {
  const neutron = world('auto', [vm('a'), vm('b', 'p2')]);
  neutron.ports = [port('a', 'direct'), port('b')];
  await neutron.read();
  neutron.ports = new Error('down');
  neutron.nowMs = 2 * HOUR_MS - 1;
  expect(await neutron.read([vm('a'), vm('b', 'p2'), vm('new')])).toEqual({
    kinds: { a: ['direct'], b: [], new: null },
    notes: ['ports-unread'],
  });
  neutron.nowMs = 2 * HOUR_MS;
  expect(await neutron.read()).toEqual({ kinds: {}, notes: ['ports-unread'] });
});
