import { defaultStorageLimits } from '@kronos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type NatsServer, startNatsServer } from '../../testing/index.ts';
import { pausedEvent } from '../../testing/messages.ts';
import { connectEventLog } from '../index.ts';
import type { EventLog, RawEvent } from '../wire/types.ts';

let server: NatsServer;
let log: EventLog;
beforeEach(async () => {
  server = await startNatsServer();
  log = await connectEventLog({ servers: [server.url], name: 'test' });
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
});
afterEach(async () => {
  await log.close();
  await server.stop();
});

const raw = (sequence: number, id = `id-${sequence}`, body = `{"n":${sequence}}`): RawEvent => ({
  sequence,
  storedAt: 0,
  subject: `kronos.${['plans', 'results', 'controls'][sequence % 3]}.gpu`,
  headers: { 'Nats-Msg-Id': id, traceparent: `00-${sequence}`, 'ce-type': 'x' },
  data: new TextEncoder().encode(body),
});
/** The event of the copy: it keeps the timestamp of the first store. */
const restored = (event: RawEvent): RawEvent => ({
  ...event,
  headers: { ...event.headers, 'Kronos-Stored-At': new Date(event.storedAt).toISOString() },
});
const raws = (to: number): RawEvent[] => Array.from({ length: to }, (_, i) => raw(i + 1));
async function copied(): Promise<RawEvent[]> {
  const all: RawEvent[] = [];
  for await (const event of log.copy()) all.push({ ...event, storedAt: 0, data: new Uint8Array(event.data) });
  return all;
}

describe('a copy of the log', () => {
  it('holds headers and bodies as they were published', async () => {
    await log.append(pausedEvent('1'));
    const [event] = await copied();
    expect(event?.headers).toMatchObject({ 'Nats-Msg-Id': pausedEvent('1').id, 'ce-specversion': '1.0' });
    expect(JSON.parse(new TextDecoder().decode(event?.data))).toEqual(pausedEvent('1'));
  });

  it('restored onto an empty server is the same log, bodies that nobody can read included', async () => {
    const events = [...raws(3000), { ...raw(3001), data: new Uint8Array([0xff, 0, 13, 10]) }];
    expect(await log.restore(events)).toEqual({ restored: 3001, skipped: 0 });
    expect(await copied()).toEqual(events.map(restored));
  });

  it('keeps every sequence though two messages have the same id', async () => {
    const events = [raw(1), raw(2, 'id-1'), raw(3), raw(4, 'id-1'), { ...raw(5), headers: {} }];
    await log.restore(events);
    expect((await copied()).map((e) => [e.sequence, e.data])).toEqual(events.map((e) => [e.sequence, e.data]));
  });

  it('goes on where an interrupted restore stopped', async () => {
    await log.restore(raws(10));
    expect(await log.restore(raws(25))).toEqual({ restored: 15, skipped: 10 });
    expect(await log.restore(raws(25))).toEqual({ restored: 0, skipped: 25 });
    expect(await copied()).toEqual(raws(25).map(restored));
  });

  it.each([
    ['is of another log', [raw(1), raw(2, 'id-2', '{"other":true}'), raw(3)], /another log/],
    ['lacks its first event', [raw(2)], /event 1 is missing/],
    ['lacks an event', [raw(1), raw(2), raw(4)], /event 3 is missing/],
    ['ends before the log', [raw(1)], /the log holds more/],
    ['names another stream', [raw(1), raw(2), { ...raw(3), subject: 'kronos.migrations.gpu' }], /does not hold/],
  ])('is refused when it %s', async (_, events, reason) => {
    await log.restore(raws(2));
    await expect(log.restore(events)).rejects.toMatchObject({
      code: 'KRONOS_RESTORE_REFUSED',
      message: expect.stringMatching(reason),
    });
    expect(await copied()).toEqual(raws(2).map(restored));
  });
});
