/**
 * Moves between the two cells of a real Nova: an old aggregate is emptied by cold migration and by resize, with everything that can
 * intervene, and with an executor that is killed at each stage. What became of each server is asked of Nova and Placement.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { byText, type LogEventOf } from '@kronos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { openBed } from '../contract/bed.ts';
import type { CloudUnderTest } from '../contract/cloud.ts';
import { NEWEST, Wire } from '../contract/wire.ts';
import { runKronos } from '../e2e/command.ts';
import { ended, ofType, type Watch, watch } from '../e2e/world.ts';
import { type NovaProxy, type ProxyHooks, startProxy } from './proxy.ts';
import { bedConfig, bedUrls } from './urls.ts';

const OLD = { name: 'kronos-old', hosts: ['cmp1', 'cmp2'] };
const NEW = { name: 'kronos-new', hosts: ['cmp101', 'cmp102'] };
/** The new host that fits the flavor of the flavor map. */
const FIRST = 'cmp101';
const SMALL = { VCPU: 2, MEMORY_MB: 4096, DISK_GB: 1 };
const RUNNING = 1;
const SHUTDOWN = 4;
const PATIENCE_MS = 600_000;

/** An operator approves the plan and confirms the moves. A guest is well unless the test says otherwise. */
const config = (novaUrl: string, natsUrl: string, policiesFile: string, sick: string): string => `[engine]
aggregates = ${OLD.name}, ${NEW.name}
policies_file = ${policiesFile}
balance = false
dry_run = false
evaluation_interval = 3
instance_cooldown = 1
instance_quarantine_seconds = 1
[executor]
poll_interval = 0.5
retry_backoff = 1
[cells]
aggregates = cell1:${OLD.name}, cell2:${NEW.name}
verify = command:test ! -e ${sick}/$KRONOS_SERVER
verify_seconds = 1
verify_timeout = 1
confirm = manual
max_concurrent_resizes = 10
max_outbound_per_host = 10
max_inbound_per_host = 10
${bedConfig({ natsUrl, novaUrl, ackWaitSeconds: 5 })}`;

const rowSchema = z.object({ uuid: z.string(), status: z.string(), migration_type: z.string() });
type Row = z.infer<typeof rowSchema>;
type Plan = LogEventOf<'plan.proposed'>['data'];

describe('moves between cells on a real OpenStack', () => {
  let cloud: CloudUnderTest;
  let wire: Wire;
  let proxy: NovaProxy;
  let kronos: DemoInstallation;
  let log: Watch;
  let directory: string;
  /** The current hooks of the proxy before Nova. */
  let hooks: ProxyHooks = {};
  const ids = new Map<string, string>();
  const uuid = (name: string): string => ids.get(name) ?? expect.fail(`there is no server ${name}`);

  const act = async (name: string, action: object): Promise<void> => {
    const { status, text } = await wire.act(uuid(name), action);
    expect([202, 204], text).toContain(status);
  };
  const boot = async (host: string, ...names: string[]): Promise<void> => {
    for (const [i, id] of (await wire.boot(names.length, host)).entries()) ids.set(names[i] ?? '', id);
  };
  const stop = async (name: string): Promise<void> => {
    await act(name, { 'os-stop': null });
    await wire.until(`${name} SHUTOFF`, async () => (await wire.server(uuid(name))).status === 'SHUTOFF');
  };

  /** The rows of a server's migrations, of both cells, newest change first. */
  const rows = async (name: string): Promise<readonly Row[]> =>
    z.object({ migrations: z.array(rowSchema) }).parse(await wire.get(`/os-migrations?instance_uuid=${uuid(name)}`))
      .migrations;
  let hostOf: ReadonlyMap<string, string> = new Map();
  /** Host -> resources that a consumer holds there. */
  const held = async (consumer: string): Promise<Record<string, unknown>> => {
    const found = z.record(z.string(), z.object({ resources: z.unknown() })).parse(await wire.allocations(consumer));
    return Object.fromEntries(Object.entries(found).map(([id, { resources }]) => [hostOf.get(id) ?? id, resources]));
  };
  /** A server's facts in Nova and Placement. `migrations`: allocations of its migrations. */
  const truth = async (name: string) => {
    const server = await wire.server(uuid(name));
    const flavor = z.object({ original_name: z.string() }).parse(server.flavor).original_name;
    const uuids = new Set((await rows(name)).map((row) => row.uuid));
    const migrations: Record<string, unknown> = {};
    for (const each of uuids) Object.assign(migrations, await held(each));
    return {
      status: server.status,
      task: server['OS-EXT-STS:task_state'],
      power: server['OS-EXT-STS:power_state'],
      host: server['OS-EXT-SRV-ATTR:host'],
      flavor,
      held: await held(uuid(name)),
      migrations,
    };
  };
  const ACTIVE = { status: 'ACTIVE', task: null, power: RUNNING };
  const SHUTOFF = { status: 'SHUTOFF', task: null, power: SHUTDOWN };
  const settledAt = (host: string, state: object = ACTIVE, flavor = 'bed.small') => ({
    ...state,
    host,
    flavor,
    held: { [host]: SMALL },
    migrations: {},
  });
  /** Expects two claims: the server's on its new host, and its migration's on the old one. */
  const verifying = (from: string, host: string, power = RUNNING, flavor = 'bed.small') => ({
    status: 'VERIFY_RESIZE',
    task: null,
    power,
    host,
    flavor,
    held: { [host]: SMALL },
    migrations: { [from]: SMALL },
  });
  /** Name -> the facts just before Nova received the request to confirm or revert. */
  const settling = new Map<string, Awaited<ReturnType<typeof truth>>>();
  const lookBeforeSettling = (names: readonly string[]): ProxyHooks => {
    const posts = new Map<string, number>();
    return {
      before: async (method, path) => {
        const name = names.find((each) => method === 'POST' && path.endsWith(`${uuid(each)}/action`));
        if (name === undefined) return;
        const count = (posts.get(name) ?? 0) + 1;
        posts.set(name, count);
        if (count === 2) settling.set(name, await truth(name));
      },
    };
  };
  /** Waits for the allocations, because Nova removes them after the end of the move. */
  const becomes = async (name: string, expected: object): Promise<void> => {
    let last: unknown;
    const found = await wire
      .until(name, async () => {
        last = await truth(name);
        return JSON.stringify(sorted(last)) === JSON.stringify(sorted(expected));
      })
      .catch(() => false);
    if (!found) expect(last, name).toEqual(expected);
  };
  /** The names of the server's actions since its boot, oldest first. */
  const actions = async (name: string): Promise<readonly string[]> =>
    (await wire.actions(uuid(name))).map(({ action }) => action).reverse();

  const run = (...args: string[]) => runKronos(args, { KRONOS_CONFIG: kronos.configFile });
  /** Requests a plan. Returns it with the output of the command. */
  const plan = async (...args: string[]): Promise<Plan & { readonly text: string; readonly status: number | null }> => {
    const asked = await run('cells', 'plan', '--from', OLD.name, '--to', NEW.name, '--wait', '4m', ...args);
    const last = ofType(log.events, 'plan.proposed').at(-1)?.data;
    if (last === undefined) throw new Error(`there is no plan: ${asked.text}`);
    return { ...last, text: asked.text, status: asked.status };
  };
  const approve = async ({ planId }: Plan): Promise<void> => {
    const approved = await run('approve', planId);
    expect(approved.status, approved.text).toBe(0);
  };
  const taskOf = ({ steps }: Plan, name: string): string =>
    steps.find(({ serverId }) => serverId === uuid(name))?.taskId ?? expect.fail(`no step moves ${name}`);
  const resultOf = async (task: string) => {
    await log.until(`the end of ${task}`, (events) => ended(events).has(task), PATIENCE_MS);
    const finals = log.events.filter(
      (e) =>
        (e.type === 'migration.completed' ||
          e.type === 'migration.skipped' ||
          (e.type === 'migration.failed' && !e.data.retryPending)) &&
        e.data.taskId === task,
    );
    expect(finals, task).toHaveLength(1);
    return finals[0];
  };
  const seen = (
    type: `migration.${'started' | 'observed' | 'verifying' | 'verified' | 'confirmRequested'}`,
    task: string,
  ): Promise<void> =>
    log.until(
      `${type} of ${task}`,
      (events) => events.some((event) => event.type === type && event.data.taskId === task),
      PATIENCE_MS,
    );

  beforeAll(async () => {
    cloud = await openBed();
    await cloud.reset();
    wire = await Wire.connect(cloud);
    const found = z
      .object({ hypervisors: z.array(z.object({ id: z.string(), service: z.object({ host: z.string() }) })) })
      .parse(await wire.get('/os-hypervisors/detail')).hypervisors;
    hostOf = new Map(found.map(({ id, service }) => [id, service.host]));
    const hosts = [...hostOf.values()];
    for (const host of NEW.hosts)
      if (!hosts.includes(host))
        throw new Error(
          `there is no host ${host}: run test/openstack/bed down, then BED_CELL2_COMPUTES=2 test/openstack/bed up`,
        );
    for (const { name, hosts } of [OLD, NEW]) {
      const { body } = await wire.nova('POST', '/os-aggregates', NEWEST, { aggregate: { name } });
      const { id } = z.object({ aggregate: z.object({ id: z.number() }) }).parse(body).aggregate;
      for (const host of hosts) await wire.nova('POST', `/os-aggregates/${id}/action`, NEWEST, { add_host: { host } });
    }
    await boot('cmp1', 'runs', 'stopped', 'sick', 'deleted', 'locked');
    await boot('cmp2', 'confirmed', 'reverted', 'crowded', 'full');
    await stop('stopped');
    await act('locked', { lock: null });
    directory = await mkdtemp(join(tmpdir(), 'kronos-cells-'));
    await writeFile(join(directory, uuid('sick')), '');
    proxy = await startProxy(bedUrls.nova, {
      before: async (method, path) => hooks.before?.(method, path),
      after: async (method, path, status) => hooks.after?.(method, path, status),
    });
    kronos = await openInstallation({
      config: ({ natsUrl, policiesFile }) => config(proxy.url, natsUrl, policiesFile, directory),
      policies: 'policies: []\n',
      say: () => {},
      onExit: () => {},
    });
    log = watch(kronos);
    await log.until(
      'a decision about each aggregate',
      (events) => new Set(ofType(events, 'cycle.decided').map(({ aggregate }) => aggregate)).size === 2,
      PATIENCE_MS,
    );
  });
  afterAll(async () => {
    await kronos?.close();
    await proxy?.close();
    await rm(directory, { recursive: true, force: true });
    await cloud?.close();
  });

  it('a target at its capacity takes nothing, and the plan names each VM', async () => {
    for (const host of NEW.hosts) await cloud.fill(host, true);
    const none = await plan('--server', uuid('full'));
    expect([none.status, none.outcome, none.steps]).toEqual([1, 'quiet', []]);
    expect(none.text).toContain(`(${uuid('full')}) stays on cmp2: `);
    expect(none.refused.map(({ reason }) => reason.code)).toEqual(['capacity']);
    expect(await truth('full')).toEqual(settledAt('cmp2'));
    await cloud.fill(FIRST, false);
  });

  it('a target that fills up after pre-flight: Nova refuses, the result has its words, and the VM is as it was', async () => {
    const crowding = await plan('--server', uuid('crowded'));
    expect(crowding.steps.map(({ to, alternates }) => [to, alternates])).toEqual([[FIRST, []]]);
    hooks = {
      before: async (method, path) => {
        if (method === 'POST' && path.endsWith(`${uuid('crowded')}/action`)) await cloud.fill(FIRST, true);
      },
    };
    await approve(crowding);
    const final = await resultOf(taskOf(crowding, 'crowded'));
    hooks = {};
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: {
        reason: { code: 'no-valid-host', text: expect.stringContaining('No valid host was found') },
        cell: { method: 'migrate' },
        nova: { status: 'error' },
      },
    });
    expect(await truth('crowded')).toEqual(settledAt('cmp2'));
    expect(await actions('crowded')).toEqual(['create', 'migrate']);
    for (const host of NEW.hosts) await cloud.fill(host, false);
  });

  it('cold migrations: confirmed and reverted by Kronos, by their user, deleted; each VM is as it was', async () => {
    const moves = ['runs', 'stopped', 'sick', 'deleted', 'confirmed', 'reverted'];
    const made = await plan(...[...moves, 'locked'].flatMap((name) => ['--server', uuid(name)]));
    expect(made.text).toMatch(new RegExp(`${uuid('locked')}\\) stays on cmp1: The VM is locked`));
    expect(made.steps.map(({ cell }) => cell?.method)).toEqual(moves.map(() => 'migrate'));
    for (const name of moves)
      expect(await truth(name)).toMatchObject({ ...(name === 'stopped' ? SHUTOFF : ACTIVE), migrations: {} });
    hooks = lookBeforeSettling(['sick']);
    await approve(made);

    const target = (name: string): string => made.steps.find(({ serverId }) => serverId === uuid(name))?.to ?? '';
    // Kronos reverts `sick` as soon as its check has failed.
    for (const name of moves.filter((each) => each !== 'sick')) {
      await seen('migration.verified', taskOf(made, name));
      const source = ['confirmed', 'reverted'].includes(name) ? 'cmp2' : 'cmp1';
      expect(await truth(name), name).toEqual(verifying(source, target(name), name === 'stopped' ? SHUTDOWN : RUNNING));
    }
    const sick = await resultOf(taskOf(made, 'sick'));
    expect(settling.get('sick')).toEqual(verifying('cmp1', target('sick')));
    expect(sick).toMatchObject({
      type: 'migration.failed',
      data: {
        errorType: 'MigrationFailed',
        reason: { code: 'verification' },
        cell: { method: 'migrate', settledBy: 'kronos' },
      },
    });
    hooks = {};
    await becomes('sick', settledAt('cmp1'));

    const deleted = (await rows('deleted')).map((row) => row.uuid);
    expect((await wire.nova('DELETE', `/servers/${uuid('deleted')}`)).status).toBe(204);
    await act('confirmed', { confirmResize: null });
    await act('reverted', { revertResize: null });
    const confirm = await run('cells', 'confirm', taskOf(made, 'runs'), taskOf(made, 'stopped'));
    expect(confirm.status, confirm.text).toBe(0);

    for (const name of ['runs', 'stopped', 'confirmed'])
      expect(await resultOf(taskOf(made, name)), name).toMatchObject({
        type: 'migration.completed',
        data: {
          host: target(name),
          warnings: [],
          cell: {
            oldFlavor: 'bed.small',
            newFlavor: 'bed.small',
            settledBy: name === 'confirmed' ? 'others' : 'kronos',
          },
        },
      });
    expect(await resultOf(taskOf(made, 'reverted'))).toMatchObject({
      type: 'migration.failed',
      data: { errorType: 'Cancelled', cell: { settledBy: 'others' } },
    });
    // To delete it, Nova confirms the resize first, and shows the server idle on the target until the delete goes on.
    const ofDeleted = await resultOf(taskOf(made, 'deleted'));
    expect(ofDeleted?.data).toMatchObject(
      ofDeleted?.type === 'migration.completed'
        ? { host: target('deleted'), warnings: [], cell: { settledBy: 'others' } }
        : { errorType: 'Cancelled', reason: { code: 'server-gone' } },
    );
    await becomes('runs', settledAt(target('runs')));
    await becomes('stopped', settledAt(target('stopped'), SHUTOFF));
    await becomes('confirmed', settledAt(target('confirmed')));
    await becomes('reverted', settledAt('cmp2'));
    for (const consumer of [uuid('deleted'), ...deleted])
      await wire.until(`nothing held by ${consumer}`, async () => Object.keys(await held(consumer)).length === 0);
    expect(await actions('runs')).toEqual(['create', 'migrate', 'confirmResize']);
    expect(await actions('sick')).toEqual(['create', 'migrate', 'revertResize']);
    expect(await actions('confirmed')).toEqual(['create', 'migrate', 'confirmResize']);
    expect(await actions('reverted')).toEqual(['create', 'migrate', 'revertResize']);
  }, 1_200_000);

  it('resizes through a flavor map, confirmed without a person, leave the old aggregate empty', async () => {
    await act('locked', { unlock: null });
    await stop('locked');
    await rm(join(directory, uuid('sick')));
    await restart('scorer', { OS_CELLS__CONFIRM: 'auto' });
    const map = join(directory, 'flavors.yaml');
    await writeFile(map, 'bed.small: contract.foreign\n');
    const moves = ['sick', 'locked', 'reverted', 'crowded', 'full'];
    const made = await plan('--flavor-map', map);
    expect(made.steps.map(({ serverId }) => serverId).sort(), made.text).toEqual(moves.map(uuid).sort());
    expect(made.steps.map(({ cell }) => [cell?.method, cell?.confirm])).toEqual(moves.map(() => ['resize', 'auto']));
    const sources = new Map(made.steps.map(({ serverId, from }) => [serverId, from]));
    hooks = lookBeforeSettling(moves);
    await approve(made);
    for (const name of moves) {
      const started = async () => (await rows(name)).some((row) => row.migration_type === 'resize');
      await wire.until(`the resize of ${name}`, started);
      expect(await resultOf(taskOf(made, name)), name).toMatchObject({
        type: 'migration.completed',
        data: {
          host: FIRST,
          warnings: [],
          cell: { method: 'resize', oldFlavor: 'bed.small', newFlavor: 'contract.foreign', settledBy: 'kronos' },
        },
      });
      const power = name === 'locked' ? SHUTDOWN : RUNNING;
      expect(settling.get(name), name).toEqual(
        verifying(sources.get(uuid(name)) ?? '', FIRST, power, 'contract.foreign'),
      );
      await becomes(name, settledAt(FIRST, name === 'locked' ? SHUTOFF : ACTIVE, 'contract.foreign'));
    }
    hooks = {};
    for (const host of OLD.hosts) {
      expect(await wire.get(`/servers/detail?all_tenants=1&host=${host}`)).toMatchObject({ servers: [] });
      const usages = await wire.placement(`/resource_providers/${await wire.provider(host)}/usages`);
      expect(usages.body).toMatchObject({ usages: { VCPU: 0, MEMORY_MB: 0, DISK_GB: 0 } });
    }
  }, 1_200_000);

  it('an executor that is killed at each stage: one request of each kind, one result, each VM on its new host', async () => {
    const events = {
      started: 'migration.started',
      observed: 'migration.observed',
      verifying: 'migration.verifying',
      verified: 'migration.verified',
      settling: 'migration.confirmRequested',
    } as const;
    // Two crashes per request: before Nova receives it, and after Nova's answer, which the executor does not get any more.
    const requests = {
      posting: ['before', 1],
      posted: ['after', 1],
      asking: ['before', 2],
      answered: ['after', 2],
    } as const;
    const names = [...Object.keys(events), ...Object.keys(requests)];
    await boot('cmp1', ...names);
    const kill = async (): Promise<void> => {
      const executor = kronos.processes.get('executor')?.at(-1);
      const gone = new Promise((resolve) => executor?.once('exit', resolve));
      executor?.kill('SIGKILL');
      await gone;
      kronos.start('executor');
    };
    // One plan after the other, because the isolation of a task that saw several crashes takes long.
    for (const name of names) {
      let posts = 0;
      const [moment, number] = requests[name as keyof typeof requests] ?? [];
      const at = async (now: 'before' | 'after', method: string, path: string): Promise<void> => {
        if (method !== 'POST' || !path.endsWith(`${uuid(name)}/action`)) return;
        if (now === 'before') posts += 1;
        if (now === moment && posts === number) await kill();
      };
      hooks = {
        before: (method, path) => at('before', method, path),
        after: (method, path) => at('after', method, path),
      };
      const made = await plan('--server', uuid(name));
      expect(made.steps.map(({ cell }) => [cell?.method, cell?.confirm])).toEqual([['migrate', 'auto']]);
      await approve(made);
      const task = taskOf(made, name);
      const type = events[name as keyof typeof events];
      if (type !== undefined) {
        await seen(type, task);
        await kill();
      }
      const to = made.steps[0]?.to ?? '';
      expect(await resultOf(task), name).toMatchObject({
        type: 'migration.completed',
        data: { host: to, warnings: [], cell: { settledBy: 'kronos' } },
      });
      await becomes(name, settledAt(to));
      expect([name, await actions(name), posts]).toEqual([name, ['create', 'migrate', 'confirmResize'], 2]);
    }
    hooks = {};
  }, 2_400_000);

  /** Stops a service and starts it with other options. */
  async function restart(service: 'scorer', env: Readonly<Record<string, string>>): Promise<void> {
    const running = kronos.processes.get(service)?.at(-1);
    const gone = new Promise((resolve) => running?.once('exit', resolve));
    running?.kill('SIGTERM');
    await gone;
    Object.assign(process.env, env);
    kronos.start(service);
    for (const name of Object.keys(env)) Reflect.deleteProperty(process.env, name);
  }
});

/** A copy with sorted keys in every object. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => byText(a, b))
      .map(([key, each]) => [key, sorted(each)]),
  );
}
