import { sleepless } from '@kronos/http/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, type Cloud, failure, NOVA_VERSION, playCloud, type Seen } from '../testing/index.ts';
import {
  BadAnswer,
  BadRequest,
  Conflict,
  HttpError,
  MicroversionUnsupported,
  NotFound,
  NotSent,
  Timeout,
  Unreachable,
} from './errors.ts';
import { createNova, type Nova } from './nova.ts';

let cloud: Cloud;
let nova: Nova;
beforeEach(async () => {
  cloud = await playCloud();
  nova = createNova(cloud.session(), { pageSize: 2 });
});
afterEach(() => cloud.close());

const DETAIL = 'GET /v2.1/servers/detail';
const HYPERVISORS = 'GET /v2.1/os-hypervisors/detail';
const ACTION = 'POST /v2.1/servers/s1/action';

/** A server as Nova 2.60 shows it. */
const wireServer = (id: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  id,
  name: `vm ${id}`,
  status: 'ACTIVE',
  tenant_id: 'p1',
  user_id: 'u1',
  metadata: { cpu: '2' },
  tags: ['gold'],
  image: { id: 'img', links: [] },
  flavor: {
    original_name: 'small',
    vcpus: 2,
    ram: 4096,
    disk: 10,
    ephemeral: 5,
    swap: 512,
    extra_specs: { 'hw:cpu_policy': 'dedicated' },
  },
  created: '2026-01-01T00:00:00Z',
  updated: '2026-01-01T00:00:01Z',
  locked: false,
  config_drive: '',
  'OS-EXT-AZ:availability_zone': 'nova',
  'OS-EXT-SRV-ATTR:host': 'cmp1',
  'OS-EXT-SRV-ATTR:hypervisor_hostname': 'cmp1.example',
  'OS-EXT-SRV-ATTR:instance_name': 'instance-00000001',
  'OS-EXT-STS:vm_state': 'active',
  'OS-EXT-STS:task_state': null,
  'OS-EXT-STS:power_state': 1,
  'OS-SRV-USG:launched_at': '2026-01-01T00:00:02.000000',
  'os-extended-volumes:volumes_attached': [{ id: 'vol', delete_on_termination: false }],
  'a field of the future': { x: 1 },
  ...more,
});

/** Every request of this kind is answered so. */
const answers = (route: string, answer: Answer) => cloud.on({ [route]: () => answer });
const gives = (route: string, body: unknown) => answers(route, { body });
const lists = (...servers: Record<string, unknown>[]) => gives(DETAIL, { servers });

/** Pages of rows by limit and marker, as Nova gives them. */
const paged =
  (name: string, rows: () => readonly Record<string, unknown>[], key = 'id', links = `${name}_links`) =>
  (seen: Seen): Answer => {
    const marker = seen.url.searchParams.get('marker');
    const limit = Number(seen.url.searchParams.get('limit'));
    const all = rows();
    const from = marker === null ? 0 : all.findIndex((row) => row[key] === marker) + 1;
    if (marker !== null && from === 0) {
      return { status: 400, body: { badRequest: { code: 400, message: `marker [${marker}] not found` } } };
    }
    const page = all.slice(from, from + limit);
    const more = page.length === limit ? { [links]: [{ rel: 'next', href: 'http://elsewhere/' }] } : {};
    return { body: { [name]: page, ...more } };
  };

describe('microversions', () => {
  it('are discovered once, and each call uses the highest that both know', async () => {
    cloud.on({ 'GET /v2.1/': NOVA_VERSION('2.90') });
    gives('GET /v2.1/os-aggregates', { aggregates: [] });
    gives(HYPERVISORS, { hypervisors: [] });
    lists();
    await nova.listAggregates();
    await nova.listServers();
    await nova.listHypervisors();
    expect(cloud.of('GET /v2.1/')).toHaveLength(1);
    expect(cloud.of(DETAIL)[0]?.headers).toMatchObject({
      'openstack-api-version': 'compute 2.90',
      'x-openstack-nova-api-version': '2.90',
    });
    expect(cloud.of(HYPERVISORS)[0]?.headers).toMatchObject({ 'openstack-api-version': 'compute 2.87' });
  });

  it('that the cloud lacks are an error that names the call and both ranges', async () => {
    cloud.on({ 'GET /v2.1/': NOVA_VERSION('2.53') });
    const error = await failure(nova.listMigrations());
    expect(error).toBeInstanceOf(MicroversionUnsupported);
    expect(error).toHaveProperty(
      'message',
      'nova: listMigrations needs microversion 2.59 to 2.96, the cloud offers 2.1 to 2.53',
    );
  });

  it('are found behind an endpoint with a project id, and behind one without a version', async () => {
    const offered = { id: 'v2.1', status: 'CURRENT', version: '2.60', min_version: '2.1' };
    const old = { id: 'v2.0', status: 'SUPPORTED', version: '', min_version: '' };
    gives('GET /compute/v2.1/', { versions: [old, offered] });
    for (const path of ['/compute/v2.1/0123456789abcdef', '/compute']) {
      const session = cloud.session({ auth: { endpointOverrides: { compute: `${cloud.url}${path}` } } });
      expect(await createNova(session).versions()).toEqual({ min: '2.1', max: '2.60' });
    }
  });

  it('that are not Nova own are an error', async () => {
    gives('GET /v2.1/', { versions: [{ id: 'v3', status: 'stable' }] });
    expect(await failure(nova.versions())).toBeInstanceOf(BadAnswer);
    answers('GET /v2.1/', { status: 404, body: 'page not found' });
    expect(await failure(nova.versions())).toHaveProperty('message', expect.stringContaining('this is not nova'));
  });

  it('are asked for again after an hour, since a cloud may be upgraded', async () => {
    let at = 0;
    const patient = createNova(cloud.session({ clock: { ...sleepless(), monotonic: () => at } }));
    await patient.versions();
    at = 3_600_000;
    cloud.on({ 'GET /v2.1/': NOVA_VERSION('2.100') });
    expect(await patient.versions()).toMatchObject({ max: '2.100' });
  });
});

describe('listServers', () => {
  it('reads a server into plain data', async () => {
    const mac = { 'OS-EXT-IPS-MAC:mac_addr': 'fa:16:3e:00:00:01' };
    const addresses = { net: ['10.0.0.5', '192.0.2.5'].map((addr) => ({ addr, version: 4, ...mac })) };
    lists({ ...wireServer('a'), addresses });
    expect(await nova.listServers()).toEqual([
      {
        id: 'a',
        name: 'vm a',
        internalName: 'instance-00000001',
        status: 'ACTIVE',
        cellDown: false,
        vmState: 'active',
        taskState: null,
        powerState: 1,
        host: 'cmp1',
        hypervisorHostname: 'cmp1.example',
        projectId: 'p1',
        userId: 'u1',
        flavor: {
          name: 'small',
          vcpus: 2,
          ramMb: 4096,
          rootGb: 10,
          ephemeralGb: 5,
          swapMb: 512,
          extraSpecs: { 'hw:cpu_policy': 'dedicated' },
        },
        imageProperties: undefined,
        bootFromVolume: false,
        volumeIds: ['vol'],
        addresses: ['10.0.0.5', '192.0.2.5'],
        macs: ['fa:16:3e:00:00:01'],
        metadata: { cpu: '2' },
        tags: ['gold'],
        locked: false,
        lockedReason: null,
        availabilityZone: 'nova',
        pinnedAvailabilityZone: undefined,
        groupIds: undefined,
        createdAt: '2026-01-01T00:00:00.000Z',
        updatedAt: '2026-01-01T00:00:01.000Z',
        fault: null,
      },
    ]);
  });

  it('does without the pinned zones where Nova fails over a server that has no request spec', async () => {
    const versionOf = (seen: Seen): string => String(seen.headers['openstack-api-version']).replace('compute ', '');
    cloud.on({
      [DETAIL]: (seen) =>
        versionOf(seen) === '2.96'
          ? { status: 500, body: { computeFault: { code: 500, message: "Unexpected API Error. <class 'KeyError'>" } } }
          : { body: { servers: [wireServer('a', { locked_reason: 'mine' })] } },
    });
    const [a] = await nova.listServers();
    expect(a).toMatchObject({ id: 'a', pinnedAvailabilityZone: undefined });
    expect(cloud.of(DETAIL).map(versionOf).at(-1)).toBe('2.95');
  });

  it('says so where Nova fails without them, too', async () => {
    answers(DETAIL, { status: 500, body: 'boom' });
    expect(await failure(nova.listServers())).toMatchObject({ status: 500 });
  });

  it('reads what newer versions add, and keeps "not pinned" apart from "not known"', async () => {
    const newer = {
      image: '',
      locked: true,
      locked_reason: 'mine',
      status: 'ERROR',
      fault: { code: 500, message: 'boom', created: '2026-01-01T00:00:03Z' },
    };
    const image = { id: 'i', properties: { hw_cpu_policy: 'dedicated' } };
    lists(
      wireServer('a', { ...newer, pinned_availability_zone: 'az1' }),
      wireServer('b', { pinned_availability_zone: null, image }),
    );
    const [a, b] = await nova.listServers();
    expect(a).toMatchObject({
      bootFromVolume: true,
      locked: true,
      lockedReason: 'mine',
      pinnedAvailabilityZone: 'az1',
      fault: { code: 500, message: 'boom', createdAt: '2026-01-01T00:00:03.000Z' },
    });
    expect(b).toMatchObject({ pinnedAvailabilityZone: null, imageProperties: { hw_cpu_policy: 'dedicated' } });
  });

  it('reads servers on no host, with a lost flavor, and in a cell that is down', async () => {
    lists(wireServer('a', { 'OS-EXT-SRV-ATTR:host': null, flavor: {} }), {
      ...{ id: 'b', status: 'UNKNOWN', tenant_id: 'p2', created: '2026-01-01T00:00:00Z', links: [] },
    });
    const [a, b] = await nova.listServers();
    expect(a).toMatchObject({ host: null, flavor: null, cellDown: false });
    expect(b).toMatchObject({ id: 'b', cellDown: true, status: 'UNKNOWN', projectId: 'p2', host: null, vmState: null });
  });

  it.each([
    ['OS-EXT-SRV-ATTR:host', 'servers[1].OS-EXT-SRV-ATTR:host', 'os-extended-server-attributes'],
    ['locked', 'servers[1].locked', 'boolean'],
    ['OS-EXT-STS:task_state', 'servers[1].OS-EXT-STS:task_state', ''],
    ['name', 'servers[1].name', 'string'],
    ['tags', 'servers[1].tags', 'array'],
  ])('names URL and field when %s is missing', async (name, field, text) => {
    const broken = wireServer('b');
    delete broken[name];
    lists(wireServer('a'), broken);
    const error = await failure(nova.listServers());
    expect(error).toBeInstanceOf(BadAnswer);
    expect(error).toMatchObject({ field, url: expect.stringContaining('/v2.1/servers/detail') });
    expect(error).toHaveProperty('message', expect.stringContaining(text));
  });

  it('says which right is missing when policy hides the extra specs', async () => {
    const flavor = { original_name: 'm', vcpus: 1, ram: 1, disk: 1, ephemeral: 0, swap: '' };
    lists(wireServer('a', { flavor }));
    expect(await failure(nova.listServers())).toMatchObject({
      field: 'servers[0].flavor.extra_specs',
      message: expect.stringContaining('show:flavor-extra-specs'),
    });
  });

  it('asks for all projects, page by page, and passes the filters on', async () => {
    const rows = ['a', 'b', 'c', 'd', 'e'].map((id) => wireServer(id));
    cloud.on({ [DETAIL]: paged('servers', () => rows) });
    const servers = await nova.listServers({ host: 'cmp1', changesSince: '2026-01-01T00:00:00Z' });
    expect(servers.map((server) => server.id)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(cloud.of(DETAIL).map((seen) => seen.url.searchParams.get('marker'))).toEqual([null, 'b', 'd']);
    expect(Object.fromEntries(cloud.of(DETAIL)[0]?.url.searchParams ?? [])).toEqual({
      all_tenants: 'true',
      host: 'cmp1',
      'changes-since': '2026-01-01T00:00:00Z',
      limit: '2',
    });
  });

  it('follows the pages of a Nova whose own limit is smaller, and asks once more after a last full page', async () => {
    const rows = ['a', 'b', 'c', 'd'].map((id) => wireServer(id));
    cloud.on({ [DETAIL]: paged('servers', () => rows) });
    const wide = createNova(cloud.session(), { pageSize: 2 });
    expect(await wide.listServers()).toHaveLength(4);
    expect(cloud.of(DETAIL)).toHaveLength(3);
  });

  it('ends with an error that names list and marker when a marker comes again', async () => {
    // A proxy that drops the query: each page is the first.
    cloud.on({ 'GET /v2.1/': NOVA_VERSION('2.96') });
    const servers_links = [{ rel: 'next', href: 'http://elsewhere/' }];
    gives(DETAIL, { servers: [wireServer('a'), wireServer('b')], servers_links });
    const failed = nova.listServers();
    await expect(failed).rejects.toBeInstanceOf(BadAnswer);
    await expect(failed).rejects.toThrow(/GET \/servers\/detail: .*the marker b again/);
    expect(cloud.of(DETAIL)).toHaveLength(2);
  });

  it('restarts when the server at its marker was deleted meanwhile', async () => {
    let rows = ['a', 'b', 'c'].map((id) => wireServer(id));
    const page = paged('servers', () => rows);
    cloud.on({
      [DETAIL]: (seen, times) => {
        if (times === 2) rows = rows.filter((row) => row.id !== 'b');
        return page(seen);
      },
    });
    expect((await nova.listServers()).map((server) => server.id)).toEqual(['a', 'c']);
  });

  it('gives up when that happens again and again', async () => {
    const page = paged('servers', () => ['a', 'b', 'c'].map((id) => wireServer(id)));
    cloud.on({
      [DETAIL]: (seen) =>
        seen.url.searchParams.has('marker')
          ? { status: 400, body: { badRequest: { message: 'marker [b] not found' } } }
          : page(seen),
    });
    expect(await failure(nova.listServers())).toBeInstanceOf(BadRequest);
    expect(cloud.of(DETAIL)).toHaveLength(8);
  });
});

describe('getServer', () => {
  it('that does not exist is NotFound', async () => {
    const itemNotFound = { code: 404, message: 'Instance s1 could not be found.' };
    answers('GET /v2.1/servers/s1', { status: 404, body: { itemNotFound } });
    expect(await failure(nova.getServer('s1'))).toBeInstanceOf(NotFound);
  });
});

describe('getServerTopology', () => {
  const path = 'GET /v2.1/servers/s1/topology';
  const node = (more: object) => ({ memory_mb: 1024, siblings: [], vcpu_set: [0, 1, 2], ...more });
  const topology = async (body: object) => {
    gives(path, body);
    return nova.getServerTopology('s1');
  };

  it('counts the CPUs of each cell, and those that are pinned', async () => {
    const nodes = [node({ host_node: 1, cpu_pinning: { 0: 4, 1: 5 } }), node({ host_node: 0, cpu_pinning: {} })];
    expect(await topology({ nodes, pagesize_kb: 2048 })).toEqual({
      nodes: [
        { hostNode: 1, vcpus: 3, pinned: 2, memoryMb: 1024 },
        { hostNode: 0, vcpus: 3, pinned: 0, memoryMb: 1024 },
      ],
      pageSizeKb: 2048,
    });
  });

  it('does not know what Nova hides, and shows no cells where there are none', async () => {
    expect((await topology({ nodes: [node({})], pagesize_kb: null })).nodes).toEqual([
      { hostNode: null, vcpus: 3, pinned: null, memoryMb: 1024 },
    ]);
    expect(await topology({ nodes: [], pagesize_kb: null })).toEqual({ nodes: [], pageSizeKb: null });
  });
});

describe('listServices', () => {
  it('asks for nova-compute, and reads those of a cell that is down as unknown', async () => {
    const same = { id: 'u', host: 'cmp1', binary: 'nova-compute', zone: 'nova', status: 'disabled', state: 'up' };
    const wire = { forced_down: true, disabled_reason: 'kernel', updated_at: '2026-01-01T00:00:00.000000' };
    const down = { host: 'cmp2', binary: 'nova-compute', status: 'UNKNOWN' };
    gives('GET /v2.1/os-services', { services: [{ ...same, ...wire }, down] });
    const [one, two] = await nova.listServices();
    const read = { cellDown: false, forcedDown: true, disabledReason: 'kernel', updatedAt: '2026-01-01T00:00:00.000Z' };
    expect(one).toEqual({ ...same, ...read });
    expect(two).toMatchObject({ host: 'cmp2', status: 'unknown', state: 'unknown', id: null, cellDown: true });
    expect(cloud.of('GET /v2.1/os-services')[0]?.url.search).toBe('?binary=nova-compute');
  });
});

describe('listHypervisors', () => {
  const wire = {
    id: 'h1',
    hypervisor_hostname: 'cmp1.example',
    hypervisor_type: 'QEMU',
    hypervisor_version: 8002000,
    host_ip: '10.0.0.1',
    state: 'up',
    status: 'enabled',
    service: { id: 's', host: 'cmp1', disabled_reason: null },
  };

  it('reads them, without the figures that Nova no longer shows from 2.88 on', async () => {
    const old = { ...wire, id: 'h2', vcpus: 64, memory_mb: 1000, cpu_info: { model: 'x' } };
    cloud.on({ [HYPERVISORS]: paged('hypervisors', () => [wire, old]) });
    const [one, two] = await nova.listHypervisors();
    expect(one).toEqual({
      id: 'h1',
      hypervisorHostname: 'cmp1.example',
      hypervisorType: 'QEMU',
      hypervisorVersion: 8002000,
      state: 'up',
      status: 'enabled',
      service: { id: 's', host: 'cmp1', disabledReason: null },
    });
    expect(two).toEqual({ ...one, id: 'h2' });
  });
});

describe('listServerGroups', () => {
  const GROUPS = 'GET /v2.1/os-server-groups';
  const group = (id: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
    id,
    name: id,
    policy: 'affinity',
    rules: {},
    members: ['a'],
    project_id: 'p',
    ...more,
  });
  const byOffset =
    (rows: () => readonly Record<string, unknown>[]) =>
    (seen: Seen): Answer => {
      const offset = Number(seen.url.searchParams.get('offset'));
      return { body: { server_groups: rows().slice(offset, offset + Number(seen.url.searchParams.get('limit'))) } };
    };

  it('reads policy and rules, and the older list of policies', async () => {
    cloud.on({
      [GROUPS]: byOffset(() => [
        group('g1', { policy: 'anti-affinity', rules: { max_server_per_host: '3' } }),
        { id: 'g2', name: 'g2', policies: ['soft-affinity'], metadata: {}, members: [] },
        group('g3', { policy: 'anti-affinity' }),
        group('g4', { policy: 'soft-anti-affinity', rules: { max_server_per_host: '3' } }),
      ]),
    });
    expect(await nova.listServerGroups()).toEqual([
      { id: 'g1', name: 'g1', policy: 'anti-affinity', maxServersPerHost: 3, memberIds: ['a'], projectId: 'p' },
      { id: 'g2', name: 'g2', policy: 'soft-affinity', maxServersPerHost: 1, memberIds: [], projectId: null },
      { id: 'g3', name: 'g3', policy: 'anti-affinity', maxServersPerHost: 1, memberIds: ['a'], projectId: 'p' },
      { id: 'g4', name: 'g4', policy: 'soft-anti-affinity', maxServersPerHost: 1, memberIds: ['a'], projectId: 'p' },
    ]);
  });

  it.each([0, 1, 2, 3, 4, 5])('reads all of %i groups of all projects', async (count) => {
    const rows = Array.from({ length: count }, (_, i) => group(`g${i}`));
    cloud.on({ [GROUPS]: byOffset(() => rows) });
    expect((await nova.listServerGroups()).map((one) => one.id)).toEqual(rows.map((row) => row.id));
    expect(cloud.of(GROUPS)[0]?.url.searchParams.get('all_projects')).toBe('true');
  });

  it('misses no group when an earlier one is deleted between two pages', async () => {
    let rows = ['g1', 'g2', 'g3', 'g4'].map((id) => group(id));
    const page = byOffset(() => rows);
    cloud.on({
      [GROUPS]: (seen, times) => {
        if (times === 2) rows = rows.slice(1);
        return page(seen);
      },
    });
    expect((await nova.listServerGroups()).map((one) => one.id)).toEqual(['g2', 'g3', 'g4']);
  });

  it('ends with an error when it leads back to a group that was read', async () => {
    const rows = [
      [group('g1'), group('h1')],
      [group('h1'), group('g2'), group('h1')],
    ];
    cloud.on({ [GROUPS]: (_, times) => ({ body: { server_groups: rows[times - 1] ?? [] } }) });
    await expect(nova.listServerGroups()).rejects.toThrow(/GET \/os-server-groups: .*the marker h1 again/);
  });

  it('gives up when the list never holds still', async () => {
    cloud.on({ [GROUPS]: (_, times) => ({ body: { server_groups: [group(`g${times}`), group(`h${times}`)] } }) });
    expect(await failure(nova.listServerGroups())).toBeInstanceOf(BadAnswer);
  });
});

describe('migrations', () => {
  const wire = (id: number, status: string): Record<string, unknown> => ({
    id,
    uuid: `m${id}`,
    instance_uuid: 's1',
    migration_type: 'live-migration',
    status,
    source_compute: 'cmp1',
    source_node: 'cmp1.example',
    dest_compute: null,
    dest_node: null,
    dest_host: null,
    created_at: '2026-01-01T00:00:00.000000',
    updated_at: null,
  });
  const LIST = 'GET /v2.1/os-migrations';

  it('are listed newest first, by marker, up to the limit asked for', async () => {
    const rows = [5, 4, 3, 2, 1].map((id) => wire(id, 'completed'));
    cloud.on({ [LIST]: paged('migrations', () => rows, 'uuid') });
    expect((await nova.listMigrations()).map((one) => one.id)).toEqual([5, 4, 3, 2, 1]);
    expect(await nova.listMigrations({ serverId: 's1', type: 'live-migration', status: 'running', limit: 1 })).toEqual([
      {
        id: 5,
        uuid: 'm5',
        serverId: 's1',
        type: 'live-migration',
        status: 'completed',
        sourceCompute: 'cmp1',
        destCompute: null,
        oldTypeId: null,
        newTypeId: null,
        createdAt: '2026-01-01T00:00:00.000Z',
        updatedAt: null,
      },
    ]);
    expect(Object.fromEntries(cloud.of(LIST).at(-1)?.url.searchParams ?? [])).toEqual({
      instance_uuid: 's1',
      migration_type: 'live-migration',
      status: 'running',
      limit: '1',
    });
  });

  it('that are not over are found although they move on between the calls, each once', async () => {
    const order = ['accepted', 'queued', 'preparing', 'running', 'completed'];
    let step = 0;
    cloud.on({
      [LIST]: (seen) => {
        const wanted = seen.url.searchParams.get('status');
        const now = order[Math.min(step, 4)] ?? '';
        if (wanted !== 'accepted') step += 1;
        return { body: { migrations: wanted === now ? [wire(7, now)] : [] } };
      },
    });
    const found = await nova.listUnfinishedMigrations();
    expect(found.map((one) => one.id)).toEqual([7]);
  });

  it('of two cells are two, whatever their ids', async () => {
    const both = [wire(7, 'running'), { ...wire(7, 'running'), uuid: 'of the other cell' }];
    cloud.on({
      [LIST]: ({ url }) => ({ body: { migrations: url.searchParams.get('status') === 'running' ? both : [] } }),
    });
    expect((await nova.listUnfinishedMigrations()).map((one) => one.id)).toEqual([7, 7]);
  });

  it('in progress come with byte counts, null where the hypervisor gave none yet', async () => {
    const memory = { memory_total_bytes: 100, memory_processed_bytes: 40, memory_remaining_bytes: 60 };
    const migration = { ...wire(9, 'running'), server_uuid: 's1', ...memory, disk_total_bytes: null };
    gives('GET /v2.1/servers/s1/migrations/9', { migration });
    expect(await nova.getServerMigration('s1', 9)).toMatchObject({
      ...{ id: 9, status: 'running', memoryTotalBytes: 100, memoryProcessedBytes: 40, memoryRemainingBytes: 60 },
      ...{ diskTotalBytes: null, diskRemainingBytes: null },
    });
  });
});

describe('instance actions', () => {
  it('are read with their events', async () => {
    const start_time = '2026-01-01T00:00:00.000000';
    const event = { event: 'conductor_live_migrate_instance', start_time, finish_time: null, result: null };
    const events = [{ ...event, traceback: null, host: 'c', hostId: 'x', details: null }];
    const head = { action: 'live-migration', instance_uuid: 's1', request_id: 'req-1', start_time, updated_at: null };
    gives('GET /v2.1/servers/s1/os-instance-actions/req-1', { instanceAction: { ...head, message: 'Error', events } });
    expect(await nova.getInstanceAction('s1', 'req-1')).toMatchObject({
      message: 'Error',
      events: [{ event: 'conductor_live_migrate_instance', finishedAt: null, host: 'c' }],
    });
  });
});

const go = { checkSend: () => null };

describe('liveMigrate', () => {
  const migrate = (how: Parameters<Nova['liveMigrate']>[1] = go) =>
    nova.liveMigrate({ serverId: 's1', host: 'cmp2' }, how);
  const accepted: Answer = { status: 202, headers: { 'x-openstack-request-id': 'req-5' } };

  it('that is refused when its first byte is about to be written is not sent, and says so', async () => {
    answers(ACTION, accepted);
    const refused = migrate({ checkSend: () => 'too late' });
    expect(await failure(refused)).toMatchObject({ code: 'KRONOS_HTTP_NOT_SENT', reason: 'too late' });
    expect(cloud.of(ACTION)).toHaveLength(0);
  });

  it('is asked about again before it is sent with a new token', async () => {
    answers(ACTION, { status: 401 });
    let asked = 0;
    const checkSend = () => (++asked === 1 ? null : 'too late');
    expect(await failure(migrate({ checkSend }))).toBeInstanceOf(NotSent);
    expect(cloud.of(ACTION)).toHaveLength(1);
  });

  it('names the host, leaves the storage to Nova, and never says force unless asked', async () => {
    answers(ACTION, accepted);
    expect(await migrate()).toEqual({ outcome: 'accepted', requestId: 'req-5' });
    expect(JSON.parse(cloud.of(ACTION)[0]?.body ?? '')).toEqual({
      'os-migrateLive': { host: 'cmp2', block_migration: 'auto' },
    });
    expect(cloud.of(ACTION)[0]?.headers).toMatchObject({ 'openstack-api-version': 'compute 2.96' });
  });

  it('forces at a version that still knows it', async () => {
    answers(ACTION, accepted);
    await nova.liveMigrate({ serverId: 's1', host: 'cmp2', force: true }, go);
    expect(JSON.parse(cloud.of(ACTION)[0]?.body ?? '')).toEqual({
      'os-migrateLive': { host: 'cmp2', block_migration: 'auto', force: true },
    });
    expect(cloud.of(ACTION)[0]?.headers).toMatchObject({ 'openstack-api-version': 'compute 2.67' });
  });

  it.each([
    [400, BadRequest],
    [404, NotFound],
    [409, Conflict],
    [429, HttpError],
  ])('that Nova refuses with %i is an error and was sent once', async (status, kind) => {
    answers(ACTION, { status, body: { fault: { message: 'no' } } });
    expect(await failure(migrate())).toBeInstanceOf(kind);
    expect(cloud.of(ACTION)).toHaveLength(1);
  });

  it.each([200, 302, 500, 502, 503, 504])('that is answered with %i is unknown and was sent once', async (status) => {
    answers(ACTION, { status, body: 'gateway' });
    const result = await migrate();
    expect(result).toMatchObject({ outcome: 'unknown', error: { status } });
    expect(cloud.of(ACTION)).toHaveLength(1);
  });

  it('whose connection breaks after it was written is unknown and was sent once', async () => {
    cloud.on({ [ACTION]: () => (response) => void response.socket?.destroy() });
    const result = await migrate();
    expect(result).toMatchObject({ outcome: 'unknown', error: expect.any(Unreachable) });
    expect(cloud.of(ACTION)).toHaveLength(1);
  });

  it('that is not answered in time is unknown and was sent once', async () => {
    const hasty = createNova(cloud.session({ limits: { headersMs: 100 } }));
    cloud.on({ [ACTION]: () => () => {} });
    expect(await hasty.liveMigrate({ serverId: 's1', host: 'cmp2' }, go)).toMatchObject({
      outcome: 'unknown',
      error: expect.any(Timeout),
    });
    expect(cloud.of(ACTION)).toHaveLength(1);
  });

  it('that the caller aborts on its way is unknown, before that it is not sent', async () => {
    const controller = new AbortController();
    const reason = new Error('going down');
    cloud.on({
      [ACTION]: () => {
        controller.abort(reason);
        return () => {};
      },
    });
    const { signal } = controller;
    expect(await migrate({ signal, ...go })).toEqual({ outcome: 'unknown', error: reason });
    expect(await failure(migrate({ signal, ...go }))).toBe(reason);
    expect(cloud.of(ACTION)).toHaveLength(1);
  });

  it('that was certainly not sent is an error', async () => {
    await nova.versions();
    await cloud.session().token();
    const gone = await playCloud();
    const session = cloud.session();
    const stranded = createNova({
      ...session,
      call: (call) =>
        session.call({ ...call, url: call.method === 'POST' ? call.url.replace(cloud.url, gone.url) : call.url }),
    });
    await gone.close();
    expect(await failure(stranded.liveMigrate({ serverId: 's1', host: 'cmp2' }, go))).toMatchObject({
      maybeSent: false,
    });
  });

  it('that a stale token stopped is sent again with a new one: a 401 means that nothing was done', async () => {
    cloud.on({ [ACTION]: (_, times) => (times === 1 ? { status: 401 } : accepted) });
    expect(await migrate()).toMatchObject({ outcome: 'accepted' });
    expect(cloud.of(ACTION).map((seen) => seen.headers['x-auth-token'])).toEqual(['token-1', 'token-2']);
  });
});

describe('abortMigration', () => {
  const ABORT = 'DELETE /v2.1/servers/s1/migrations/9';

  it('is accepted, refused, or unknown, and sent once', async () => {
    cloud.on({
      [ABORT]: (_, times) =>
        [
          { status: 202 },
          { status: 400, body: { badRequest: { message: 'Migration 9 state is completed.' } } },
          { status: 504 },
        ][times - 1] ?? {},
    });
    const abort = () => nova.abortMigration({ serverId: 's1', migrationId: 9 }, go);
    expect(await abort()).toEqual({ outcome: 'accepted', requestId: undefined });
    expect(await failure(abort())).toBeInstanceOf(BadRequest);
    expect(await abort()).toMatchObject({ outcome: 'unknown' });
    expect(cloud.of(ABORT)).toHaveLength(3);
  });
});
