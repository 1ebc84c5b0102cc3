import { ALL, defaultStorageLimits, messageId, streamNames } from '@kronos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectEventLog } from './index.ts';
import { Link } from './link.ts';
import { availableServers } from './local/find.ts';
import { type NatsServer, startNatsServer } from './local/server.ts';
import { OrderedReader } from './reader.ts';
import type { EventLog } from './types.ts';

const { servers } = await availableServers();

describe.each(servers)('a reader up to the end of a stream, on nats-server $version', (found) => {
  let server: NatsServer;
  let log: EventLog;
  beforeAll(async () => {
    server = await startNatsServer({ server: found });
    log = await connectEventLog({ servers: [server.url], name: 'test' });
    await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
  });
  afterAll(async () => {
    await log?.close();
    await server?.stop();
  });

  let reports = 0;
  const report = async (instance: string) => {
    reports += 1;
    const time = new Date(Date.parse('2026-01-05T00:00:00Z') + reports).toISOString();
    const { sequence } = await log.append({
      type: 'service.reported',
      version: 1,
      id: messageId.reported('scorer', instance, Date.parse(time)),
      time,
      aggregate: ALL,
      by: { service: 'scorer', instance, version: '0.1.0' },
      correlationId: `scorer/${instance}`,
      causationId: null,
      data: { state: 'running', failing: [], startedAt: time, intervalSeconds: 10, aggregates: ['gpu'], options: {} },
    });
    return sequence;
  };

  it('ends while others write all the time, more often than the server sends an idle heartbeat', async () => {
    let over = false;
    const others = (async () => {
      for (let i = 0; !over; i++) await report(`busy-${i % 3}`);
    })();
    const reader = await connectEventLog({ servers: [server.url], name: 'reader' });
    try {
      for (let i = 0; i < 30; i++) {
        const before = await log.lastSequence(streamNames.services);
        let last = 0;
        for await (const { sequence } of reader.tail({ families: ['services'], since: 'all', end: true }))
          last = sequence;
        expect(last).toBeGreaterThanOrEqual(before);
      }
    } finally {
      over = true;
      await others;
      await reader.close();
    }
  });

  it('of the newest of each subject hands over each message once, also when a newer one removes one that was counted', async () => {
    for (const instance of ['a', 'b', 'c']) await report(instance);
    const link = await Link.open({ servers: [server.url], name: 'reader' });
    const { consumers } = link.jsm;
    const add = consumers.add.bind(consumers);
    const newer: number[] = [];
    consumers.add = async (...args) => {
      const info = await add(...args);
      for (const instance of ['a', 'b']) newer.push(await report(instance));
      return info;
    };
    const seen: number[] = [];
    const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
    const reader = new OrderedReader(link, {
      stream: streamNames.services,
      start: { at: 'lastPerSubject' },
      contiguous: false,
      onMessage: ({ sequence }) => {
        seen.push(sequence);
        if (sequence === newer.at(-1)) resolve();
      },
      onFailure: reject,
    });
    try {
      await ended;
      expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
      expect(seen.slice(-2)).toEqual(newer);
    } finally {
      await reader.stop();
      await link.close();
    }
  });
});
