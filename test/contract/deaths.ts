import { beforeEach, describe, expect, test } from 'vitest';
import type { CloudUnderTest } from './cloud.ts';
import { refused } from './reads.ts';
import { NEWEST, Wire } from './wire.ts';

interface Given {
  readonly wire: Wire;
  readonly a: string;
  readonly b: string;
  readonly c: string;
}

/** The fate of a live migration when one of its hosts dies, is down, or restarts. */
export function deathContract(cloud: () => CloudUnderTest): void {
  describe('Nova, a live migration', () => {
    let wire: Wire;
    let a: string;
    let b: string;
    let c: string;
    beforeEach(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
      [a, b, c] = cloud().hosts;
    });

    for (const part of [whoseHostDies, whoseSourceStarts, fromSilentHosts]) part(() => ({ wire, a, b, c }), cloud);
  });
}

/** Waits until the server's newest row has this status. */
const reaches = (wire: Wire, id: string, status: string) =>
  wire.until(`${id} ${status}`, async () => (await wire.rows(id))[0]?.status === status);

/** Waits until a server has no task. */
const freed = (wire: Wire, id: string) =>
  wire.until(`${id} free`, async () => (await wire.server(id))['OS-EXT-STS:task_state'] === null);

/** Hosts that die under a move. */
function whoseHostDies(given: () => Given, cloud: () => CloudUnderTest): void {
  test('whose destination dies ends error, with the server in ERROR on it', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await wire.start(id, b);
    await reaches(wire, id, 'running');
    await cloud().kill(b);
    await reaches(wire, id, 'error');
    await wire.until('it is broken', async () => (await wire.server(id)).status === 'ERROR');
    expect((await wire.server(id))['OS-EXT-SRV-ATTR:host']).toBe(b);
    await cloud().start(b);
  });

  test('that waits behind one whose destination died ends error or failed, the server free and active on its source', async () => {
    const { wire, a, b } = given();
    const [ran, waited] = [await wire.bootOne(a), await wire.bootOne(a)];
    await cloud().fault(ran, 'hang');
    await wire.start(ran, b);
    await reaches(wire, ran, 'running');
    await wire.start(waited, b);
    await reaches(wire, waited, 'queued');
    await cloud().kill(b);
    await cloud().fault(ran, null);
    await reaches(wire, ran, 'error');
    expect((await wire.server(ran))['OS-EXT-SRV-ATTR:host']).toBe(b);
    const { row } = await wire.follow(waited);
    expect(['error', 'failed']).toContain(row.status);
    expect(row.dest_compute).toBe(b);
    await freed(wire, waited);
    const server = await wire.server(waited);
    expect([server.status, server['OS-EXT-SRV-ATTR:host']]).toEqual(['ACTIVE', a]);
    await cloud().start(b);
  });

  test('whose source dies and starts again: running ends error without a reason, queued stays for ever', async () => {
    const { wire, a, b, c } = given();
    const [ran, waited] = [await wire.bootOne(a), await wire.bootOne(a)];
    await cloud().fault(ran, 'hang');
    const requestId = await wire.start(ran, b);
    await reaches(wire, ran, 'running');
    await wire.start(waited, c);
    await reaches(wire, waited, 'queued');
    const [queued] = await wire.rows(waited);
    await cloud().kill(a);
    // An abort is a cast, so Nova accepts it for a dead compute.
    const [running] = await wire.rows(ran);
    expect((await wire.nova('DELETE', `/servers/${ran}/migrations/${running?.id}`)).status).toBe(202);
    await cloud().start(a);
    await reaches(wire, ran, 'error');
    for (const id of [ran, waited]) await freed(wire, id);
    for (const id of [ran, waited]) {
      const server = await wire.server(id);
      expect([server.status, server['OS-EXT-SRV-ATTR:host']]).toEqual(['ACTIVE', a]);
    }
    const action = await wire.action(ran, requestId);
    expect(action.events.some((each) => each.result === 'Error')).toBe(false);
    refused(
      await wire.nova('DELETE', `/servers/${waited}/migrations/${queued?.id}`),
      409,
      `Instance ${waited} is in an invalid state for 'abort live migration'`,
    );
    expect((await wire.rows(waited))[0]).toMatchObject({ id: queued?.id, status: 'queued' });
  });
}

/** A source that starts again before the move has a destination. */
function whoseSourceStarts(given: () => Given, cloud: () => CloudUnderTest): void {
  test('whose source starts again before a host is chosen begins later, and the destination does not take the server over', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await cloud().holdScheduler(true);
    const requestId = await wire.start(id, b);
    await reaches(wire, id, 'accepted');
    await cloud().kill(a);
    await cloud().start(a);
    // The restart frees the server while nova-conductor still has the request.
    await freed(wire, id);
    const free = await wire.server(id);
    expect([free.status, free['OS-EXT-SRV-ATTR:host']]).toEqual(['ACTIVE', a]);
    expect((await wire.rows(id))[0]).toMatchObject({ status: 'accepted', dest_compute: null });
    expect(await wire.action(id, requestId)).toMatchObject({
      message: null,
      events: [{ event: 'conductor_live_migrate_instance', result: null, finish_time: null }],
    });
    await cloud().holdScheduler(false);
    const { row, looks } = await wire.follow(id);
    expect([row.status, row.dest_compute]).toEqual(['error', b]);
    for (const look of looks) expect(look.taskState).toBeNull();
    await wire.until('it is broken', async () => (await wire.server(id)).status === 'ERROR');
    expect((await wire.server(id))['OS-EXT-SRV-ATTR:host']).toBe(b);
    const { events } = await wire.action(id, requestId);
    expect(events.find((each) => each.event === 'compute_post_live_migration_at_destination')).toMatchObject({
      result: 'Error',
      details: expect.stringMatching(/^Conflict updating instance .* Expected: .*migrating.* Actual: .*None/),
    });
  });
}

/** Hosts that do not report. */
function fromSilentHosts(given: () => Given, cloud: () => CloudUnderTest): void {
  test('from a host that is down: error, and the event says which service', async () => {
    const { wire, a, b } = given();
    const id = await wire.bootOne(a);
    await wire.nova('PUT', `/os-services/${await wire.serviceId(a)}`, NEWEST, { forced_down: true });
    const requestId = await wire.start(id, b);
    const { row } = await wire.follow(id);
    expect([row.status, row.dest_compute]).toEqual(['error', null]);
    const action = await wire.action(id, requestId);
    expect(action.events.find((each) => each.event === 'conductor_live_migrate_instance')).toMatchObject({
      result: 'Error',
      details: `Compute service of ${a} is unavailable at this time.`,
    });
  });

  test('a compute that stops reporting is down after a while, and its servers tell', async () => {
    const { wire, a } = given();
    const id = await wire.bootOne(a);
    await cloud().stop(a, true);
    const service = await wire.get(`/os-services?binary=nova-compute&host=${a}`);
    expect(service).toMatchObject({ services: [{ state: 'down', status: 'enabled', forced_down: false }] });
    expect(await wire.get(`/servers/${id}`)).toMatchObject({ server: { host_status: 'UNKNOWN', status: 'ACTIVE' } });
    await cloud().stop(a, false);
    expect(await wire.get(`/os-services?binary=nova-compute&host=${a}`)).toMatchObject({
      services: [{ state: 'up' }],
    });
  });
}
