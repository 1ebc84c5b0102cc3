import { AsyncLocalStorage } from 'node:async_hooks';
import { type Clock, systemClock } from '@kronos/clock';
import { elapse, until } from '@kronos/clock/testing';
import { type LogEvent, streamNames, subject } from '@kronos/contracts';
import { contextFrom, type EventLog } from '@kronos/eventlog';
import { bareConnection } from '@kronos/eventlog/testing';
import { testLog } from '@kronos/projections/testing';
import type { Caps } from '@kronos/rules';
import type { ApiFaultSetting } from '@kronos/simcloud';
import { jetstreamManager } from '@nats-io/jetstream';
import { context, propagation } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { describe, expect, type TestContext, test } from 'vitest';
import {
  AGGREGATE,
  type Bed,
  breaches,
  type Result,
  type Started,
  smallCloud,
  startBed,
  startExecutor,
} from '../testing/index.ts';
import { defaultTaskOptions, type TaskOptions } from './options.ts';

const caps = { maxConcurrentMigrations: 4, maxOutboundPerHost: 1, maxInboundPerHost: 2, maxConcurrentPerGroup: 1 };

/** The waits of the specification, at the pace of the simulated cloud. */
const scaled: TaskOptions = {
  ...defaultTaskOptions,
  pollIntervalMs: 25,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 1000,
  // Not scaled: a busy machine may need seconds to store the start of an attempt and to send the POST.
  takeoverMs: 10_000,
  postWindowMs: 10_000,
  abortAgainMs: 500,
  settleMs: 3000,
  blindMaxMs: 500,
  forcedLookMs: 500,
};

/** No busy machine stops a process for so long; a delivery that is lost with its connection comes again in time for its test. */
const ACK_WAIT_SECONDS = 120;

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

const current = new AsyncLocalStorage<TestContext['onTestFinished']>();

/** Closed in reverse order when the running test is over. */
const closing = (close: () => Promise<void>): void => current.getStore()?.(close);

/** Tests run side by side: they mostly wait for the cloud. */
const it = (name: string, body: () => Promise<void>): void =>
  test.concurrent(name, ({ onTestFinished }) => current.run(onTestFinished, body));

async function bedWith(...given: Parameters<typeof startBed>): Promise<Bed> {
  const [scenario, reuse] = given;
  const bed = await startBed(scenario, { ackWaitSeconds: ACK_WAIT_SECONDS, ...reuse });
  closing(() => bed.close());
  return bed;
}

/** Parts of an executor in place of the real ones. */
interface Replaced {
  readonly clock?: Clock;
  readonly wrap?: (log: EventLog) => Partial<EventLog>;
}

async function executorOn(
  bed: Bed,
  { clock = systemClock, wrap, ...options }: Partial<TaskOptions> & Replaced = {},
  limits: Caps = caps,
  name = 'executor',
): Promise<Started> {
  const started = await startExecutor(
    { natsUrl: bed.nats.url, authUrl: bed.sim.urls.identity },
    {
      name,
      session: { retry: { connection: { retries: 0, backoffMs: 10 }, status: { retries: 0, backoffMs: 10 } } },
      sriovPorts: 'read',
      aggregates: [AGGREGATE],
      check: { aggregates: [AGGREGATE], optOut: ['kronos:exclude'], force: options.force ?? false },
      options: { ...scaled, ...options },
      caps: limits,
      ackWaitMs: ACK_WAIT_SECONDS * 1000,
      concurrency: 100,
      clock,
      wrap,
      level: process.env.TEST_LOG,
    },
  );
  started.executor.done.catch(() => undefined);
  closing(() => started.stop());
  return started;
}

const types = (results: readonly Result[]): readonly string[] => results.map(({ event }) => event.type);

/** The attempts of a task, one word each: its destination and its end. */
const attempts = (results: readonly Result[]): readonly string[] =>
  results.flatMap(({ event }) => {
    if (!/completed|failed|skipped/.test(event.type)) return [];
    const { destination } = event.data;
    if (event.type === 'migration.failed') return [`${destination} ${event.data.errorType} ${event.data.reason.code}`];
    return [`${destination} ${event.type.replace('migration.', '')}`];
  });

/** A migration of a server copies memory until {@link letGo}. */
const SLOW = { kind: 'slow', seconds: 36_000, times: 1 } as const;
const hold = (bed: Bed, server: string) => bed.sim.act({ act: 'faultServer', server, fault: SLOW });
const letGo = (bed: Bed) => bed.sim.act({ act: 'setSpeed', speed: 60_000 });

const isRunning = (bed: Bed) => (): boolean => bed.sim.migrations().some((m) => m.status === 'running');

/** Waits until the executor knows the migration. */
const untilObserved = (bed: Bed) =>
  until(async () => (await bed.results()).some(({ event }) => event.type === 'migration.observed'));

type Move = Parameters<Bed['release']>[0][number];
type ServerFault = Extract<Parameters<Bed['sim']['act']>[0], { readonly act: 'faultServer' }>['fault'];

/** A small cloud in which something is wrong with moves of h1-1. */
async function bedFor(fault: ServerFault): Promise<Bed> {
  const bed = await bedWith(smallCloud());
  bed.sim.act({ act: 'faultServer', server: 'h1-1', fault });
  return bed;
}

const refusesAborts = {
  act: 'faultApi',
  fault: { api: 'compute', method: 'DELETE', effect: { kind: 'status', status: 400 } },
} as const;

/** The ends of the attempts of these tasks, which kept to every rule. */
async function ends(bed: Bed, tasks: readonly string[]): Promise<readonly string[]> {
  await bed.finals(tasks);
  const results = await bed.results();
  expect(breaches(bed.sim, results, tasks, caps)).toEqual([]);
  return attempts(results);
}

const release = (bed: Bed, more: Partial<Move> = {}) =>
  bed.release([{ server: 'h1-1', from: 'h1', to: 'h2', ...more }]);

/** Moves h1-1 to h2: the ends of its attempts. */
const moved = async (bed: Bed, more: Partial<Move> = {}) => ends(bed, await release(bed, more));

/** A move of h1-1 to h2 that Nova calls running. */
async function running(fault: ServerFault, more: Partial<Move> = {}) {
  const bed = await bedFor(fault);
  const { nova } = await executorOn(bed);
  const tasks = await release(bed, more);
  await until(isRunning(bed));
  return { bed, tasks, nova };
}

describe('a move on a simulated cloud', () => {
  it('ends when Nova has said so', async () => {
    const bed = await bedWith(smallCloud());
    await executorOn(bed);
    const tasks = await release(bed);
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({
      type: 'migration.completed',
      data: {
        outcome: 'migrated',
        host: 'h2',
        retries: 0,
        warnings: [],
        nova: { status: 'completed', migrationId: 1 },
      },
    });
    const results = await bed.results();
    expect(types(results)).toEqual(['migration.started', 'migration.observed', 'migration.completed']);
    expect(breaches(bed.sim, results, tasks, caps)).toEqual([]);
  });

  it('of a server that has been migrated before is not taken for that former move', async () => {
    const bed = await bedWith(smallCloud());
    bed.sim.act({ act: 'migrateServer', server: 'h1-1', host: 'h3' });
    await until(() => bed.sim.migrations()[0]?.status === 'completed');
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'h1-1', from: 'h3', to: 'h2' }]);
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({ data: { host: 'h2', nova: { migrationId: 2 } } });
  });

  it('that the hypervisor breaks off goes to the next alternate', async () => {
    const bed = await bedFor({ kind: 'fail', times: 1 });
    await executorOn(bed);
    const tasks = await release(bed, { alternates: ['h3'] });
    const [final] = await bed.finals(tasks);
    const results = await bed.results();
    expect(attempts(results)).toEqual(['h2 MigrationFailed migration-failed', 'h3 completed']);
    expect(final).toMatchObject({ data: { retries: 1, host: 'h3' } });
    const failed = results.find(({ event }) => event.type === 'migration.failed')?.event.data;
    expect(failed).toMatchObject({ hostAtFault: 'h2', nova: { status: 'failed' } });
    expect(breaches(bed.sim, results, tasks, caps)).toEqual([]);
  });

  it('that ends in error without a reason, as a restarted compute leaves it, is tried again on the same host', async () => {
    const bed = await bedFor({ kind: 'error', times: 1 });
    await executorOn(bed);
    expect(await moved(bed, { alternates: ['h3'] })).toEqual(['h2 NovaClientError compute-restarted', 'h2 completed']);
  });

  it('that hangs is aborted at its deadline, and is a MigrationTimeout once Nova has ended it', async () => {
    const bed = await bedFor({ kind: 'hang' });
    await executorOn(bed, { deadlineMinMs: 400, deadlinePerGibMs: 0 });
    expect(await moved(bed, { alternates: ['h3'] })).toEqual(['h2 MigrationTimeout deadline']);
    expect(bed.sim.migrations()).toMatchObject([{ status: 'cancelled' }]);
  });

  it('whose bytes stand still is aborted before its deadline', async () => {
    const bed = await bedFor({ kind: 'hang' });
    await executorOn(bed, { noProgressMs: 400 });
    expect(await moved(bed)).toEqual(['h2 MigrationTimeout no-progress']);
  });

  it('whose abort Nova refuses is asked for again, and followed to its end', async () => {
    const bed = await bedFor(SLOW);
    bed.sim.act(refusesAborts);
    await executorOn(bed, { deadlineMinMs: 100, deadlinePerGibMs: 0, hardTimeoutMs: 100 });
    const tasks = await release(bed);
    await until(() => bed.sim.calls().filter((call) => call.method === 'DELETE').length > 1);
    letGo(bed);
    expect(await ends(bed, tasks)).toEqual(['h2 completed']);
  });

  it('with errors after the switch-over is a move done, with warnings', async () => {
    const bed = await bedFor({ kind: 'error-after-switchover', vmError: true });
    await executorOn(bed);
    const tasks = await release(bed, { alternates: ['h3'] });
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({
      type: 'migration.completed',
      // Nova may put the server into ERROR a moment after the migration: `server-not-up` is then not seen yet.
      data: { host: 'h2', warnings: expect.arrayContaining([expect.objectContaining({ code: 'ended-otherwise' })]) },
    });
  });

  it('for which the scheduler finds no host shows Nova’s reason and goes to the alternate', async () => {
    const bed = await bedWith(smallCloud());
    bed.sim.act({ act: 'faultHost', host: 'h2', fault: { kind: 'refuse' } });
    await executorOn(bed, {}, { ...caps, maxConcurrentMigrations: 1 });
    const tasks = await bed.release([
      { server: 'h1-1', from: 'h1', to: 'h2', alternates: ['h3'] },
      // Of the same shape: Nova is not asked for h2 again, although no decision has seen the refusal.
      { server: 'h1-2', from: 'h1', to: 'h2', alternates: ['h3'] },
    ]);
    await bed.finals(tasks);
    const results = await bed.results();
    expect(attempts(results).slice(1).toSorted()).toEqual([
      'h2 PreFlightError refused-before',
      'h3 completed',
      'h3 completed',
    ]);
    const failed = results.find(({ event }) => event.type === 'migration.failed')?.event.data;
    expect(failed).toMatchObject({
      nova: { reason: expect.stringMatching(/pre-check|No valid host/) },
      cause: 'scheduler',
      hostAtFault: null,
    });
  });

  it('waits in Nova’s queue behind another off the same source', async () => {
    const bed = await bedWith(smallCloud());
    for (const server of ['h1-1', 'h1-2']) hold(bed, server);
    await executorOn(bed, {}, { ...caps, maxOutboundPerHost: 2 });
    const tasks = await bed.release([
      { server: 'h1-1', from: 'h1', to: 'h2' },
      { server: 'h1-2', from: 'h1', to: 'h3' },
    ]);
    await until(() => bed.sim.migrations().some(({ status }) => status === 'queued'));
    letGo(bed);
    const finals = await bed.finals(tasks);
    expect(finals.map((final) => final.type)).toEqual(['migration.completed', 'migration.completed']);
  });

  it('of a server that disappears on the way is Cancelled', async () => {
    const { bed, tasks } = await running(SLOW);
    bed.sim.act({ act: 'deleteServer', server: 'h1-1' });
    expect(await ends(bed, tasks)).toEqual(['h2 Cancelled server-gone']);
  });

  it('that an operator aborts is Cancelled once Nova has ended it', async () => {
    const { bed, tasks } = await running({ kind: 'hang' }, { alternates: ['h3'] });
    await bed.command('migration.aborted', tasks[0] ?? '');
    expect(await ends(bed, tasks)).toEqual(['h2 Cancelled operator']);
    expect(bed.sim.migrations()).toMatchObject([{ status: 'cancelled' }]);
  });

  it('whose source dies and starts again: what ran is tried again, what was queued ends by itself, without quarantine', async () => {
    const bed = await bedFor({ kind: 'hang', times: 1 });
    // Whichever Nova begins first runs until the other is queued.
    hold(bed, 'h1-2');
    await executorOn(bed, { settleMs: 500, abortAgainMs: 100 }, { ...caps, maxOutboundPerHost: 2 });
    const tasks = await bed.release([
      { server: 'h1-1', from: 'h1', to: 'h2' },
      { server: 'h1-2', from: 'h1', to: 'h3' },
    ]);
    await until(() =>
      new Set(bed.sim.migrations().map(({ status }) => status)).isSupersetOf(new Set(['running', 'queued'])),
    );
    const queued = bed.sim.migrations().find(({ status }) => status === 'queued');
    const waits = tasks.find((_, i) => bed.uuid(`h1-${i + 1}`) === queued?.server) ?? '';
    bed.sim.act({ act: 'killHost', host: 'h1' });
    bed.sim.act({ act: 'startHost', host: 'h1' });
    await bed.finals(tasks);
    const results = await bed.results();
    const of = (task: string) => results.map(({ event }) => event).filter(({ data }) => data.taskId === task);
    expect(of(waits).find(({ type }) => type === 'migration.abortRefused')).toMatchObject({
      data: { status: 409, text: expect.stringContaining("invalid state for 'abort live migration'") },
    });
    expect(of(waits).at(-1)).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'NovaClientError', reason: { code: 'abandoned' }, retryPending: false },
    });
    const ran = tasks.find((task) => task !== waits) ?? '';
    expect(of(ran).find(({ type }) => type === 'migration.failed')).toMatchObject({
      data: { errorType: 'NovaClientError', reason: { code: 'compute-restarted' }, retryPending: true },
    });
    expect(of(ran).at(-1)).toMatchObject({ type: 'migration.completed' });
  });

  it('whose destination dies is a move done, with its server in ERROR as a warning', async () => {
    const { bed, tasks } = await running(SLOW);
    bed.sim.act({ act: 'killHost', host: 'h2' });
    letGo(bed);
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({
      type: 'migration.completed',
      data: {
        host: 'h2',
        warnings: [
          { code: 'ended-otherwise' },
          { code: 'server-in-error', text: 'the server is in ERROR on h2, whose nova-compute is down' },
        ],
      },
    });
  });

  it('that an operator closes with force ends while Nova hangs', async () => {
    const { bed, tasks } = await running({ kind: 'hang' });
    bed.sim.act({ act: 'pauseApi', api: 'compute' });
    await bed.command('migration.closed', tasks[0] ?? '', { force: true });
    await bed.finals(tasks);
    bed.sim.act({ act: 'resumeApi', api: 'compute' });
    expect(attempts(await bed.results())).toEqual(['h2 Cancelled closed']);
    expect(bed.sim.migrations()).toMatchObject([{ status: 'running' }]);
  });

  it('that an operator closes with force ends while Nova does not say why it failed', async () => {
    const { bed, tasks } = await running({ kind: 'hang' });
    await untilObserved(bed);
    const path = 'os-instance-actions';
    const asked = () =>
      Object.entries(bed.sim.counts()).reduce((sum, [route, calls]) => sum + (route.includes(path) ? calls : 0), 0);
    const before = asked();
    bed.sim.act({
      act: 'faultApi',
      fault: { api: 'compute', method: 'GET', path, effect: { kind: 'hang', when: 'before' } },
    });
    bed.sim.act({ act: 'killHost', host: 'h1' });
    bed.sim.act({ act: 'startHost', host: 'h1' });
    // It has seen that the migration failed, and asks why.
    await until(() => asked() > before);
    await bed.command('migration.closed', tasks[0] ?? '', { force: true });
    await bed.finals(tasks);
    expect(attempts(await bed.results())).toEqual(['h2 MigrationFailed migration-failed']);
  });

  it('whose row is lost ends by the host of its server', async () => {
    const bed = await bedFor({ kind: 'hang' });
    await executorOn(bed, { settleMs: 200, rowGoneMs: 500 });
    const tasks = await release(bed);
    await untilObserved(bed);
    bed.sim.act({ act: 'loseMigrations', server: 'h1-1' });
    expect(await ends(bed, tasks)).toEqual(['h2 NovaClientError abandoned']);
  });

  for (const [nova, expected, status] of [
    ['aborts', 'h2 Cancelled operator', 'cancelled'],
    ['refuses to abort', 'h2 Cancelled closed', 'running'],
  ] as const)
    it(`that an operator closes ends when Nova ${nova} it`, async () => {
      const bed = await bedFor({ kind: 'hang' });
      if (nova !== 'aborts') bed.sim.act(refusesAborts);
      await executorOn(bed);
      const tasks = await release(bed);
      await until(isRunning(bed));
      await bed.command('migration.closed', tasks[0] ?? '', nova === 'aborts' ? undefined : { force: true });
      expect(await ends(bed, tasks)).toEqual([expected]);
      expect(bed.sim.migrations()).toMatchObject([{ status }]);
    });

  it('that somebody else aborts is Cancelled', async () => {
    const { bed, tasks, nova } = await running({ kind: 'hang' }, { alternates: ['h3'] });
    await nova.abortMigration({ serverId: bed.uuid('h1-1'), migrationId: 1 }, { checkSend: () => null });
    expect(await ends(bed, tasks)).toEqual(['h2 Cancelled aborted-by-others']);
  });

  it('carries the trace of its task to its results', async () => {
    const bed = await bedWith(smallCloud());
    await executorOn(bed);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const parent = contextFrom(traceparent);
    const tasks = await context.with(parent, () => release(bed));
    await bed.finals(tasks);
    const traced: (string | null)[] = [];
    for await (const { event, traceparent: found } of bed.log.replay())
      if (event.type === 'migration.completed') traced.push(found);
    expect(traced).toEqual([expect.stringContaining('0af7651916cd43dd8448eb211c80319c')]);
  });
});

describe('a task that finds the cloud otherwise than planned', () => {
  const cases: readonly [string, Parameters<Bed['sim']['act']>[0], readonly string[]][] = [
    [
      'the destination disabled: the alternate',
      { act: 'setHost', host: 'h2', disabled: true },
      ['h2 PreFlightError host-disabled', 'h3 completed'],
    ],
    [
      'the destination down: the alternate',
      { act: 'setHost', host: 'h2', up: false },
      ['h2 PreFlightError host-down', 'h3 completed'],
    ],
    [
      'the destination full: the alternate',
      { act: 'setHost', host: 'h2', full: true },
      ['h2 PreFlightError capacity', 'h3 completed'],
    ],
    [
      'the destination out of the aggregate: the alternate',
      { act: 'setAggregate', aggregate: AGGREGATE, hosts: ['h1', 'h3', 'h4'] },
      ['h2 PreFlightError destination-left', 'h3 completed'],
    ],
    [
      'the source disabled, and it is no evacuation',
      { act: 'setHost', host: 'h1', disabled: true },
      ['h2 Cancelled vm-source-disabled'],
    ],
    ['the server locked', { act: 'lockServer', server: 'h1-1' }, ['h2 PreFlightError vm-locked']],
    [
      'an SR-IOV port attached since the plan',
      { act: 'setServer', server: 'h1-1', ports: [{}, { vnicType: 'direct' }] },
      ['h2 PreFlightError vm-sriov-port'],
    ],
    ['the server gone', { act: 'deleteServer', server: 'h1-1' }, ['h2 Cancelled server-gone']],
    ['the server stopped', { act: 'setServer', server: 'h1-1', vmState: 'stopped' }, ['h2 PreFlightError vm-status']],
    [
      'the server opted out by its metadata',
      { act: 'setServer', server: 'h1-1', metadata: { 'kronos:exclude': 'yes' } },
      ['h2 Cancelled vm-opted-out'],
    ],
  ];
  for (const [name, change, expected] of cases)
    it(name, async () => {
      const bed = await bedWith(smallCloud());
      const tasks = await release(bed, { alternates: ['h3'] });
      bed.sim.act(change);
      await executorOn(bed);
      expect(await ends(bed, tasks)).toEqual(expected);
    });

  it('NUMA cells that filled up since the plan: the alternate, and Nova is not asked', async () => {
    const cells = [0, 1].map((id) => ({ id, dedicatedCpus: 4, sharedCpus: 4, memoryMb: 32_768 }));
    const hosts = ['h1', 'h2', 'h3'];
    const pages = { name: 'pages', vcpus: 4, memoryMb: 4096, diskGb: 1, extraSpecs: { 'hw:mem_page_size': '1GB' } };
    const scenario = {
      hosts: hosts.map((name) => ({
        name,
        vcpus: 32,
        memoryMb: 65_536,
        cells: cells.map((cell) => ({ ...cell, pages: { 1048576: 8 } })),
      })),
      flavors: [pages],
      // Two on each cell of h2: Placement has room there, the cells have no pages.
      servers: [
        { name: 'h1-1', host: 'h1', flavor: 'pages' },
        ...[1, 2, 3, 4].map((i) => ({ name: `h2-${i}`, host: 'h2', flavor: 'pages' })),
      ],
    };
    const bed = await bedWith({ ...smallCloud(3, 0), ...scenario });
    const planned = {
      cells: cells.map((cell) => ({ ...cell, pages: [{ sizeKb: 1_048_576, total: 8 }] })),
      ratios: { cpu: 1, memory: 1 },
    };
    const hostCells = { h2: planned, h3: planned };
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'h1-1', from: 'h1', to: 'h2', alternates: ['h3'] }], {
      edit: (message) => ({ ...message, data: { ...message.data, hostCells } }),
    });
    expect(await ends(bed, tasks)).toEqual(['h2 PreFlightError numa-fit', 'h3 completed']);
    expect(bed.sim.migrations()).toHaveLength(1);
  });

  it('the server moved by somebody else', async () => {
    const bed = await bedWith(smallCloud());
    const tasks = await release(bed);
    bed.sim.act({ act: 'migrateServer', server: 'h1-1', host: 'h4' });
    await until(() => bed.sim.migrations()[0]?.status === 'completed');
    await executorOn(bed);
    await bed.finals(tasks);
    expect(attempts(await bed.results())).toEqual(['h2 Cancelled moved-by-others']);
  });

  it('the server on its destination already: done, and nothing is called', async () => {
    const bed = await bedWith(smallCloud());
    const tasks = await release(bed);
    bed.sim.act({ act: 'migrateServer', server: 'h1-1', host: 'h2' });
    await until(() => bed.sim.migrations()[0]?.status === 'completed');
    await executorOn(bed);
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({ type: 'migration.completed', data: { outcome: 'alreadyThere', host: 'h2' } });
    expect(bed.sim.calls().filter((call) => call.path.endsWith('/action'))).toEqual([]);
  });

  it('an evacuation tolerates the disabled source: that is why it exists', async () => {
    const bed = await bedWith(smallCloud());
    bed.sim.act({ act: 'setHost', host: 'h1', disabled: true });
    await executorOn(bed);
    expect(await moved(bed, { phase: 'evacuate' })).toEqual(['h2 completed']);
  });

  it('a lone member of a hard-affinity group is refused at once, and Nova is not asked', async () => {
    const bed = await bedWith(smallCloud(4, 3, { groups: [{ name: 'pair', policy: 'affinity' }] }));
    bed.sim.act({ act: 'setGroup', server: 'h1-1', group: 'pair' });
    const [group] = bed.sim.cloud.groups.keys();
    await executorOn(bed);
    const groups = [{ id: group ?? '', policy: 'affinity' as const }];
    expect(await moved(bed, { alternates: ['h3'], groups })).toEqual(['h2 PreFlightError affinity-gathered']);
    expect(bed.sim.migrations()).toEqual([]);
  });

  it('an anti-affinity member whose destination got another member goes to the alternate', async () => {
    const bed = await bedWith(smallCloud(4, 3, { groups: [{ name: 'apart', policy: 'anti-affinity' }] }));
    bed.sim.act({ act: 'setGroup', server: 'h1-1', group: 'apart' });
    bed.sim.act({ act: 'setGroup', server: 'h2-1', group: 'apart' });
    const [group] = bed.sim.cloud.groups.keys();
    await executorOn(bed);
    const groups = [{ id: group ?? '', policy: 'anti-affinity' as const }];
    expect(await moved(bed, { alternates: ['h3'], groups })).toEqual([
      'h2 PreFlightError anti-affinity',
      'h3 completed',
    ]);
  });
});

describe('an API that does not do as it should', () => {
  const post = { api: 'compute', method: 'POST', path: '/action$', times: 1 } as const;
  const posted = (effect: ApiFaultSetting['effect']): ApiFaultSetting => ({ ...post, effect });
  const broken: readonly [string, ApiFaultSetting, readonly string[]][] = [
    [
      'cuts the POST off before Nova has it',
      posted({ kind: 'cut', when: 'before' }),
      ['h2 NovaClientError no-migration', 'h2 completed'],
    ],
    ['cuts the answer off after the act', posted({ kind: 'cut', when: 'after' }), ['h2 completed']],
    ['cuts the answer off in the middle', posted({ kind: 'cut', when: 'middle' }), ['h2 completed']],
    ['answers 504 after the act', posted({ kind: 'status', status: 504, processed: true }), ['h2 completed']],
    [
      'answers 503 and does nothing',
      posted({ kind: 'status', status: 503 }),
      ['h2 NovaClientError no-migration', 'h2 completed'],
    ],
    ['never answers the POST, and has acted', posted({ kind: 'hang', when: 'after' }), ['h2 completed']],
    ['refuses the token of the POST once', posted({ kind: 'unauthorized' }), ['h2 completed']],
    ['answers 429', posted({ kind: 'status', status: 429 }), ['h2 NovaClientError nova-refused', 'h2 completed']],
    ['answers 403: final at once', posted({ kind: 'status', status: 403 }), ['h2 NovaClientError request-forbidden']],
    [
      'gives garbage while it is polled',
      { api: 'compute', method: 'GET', path: 'os-migrations', times: 12, effect: { kind: 'garbage' } },
      ['h2 completed'],
    ],
    ['is slow', { api: '*', effect: { kind: 'latency', ms: 30, jitterMs: 60 } }, ['h2 completed']],
  ];
  for (const [name, fault, expected] of broken)
    it(name, async () => {
      const bed = await bedWith(smallCloud());
      await executorOn(bed);
      bed.sim.act({ act: 'faultApi', fault });
      expect(await moved(bed, { alternates: ['h3'] })).toEqual(expected);
    });

  it('is down for a while before the start: the task waits and spends no attempt', async () => {
    const bed = await bedWith(smallCloud());
    bed.sim.act({ act: 'faultApi', fault: { api: 'compute', times: 20, effect: { kind: 'status', status: 503 } } });
    await executorOn(bed);
    expect(await moved(bed)).toEqual(['h2 completed']);
  });

  it('is down while a migration runs: it is followed on', async () => {
    const { bed, tasks } = await running(SLOW);
    bed.sim.act({ act: 'faultApi', fault: { api: '*', times: 20, effect: { kind: 'status', status: 503 } } });
    bed.sim.act({ act: 'revokeTokens' });
    const answered = bed.sim.calls().length;
    // Refused requests do not count.
    await until(() => bed.sim.calls().length > answered);
    letGo(bed);
    expect(await ends(bed, tasks)).toEqual(['h2 completed']);
  });

  it('loses the request behind its answer: the attempt is closed when Nova has let go of the server', async () => {
    const bed = await bedFor({ kind: 'lost', times: 1 });
    await executorOn(bed, { takeoverMs: 1000, queueTimeoutMs: 3000 });
    const tasks = await release(bed);
    await until(() => bed.sim.calls().some((call) => call.path.endsWith('/action')));
    await elapse(2000, 'the executor does not say that the time for the takeover is over and it waits on');
    expect(attempts(await bed.results())).toEqual([]);
    bed.sim.act({ act: 'setServer', server: 'h1-1', taskState: null });
    expect(await ends(bed, tasks)).toEqual(['h2 NovaClientError no-migration', 'h2 completed']);
  });

  it('begins a request late whose server a restarted compute has set free: the attempt waits for it', async () => {
    const bed = await bedFor({ kind: 'conductor-delay', seconds: 100_000, times: 1 });
    await executorOn(bed, { takeoverMs: 1000 });
    const tasks = await release(bed);
    await until(() => bed.sim.calls().some((call) => call.path.endsWith('/action')));
    bed.sim.act({ act: 'killHost', host: 'h1' });
    bed.sim.act({ act: 'startHost', host: 'h1' });
    expect(bed.sim.cloud.server('h1-1').taskState).toBeNull();
    await elapse(3000, 'the executor does not say that the time for the takeover is over and it waits on');
    expect(attempts(await bed.results())).toEqual([]);
    letGo(bed);
    expect(await ends(bed, tasks)).toEqual(['h2 completed']);
    expect(bed.sim.migrations().map(({ status }) => status)).toEqual(['error']);
  });

  it('is of an old cloud: compute 2.60 and Placement 1.17', async () => {
    const bed = await bedWith(smallCloud(4, 3, { compute: '2.60', placement: '1.17' }));
    await executorOn(bed);
    expect(await moved(bed)).toEqual(['h2 completed']);
  });
});

describe('force', () => {
  it('goes past the scheduler below 2.68, and every such move is recorded', async () => {
    const bed = await bedWith(smallCloud(4, 3, { compute: '2.60' }));
    await executorOn(bed, { force: true });
    const tasks = await release(bed);
    await bed.finals(tasks);
    const results = await bed.results();
    expect(results[0]?.event).toMatchObject({ type: 'migration.started', data: { forced: true } });
    expect(bed.sim.migrations()).toMatchObject([{ forced: true, status: 'completed' }]);
  });

  it('is not obeyed by Kronos where Nova verifies every destination', async () => {
    const bed = await bedWith(smallCloud());
    await executorOn(bed, { force: true });
    const tasks = await release(bed);
    await bed.finals(tasks);
    expect((await bed.results())[0]?.event).toMatchObject({ data: { forced: false } });
    expect(bed.sim.migrations()).toMatchObject([{ forced: false }]);
  });
});

describe('the rules of starting', () => {
  it('a dry run checks for real, asks nothing of Nova, and says what it would have done', async () => {
    const bed = await bedWith(smallCloud());
    bed.sim.act({ act: 'setHost', host: 'h3', disabled: true });
    await executorOn(bed, { dryRun: true, maxRetries: 0 });
    const tasks = await bed.release([
      { server: 'h1-1', from: 'h1', to: 'h2' },
      { server: 'h1-2', from: 'h1', to: 'h3' },
    ]);
    await bed.finals(tasks);
    expect([...attempts(await bed.results())].sort()).toEqual(['h2 skipped', 'h3 PreFlightError host-disabled']);
    expect(bed.sim.calls().filter((call) => call.path.endsWith('/action'))).toEqual([]);
  });

  it('a step waits for what it depends on, and is Cancelled when that has failed', async () => {
    const bed = await bedWith(smallCloud());
    bed.sim.act({ act: 'lockServer', server: 'h3-1' });
    await executorOn(bed);
    const tasks = await bed.release([
      { server: 'h1-1', from: 'h1', to: 'h2' },
      { server: 'h2-1', from: 'h2', to: 'h1', dependsOn: [1] },
      { server: 'h3-1', from: 'h3', to: 'h4' },
      { server: 'h4-1', from: 'h4', to: 'h3', dependsOn: [3] },
    ]);
    const finals = await bed.finals(tasks);
    expect(finals.map((final) => final.type)).toEqual([
      'migration.completed',
      'migration.completed',
      'migration.failed',
      'migration.failed',
    ]);
    expect(finals[3]).toMatchObject({ data: { errorType: 'Cancelled', reason: { code: 'dependency-failed' } } });
    const order = (await bed.results()).filter(({ event }) => event.type !== 'migration.observed');
    const ended = order.findIndex(
      ({ event }) => event.type === 'migration.completed' && event.data.taskId === tasks[0],
    );
    const began = order.findIndex(({ event }) => event.type === 'migration.started' && event.data.taskId === tasks[1]);
    expect(began).toBeGreaterThan(ended);
  });

  it('a start that follows one of another aggregate by a moment, and exceeds a limit of the host, is not sent and is tried again', async () => {
    const bed = await bedWith(smallCloud());
    const web = testLog('web', Date.now());
    web.configured();
    const task = `${web.released([{ serverId: 'other', from: 'h1', to: 'h9' }])}-s1`;
    web.started({ task });
    const begun = web.events.map(({ event }) => event as LogEvent);
    const ended = web.completed({ task });
    const wrap = (log: EventLog): Partial<EventLog> => ({
      async append(message, more) {
        if (message.type !== 'migration.started') return log.append(message, more);
        // Between the judgement of the start and its append.
        for (const event of begun.splice(0)) await log.append(event);
        return log.append(message, { ...more, veto: () => null });
      },
    });
    const { log } = await executorOn(bed, { wrap });
    const tasks = await release(bed);
    await until(async () => attempts(await bed.results()).length === 1);
    expect(bed.sim.migrations()).toEqual([]);
    await log.append(ended);
    await bed.finals(tasks);
    expect(attempts(await bed.results())).toEqual(['h2 NovaClientError not-sent', 'h2 completed']);
    const [first] = (await bed.results()).flatMap(({ event }) => (event.type === 'migration.failed' ? [event] : []));
    expect(first?.data.reason.text).toBe(
      'the request was not sent: 1 move leaves h1; a start in another aggregate came first',
    );
    expect(bed.sim.migrations()).toHaveLength(1);
  });

  it('a pause holds starts back and leaves running moves alone', async () => {
    const bed = await bedFor(SLOW);
    await executorOn(bed);
    const tasks = await bed.release([
      { server: 'h1-1', from: 'h1', to: 'h2' },
      { server: 'h1-2', from: 'h1', to: 'h3' },
    ]);
    await until(isRunning(bed));
    await bed.pause(true);
    letGo(bed);
    await bed.finals(tasks.slice(0, 1));
    // A task that is cancelled afterwards: by its end the executor has looked at everything that waits.
    const [cancelled = ''] = await bed.release([{ server: 'h4-1', from: 'h4', to: 'h2' }]);
    await bed.command('migration.cancelled', cancelled);
    await bed.finals([cancelled]);
    expect(attempts(await bed.results())).toEqual(['h2 completed', 'h2 Cancelled cancelled']);
    await bed.pause(false);
    expect(await ends(bed, tasks)).toEqual(['h2 completed', 'h2 Cancelled cancelled', 'h3 completed']);
  });

  it('a task that an operator cancels while it waits is never started', async () => {
    const bed = await bedWith(smallCloud());
    await bed.pause(true);
    await executorOn(bed);
    const tasks = await release(bed);
    await bed.command('migration.cancelled', tasks[0] ?? '');
    expect(await ends(bed, tasks)).toEqual(['h2 Cancelled cancelled']);
  });

  it('a task past its time is Cancelled, though paused', async () => {
    const bed = await bedWith(smallCloud());
    await bed.pause(true);
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'h1-1', from: 'h1', to: 'h2' }], { planTtlSeconds: 1 });
    expect(await ends(bed, tasks)).toEqual(['h2 Cancelled expired']);
  });

  it('a task whose window has closed is Cancelled, and another of its plan that has no window is not', async () => {
    const bed = await bedWith(smallCloud());
    const later = 1_800_000;
    const now = () => Date.now() + later;
    await executorOn(bed, { clock: { ...systemClock, now, read: () => ({ ...systemClock.read(), wall: now() }) } });
    const startBefore = new Date(now()).toISOString();
    const tasks = await bed.release([
      { server: 'h1-1', from: 'h1', to: 'h2', startBefore },
      { server: 'h1-2', from: 'h1', to: 'h3' },
    ]);
    await bed.finals(tasks);
    expect([...attempts(await bed.results())].sort()).toEqual(['h2 Cancelled window-closed', 'h3 completed']);
  });

  it('a step that is not due yet waits until it is', async () => {
    const bed = await bedWith(smallCloud());
    await executorOn(bed);
    const began = Date.now();
    const tasks = await release(bed, { delaySeconds: 2 });
    await bed.finals(tasks);
    const [started] = await bed.results();
    expect((started?.storedAt ?? 0) - began).toBeGreaterThanOrEqual(2000);
  });

  it('a message that is no task is recorded as a dead letter and leaves the queue', async () => {
    const bed = await bedWith(smallCloud());
    const tasks = await release(bed);
    const raw = await bareConnection(bed.nats.url);
    const known = JSON.stringify({ type: 'migration.requested', version: 1, data: { taskId: tasks[0] } });
    for (const body of ['not JSON', '{"type":"migration.requested","version":1}', known])
      await raw.request(subject('migrations', AGGREGATE), body);
    await raw.close();
    const lag = await bed.log.usage(streamNames.migrations);
    expect(lag.messages).toBe(4);
    await bed.pause(true);
    const { metrics } = await executorOn(bed);
    await until(async () => (await bed.log.usage(streamNames.migrations)).messages === 0);
    const results = await bed.results();
    expect(results.map(({ event }) => event.data.taskId).sort()).toEqual([tasks[0], 'unreadable-2', 'unreadable-3']);
    for (const { event } of results) expect(event.data).toMatchObject({ errorType: 'DeadLetter', retryPending: false });
    // The alert KronosDeadLetter asks for them.
    expect(await metrics.scrape()).toMatch(/kronos_migrations_ended_total\{[^}]*error_type="DeadLetter"[^}]*\} 3\b/);
  });

  it('a task of no released plan is acknowledged and leaves no trace', async () => {
    const bed = await bedWith(smallCloud());
    await bed.release([{ server: 'h1-1', from: 'h1', to: 'h2' }], {
      edit: (message) => ({ ...message, id: 'x', data: { ...message.data, taskId: 'forged-s1', planId: 'forged' } }),
    });
    await executorOn(bed);
    await until(async () => (await bed.log.usage(streamNames.migrations)).messages === 0);
    expect(await bed.results()).toEqual([]);
    expect(bed.sim.migrations()).toEqual([]);
  });

  it('a host that failed too often is out as a destination: the alternate is taken', async () => {
    const bed = await bedWith(smallCloud(4, 6));
    bed.sim.act({ act: 'faultHost', host: 'h2', fault: { kind: 'fail-inbound' } });
    await executorOn(bed, { maxRetries: 1 });
    const moves = ['h1-1', 'h1-2', 'h1-3', 'h1-4'].map((server) => ({
      server,
      from: 'h1',
      to: 'h2',
      alternates: ['h3'],
    }));
    const tasks = await bed.release(moves);
    await bed.finals(tasks);
    const codes = attempts(await bed.results()).filter((text) => text.startsWith('h2'));
    expect(codes.filter((text) => text.endsWith('migration-failed'))).toHaveLength(3);
    expect(codes.filter((text) => text.endsWith('host-broken'))).toHaveLength(1);
  });
});

describe('a log that is replaced', () => {
  it('ends what the executor does: a running move is handed over, and not aborted at its deadline', async () => {
    const bed = await bedFor({ kind: 'hang' });
    const { executor } = await executorOn(bed, { deadlineMinMs: 60_000, deadlinePerGibMs: 0 });
    await release(bed);
    await until(isRunning(bed));
    const raw = await bareConnection(bed.nats.url);
    closing(() => raw.close());
    const { streams } = await jetstreamManager(raw);
    const { config } = await streams.info(streamNames.log);
    await streams.delete(streamNames.log);
    await streams.add(config);
    await expect(executor.done).rejects.toThrow('it is another log');
    await until(() => executor.held === 0);
    expect(bed.sim.calls().filter(({ method }) => method === 'DELETE')).toEqual([]);
    expect(isRunning(bed)()).toBe(true);
  });
});

describe('three replicas', () => {
  it('never exceed a cap, start nothing twice, and end every task once', async () => {
    const cloud = smallCloud(6, 6);
    const apart = ['h4-5', 'h5-5', 'h6-5'];
    const servers = (cloud.servers ?? []).map((server) =>
      apart.includes(server.name) ? { ...server, group: 'apart' } : server,
    );
    const bed = await bedWith({ ...cloud, servers, groups: [{ name: 'apart', policy: 'anti-affinity' }] });
    const groups = [{ id: bed.sim.cloud.group('apart').uuid, policy: 'anti-affinity' }];
    for (const { name: server } of servers) hold(bed, server);
    for (const name of ['a', 'b', 'c']) await executorOn(bed, {}, caps, name);
    // Four moves to three destinations: one of these takes two, which is its cap.
    const into = ['h1', 'h2', 'h3'];
    const moves = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].flatMap((from) => {
      const others = into.filter((to) => to !== from);
      return [1, 2, 3, 4].map((n) => ({ server: `${from}-${n}`, from, to: others[n % others.length] ?? '' }));
    });
    const grouped = apart.map((server, i) => ({ server, from: `h${i + 4}`, to: `h${i + 1}`, groups }));
    const tasks = await bed.release([...grouped, ...moves]);
    await until(() => bed.sim.migrations().filter(({ status }) => status === 'running').length === 4);
    // From now on the copying takes a second.
    bed.sim.act({ act: 'setSpeed', speed: 36_000 });
    await bed.finals(tasks);
    const results = await bed.results();
    expect(breaches(bed.sim, results, tasks, caps)).toEqual([]);
    // The caps were all reached: one less of each, and the same measurement says so.
    const less = breaches(bed.sim, results, tasks, {
      maxConcurrentMigrations: caps.maxConcurrentMigrations - 1,
      maxOutboundPerHost: caps.maxOutboundPerHost - 1,
      maxInboundPerHost: caps.maxInboundPerHost - 1,
      maxConcurrentPerGroup: caps.maxConcurrentPerGroup - 1,
    });
    expect(less.map((text) => text.split(':')[0])).toEqual([
      'max_concurrent_migrations',
      'max_outbound_per_host',
      'max_inbound_per_host',
      'max_concurrent_per_group',
    ]);
  });

  it('hand a running move over when one of them stops', async () => {
    const bed = await bedFor(SLOW);
    const first = await executorOn(bed, {}, caps, 'a');
    const tasks = await release(bed);
    await until(isRunning(bed));
    await first.executor.stop();
    expect(isRunning(bed)()).toBe(true);
    await executorOn(bed, {}, caps, 'b');
    letGo(bed);
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({ type: 'migration.completed', by: { instance: 'b' } });
    expect(bed.sim.migrations()).toHaveLength(1);
  });
});
