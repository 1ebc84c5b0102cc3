import { defaultStorageLimits, streamNames } from '@kronos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { all, failure } from '../../testing/async.ts';
import { reportedEvent } from '../../testing/messages.ts';
import { startProxy } from '../../testing/proxy.ts';
import { connectEventLog } from '../index.ts';
import { availableServers } from '../local/find.ts';
import { type NatsServer, startNatsServer } from '../local/server.ts';
import { NotProvisioned, StreamUnavailable } from '../wire/errors.ts';
import { Link } from '../wire/link.ts';
import type { EventLog } from '../wire/types.ts';
import { natsWire } from '../wire/wire.ts';
import { OrderedReader } from './reader.ts';

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
    return (await log.append(reportedEvent('scorer', instance, time))).sequence;
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

  const services = { families: ['services'], since: 'all', end: true } as const;

  it('up to the end hands over each subject, also one whose message is replaced while the reading begins', async () => {
    for (const instance of ['x', 'y']) await report(instance);
    const link = await Link.open({ servers: [server.url], name: 'reader' });
    const { consumers } = link.jsm;
    const add = consumers.add.bind(consumers);
    consumers.add = async (...args) => {
      // The end is known, and nothing is read yet.
      await report('x');
      return add(...args);
    };
    const seen = new Set<string>();
    const { promise: ended, resolve, reject } = Promise.withResolvers<readonly string[]>();
    const reader = new OrderedReader(link, {
      stream: streamNames.services,
      start: { at: 'sequence', sequence: 1 },
      contiguous: false,
      onMessage: ({ subject }) => seen.add(subject),
      onCaughtUp: () => resolve([...seen]),
      onFailure: reject,
    });
    try {
      const read = await ended;
      const { state } = await link.jsm.streams.info(streamNames.services, { subjects_filter: '>' });
      expect(read.toSorted()).toEqual(Object.keys(state.subjects ?? {}).sort());
    } finally {
      await reader.stop();
      await link.close();
    }
  });

  it('of a command ends with an error that names the stream, when the server sends nothing', async () => {
    await report('a');
    const proxy = await startProxy(server.port);
    const wire = { ...natsWire, reading: { expiresMs: 2_000, heartbeatMs: 100 } };
    const reader = await connectEventLog({ servers: [proxy.url], name: 'cli', readPatienceMs: 500 }, {}, wire);
    try {
      // The consumer is made; what it is asked for never arrives.
      proxy.muteAt('$JS.API.CONSUMER.MSG.NEXT');
      const error = await failure(all(reader.tail(services)));
      expect(error).toBeInstanceOf(StreamUnavailable);
      expect(String(error)).toMatch(/waited 0.5 s for messages of KRONOS_SERVICES: /);
    } finally {
      await reader.close();
      await proxy.close();
    }
  });

  it('of a command ends with an error that names the stream, when the stream is gone; that of a service waits', async () => {
    const command = await connectEventLog({ servers: [server.url], name: 'cli', readPatienceMs: 10_000 });
    const service = await connectEventLog({ servers: [server.url], name: 'service' });
    const link = await Link.open({ servers: [server.url], name: 'admin' });
    try {
      await link.jsm.streams.delete(streamNames.services);
      const error = await failure(all(command.tail(services)));
      expect(error).toBeInstanceOf(NotProvisioned);
      expect(String(error)).toMatch(/kronos provision.*\n.*stream KRONOS_SERVICES/);
      const waiting = all(service.tail(services));
      await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
      expect(await waiting).toEqual([]);
    } finally {
      await Promise.all([command.close(), service.close(), link.close()]);
    }
  });
});
