import { type LogGuard, openGuard } from '@kronos/checkpoints';
import { type Clock, systemClock } from '@kronos/clock';
import { manualClock, until } from '@kronos/clock/testing';
import { checkClock } from '@kronos/connect';
import {
  type Actor,
  capacityPlanId,
  cellsPlanId,
  commandSnapshotId,
  defaultEngineOptions,
  type EngineOptions,
  type LogEvent,
  type LogEventOf,
  type MigrationRequested,
  messageId,
  type Snapshot,
  taskId,
} from '@kronos/contracts';
import { type Decider, decideHere, digest, optionsOfDecision, planRequest, runCycle, runProposal } from '@kronos/cycle';
import { AppendConflict, BadObject, connectEventLog, type EventLog, type LogView, natsWire } from '@kronos/eventlog';
import { commandEvent, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { cellsSettings, type Sketch, snapshotOf } from '@kronos/placement/testing';
import { aggregateState, createFolder, folding, type LogState, wasProposed } from '@kronos/projections';
import { createLogger } from '@kronos/telemetry';
import { trace } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPlanner, type Planner } from './loop.ts';

const AGGREGATE = 'gpu';
const by: Actor = { service: 'scorer', instance: 's1', version: 'test' };
const options: EngineOptions = {
  ...defaultEngineOptions,
  dryRun: false,
  cooldownSeconds: 0,
  settleSeconds: 0,
  instanceCooldownSeconds: 0,
};

/** Two hosts far apart, four VMs on the first: two moves bring them level. */
const snapshot = (cycle: number, more: Pick<Sketch, 'hosts' | 'vms'> = { hosts: {}, vms: {} }): Snapshot => ({
  ...snapshotOf({
    time: new Date().toISOString(),
    policies: { cpu: { threshold: 0.1, maxMigrationsPerCycle: 5 } },
    hosts: { h1: {}, h2: {}, ...more.hosts },
    vms: { ...Object.fromEntries([...'abcd'].map((id) => [id, { host: 'h1', w: { cpu: 0.2 } }])), ...more.vms },
    snapshot: { intervalSeconds: 60 },
  }),
  id: `gpu-${cycle}`,
  aggregate: AGGREGATE,
  cycle,
});

/** And a disabled host whose VMs are all stuck: the decision is over 512 KiB, so it goes to the object store first. */
const large = (cycle: number): Snapshot =>
  snapshot(cycle, {
    hosts: { h3: { disabled: true } },
    vms: Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [`${i}-${'v'.repeat(300)}`, { host: 'h3', set: { locked: true } }]),
    ),
  });

const provision = (log: EventLog, ...aggregates: string[]) =>
  log.provision({
    limits: { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 64 * 1024 ** 2, logMaxBytes: 64 * 1024 ** 2 },
    replicas: 1,
    aggregates: aggregates.length > 0 ? aggregates : [AGGREGATE],
  });

interface More {
  /** How far the planner's clock is ahead, ms. */
  readonly lateMs?: () => number;
  /** Methods in place of those of its log. */
  readonly wrap?: (log: EventLog) => Partial<EventLog>;
  /** It checks its clock against the NATS server's. */
  readonly checked?: boolean;
  /** Options by aggregate in scope. */
  readonly ofAggregate?: Readonly<Record<string, Partial<EngineOptions>>>;
}

describe('planners on a real nats-server', () => {
  let server: NatsServer;
  let log: EventLog;
  let view: LogView<LogState>;
  let open: { name: string; planner: Planner; close: () => Promise<void>; done: Promise<void> }[];
  /** Why planners may leave a snapshot undecided in this test. */
  let expected: Set<string>;
  /** Rejects when a planner ends by itself or leaves a snapshot undecided for another reason: then nothing is worth waiting for. */
  let failed: PromiseWithResolvers<never>;
  /** Of all planners. */
  let decides: Decider;
  /** Time that their decisions add to the planners' own monotonic clocks, ms. */
  let workedMs: number;
  /** The share of a time that their own timers wait. */
  let waitShare: number;
  let guard: LogGuard | null;

  beforeEach(async () => {
    server = await startNatsServer();
    log = await connectEventLog({ servers: [server.url], name: 'test' });
    await provision(log);
    view = await log.view(folding());
    open = [];
    expected = new Set(['already-decided', 'lost-race']);
    failed = Promise.withResolvers();
    decides = decideHere;
    workedMs = 0;
    waitShare = 1;
    guard = null;
    failed.promise.catch(() => undefined);
  });
  afterEach(async () => {
    for (const { close } of open) await close();
    guard?.close();
    await view.close();
    await log.close();
    await server.stop();
  });

  /** A planner with a connection and a view of its own, as each process has. */
  async function planner(
    name: string,
    set: Partial<EngineOptions> = {},
    { lateMs = () => 0, wrap, checked = false, ofAggregate = { [AGGREGATE]: {} } }: More = {},
  ) {
    const now = () => Date.now() + lateMs();
    const own: Clock = {
      ...systemClock,
      now,
      monotonic: () => systemClock.monotonic() + workedMs,
      read: () => ({ wall: now(), mono: own.monotonic() }),
    };
    const connected = await connectEventLog({ servers: [server.url], name }, {}, { ...natsWire, clock: own });
    const ownLog: EventLog = Object.assign(Object.create(connected) as EventLog, wrap?.(connected));
    const notDecided: string[] = [];
    const ownView = await ownLog.view(folding());
    const by: Actor = { service: 'planner', instance: name, version: 'test' };
    const problems: (string | null)[] = [];
    const watched = checked
      ? await checkClock({
          log: ownLog,
          view: ownView,
          by,
          clock: own,
          metrics: { clockSkew: { set: () => undefined } },
          maxSkewMs: 5000,
          onProblem(problem) {
            problems.push(problem);
            if (problem === null) open.find((one) => one.name === name)?.planner.lookAgain();
          },
        })
      : null;
    const created = createPlanner({
      log: ownLog,
      view: ownView,
      ...(guard !== null && { guard }),
      aggregates: Object.keys(ofAggregate),
      optionsOf: (aggregate) => ({ ...options, ...set, ...ofAggregate[aggregate] }),
      decider: decides,
      by,
      logger: createLogger({ service: 'planner', version: 'test', level: 'silent' }),
      tracer: trace.getTracer('test'),
      meters: {
        decided() {},
        compared() {},
        notDecided(_, reason) {
          notDecided.push(reason);
          if (!expected.has(reason)) failed.reject(new Error(`${name} did not decide a snapshot: ${reason}`));
        },
        dispatched() {},
      },
      clock: { ...own, after: (ms, act) => own.after(ms * waitShare, act) },
      clockProblem: watched?.problem ?? (() => null),
    });
    let closing = false;
    const done = created.run();
    done.then(() => closing || failed.reject(new Error(`${name} ended by itself`)), failed.reject);
    const close = async () => {
      closing = true;
      watched?.stop();
      await created.stop();
      await ownView.close();
      await ownLog.close();
      await done;
    };
    open.push({ name, planner: created, close, done });
    return { close, notDecided, problems, yielding: created.yielding };
  }

  const closeAll = async (): Promise<void> => {
    for (const { close } of open.splice(0)) await close();
  };
  /** A planner releases a plan of the first snapshot, and ends. */
  async function releasedBy(name: string, set: Partial<EngineOptions> = {}): Promise<void> {
    await planner(name, set);
    await publish(1);
    await untilDispatched('gpu-1');
    await closeAll();
  }

  async function foldedTo(sequence: number): Promise<LogState> {
    const folder = createFolder();
    for await (const stored of log.replay()) if (stored.sequence <= sequence) folder.apply(stored);
    return folder.snapshot();
  }

  const events = async (): Promise<LogEvent[]> => {
    const all: LogEvent[] = [];
    for await (const { event } of log.replay()) if (event.type !== 'unreadable') all.push(event);
    return all;
  };
  const decisions = async () => (await events()).filter((e) => e.type === 'cycle.decided');
  const state = () => aggregateState(view.at().state, AGGREGATE);

  /** Waits until the folded log fulfils the condition. */
  async function untilFolded(condition: () => boolean, of = view): Promise<void> {
    const changes = of.changes();
    const folded = async (): Promise<void> => {
      if (condition()) return;
      for await (const _ of changes) if (condition()) return;
    };
    await Promise.race([folded(), failed.promise]);
  }
  const untilDispatched = (planId: string) => untilFolded(() => state().plans.get(planId)?.dispatched != null);
  const untilDecided = (cycle: number) => untilFolded(() => state().decided?.cycle === cycle);
  /** Waits until a planner has said why it does not decide a snapshot. */
  const untilRefused = (notDecided: readonly string[], reason: string) =>
    Promise.race([until(() => notDecided.includes(reason)), failed.promise]);

  const publish = (cycle: number, of: Snapshot = snapshot(cycle)) => log.putSnapshot(of, { by, causationId: null });
  const released = async () => (await decisions()).filter((d) => d.data.release === 'released');

  const evacuating: Partial<EngineOptions> = { evacuateDisabledHosts: true };

  /** A log whose next store of a large decision waits, once it has been asked for, until `go` is called. */
  function heldStore() {
    const asked = Promise.withResolvers<void>();
    const going = Promise.withResolvers<void>();
    const wrap = (real: EventLog): Partial<EventLog> => ({
      objects: {
        ...real.objects,
        get: (ref) => real.objects.get(ref),
        async put(...args) {
          asked.resolve();
          await going.promise;
          return real.objects.put(...args);
        },
      },
    });
    return { wrap, asked: asked.promise, go: going.resolve };
  }

  const paused = () => commandEvent('aggregate.paused', AGGREGATE, 'p1', {});

  it('two planners never release on the same state: the one whose decision waited for the object store gives up', async () => {
    const held = heldStore();
    const slow = await planner('slow', evacuating, { wrap: held.wrap });
    await publish(1, large(1));
    await held.asked;
    await publish(2);
    await planner('fast', evacuating);
    await untilDispatched('gpu-2');
    held.go();
    await slow.close();
    expect((await released()).map((d) => d.data.snapshotId)).toEqual(['gpu-2']);
  });

  it('each aggregate is decided by its own options, which are on the log before its first decision', async () => {
    const other = 'general';
    await provision(log, AGGREGATE, other);
    const own: Record<string, Partial<EngineOptions>> = {
      [AGGREGATE]: { dryRun: true, planTtlSeconds: 77 },
      [other]: {},
    };
    await planner('p', {}, { ofAggregate: own });
    await publish(1);
    await publish(1, { ...snapshot(1), id: `${other}-1`, aggregate: other });
    await untilFolded(() => [AGGREGATE, other].every((name) => aggregateState(view.at().state, name).decided !== null));
    for (const aggregate of [AGGREGATE, other]) {
      const [configured, decided] = (await events()).filter(
        (event) => event.aggregate === aggregate && event.type !== 'plan.dispatched',
      );
      const expected = { ...options, ...own[aggregate] };
      expect(configured).toMatchObject({ type: 'planner.configured', data: { options: expected } });
      expect(decided).toMatchObject({
        type: 'cycle.decided',
        data: { release: expected.dryRun ? 'dryRun' : 'released', digests: { options: digest(expected) } },
      });
    }
  });

  it('outside its window a plan is recorded and not released; other planners release it once the window is gone', async () => {
    const blackouts = ['2020-01-01/2099-12-31'];
    const blocked = await planner('blocked', { blackouts });
    await publish(1);
    await untilFolded(() => state().decided?.snapshotId === 'gpu-1');
    expect((await decisions()).map(({ data }) => [data.release, data.reason.code, data.plan?.window])).toEqual([
      ['none', 'outside-window', { open: false, until: '2100-01-01T00:00:00.000Z' }],
    ]);
    expect(state().plans.size).toBe(0);
    await blocked.close();
    await planner('open');
    await publish(2);
    await untilDispatched('gpu-2');
    expect((await released()).map((d) => d.data.snapshotId)).toEqual(['gpu-2']);
  });

  it('a decision is appended with the expectation of the state that it was made on, whatever is folded meanwhile', async () => {
    const held = heldStore();
    const refused = Promise.withResolvers<unknown>();
    // Without its veto, only the expectation stands between a late decision and the log.
    const wrap = (real: EventLog): Partial<EventLog> => ({
      ...held.wrap(real),
      async append(message, given = {}) {
        const { veto: _, ...more } = given;
        try {
          return await real.append(message, more);
        } catch (error) {
          if (message.type === 'cycle.decided') refused.resolve(error);
          throw error;
        }
      },
    });
    await planner('slow', evacuating, { wrap });
    await publish(1, large(1));
    await held.asked;
    await publish(2);
    await planner('fast', evacuating);
    await untilDecided(2);
    held.go();
    expect(await refused.promise).toBeInstanceOf(AppendConflict);
    expect((await released()).map((d) => d.data.snapshotId)).toEqual(['gpu-2']);
  });

  it('a pause that is on the log before the decision is appended stops its plan', async () => {
    const held = heldStore();
    await planner('p1', evacuating, { wrap: held.wrap });
    await publish(1, large(1));
    await held.asked;
    const { sequence } = await log.append(paused());
    held.go();
    await untilDecided(1);
    const [decided] = await decisions();
    expect(decided?.data).toMatchObject({ outcome: 'gated', release: 'none', reason: { code: 'paused' } });
    expect(decided?.data.basis).toBeGreaterThanOrEqual(sequence);
  });

  it('a snapshot that became too old while its decision was stored is not decided', async () => {
    expected.add('too-old');
    const held = heldStore();
    let lateMs = 0;
    const { notDecided } = await planner('p1', evacuating, { lateMs: () => lateMs, wrap: held.wrap });
    await publish(1, large(1));
    await held.asked;
    lateMs = 120_000;
    held.go();
    await untilRefused(notDecided, 'too-old');
    expect(await decisions()).toEqual([]);
  });

  it('a snapshot that becomes too old while its decision waits for NATS is not decided', async () => {
    expected.add('too-old');
    let lateMs = 0;
    const wrap = (real: EventLog): Partial<EventLog> => ({
      async append(message, more) {
        // As if the connection had been away for two minutes.
        if (message.type === 'cycle.decided') lateMs = 120_000;
        return real.append(message, more);
      },
    });
    const { notDecided } = await planner('p1', {}, { lateMs: () => lateMs, wrap });
    await publish(1);
    await untilRefused(notDecided, 'too-old');
    expect(await decisions()).toEqual([]);
  });

  it('after a decision that took longer than two intervals the next ones do less work, which is on the log: they end in time', async () => {
    const FULL_MS = 150_000;
    let lateMs = 0;
    decides = {
      ...decideHere,
      async cycle(input) {
        const tookMs = (FULL_MS * input.options.searchWorkLimit) / options.searchWorkLimit;
        lateMs += tookMs;
        workedMs += tookMs;
        return decideHere.cycle(input);
      },
    };
    expected.add('too-old');
    const odd = { lateMs: () => lateMs };
    const { notDecided } = await planner('p1', {}, odd);
    await publish(1);
    await untilRefused(notDecided, 'too-old');
    // No decision may be lost again.
    expected.delete('too-old');
    lateMs = 0;
    const taken = snapshot(2);
    await publish(2, taken);
    await untilDispatched('gpu-2');
    const [decided, ...more] = await decisions();
    expect(more).toEqual([]);
    expect(decided?.data).toMatchObject({ snapshotId: 'gpu-2', release: 'released' });
    // The test itself takes some time, too.
    expect(decided?.data.searchWorkLimit).toBeLessThanOrEqual(options.searchWorkLimit / 5);
    if (decided === undefined) throw new Error('there is no decision');
    const basis = await foldedTo(decided.data.basis);
    const again = runCycle({
      snapshot: taken,
      state: aggregateState(basis, AGGREGATE),
      options: optionsOfDecision(options, decided.data),
    });
    expect({ ...again.digests, snapshot: decided.data.digests.snapshot }).toEqual(decided.data.digests);

    // Nor after a restart.
    await closeAll();
    lateMs = 0;
    await planner('p2', {}, odd);
    await publish(3);
    await untilDecided(3);
    expect((await decisions()).at(-1)?.data.searchWorkLimit).toBe(decided.data.searchWorkLimit);
  });

  it('stops during a decision without waiting for it, and appends nothing of it', async () => {
    const begun = Promise.withResolvers<void>();
    const work = Promise.withResolvers<never>();
    decides = {
      cycle() {
        begun.resolve();
        return work.promise;
      },
      proposal: decideHere.proposal,
      close: async () => work.reject(new Error("the planner's thread ended")),
    };
    const stopped = await planner('p1');
    await publish(1);
    await begun.promise;
    await closeAll();
    expect(await decisions()).toEqual([]);
    expect(stopped.notDecided).toEqual([]);
    decides = decideHere;
    await planner('p2');
    await untilDispatched('gpu-1');
  });

  it('property: whatever number of planners reads it, each snapshot is decided once and its tasks are queued once', async () => {
    await Promise.all(['p1', 'p2', 'p3', 'p4'].map((name) => planner(name, { dryRun: true })));
    for (let cycle = 1; cycle <= 6; cycle++) {
      await publish(cycle);
      await untilDecided(cycle);
    }
    expect((await decisions()).map((d) => d.data.cycle)).toEqual([1, 2, 3, 4, 5, 6]);
    expect((await events()).filter((e) => e.type === 'planner.configured')).toHaveLength(1);
  });

  it.each([
    ['slow', -45 * 60_000, 'behind'],
    ['fast', 45 * 60_000, 'ahead'],
  ])(
    'a planner with a clock that is %s plans nothing, from its first snapshot on, and ends no task',
    async (_, byMs, how) => {
      expected.add('clock');
      await releasedBy('right', { planTtlSeconds: 60 });
      const wrong = await planner('wrong', { planTtlSeconds: 60 }, { lateMs: () => byMs, checked: true });
      expect(wrong.problems).toEqual([expect.stringMatching(new RegExp(`2(700|699).\\d s ${how}`))]);
      await publish(2);
      await untilRefused(wrong.notDecided, 'clock');
      expect(await decisions()).toHaveLength(1);
      expect((await events()).filter((e) => e.type === 'migration.failed')).toEqual([]);
    },
  );

  it('a planner with a right clock plans, and one whose clock is set wrong stops at once', async () => {
    expected.add('clock');
    let byMs = 0;
    const { notDecided, problems } = await planner('p1', {}, { lateMs: () => byMs, checked: true });
    await publish(1);
    await untilDecided(1);
    byMs = -600_000;
    await publish(2);
    await untilRefused(notDecided, 'clock');
    // A close with force that came meanwhile ends its task once the clock is right, without another snapshot.
    const closed = commandEvent('migration.closed', AGGREGATE, 'c1', { taskId: 'gpu-1-s1', force: true });
    await log.append({ ...closed, time: new Date(Date.now() - 59_500).toISOString() });
    // A request is kept as well.
    await publish(0, request('c5'));
    await until(() => notDecided.filter((reason) => reason === 'clock').length === 2);
    byMs = 0;
    await untilFolded(() => state().tasks.get('gpu-1-s1')?.status === 'failed');
    await untilAnswered('c5');
    await publish(3);
    await untilDecided(3);
    expect(problems).not.toContain(undefined);
    expect(await decisions()).toHaveLength(2);
  });

  it('of replicas with different options the one that started last plans; the other stops and names the options', async () => {
    expected.add('other-options');
    const first = await planner('first');
    await publish(1);
    await untilDecided(1);
    const second = await planner('second', { cooldownSeconds: 60, dryRun: true });
    // The first planner that decides a snapshot leaves nothing to the other: it takes some until each has met the other's options.
    let cycle = 1;
    const publishUntil = async (met: () => boolean) => {
      do {
        await publish(++cycle);
        await untilDecided(cycle);
      } while (!met());
    };
    await publishUntil(() => first.notDecided.includes('other-options'));
    expect(first.yielding()).toEqual([
      expect.stringMatching(
        /^gpu is planned by second, .* engine.cooldown \(0 here, 60 there\), engine.dry_run \(false here, true there\)/,
      ),
    ]);
    expect(second.yielding()).toEqual([]);
    const written = (await events()).filter((e) => e.type === 'planner.configured');
    expect(written.map((e) => e.by.instance)).toEqual(['first', 'second']);
    const last = (await decisions()).at(-1);
    expect(last?.by.instance).toBe('second');

    // The first one, started again, is the last one that started.
    await first.close();
    const again = await planner('first');
    await publishUntil(() => second.yielding().length === 1);
    expect(again.yielding()).toEqual([]);
  });

  it('releases the plan with its event, queues its tasks and says so', async () => {
    await planner('p1');
    await publish(1);
    await untilDispatched('gpu-1');
    const [decided] = await decisions();
    expect(decided?.data).toMatchObject({
      outcome: 'planned',
      release: 'released',
      plannerVersion: expect.any(String),
    });
    expect(decided?.data.plan?.steps).toHaveLength(2);
    expect(decided?.data.basis).toBeGreaterThan(0);
    const tasks: string[] = [];
    for await (const m of log.tail({ families: ['migrations'], since: 'all', end: true }))
      tasks.push((m.message as MigrationRequested).id);
    expect(tasks.sort()).toEqual([1, 2].map((n) => messageId.requested(taskId('gpu-1', n), 1)));
  });

  it('a planner that died between release and dispatch leaves nothing undone: the next one queues the tasks', async () => {
    // The first planner's work is done by hand up to the release: its options, then the decision.
    await releasedBy('first');
    const all = await events();
    const released = all.filter((e) => e.type === 'planner.configured' || e.type === 'cycle.decided');

    // The same log without `plan.dispatched` and with an empty queue, on a server of its own.
    const other = await startNatsServer();
    const otherLog = await connectEventLog({ servers: [other.url], name: 'other' });
    await provision(otherLog);
    for (const event of released) await otherLog.append(event);
    const previous = server;
    server = other;
    try {
      await planner('second');
      const otherView = await otherLog.view(folding());
      const dispatched = () => aggregateState(otherView.at().state, AGGREGATE).plans.get('gpu-1')?.dispatched;
      await untilFolded(() => dispatched() != null, otherView);
      expect(dispatched()?.tasks).toBe(2);
      await otherView.close();
    } finally {
      await closeAll();
      await otherLog.close();
      await other.stop();
      server = previous;
    }
  });

  it('a waiting plan keeps the aggregate from being planned, and its approval queues its tasks without another snapshot', async () => {
    await planner('p1', { approval: 'manual' });
    await publish(1);
    await untilFolded(() => state().plans.get('gpu-1')?.state === 'proposed');
    await publish(2);
    await untilDecided(2);
    expect((await decisions())[1]?.data.outcome).toBe('gated');
    await log.append(commandEvent('plan.approved', AGGREGATE, 'c1', { planId: 'gpu-1', steps: null }));
    await untilDispatched('gpu-1');
    expect(state().plans.get('gpu-1')?.tasks).toHaveLength(2);
    // A close with force ends its task a minute later, without another snapshot.
    const closed = commandEvent('migration.closed', AGGREGATE, 'c2', { taskId: 'gpu-1-s1', force: true });
    await log.append({ ...closed, time: new Date(Date.now() - 59_500).toISOString() });
    await untilFolded(() => state().tasks.get('gpu-1-s1')?.status === 'failed');
    const failed = (await events()).flatMap((e) => (e.type === 'migration.failed' ? [e.data.reason.code] : []));
    expect(failed).toEqual(['closed']);
  });

  it('ends a task that no executor ended, one plan_ttl after it could last be started', async () => {
    await releasedBy('p1', { planTtlSeconds: 60 });
    await planner('later', { planTtlSeconds: 60 }, { lateMs: () => 121_000 });
    await untilFolded(() => state().recentPlans.some((p) => p.id === 'gpu-1' && p.failed === 2));
    const failed = (await events()).filter((e) => e.type === 'migration.failed');
    expect(failed.map((e) => [e.data.errorType, e.data.retryPending])).toEqual([
      ['Cancelled', false],
      ['Cancelled', false],
    ]);
  });

  it('does not end a task that an executor starts while the one before it is ended', async () => {
    expected.add('too-old');
    await releasedBy('p1', { planTtlSeconds: 60 });
    const [first, second] = [1, 2].map((n) => state().tasks.get(taskId('gpu-1', n)));
    if (first === undefined || second === undefined) throw new Error('two tasks were planned');
    const started = (task: typeof first): LogEvent => ({
      type: 'migration.started',
      version: 1,
      id: messageId.started(task.id, 1),
      time: new Date().toISOString(),
      aggregate: AGGREGATE,
      by: { service: 'executor', instance: 'e1', version: 'test' },
      correlationId: 'gpu-1',
      causationId: null,
      data: {
        taskId: task.id,
        planId: 'gpu-1',
        serverId: task.step.serverId,
        attempt: 1,
        from: task.step.from,
        destination: task.destination,
        groups: [],
        newestMigrationId: 0,
        forced: false,
        ramMb: task.step.ramMb,
        diskGb: task.step.diskGb,
      },
    });
    const wrap = (real: EventLog): Partial<EventLog> => ({
      async append(message, more) {
        const appended = await real.append(message, more);
        if (message.type === 'migration.failed')
          await log.append(started(message.data.taskId === first.id ? second : first));
        return appended;
      },
    });
    const later = await planner('later', { planTtlSeconds: 60 }, { lateMs: () => 121_000, wrap });
    await untilFolded(() => [first, second].some(({ id }) => state().tasks.get(id)?.slot != null));
    // It looks at a snapshot when it is done with the tasks.
    await publish(2);
    await untilRefused(later.notDecided, 'too-old');
    expect((await events()).filter((e) => e.type === 'migration.failed')).toHaveLength(1);
  });

  /** A snapshot for a request for moves between cells, taken `agoMs` ago. */
  const request = (commandId: string, agoMs = 0): Snapshot => {
    const { policies, ...rest } = snapshot(0);
    const time = new Date(Date.now() - agoMs).toISOString();
    const there = snapshotOf({ time, policies: {}, hosts: { n1: {} }, vms: {}, snapshot: { purpose: 'cells' } });
    return {
      ...rest,
      policies,
      id: commandSnapshotId(AGGREGATE, commandId),
      purpose: 'cells',
      time,
      observedFrom: time,
      cells: {
        commandId,
        asked: { from: ['h1'], to: 'new', flavorMap: {}, servers: null, project: null, limit: 2 },
        map: { [AGGREGATE]: 'cell1', new: 'cell2' },
        settings: cellsSettings,
        others: [{ ...there, aggregate: 'new' }],
        metadata: {},
        flavors: {},
        facts: Object.fromEntries(['a', 'b', 'c', 'd'].map((id) => [id, { volumes: 0, ports: [] }])),
        unread: [],
      },
    };
  };
  /** The answer to the request of this snapshot is made again to the byte. */
  async function replays(asked: Snapshot, data: LogEventOf<'plan.proposed'>['data']): Promise<void> {
    const basis = await foldedTo(data.basis);
    const of = planRequest(asked);
    if (of === null) throw new Error('the snapshot is of no request');
    const again = runProposal({ request: of, stateOf: (name) => aggregateState(basis, name), options, refusal: null });
    expect({ ...again.digests, snapshot: data.digests.snapshot }).toEqual(data.digests);
    expect(again.decision.steps).toEqual(data.steps);
  }
  const approve = (planId: string) =>
    log.append(commandEvent('plan.approved', AGGREGATE, `approve-${planId}`, { planId, steps: null }));
  const untilAnswered = (commandId: string) =>
    untilFolded(() => wasProposed(view.at().state, AGGREGATE, cellsPlanId(AGGREGATE, commandId)));
  const proposals = async () => (await events()).filter((e) => e.type === 'plan.proposed');

  it('a request for moves between cells has one answer of two planners, in whatever order snapshots arrive, and replays to the byte', async () => {
    await planner('one');
    await planner('two');
    const asked = request('c1');
    // A later snapshot of a cycle does not overtake it.
    await Promise.all([publish(0, asked), publish(1)]);
    await untilAnswered('c1');
    await untilFolded(() => state().decided?.snapshotId === 'gpu-1');
    await publish(2);
    await untilFolded(() => state().decided?.snapshotId === 'gpu-2');
    const found = await proposals();
    expect(found).toHaveLength(1);
    const { data } = found[0] as LogEventOf<'plan.proposed'>;
    // The rest depends on whether the cycle's plan was released before it.
    expect(data).toMatchObject({ outcome: 'planned', release: 'proposed', to: 'new' });
    expect(data.steps.map(({ from, phase, cell }) => [from, phase, cell?.target])).toEqual([
      ['h1', 'cell', 'new'],
      ['h1', 'cell', 'new'],
    ]);
    await replays(asked, data);
  });

  it('an approved plan between cells is dispatched; its tasks say how each server moves', async () => {
    await planner('p');
    await publish(0, request('c2'));
    const planId = cellsPlanId(AGGREGATE, 'c2');
    await untilFolded(() => state().plans.get(planId)?.state === 'proposed');
    await approve(planId);
    await untilDispatched(planId);
    expect([...state().tasks.values()].map(({ step }) => step.cell?.method)).toEqual(['migrate', 'migrate']);
  });

  /** A snapshot for a request for room for one VM that is larger than any free space. */
  const roomRequest = (commandId: string, small = 'a'): Snapshot => {
    const time = new Date().toISOString();
    const free = (gib: number) => ({ free: { MEMORY_MB: gib * 1024 } });
    const snapshot = snapshotOf({
      time,
      policies: {},
      hosts: { h1: free(20), h2: free(20) },
      vms: { [small]: { host: 'h1', ramMb: 12 * 1024 }, b: { host: 'h2', ramMb: 40 * 1024 } },
    });
    const resources = { MEMORY_MB: 30 * 1024 };
    return {
      ...snapshot,
      aggregate: AGGREGATE,
      id: commandSnapshotId(AGGREGATE, commandId),
      purpose: 'capacity',
      observedFrom: time,
      capacity: {
        commandId,
        asked: { shape: { name: 'big', resources, requiredTraits: [], forbiddenTraits: [] }, count: 1 },
      },
    };
  };

  it('a request for room is answered once with a plan that waits; approved, its moves are dispatched; it replays to the byte', async () => {
    await planner('one');
    await planner('two');
    // The VM of a plan that waits is gone: that plan is withdrawn, and leaves its place to the next one.
    const lostId = capacityPlanId(AGGREGATE, 'r0');
    await publish(0, roomRequest('r0', 'gone'));
    await untilFolded(() => state().waiting === lostId);
    const asked = roomRequest('r1');
    await publish(0, asked);
    const planId = capacityPlanId(AGGREGATE, 'r1');
    await untilFolded(() => state().waiting === planId);
    expect(state().recentPlans).toMatchObject([{ id: lostId, outcome: 'withdrawn' }]);
    await approve(lostId);
    const found = (await proposals()).filter(({ data }) => data.commandId === 'r1');
    expect(found).toHaveLength(1);
    const { data } = found[0] as LogEventOf<'plan.proposed'>;
    expect(data).toMatchObject({ release: 'proposed', to: AGGREGATE, capacity: { wanted: 1, now: 0, after: 1 } });
    expect(data.steps.map(({ phase, serverId, from, to }) => [phase, serverId, from, to])).toEqual([
      ['capacity', 'a', 'h1', 'h2'],
    ]);
    await replays(asked, data);
    // Another request finds a plan that waits.
    await publish(0, roomRequest('r2'));
    await untilFolded(() => wasProposed(view.at().state, AGGREGATE, capacityPlanId(AGGREGATE, 'r2')));
    expect((await proposals()).at(-1)?.data).toMatchObject({ outcome: 'gated', reason: { code: 'awaiting-approval' } });
    await approve(planId);
    await untilDispatched(planId);
    expect([...state().tasks.values()].map(({ step }) => [step.phase, step.serverId])).toEqual([['capacity', 'a']]);
  });

  it('a request that can no longer be decided has an answer that says why, also one from before the start; a dry run proposes nothing that can be approved', async () => {
    expected.add('unreadable-snapshot');
    const lostId = commandSnapshotId(AGGREGATE, 'c6');
    const wrap = (real: EventLog): Partial<EventLog> => ({
      async getSnapshot(taken) {
        if (taken.data.snapshotId === lostId) throw new BadObject('its body is gone');
        return real.getSnapshot(taken);
      },
    });
    await publish(0, request('c6', 300_000));
    await publish(0, request('c3'));
    await publish(0, request('c5', 300_000));
    // Two intervals later, and not the newest snapshot.
    const late = await planner('p', { dryRun: true }, { lateMs: () => 121_000, wrap });
    await untilAnswered('c3');
    await untilAnswered('c5');
    await untilRefused(late.notDecided, 'unreadable-snapshot');
    await closeAll();
    const { notDecided } = await planner('p', { dryRun: true }, { wrap });
    await untilRefused(notDecided, 'unreadable-snapshot');
    await publish(0, request('c4'));
    await untilAnswered('c4');
    // It reads all of them again: only the one without a body has no answer, and is not tried again.
    expect(notDecided).toEqual(['unreadable-snapshot']);
    const answers = new Map((await proposals()).map(({ data }) => [data.commandId, data]));
    expect([...answers.values()].map(({ release, reason }) => [release, reason.code])).toEqual([
      ['none', expect.stringMatching(/^(stored-late|too-old)$/)],
      ['none', expect.stringMatching(/^(stored-late|too-old)$/)],
      ['dryRun', expect.any(String)],
    ]);
    const { outcome, reason } = answers.get('c3') ?? expect.fail('no answer');
    expect([outcome, reason.code]).toEqual(['gated', 'too-old']);
    expect(reason.text).toMatch(/ is \d+ s old, more than two intervals: run the command again$/);
    expect(answers.get('c5')?.reason.code).toBe('stored-late');
    expect(state().plans.size).toBe(0);
  });

  it('requests that come while the log is in doubt are answered when the doubt ends', async () => {
    expected.add('other-log');
    const time = manualClock(Date.now());
    guard = await openGuard({
      log,
      clock: time,
      snapshotsOf: [],
      needsLedger: false,
      onChange: (problem) => problem ?? open[0]?.planner.lookAgain(),
    });
    guard.lost({ source: 'this process', installationId: null, sequence: 0, seenAtMs: Date.now() });
    const { notDecided } = await planner('p');
    for (const [i, commandId] of ['c6', 'c7'].entries()) {
      await publish(0, request(commandId));
      // And once when it started.
      await until(() => notDecided.length === i + 2);
    }
    expect(await proposals()).toEqual([]);
    // The guard reads the log again.
    time.advance(3000);
    await untilAnswered('c6');
    await untilAnswered('c7');
  });

  it('after an error a request is answered, and a task that was closed with force ends, without another snapshot', async () => {
    expected.add('error');
    waitShare = 0.01;
    const failing = new Set(['plan.proposed', 'migration.failed']);
    await releasedBy('before');
    const wrap = (real: EventLog): Partial<EventLog> => ({
      async append(message, more) {
        if (failing.delete(message.type)) throw new Error('no answer from NATS');
        return real.append(message, more);
      },
    });
    const { notDecided } = await planner('p', {}, { lateMs: () => 61_000, wrap });
    await publish(0, request('c8'));
    await untilAnswered('c8');
    await log.append(commandEvent('migration.closed', AGGREGATE, 'c9', { taskId: 'gpu-1-s1', force: true }));
    await untilFolded(() => state().tasks.get('gpu-1-s1')?.status === 'failed');
    expect(notDecided.filter((reason) => reason === 'error')).toHaveLength(2);
  });
});
