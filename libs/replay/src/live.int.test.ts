import type { CycleDecided, Snapshot } from '@kronos/contracts';
import { defaultStorageLimits, subject } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { bareConnection, emptySnapshot, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSnapshot } from './history.ts';
import { liveHistory } from './live.ts';

const MINUTE_MS = 60_000;
/** The last snapshots are of now. */
const START_MS = Date.now() - 2883 * MINUTE_MS;
const UNTRUE = '2099-01-01T00:00:00.000Z';
const aggregates = ['gpu', 'general'];
/** Two days pass between the two halves. */
const minutes = [0, 1, 2, 2880, 2881, 2882];

let server: NatsServer;
let log: EventLog;

const snapshotOf = (aggregate: string, minute: number): Snapshot => ({
  ...emptySnapshot(`${aggregate}-${minute}`, aggregate),
  time: new Date(START_MS + minute * MINUTE_MS).toISOString(),
});

beforeAll(async () => {
  server = await startNatsServer();
  log = await connectEventLog({ servers: [server.url], name: 'test' });
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: [...aggregates, 'other'] });
  const by = { service: 'scorer' as const, instance: 'test', version: '0.0.0' };
  const put = (snapshot: Snapshot) => log.putSnapshot(snapshot, { by, causationId: null });
  for (const minute of minutes) {
    for (const aggregate of aggregates) await put(snapshotOf(aggregate, minute));
    // The clock of a scorer was wrong.
    if (minute === 2880) await put({ ...snapshotOf('gpu', 1), id: 'gpu-2099', time: UNTRUE });
  }
  await put(snapshotOf('other', 3));
  // A second scorer sends its snapshot of the same cycle long after the server has forgotten the id of the first.
  const { message } = await put({ ...snapshotOf('other', 4), id: 'other-late' });
  const { snapshotId, ...rest } = message.data;
  const twin = { ...message, id: 'snapshot.taken:other-3', data: { snapshotId: 'other-3', ...rest } };
  const connection = await bareConnection(server.url);
  await connection.request(subject('snapshots', 'other'), JSON.stringify(twin));
  await connection.close();
  await put({ ...snapshotOf('other', 1), id: 'other-2099', time: UNTRUE });
});
afterAll(async () => {
  await log.close();
  await server.stop();
});

/** All that a finder reads of a decision. */
const decisionOn = (aggregate: string, minute: number) => {
  const { id, time } = snapshotOf(aggregate, minute);
  const event = { aggregate, data: { snapshotId: id } } as unknown as CycleDecided;
  return { sequence: 1, event, snapshotMs: Date.parse(time) };
};

describe('a finder of a running system', () => {
  it('finds what decisions name, in the order of the log, one aggregate behind the other', async () => {
    const finder = liveHistory(log, 'test').finder({});
    const asked = [
      ['gpu', 0],
      ['gpu', 1],
      ['general', 0],
      ['gpu', 2],
      ['general', 2],
      ['gpu', 2881],
      ['general', 2880],
      ['gpu', 2882],
    ] as const;
    for (const [aggregate, minute] of asked) {
      const entry = await finder.find(decisionOn(aggregate, minute));
      expect(entry).toMatchObject({ id: `${aggregate}-${minute}`, aggregate });
      const body = await entry?.read();
      expect(body === undefined ? null : openSnapshot(body).snapshot).toEqual(snapshotOf(aggregate, minute));
    }
    await finder.close();
  });

  it('finds nothing where nothing is kept, and goes on', async () => {
    const finder = liveHistory(log, 'test').finder({});
    expect(await finder.find(decisionOn('gpu', 1000))).toBeNull();
    expect(await finder.find(decisionOn('gpu', 2880))).toMatchObject({ id: 'gpu-2880' });
    expect(await finder.find(decisionOn('gpu', 5000))).toBeNull();
    await finder.close();
  });

  it('takes of two snapshots with one id the one of the time that the decision names', async () => {
    for (const minute of [3, 4]) {
      const finder = liveHistory(log, 'test').finder({ aggregates: ['other'] });
      const { event, snapshotMs } = decisionOn('other', minute);
      const named = { ...event, data: { ...event.data, snapshotId: 'other-3' } };
      const entry = await finder.find({ sequence: 1, event: named, snapshotMs });
      expect(entry).toMatchObject({ id: 'other-3', timeMs: START_MS + minute * MINUTE_MS });
      await finder.close();
    }
  });

  it('keeps to its range', async () => {
    const finder = liveHistory(log, 'test').finder({ aggregates: ['gpu'], sinceMs: START_MS + MINUTE_MS });
    expect(await finder.find(decisionOn('gpu', 0))).toBeNull();
    expect(await finder.find(decisionOn('general', 1))).toBeNull();
    expect(await finder.find(decisionOn('gpu', 1))).toMatchObject({ id: 'gpu-1' });
    await finder.close();
  });
});

it('the newest snapshot of a running system is known', async () => {
  const newestMs = (await liveHistory(log, 'test').newestMs()) ?? 0;
  expect(newestMs).toBeGreaterThan(START_MS + 2882 * MINUTE_MS);
  expect(newestMs).toBeLessThan(Date.parse(UNTRUE));
});
