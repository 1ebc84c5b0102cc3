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
  let link: Link;
  beforeAll(async () => {
    server = await startNatsServer({ server: found });
    log = await connectEventLog({ servers: [server.url], name: 'test' });
    await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
    link = await Link.open({ servers: [server.url], name: 'reader' });
  });
  afterAll(async () => {
    await link?.close();
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

  it('has caught up also when a message went before it was delivered, and others go on coming', async () => {
    await report('a');
    await report('b');
    const consumers = link.jsm.consumers;
    const add = consumers.add.bind(consumers);
    // The new report of `a` removes the old one, which the consumer has counted.
    consumers.add = async (...args) => {
      const info = await add(...args);
      await report('a');
      return info;
    };
    const seen: number[] = [];
    const { promise: caughtUp, resolve, reject } = Promise.withResolvers<void>();
    const reader = new OrderedReader(link, {
      stream: streamNames.services,
      start: { at: 'sequence', sequence: 1 },
      contiguous: false,
      onMessage: ({ sequence }) => seen.push(sequence),
      onCaughtUp: () => resolve(),
      onFailure: reject,
    });
    // More often than the server's idle heartbeats, so that none of them ends the reading.
    let over = false;
    const others = (async () => {
      while (!over) await report('c');
    })();
    try {
      await caughtUp;
      expect(seen.slice(0, 2)).toEqual([2, 3]);
    } finally {
      over = true;
      await others;
      await reader.stop();
      consumers.add = add;
    }
  });
});
