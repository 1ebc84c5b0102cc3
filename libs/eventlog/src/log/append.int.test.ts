import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { type Message, streamNames } from '@kronos/contracts';
import { headers } from '@nats-io/transport-node';
import {
  type ContextManager,
  context,
  propagation,
  ROOT_CONTEXT,
  type TextMapPropagator,
  trace,
} from '@opentelemetry/api';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { failure } from '../../testing/async.ts';
import { pausedEvent, startedEvent } from '../../testing/messages.ts';
import { startProxy } from '../../testing/proxy.ts';
import { onEachServer } from '../../testing/suite.ts';
import { connectEventLog } from '../index.ts';
import { atLeast } from '../wire/capabilities.ts';
import {
  AppendConflict,
  AppendRefused,
  AppendUnknown,
  AppendWithdrawn,
  InvalidMessage,
  LogFull,
  StreamUnavailable,
} from '../wire/errors.ts';
import { contextFrom } from '../wire/headers.ts';
import type { RawEvent } from '../wire/types.ts';
import { natsWire } from '../wire/wire.ts';
import { encodeMessage, MSG_ID } from './append.ts';

const SUBJECT = 'kronos.controls.gpu';

/** A message as a copy of the log holds it. */
function raw(message: Message, index: number): RawEvent {
  const { subject, body } = encodeMessage(message);
  return { sequence: index + 1, storedAt: Date.now(), subject, headers: { [MSG_ID]: message.id }, data: body };
}

/** The W3C propagator in short: what the SDK brings in services. */
const w3c: TextMapPropagator = {
  inject: (c, carrier, setter) => {
    const span = trace.getSpanContext(c);
    if (span !== undefined) setter.set(carrier, 'traceparent', `00-${span.traceId}-${span.spanId}-01`);
  },
  extract: (c, carrier, getter) => {
    const text = getter.get(carrier, 'traceparent');
    const [, traceId, spanId] = /^00-(\w{32})-(\w{16})-/.exec(String(text)) ?? [];
    if (traceId === undefined || spanId === undefined) return c;
    return trace.setSpanContext(c, { traceId, spanId, traceFlags: 1, isRemote: true });
  },
  fields: () => ['traceparent'],
};
beforeAll(() => {
  propagation.setGlobalPropagator(w3c);
});
afterAll(() => propagation.disable());

onEachServer('append', { concurrent: true }, (bench) => {
  test('expects the last sequence of the exact subject; the loser learns what it is', async () => {
    const { log } = await bench.provisioned(['gpu', 'cpu']);
    expect(await log.append(pausedEvent('1'), { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: false });
    expect(await log.append(pausedEvent('2', 'cpu'), { expectedLastSequence: 0 })).toMatchObject({ sequence: 2 });
    expect(await log.append(pausedEvent('3'), { expectedLastSequence: 1 })).toMatchObject({ sequence: 3 });
    const error = await failure(log.append(pausedEvent('4'), { expectedLastSequence: 1 }));
    expect(error).toBeInstanceOf(AppendConflict);
    expect(error).toMatchObject({ code: 'KRONOS_APPEND_CONFLICT', subject: SUBJECT, expected: 1, actual: 3 });
    expect(await log.lastSequenceOf('controls', 'gpu')).toBe(3);
    expect(await log.lastSequenceOf('plans', 'gpu')).toBe(0);
    expect(await log.lastSequence(streamNames.log)).toBe(3);
  });

  test('repeating a successful append is a duplicate, also after others appended', async () => {
    const { log } = await bench.provisioned();
    await log.append(pausedEvent('1'), { expectedLastSequence: 0 });
    expect(await log.append(pausedEvent('1'), { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: true });
    await log.append(pausedEvent('2'), { expectedLastSequence: 1 });
    await log.append(pausedEvent('3'), { expectedLastSequence: 2 });
    expect(await log.append(pausedEvent('2'), { expectedLastSequence: 1 })).toEqual({ sequence: 2, duplicate: true });
    expect(await log.append(pausedEvent('1'))).toEqual({ sequence: 1, duplicate: true });
    expect(await log.lastSequence(streamNames.log)).toBe(3);
  });

  test('the order in which the server looks at id and expectation differs by series: either way it is no conflict', async () => {
    const { server, log } = await bench.provisioned();
    const { nc } = await bench.bare(server);
    const publish = async (id: string, expected: number) => {
      const h = headers();
      h.set('Nats-Msg-Id', id);
      h.set('Nats-Expected-Last-Subject-Sequence', String(expected));
      return (await nc.request(SUBJECT, JSON.stringify(pausedEvent(id)), { headers: h, timeout: 60_000 })).json();
    };
    await publish('a', 0);
    await publish('b', 1);
    const again = await publish('a', 0);
    if (!atLeast(bench.found.version, '2.12.0')) expect(again).toMatchObject({ seq: 1, duplicate: true });
    else expect(again).toMatchObject({ error: { err_code: 10071 } });
    expect(await log.lastSequence(streamNames.log)).toBe(2);
  });

  test('beyond the window of ids it is still a duplicate', async () => {
    const { server, log } = await bench.provisioned();
    const { js, jsm } = await bench.bare(server);
    await jsm.streams.update(streamNames.log, { duplicate_window: 100_000_000 });
    await log.append(pausedEvent('1'), { expectedLastSequence: 0 });
    await log.append(pausedEvent('2'), { expectedLastSequence: 1 });
    // The server forgets ids in their order: when it has forgotten a later one, it has forgotten these.
    const later = () => js.publish('kronos.controls.cpu', '{}', { msgID: 'later' });
    await later();
    await until(async () => !(await later()).duplicate);
    expect(await log.append(pausedEvent('1'), { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: true });
    expect(await log.append(pausedEvent('2'), { expectedLastSequence: 1 })).toEqual({ sequence: 2, duplicate: true });
    expect(await log.lastSequence(streamNames.log)).toBe(4);
  });

  test('a refused append does not use up its id', async () => {
    const { log } = await bench.provisioned();
    await log.append(pausedEvent('1'));
    expect(await failure(log.append(pausedEvent('2'), { expectedLastSequence: 0 }))).toBeInstanceOf(AppendConflict);
    expect(await log.append(pausedEvent('2'), { expectedLastSequence: 1 })).toEqual({ sequence: 2, duplicate: false });
  });

  test('of twelve racing appenders exactly one wins each round', async () => {
    const { server, log } = await bench.provisioned();
    const racers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => bench.connect(server, { name: `racer-${i}` })),
    );
    for (let round = 0; round < 15; round++) {
      const expectedLastSequence = await log.lastSequenceOf('controls', 'gpu');
      const results = await Promise.allSettled(
        racers.map((racer, i) => racer.append(pausedEvent(`${round}-${i}`), { expectedLastSequence })),
      );
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const result of results)
        if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(AppendConflict);
    }
    expect(await log.lastSequence(streamNames.log)).toBe(15);
  });

  test('a server that does not answer for a while: stored once', async () => {
    const { server } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const log = await bench.connect(proxy, { requestTimeoutMs: 1_000 });
    await server.pause();
    const appending = log.append(pausedEvent('1'), { expectedLastSequence: 0 });
    await until(() => proxy.sentSince(0).split('Nats-Msg-Id').length > 3);
    server.resume();
    expect((await appending).sequence).toBe(1);
    expect(await log.lastSequence(streamNames.log)).toBe(1);
  });

  test('an answer that is lost on the way: stored once', async () => {
    const { server } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const log = await bench.connect(proxy, { requestTimeoutMs: 1_000 });
    const other = await bench.connect(server);
    for (let i = 0; i < 5; i++) {
      const appending = log.append(pausedEvent(`${i}`), { expectedLastSequence: i });
      // The message is on its way; its answer is not heard, and the connection breaks.
      await until(async () => (await other.lastSequence(streamNames.log)) >= i || i === 0);
      proxy.reset();
      expect((await appending).sequence).toBe(i + 1);
    }
    expect(await other.lastSequence(streamNames.log)).toBe(5);
  });

  test('appends go on over kills of the server, each stored once and in order', async () => {
    const { server, log } = await bench.provisioned();
    let appended = 0;
    const appending = (async () => {
      for (; appended < 300; appended++)
        await log.append(startedEvent(appended), { expectedLastSequence: appended, timeoutMs: 120_000 });
    })();
    for (let kills = 0; kills < 2; kills++) {
      await until(() => appended > 100 * kills + 50);
      await server.kill();
      await server.restart();
    }
    await appending;
    expect(await log.lastSequence(streamNames.log)).toBe(300);
  });

  test('a process that did not run for longer than the limit tries again', async () => {
    const { server, log: other } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    let jumpedMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + jumpedMs };
    const options = { servers: [proxy.url], name: 'test', requestTimeoutMs: 1_000 };
    const log = bench.closing.add(await connectEventLog(options, {}, { ...natsWire, clock }));
    let attempts = 0;
    const veto = () => {
      attempts++;
      if (attempts === 1) jumpedMs += 600_000;
      else proxy.heal();
      return null;
    };
    proxy.mute();
    expect(await log.append(pausedEvent('1'), { expectedLastSequence: 0, veto })).toMatchObject({ sequence: 1 });
    expect(attempts).toBeGreaterThan(1);
    expect(await other.lastSequence(streamNames.log)).toBe(1);
  });

  test('no answer within the limit: unknown, and the same message may be appended again', async () => {
    const { server, log } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const slow = await bench.connect(proxy, { requestTimeoutMs: 200 });
    proxy.cut();
    expect(await failure(slow.append(pausedEvent('1'), { timeoutMs: 600 }))).toBeInstanceOf(AppendUnknown);
    proxy.heal();
    await slow.append(pausedEvent('1'));
    expect(await log.lastSequence(streamNames.log)).toBe(1);
  });

  test('without a connection nothing is sent, and that is said', async () => {
    const { server, log } = await bench.provisioned();
    await server.kill();
    await until(() => !log.healthy().ok);
    expect(await failure(log.append(pausedEvent('1'), { timeoutMs: 300 }))).toBeInstanceOf(StreamUnavailable);
    await server.restart();
    expect(await log.append(pausedEvent('2'))).toMatchObject({ sequence: 1 });
  });

  test('what one attempt left open stays open, however definite the later attempts are', async () => {
    const { server } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const log = await bench.connect(proxy, { requestTimeoutMs: 200 });
    proxy.cut();
    const appending = failure(log.append(pausedEvent('1'), { expectedLastSequence: 0, timeoutMs: 2_000 }));
    await until(() => proxy.sentSince(0).includes('control:1'));
    await server.kill();
    proxy.reset();
    await until(() => !log.healthy().ok);
    expect(await appending).toBeInstanceOf(AppendUnknown);
    await server.restart();
  });

  test('a log that is full after an attempt without an answer: unknown, as that attempt may be stored', async () => {
    const { server, log } = await bench.provisioned(['gpu', 'cpu'], { logMaxBytes: 20_000 });
    const proxy = bench.closing.add(await startProxy(server.port));
    const slow = await bench.connect(proxy, { requestTimeoutMs: 300 });
    proxy.cut();
    const appending = failure(slow.append(pausedEvent('1', 'gpu', 'x'.repeat(500)), { expectedLastSequence: 0 }));
    await until(() => proxy.sentSince(0).includes('control:1'));
    const fill = async () => {
      for (let i = 0; ; i++) await log.append(pausedEvent(`c${i}`, 'cpu', 'x'.repeat(400)));
    };
    expect(await failure(fill())).toBeInstanceOf(LogFull);
    // The attempt that is on its way is lost with its connection.
    proxy.reset();
    proxy.heal();
    const error = await appending;
    expect(error).toBeInstanceOf(AppendUnknown);
    expect((error as AppendUnknown).cause).toBeInstanceOf(LogFull);
    expect(await log.lastSequenceOf('controls', 'gpu')).toBe(0);
  });

  test('a message that its writer vetoes does not leave', async () => {
    const { server, log: other } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const log = await bench.connect(proxy);
    const error = await failure(log.append(pausedEvent('1'), { veto: () => 'the snapshot is too old' }));
    expect(error).toBeInstanceOf(AppendWithdrawn);
    expect((error as Error).message).toContain('the snapshot is too old');
    expect(proxy.sentSince(0)).not.toContain('control:1');
    expect(await log.append(pausedEvent('1'), { veto: () => null })).toEqual({ sequence: 1, duplicate: false });
    expect(await other.lastSequence(streamNames.log)).toBe(1);
  });

  test('the veto is asked after the wait for the connection, not before it', async () => {
    const { server, log } = await bench.provisioned();
    await server.kill();
    await until(() => !log.healthy().ok);
    let old = false;
    const asked: boolean[] = [];
    const veto = () => {
      asked.push(old);
      return old ? 'too old' : null;
    };
    const appending = failure(log.append(pausedEvent('1'), { veto }));
    old = true;
    await server.restart();
    expect(await appending).toBeInstanceOf(AppendWithdrawn);
    expect(asked).toEqual([true]);
    expect(await log.lastSequence(streamNames.log)).toBe(0);
  });

  test('a veto after an attempt without an answer: the log says whether that attempt was stored', async () => {
    const { server, log: other } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const log = await bench.connect(proxy, { requestTimeoutMs: 1_000 });
    const asked: string[] = [];
    const veto = () => {
      asked.push(asked.length === 0 ? 'first' : 'again');
      if (asked.length === 1) return null;
      // The veto itself is no question to the server: it is heard again for the look at the log.
      proxy.heal();
      return 'too old';
    };
    proxy.mute();
    expect(await log.append(pausedEvent('1'), { expectedLastSequence: 0, veto })).toEqual({
      sequence: 1,
      duplicate: true,
    });
    expect(asked).toEqual(['first', 'again']);
    expect(await other.lastSequence(streamNames.log)).toBe(1);
  });

  test('without a stream: unavailable', async () => {
    const log = await bench.connect(await bench.server());
    expect(await failure(log.append(pausedEvent('1'), { timeoutMs: 300 }))).toBeInstanceOf(StreamUnavailable);
    expect(await failure(log.lastSequence(streamNames.log))).toMatchObject({ code: 'KRONOS_NOT_PROVISIONED' });
  });

  test('a full log stores nothing, says so, and keeps what it has', async () => {
    const { log } = await bench.provisioned(['gpu'], { logMaxBytes: 20_000 });
    const fill = async () => {
      for (let i = 0; ; i++) await log.append(pausedEvent(`${i}`, 'gpu', 'x'.repeat(2_000)));
    };
    expect(await failure(fill())).toBeInstanceOf(LogFull);
    const { messages, bytes, maxBytes, lastSequence } = await log.usage(streamNames.log);
    expect([maxBytes, messages]).toEqual([20_000, lastSequence]);
    expect(bytes).toBeGreaterThan(15_000);
  });

  test('a message the server will never take is refused, with the reason', async () => {
    const { log } = await bench.provisioned();
    const tooLong = log.append(pausedEvent('1', 'gpu', 'x'.repeat(2 * 1024 ** 2)));
    expect(await failure(tooLong)).toBeInstanceOf(InvalidMessage);
    const overLimit = await failure(log.append(pausedEvent('2', 'gpu', 'x'.repeat(1024 ** 2 - 500))));
    expect(overLimit).toBeInstanceOf(AppendRefused);
    const manyHeaders = await failure(log.append({ ...pausedEvent('3'), correlationId: 'c'.repeat(70_000) }));
    expect(manyHeaders).toBeInstanceOf(AppendRefused);
    expect(await log.lastSequence(streamNames.log)).toBe(0);
  });

  test('a message that does not fit its schema never leaves', async () => {
    const { log } = await bench.provisioned();
    const bad = { ...pausedEvent('1'), time: 'yesterday' };
    expect(await failure(log.append(bad))).toBeInstanceOf(InvalidMessage);
    expect(await log.lastSequence(streamNames.log)).toBe(0);
  });

  test('headers: the id, CloudEvents attributes, and the active trace', async () => {
    const { server, log } = await bench.provisioned(['größe']);
    const { jsm } = await bench.bare(server);
    const span = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
    const active = trace.setSpanContext(ROOT_CONTEXT, span);
    const manager: ContextManager = {
      active: () => active,
      with: (_, f, self, ...args) => f.call(self, ...args),
      bind: (_, target) => target,
      enable: () => manager,
      disable: () => manager,
    };
    // Another file that this worker ran may have left its own.
    context.disable();
    context.setGlobalContextManager(manager);
    await log.append(pausedEvent('1', 'größe'));
    context.disable();
    const stored = await jsm.streams.getMessage(streamNames.log, { seq: 1 });
    const value = (name: string) => stored?.header.get(name);
    expect(value('Nats-Msg-Id')).toBe('control:1');
    expect(value('ce-type')).toBe('kronos.aggregate.paused.v1');
    expect(value('ce-subject')).toBe('gr%C3%B6%C3%9Fe');
    expect(value('traceparent')).toBe('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
    expect(stored?.json()).toEqual(pausedEvent('1', 'größe'));
    const replayed = [];
    for await (const event of log.replay()) replayed.push(event);
    expect(replayed[0]?.traceparent).toBe(value('traceparent'));
    expect(trace.getSpanContext(contextFrom(replayed[0]?.traceparent ?? null))).toMatchObject({
      traceId: span.traceId,
      spanId: span.spanId,
    });
    expect(contextFrom(null)).toBe(ROOT_CONTEXT);
  });

  test('a wildcard for the expected sequence is for servers that have it: others check the exact subject, silently', async () => {
    const { server, log } = await bench.provisioned(['gpu', 'cpu']);
    const { nc } = await bench.bare(server);
    await log.append(pausedEvent('1', 'cpu'));
    const h = headers();
    h.set('Nats-Expected-Last-Subject-Sequence', '0');
    h.set('Nats-Expected-Last-Subject-Sequence-Subject', 'kronos.controls.*');
    const answer = (await nc.request(SUBJECT, '{}', { headers: h, timeout: 60_000 })).json();
    if (log.server.capabilities.expectedSubjectFilter) expect(answer).toHaveProperty('error');
    else expect(answer).toMatchObject({ seq: 2 });
  });

  test('a restore: in order, none twice, over broken connections', async () => {
    const { server, log } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const writer = await bench.connect(proxy, { requestTimeoutMs: 1_000 });
    const events = Array.from({ length: 6_000 }, (_, i) => startedEvent(i));
    let over = false;
    const breaking = (async () => {
      for (let resets = 0; resets < 10; resets++) {
        await until(async () => over || (await log.lastSequence(streamNames.log)) > 500 * resets);
        proxy.reset();
      }
    })();
    await writer.restore(events.map(raw));
    over = true;
    await breaking;
    const ids = [];
    for await (const { event } of log.replay()) ids.push('id' in event ? event.id : null);
    expect(ids).toEqual(events.map(({ id }) => id));
    expect(await log.restore(events.map(raw))).toEqual({ restored: 0, skipped: 6_000 });
  });

  test('a restore: an outage longer than the request timeout loses nothing', async () => {
    const { server, log } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    // Long enough for the requests before the outage, also on a busy machine.
    const writer = await bench.connect(proxy, { requestTimeoutMs: 2_000 });
    const asked = () => proxy.sentSince(0).split('$JS.API.STREAM.INFO.KRONOS_LOG').length - 1;
    // Stored, and without an answer; then nobody answers the question which of them are stored.
    proxy.muteAt('kronos.results.');
    const appending = writer.restore(Array.from({ length: 20 }, (_, i) => raw(startedEvent(i), i)));
    await Promise.race([until(() => asked() >= 8), appending]);
    proxy.heal();
    expect(await appending).toEqual({ restored: 20, skipped: 0 });
    expect(await log.lastSequence(streamNames.log)).toBe(20);
  });
});
