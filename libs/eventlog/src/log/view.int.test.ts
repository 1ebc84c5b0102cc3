import { once } from 'node:events';
import { createConnection } from 'node:net';
import { until } from '@kronos/clock/testing';
import { type StoredEvent, streamNames, subject } from '@kronos/contracts';
import { headers } from '@nats-io/transport-node';
import { expect, test } from 'vitest';
import { appendAll } from '../../testing/appendAll.ts';
import { all, failure, take } from '../../testing/async.ts';
import { actor, emptySnapshot, pausedEvent, startedEvent, taskMessage } from '../../testing/messages.ts';
import { startProxy } from '../../testing/proxy.ts';
import { onEachServer } from '../../testing/suite.ts';
import { AppendConflict, Closed, InvalidMessage, LogGap } from '../wire/errors.ts';
import type { RawEvent } from '../wire/types.ts';

const LOG = streamNames.log;
/** A body whose reason nests this many arrays, in a message that is valid beside that. */
const nested = (depth: number): string => {
  const { data, ...head } = startedEvent(1);
  const reason = { code: 'x', text: 'y', detail: { z: 'HERE' } };
  const failed = { ...data, errorType: 'Cancelled', reason, retries: 0, retryPending: false, next: null };
  const body = { ...head, type: 'migration.failed', data: { ...failed, hostAtFault: null, started: true, nova: null } };
  return JSON.stringify(body).replace('"HERE"', `${'['.repeat(depth)}${']'.repeat(depth)}`);
};
const HOSTILE: readonly (readonly [string, string | Uint8Array])[] = [
  ['kronos.controls.gpu', nested(6_000)],
  ['kronos.results.gpu', nested(100_000)],
  ['kronos.plans._all_', ''],
  ['kronos.controls.=ZZ', '{}'],
  ['kronos.results.gpu', new Uint8Array([0xff, 0xfe, 0x00])],
  ['kronos.plans.gpu', `{"type":"cycle.decided","version":1,"data":{"plan":{"steps":[${Array(40_000).fill('{}')}]}}}`],
  ['kronos.plans.gpu', '['.repeat(500_000)],
  ['kronos.plans.gpu', '{"type":"__proto__","version":1}'],
  ['kronos.plans.gpu', '{"type":{"a":1},"version":{}}'],
  ['kronos.controls.gpu', `{"type":"${'x'.repeat(900_000)}","version":1e308}`],
];

/** Publishes bytes that no client library lets out. */
async function publishRaw(port: number, on: string, head: string, body: string): Promise<void> {
  const socket = createConnection({ port, host: '127.0.0.1' });
  await once(socket, 'connect');
  socket.write('CONNECT {"verbose":false,"headers":true}\r\n');
  socket.write(`HPUB ${on} ${head.length} ${head.length + body.length}\r\n${head}${body}\r\nPING\r\n`);
  for await (const chunk of socket) if (String(chunk).includes('PONG')) break;
  socket.destroy();
}

const rawEvent = (sequence: number): RawEvent => ({
  sequence,
  storedAt: Date.parse('2026-01-02T03:04:05.678Z') + sequence - 1,
  subject: 'kronos.controls.gpu',
  headers: { 'Nats-Msg-Id': `${sequence}` },
  data: new TextEncoder().encode(JSON.stringify(pausedEvent(`${sequence}`))),
});

/** A fold that keeps what it saw. */
const collect = {
  initial: [] as readonly StoredEvent[],
  evolve: (seen: readonly StoredEvent[], e: StoredEvent) => [...seen, e],
  snapshot: (seen: readonly StoredEvent[]) => seen,
};
/** A fold that is fast: counts, and keeps a running digest of the ids in their order. */
const digest = {
  initial: { count: 0, hash: 7 },
  evolve: ({ count, hash }: { count: number; hash: number }, { event, sequence }: StoredEvent) => {
    const text = `${sequence}:${'id' in event ? event.id : event.type}`;
    let h = hash;
    for (let i = 0; i < text.length; i++) h = (Math.imul(h, 31) + text.charCodeAt(i)) | 0;
    return { count: count + 1, hash: h };
  },
  snapshot: (seen: { count: number; hash: number }) => seen,
};

onEachServer('views', { concurrent: true, olderAtNight: true }, (bench) => {
  test('fold the whole log in order, refresh to what the leader has, and tell of changes', async () => {
    const { log } = await bench.provisioned(['gpu', 'cpu']);
    for (let i = 1; i <= 5; i++) await log.append(pausedEvent(`${i}`, i % 2 === 0 ? 'cpu' : 'gpu'));
    const view = await log.view(collect);
    expect(view.at().sequence).toBe(5);
    expect(view.at().state.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    expect(view.at().state[0]?.event).toEqual(pausedEvent('1'));
    expect(Math.abs((view.at().state[0]?.storedAt ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(view.at().expectedOn(subject('controls', 'gpu'))).toBe(5);
    expect(view.at().expectedOn(subject('controls', 'cpu'))).toBe(4);
    expect(view.at().expectedOn(subject('plans', 'gpu'))).toBe(0);
    const changes = view.changes();
    await log.append(pausedEvent('6'));
    expect((await view.refresh()).sequence).toBe(6);
    expect(view.at().state).toHaveLength(6);
    expect((await take(changes, 1))[0]?.sequence).toBe(6);
    expect(view.lagMs).toBeLessThan(60_000);
    expect(view.healthy().ok).toBe(true);
    await view.close();
    expect(await failure(view.refresh())).toBeInstanceOf(Closed);
    expect(log.healthy().ok).toBe(true);
  });

  test('readers delete their consumers when they end, when they start again and when the connection is closed', async () => {
    const { server, log } = await bench.provisioned();
    const { jsm } = await bench.bare(server);
    const consumers = async () => (await jsm.streams.info(LOG)).state.consumer_count;
    for (let i = 1; i <= 9; i++) await log.append(pausedEvent(`${i}`));
    expect(await take(log.tail({ families: ['controls'], since: 'all' }), 3)).toHaveLength(3);
    expect(await all(log.replay())).toHaveLength(9);
    await until(async () => (await consumers()) === 0);
    const view = await log.view(collect);
    expect(await consumers()).toBe(1);
    // Few events are asked for without a consumer.
    expect((await all(log.replay({ from: 4, to: 5 }))).map(({ sequence }) => sequence)).toEqual([4, 5]);
    expect(await consumers()).toBe(1);
    await server.restart();
    await until(async () => (await view.refresh().catch(() => null))?.sequence === 9 && view.healthy().ok);
    const { jsm: again } = await bench.bare(server);
    await until(async () => (await again.streams.info(LOG)).state.consumer_count === 1);
    await view.close();
    const other = await bench.connect(server);
    await other.view(collect);
    await other.close();
    await until(async () => (await again.streams.info(LOG)).state.consumer_count === 0);
  });

  test('a position keeps its state and its expectations while the fold goes on', async () => {
    const { log } = await bench.provisioned(['gpu', 'cpu']);
    await log.append(pausedEvent('1'));
    // Folds in place, as fast folds do: only its snapshot is immutable.
    const view = await log.view({
      initial: [] as number[],
      evolve: (seen, { sequence }) => {
        seen.push(sequence);
        return seen;
      },
      snapshot: (seen): readonly number[] => [...seen],
    });
    const before = view.at();
    expect(view.at()).toBe(before);
    await log.append(pausedEvent('2'));
    await log.append(pausedEvent('3', 'cpu'));
    const after = await view.refresh();
    const told = ({ state, sequence, expectedOn }: typeof before) => ({
      state,
      sequence,
      gpu: expectedOn(subject('controls', 'gpu')),
      cpu: expectedOn(subject('controls', 'cpu')),
    });
    expect(told(before)).toEqual({ state: [1], sequence: 1, gpu: 1, cpu: 0 });
    expect(told(after)).toEqual({ state: [1, 2, 3], sequence: 3, gpu: 2, cpu: 3 });
    // A decision on the older state can no longer be appended.
    const late = log.append(pausedEvent('4'), { expectedLastSequence: before.expectedOn(subject('controls', 'gpu')) });
    expect(await failure(late)).toBeInstanceOf(AppendConflict);
  });

  test('of an empty log are level at once', async () => {
    const { log } = await bench.provisioned();
    const view = await log.view(collect);
    expect([view.at().sequence, (await view.refresh()).sequence]).toEqual([0, 0]);
    await log.append(pausedEvent('1'));
    expect((await view.refresh()).sequence).toBe(1);
  });

  test('from a later event on know the last sequence of every subject, also of those that are quiet since', async () => {
    const { log } = await bench.provisioned(['gpu', 'cpu']);
    await log.append(pausedEvent('1', 'cpu'));
    for (let i = 2; i <= 5; i++) await log.append(pausedEvent(`${i}`));
    const view = await log.view({ ...collect, from: 4 });
    expect(view.at().state.map(({ sequence }) => sequence)).toEqual([4, 5]);
    expect(view.at().expectedOn(subject('controls', 'cpu'))).toBe(1);
    expect(view.at().expectedOn(subject('controls', 'gpu'))).toBe(5);
    const atEnd = await log.view({ ...collect, from: 6 });
    expect([atEnd.at().sequence, atEnd.at().state.length, atEnd.at().expectedOn(subject('controls', 'gpu'))]).toEqual([
      5, 0, 5,
    ]);
    expect(await failure(log.view({ ...collect, from: 7 }))).toBeInstanceOf(LogGap);
  });

  test('keep what they cannot read as an event that says so', async () => {
    const { server, log } = await bench.provisioned();
    const { js } = await bench.bare(server);
    const on = (body: string) => js.publish('kronos.controls.gpu', body);
    await on('no json');
    await on('{"type":"from.the.future","version":1}');
    await on(JSON.stringify({ ...pausedEvent('3'), version: 2 }));
    await on(JSON.stringify({ ...pausedEvent('4'), data: { commandId: 4 } }));
    await on(JSON.stringify(pausedEvent('5', 'other')));
    await on(JSON.stringify(taskMessage(6)));
    await on(JSON.stringify({ ...pausedEvent('7'), more: 'of a later minor version' }));
    const view = await log.view(collect);
    const events = view.at().state.map(({ event }) => event);
    expect(events.slice(0, 6).map(({ type }) => type)).toEqual(Array(6).fill('unreadable'));
    expect(events[2]).toMatchObject({ aggregate: 'gpu', claimedType: 'aggregate.paused', claimedVersion: 2 });
    expect(events[4]).toMatchObject({ aggregate: 'gpu', problem: expect.stringContaining('other') });
    expect(events[6]).toEqual(pausedEvent('7'));
  });

  test('no message, however made, ends a reader or keeps it from what comes after', async () => {
    const { server, log } = await bench.provisioned();
    const { js } = await bench.bare(server);
    const view = await log.view(collect);
    const tail = take(log.tail({ families: ['controls', 'results', 'plans'], since: 'all' }), HOSTILE.length + 1);
    for (const [on, body] of HOSTILE) await js.publish(on, body);
    await publishRaw(
      server.port,
      'kronos.results.gpu',
      'NATS/1.0\r\nNats-Msg-Id: a\rb\r\ntraceparent: c\rd\r\n\r\n',
      '[',
    );
    await until(async () => (await log.lastSequence(LOG)) === HOSTILE.length + 1);
    await log.append(pausedEvent('1'));
    const last = HOSTILE.length + 2;
    expect((await view.refresh()).sequence).toBe(last);
    expect(view.at().state.map(({ event }) => event.type)).toEqual([
      ...Array(last - 1).fill('unreadable'),
      'aggregate.paused',
    ]);
    expect(view.healthy().ok).toBe(true);
    expect((await all(log.replay())).map(({ traceparent }) => traceparent)).toHaveLength(last);
    // The tail does not read the subject that belongs to no aggregate.
    expect((await tail).map(({ problem }) => problem === undefined)).toEqual([
      ...Array(HOSTILE.length).fill(false),
      true,
    ]);
    // From a later event on: the last message of a subject is looked at, too.
    expect((await log.view({ ...collect, from: last })).at().state).toHaveLength(1);
    expect(await log.lastSequenceOf('results', 'gpu')).toBe(last - 1);
  });

  test('an event counts only on the subject of its type and from its author', async () => {
    const { server, log } = await bench.provisioned();
    const { js } = await bench.bare(server);
    const started = startedEvent(1);
    await js.publish('kronos.controls.gpu', JSON.stringify(started));
    await js.publish('kronos.plans.gpu', JSON.stringify(started));
    await js.publish('kronos.results.gpu', JSON.stringify({ ...started, by: { ...started.by, service: 'operator' } }));
    await js.publish('kronos.results.gpu', JSON.stringify(started));
    const events = (await log.view(collect)).at().state.map(({ event }) => event);
    expect(events.slice(0, 3)).toMatchObject(
      Array(3).fill({ type: 'unreadable', aggregate: 'gpu', claimedType: 'migration.started', remedy: 'skip' }),
    );
    expect(events[3]).toEqual(started);
    expect(await failure(log.append({ ...started, by: actor }))).toBeInstanceOf(InvalidMessage);
  });

  test('only the first events of a log can have the timestamp of the log that they were restored from', async () => {
    const { server, log } = await bench.provisioned();
    const { js } = await bench.bare(server);
    const claim = headers();
    claim.set('Kronos-Stored-At', '2020-01-01T00:00:00.000Z');
    await log.restore([rawEvent(1), rawEvent(2)]);
    await log.append(pausedEvent('3'));
    await js.publish('kronos.controls.gpu', JSON.stringify(pausedEvent('4')), { headers: claim });
    const restored = Date.parse('2026-01-02T03:04:05.678Z');
    expect((await log.view(collect)).at().state.map((stored) => stored.originallyStoredAt)).toEqual([
      restored,
      restored + 1,
      undefined,
      undefined,
    ]);
  });

  test('no event is missed and none folded twice, over kills, broken connections and deleted consumers', async () => {
    const { server, log } = await bench.provisioned();
    const proxy = bench.closing.add(await startProxy(server.port));
    const reader = await bench.connect(proxy);
    const view = await reader.view(digest);
    const total = 2_500;
    let written = 0;
    const writing = (async () => {
      for (; written < total; written += 50)
        await appendAll(
          log,
          Array.from({ length: 50 }, (_, i) => startedEvent(written + i)),
        );
    })();
    for (let round = 0; round < 3; round++) {
      await until(() => written >= 700 * round + 100);
      proxy.reset();
      await until(() => written >= 700 * round + 350);
      const { jsm } = await bench.bare(server);
      // One that its reader has deleted meanwhile is gone as well.
      for await (const { name } of jsm.consumers.list(LOG)) await jsm.consumers.delete(LOG, name).catch(() => false);
      await until(() => written >= 700 * round + 550);
      await server.kill();
      await server.restart();
    }
    await writing;
    expect((await view.refresh()).sequence).toBe(total);
    let expected = digest.initial;
    for (let i = 0; i < total; i++)
      expected = digest.evolve(expected, { sequence: i + 1, storedAt: 0, event: startedEvent(i) });
    expect(view.at().state).toEqual(expected);
    await until(() => view.healthy().ok);
  });

  test('a cut in the network that nobody reports is noticed, and the view goes on', async () => {
    const { server, log } = await bench.provisioned();
    await log.append(pausedEvent('1'));
    const proxy = bench.closing.add(await startProxy(server.port));
    const reader = await bench.connect(proxy, { requestTimeoutMs: 1_000 });
    const view = await reader.view(collect);
    const command = await bench.connect(proxy, { requestTimeoutMs: 1_000, readPatienceMs: 500 });
    const ofCommand = await command.view(collect);
    proxy.cut();
    await log.append(pausedEvent('2'));
    expect(await failure(view.refresh())).toMatchObject({ code: 'KRONOS_STREAM_UNAVAILABLE' });
    // A person waits for a command: what it waits for has an end, and the view none.
    expect(await failure(ofCommand.upTo(2))).toMatchObject({ code: 'KRONOS_STREAM_UNAVAILABLE' });
    proxy.heal();
    await until(async () => (await view.refresh().catch(() => null))?.sequence === 2);
    expect(view.at().state).toHaveLength(2);
    await until(async () => (await ofCommand.refresh().catch(() => null))?.sequence === 2);
  });

  test('a server whose every answer takes three seconds is waited for', async () => {
    const { server, log } = await bench.provisioned();
    for (let i = 1; i <= 3; i++) await log.append(pausedEvent(`${i}`));
    const proxy = bench.closing.add(await startProxy(server.port));
    // By default a busy machine has a third of a second to handle an answer before it is asked for again.
    const slow = await bench.connect(proxy, { requestTimeoutMs: 60_000 });
    proxy.delay(3_000);
    const view = await slow.view(collect);
    expect(view.at().sequence).toBe(3);
    proxy.delay(0);
    await view.close();
  });

  test('events that are gone end the view for good', async () => {
    const { server } = await bench.provisioned();
    const { jsm, js } = await bench.bare(server);
    await jsm.streams.delete(LOG);
    await jsm.streams.add({ name: LOG, subjects: ['kronos.plans.*', 'kronos.results.*', 'kronos.controls.*'] });
    for (let i = 1; i <= 4; i++) await js.publish('kronos.controls.gpu', JSON.stringify(pausedEvent(`${i}`)));
    await jsm.streams.deleteMessage(LOG, 3);
    const warnings: string[] = [];
    const log = await bench.connect(server, {}, { onWarning: ({ text }) => warnings.push(text) });
    const error = await failure(log.view(collect));
    expect(error).toBeInstanceOf(LogGap);
    expect(String(error)).toContain('after sequence 2 comes 4');
    expect(await failure(all(log.replay()))).toBeInstanceOf(LogGap);
    await jsm.streams.deleteMessage(LOG, 1);
    expect(await failure(log.view(collect))).toBeInstanceOf(LogGap);
    expect(warnings.join()).toContain('missing');
  });

  test('another log in place of the one that was read ends the view for good', async () => {
    const { server, log } = await bench.provisioned();
    for (let i = 1; i <= 3; i++) await log.append(pausedEvent(`${i}`));
    const view = await log.view(collect);
    const { jsm, js } = await bench.bare(server);
    const { config } = await jsm.streams.info(LOG);
    await jsm.streams.delete(LOG);
    await jsm.streams.add(config);
    for (let i = 1; i <= 5; i++) await js.publish('kronos.controls.gpu', JSON.stringify(pausedEvent(`n${i}`)));
    expect(await failure(view.refresh())).toBeInstanceOf(LogGap);
    expect(await failure(view.refresh())).toBeInstanceOf(LogGap);
    expect(view.at().state).toHaveLength(3);
    expect(log.healthy().ok).toBe(false);
  });

  test('a fold that throws ends the view with its error', async () => {
    const { log } = await bench.provisioned();
    const view = await log.view({
      initial: 0,
      evolve: (n) => {
        if (n === 1) throw new Error('cannot fold this');
        return n + 1;
      },
      snapshot: (n) => n,
    });
    const changes = view.changes();
    await log.append(pausedEvent('1'));
    await log.append(pausedEvent('2'));
    expect(await failure(view.refresh())).toMatchObject({ message: 'cannot fold this' });
    expect(await failure(all(changes))).toMatchObject({ message: 'cannot fold this' });
  });

  test('large events in numbers do not make the server drop the reader as too slow', async () => {
    const { server, log } = await bench.provisioned();
    const comment = 'x'.repeat(900 * 1024);
    for (let i = 0; i < 100; i++) await log.append(pausedEvent(`${i}`, 'gpu', comment));
    const statuses: string[] = [];
    const reader = await bench.connect(server, {}, { onStatus: ({ type }) => statuses.push(type) });
    expect((await reader.view(digest)).at().state.count).toBe(100);
    let count = 0;
    for await (const _ of reader.replay()) count++;
    expect(count).toBe(100);
    expect(statuses).toEqual(['connected']);
  });
});

onEachServer('replay, snapshots and tail', { concurrent: true, olderAtNight: true }, (bench) => {
  test('replay gives a range, in order, and ends', async () => {
    const { log } = await bench.provisioned();
    expect(await all(log.replay())).toEqual([]);
    await appendAll(
      log,
      Array.from({ length: 12_000 }, (_, i) => startedEvent(i)),
    );
    const sequences = (await all(log.replay({ from: 3, to: 11_000 }))).map(({ sequence }) => sequence);
    expect(sequences).toEqual(Array.from({ length: 10_998 }, (_, i) => i + 3));
    expect(await all(log.replay({ from: 20_000 }))).toEqual([]);
    const [first] = await take(log.replay(), 1);
    expect(first).toMatchObject({ sequence: 1, subject: 'kronos.results.gpu', traceparent: null });
    const waiting = all(log.replay({ from: 12_001, to: 12_002 }));
    await log.append(pausedEvent('1'));
    await log.append(pausedEvent('2'));
    expect(await waiting).toHaveLength(2);
  });

  test('snapshots: the newest of each aggregate first, then each new one, over a restart', async () => {
    const { server, log } = await bench.provisioned(['gpu', 'cpu']);
    const put = (id: string, aggregate: string) =>
      log.putSnapshot(emptySnapshot(id, aggregate), { by: { ...actor, service: 'scorer' }, causationId: null });
    await put('gpu-1', 'gpu');
    await put('cpu-1', 'cpu');
    // Times are exact to the millisecond: this one is apart from its neighbours.
    const tick = async () => {
      const nowMs = Date.now();
      await until(() => Date.now() > nowMs + 1);
    };
    await tick();
    await put('gpu-2', 'gpu');
    await tick();
    await put('other-1', 'other');
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { message, problem } of log.snapshots({ aggregates: ['gpu', 'cpu'] })) {
        if (problem === undefined) seen.push(message.data.snapshotId);
        if (seen.length === 4) break;
      }
    })();
    await until(() => seen.length === 2);
    await put('gpu-3', 'gpu');
    await until(() => seen.length === 3);
    await server.restart();
    await put('other-2', 'other');
    await put('cpu-2', 'cpu');
    await reading;
    expect(seen).toEqual(['cpu-1', 'gpu-2', 'gpu-3', 'cpu-2']);
    const replayed = await all(log.replaySnapshots({ aggregates: ['gpu'] }));
    expect(replayed.map(({ sequence }) => sequence)).toEqual([1, 3, 5]);
    const middle = replayed[1]?.storedAt ?? 0;
    const since = new Date(middle);
    expect((await all(log.replaySnapshots({ since, until: since }))).map(({ sequence }) => sequence)).toEqual([3]);
    expect(await all(log.replaySnapshots({ aggregates: ['nobody'] }))).toEqual([]);
  });

  test('a bad message among the snapshots is described and does not stop the rest', async () => {
    const { server, log } = await bench.provisioned();
    const { js } = await bench.bare(server);
    await js.publish('kronos.snapshots.gpu', '{"type":"snapshot.taken"');
    const puts = () =>
      log.putSnapshot(emptySnapshot('gpu-1'), { by: { ...actor, service: 'scorer' }, causationId: null });
    const bodies = await puts();
    await js.publish('kronos.snapshots.other', JSON.stringify(bodies.message));
    const [bad, good, astray] = await all(log.replaySnapshots());
    expect(bad).toMatchObject({ problem: 'the body is no JSON', message: '{"type":"snapshot.taken"' });
    expect(good?.problem).toBeUndefined();
    expect(astray?.problem).toContain('the subject "other"');
  });

  test('tail: several families and streams, the work queue without taking from it, from the start or only what is new', async () => {
    const { server, log } = await bench.provisioned(['gpu', 'cpu']);
    await log.append(pausedEvent('1'));
    await log.append(startedEvent(1, 'cpu'));
    await log.append(taskMessage(1));
    await log.append(taskMessage(2, 'cpu'));
    const families = ['controls', 'results', 'migrations', 'snapshots'] as const;
    const was = await all(log.tail({ families, since: 'all', end: true }));
    expect(was.map(({ subject: s }) => s).sort()).toEqual([
      'kronos.controls.gpu',
      'kronos.migrations.cpu',
      'kronos.migrations.gpu',
      'kronos.results.cpu',
    ]);
    const gpu = await all(log.tail({ families, aggregates: ['gpu'], since: 'all', end: true }));
    expect(gpu.map(({ subject: s }) => s).sort()).toEqual(['kronos.controls.gpu', 'kronos.migrations.gpu']);
    expect(await all(log.tail({ families, since: new Date(Date.now() + 60_000), end: true }))).toEqual([]);
    const { jsm } = await bench.bare(server);
    expect((await jsm.streams.info(streamNames.migrations)).state.messages).toBe(2);
    const proxy = bench.closing.add(await startProxy(server.port));
    const news = take((await bench.connect(proxy)).tail({ families }), 2);
    // New messages are those that come after the readers exist; the reader of the work queue asks for one message after the other.
    await until(async () => (await jsm.streams.info(LOG)).state.consumer_count > 0);
    await until(() => proxy.sentSince(0).includes(`$JS.API.STREAM.MSG.GET.${streamNames.migrations}`));
    await log.append(pausedEvent('2'));
    await log.append(taskMessage(3));
    expect((await news).map(({ message }) => (message as { type: string }).type).sort()).toEqual([
      'aggregate.paused',
      'migration.requested',
    ]);
  });

  test('closing the log ends every iteration', async () => {
    const { server } = await bench.provisioned();
    const log = await bench.connect(server);
    const iterations = [
      all(log.snapshots({ aggregates: ['gpu'] })),
      all(log.tail({ families: ['controls', 'migrations'] })),
      all(log.replay({ to: 10 })),
    ].map(failure);
    const view = await log.view(collect);
    const changes = all(view.changes());
    const { jsm } = await bench.bare(server);
    const consumers = async (stream: string) => (await jsm.streams.info(stream)).state.consumer_count;
    // Those of the tail, the replay and the view, and that of the snapshots.
    await until(async () => (await consumers(LOG)) === 3 && (await consumers(streamNames.snapshots)) === 1);
    await log.close();
    for (const error of await Promise.all(iterations)) expect(error).toBeInstanceOf(Closed);
    expect(await changes).toEqual([]);
    expect(await failure(log.append(pausedEvent('1')))).toBeInstanceOf(Closed);
    expect(log.healthy().ok).toBe(false);
  });

  test('a traceparent of a message comes with it', async () => {
    const { server, log } = await bench.provisioned();
    const { nc } = await bench.bare(server);
    const h = headers();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    h.set('traceparent', traceparent);
    await nc.request('kronos.controls.gpu', JSON.stringify(pausedEvent('1')), { headers: h, timeout: 60_000 });
    expect((await all(log.replay()))[0]?.traceparent).toBe(traceparent);
    const [delivered] = await all(log.tail({ families: ['controls'], since: 'all', end: true }));
    expect(delivered?.traceparent).toBe(traceparent);
  });
});

onEachServer("the server's clock", { concurrent: false }, (bench) => {
  test('is read between two moments of the own clock, and leaves no consumer behind', async () => {
    const { server, log } = await bench.provisioned();
    for (let i = 0; i < 3; i++) {
      const { beforeMs, serverMs, afterMs } = await log.readClock();
      // The server is on this machine: its clock is the same one, in whole milliseconds or finer.
      expect(serverMs).toBeGreaterThanOrEqual(beforeMs - 1);
      expect(serverMs).toBeLessThanOrEqual(afterMs + 1);
    }
    const { jsm } = await bench.bare(server);
    await until(async () => (await jsm.streams.info(LOG)).state.consumer_count === 0);
  });

  test('is not guessed when the server does not answer', async () => {
    const { server } = await bench.provisioned();
    const log = await bench.connect(server, { requestTimeoutMs: 200 });
    await server.pause();
    expect(await failure(log.readClock())).toMatchObject({ code: 'KRONOS_STREAM_UNAVAILABLE' });
    server.resume();
  });
});
