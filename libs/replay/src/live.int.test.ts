import type { CycleDecided, Snapshot } from '@kronos/contracts';
import { defaultStorageLimits } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { emptySnapshot, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSnapshot } from './history.ts';
import { liveHistory } from './live.ts';

const START_MS = Date.parse('2026-01-05T00:00:00Z');
const MINUTE_MS = 60_000;
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
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates });
  const by = { service: 'scorer' as const, instance: 'test', version: '0.0.0' };
  for (const minute of minutes)
    for (const aggregate of aggregates) await log.putSnapshot(snapshotOf(aggregate, minute), { by, causationId: null });
});
afterAll(async () => {
  await log.close();
  await server.stop();
});

/** All that a finder reads of a decision. */
const decisionOn = (aggregate: string, minute: number) => {
  const { id, time } = snapshotOf(aggregate, minute);
  const event = { aggregate, data: { snapshotId: id, snapshotTime: time } } as unknown as CycleDecided;
  return { sequence: 1, event };
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

  it('keeps to its range', async () => {
    const finder = liveHistory(log, 'test').finder({ aggregates: ['gpu'], sinceMs: START_MS + MINUTE_MS });
    expect(await finder.find(decisionOn('gpu', 0))).toBeNull();
    expect(await finder.find(decisionOn('general', 1))).toBeNull();
    expect(await finder.find(decisionOn('gpu', 1))).toMatchObject({ id: 'gpu-1' });
    await finder.close();
  });
});

it('the newest snapshot of a running system is known', async () => {
  expect(await liveHistory(log, 'test').newestMs()).toBe(START_MS + 2882 * MINUTE_MS);
});
