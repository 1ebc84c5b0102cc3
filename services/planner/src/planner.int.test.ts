import { systemClock } from '@kronos/clock';
import {
  type Actor,
  defaultEngineOptions,
  type EngineOptions,
  type LogEvent,
  type MigrationRequested,
  messageId,
  type Snapshot,
  taskId,
} from '@kronos/contracts';
import { connectEventLog, type EventLog, type LogView } from '@kronos/eventlog';
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { snapshotOf } from '@kronos/placement/testing';
import { aggregateState, createFolder, type Folder } from '@kronos/projections';
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
const snapshot = (cycle: number): Snapshot => ({
  ...snapshotOf({
    time: new Date().toISOString(),
    policies: { cpu: { threshold: 0.1, maxMigrationsPerCycle: 5 } },
    hosts: { h1: {}, h2: {} },
    vms: {
      a: { host: 'h1', w: { cpu: 0.2 } },
      b: { host: 'h1', w: { cpu: 0.2 } },
      c: { host: 'h1', w: { cpu: 0.2 } },
      d: { host: 'h1', w: { cpu: 0.2 } },
    },
    snapshot: { intervalSeconds: 60 },
  }),
  id: `gpu-${cycle}`,
  aggregate: AGGREGATE,
  cycle,
});

describe('planners on a real nats-server', () => {
  let server: NatsServer;
  let log: EventLog;
  let view: LogView<Folder>;
  let open: { planner: Planner; close: () => Promise<void>; done: Promise<void> }[];

  beforeEach(async () => {
    server = await startNatsServer();
    log = await connectEventLog({ servers: [server.url], name: 'test' });
    await log.provision({
      limits: { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 64 * 1024 ** 2, logMaxBytes: 64 * 1024 ** 2 },
      replicas: 1,
      aggregates: [AGGREGATE],
    });
    view = await log.view<Folder>({ initial: createFolder(), evolve: (f, s) => f.apply(s) });
    open = [];
  });
  afterEach(async () => {
    for (const { close } of open) await close();
    await view.close();
    await log.close();
    await server.stop();
  });

  /** A planner with a connection and a view of its own, as each process has. */
  async function planner(name: string, own: Partial<EngineOptions> = {}, clock: () => number = Date.now) {
    const ownLog = await connectEventLog({ servers: [server.url], name });
    const ownView = await ownLog.view<Folder>({ initial: createFolder(), evolve: (f, s) => f.apply(s) });
    const created = createPlanner({
      log: ownLog,
      view: ownView,
      aggregates: [AGGREGATE],
      options: { ...options, ...own },
      by: { service: 'planner', instance: name, version: 'test' },
      logger: createLogger({ service: 'planner', version: 'test', level: 'silent', format: 'json' }),
      tracer: trace.getTracer('test'),
      meters: { decided() {}, notDecided() {}, dispatched() {} },
      clock: { ...systemClock, now: clock },
    });
    const done = created.run();
    const close = async () => {
      await created.stop();
      await ownView.close();
      await ownLog.close();
      await done;
    };
    open.push({ planner: created, close, done });
    return { close };
  }

  const events = async (): Promise<LogEvent[]> => {
    const all: LogEvent[] = [];
    for await (const { event } of log.replay()) if (event.type !== 'unreadable') all.push(event);
    return all;
  };
  const decisions = async () => (await events()).filter((e) => e.type === 'cycle.decided');
  const state = () => aggregateState(view.state.snapshot(), AGGREGATE);

  /** Waits until the folded log fulfils the condition. */
  async function until(condition: () => boolean, of = view): Promise<void> {
    const changes = of.changes();
    if (condition()) return;
    for await (const _ of changes) if (condition()) return;
  }

  const publish = (cycle: number) => log.putSnapshot(snapshot(cycle), { by, causationId: null });

  it('property: whatever number of planners reads it, each snapshot is decided once and its tasks are queued once', async () => {
    await Promise.all(['p1', 'p2', 'p3', 'p4'].map((name) => planner(name, { dryRun: true })));
    for (let cycle = 1; cycle <= 6; cycle++) {
      await publish(cycle);
      await until(() => state().decided?.cycle === cycle);
    }
    expect((await decisions()).map((d) => d.data.cycle)).toEqual([1, 2, 3, 4, 5, 6]);
    expect((await events()).filter((e) => e.type === 'planner.configured')).toHaveLength(1);
  });

  it('releases the plan with its event, queues its tasks and says so', async () => {
    await planner('p1');
    await publish(1);
    await until(() => state().plans.get('gpu-1')?.dispatched != null);
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
    await planner('first');
    await publish(1);
    await until(() => state().plans.get('gpu-1')?.dispatched != null);
    const all = await events();
    for (const { close } of open.splice(0)) await close();
    const released = all.filter((e) => e.type === 'planner.configured' || e.type === 'cycle.decided');

    // The same log without `plan.dispatched` and with an empty queue, on a server of its own.
    const other = await startNatsServer();
    const otherLog = await connectEventLog({ servers: [other.url], name: 'other' });
    await otherLog.provision({
      limits: { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 64 * 1024 ** 2, logMaxBytes: 64 * 1024 ** 2 },
      replicas: 1,
      aggregates: [AGGREGATE],
    });
    for (const event of released) await otherLog.append(event);
    const previous = server;
    server = other;
    try {
      await planner('second');
      const otherView = await otherLog.view<Folder>({ initial: createFolder(), evolve: (f, s) => f.apply(s) });
      const dispatched = () => aggregateState(otherView.state.snapshot(), AGGREGATE).plans.get('gpu-1')?.dispatched;
      await until(() => dispatched() != null, otherView);
      expect(dispatched()?.tasks).toBe(2);
      await otherView.close();
    } finally {
      for (const { close } of open.splice(0)) await close();
      await otherLog.close();
      await other.stop();
      server = previous;
    }
  });

  it('a waiting plan keeps the aggregate from being planned, and its approval queues its tasks without another snapshot', async () => {
    await planner('p1', { approval: 'manual' });
    await publish(1);
    await until(() => state().plans.get('gpu-1')?.state === 'proposed');
    await publish(2);
    await until(() => state().decided?.cycle === 2);
    expect((await decisions())[1]?.data.outcome).toBe('gated');
    await log.append({
      type: 'plan.approved',
      version: 1,
      id: messageId.control('c1'),
      time: new Date().toISOString(),
      aggregate: AGGREGATE,
      by: { service: 'operator', instance: 'someone', version: 'test' },
      correlationId: 'c1',
      causationId: null,
      data: { commandId: 'c1', comment: null, planId: 'gpu-1', steps: null },
    });
    await until(() => state().plans.get('gpu-1')?.dispatched != null);
    expect(state().plans.get('gpu-1')?.tasks).toHaveLength(2);
  });

  it('ends a task that no executor ended, one plan_ttl after it could last be started', async () => {
    await planner('p1', { planTtlSeconds: 60 });
    await publish(1);
    await until(() => state().plans.get('gpu-1')?.dispatched != null);
    for (const { close } of open.splice(0)) await close();
    await planner('later', { planTtlSeconds: 60 }, () => Date.now() + 121_000);
    await until(() => state().recentPlans.some((p) => p.id === 'gpu-1' && p.failed === 2));
    const failed = (await events()).filter((e) => e.type === 'migration.failed');
    expect(failed.map((e) => [e.data.errorType, e.data.retryPending])).toEqual([
      ['Cancelled', false],
      ['Cancelled', false],
    ]);
  });
});
