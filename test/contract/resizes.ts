import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type CloudUnderTest, foreignHostOf } from './cloud.ts';
import { refused } from './reads.ts';
import { line, type Steps, stepsOf } from './resizeSteps.ts';
import { NEWEST, Wire } from './wire.ts';

/** The events' messages when no host can take the server. */
const NO_HOST = 'No valid host was found. No valid host found for cold migrate';
const SMALL = { VCPU: 2, MEMORY_MB: 4096, DISK_GB: 1 };
const LARGER = { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 1 };
const RUNNING = 1;
const SHUTDOWN = 4;

interface Given extends Steps {
  readonly wire: Wire;
  readonly home: string;
}

/** Cold migration and resize, within a cell and across cells: visible states, ends and failures. */
export function resizeContract(cloud: () => CloudUnderTest): void {
  describe('Nova, cold migration and resize', () => {
    let wire: Wire;
    let home: string;
    let steps: Steps;
    beforeEach(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
      [home] = cloud().hosts;
      steps = stepsOf(wire, home);
    });

    for (const part of [thatWait, ofFlavors, inTurn, withoutTarget, thatBreak, ofOutages])
      part(() => ({ wire, home, ...steps }), cloud);
  });
}

/** Moves that wait to be confirmed. */
function thatWait(given: () => Given, cloud: () => CloudUnderTest): void {
  const ways: [string, 'ACTIVE' | 'SHUTOFF', near: boolean][] = [
    ['an ACTIVE server to another host of the cell', 'ACTIVE', true],
    ['a SHUTOFF server to another host of the cell', 'SHUTOFF', true],
    ['an ACTIVE server to a host of another cell', 'ACTIVE', false],
    ['a SHUTOFF server to a host of another cell', 'SHUTOFF', false],
  ];
  for (const [way, state, near] of ways) {
    const power = state === 'ACTIVE' ? RUNNING : SHUTDOWN;
    const vmState = state === 'ACTIVE' ? 'active' : 'stopped';

    test(`${way} waits in VERIFY_RESIZE, its source held by the migration; confirmed, it is what it was`, async (context) => {
      const { wire, home, row, holds, boot, move, ended } = given();
      const to = near ? cloud().hosts[1] : foreignHostOf(cloud(), context);
      const id = await boot(state);
      const uuid = await move(id, { migrate: { host: to } });
      expect(line(await wire.server(id))).toEqual({
        status: 'VERIFY_RESIZE',
        vmState: 'resized',
        task: null,
        power,
        host: to,
      });
      // Each of the two cells has a row. Of two rows that changed within the same second Nova lists either.
      const listed = to === cloud().foreignHost ? ['finished', 'post-migrating'] : ['finished'];
      await wire.until(listed.join(' or '), async () => listed.includes((await row(id))?.status ?? ''));
      expect(await row(id)).toMatchObject({ migration_type: 'migration', source_compute: home, dest_compute: to });
      expect([await holds(id), await holds(uuid)]).toEqual([{ [to]: SMALL }, { [home]: SMALL }]);
      const answer = await wire.act(id, { confirmResize: null });
      expect([answer.status, answer.text]).toEqual([204, '']);
      await wire.until('an end', async () => (await wire.server(id)).status === state);
      expect(line(await wire.server(id))).toEqual({ status: state, vmState, task: null, power, host: to });
      await ended(id, 'confirmed');
      expect([await holds(id), await holds(uuid)]).toEqual([{ [to]: SMALL }, {}]);
    });

    test(`${way} can be reverted: it is where it was, as it was`, async (context) => {
      const { wire, home, accepted, holds, boot, move, ended } = given();
      const to = near ? cloud().hosts[1] : foreignHostOf(cloud(), context);
      const id = await boot(state);
      const uuid = await move(id, { migrate: { host: to } });
      await accepted(id, { revertResize: null });
      await wire.settled(id, state);
      expect(line(await wire.server(id))).toEqual({ status: state, vmState, task: null, power, host: home });
      await ended(id, 'reverted');
      expect([await holds(id), await holds(uuid)]).toEqual([{ [home]: SMALL }, {}]);
    });
  }
}

/** Resizes, and what is refused at once. */
function ofFlavors(given: () => Given, cloud: () => CloudUnderTest): void {
  test('a resize goes where its flavor may: to another cell only when its own has no host for it', async (context) => {
    const { wire, home, accepted, row, holds, boot, move } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('ACTIVE');
    const flavor = async () =>
      z
        .object({ vcpus: z.number(), ram: z.number(), extra_specs: z.record(z.string(), z.string()) })
        .parse((await wire.server(id)).flavor);
    const before = await flavor();
    const uuid = await move(id, { resize: { flavorRef: cloud().foreignFlavorRef } });
    expect((await wire.server(id))['OS-EXT-SRV-ATTR:host']).toBe(to);
    expect(await row(id)).toMatchObject({ migration_type: 'resize', source_compute: home, dest_compute: to });
    expect([before.extra_specs, Object.keys((await flavor()).extra_specs).length]).toEqual([{}, 1]);
    expect([await holds(id), await holds(uuid)]).toEqual([{ [to]: SMALL }, { [home]: SMALL }]);
    await accepted(id, { revertResize: null });
    await wire.settled(id, 'ACTIVE');
    expect([await flavor(), (await wire.server(id))['OS-EXT-SRV-ATTR:host']]).toEqual([before, home]);

    const larger = await move(id, { resize: { flavorRef: cloud().largerFlavorRef } });
    const near = (await wire.server(id))['OS-EXT-SRV-ATTR:host'] ?? '';
    expect(near).not.toBe(to);
    expect(await flavor()).toMatchObject({ vcpus: LARGER.VCPU, ram: LARGER.MEMORY_MB });
    expect([await holds(id), await holds(larger)]).toEqual([{ [near]: LARGER }, { [home]: SMALL }]);
    expect((await wire.act(id, { confirmResize: null })).status).toBe(204);
    await wire.settled(id, 'ACTIVE');
    expect([await holds(id), await holds(larger)]).toEqual([{ [near]: LARGER }, {}]);
  });

  test('what cannot be is refused at once, and changes nothing', async () => {
    const { wire, home, row, boot } = given();
    const id = await boot('ACTIVE');
    const state = (action: string) => `Cannot '${action}' instance ${id} while it is in vm_state active`;
    const cases: [unknown, 400 | 409, string][] = [
      [{ migrate: { host: home } }, 400, 'Cannot migrate to the host where the server exists.'],
      [{ migrate: { host: 'nobody' } }, 400, 'Compute host nobody could not be found.'],
      [{ resize: { flavorRef: cloud().flavorRef } }, 400, 'When resizing, instances must change flavor!'],
      [{ resize: { flavorRef: 'nothing' } }, 400, 'Flavor nothing could not be found.'],
      [
        { resize: { flavorRef: cloud().disklessFlavorRef } },
        400,
        'Server disk was unable to be resized because: Resize to zero disk flavor is not allowed.',
      ],
      [
        { resize: { flavorRef: cloud().largerFlavorRef, host: home } },
        400,
        `Invalid input for field/attribute resize. Value: {'flavorRef': '${cloud().largerFlavorRef}', 'host': '${home}'}. ` +
          "Additional properties are not allowed ('host' was unexpected)",
      ],
      [{ confirmResize: null }, 409, state('confirmResize')],
      [{ revertResize: null }, 409, state('revertResize')],
    ];
    for (const [body, status, message] of cases) refused(await wire.act(id, body), status, message);
    expect(line(await wire.server(id))).toMatchObject({ status: 'ACTIVE', task: null, host: home });
    expect(await row(id)).toBeUndefined();
  });
}

/** Several requests for one server. */
function inTurn(given: () => Given, cloud: () => CloudUnderTest): void {
  test('while one is under way no other is taken, and a server that waits to be confirmed takes nothing else', async () => {
    const { wire, home, accepted, boot } = given();
    const id = await boot('ACTIVE');
    await accepted(id, { migrate: { host: cloud().hosts[1] } });
    refused(
      await wire.act(id, { migrate: { host: cloud().hosts[2] } }),
      409,
      `Cannot 'migrate' instance ${id} while it is in task_state resize_prep`,
    );
    await wire.settled(id, 'VERIFY_RESIZE');
    for (const [body, action] of [
      [{ 'os-stop': null }, 'stop'],
      [{ 'os-start': null }, 'start'],
      [{ migrate: { host: home } }, 'migrate'],
      [{ 'os-migrateLive': { host: home, block_migration: 'auto' } }, 'os-migrateLive'],
    ] as const)
      refused(await wire.act(id, body), 409, `Cannot '${action}' instance ${id} while it is in vm_state resized`);
  });

  test('of two who confirm, or revert, or both, the first counts', async (context) => {
    const { wire, accepted, boot, move } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('ACTIVE');
    await move(id, { migrate: { host: to } });
    await accepted(id, { revertResize: null });
    const reverting = (action: string) =>
      `Cannot '${action}' instance ${id} while it is in task_state resize_reverting`;
    refused(await wire.act(id, { revertResize: null }), 409, reverting('revertResize'));
    refused(await wire.act(id, { confirmResize: null }), 409, reverting('confirmResize'));
    await wire.settled(id, 'ACTIVE');
    await move(id, { migrate: { host: to } });
    expect((await wire.act(id, { confirmResize: null })).status).toBe(204);
    // The server itself does not show that a confirmation is under way.
    refused(await wire.act(id, { confirmResize: null }), 400, 'Instance has not been resized.');
    refused(await wire.act(id, { revertResize: null }), 400, 'Instance has not been resized.');
    await wire.settled(id, 'ACTIVE');
    expect((await wire.server(id))['OS-EXT-SRV-ATTR:host']).toBe(to);
  });
}

/** Moves without a host that may take the server. */
function withoutTarget(given: () => Given, cloud: () => CloudUnderTest): void {
  test('below 2.56 a named host is ignored', async (context) => {
    const { wire, home, boot } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('ACTIVE');
    expect((await wire.act(id, { migrate: { host: to } }, '2.55')).status).toBe(202);
    const server = await wire.settled(id, 'VERIFY_RESIZE');
    expect([home, to]).not.toContain(server['OS-EXT-SRV-ATTR:host']);
  });

  test('without the policy a named host of another cell is unknown, and a flavor of another cell has no host', async (context) => {
    const { wire, home, accepted, holds, boot, failed, ended } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('ACTIVE');
    await cloud().crossCells(false);
    refused(await wire.act(id, { migrate: { host: to } }), 400, `Compute host ${to} could not be found.`);
    const request = await accepted(id, { resize: { flavorRef: cloud().foreignFlavorRef } });
    await ended(id, 'error');
    await wire.settled(id, 'ACTIVE');
    const action = await failed(id, request, ['cold_migrate', 'conductor_migrate_server']);
    for (const event of action.events) expect(event.details).toBe(NO_HOST.replace('cold migrate', 'resize'));
    expect(await holds(id)).toEqual({ [home]: SMALL });
  });

  test('a target that is full, or disabled, ends it in error, and the server is as it was', async (context) => {
    const { wire, home, accepted, row, holds, boot, failed, ended } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('SHUTOFF');
    const service = await wire.serviceId(to);
    for (const close of [
      () => cloud().fill(to, true),
      async () => {
        await cloud().fill(to, false);
        await wire.nova('PUT', `/os-services/${service}`, NEWEST, { status: 'disabled', disabled_reason: 'old' });
      },
    ]) {
      await close();
      const request = await accepted(id, { migrate: { host: to } });
      await ended(id, 'error');
      const server = await wire.settled(id, 'SHUTOFF');
      expect(line(server)).toMatchObject({ vmState: 'stopped', power: SHUTDOWN, host: home });
      expect((await row(id))?.dest_compute).toBeNull();
      const action = await failed(id, request, ['cold_migrate', 'conductor_migrate_server']);
      expect(action.events.map((event) => [event.event, event.details]).sort()).toEqual([
        ['cold_migrate', NO_HOST],
        ['conductor_migrate_server', NO_HOST],
      ]);
      const migration = (await row(id))?.uuid ?? '';
      expect([await holds(id), await holds(migration)]).toEqual([{ [home]: SMALL }, {}]);
      await wire.nova('PUT', `/os-services/${service}`, NEWEST, { status: 'enabled' });
    }
  });
}

/** Moves that a fault ends. */
function thatBreak(given: () => Given, cloud: () => CloudUnderTest): void {
  test('a source that cannot upload the image leaves the server ACTIVE and powered off', async (context) => {
    const { wire, home, accepted, row, holds, boot, failed, ended } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('ACTIVE');
    await cloud().fault(id, 'snapshot');
    const request = await accepted(id, { migrate: { host: to } });
    await ended(id, 'error');
    const server = await wire.settled(id, 'ACTIVE');
    expect(line(server)).toMatchObject({ vmState: 'active', power: SHUTDOWN, host: home });
    await failed(id, request, [
      'cold_migrate',
      'compute_prep_snapshot_based_resize_at_source',
      'conductor_migrate_server',
    ]);
    const migration = (await row(id))?.uuid ?? '';
    await wire.until('the allocation back', async () => Object.keys(await holds(migration)).length === 0);
    expect(await holds(id)).toEqual({ [home]: SMALL });
    await cloud().fault(id, null);
    await accepted(id, { reboot: { type: 'HARD' } });
    await wire.until('power', async () => (await wire.server(id))['OS-EXT-STS:power_state'] === RUNNING);
  });

  const breaks: ['spawn' | 'confirm' | 'revert', string, 'old' | 'new', string][] = [
    ['spawn', 'a destination that cannot start the guest', 'old', 'compute_finish_snapshot_based_resize_at_dest'],
    ['confirm', 'a source that cannot clean up', 'new', 'compute_confirm_snapshot_based_resize_at_source'],
    [
      'revert',
      'a source that cannot start the guest again',
      'old',
      'compute_finish_revert_snapshot_based_resize_at_source',
    ],
  ];
  test.for(breaks)(
    '%s: %s leaves the server in ERROR in its %s cell, and a hard reboot there brings it back',
    async ([step, , cell, event], context) => {
      const { wire, home, accepted, row, holds, boot, move, failed, ended } = given();
      const to = foreignHostOf(cloud(), context);
      const id = await boot('ACTIVE');
      await cloud().fault(id, step);
      let request = '';
      if (step === 'spawn') request = await accepted(id, { migrate: { host: to } });
      else {
        await move(id, { migrate: { host: to } });
        const answer = await wire.act(id, { [`${step}Resize`]: null });
        expect(answer.status).toBe(step === 'confirm' ? 204 : 202);
        request = answer.headers.get('x-openstack-request-id') ?? '';
      }
      const server = await wire.settled(id, 'ERROR');
      const host = cell === 'old' ? home : to;
      expect(server['OS-EXT-SRV-ATTR:host']).toBe(host);
      await ended(id, 'error');
      const action = await failed(id, request, [event]);
      const broken = action.events.find((each) => each.event === event);
      // Nova records the fault shortly after the state.
      const fault = await wire.until('a fault', async () => (await wire.server(id)).fault);
      expect(fault).toMatchObject({ message: broken?.details });
      const migration = (await row(id))?.uuid ?? '';
      await wire.until('the allocation back', async () => Object.keys(await holds(migration)).length === 0);
      expect(await holds(id)).toEqual({ [host]: SMALL });
      await cloud().fault(id, null);
      await accepted(id, { reboot: { type: 'HARD' } });
      const back = await wire.settled(id, 'ACTIVE');
      expect(line(back)).toMatchObject({ power: RUNNING, host });
    },
  );
}

/** Servers that are deleted, and hosts that are down. */
function ofOutages(given: () => Given, cloud: () => CloudUnderTest): void {
  test('a server deleted in VERIFY_RESIZE is gone, and holds nothing in either cell', async (context) => {
    const { wire, boot, move, gone } = given();
    const id = await boot('ACTIVE');
    const uuid = await move(id, { migrate: { host: foreignHostOf(cloud(), context) } });
    expect((await wire.nova('DELETE', `/servers/${id}`)).status).toBe(204);
    await gone(id, uuid);
  });

  test('a server deleted while its guest starts in another cell is gone, and holds nothing in the end', async (context) => {
    const { wire, accepted, row, boot, gone } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('ACTIVE');
    await cloud().fault(id, 'slow');
    await accepted(id, { migrate: { host: to } });
    await wire.until(
      'resize_migrated',
      async () => (await wire.server(id))['OS-EXT-STS:task_state'] === 'resize_migrated',
    );
    const uuid = (await row(id))?.uuid ?? '';
    expect((await wire.nova('DELETE', `/servers/${id}`)).status).toBe(204);
    await gone(id, uuid);
    expect((await wire.nova('GET', `/servers/${id}`)).status).toBe(404);
  });

  test('while the source is down a move is neither taken nor confirmed', async (context) => {
    const { wire, home, boot, move } = given();
    const to = foreignHostOf(cloud(), context);
    const id = await boot('ACTIVE');
    const other = await boot('ACTIVE');
    await move(id, { migrate: { host: to } });
    await cloud().stop(home, true);
    refused(await wire.act(id, { confirmResize: null }), 409, 'Service is unavailable at this time.');
    refused(await wire.act(other, { migrate: { host: to } }), 409, 'Service is unavailable at this time.');
    expect((await wire.server(id)).status).toBe('VERIFY_RESIZE');
    await cloud().stop(home, false);
    expect((await wire.act(id, { confirmResize: null })).status).toBe(204);
    await wire.settled(id, 'ACTIVE');
  });
}
