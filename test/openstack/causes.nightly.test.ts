/**
 * A real OpenStack of which parts fail while Kronos empties a host, and people who act meanwhile. What Kronos does is done exactly
 * once and ends, and one sentence says what happened. One installation for all scenarios; each has servers of its own.
 */
import type { LogEvent, ServiceName } from '@kronos/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { openBed } from '../contract/bed.ts';
import type { CloudUnderTest } from '../contract/cloud.ts';
import { NEWEST, Wire } from '../contract/wire.ts';
import { type Outcome, runKronos } from '../e2e/command.ts';
import { ended, ofType, type Watch, watch } from '../e2e/world.ts';
import { bed, bedConfig } from './urls.ts';

/** Its plans are released at once. */
const FREE = { name: 'kronos-free', hosts: ['cmp1', 'cmp2', 'cmp3'] } as const;
/** Its plans wait for a person, so that a test can act between the plan and the pre-flight. */
const ASKED = { name: 'kronos-asked', hosts: ['cmp4', 'cmp5', 'cmp6'] } as const;
const USER = 'kronos';
const LIMIT_MS = 240_000;

/** Only drains and group rules ask for moves. */
const config = ({ natsUrl, policiesFile }: { natsUrl: string; policiesFile: string }) => `[engine]
aggregates = ${FREE.name}, ${ASKED.name}
policies_file = ${policiesFile}
balance = false
dry_run = false
evaluation_interval = 5
cooldown = 1
instance_cooldown = 1
instance_quarantine_seconds = 1
settle_seconds = 0
[aggregate:${ASKED.name}]
approval = manual
approval_ttl = 60
[executor]
max_outbound_per_host = 2
poll_interval = 1
retry_backoff = 1
${bedConfig({ natsUrl, username: USER, ackWaitSeconds: 5 })}`;

/** The final results of the tasks of a server, in the order of the log. */
const finalsOf = (events: readonly LogEvent[], id: string) =>
  events.flatMap((event) =>
    (event.type === 'migration.completed' || (event.type === 'migration.failed' && !event.data.retryPending)) &&
    event.data.serverId === id
      ? [event]
      : [],
  );
const startsOf = (id: string) => ofType(log.events, 'migration.started').filter(({ data }) => data.serverId === id);
const failuresOf = (events: readonly LogEvent[], id: string) =>
  ofType(events, 'migration.failed').filter(({ data }) => data.serverId === id);

let cloud: CloudUnderTest;
let wire: Wire;
let kronos: DemoInstallation;
let log: Watch;
const aggregates = new Map<string, number>();

beforeAll(async () => {
  cloud = await openBed();
  await cloud.reset();
  wire = await Wire.connect(cloud);
  for (const { name, hosts } of [FREE, ASKED]) aggregates.set(name, Number(await bed('aggregate', name, ...hosts)));
  await bed('openstack', 'user', 'create', '--or-show', '--domain', 'default', '--password', 'secret', USER);
  await bed('openstack', 'role', 'add', '--project', 'admin', '--user', USER, 'admin');
  kronos = await openInstallation({ config, policies: 'policies: []\n', say: () => {}, onExit: () => {} });
  log = watch(kronos);
  await log.until(
    'a decision about each aggregate',
    (events) => new Set(ofType(events, 'cycle.decided').map(({ aggregate }) => aggregate)).size === 2,
    LIMIT_MS,
  );
});
afterAll(async () => {
  await kronos?.close();
  await bed('openstack', 'user', 'delete', USER);
  await cloud?.close();
});

const run = (...args: string[]): Promise<Outcome> => runKronos(args, { KRONOS_CONFIG: kronos.configFile });
const act = async (id: string, action: object): Promise<void> => {
  const { status, text } = await wire.act(id, action);
  expect([200, 202, 204], text).toContain(status);
};
const member = async (what: 'add_host' | 'remove_host', aggregate: string, host: string): Promise<void> => {
  const { status, text } = await wire.nova('POST', `/os-aggregates/${aggregates.get(aggregate)}/action`, NEWEST, {
    [what]: { host },
  });
  expect(status, text).toBe(200);
};
const state = (id: string, status: string): Promise<unknown> =>
  wire.until(`${id} ${status}`, async () => (await wire.server(id)).status === status);
const down = (host: string): Promise<unknown> =>
  wire.until(`${host} down`, async () => {
    const { services } = z
      .object({ services: z.array(z.object({ state: z.string() })) })
      .parse(await wire.get(`/os-services?binary=nova-compute&host=${host}`));
    return services[0]?.state === 'down';
  });

/** Waits until `kronos status` says it. */
async function statusSays(words: RegExp, limitMs = LIMIT_MS): Promise<void> {
  let text = '';
  const said = async (): Promise<boolean> => {
    ({ text } = await run('status'));
    return words.test(text);
  };
  await expect
    .poll(said, { timeout: limitMs, interval: 1000 })
    .toBe(true)
    .catch(() => expect(text).toMatch(words));
}

async function drain(host: string): Promise<void> {
  const asked = await run('drain', host, '--yes');
  expect(asked.status, asked.text).toBe(0);
}

/** The servers of the scenario, and the host from which they start. */
const scene = { host: '', ids: [] as string[] };
async function boot(count: number, host: string, more: { group?: string } = {}): Promise<string[]> {
  if (scene.ids.length === 0) scene.host = host;
  const ids = await wire.boot(count, host, more);
  scene.ids.push(...ids);
  return ids;
}
async function bootOne(host: string, more: { group?: string } = {}): Promise<string> {
  const [id] = await boot(1, host, more);
  return id ?? expect.fail('no server');
}

/** Ends the drain of the host, if there is one, and deletes the servers. */
async function tidy(): Promise<void> {
  const { host } = scene;
  const ids = scene.ids.splice(0);
  for (const id of ids) await bed('fault', id, 'clear');
  const opened = ofType(log.events, 'host.drainAsked').filter(({ data }) => data.host === host).length;
  const closed = (events: readonly LogEvent[]) =>
    events.filter(
      (event) => (event.type === 'host.enabled' || event.type === 'host.leftDisabled') && event.data.host === host,
    ).length;
  if (closed(log.events) < opened) await run('undrain', host);
  // Nova refuses it while something else is done to the server.
  const gone = async (id: string) => (await wire.nova('DELETE', `/servers/${id}`)).status;
  for (const id of ids) await expect.poll(() => gone(id), { timeout: LIMIT_MS, interval: 2000 }).toBe(404);
  await log.until(
    `the end of the work on ${host}`,
    (events) => {
      const over = ended(events);
      const released = ofType(events, 'cycle.decided').flatMap(({ data }) =>
        data.release === 'released' ? (data.plan?.steps ?? []) : [],
      );
      return (
        closed(events) >= opened &&
        released.every(({ serverId, taskId }) => !ids.includes(serverId) || over.has(taskId))
      );
    },
    LIMIT_MS,
  );
}

afterEach(tidy);

/** Each task has one result; Nova has one migration for each request of Kronos, and one completed for each completed result. */
async function expectOnce(id: string, host: string): Promise<void> {
  const finals = finalsOf(log.events, id);
  expect(new Set(finals.map(({ data }) => data.taskId)).size, `results of ${id}`).toBe(finals.length);
  const rows = await wire.rows(id);
  expect(rows.length, `migrations of ${id}`).toBeLessThanOrEqual(startsOf(id).length);
  const completed = finals.filter(({ type }) => type === 'migration.completed');
  expect(rows.filter(({ status }) => status === 'completed')).toHaveLength(completed.length);
  const last = completed.at(-1);
  expect((await wire.server(id))['OS-EXT-SRV-ATTR:host']).toBe(
    last?.type === 'migration.completed' ? last.data.host : host,
  );
}

/** No host is charged with what is not its fault. */
const noHostCharged = (id: string): void => {
  for (const { data } of failuresOf(log.events, id)) expect(data.hostAtFault, data.reason.text).toBeNull();
};

const kill = async (service: ServiceName): Promise<void> => {
  const [child] = (kronos.processes.get(service) ?? []).filter(
    (one) => one.exitCode === null && one.signalCode === null,
  );
  child?.kill('SIGKILL');
};

describe('the world changes between a plan and its approval', () => {
  type Waiting = { readonly id: string; readonly to: string };
  type Scenario = {
    readonly fault: string;
    readonly strike: (waiting: Waiting) => Promise<unknown>;
    readonly mend?: (waiting: Waiting) => Promise<unknown>;
    /** The code and the text of the first refusal. */
    readonly code: string;
    readonly text: RegExp;
    /** Whether the VM leaves the host all the same. */
    readonly leaves: boolean;
  };
  const table: readonly Scenario[] = [
    {
      fault: 'an operator disables the destination',
      strike: ({ to }) => bed('host', to, 'disable'),
      mend: ({ to }) => bed('host', to, 'enable'),
      code: 'host-disabled',
      text: /nova-compute on cmp\d is disabled/,
      leaves: true,
    },
    {
      fault: 'the destination leaves the aggregate',
      strike: ({ to }) => member('remove_host', ASKED.name, to),
      mend: ({ to }) => member('add_host', ASKED.name, to),
      code: 'destination-left',
      text: /cmp\d left aggregate kronos-asked/,
      leaves: true,
    },
    {
      fault: 'the destination enters a second aggregate that Kronos serves',
      strike: ({ to }) => member('add_host', FREE.name, to),
      mend: ({ to }) => member('remove_host', FREE.name, to),
      code: 'host-in-two-aggregates',
      text: /cmp\d is in kronos-asked and in kronos-free, both in scope/,
      leaves: true,
    },
    {
      fault: 'a member of the server group boots on the destination',
      strike: async ({ id, to }) => {
        const { server_groups: groups } = z
          .object({ server_groups: z.array(z.object({ id: z.string(), members: z.array(z.string()) })) })
          .parse(await wire.get('/os-server-groups?all_projects=True'));
        const group = groups.find(({ members }) => members.includes(id))?.id ?? expect.fail('no group');
        await bootOne(to, { group });
      },
      code: 'anti-affinity',
      text: /^1 member of server group contract-anti-affinity is on cmp\d$/,
      leaves: true,
    },
    {
      fault: 'the nova-compute of the destination dies',
      strike: async ({ to }) => {
        await bed('host', to, 'kill');
        await down(to);
      },
      mend: ({ to }) => cloud.start(to),
      code: 'host-down',
      text: /nova-compute on cmp\d is not up/,
      leaves: true,
    },
    {
      fault: 'the source leaves the aggregate',
      strike: () => member('remove_host', ASKED.name, 'cmp4'),
      mend: () => member('add_host', ASKED.name, 'cmp4'),
      code: 'source-left',
      text: /cmp4 left aggregate kronos-asked/,
      leaves: false,
    },
  ];
  /** A plan that waits, and its step for the server. */
  async function proposedFor(id: string) {
    const found = (events: readonly LogEvent[]) =>
      ofType(events, 'cycle.decided').findLast(
        ({ data }) => data.release === 'proposed' && data.plan?.steps.some(({ serverId }) => serverId === id),
      );
    await log.until('a proposed plan', (events) => found(events) !== undefined, LIMIT_MS);
    const data = found(log.events)?.data;
    const step = data?.plan?.steps.find(({ serverId }) => serverId === id);
    return { plan: data?.snapshotId ?? '', to: step?.to ?? '' };
  }
  const bootMember = async () => bootOne('cmp4', { group: await wire.group('anti-affinity') });

  it.each(table)(
    '$fault: the pre-flight says so, and no host is charged for it',
    async ({ strike, mend, code, text, leaves }) => {
      const id = await bootMember();
      await drain('cmp4');
      const { plan, to } = await proposedFor(id);
      try {
        await strike({ id, to });
        const answer = await run('approve', plan);
        expect(answer.status, answer.text).toBe(0);
        await log.until('a result', (events) => finalsOf(events, id).length > 0, LIMIT_MS);
        const [first] = failuresOf(log.events, id);
        expect(first?.data).toMatchObject({ reason: { code }, started: false, retryPending: leaves });
        expect(first?.data.reason.text).toMatch(text);
        if (code !== 'host-down') noHostCharged(id);
        const [final] = finalsOf(log.events, id);
        expect(final?.type).toBe(leaves ? 'migration.completed' : 'migration.failed');
        await expectOnce(id, 'cmp4');
        const { text: tasks } = await run('tasks', '--ended', '--vm', id, '-o', 'json');
        expect(tasks).toMatch(leaves ? /"completed"/ : text);
      } finally {
        await mend?.({ id, to });
      }
    },
    900_000,
  );

  it('the drain ends: the plan is withdrawn, and no approval can release it', async () => {
    const id = await bootMember();
    await drain('cmp4');
    const { plan } = await proposedFor(id);
    expect((await run('undrain', 'cmp4', '--watch')).status).toBe(0);
    await log.until(
      'the plan to be withdrawn',
      (events) => ofType(events, 'plan.withdrawn').some(({ data }) => data.planId === plan),
      LIMIT_MS,
    );
    const answer = await run('approve', plan);
    expect(answer.status, answer.text).not.toBe(0);
    expect(answer.text).toMatch(/withdrawn/);
    expect(startsOf(id)).toEqual([]);
  }, 900_000);

  it('nobody answers: the plan expires, the next one waits, and status says for what', async () => {
    const id = await bootMember();
    await drain('cmp4');
    const { plan } = await proposedFor(id);
    await log.until(
      'the next plan',
      (events) =>
        ofType(events, 'cycle.decided').some(
          ({ data }) =>
            data.release === 'proposed' &&
            data.snapshotId !== plan &&
            data.plan?.steps.some(({ serverId }) => serverId === id),
        ),
      LIMIT_MS,
    );
    const late = await run('approve', plan);
    expect(late.status, late.text).not.toBe(0);
    expect(late.text).toMatch(/expired/);
    const next = await proposedFor(id);
    await statusSays(/kronos approve/);
    expect((await run('approve', next.plan)).status).toBe(0);
    await log.until('a result', (events) => finalsOf(events, id).length > 0, LIMIT_MS);
    await expectOnce(id, 'cmp4');
  }, 900_000);
});

describe('people act on VMs', () => {
  type Row = {
    readonly deed: string;
    readonly strike: (id: string) => Promise<unknown>;
    readonly code: string;
    readonly text: RegExp;
  };
  const meta = (id: string, metadata: Record<string, string>): Promise<unknown> =>
    wire.nova('POST', `/servers/${id}/metadata`, NEWEST, { metadata });
  const table: readonly Row[] = [
    {
      deed: 'shelved',
      strike: async (id) => {
        await act(id, { shelve: null });
        // Nova forgets the host a moment after it calls the VM offloaded.
        await wire.until(`${id} on no host`, async () => (await wire.server(id))['OS-EXT-SRV-ATTR:host'] === null);
      },
      code: 'moved-by-others',
      text: /on no host: it was shelved/,
    },
    {
      deed: 'rescued',
      strike: async (id) => {
        await act(id, { rescue: {} });
        await state(id, 'RESCUE');
      },
      code: 'vm-status',
      text: /the server is rescued/,
    },
    {
      deed: 'stopped',
      strike: async (id) => {
        await act(id, { 'os-stop': null });
        await state(id, 'SHUTOFF');
      },
      code: 'vm-status',
      text: /the server is stopped/,
    },
    {
      deed: 'moved cold to another aggregate',
      strike: async (id) => {
        await act(id, { migrate: { host: 'cmp4' } });
        await state(id, 'VERIFY_RESIZE');
      },
      code: 'moved-by-others',
      text: /^the server is on cmp4: somebody else moved it$/,
    },
    {
      deed: 'locked',
      strike: (id) => act(id, { lock: { locked_reason: 'upgrade of its database' } }),
      code: 'vm-locked',
      text: /locked: upgrade of its database/,
    },
    {
      deed: 'tagged',
      strike: (id) => wire.nova('PUT', `/servers/${id}/tags/kronos:exclude`),
      code: 'vm-opted-out',
      text: /opted out by .*kronos:exclude/,
    },
    {
      deed: 'given a window that is closed',
      // A day that is neither today nor tomorrow anywhere.
      strike: (id) => {
        const day = new Date(Date.now() + 3 * 86_400_000).toLocaleDateString('en-US', {
          weekday: 'short',
          timeZone: 'UTC',
        });
        return meta(id, { 'kronos:window': `${day} 02:00-03:00` });
      },
      code: 'vm-outside-window',
      text: /own window is closed/,
    },
  ];

  it(`${table.map(({ deed }) => deed).join(', ')} while they wait for their turn: each task ends with the person's act`, async () => {
    const ids = await boot(table.length + 2, 'cmp1');
    // Two leave at once and hold the others up.
    for (const id of ids) await bed('fault', id, 'hang');
    await drain('cmp1');
    const moving = (events: readonly LogEvent[]) => [
      ...new Set(
        ofType(events, 'migration.started').flatMap(({ data }) => (ids.includes(data.serverId) ? [data.serverId] : [])),
      ),
    ];
    await log.until('two moves', (events) => moving(events).length === 2, LIMIT_MS);
    const first = moving(log.events);
    const waiting = ids.filter((id) => !first.includes(id));
    await Promise.all(table.map(({ strike }, i) => strike(waiting[i] ?? '')));
    for (const id of ids) await bed('fault', id, 'clear');
    await log.until('results', (events) => ids.every((id) => finalsOf(events, id).length > 0), LIMIT_MS);
    const { text: tasks } = await run('tasks', '--ended', '-o', 'json');
    for (const [i, { deed, code, text }] of table.entries()) {
      const id = waiting[i] ?? '';
      const [final] = finalsOf(log.events, id);
      expect(final?.data, deed).toMatchObject({ reason: { code } });
      expect(final?.type === 'migration.failed' ? final.data.reason.text : '', deed).toMatch(text);
      expect(startsOf(id)).toEqual([]);
      noHostCharged(id);
      expect(tasks).toContain(id);
    }
    for (const id of first) await expectOnce(id, 'cmp1');
    await statusSays(/cmp1.*(stuck|stopped|rescue)/is);
  }, 900_000);

  it('a guest that Nova calls shut down is refused before any request, and the drain says which VM and why', async () => {
    const id = await bootOne('cmp1');
    await bed('power', id, '4');
    await drain('cmp1');
    const stuck = (events: readonly LogEvent[]) =>
      ofType(events, 'cycle.decided').some(({ data }) =>
        data.stuck.some(({ serverId, reason }) => serverId === id && reason.code === 'vm-power-state'),
      );
    await log.until('a decision that names the VM', stuck, LIMIT_MS);
    await statusSays(/cannot leave cmp1: the guest is neither running nor paused: Nova refuses to live-migrate it/);
    expect(await wire.rows(id)).toEqual([]);
    expect(startsOf(id)).toEqual([]);
  }, 900_000);

  it('a person stops the migration in Nova: the task says who, and charges nobody', async () => {
    const id = await bootOne('cmp1');
    await bed('fault', id, 'hang');
    await drain('cmp1');
    const running = await wire.until('a running migration', async () =>
      (await wire.rows(id)).find(({ status }) => status === 'running'),
    );
    await wire.nova('DELETE', `/servers/${id}/migrations/${running.id}`);
    await log.until('a result', (events) => finalsOf(events, id).length > 0, LIMIT_MS);
    await bed('fault', id, 'clear');
    const [final] = finalsOf(log.events, id);
    expect(final?.data).toMatchObject({
      errorType: 'Cancelled',
      reason: { code: 'aborted-by-others', text: 'somebody else aborted the migration in Nova' },
    });
    noHostCharged(id);
  }, 900_000);

  it('the hook of a rolling maintenance fails: the run stops there, and the host stays disabled', async () => {
    const id = await bootOne('cmp1');
    const rolled = await run('drain', 'cmp1', '--one-by-one', '--hook', 'exit 3', '--yes');
    expect(rolled.status, rolled.text).not.toBe(0);
    expect(rolled.text).toMatch(/the hook failed on cmp1: .*3/);
    expect(await wire.get('/os-services?binary=nova-compute&host=cmp1')).toMatchObject({
      services: [{ status: 'disabled' }],
    });
    await expectOnce(id, 'cmp1');
  }, 900_000);
});

describe('the source dies with two moves in its queue', () => {
  it('both tasks end, the row that Nova forgot is named, and the drain reaches its end', async () => {
    const drainedTimes = (events: readonly LogEvent[]) =>
      ofType(events, 'host.drained').filter(({ data }) => data.host === 'cmp1').length;
    const before = drainedTimes(log.events);
    const ids = await boot(2, 'cmp1');
    for (const id of ids) await bed('fault', id, 'hang');
    await drain('cmp1');
    await wire.until('one running and one queued', async () => {
      const rows = (await Promise.all(ids.map((id) => wire.rows(id)))).flat();
      // A request that has not reached the compute is carried out once it starts again.
      return ['queued', 'running'].every((wanted) => rows.some(({ status }) => status === wanted));
    });
    await bed('host', 'cmp1', 'kill');
    for (const id of ids) await bed('fault', id, 'clear');
    await cloud.start('cmp1');
    await statusSays(/Nova no longer works on migration \d+ of contract-cmp1-\d \(queued\): not counted/, 600_000);
    // The fake hypervisor has forgotten its guests.
    for (const id of ids) await bed('power', id, '1');
    await log.until(
      'both to leave',
      (events) => ids.every((id) => ofType(events, 'migration.completed').some(({ data }) => data.serverId === id)),
      600_000,
    );
    await log.until('the end of the drain', (events) => drainedTimes(events) > before, LIMIT_MS);
    for (const id of ids) await expectOnce(id, 'cmp1');
  }, 1_500_000);
});

describe('a part of the cloud fails while a VM moves', () => {
  type Scenario = {
    readonly fault: string;
    /** The event at which it strikes. */
    readonly at: 'migration.started' | 'migration.observed';
    readonly strike: () => Promise<unknown>;
    /** The text of `kronos status` meanwhile. */
    readonly sees: RegExp;
    readonly mend: () => Promise<unknown>;
    /** Whether Nova itself survives it: else it may leave the VM in ERROR, on its source or on its destination. */
    readonly survives: boolean;
  };
  const table: readonly Scenario[] = [
    {
      fault: 'nova-api dies',
      at: 'migration.observed',
      strike: () => bed('part', 'api', 'kill'),
      sees: /nova is unreachable: .*ECONNREFUSED/,
      mend: () => bed('part', 'api', 'start'),
      survives: true,
    },
    {
      fault: 'the executor dies',
      at: 'migration.started',
      strike: () => kill('executor'),
      sees: /sent its last heartbeat at .*: it ended, hangs, or cannot reach NATS/,
      mend: async () => kronos.start('executor'),
      survives: true,
    },
    {
      fault: 'Placement stands still',
      at: 'migration.observed',
      strike: () => bed('part', 'placement', 'stop'),
      sees: /Placement has not answered GET \/\S+ for/,
      mend: () => bed('part', 'placement', 'start'),
      survives: true,
    },
    {
      fault: 'somebody takes the role of Kronos away',
      at: 'migration.observed',
      strike: async () => {
        await bed('openstack', 'role', 'remove', '--project', 'admin', '--user', USER, 'admin');
        await bed('forget');
      },
      sees: /refused user kronos/,
      mend: () => bed('openstack', 'role', 'add', '--project', 'admin', '--user', USER, 'admin'),
      survives: true,
    },
    {
      fault: 'nova-conductor stands still, so every nova-compute looks down',
      at: 'migration.started',
      strike: () => bed('part', 'conductor', 'stop'),
      sees: /every nova-compute is down .*message bus or nova-conductor/,
      mend: () => bed('part', 'conductor', 'start'),
      survives: true,
    },
    {
      fault: 'the database stands still',
      at: 'migration.observed',
      strike: () => bed('part', 'database', 'stop'),
      sees: /(Nova|Placement|Keystone) has not answered/,
      mend: () => bed('part', 'database', 'start'),
      survives: false,
    },
    {
      fault: 'nova-api does not reach the database of the other cell',
      at: 'migration.observed',
      strike: () => bed('cells', 'cut'),
      sees: /a cell is down: Nova does not reach the database of the cell of cmp101, cmp102/,
      mend: () => bed('cells', 'reached'),
      survives: true,
    },
    {
      fault: 'RabbitMQ stops',
      at: 'migration.observed',
      strike: () => bed('rabbit', 'stop'),
      sees: /every nova-compute is down .*message bus or nova-conductor/,
      mend: () => bed('rabbit', 'start'),
      survives: false,
    },
  ];

  it.each(table)(
    '$fault: the VM is moved once, and status names the cause',
    async ({ at, strike, sees, mend, survives }) => {
      const id = await bootOne('cmp1');
      await bed('fault', id, 'hang');
      try {
        await drain('cmp1');
        await log.until(at, (events) => events.some((e) => e.type === at && e.data.serverId === id), LIMIT_MS);
        await strike();
        await statusSays(sees);
      } finally {
        await mend();
      }
      await bed('fault', id, 'clear');
      const over = (events: readonly LogEvent[]) =>
        finalsOf(events, id).some(({ type }) => !survives || type === 'migration.completed');
      await log.until('a result', over, LIMIT_MS);
      if (survives) await expectOnce(id, 'cmp1');
      else expect((await wire.rows(id)).length).toBeLessThanOrEqual(startsOf(id).length);
      noHostCharged(id);
    },
    900_000,
  );
});
