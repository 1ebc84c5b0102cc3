import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cloud, failure, playCloud, type Route, tokenAnswer } from '../testing/index.ts';
import { BadAnswer, EndpointNotFound } from './errors.ts';
import { createNeutron } from './neutron.ts';

let cloud: Cloud;
beforeEach(async () => {
  cloud = await playCloud();
});
afterEach(() => cloud.close());

const PORTS = 'GET /network/v2.0/ports';
const port = (id: string, server: string, more: object = {}) => ({
  id,
  device_id: server,
  mac_address: `fa:16:3e:00:00:${id}`,
  'binding:vnic_type': 'normal',
  resource_request: null,
  ...more,
});

/** A catalog with a network service that has these extensions and ports. */
function play(aliases: readonly string[], ports: readonly ReturnType<typeof port>[]): void {
  const list: Route = ({ url }) => {
    const ids = url.searchParams.getAll('device_id');
    const marker = url.searchParams.get('marker') ?? '';
    const rows = ports.filter(({ id, device_id }) => (ids.length === 0 || ids.includes(device_id)) && id > marker);
    return { body: { ports: rows.slice(0, 2) } };
  };
  cloud.on({
    'POST /v3/auth/tokens': () => {
      const endpoints = [{ interface: 'public', url: `${cloud.url}/network`, region: 'one', region_id: 'one' }];
      return tokenAnswer('t', { catalog: [{ type: 'network', name: 'neutron', endpoints }] });
    },
    'GET /network/v2.0/extensions': () => ({ body: { extensions: aliases.map((alias) => ({ alias })) } }),
    [PORTS]: list,
  });
}

const read = (ids: readonly string[]) => createNeutron(cloud.session()).listPorts(ids);

it('the kinds of all ports are read page by page; ports of nothing are left out', async () => {
  play(
    ['binding'],
    [port('p1', 'a', { 'binding:vnic_type': 'direct' }), port('p2', ''), port('p3', 'b'), port('p4', 'c')],
  );
  expect(await createNeutron(cloud.session()).listPortKinds()).toEqual([
    { id: 'p1', serverId: 'a', vnicType: 'direct', mac: 'fa:16:3e:00:00:p1' },
    { id: 'p3', serverId: 'b', vnicType: 'normal', mac: 'fa:16:3e:00:00:p3' },
    { id: 'p4', serverId: 'c', vnicType: 'normal', mac: 'fa:16:3e:00:00:p4' },
  ]);
});

it('the kinds of the ports of one server are asked for by its id', async () => {
  play([], [port('p1', 'a', { 'binding:vnic_type': undefined }), port('p2', 'b')]);
  expect(await createNeutron(cloud.session()).listPortKinds({ serverId: 'a' })).toEqual([
    { id: 'p1', serverId: 'a', vnicType: 'normal', mac: 'fa:16:3e:00:00:p1' },
  ]);
  expect(cloud.of(PORTS)[0]?.url.searchParams.getAll('device_id')).toEqual(['a']);
});

it('a proxy that drops the query ends the reading with an error that names list and marker', async () => {
  play(['binding'], []);
  cloud.on({ [PORTS]: () => ({ body: { ports: [port('p1', 'a'), port('p2', 'b')] } }) });
  const failed = createNeutron(cloud.session()).listPortKinds();
  await expect(failed).rejects.toBeInstanceOf(BadAnswer);
  await expect(failed).rejects.toThrow(/GET \/ports: .*the marker p2 again/);
  expect(cloud.of(PORTS)).toHaveLength(2);
});

describe('the ports of servers', () => {
  it('are read page by page, by server', async () => {
    const request = {
      request_groups: [{ id: 'g', resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1 } }],
      same_subtree: ['g'],
    };
    play(
      ['binding', 'port-resource-request', 'port-resource-request-groups'],
      [
        port('p1', 'a'),
        port('p2', 'a', { 'binding:vnic_type': 'direct' }),
        port('p3', 'b', { resource_request: request }),
        port('p4', 'other'),
      ],
    );
    expect(await read(['a', 'b'])).toEqual([
      { id: 'p1', serverId: 'a', vnicType: 'normal', mac: 'fa:16:3e:00:00:p1', requestsResources: false },
      { id: 'p2', serverId: 'a', vnicType: 'direct', mac: 'fa:16:3e:00:00:p2', requestsResources: false },
      { id: 'p3', serverId: 'b', vnicType: 'normal', mac: 'fa:16:3e:00:00:p3', requestsResources: true },
    ]);
  });

  it('are asked for in requests of 50 servers', async () => {
    play([], []);
    await read(Array.from({ length: 120 }, (_, i) => `s${i}`));
    expect(cloud.of(PORTS).map(({ url }) => url.searchParams.getAll('device_id').length)).toEqual([50, 50, 20]);
  });

  it('read a request of an older Neutron', async () => {
    play(
      ['port-resource-request'],
      [
        port('p1', 'a', { resource_request: { required: [], resources: { X: 1 } } }),
        port('p2', 'a', { resource_request: {} }),
      ],
    );
    expect((await read(['a'])).map(({ requestsResources }) => requestsResources)).toEqual([true, false]);
  });

  it.each([
    ['binding', 'binding:vnic_type'],
    ['port-resource-request', 'resource_request'],
  ])('are not known where the policy hides what %s adds', async (alias, attribute) => {
    play([alias], [port('p1', 'a', { [attribute]: undefined })]);
    const error = await failure(read(['a']));
    expect(error).toBeInstanceOf(BadAnswer);
    expect(String(error)).toContain(`get_port:${attribute}`);
  });

  it('need none of what an extension adds that is not loaded', async () => {
    play([], [port('p1', 'a', { 'binding:vnic_type': undefined, resource_request: undefined })]);
    expect(await read(['a'])).toEqual([
      { id: 'p1', serverId: 'a', vnicType: 'normal', mac: 'fa:16:3e:00:00:p1', requestsResources: false },
    ]);
  });

  it('are not known where the catalog has no network service', async () => {
    expect(await failure(read(['a']))).toBeInstanceOf(EndpointNotFound);
  });
});
