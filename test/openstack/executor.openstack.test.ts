/**
 * The executor as a process against the real Nova, one case per server, all at the same time: each waits mostly for Nova.
 * Tasks come onto the log as the planner puts them; what became of them is asked of Nova.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { type Final, type Move, openPlans, type Plans, type Result } from '@kronos/executor/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';
import { openBed } from '../contract/bed.ts';
import type { CloudUnderTest } from '../contract/cloud.ts';
import { NEWEST, Wire } from '../contract/wire.ts';
import { type NovaProxy, startProxy } from './proxy.ts';
import { bedConfig, bedUrls } from './urls.ts';

const MAIN = fileURLToPath(new URL('../../services/executor/src/main.ts', import.meta.url));
const ACK_WAIT_SECONDS = 5;
const PATIENCE_MS = 200_000;

const config = (natsUrl: string, novaUrl: string, aggregate: string) => `[engine]
aggregates = ${aggregate}
balance = false
dry_run = false
[executor]
max_concurrent_migrations = 20
max_outbound_per_host = 2
max_inbound_per_host = 20
poll_interval = 0.5
retry_backoff = 3
deadline_min = 30
deadline_per_gib = 1
${bedConfig({ natsUrl, novaUrl, ackWaitSeconds: ACK_WAIT_SECONDS })}`;

let cloud: CloudUnderTest;
let wire: Wire;
let nats: NatsServer;
let directory: string;
const proxies: NovaProxy[] = [];
const executors: ChildProcess[] = [];
const logs: Plans[] = [];
let said = '';

beforeAll(async () => {
  cloud = await openBed();
  await cloud.reset();
  wire = await Wire.connect(cloud);
  nats = await startNatsServer();
  directory = await mkdtemp(join(tmpdir(), 'kronos-executor-'));
});
afterAll(async () => {
  await Promise.all(executors.map(endProcess));
  for (const log of logs) await log.log.close();
  for (const proxy of proxies) await proxy.close();
  await nats?.stop();
  await cloud?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Server name -> id in Nova. */
const ids = new Map<string, string>();
const uuid = (name: string): string => ids.get(name) ?? expect.fail(`no server ${name}`);

/** Sets up an aggregate with its queue and a proxy before Nova; `run` starts an executor for it. */
async function serve(aggregate: string, hosts: readonly string[], hooks: Parameters<typeof startProxy>[1] = {}) {
  const answer = await wire.nova('POST', '/os-aggregates', NEWEST, { aggregate: { name: aggregate } });
  const { aggregate: made } = answer.body as { aggregate: { id: number } };
  for (const host of hosts) await wire.nova('POST', `/os-aggregates/${made.id}/action`, NEWEST, { add_host: { host } });
  const plans = await openPlans({ natsUrl: nats.url, aggregate, ackWaitSeconds: ACK_WAIT_SECONDS, uuid });
  logs.push(plans);
  const proxy = await startProxy(bedUrls.nova, hooks);
  proxies.push(proxy);
  const file = join(directory, `${aggregate}.conf`);
  await writeFile(file, config(nats.url, proxy.url, aggregate));
  const run = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [MAIN, '--config', file], { stdio: ['ignore', 'pipe', 'pipe'] });
    executors.push(child);
    let text = '';
    await new Promise<void>((resolve, reject) => {
      const read = (chunk: Buffer): void => {
        text += chunk;
        said = `${said}${chunk}`.slice(-100_000);
        if (text.includes('"message":"serving"')) resolve();
      };
      for (const stream of [child.stdout, child.stderr]) stream.on('data', read);
      child.once('close', () => reject(new Error(`the executor did not start: ${text}`)));
    });
    return child;
  };
  return { plans, run };
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}

/** Creates one server per name, each on its host. */
async function boot(where: Readonly<Record<string, string>>, group?: string): Promise<void> {
  const hosts = Map.groupBy(Object.entries(where), ([, host]) => host);
  await Promise.all(
    [...hosts].map(async ([host, servers]) => {
      const made = await wire.boot(servers.length, host, group === undefined ? {} : { group });
      for (const [i, [name]] of servers.entries()) ids.set(name, made[i] ?? '');
    }),
  );
}

const act = async (name: string, action: object): Promise<void> => {
  const { status, text } = await wire.act(uuid(name), action);
  expect(status, text).toBe(202);
};

/** Nova's record of a server: its live migrations, newest first, and its host. */
async function record(name: string) {
  const rows = await wire.rows(uuid(name));
  const { status, body } = await wire.nova('GET', `/servers/${uuid(name)}`);
  const { server } = body as { server?: { status: string; 'OS-EXT-SRV-ATTR:host': string } };
  return {
    rows: rows.map((row) => `${row.status} ${row.source_compute}>${row.dest_compute}`),
    server: status === 404 || server === undefined ? 'gone' : `${server.status} ${server['OS-EXT-SRV-ATTR:host']}`,
    ids: rows.map(({ id }) => id),
  };
}

const statusesOf = async (name: string): Promise<string[]> =>
  ((await wire.get(`/servers/${uuid(name)}/migrations`)) as { migrations: { status: string }[] }).migrations.map(
    ({ status }) => status,
  );

const running = (name: string): Promise<boolean> =>
  wire.until(`${name} running`, async () => (await statusesOf(name)).includes('running'));

/** Kills an executor before it hears of the POST, and the next one while Nova migrates; the third finishes the task. */
async function killTwo(): Promise<void> {
  let victim: ChildProcess | null = null;
  const died = Promise.withResolvers<void>();
  await boot({ orphan: 'cmp4' });
  const { plans, run } = await serve('executor-kills', ['cmp4', 'cmp1'], {
    after: async (method, path) => {
      if (victim === null || method !== 'POST' || !path.endsWith('/action')) return;
      const child = victim;
      victim = null;
      await killed(child);
      died.resolve();
    },
  });
  await cloud.fault(uuid('orphan'), 'hang');
  victim = await run();
  const [task = ''] = await plans.release([{ server: 'orphan', from: 'cmp4', to: 'cmp1' }]);
  await died.promise;
  await running('orphan');
  const second = await run();
  await wire.until('the migration found by the second executor', async () =>
    (await plans.results()).some(({ event }) => event.type === 'migration.observed'),
  );
  await killed(second);
  await cloud.fault(uuid('orphan'), null);
  await run();
  const [final] = await plans.finals([task], PATIENCE_MS);
  const types = (await plans.results()).map(({ event }) => event.type);
  expect(types).toEqual(['migration.started', 'migration.observed', 'migration.completed']);
  const nova = await record('orphan');
  expect(nova).toMatchObject({ rows: ['completed cmp4>cmp1'], server: 'ACTIVE cmp1' });
  expect(final).toMatchObject({ data: { host: 'cmp1', nova: { migrationId: nova.ids[0] } } });
}

describe('the executor on a real OpenStack', () => {
  /** Server name -> id of its task. */
  const tasks = new Map<string, string>();
  let plans: Plans;
  /** The migration that Nova queued while the other one ran. */
  let queued: Promise<boolean>;
  let deleted: Promise<void>;
  let twoKilled: Promise<void>;
  /** Number of an operator's requests to move the lone server. */
  let asked = 0;

  /** The final result of a task, and its events on the log. */
  async function end(name: string): Promise<{ final: Final; events: readonly Result['event'][] }> {
    const task = tasks.get(name) ?? expect.fail(`no task for ${name}`);
    const [final] = await plans.finals([task], PATIENCE_MS).catch((error: unknown) => {
      throw new Error(`${error instanceof Error ? error.message : error}\n${said.slice(-4000)}`);
    });
    const events = (await plans.results()).map(({ event }) => event).filter((event) => event.data.taskId === task);
    return { final: final ?? expect.fail('no final result'), events };
  }
  const starts = (events: readonly Result['event'][]): number =>
    events.filter(({ type }) => type === 'migration.started').length;

  beforeAll(async () => {
    const hosts = ['cmp1', 'cmp2', 'cmp3', 'cmp4', 'cmp5', 'cmp6'];
    let crowded = false;
    const service = await serve('executor-cases', hosts, {
      before: async (method, path) => {
        if (crowded || method !== 'POST' || !path.endsWith(`${ids.get('crowded')}/action`)) return;
        crowded = true;
        await cloud.fill('cmp5', true);
      },
    });
    ({ plans } = service);
    const apart = await wire.group('affinity');
    await Promise.all([
      boot({
        ...{ fine: 'cmp1', fails: 'cmp1', locked: 'cmp1', early: 'cmp1' },
        ...{ hangs: 'cmp2', first: 'cmp3', second: 'cmp3', unplaced: 'cmp4', crowded: 'cmp4' },
        ...{ person: 'cmp5', late: 'cmp6', evacuated: 'cmp6' },
      }),
      boot({ lone: 'cmp2' }, apart),
    ]);
    for (const [name, fault] of [
      ['fails', 'fail'],
      ['hangs', 'hang'],
      ['first', 'hang'],
      ['second', 'hang'],
      ['late', 'hang'],
    ] as const)
      await cloud.fault(uuid(name), fault);
    const moves: readonly Move[] = [
      { server: 'fine', from: 'cmp1', to: 'cmp3' },
      { server: 'fails', from: 'cmp1', to: 'cmp3', alternates: ['cmp4'] },
      { server: 'hangs', from: 'cmp2', to: 'cmp3' },
      { server: 'first', from: 'cmp3', to: 'cmp4' },
      { server: 'second', from: 'cmp3', to: 'cmp2' },
      { server: 'unplaced', from: 'cmp4', to: 'cmp6', alternates: ['cmp3'] },
      { server: 'crowded', from: 'cmp4', to: 'cmp5', alternates: ['cmp3'] },
      { server: 'lone', from: 'cmp2', to: 'cmp1', alternates: ['cmp4'] },
      { server: 'locked', from: 'cmp1', to: 'cmp2', alternates: ['cmp4'] },
      { server: 'early', from: 'cmp1', to: 'cmp2', alternates: ['cmp4'] },
      { server: 'person', from: 'cmp5', to: 'cmp2', alternates: ['cmp4'] },
      { server: 'late', from: 'cmp6', to: 'cmp2', phase: 'evacuate' },
      { server: 'evacuated', from: 'cmp6', to: 'cmp1', phase: 'evacuate' },
    ];
    await plans.pause(true);
    for (const [i, task] of (await plans.release(moves)).entries()) tasks.set(moves[i]?.server ?? '', task);
    // Changes between the plan and its execution.
    await wire.nova('PUT', `/os-services/${await wire.serviceId('cmp6')}`, NEWEST, { status: 'disabled' });
    await act('locked', { lock: null });
    await wire.nova('DELETE', `/servers/${uuid('early')}`);
    await wire.start(uuid('person'), 'cmp1');
    // This move has to leave cmp5 first: the space that it frees there would make room on the full destination.
    const { row } = await wire.follow(uuid('person'));
    await wire.until('the room of the server on cmp5 free', async () => {
      return Object.keys(await wire.allocations(row.uuid)).length === 0;
    });
    const bothUnderWay = async () => {
      try {
        return await wire.until('one running and one queued by Nova', async () => {
          const both = await Promise.all([statusesOf('first'), statusesOf('second')]);
          return both.flat().includes('running') && both.flat().includes('queued');
        });
      } finally {
        await Promise.all(['first', 'second'].map((name) => cloud.fault(uuid(name), null)));
      }
    };
    queued = bothUnderWay();
    deleted = running('late').then(async () => {
      await wire.nova('DELETE', `/servers/${uuid('late')}`);
      // A move that goes on before the compute deletes the server reaches its destination, and leaves the server in ERROR there.
      await wire.until('it is gone', async () => (await wire.nova('GET', `/servers/${uuid('late')}`)).status === 404);
      await cloud.fault(uuid('late'), null);
    });
    for (const each of [queued, deleted]) each.catch(() => undefined);
    await service.run();
    await plans.pause(false);
    // Nova moves one server at a time off a host: the one of the killed executors begins when the others have left its host.
    const others = ['unplaced', 'crowded'].map((name) => tasks.get(name) ?? '');
    twoKilled = plans.finals(others, PATIENCE_MS).then(killTwo);
    twoKilled.catch(() => undefined);
  });

  it('moves a server, and says so when Nova has', async () => {
    const { final, events } = await end('fine');
    const nova = await record('fine');
    expect(nova).toMatchObject({ rows: ['completed cmp1>cmp3'], server: 'ACTIVE cmp3' });
    expect(final).toMatchObject({
      type: 'migration.completed',
      data: { outcome: 'migrated', host: 'cmp3', retries: 0, nova: { migrationId: nova.ids[0], status: 'completed' } },
    });
    expect(starts(events)).toBe(1);
    const migrations = (await wire.actions(uuid('fine'))).filter(({ action }) => action === 'live-migration');
    expect(migrations).toHaveLength(1);
    // The executor does not know the request when Nova's answer took longer than the window of the POST.
    if (final.type === 'migration.completed')
      expect([migrations[0]?.request_id, null]).toContain(final.data.nova?.requestId);
  });

  it('evacuates a server from a host that was disabled', async () => {
    const { final } = await end('evacuated');
    expect(await record('evacuated')).toMatchObject({ rows: ['completed cmp6>cmp1'], server: 'ACTIVE cmp1' });
    expect(final).toMatchObject({ type: 'migration.completed', data: { host: 'cmp1' } });
  });

  it('takes the alternate when the hypervisor fails, and gives up when there is none left', async () => {
    const { final, events } = await end('fails');
    expect(await record('fails')).toMatchObject({
      rows: ['failed cmp1>cmp4', 'failed cmp1>cmp3'],
      server: 'ACTIVE cmp1',
    });
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'MigrationFailed', hostAtFault: 'cmp4', retries: 1, nova: { status: 'failed' } },
    });
    expect(starts(events)).toBe(2);
  });

  it('has two moves off one source, of which Nova queues one', async () => {
    await queued;
    for (const [name, to] of [
      ['first', 'cmp4'],
      ['second', 'cmp2'],
    ] as const) {
      const { final } = await end(name);
      expect(final).toMatchObject({ type: 'migration.completed', data: { host: to } });
      expect(await record(name)).toMatchObject({ rows: [`completed cmp3>${to}`], server: `ACTIVE ${to}` });
    }
  });

  it('refuses a destination that was disabled since, and takes the alternate', async () => {
    const { final, events } = await end('unplaced');
    expect(events[0]).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'PreFlightError', reason: { code: 'host-disabled' }, started: false },
    });
    expect(final).toMatchObject({ type: 'migration.completed', data: { host: 'cmp3' } });
    expect(await record('unplaced')).toMatchObject({ rows: ['completed cmp4>cmp3'], server: 'ACTIVE cmp3' });
  });

  it("shows the scheduler's reason when the destination has filled up since pre-flight, and takes the alternate", async () => {
    const { final, events } = await end('crowded');
    const refused = events.find(({ type }) => type === 'migration.failed');
    expect(refused).toMatchObject({
      data: {
        errorType: 'MigrationFailed',
        reason: { code: 'no-valid-host', text: expect.stringContaining('No valid host was found') },
        // A rule of the scheduler charges no host.
        cause: 'scheduler',
        hostAtFault: null,
        nova: { status: 'error' },
        retryPending: true,
      },
    });
    expect(final).toMatchObject({ type: 'migration.completed', data: { host: 'cmp3' } });
    expect(await record('crowded')).toMatchObject({
      rows: ['completed cmp4>cmp3', 'error cmp4>null'],
      server: 'ACTIVE cmp3',
    });
  });

  it('ends a lone member of a hard affinity group at once, although its task does not name the group', async () => {
    const { final } = await end('lone');
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'PreFlightError', reason: { code: 'affinity-gathered' }, retries: 0 },
    });
    const nova = await record('lone');
    expect(nova).toMatchObject({ server: 'ACTIVE cmp2' });
    expect(nova.rows).toHaveLength(asked);
    // Nova's own answer to the same move, requested by hand.
    asked += 1;
    const requestId = await wire.start(uuid('lone'), 'cmp1');
    const { row } = await wire.follow(uuid('lone'));
    expect(row.status).toBe('error');
    const said = (await wire.action(uuid('lone'), requestId)).events.map(({ details }) => details);
    const told = final.type === 'migration.failed' ? final.data.reason.text : '';
    expect(said.find((details) => details !== null)).toMatch(/^No valid host was found/);
    expect(told).toMatch(/no valid host/i);
  });

  it('leaves a locked server alone', async () => {
    const { final } = await end('locked');
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'PreFlightError', reason: { code: 'vm-locked' }, retries: 0 },
    });
    expect(await record('locked')).toMatchObject({ rows: [], server: 'ACTIVE cmp1' });
  });

  it('ends the task of a server that was deleted before it began', async () => {
    const { final, events } = await end('early');
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'Cancelled', reason: { code: 'server-gone' } },
    });
    expect(starts(events)).toBe(0);
    expect(await record('early')).toMatchObject({ rows: [], server: 'gone' });
  });

  it('ends the task of a server that was deleted while it moved', async () => {
    await deleted;
    const { final, events } = await end('late');
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'Cancelled', reason: { code: 'server-gone' } },
    });
    expect(starts(events)).toBe(1);
    expect(await record('late')).toMatchObject({ server: 'gone' });
  });

  it('leaves a server to the person who is moving it', async () => {
    const { final, events } = await end('person');
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'Cancelled', reason: { code: 'moved-by-others' } },
    });
    expect(starts(events)).toBe(0);
    expect(await record('person')).toMatchObject({ rows: ['completed cmp5>cmp1'], server: 'ACTIVE cmp1' });
  });

  it('aborts a migration that hangs', async () => {
    const { final } = await end('hangs');
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'MigrationTimeout', nova: { status: 'cancelled' }, retryPending: false },
    });
    expect(await record('hangs')).toMatchObject({ rows: ['cancelled cmp2>cmp3'], server: 'ACTIVE cmp2' });
  });

  it('killed before it hears of the POST, and again while Nova migrates: one migration, one result', () => twoKilled);
});
