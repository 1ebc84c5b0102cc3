import { expect } from 'vitest';
import { z } from 'zod';
import type { ServerView, Wire } from './wire.ts';

const TASKS = ['resize_prep', 'resize_migrating', 'resize_migrated', 'resize_finish'];

const rowSchema = z.looseObject({
  id: z.number(),
  uuid: z.string(),
  status: z.string(),
  migration_type: z.string(),
  source_compute: z.string(),
  dest_compute: z.string().nullable(),
});
type ResizeRow = z.infer<typeof rowSchema>;

/** A server as these tests compare it. */
export const line = (server: ServerView) => ({
  status: server.status,
  vmState: server['OS-EXT-STS:vm_state'],
  task: server['OS-EXT-STS:task_state'],
  power: server['OS-EXT-STS:power_state'],
  host: server['OS-EXT-SRV-ATTR:host'],
});

export type Steps = ReturnType<typeof stepsOf>;

/** The steps of the tests of a cold migration or a resize. Servers boot on the host `home`. */
export function stepsOf(wire: Wire, home: string) {
  const accepted = async (id: string, body: unknown): Promise<string> => {
    const answer = await wire.act(id, body);
    expect([answer.status, answer.text]).toEqual([202, '']);
    return answer.headers.get('x-openstack-request-id') ?? '';
  };
  const row = async (id: string): Promise<ResizeRow | undefined> => {
    const body = await wire.get(`/os-migrations?instance_uuid=${id}&limit=1`);
    return z.object({ migrations: z.array(rowSchema) }).parse(body).migrations[0];
  };
  /** Host -> resources that the consumer holds there. */
  const holds = async (consumer: string): Promise<Record<string, unknown>> => {
    const held = z.record(z.string(), z.object({ resources: z.unknown() })).parse(await wire.allocations(consumer));
    const hypervisors = z
      .object({ hypervisors: z.array(z.object({ id: z.string(), service: z.object({ host: z.string() }) })) })
      .parse(await wire.get('/os-hypervisors/detail')).hypervisors;
    const name = (id: string) => hypervisors.find((each) => each.id === id)?.service.host ?? id;
    return Object.fromEntries(Object.entries(held).map(([id, { resources }]) => [name(id), resources]));
  };
  const boot = async (state: 'ACTIVE' | 'SHUTOFF', host = home): Promise<string> => {
    const id = await wire.bootOne(host);
    if (state === 'SHUTOFF') {
      expect((await wire.act(id, { 'os-stop': null })).status).toBe(202);
      await wire.settled(id, 'SHUTOFF');
    }
    return id;
  };
  return { accepted, row, holds, boot, ...waitsOf(wire, { accepted, row, holds }) };
}

interface Reads {
  readonly accepted: (id: string, body: unknown) => Promise<string>;
  readonly row: (id: string) => Promise<ResizeRow | undefined>;
  readonly holds: (consumer: string) => Promise<Record<string, unknown>>;
}

/** The waits of these tests. */
function waitsOf(wire: Wire, { accepted, row, holds }: Reads) {
  /** Requests a move that must arrive. Returns the uuid of its row once the server waits for a confirmation. */
  const move = async (id: string, body: unknown): Promise<string> => {
    const former = (await row(id))?.uuid;
    await accepted(id, body);
    const first = await wire.server(id);
    expect([first.status, first['OS-EXT-STS:task_state']]).toEqual(['RESIZE', expect.stringMatching(/^resize_/)]);
    const uuids = new Set<string>();
    let last = 0;
    await wire.until('VERIFY_RESIZE', async () => {
      const seen = await row(id);
      if (seen !== undefined && seen.uuid !== former) uuids.add(seen.uuid);
      const server = await wire.server(id);
      if (server.status === 'VERIFY_RESIZE') return true;
      expect(server.status).toBe('RESIZE');
      // The steps never go back; a look may miss some of them.
      const step = TASKS.indexOf(server['OS-EXT-STS:task_state'] ?? '');
      expect(step).toBeGreaterThanOrEqual(last);
      last = step;
      return false;
    });
    const seen = await row(id);
    // Each cell's row has its own id; the uuid is the same in all cells.
    expect([...uuids, seen?.uuid].every((uuid) => uuid === seen?.uuid)).toBe(true);
    return seen?.uuid ?? '';
  };
  /** Waits until the row of the newest move has this status. */
  const ended = (id: string, status: 'confirmed' | 'reverted' | 'error') =>
    wire.until(`${id} ${status}`, async () => (await row(id))?.status === status);
  /** Waits for the failure of the action. Its events end one after the other, after the server is free again. */
  const failed = (id: string, request: string, events: readonly string[]) =>
    wire.until(`${events.join(', ')} to fail`, async () => {
      const action = await wire.action(id, request);
      const wrong = action.events.filter(({ result }) => result === 'Error').map(({ event }) => event);
      return action.message === 'Error' && events.every((event) => wrong.includes(event)) && action;
    });
  const gone = async (id: string, ...consumers: string[]): Promise<void> => {
    await wire.until(`${id} gone`, async () => (await wire.nova('GET', `/servers/${id}`)).status === 404);
    for (const consumer of [id, ...consumers])
      await wire.until(`nothing left of ${consumer}`, async () => Object.keys(await holds(consumer)).length === 0);
  };
  return { move, ended, failed, gone };
}
