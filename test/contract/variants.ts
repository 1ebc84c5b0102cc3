import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type CloudUnderTest, foreignHostOf } from './cloud.ts';
import { expectRefused, NO_HOST, NO_ROOM } from './moves.ts';
import { messageOf, refused } from './reads.ts';
import { ENDED, NEWEST, Wire } from './wire.ts';

interface Given {
  readonly wire: Wire;
  readonly a: string;
  readonly b: string;
}

/** Live migration: the rules of `moves.ts` with other servers, groups and hosts, with force, and with older microversions. */
export function liveMigrationVariants(cloud: () => CloudUnderTest): void {
  describe('Nova, variants of a live migration', () => {
    let wire: Wire;
    let a: string;
    let b: string;
    beforeEach(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
      [a, b] = cloud().hosts;
    });

    for (const part of [inOlderVersions, withUserStates, whileShelved, withHooks, withRest, ofRefusals])
      part(() => ({ wire, a, b }), cloud);
  });
}

/** Older microversions, force, and hosts that are not named or of another cell. */
function inOlderVersions(given: () => Given, cloud: () => CloudUnderTest): void {
  test('before 2.34 waits for the pre-checks, and their refusal comes back as 400', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await cloud().refuse(b, true);
    refused(await wire.liveMigrate(id, b, '2.30'), 400, NO_HOST);
    const server = await wire.server(id);
    expect([server.status, server['OS-EXT-STS:task_state']]).toEqual(['ACTIVE', null]);
    await cloud().refuse(b, false);
    expect((await wire.liveMigrate(id, b, '2.30')).status).toBe(202);
    expect((await wire.follow(id)).row.status).toBe('completed');
  });

  test('with force at 2.30 by-passes the scheduler: a group can be broken', async () => {
    const { wire, a, b } = given();
    const group = await wire.group('affinity');
    const id = await wire.bootOne(a, { group });
    const body = { 'os-migrateLive': { host: b, block_migration: 'auto', force: true } };
    const answer = await wire.act(id, body, '2.30');
    expect(answer.status, answer.text).toBe(202);
    const { row } = await wire.follow(id);
    expect([row.status, row.dest_compute]).toEqual(['completed', b]);
    const action = await wire.action(id, answer.headers.get('x-openstack-request-id') ?? '');
    expect(action.events.map((each) => each.event)).toContain('conductor_migrate_server');
  });

  test('force does not by-pass the compute: it refuses, and Nova puts the server into ERROR', async () => {
    const { wire, a, b } = given();
    const group = await wire.group('affinity');
    const [first = '', second = ''] = await wire.boot(2, a, { group });
    const force = (id: string, version: string) =>
      wire.nova('POST', `/servers/${id}/action`, version, {
        'os-migrateLive': { host: b, block_migration: 'auto', force: true },
      });
    const answer = await force(first, '2.67');
    expect(answer.status, answer.text).toBe(202);
    await wire.watch(first, (look) => look.status === 'ERROR');
    const { row } = await wire.follow(first);
    // With force the row has its destination from the beginning.
    expect([row.status, row.dest_compute]).toEqual(['error', b]);
    const server = await wire.server(first);
    expect([server['OS-EXT-SRV-ATTR:host'], server['OS-EXT-STS:task_state']]).toEqual([a, null]);
    expect(server).toMatchObject({ fault: { code: 500, message: 'Affinity instance group policy was violated' } });
    const action = await wire.action(first, answer.headers.get('x-openstack-request-id') ?? '');
    const event = action.events.find((each) => each.event === 'conductor_live_migrate_instance');
    expect(event?.details).toMatch(/^Migration error: Affinity instance group policy was violated/);
    const waited = await force(second, '2.30');
    expect(waited.status).toBe(500);
    expect(messageOf(waited.body, 'computeFault')).toMatch(/^Unexpected API Error\. .*MigrationError_Remote'>$/s);
  });

  test('is refused at once to a host of another cell', async (context) => {
    const { wire, a } = given();
    const foreign = foreignHostOf(cloud(), context);
    const id = await wire.bootOne(a);
    refused(await wire.liveMigrate(id, foreign), 400, `Compute host ${foreign} could not be found.`);
    expect(await wire.rows(id)).toEqual([]);
  });

  test('leaves the choice to the scheduler when no host is named', async () => {
    const { wire, a } = given();
    const id = await wire.bootOne(a);
    await wire.start(id, null);
    const { row } = await wire.follow(id);
    expect(row.status).toBe('completed');
    expect(row.dest_compute).not.toBe(a);
    expect((await wire.server(id))['OS-EXT-SRV-ATTR:host']).toBe(row.dest_compute);
  });
}

/** Locked servers, disabled sources, loads, failures and groups. */
function withRest(given: () => Given, cloud: () => CloudUnderTest): void {
  test('is not stopped by a lock when an admin asks', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    expect((await wire.act(id, { lock: null })).status).toBe(202);
    await wire.start(id, b);
    expect((await wire.follow(id)).row.status).toBe('completed');
  });

  test('can leave a disabled host', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await wire.nova('PUT', `/os-services/${await wire.serviceId(a)}`, NEWEST, { status: 'disabled' });
    await wire.start(id, b);
    expect((await wire.follow(id)).row.status).toBe('completed');
  });

  test('takes its load along', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a, { metadata: { cpu: '2', mem: '1000' } });
    const where = async (): Promise<string[]> => {
      const answer = await wire.prometheus('/api/v1/query', { query: `vm_cpu_cores{instance_uuid="${id}"}` });
      return z
        .object({ data: z.object({ result: z.array(z.object({ metric: z.record(z.string(), z.string()) })) }) })
        .parse(answer.body)
        .data.result.map((each) => each.metric.host ?? '');
    };
    await wire.until('its load on the source', async () => (await where()).join() === a);
    await wire.start(id, b);
    await wire.follow(id);
    await wire.until('its load on the destination', async () => (await where()).join() === b);
  });

  test('may end error instead, the server still free and active on its source', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await cloud().fault(id, 'error');
    await wire.start(id, b);
    const { row } = await wire.follow(id);
    expect([row.status, row.dest_compute]).toEqual(['error', b]);
    const server = await wire.server(id);
    expect([server.status, server['OS-EXT-SRV-ATTR:host']]).toEqual(['ACTIVE', a]);
  });

  test('anti-affinity with max_server_per_host 2 lets the second member in and not the third', async () => {
    const { wire, a, b } = given();
    const group = await wire.group('anti-affinity', 2);
    await wire.bootOne(b, { group });
    const [second = '', third = ''] = await wire.boot(2, a, { group });
    await wire.start(second, b);
    expect((await wire.follow(second)).row.status).toBe('completed');
    await wire.start(third, b);
    expect((await wire.follow(third)).row).toMatchObject({ status: 'error', dest_compute: null });
  });
}

/** Moves that the scheduler refuses. */
function ofRefusals(given: () => Given, cloud: () => CloudUnderTest): void {
  const refusals: [string, string, (of: Given) => Promise<string>][] = [
    [
      'a lone member of an affinity group',
      NO_HOST,
      async ({ wire, a }) => wire.bootOne(a, { group: await wire.group('affinity') }),
    ],
    [
      'a member of an affinity group that sits wholly on one host',
      NO_HOST,
      async ({ wire, a }) => (await wire.boot(2, a, { group: await wire.group('affinity') }))[0] ?? '',
    ],
    [
      'onto a host that is forced down',
      NO_HOST,
      async ({ wire, a, b }) => {
        const id = await wire.bootOne(a);
        await wire.nova('PUT', `/os-services/${await wire.serviceId(b)}`, NEWEST, { forced_down: true });
        return id;
      },
    ],
    [
      'onto a host that is full',
      NO_ROOM,
      async ({ wire, a, b }) => {
        const id = await wire.bootOne(a);
        await cloud().fill(b, true);
        return id;
      },
    ],
  ];
  test.each(refusals)(
    '%s: 202, then error without destination, NoValidHost in the event',
    async (_, details, prepare) => {
      const { wire, a, b } = given();
      await expectRefused(wire, { id: await prepare(given()), from: a, to: b, details });
    },
  );
}

const POWER_STATE = 'OS-EXT-STS:power_state';

/** Asks for an action of a user. */
async function act(wire: Wire, id: string, action: object): Promise<void> {
  const answer = await wire.act(id, action);
  expect([200, 202], answer.text).toContain(answer.status);
}

async function refusesReboot(wire: Wire, id: string, vmState: string): Promise<void> {
  refused(
    await wire.act(id, { reboot: { type: 'HARD' } }),
    409,
    `Cannot 'reboot' instance ${id} while it is in vm_state ${vmState}`,
  );
}

/** Servers in states that users bring them to. */
function withUserStates(given: () => Given): void {
  /** Asks for an action, and waits until the server is in the state that it leads to. */
  async function bring(id: string, action: object, status: string): Promise<void> {
    const { wire } = given();
    await act(wire, id, action);
    await wire.settled(id, status);
  }

  test('is refused 409 for a rescued server, which stays on its host and moves once it is whole', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await bring(id, { rescue: {} }, 'RESCUE');
    refused(
      await wire.liveMigrate(id, b),
      409,
      `Cannot 'os-migrateLive' instance ${id} while it is in vm_state rescued`,
    );
    await refusesReboot(wire, id, 'rescued');
    const server = await wire.server(id);
    expect([server['OS-EXT-STS:vm_state'], server[POWER_STATE], server['OS-EXT-SRV-ATTR:host']]).toEqual([
      'rescued',
      1,
      a,
    ]);
    await bring(id, { unrescue: null }, 'ACTIVE');
    await wire.start(id, b);
    expect((await wire.follow(id)).row.status).toBe('completed');
  });

  test('keeps a paused server paused', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    expect((await wire.act(id, { pause: null })).status).toBe(202);
    await wire.settled(id, 'PAUSED');
    await wire.start(id, b);
    const { row } = await wire.follow(id);
    expect(row.status).toBe('completed');
    const server = await wire.server(id);
    expect([server.status, server['OS-EXT-STS:vm_state'], server['OS-EXT-SRV-ATTR:host']]).toEqual([
      'PAUSED',
      'paused',
      b,
    ]);
  });
}

/** Hypervisors whose hooks refuse a guest. */
function withHooks(given: () => Given): void {
  test('that the hook of the destination refuses ends failed with nothing copied', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await wire.cloud.hook(b, true);
    const requestId = await wire.start(id, b);
    const copied = new Set<unknown>();
    const progress = z.object({ migrations: z.array(z.object({ memory_total_bytes: z.number().nullable() })) });
    const looks = await wire.watchClosely(
      id,
      ({ row, taskState }) => row !== null && ENDED.includes(row.status) && taskState === null,
      async () => {
        const { migrations } = progress.parse(await wire.get(`/servers/${id}/migrations`));
        for (const each of migrations) copied.add(each.memory_total_bytes);
      },
    );
    copied.delete(null);
    expect([...copied]).toEqual([]);
    const row = looks.at(-1)?.row;
    expect([row?.status, row?.dest_compute]).toEqual(['failed', b]);
    for (const look of looks) expect(look.host).toBe(a);
    expect(looks.at(-1)?.status).toBe('ACTIVE');
    expect(Object.keys(await wire.allocations(id))).toEqual([await wire.provider(a)]);
    const action = await wire.action(id, requestId);
    expect(action.events.every((each) => each.result === 'Success')).toBe(true);
  });
}

/** Shelving takes a server from its host in several steps, and unshelving puts it on one. */
function whileShelved(given: () => Given): void {
  test('is refused 409 for a shelved server: what it holds goes before its state, and its host after that', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await act(wire, id, { shelve: null });
    const looks = await wire.watchClosely(
      id,
      ({ status, host }) => status === 'SHELVED_OFFLOADED' && host === '',
      async ({ status }) => {
        if (status === 'SHELVED_OFFLOADED') expect(await wire.allocations(id)).toEqual({});
      },
    );
    for (const { status, taskState, host } of looks)
      if (status === 'SHELVED_OFFLOADED') expect([[a, ''], taskState]).toEqual([expect.arrayContaining([host]), null]);
      else {
        expect(['ACTIVE', 'SHELVED']).toContain(status);
        expect([taskState, host]).toEqual([expect.stringMatching(/^shelving/), a]);
        if (status === 'SHELVED') expect(taskState).toBe('shelving_offloading');
      }
    expect(await wire.server(id)).toMatchObject({
      'OS-EXT-STS:vm_state': 'shelved_offloaded',
      'OS-EXT-SRV-ATTR:hypervisor_hostname': null,
      [POWER_STATE]: 4,
    });
    refused(
      await wire.liveMigrate(id, b),
      409,
      `Cannot 'os-migrateLive' instance ${id} while it is in vm_state shelved_offloaded`,
    );
    await refusesReboot(wire, id, 'shelved_offloaded');
    for (const power of ['os-stop', 'os-start']) {
      refused(await wire.act(id, { [power]: null }), 409, `Instance ${id} is not ready`);
    }
  });

  test('unshelved, a server holds its place from the moment it has a host, and is ACTIVE later', async () => {
    const { wire, a } = given();
    const id = await wire.bootOne(a);
    await act(wire, id, { shelve: null });
    await wire.watch(id, ({ status, host }) => status === 'SHELVED_OFFLOADED' && host === '');
    await act(wire, id, { unshelve: null });
    const looks = await wire.watchClosely(
      id,
      ({ status }) => status === 'ACTIVE',
      async ({ host }) => {
        if (host !== '') expect(Object.keys(await wire.allocations(id))).toEqual([await wire.provider(host)]);
      },
    );
    for (const { status, taskState, host } of looks) {
      if (status === 'ACTIVE') expect([taskState, host]).toEqual([null, expect.stringMatching(/./)]);
      else
        expect([status, ['unshelving', 'spawning']]).toEqual([
          'SHELVED_OFFLOADED',
          expect.arrayContaining([taskState]),
        ]);
      if (taskState === 'unshelving') expect(host).toBe('');
    }
    expect(await wire.server(id)).toMatchObject({ 'OS-EXT-STS:vm_state': 'active', [POWER_STATE]: 1 });
  });
}
