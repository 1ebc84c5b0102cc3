import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { CloudUnderTest } from './cloud.ts';
import { refused } from './reads.ts';
import { actionForms, migrationForms, progressForms } from './shapes.ts';
import { ENDED, type Look, NEWEST, Wire } from './wire.ts';

/** The event's messages when the scheduler's filters left no host, and when Placement had none. */
export const NO_HOST = 'No valid host was found. There are not enough hosts available.';
export const NO_ROOM = 'No valid host was found. ';
/** The statuses of a live migration, in order. A look may miss some of them. */
const ORDER = ['accepted', 'queued', 'preparing', 'running', 'completed'];

/** Requests that Nova refuses at once: the microversion, the body, and what it answers. */
function wrongRequests(b: string): [string, unknown, string][] {
  const auto = { host: b, block_migration: 'auto' };
  const choices =
    "[True, 'True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes', " +
    "False, 'False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no'";
  return [
    [NEWEST, { 'os-migrateLive': { ...auto, host: 'nobody' } }, 'Compute host nobody could not be found.'],
    [
      NEWEST,
      { 'os-migrateLive': { ...auto, force: true } },
      'Invalid input for field/attribute os-migrateLive. Value: ' +
        `{'host': '${b}', 'block_migration': 'auto', 'force': True}. ` +
        "Additional properties are not allowed ('force' was unexpected)",
    ],
    [
      NEWEST,
      { 'os-migrateLive': { host: b } },
      `Invalid input for field/attribute os-migrateLive. Value: {'host': '${b}'}. 'block_migration' is a required property`,
    ],
    [
      NEWEST,
      { 'os-migrateLive': {} },
      "Invalid input for field/attribute os-migrateLive. Value: {}. 'block_migration' is a required property",
    ],
    [
      NEWEST,
      { 'os-migrateLive': { ...auto, block_migration: 'foo' } },
      `Invalid input for field/attribute block_migration. Value: foo. 'foo' is not one of ${choices}, 'auto']`,
    ],
    [
      NEWEST,
      { 'os-migrateLive': { ...auto, host: 5 } },
      "Invalid input for field/attribute host. Value: 5. 5 is not of type 'string', 'null'",
    ],
    [
      NEWEST,
      { 'os-migrateLive': null },
      "Invalid input for field/attribute os-migrateLive. Value: None. None is not of type 'object'",
    ],
    [
      '2.24',
      { 'os-migrateLive': auto },
      `Invalid input for field/attribute block_migration. Value: auto. 'auto' is not one of ${choices}]`,
    ],
    [
      '2.25',
      { 'os-migrateLive': { ...auto, disk_over_commit: false } },
      'Invalid input for field/attribute os-migrateLive. Value: ' +
        `{'host': '${b}', 'block_migration': 'auto', 'disk_over_commit': False}. ` +
        "Additional properties are not allowed ('disk_over_commit' was unexpected)",
    ],
    [
      '2.30',
      { 'os-migrateLive': { host: null, block_migration: 'auto', force: true } },
      "Can't force to a non-provided destination",
    ],
    [NEWEST, { foo: {} }, 'There is no such action: foo'],
    [NEWEST, {}, 'Malformed request body'],
    [NEWEST, 'xx', 'Malformed request body'],
  ];
}

interface Given {
  readonly wire: Wire;
  /** The next hosts for a case. Cases that run side by side have different sources. */
  readonly places: () => [string, string, string];
}

/** Live migration: start, visible states, end, refusals and aborts. */
export function liveMigrationContract(cloud: () => CloudUnderTest): void {
  describe('Nova, live migration', () => {
    let wire: Wire;
    beforeAll(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
    });
    let turn = 0;
    const places = (): [string, string, string] => {
      const [first, second, third, fourth] = cloud().hosts;
      const hosts = [first, second, third, fourth];
      const host = (place: number): string => hosts[(turn + place) % hosts.length] ?? '';
      const taken: [string, string, string] = [host(0), host(1), host(2)];
      turn++;
      return taken;
    };

    const fails = sideBySide('a move that fails', [onItsWay, beforeItsWay]);
    const aborts = sideBySide('an abort', [ofRunning, ofOthers]);
    for (const part of [thatSucceeds, ofRequests, inTurn, fails, inGroups, aborts, ofDeleted])
      part(() => ({ wire, places }), cloud);
  });
}

type Part = (given: () => Given, cloud: () => CloudUnderTest) => void;

/** The cases of all parts run at the same time. */
const sideBySide =
  (name: string, parts: readonly Part[]): Part =>
  (given, cloud) =>
    describe.concurrent(name, () => {
      for (const part of parts) part(given, cloud);
    });

/** A whole move, watched closely. */
function thatSucceeds(given: () => Given): void {
  test('one that succeeds goes through its statuses in order; host and task_state change before it is completed', async () => {
    const { wire, places } = given();
    const [a, b] = places();
    const id = await wire.bootOne(a);
    const [from, to] = [await wire.provider(a), await wire.provider(b)];
    const requestId = await wire.start(id, b);
    let doubled = false;
    const looks = await wire.watchClosely(
      id,
      (look) => look.row !== null && ENDED.includes(look.row.status),
      async (look) => {
        if (doubled || look.row?.status !== 'running' || look.host !== a) return;
        doubled = await expectBothHeld(wire, id, look.row, [from, to]);
      },
    );
    expect(doubled, 'the move was never seen running').toBe(true);
    expectOrder(looks);
    expectTakenOver(looks, a, b);
    await expectGivenBack(wire, id, looks.at(-1)?.row ?? null, { a, b, to });
    await expectActions(wire, id, requestId, [a, b]);
  });
}

/** Nova's answers to requests. */
function ofRequests(given: () => Given): void {
  describe.concurrent('the request', () => {
    test('is answered 202 with an empty body and a request id, and the server is migrating from then on', async () => {
      const { wire, places } = given();
      const [a, b] = places();
      const id = await wire.bootOne(a);
      const answer = await wire.liveMigrate(id, b);
      expect(answer.status, answer.text).toBe(202);
      expect(answer.text).toBe('');
      expect(answer.headers.get('x-openstack-request-id')).toMatch(/^req-/);
      const server = await wire.server(id);
      expect([server.status, server['OS-EXT-STS:task_state'], server['OS-EXT-SRV-ATTR:host']]).toEqual([
        'MIGRATING',
        'migrating',
        a,
      ]);
      refused(
        await wire.liveMigrate(id, b),
        409,
        `Cannot 'os-migrateLive' instance ${id} while it is in task_state migrating`,
      );
      const { row } = await wire.follow(id);
      expect(row.status).toBe('completed');
      expect((await wire.rows(id)).length).toBe(1);
    });

    test('is refused at once, and changes nothing, when the body or the host is wrong', async () => {
      const { wire, places } = given();
      const [a, b] = places();
      const id = await wire.bootOne(a);
      for (const [version, body, message] of wrongRequests(b)) {
        refused(await wire.act(id, body, version), 400, message);
      }
      const nobody = '41414141-5f4e-424a-97e1-ee7f57d32c2f';
      refused(await wire.liveMigrate(nobody, b), 404, `Instance ${nobody} could not be found.`);
      const server = await wire.server(id);
      expect([server.status, server['OS-EXT-STS:task_state']]).toEqual(['ACTIVE', null]);
      expect(await wire.rows(id)).toEqual([]);
    });

    test('is refused 409 for a server that is neither active nor paused', async () => {
      const { wire, places } = given();
      const [a, b] = places();
      const id = await wire.bootOne(a);
      expect((await wire.act(id, { 'os-stop': null })).status).toBe(202);
      await wire.settled(id, 'SHUTOFF');
      refused(
        await wire.liveMigrate(id, b),
        409,
        `Cannot 'os-migrateLive' instance ${id} while it is in vm_state stopped`,
      );
    });
  });
}

/** Moves one after the other. */
function inTurn(given: () => Given): void {
  describe.concurrent('a move that succeeds', () => {
    test('is followed by another one: the former row is shown as newest until the new one exists', async () => {
      const { wire, places } = given();
      const [a, b, c] = places();
      const id = await wire.bootOne(a);
      await wire.start(id, b);
      const { row: former } = await wire.follow(id);
      await wire.start(id, a);
      const { looks, row } = await wire.follow(id, former.id);
      expect(row.id).toBeGreaterThan(former.id);
      expect([row.status, row.source_compute, row.dest_compute]).toEqual(['completed', b, a]);
      for (const look of looks) if (look.row?.id === former.id) expect(look.row.status).toBe('completed');
      const rows = await wire.rows(id);
      expect(rows.map((each) => each.id)).toEqual([row.id, former.id]);
      const listed = z.object({
        migrations: z.array(z.object({ id: z.number(), uuid: z.string() })),
        migrations_links: z.array(z.object({ rel: z.string(), href: z.string() })).optional(),
      });
      const first = listed.parse(await wire.get(`/os-migrations?instance_uuid=${id}&limit=1`));
      expect(first.migrations.map((each) => each.id)).toEqual([row.id]);
      expect(first.migrations_links?.[0]?.href).toContain(`marker=${row.uuid}`);
      const second = listed.parse(await wire.get(`/os-migrations?instance_uuid=${id}&limit=1&marker=${row.uuid}`));
      expect(second.migrations.map((each) => each.id)).toEqual([former.id]);
      const filtered = async (query: string): Promise<number[]> =>
        listed.parse(await wire.get(`/os-migrations?instance_uuid=${id}&${query}`)).migrations.map((each) => each.id);
      expect(await filtered(`source_compute=${a}`)).toEqual([former.id]);
      expect(await filtered(`host=${a}`)).toEqual([row.id, former.id]);
      expect(await filtered(`host=${c}`)).toEqual([]);
      expect(await filtered('status=completed')).toEqual([row.id, former.id]);
      expect(await filtered('status=running')).toEqual([]);
      expect(await filtered('migration_type=evacuation')).toEqual([]);
      expect((await wire.actions(id)).map((each) => each.action)).toEqual([
        'live-migration',
        'live-migration',
        'create',
      ]);
    });
  });

  describe.concurrent('several moves', () => {
    test('off one source run one at a time: the others wait in queued', async () => {
      const { wire, places } = given();
      const [a, b] = places();
      const ids = await wire.boot(3, a);
      for (const id of ids) await wire.start(id, b);
      const statuses = z.object({
        migrations: z.array(z.object({ status: z.string(), instance_uuid: z.string() })),
      });
      let queued = 0;
      await wire.until('all completed', async () => {
        const { migrations } = statuses.parse(await wire.get(`/os-migrations?source_compute=${a}&limit=50`));
        const mine = migrations.filter((each) => ids.includes(each.instance_uuid));
        const busy = mine.filter((each) => each.status === 'preparing' || each.status === 'running');
        expect(busy.length).toBeLessThanOrEqual(1);
        if (busy.length === 1 && mine.some((each) => each.status === 'queued')) queued++;
        return mine.length === 3 && mine.every((each) => each.status === 'completed');
      });
      expect(queued, 'none was seen waiting').toBeGreaterThan(0);
    });
  });
}

/** Moves that fail after they began. */
function onItsWay(given: () => Given, cloud: () => CloudUnderTest): void {
  test('while copying ends failed; the server stays, free and active, and its claim is taken back', async () => {
    const { wire, places } = given();
    const [a, b] = places();
    const id = await wire.bootOne(a);
    const from = await wire.provider(a);
    await cloud().fault(id, 'fail');
    const requestId = await wire.start(id, b);
    const { looks, row } = await wire.follow(id);
    expectOrder(looks);
    expect([row.status, row.dest_compute]).toEqual(['failed', b]);
    for (const look of looks) {
      expect(look.host).toBe(a);
      if (look.row?.status === 'failed') expect([look.taskState, look.status]).toEqual([null, 'ACTIVE']);
    }
    expect(Object.keys(await wire.allocations(id))).toEqual([from]);
    expect(await wire.allocations(row.uuid)).toEqual({});
    const action = await wire.action(id, requestId);
    expect(action.events.every((each) => each.result === 'Success')).toBe(true);
    await cloud().fault(id, null);
    await wire.start(id, b);
    expect((await wire.follow(id, row.id)).row.status).toBe('completed');
  });

  test('after the switch-over ends error, with the server on the destination and in ERROR', async () => {
    const { wire, places } = given();
    const [a, b] = places();
    const id = await wire.bootOne(a);
    await cloud().fault(id, 'break');
    await wire.start(id, b);
    const looks = await wire.watch(id, (look) => look.status === 'ERROR' && look.row?.status === 'error');
    const last = looks.at(-1);
    expect([last?.row?.status, last?.host, last?.taskState]).toEqual(['error', b, null]);
    const { server } = z.object({ server: z.unknown() }).parse(await wire.get(`/servers/${id}`));
    expect(server).toMatchObject({ fault: { code: 500, message: expect.any(String) } });
  });
}

/** Moves that are refused after they were accepted. */
function beforeItsWay(given: () => Given, cloud: () => CloudUnderTest): void {
  const ending = 'ends error without destination, NoValidHost in the event';

  test(`of a member of an anti-affinity group, onto a host that has one, ${ending}`, async () => {
    const { wire, places } = given();
    const [a, b] = places();
    const group = await wire.group('anti-affinity');
    await wire.bootOne(b, { group });
    const id = await wire.bootOne(a, { group });
    await expectRefused(wire, { id, from: a, to: b, details: NO_HOST });
  });

  // No other case moves to the hosts of these two.
  test(`onto a disabled host ${ending}`, async () => {
    const { wire, places } = given();
    const [a] = places();
    const to = cloud().hosts[4];
    const id = await wire.bootOne(a);
    await wire.nova('PUT', `/os-services/${await wire.serviceId(to)}`, NEWEST, { status: 'disabled' });
    await expectRefused(wire, { id, from: a, to, details: NO_ROOM });
  });

  test.each([
    [0, 'pending'],
    [4, 'shutdown'],
  ])('of a server in power state %s ends error and names the state, whatever the destination', async (state, name) => {
    const { wire, places } = given();
    const [a, b] = places();
    const id = await wire.bootOne(a);
    await cloud().power(id, state);
    const details = `Instance ${id} in power_state ${name}. Cannot live migrate while the instance is in this state.`;
    await expectRefused(wire, { id, from: a, to: b, details });
    await cloud().power(id, 1);
    await wire.start(id, b);
    expect((await wire.follow(id)).row).toMatchObject({ status: 'completed', dest_compute: b });
  });

  test(`onto a host whose pre-check refuses ${ending}`, async () => {
    const { wire, places } = given();
    const [a] = places();
    const to = cloud().hosts[5];
    const id = await wire.bootOne(a);
    await cloud().refuse(to, true);
    await expectRefused(wire, { id, from: a, to, details: NO_HOST });
  });
}

/** Members of server groups. */
function inGroups(given: () => Given, cloud: () => CloudUnderTest): void {
  describe.concurrent('groups', () => {
    test('soft-anti-affinity does not stop a move onto a host with a member', async () => {
      const { wire, places } = given();
      const [a, b] = places();
      const group = await wire.group('soft-anti-affinity');
      await wire.bootOne(b, { group });
      const id = await wire.bootOne(a, { group });
      await wire.start(id, b);
      const { row } = await wire.follow(id);
      expect([row.status, row.dest_compute]).toEqual(['completed', b]);
    });

    test('a second member on its way to the same host is refused while the first one is still moving', async () => {
      const { wire, places } = given();
      const [a, b, c] = places();
      const group = await wire.group('anti-affinity');
      const first = await wire.bootOne(a, { group });
      const second = await wire.bootOne(b, { group });
      await cloud().fault(first, 'hang');
      await wire.start(first, c);
      await wire.watch(first, (look) => look.inProgress.includes('running'));
      await wire.start(second, c);
      expect((await wire.follow(second)).row).toMatchObject({ status: 'error', dest_compute: null });
      // nova-scheduler refuses it. If it does not know of the first claim yet, the compute refuses it, and the server is in ERROR.
      expect(['ACTIVE', 'ERROR']).toContain((await wire.server(second)).status);
      expect((await wire.server(second))['OS-EXT-SRV-ATTR:host']).toBe(b);
      // Other moves wait on the source for this one.
      await cloud().fault(first, null);
      expect((await wire.follow(first)).row.status).toBe('completed');
    });
  });
}

/** Aborts of moves that run. */
function ofRunning(given: () => Given, cloud: () => CloudUnderTest): void {
  test('of a running move: 202, then cancelled, the server free and active on its source', async () => {
    const { wire, places } = given();
    const [a, b] = places();
    const id = await wire.bootOne(a);
    await cloud().fault(id, 'hang');
    await wire.start(id, b);
    const { row } = await running(wire, id);
    const mid = row?.id ?? 0;
    expect((await abort(wire, id, mid, '2.23')).status).toBe(404);
    const answer = await abort(wire, id, mid, '2.24');
    expect([answer.status, answer.text]).toEqual([202, '']);
    const { looks, row: last } = await wire.follow(id);
    expect([last.id, last.status]).toEqual([mid, 'cancelled']);
    for (const look of looks) {
      expect(look.host).toBe(a);
      if (look.row?.status === 'cancelled') expect([look.taskState, look.status]).toEqual([null, 'ACTIVE']);
    }
    expect(Object.keys(await wire.allocations(id))).toEqual([await wire.provider(a)]);
    expect((await wire.actions(id)).map((each) => each.action)).toEqual([
      'live_migration_cancel',
      'live-migration',
      'create',
    ]);
    refused(await abort(wire, id, mid), 409, `Instance ${id} is in an invalid state for 'abort live migration'`);
  });
}

/** Aborts of moves that do not run. */
function ofOthers(given: () => Given, cloud: () => CloudUnderTest): void {
  test('of a queued move: 400 before 2.65, 202 from then on', async () => {
    const { wire, places } = given();
    const [a, b] = places();
    const [first = '', second = ''] = await wire.boot(2, a);
    await cloud().fault(first, 'hang');
    await wire.start(first, b);
    const busy = (await running(wire, first)).row?.id ?? 0;
    await wire.start(second, b);
    const looks = await wire.watch(second, (look) => look.row?.status === 'queued');
    const mid = looks.at(-1)?.row?.id ?? 0;
    refused(
      await abort(wire, second, mid, '2.64'),
      400,
      `Migration ${mid} state of instance ${second} is queued. Cannot abort live migration while the migration is in this state.`,
    );
    refused(await abort(wire, second, busy), 404, `Migration ${busy} not found for instance ${second}`);
    expect((await abort(wire, second, mid, '2.65')).status).toBe(202);
    expect((await wire.follow(second)).row).toMatchObject({ id: mid, status: 'cancelled' });
    expect(Object.keys(await wire.allocations(second))).toEqual([await wire.provider(a)]);
    expect((await abort(wire, first, busy)).status).toBe(202);
    expect((await wire.follow(first)).row.status).toBe('cancelled');
  });

  test('of a server that is not migrating is 409, of an unknown server 404', async () => {
    const { wire, places } = given();
    const [a] = places();
    const id = await wire.bootOne(a);
    refused(await abort(wire, id, 99), 409, `Instance ${id} is in an invalid state for 'abort live migration'`);
    const nobody = '41414141-5f4e-424a-97e1-ee7f57d32c2f';
    expect((await abort(wire, nobody, 1)).status).toBe(404);
  });
}

/** Servers that are deleted. */
function ofDeleted(given: () => Given, cloud: () => CloudUnderTest): void {
  test.concurrent('a server deleted while it migrates is gone, and its migrations are not listed any more', async () => {
    const { wire, places } = given();
    const [a, b] = places();
    const id = await wire.bootOne(a);
    await cloud().fault(id, 'hang');
    await wire.start(id, b);
    const looks = await wire.watch(id, (look) => look.inProgress.includes('running'));
    const migration = looks.at(-1)?.row?.uuid ?? '';
    expect((await wire.nova('DELETE', `/servers/${id}`)).status).toBe(204);
    await wire.until('the server gone', async () => (await wire.nova('GET', `/servers/${id}`)).status === 404);
    // Its rows disappear with it, so a client that follows the migration sees neither.
    await wire.until('the rows gone', async () => (await wire.rows(id)).length === 0);
    expect((await wire.actions(id)).map((each) => each.action)).toEqual(['delete', 'live-migration', 'create']);
    // The migration's allocation on the source stays until somebody deletes it.
    await cloud().fault(id, null);
    await wire.until('the claim gone', async () => Object.keys(await wire.allocations(id)).length === 0);
    expect(Object.keys(await wire.allocations(migration))).toEqual([await wire.provider(a)]);
    expect((await wire.placement(`/allocations/${migration}`, '1.36', 'DELETE')).status).toBe(204);
    expect(await wire.allocations(migration)).toEqual({});
  });
}

const abort = (wire: Wire, id: string, mid: number | string, version = NEWEST) =>
  wire.nova('DELETE', `/servers/${id}/migrations/${mid}`, version);

/** The first look at which Nova says that a move runs. */
async function running(wire: Wire, id: string): Promise<Look> {
  const looks = await wire.watch(id, (look) => look.row?.status === 'running' && look.inProgress.includes('running'));
  const last = looks.at(-1);
  if (last === undefined) throw new Error('no look');
  return last;
}

/** Requests a move that Nova accepts and whose destination the scheduler refuses. */
export async function expectRefused(
  wire: Wire,
  of: { readonly id: string; readonly from: string; readonly to: string; readonly details: string },
): Promise<void> {
  const { id, from, to, details } = of;
  const requestId = await wire.start(id, to);
  const { looks, row } = await wire.follow(id);
  expect([row.status, row.dest_compute, row.source_compute]).toEqual(['error', null, from]);
  for (const look of looks) expect(look.inProgress).toEqual([]);
  const server = await wire.server(id);
  expect([server.status, server['OS-EXT-STS:task_state'], server['OS-EXT-SRV-ATTR:host']]).toEqual([
    'ACTIVE',
    null,
    from,
  ]);
  const action = await wire.action(id, requestId);
  expect(action.message).toBe('Error');
  const event = action.events.find((each) => each.event === 'conductor_live_migrate_instance');
  expect(event).toMatchObject({ result: 'Error', details });
  expect(Object.keys(await wire.allocations(id))).toEqual([await wire.provider(from)]);
}

/**
 * While a move runs, its uuid holds the source and the server's own uuid the destination; Nova shows its progress in every form.
 * False: the claim is not there yet.
 */
async function expectBothHeld(
  wire: Wire,
  id: string,
  row: NonNullable<Look['row']>,
  [from, to]: readonly [from: string, to: string],
): Promise<boolean> {
  const [held, own] = [await wire.allocations(row.uuid), await wire.allocations(id)];
  if (Object.keys(held).length === 0) return false;
  expect([Object.keys(held), Object.keys(own)]).toEqual([[from], [to]]);
  const listed = z.object({ migrations: z.array(z.unknown()) });
  for (const [version, form] of Object.entries(migrationForms)) {
    const { migrations } = listed.parse(await wire.get(`/os-migrations?instance_uuid=${id}`, version));
    for (const each of migrations) form.parse(each);
  }
  for (const [version, form] of Object.entries(progressForms)) {
    const { migrations } = listed.parse(await wire.get(`/servers/${id}/migrations`, version));
    for (const each of migrations) form.parse(each);
  }
  const one = await wire.nova('GET', `/servers/${id}/migrations/${row.id}`);
  if (one.status === 200) progressForms['2.80']?.parse(z.object({ migration: z.unknown() }).parse(one.body).migration);
  return true;
}

/** Host and task_state change before the move is completed, and together. */
function expectTakenOver(looks: readonly Look[], a: string, b: string): void {
  for (const look of looks) {
    const { row } = look;
    if (row === null) continue;
    if (row.dest_compute !== null) expect(row.dest_compute).toBe(b);
    // The row was read before the server, so a completed row means that the server has arrived.
    if (row.status === 'completed') expect([look.host, look.taskState, look.status]).toEqual([b, null, 'ACTIVE']);
    if (look.host === a) expect([look.taskState, look.status]).toEqual(['migrating', 'MIGRATING']);
    for (const status of look.inProgress) expect(['queued', 'preparing', 'running']).toContain(status);
  }
  expect(
    looks.some((look) => look.row?.status === 'running' && look.host === b && look.taskState === null),
    'host and task_state were never seen ahead of the status',
  ).toBe(true);
}

/** After the end nothing of the move is in progress, and only the destination is held. */
async function expectGivenBack(
  wire: Wire,
  id: string,
  last: Look['row'],
  { a, b, to }: { readonly a: string; readonly b: string; readonly to: string },
): Promise<void> {
  expect(last).toMatchObject({ status: 'completed', source_compute: a, dest_compute: b });
  migrationForms['2.80']?.parse(last);
  expect(await wire.get(`/servers/${id}/migrations`)).toEqual({ migrations: [] });
  refused(
    await wire.nova('GET', `/servers/${id}/migrations/${last?.id}`),
    404,
    `Live migration ${last?.id} for server ${id} is not in progress.`,
  );
  await wire.until(
    'the source given back',
    async () => Object.keys(await wire.allocations(last?.uuid ?? '')).length === 0,
  );
  expect(Object.keys(await wire.allocations(id))).toEqual([to]);
}

/** The action of a move that succeeded has an event of each step, in every form. */
async function expectActions(
  wire: Wire,
  id: string,
  requestId: string,
  [a, b]: readonly [a: string, b: string],
): Promise<void> {
  const action = await wire.action(id, requestId);
  expect(action).toMatchObject({ action: 'live-migration', message: null });
  expect(action.events.map((each) => [each.event, each.result, each.host]).sort()).toEqual(
    [
      ['conductor_live_migrate_instance', 'Success', expect.any(String)],
      ['compute_check_can_live_migrate_destination', 'Success', b],
      ['compute_check_can_live_migrate_source', 'Success', a],
      ['compute_live_migration', 'Success', a],
      ['compute_pre_live_migration', 'Success', b],
      ['compute_post_live_migration_at_destination', 'Success', b],
    ].sort(),
  );
  for (const [version, form] of Object.entries(actionForms)) {
    const body = await wire.get(`/servers/${id}/os-instance-actions/${requestId}`, version);
    form.parse(z.object({ instanceAction: z.unknown() }).parse(body).instanceAction);
  }
}

/** The statuses seen never go backwards. */
function expectOrder(looks: readonly Look[]): void {
  const seen = looks.flatMap((look) => (look.row === null ? [] : [look.row.status]));
  let place = -1;
  for (const status of seen) {
    const now = ENDED.includes(status) ? ORDER.length : ORDER.indexOf(status);
    expect(now, `unknown status ${status}`).toBeGreaterThanOrEqual(0);
    expect(now, `${seen.join(' ')}`).toBeGreaterThanOrEqual(place);
    place = now;
  }
}
