import { elapse, until } from '@kronos/clock/testing';
import { streamNames, subject as subjectOf } from '@kronos/contracts';
import { headers, type Msg, type NatsConnection, nanos } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseDelivery } from '../src/log/reader.ts';
import { taskConsumerName } from '../src/wire/definitions.ts';
import { AppendConflict, LogFull } from '../src/wire/errors.ts';
import type { Delivered, EventLog, TaskOutcome } from '../src/wire/types.ts';
import { actor, emptySnapshot, pausedEvent, startedEvent, taskMessage, testLimits } from './messages.ts';

/** A JetStream server, real or simulated, as the contract sees it. */
export interface ContractServer {
  connect(name: string): Promise<EventLog>;
  /** A connection without the library. */
  bare(): Promise<NatsConnection>;
  stop(): Promise<void>;
}

/** Of the tasks of `gpu`: none comes again within the time of a test. */
const LONG_SECONDS = 600;
const consumerOf = (aggregate: string): string => `${streamNames.migrations}.${taskConsumerName(aggregate)}`;
/** For an answer: ends only what hangs. */
const PATIENCE_MS = 60_000;
const RESULTS = subjectOf('results', 'gpu');
const TASKS = subjectOf('migrations', 'gpu');

interface Given extends Requests {
  readonly server: ContractServer;
  readonly log: EventLog;
  readonly nc: NatsConnection;
}

type Requests = ReturnType<typeof requestsOf>;

/** Requests that the tests send to the server without the library. */
function requestsOf(nc: NatsConnection, log: EventLog) {
  const publish = async (subject: string, body: string, h: Record<string, string> = {}) => {
    const all = headers();
    for (const [key, value] of Object.entries(h)) all.set(key, value);
    const answer = await nc.request(subject, body, { timeout: PATIENCE_MS, headers: all });
    return JSON.parse(answer.string()) as {
      seq?: number;
      duplicate?: boolean;
      error?: { err_code: number; description: string };
    };
  };

  /** Sends a pull request; `next` gives what comes to its inbox, in order. */
  function pull(place: string, request: object) {
    const inbox = `_INBOX.contract.${Math.random().toString(36).slice(2)}`;
    const came: Msg[] = [];
    let tell: () => void = () => undefined;
    const sub = nc.subscribe(inbox, {
      callback: (_, message) => {
        came.push(message);
        tell();
      },
    });
    nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${place}`, JSON.stringify(request), { reply: inbox });
    return {
      stop: () => sub.unsubscribe(),
      async next(): Promise<Msg> {
        while (came.length === 0)
          await new Promise<void>((resolve) => {
            tell = resolve;
          });
        return came.shift() as Msg;
      },
    };
  }
  const takeTask = async (aggregate = 'gpu') => {
    const { next, stop } = pull(consumerOf(aggregate), { batch: 1, expires: nanos(PATIENCE_MS) });
    const message = await next();
    stop();
    const info = parseDelivery(message.reply ?? '');
    if (info === null) throw new Error(`no task came, but ${message.headers?.code}`);
    return {
      ...info,
      body: message.string(),
      answer: (text: string) => nc.request(message.reply ?? '', text, { timeout: PATIENCE_MS }),
    };
  };
  const noTask = async (aggregate = 'gpu') => {
    const { next, stop } = pull(consumerOf(aggregate), { batch: 1, no_wait: true });
    const message = await next();
    stop();
    expect(message.headers?.code).toBe(404);
  };
  const queued = async () => (await log.usage(streamNames.migrations)).messages;
  return { publish, pull, takeTask, noTask, queued };
}

/**
 * The behaviour of JetStream that Kronos relies on. The same tests hold the real server and the simulated one to it.
 *
 * @param ackWaitMs of the tasks of `brief`, a multiple of 1000: a test that does not run for half of it loses what it holds
 */
export function jetStreamContract(name: string, ackWaitMs: number, start: () => Promise<ContractServer>): void {
  describe(`JetStream as Kronos relies on it: ${name}`, () => {
    let server: ContractServer;
    let log: EventLog;
    let nc: NatsConnection;
    let requests: Requests;
    beforeAll(async () => {
      server = await start();
      log = await server.connect('test');
      const wanted = { limits: { ...testLimits, logMaxBytes: 1024 * 1024 }, replicas: 1 };
      await log.provision({ ...wanted, aggregates: ['gpu', 'web'], ackWaitSeconds: LONG_SECONDS, sinks: ['chat'] });
      await log.provision({ ...wanted, aggregates: ['brief'], ackWaitSeconds: ackWaitMs / 1000 });
      nc = await server.bare();
      requests = requestsOf(nc, log);
    });

    afterAll(async () => {
      await nc?.close();
      await log?.close();
      await server?.stop();
    });

    for (const part of [appends, readers, workQueue, sinks, limits])
      part(() => ({ server, log, nc, ...requests }), ackWaitMs);
  });
}

/** Appends and their expectations. */
function appends(given: () => Given): void {
  describe('an append', () => {
    it('that is made again as it was is a duplicate, and no conflict', async () => {
      const { log } = given();
      const first = await log.append(pausedEvent('once', 'web'), { expectedLastSequence: 0 });
      await log.append(pausedEvent('after', 'web'));
      const again = await log.append(pausedEvent('once', 'web'), { expectedLastSequence: 0 });
      expect(again).toEqual({ sequence: first.sequence, duplicate: true });
    });

    it('with a wrong expectation is refused, says what is there, and does not use up its id', async () => {
      const { publish } = given();
      const { seq } = await publish('kronos.controls.x2', '{}');
      const refused = await publish('kronos.controls.x2', '{}', {
        'Nats-Msg-Id': 'refused',
        'Nats-Expected-Last-Subject-Sequence': '0',
      });
      expect(refused.error).toMatchObject({ err_code: 10071, description: `wrong last sequence: ${seq}` });
      const later = await publish('kronos.controls.x2', '{}', {
        'Nats-Msg-Id': 'refused',
        'Nats-Expected-Last-Subject-Sequence': String(seq),
      });
      expect(later.error).toBeUndefined();
      expect(later.duplicate).not.toBe(true);
    });

    it('through the library: of two with the same expectation one is stored', async () => {
      const { log } = given();
      const expectedLastSequence = await log.lastSequenceOf('results', 'web');
      await log.append(startedEvent(1, 'web'), { expectedLastSequence });
      await expect(log.append(startedEvent(2, 'web'), { expectedLastSequence })).rejects.toThrow(AppendConflict);
    });

    it('to a subject that no stream takes has no responder', async () => {
      const { nc } = given();
      await expect(nc.request('kronos.unknown.x', '{}', { timeout: 1_000 })).rejects.toThrow();
    });
  });
}

/** Readers of the log and of snapshots. */
function readers(given: () => Given): void {
  describe('a reader', () => {
    for (const part of [inOrder, byStatus]) part(given);
  });
}

/** Readers, and the order of their messages. */
function inOrder(given: () => Given): void {
  it('of the log has everything in order, and what comes later', async () => {
    const { log } = given();
    const view = await log.view({
      initial: [] as readonly number[],
      evolve: (all, { sequence }) => [...all, sequence],
      snapshot: (all) => all,
    });
    await log.append(pausedEvent('view-1'));
    const at = await view.refresh();
    expect(at.state).toEqual(Array.from({ length: at.sequence }, (_, index) => index + 1));
    expect(at.expectedOn(subjectOf('controls', 'gpu'))).toBe(at.sequence);
    const replayed: number[] = [];
    for await (const { sequence } of log.replay()) replayed.push(sequence);
    expect(replayed).toEqual(at.state);
    await view.close();
  });

  it('of snapshots has the newest of each aggregate first, then the new ones', async () => {
    const { log } = given();
    const put = async (id: string, aggregate: string) =>
      log.putSnapshot(emptySnapshot(id, aggregate), { by: { ...actor, service: 'scorer' }, causationId: null });
    await put('gpu-1', 'gpu');
    await put('gpu-2', 'gpu');
    await put('web-1', 'web');
    const seen: string[] = [];
    for await (const { message, problem } of log.snapshots({ aggregates: ['gpu', 'web'] })) {
      if (problem !== undefined) throw new Error(problem);
      if (seen.length === 0) await put('gpu-3', 'gpu');
      seen.push(message.data.snapshotId);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(['gpu-2', 'web-1', 'gpu-3']);
    const { message } = (await put('gpu-4', 'gpu')) as { message: Parameters<EventLog['getSnapshot']>[0] };
    expect((await log.getSnapshot(message)).id).toBe('gpu-4');
  });

  it('of a family tails it from the start, and ends', async () => {
    const { log } = given();
    const found: Delivered<unknown>[] = [];
    for await (const one of log.tail({ families: ['results'], since: 'all', end: true })) found.push(one);
    expect(found.map(({ subject }) => subject)).toEqual([subjectOf('results', 'web')]);
  });
}

/** Statuses in answer to a request. */
function byStatus(given: () => Given): void {
  it('gets a status when its request expires: how many messages it did not get', async () => {
    const { log, nc, pull } = given();
    const name = 'contract-reader';
    await nc.request(
      `$JS.API.CONSUMER.CREATE.${streamNames.log}.${name}.${RESULTS}`,
      JSON.stringify({
        stream_name: streamNames.log,
        config: {
          name,
          ack_policy: 'none',
          deliver_policy: 'new',
          filter_subject: RESULTS,
          inactive_threshold: nanos(9_000),
        },
      }),
    );
    const { next, stop } = pull(`${streamNames.log}.${name}`, {
      batch: 5,
      expires: nanos(600),
      idle_heartbeat: nanos(200),
    });
    const { sequence } = await log.append(startedEvent(11));
    expect(parseDelivery((await next()).reply ?? '')).toMatchObject({ streamSequence: sequence, pending: 0 });
    expect((await next()).headers?.code).toBe(100);
    let status = await next();
    while (status.headers?.code === 100) status = await next();
    expect(status.headers?.code).toBe(408);
    expect(status.headers?.get('Nats-Pending-Messages')).toBe('4');
    stop();
  });
}

/** Tasks: deliveries, answers and workers. */
function workQueue(given: () => Given, ackWaitMs: number): void {
  describe('the work queue', () => {
    for (const part of [answersToTasks, workersOfTasks]) part(given, ackWaitMs);
  });
}

/** How a task is delivered, and what each answer does. */
function answersToTasks(given: () => Given): void {
  it('delivers in order, and an ack removes', async () => {
    const { log, takeTask, noTask, queued } = given();
    await log.append(taskMessage(1));
    await log.append(taskMessage(2));
    const first = await takeTask();
    const second = await takeTask();
    expect(second.streamSequence).toBeGreaterThan(first.streamSequence);
    await noTask();
    await first.answer('+ACK');
    await second.answer('+TERM');
    expect(await queued()).toBe(0);
  });

  it('delivers again after the ack wait, and at once after a nak, and counts the deliveries', async () => {
    const { log, takeTask } = given();
    await log.append(taskMessage(3, 'brief'));
    expect((await takeTask('brief')).deliveries).toBe(1);
    const second = await takeTask('brief');
    expect(second.deliveries).toBe(2);
    await second.answer('-NAK');
    const third = await takeTask('brief');
    expect(third.deliveries).toBe(3);
    await third.answer('+ACK');
  });

  it('holds a message back until its delay is over', async () => {
    const { log, takeTask } = given();
    await log.append(taskMessage(4));
    const first = await takeTask();
    const askedAt = performance.now();
    await first.answer(`-NAK ${JSON.stringify({ delay: nanos(700) })}`);
    const second = await takeTask();
    expect(performance.now() - askedAt).toBeGreaterThan(690);
    expect(second.deliveries).toBe(2);
    await second.answer('+ACK');
  });
}

/** Holders that are late, and workers. */
function workersOfTasks(given: () => Given, ackWaitMs: number): void {
  it('leaves a message with who says that it works', async () => {
    const { log, takeTask, noTask, queued } = given();
    await log.append(taskMessage(5, 'brief'));
    const held = await takeTask('brief');
    for (let i = 0; i < 4; i++) {
      await elapse(ackWaitMs / 3, 'the server counts the ack wait by its own clock');
      await held.answer('+WPI');
    }
    await noTask('brief');
    await held.answer('+ACK');
    expect(await queued()).toBe(0);
  });

  it('takes the late answer of a former holder for the message: an ack removes it, a nak delivers it again', async () => {
    const { log, takeTask, queued } = given();
    await log.append(taskMessage(6, 'brief'));
    const former = await takeTask('brief');
    const second = await takeTask('brief');
    await former.answer('-NAK');
    const third = await takeTask('brief');
    expect(third.deliveries).toBe(3);
    await former.answer('+ACK');
    expect(await queued()).toBe(0);
    await second.answer('+ACK');
    await third.answer('+ACK');
  });

  it('serves a worker: done is done, later comes again', async () => {
    const { log, queued } = given();
    const handled: string[] = [];
    const { promise: all, resolve } = Promise.withResolvers<void>();
    for (const n of [7, 8]) await log.append(taskMessage(n));
    const worker = log.tasks({
      aggregates: ['gpu'],
      concurrency: 4,
      ackWaitMs: LONG_SECONDS * 1000,
      async handle({ task, deliveries }) {
        if ('unreadable' in task) return { kind: 'dead' };
        handled.push(`${task.data.planId}/${deliveries}`);
        if (handled.length === 3) resolve();
        return task.data.planId === 'gpu-7' && deliveries === 1 ? { kind: 'later', delayMs: 300 } : { kind: 'done' };
      },
    });
    await all;
    await worker.stop();
    expect(handled.toSorted()).toEqual(['gpu-7/1', 'gpu-7/2', 'gpu-8/1']);
    expect(await queued()).toBe(0);
  });

  it('says so when there is no such consumer', async () => {
    const { nc } = given();
    const answer = await nc.request(`$JS.API.CONSUMER.INFO.${streamNames.migrations}.nobody`, '', {
      timeout: 1_000,
    });
    expect(answer.json()).toMatchObject({ error: { err_code: 10014 } });
  });
}

/** The durables of sinks. */
function sinks(given: () => Given): void {
  describe('the durable of a sink', () => {
    it('gives each message to one of its workers, in order, one at a time', async () => {
      const { server, log, nc } = given();
      await drained(nc, log);
      const names = Array.from({ length: 12 }, (_, i) => `order-${i}`);
      for (const name of names) await log.append(pausedEvent(name, 'web'));
      const { seen, atOnce } = await send(server, 2, names.length, () => ({ kind: 'done' }));
      expect(seen).toEqual(names.map((name) => `${name}/1`));
      expect(atOnce).toBe(1);
    });

    it('delivers nothing else before a delayed message', async () => {
      const { server, log, nc } = given();
      await drained(nc, log);
      for (const name of ['late-1', 'late-2']) await log.append(pausedEvent(name, 'web'));
      const { seen } = await send(server, 2, 4, (name, deliveries) =>
        name === 'late-1' && deliveries < 3 ? { kind: 'later', delayMs: 100 } : { kind: 'done' },
      );
      expect(seen).toEqual(['late-1/1', 'late-1/2', 'late-1/3', 'late-2/1']);
    });

    it('goes on where it was after its worker ended, and begins with what came after it was made', async () => {
      const { server, log, nc } = given();
      await drained(nc, log);
      await log.append(pausedEvent('kept', 'web'));
      expect((await send(server, 1, 1, () => ({ kind: 'handOver' }))).seen[0]).toBe('kept/1');
      expect((await send(server, 1, 1, () => ({ kind: 'done' }))).seen[0]).toMatch(/^kept\/([2-9]|\d\d+)$/);
      await log.provision({
        limits: { ...testLimits, logMaxBytes: 1024 * 1024 },
        replicas: 1,
        aggregates: ['gpu', 'web'],
        ackWaitSeconds: LONG_SECONDS,
        sinks: ['later'],
      });
      const info = await nc.request(`$JS.API.CONSUMER.INFO.${streamNames.log}.notify-later`, '', {
        timeout: PATIENCE_MS,
      });
      expect(info.json()).toMatchObject({ num_pending: 0 });
    });
  });
}

/** Full streams, rollups, deleted streams and ids. */
function limits(given: () => Given): void {
  describe('a full stream', () => {
    it('refuses what has no room', async () => {
      const { log, publish } = given();
      const body = JSON.stringify({ pad: 'x'.repeat(100_000) });
      for (;;) {
        const { error } = await publish('kronos.controls.full', body);
        if (error === undefined) continue;
        expect(error.err_code).toBe(10077);
        break;
      }
      await expect(log.append(pausedEvent('full', 'gpu', 'x'.repeat(100_000)))).rejects.toThrow(LogFull);
    });
  });

  it('a rollup keeps the last message of its subject alone', async () => {
    const { log, publish } = given();
    const subject = '$O.kronos-details.M.contract';
    await publish(subject, 'old');
    const before = (await log.usage('OBJ_kronos-details')).messages;
    await publish(subject, 'new', { 'Nats-Rollup': 'sub' });
    expect((await log.usage('OBJ_kronos-details')).messages).toBe(before);
  });

  it('a stream that is deleted ends its readers, and one in its place begins at 1 and knows no ids', async () => {
    const { nc, publish, pull } = given();
    const name = 'CONTRACT';
    const api = async (call: string, body: object = {}) =>
      (await nc.request(`$JS.API.${call}`, JSON.stringify(body), { timeout: 2_000 })).json();
    const config = { name, subjects: ['contract.*'], storage: 'memory', duplicate_window: nanos(60_000_000) };
    await api(`STREAM.CREATE.${name}`, config);
    const id = { 'Nats-Msg-Id': 'one' };
    expect((await publish('contract.x', '{}')).seq).toBe(1);
    expect((await publish('contract.x', '{}', id)).seq).toBe(2);
    await api(`CONSUMER.CREATE.${name}.reader`, {
      stream_name: name,
      config: { name: 'reader', ack_policy: 'none', deliver_policy: 'new', inactive_threshold: nanos(9_000) },
    });
    const consumer = async () => (await api(`CONSUMER.INFO.${name}.reader`)) as { readonly num_waiting?: number };
    const { next, stop } = pull(`${name}.reader`, { batch: 5, expires: nanos(60_000) });
    // A request that has not reached the consumer when the stream goes is never answered.
    await until(async () => (await consumer()).num_waiting === 1);
    expect(await api(`STREAM.DELETE.${name}`)).toMatchObject({ success: true });
    expect((await next()).headers?.code).toBe(409);
    stop();
    expect(await api(`STREAM.INFO.${name}`)).toMatchObject({ error: { err_code: 10059 } });
    await expect(nc.request('contract.x', '{}', { timeout: 1_000 })).rejects.toThrow();
    await api(`STREAM.CREATE.${name}`, config);
    expect(await publish('contract.x', '{}', id)).toMatchObject({ seq: 1 });
  });

  it('a task that is published again beyond the window of ids is another message', async () => {
    const { publish, queued } = given();
    expect((await publish(TASKS, 'x', { 'Nats-Msg-Id': 'a' })).duplicate).not.toBe(true);
    expect((await publish(TASKS, 'x', { 'Nats-Msg-Id': 'b' })).duplicate).not.toBe(true);
    expect(await queued()).toBe(2);
  });
}

/** Workers of one sink, each with a connection of its own; `answer` says how a delivery ends. */
async function send(
  server: ContractServer,
  count: number,
  expected: number,
  answer: (name: string, deliveries: number) => TaskOutcome,
): Promise<{ readonly seen: readonly string[]; readonly atOnce: number }> {
  const seen: string[] = [];
  let now = 0;
  let atOnce = 0;
  const { promise: all, resolve } = Promise.withResolvers<void>();
  const logs = await Promise.all(Array.from({ length: count }, (_, i) => server.connect(`sender-${i}`)));
  const workers = logs.map((each) =>
    each.sink({
      stream: streamNames.log,
      sink: 'chat',
      async handle({ message, problem, deliveries }) {
        now++;
        atOnce = Math.max(atOnce, now);
        await Promise.resolve();
        now--;
        const name = problem ?? (message.type === 'aggregate.paused' ? message.data.commandId : message.type);
        const outcome = answer(name, deliveries);
        seen.push(`${name}/${deliveries}`);
        if (seen.length >= expected) resolve();
        return outcome;
      },
    }),
  );
  await all;
  for (const worker of workers) await worker.stop();
  for (const each of logs) await each.close();
  return { seen, atOnce };
}

/** Takes what earlier tests left. */
async function drained(nc: NatsConnection, log: EventLog): Promise<void> {
  const info = async () =>
    (await nc.request(`$JS.API.CONSUMER.INFO.${streamNames.log}.notify-chat`, '', { timeout: PATIENCE_MS })).json() as {
      readonly num_pending: number;
      readonly num_ack_pending: number;
    };
  const worker = log.sink({
    stream: streamNames.log,
    sink: 'chat',
    handle: async () => ({ kind: 'done' }),
  });
  await until(async () => {
    const { num_pending, num_ack_pending } = await info();
    return num_pending === 0 && num_ack_pending === 0;
  });
  await worker.stop();
}
