import { elapse, until } from '@kronos/clock/testing';
import { bucketNames, families, streamDefinitions, streamNames, subject } from '@kronos/contracts';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, nanos, PermissionViolationError } from '@nats-io/transport-node';
import { expect, test } from 'vitest';
import { all, failure, take } from '../../testing/async.ts';
import { actor, emptySnapshot, pausedEvent, startedEvent, taskMessage, testLimits } from '../../testing/messages.ts';
import { onEachServer } from '../../testing/suite.ts';
import type { EventLog } from '../index.ts';
import type { NatsServer } from '../local/server.ts';
import { bucketStream } from '../wire/definitions.ts';
import { NatsRefused } from '../wire/errors.ts';
import { accountsConfiguration, appends, loginVariable, permissionsOf, SYSTEM_USER, users } from './permissions.ts';

const names = Object.keys(users);
const password = (user: string) => `"secret ${user}"`;
const env = Object.fromEntries(
  [...names, SYSTEM_USER].map((user) => [loginVariable(user, 'password'), password(user)]),
);
const login = (user: string) => ({ user, password: `secret ${user}` });

type Act = { readonly publish: string } | { readonly subscribe: string };

/** Which of the acts the server lets this user do. */
async function allowed(server: NatsServer, user: string, acts: readonly Act[]): Promise<Set<Act>> {
  const { user: name, password: pass } = login(user);
  const nc = await connect({ servers: server.url, user: name, pass });
  const refused: string[] = [];
  const watching = (async () => {
    for await (const status of nc.status())
      if (status.type === 'error' && status.error instanceof PermissionViolationError)
        refused.push(`${status.error.operation} ${status.error.subject}`);
  })();
  for (const act of acts)
    if ('publish' in act) nc.publish(act.publish, '{}');
    else nc.subscribe(act.subscribe, { callback: () => undefined });
  await nc.flush();
  await nc.close();
  await watching;
  const said = (act: Act) => ('publish' in act ? `publish ${act.publish}` : `subscription ${act.subscribe}`);
  return new Set(acts.filter((act) => !refused.includes(said(act))));
}

/** Matches a subject with a permission like nats-server. */
function matches(pattern: string, subject: string): boolean {
  const [wanted, given] = [pattern.split('.'), subject.split('.')];
  return wanted.at(-1) === '>'
    ? given.length >= wanted.length && wanted.slice(0, -1).every((token, i) => token === '*' || token === given[i])
    : given.length === wanted.length && wanted.every((token, i) => token === '*' || token === given[i]);
}

const publish = (s: string): Act => ({ publish: s });
const everyStream = [...Object.values(streamNames), ...Object.values(bucketNames).map(bucketStream)];

/** Everything that somebody may do, and what nobody may. */
const acts = {
  append: new Map(
    families.flatMap((family) => (family === 'services' ? [] : [[family, publish(subject(family, 'gpu'))]])),
  ),
  report: new Map(Object.keys(users).map((user) => [user, publish(subject('services', `${user}/host:1`))])),
  object: new Map(Object.values(bucketNames).map((bucket) => [bucket, publish(`$O.${bucket}.C.x`)])),
  consume: new Map(everyStream.map((s) => [s, publish(`$JS.API.CONSUMER.CREATE.${s}.x`)])),
  forget: new Map(everyStream.map((s) => [s, publish(`$JS.API.CONSUMER.DELETE.${s}.x`)])),
  message: new Map(everyStream.map((s) => [s, publish(`$JS.API.STREAM.MSG.GET.${s}`)])),
  next: publish(`$JS.API.CONSUMER.MSG.NEXT.${streamNames.migrations}.tasks-gpu`),
  ack: publish(`$JS.ACK.${streamNames.migrations}.tasks-gpu.1.1.1.1.0`),
  ackV2: publish(`$JS.ACK.hub.AbC.${streamNames.migrations}.tasks-gpu.1.1.1.1.0`),
  ackSink: publish(`$JS.ACK.${streamNames.log}.notify-chat.1.1.1.1.0`),
  ackSinkV2: publish(`$JS.ACK.hub.AbC.${streamNames.alarms}.notify-chat.1.1.1.1.0`),
  sink: publish(`$JS.API.CONSUMER.INFO.${streamNames.log}.notify-chat`),
  durable: publish(`$JS.API.CONSUMER.INFO.${streamNames.migrations}.tasks-gpu`),
  create: publish(`$JS.API.STREAM.CREATE.${streamNames.log}`),
};
const never: Act[] = [
  ...everyStream.flatMap((s) => [
    publish(`$JS.API.STREAM.DELETE.${s}`),
    publish(`$JS.API.STREAM.PURGE.${s}`),
    publish(`$JS.API.STREAM.MSG.DELETE.${s}`),
    publish(`$JS.API.STREAM.RESTORE.${s}`),
    publish(`$JS.API.STREAM.SNAPSHOT.${s}`),
  ]),
  publish(`$JS.API.CONSUMER.DELETE.${streamNames.migrations}.tasks-gpu`),
  publish('kronos.other.gpu'),
  publish('kronos.results.gpu.more'),
  publish('$SYS.REQ.SERVER.PING'),
  { subscribe: 'kronos.>' },
  { subscribe: '>' },
  { subscribe: '$JS.>' },
  { subscribe: '_INBOX.>' },
];

/** A worker that does not run for this time loses what it holds. */
const ACK_WAIT_SECONDS = 6;

onEachServer('permissions', { concurrent: true }, (bench) => {
  const started = async (more = '') => {
    const server = await bench.server({ config: `${accountsConfiguration('password')}\n${more}`, env });
    const as = (user: string) => bench.connect(server, { name: user, ...login(user) });
    const provisioner = await as('provisioner');
    await provisioner.provision({
      limits: testLimits,
      replicas: 1,
      aggregates: ['gpu'],
      ackWaitSeconds: ACK_WAIT_SECONDS,
      sinks: ['chat'],
    });
    return { server, as, provisioner };
  };

  test('each user may do what its row says, and nothing else', async () => {
    const { server } = await started();
    for (const [user, rights] of Object.entries(users)) {
      const others = names.filter((n) => n !== user).map((n): Act => ({ subscribe: `_INBOX_${n}.>` }));
      const own: Act = { subscribe: `_INBOX_${user}.>` };
      const wanted = new Set<Act | undefined>([
        own,
        ...appends(rights).map((family) => (family === 'services' ? acts.report.get(user) : acts.append.get(family))),
        ...rights.puts.map((bucket) => acts.object.get(bucket)),
        ...[...rights.reads, ...rights.gets.map(bucketStream)].map((s) => acts.message.get(s)),
        ...rights.reads
          .filter((s) => s !== streamNames.migrations)
          .flatMap((s) => [acts.consume.get(s), acts.forget.get(s)]),
        ...rights.puts.map((bucket) => acts.message.get(bucketStream(bucket))),
        ...(rights.tasks === 'none' ? [] : [acts.durable]),
        ...(rights.tasks === 'serve' ? [acts.next, acts.ack, acts.ackV2] : []),
        ...(rights.notifies === undefined ? [] : [acts.sink]),
        ...(rights.notifies === 'serve' ? [acts.ackSink, acts.ackSinkV2] : []),
        ...(rights.provisions === true
          ? [
              acts.create,
              acts.sink,
              ...[streamNames.migrations, streamNames.log, streamNames.alarms].map((s) => acts.consume.get(s)),
            ]
          : []),
      ]);
      const tried = [
        own,
        ...others,
        ...never,
        ...[acts.append, acts.report, acts.object, acts.consume, acts.forget, acts.message].flatMap((group) => [
          ...group.values(),
        ]),
        ...[acts.next, acts.ack, acts.ackV2, acts.ackSink, acts.ackSinkV2, acts.sink, acts.durable, acts.create],
      ];
      const may = await allowed(server, user, tried);
      expect([...may].map((act) => JSON.stringify(act)).sort(), user).toEqual(
        [...wanted].map((act) => JSON.stringify(act)).sort(),
      );
    }
  });

  test("a subject of another user is refused, to publish and to subscribe, unless one's own row has it too", async () => {
    const { server } = await started();
    const mine = new Map(Object.entries(users).map(([user, rights]) => [user, permissionsOf(user, rights)]));
    // One subject of each right that anybody has, and each way to listen to it.
    const subjects = new Set(
      [...mine.values()].flatMap(({ publish: may }) =>
        may.map((pattern) => pattern.replaceAll('*', 'gpu').replace(/>$/, 'gpu.1.1.1.1.0')),
      ),
    );
    const acts = [...subjects].flatMap((s): Act[] => [publish(s), { subscribe: s }]);
    for (const [user, { publish: patterns }] of mine) {
      const may = await allowed(server, user, acts);
      const wanted = [...subjects].filter((s) => patterns.some((pattern) => matches(pattern, s)));
      expect([...may].map((act) => JSON.stringify(act)).sort(), user).toEqual(
        wanted.map((s) => JSON.stringify(publish(s))).sort(),
      );
      expect(wanted.length, user).toBeLessThan(subjects.size);
    }
  });

  const roles: Record<string, (log: EventLog) => Promise<void>> = {
    scorer: async (log) => {
      await log.verify({
        streams: [streamNames.snapshots, streamNames.log, streamNames.inventory],
        buckets: [bucketNames.snapshots],
        taskConsumers: [],
      });
      const taken = await log.putSnapshot(emptySnapshot('gpu-1'), {
        by: { ...actor, service: 'scorer' },
        causationId: null,
      });
      expect(await log.getSnapshot(taken.message)).toEqual(emptySnapshot('gpu-1'));
      expect(await log.lastSequenceOf('snapshots', 'gpu')).toBe(1);
      expect(await all(log.tail({ families: ['controls', 'inventory'], since: 'all', end: true }))).toEqual([]);
    },
    planner: async (log) => {
      await log.verify({
        streams: [streamNames.log, streamNames.snapshots, streamNames.migrations],
        buckets: [bucketNames.snapshots, bucketNames.details],
        taskConsumers: ['gpu'],
      });
      const [delivered] = await take(log.snapshots({ aggregates: ['gpu'] }), 1);
      if (delivered?.problem === undefined && delivered !== undefined) await log.getSnapshot(delivered.message);
      const view = await log.view({ initial: 0, evolve: (n) => n + 1, snapshot: (n) => n });
      await log.append(startedEvent(1), { expectedLastSequence: view.at().expectedOn(subject('results', 'gpu')) });
      await log.append(startedEvent(2), { expectedLastSequence: 0 }).catch(() => undefined);
      await view.refresh();
      await log.append(taskMessage(1));
      const ref = await log.objects.put(bucketNames.details, 'why', new TextEncoder().encode('because'));
      await log.objects.get(ref);
      expect((await log.usage(streamNames.log)).maxBytes).toBe(testLimits.logMaxBytes);
    },
    executor: async (log) => {
      await log.verify({
        streams: [streamNames.log, streamNames.migrations],
        buckets: [],
        taskConsumers: ['gpu'],
        ackWaitSeconds: ACK_WAIT_SECONDS,
      });
      const view = await log.view({ initial: 0, evolve: (n) => n + 1, snapshot: (n) => n });
      let done = 0;
      const worker = log.tasks({
        aggregates: ['gpu'],
        concurrency: 1,
        ackWaitMs: ACK_WAIT_SECONDS * 1_000,
        handle: async ({ deliveries, lost }) => {
          // Longer than the ack wait: the heartbeats are heard.
          if (deliveries === 2)
            await elapse(ACK_WAIT_SECONDS * 1_000 + 500, 'the server counts the ack wait by its own clock');
          expect(lost.aborted).toBe(false);
          if (deliveries === 1) return { kind: 'later', delayMs: 10 };
          done++;
          return { kind: 'done' };
        },
      });
      await until(() => done === 1);
      expect(worker.healthy().ok).toBe(true);
      await log.append(startedEvent(3), { expectedLastSequence: view.at().expectedOn(subject('results', 'gpu')) });
      await log.append(taskMessage(2));
      await worker.stop();
    },
    ledger: async (log) => {
      const events = (await all(log.replay())).length;
      expect(events).toBeGreaterThan(0);
      await log.objects.put(bucketNames.checkpoints, 'state', new TextEncoder().encode('{}'));
      await all(log.tail({ families: [...families], since: 'all', end: true }));
      await log.verify({ streams: [streamNames.alarms], buckets: [], taskConsumers: [], sinks: ['chat'] });
      const sent: number[] = [];
      const worker = log.sink({
        stream: streamNames.log,
        sink: 'chat',
        handle: async ({ sequence }) => {
          sent.push(sequence);
          return { kind: 'done' };
        },
      });
      await until(() => sent.length === events);
      await worker.stop();
    },
    operator: async (log) => {
      await log.append(pausedEvent('1'));
      expect((await all(log.tail({ families: [...families], since: 'all', end: true }))).length).toBeGreaterThan(0);
    },
    console: async (log) => {
      await log.readClock();
      await log.append(pausedEvent('3'));
      expect((await all(log.replay())).length).toBeGreaterThan(0);
    },
    viewer: async (log) => {
      expect((await all(log.tail({ families: [...families], since: 'all', end: true }))).length).toBeGreaterThan(0);
      const error = await failure(log.append(pausedEvent('2')));
      expect(error).toBeInstanceOf(NatsRefused);
      expect(String(error)).toContain('viewer may not publish on kronos.controls.gpu');
      expect(await failure(log.objects.put(bucketNames.details, 'x', new Uint8Array(1)))).toBeInstanceOf(NatsRefused);
      const limits = { limits: testLimits, replicas: 1, aggregates: ['more'] };
      expect(await failure(log.provision(limits))).toBeInstanceOf(NatsRefused);
    },
  };

  const serve = async (as: (user: string) => Promise<EventLog>, server: NatsServer) => {
    for (const [user, role] of Object.entries(roles)) {
      const seen = server.logText().length;
      const log = await as(user);
      await role(log);
      await log.close();
      if (user !== 'viewer') expect(server.logText().slice(seen), user).not.toMatch(/Violation/i);
    }
  };

  test('the restorer puts a copy of the log and its tasks onto an empty server', async () => {
    const before = await started();
    const operator = await before.as('operator');
    await operator.append(pausedEvent('1'));
    const copy = await all((await before.as('viewer')).copy());
    const after = await started();
    const restorer = await after.as('restorer');
    expect(await restorer.restore(copy)).toEqual({ restored: 1, skipped: 0 });
    await restorer.append(taskMessage(1));
    expect(await all(restorer.replay())).toMatchObject([{ event: { id: pausedEvent('1').id } }]);
    expect(after.server.logText()).not.toMatch(/Violation/i);
  });

  test('each service can do its work under its own user', async () => {
    const { server, as } = await started();
    await serve(as, server);
  });

  test.runIf(Number(bench.found.version.split('.')[1]) >= 14)(
    'also when acks take the longer form of subjects',
    async () => {
      const { server, as } = await started('feature_flags { js_ack_fc_v2: true }');
      await serve(as, server);
    },
  );

  test("another user's inbox is refused, with the server's words and the option to set", async () => {
    const { server, as } = await started();
    await as('operator');
    const viewer = await bench.connect(server, { name: 'cli', inboxPrefix: '_INBOX_operator', ...login('viewer') });
    for (const act of [() => viewer.lastSequence(streamNames.log), () => all(viewer.replay({ from: 1, to: 100 }))]) {
      const error = await failure(act());
      expect(error).toBeInstanceOf(NatsRefused);
      expect(String(error)).toMatch(/Permissions Violation for Subscription to "_INBOX_operator\..*inbox_prefix/);
    }
  });

  test("what is refused is reported with the server's words", async () => {
    const { as } = await started();
    const log = await as('viewer');
    const words = /Permissions Violation for Publish to "kronos\.controls\.gpu"/;
    expect(String(await failure(log.append(pausedEvent('1'))))).toMatch(words);
  });

  test('a reader cannot fill the server with consumers', async () => {
    const { server } = await started();
    const { user, password: pass } = login('viewer');
    const nc = await connect({ servers: server.url, user, pass, inboxPrefix: '_INBOX_viewer' });
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const limit = streamDefinitions(testLimits).find(({ name }) => name === streamNames.log)?.maxConsumers ?? 0;
    const config = { ack_policy: 'none', mem_storage: true } as const;
    const make = (i: number) =>
      jsm.consumers.add(streamNames.log, { ...config, name: `x${i}`, inactive_threshold: nanos(60_000) });
    // One is the durable of the sink.
    await Promise.all(Array.from({ length: limit - 1 }, (_, i) => make(i)));
    expect(await failure(make(limit))).toMatchObject({ code: 10026 });
    await nc.close();
  });

  test('a durable that one may not pull from shows', async () => {
    const { as } = await started();
    const log = await as('planner');
    const worker = log.tasks({
      aggregates: ['gpu'],
      concurrency: 1,
      ackWaitMs: 2_000,
      handle: async () => ({ kind: 'done' }),
    });
    await until(() => !worker.healthy().ok);
    expect(worker.healthy().detail).toContain('planner may not take tasks');
  });

  test('a stream that one may not read ends the reading with a clear error', async () => {
    const { as } = await started();
    const log = await as('executor');
    expect(await failure(all(log.tail({ families: ['snapshots'], since: 'all', end: true })))).toBeInstanceOf(
      NatsRefused,
    );
  });
});
