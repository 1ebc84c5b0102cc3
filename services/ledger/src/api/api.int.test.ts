import { ALL } from '@kronos/contracts';
import type { Sketch } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ledgerBed } from '../../testing/index.ts';
import { actingAnswers } from './commandSchemas.ts';
import { endpoints, PREFIX } from './endpoints.ts';
import { answers, type Operation, refusal } from './schemas.ts';

let bed: Awaited<ReturnType<typeof ledgerBed>>;
beforeEach(async () => {
  bed = await ledgerBed();
});
afterEach(async () => {
  await bed.close();
});

const AGGREGATE = 'web eu/1';
const path = `/api/v1/aggregates/${encodeURIComponent(AGGREGATE)}`;

/** Two busy hosts and an idle one that is down for maintenance. */
const before: Sketch = {
  policies: { cpu: { threshold: 0.2 }, memory: { threshold: 0.1 } },
  hosts: { h1: {}, h2: {}, h3: { disabled: true, zone: 'az-2' } },
  vms: {
    vm1: { host: 'h1', w: { cpu: 0.3, memory: 0.2 }, set: { name: 'web-1' } },
    vm2: { host: 'h1', w: { cpu: 0.2, memory: 0.1 }, set: { name: 'web-1' } },
    vm3: { host: 'h2', w: { cpu: 0.1, memory: 0.1 }, set: { name: 'db <b>' } },
  },
};
const after: Sketch = { ...before, vms: { ...before.vms, vm1: { ...before.vms.vm1, host: 'h2' } } };

/** A plan, what it was decided on, and what was seen after it. */
async function recorded() {
  const log = testLog(AGGREGATE, Date.now() - 100_000);
  log.configured();
  const planId = log.at(1).released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
  const decidedMs = log.nowMs;
  log.at(2).dispatched(planId);
  log.at(3).started({ task: `${planId}-s1` });
  log.about(ALL).at(4).quarantined('vm9', -1, 'grace');
  await bed.observed(planId, AGGREGATE, decidedMs, before);
  await bed.append(log.events);
  await bed.observed('newest', AGGREGATE, Date.now(), after);
  return { planId, ledger: await bed.start({ scope: [AGGREGATE, 'idle'] }) };
}

describe('the OpenAPI document', () => {
  it('describes every answer, and no call is missing from it', async () => {
    const { planId, ledger } = await recorded();
    const examples: Readonly<Record<Operation, string>> = {
      about: '',
      alarms: '/alarms',
      regions: '/regions',
      aggregates: '/aggregates',
      fleet: '/fleet',
      picture: `/aggregates/${encodeURIComponent(AGGREGATE)}/picture`,
      aggregate: `/aggregates/${encodeURIComponent(AGGREGATE)}`,
      imbalance: `/aggregates/${encodeURIComponent(AGGREGATE)}/imbalance?points=10`,
      hosts: `/aggregates/${encodeURIComponent(AGGREGATE)}/hosts?snapshot=${encodeURIComponent(planId)}`,
      vms: `/aggregates/${encodeURIComponent(AGGREGATE)}/vms?host=h1`,
      plans: '/plans?limit=5',
      plan: `/plans/${encodeURIComponent(planId)}`,
      planHosts: `/plans/${encodeURIComponent(planId)}/hosts`,
      tasks: '/tasks',
      task: `/tasks/${encodeURIComponent(`${planId}-s1`)}`,
      decisions: `/decisions?aggregate=${encodeURIComponent(AGGREGATE)}`,
      history: '/history?since=1',
      vm: '/vms/vm1',
      host: '/hosts/h2',
      quarantine: '/quarantine',
      cooldowns: '/cooldowns?limit=5',
      moves: `/aggregates/${encodeURIComponent(AGGREGATE)}/moves?limit=5&vm=vm1`,
      decision: `/aggregates/${encodeURIComponent(AGGREGATE)}/decision?snapshot=${encodeURIComponent(planId)}`,
      vmWhy: `/aggregates/${encodeURIComponent(AGGREGATE)}/vms/vm1/why?snapshot=${encodeURIComponent(planId)}`,
      hostDrain: `/aggregates/${encodeURIComponent(AGGREGATE)}/hosts/h1/drain`,
      drainRun: `/aggregates/${encodeURIComponent(AGGREGATE)}/drains?host=h1&host=h2&since=0&parallel=1&rolling=true`,
      hostValues: `/aggregates/${encodeURIComponent(AGGREGATE)}/hosts/h1/values?since=2026-01-01T00:00:00Z`,
      whatIf: `/aggregates/${encodeURIComponent(AGGREGATE)}/what-if?set=engine.cooldown%3D0`,
      search: '/search?q=WEB',
      runbook: '/runbook/nats-refused',
    };
    const document = (await ledger.body('/api/v1/openapi.json')) as {
      paths: Record<string, { get: { operationId: string; parameters?: { name: string; in: string }[] } }>;
      components: { schemas: Record<string, unknown> };
    };
    for (const [operation, example] of Object.entries(examples) as [Operation, string][]) {
      const { status, body } = await ledger.get(`/api/v1${example}`);
      expect(status, operation).toBe(200);
      // Strict schemas: neither a field too many nor one too few.
      expect(answers[operation].safeParse(body).error, operation).toBeUndefined();
      const described = document.paths[`${PREFIX}${endpoints[operation].path}`]?.get;
      expect(described?.operationId).toBe(operation);
      const given = [...new URL(`http://x${example}`).searchParams.keys()];
      expect(described?.parameters?.map(({ name }) => name)).toEqual(expect.arrayContaining(given));
    }
    const operations = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(operations.toSorted()).toEqual(
      [...Object.keys(examples), ...Object.keys(actingAnswers), 'changes', 'openapi'].toSorted(),
    );
    const references = JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g);
    for (const [, name = ''] of references) expect(document.components.schemas).toHaveProperty(name);
  });

  it('describes the refusals', async () => {
    const { ledger } = await recorded();
    for (const [wrong, status] of [
      [`${path}/hosts?snapshot=none`, 404],
      [`${path}/vms/vm1/why?snapshot=none`, 404],
      ['/api/v1/aggregates/idle/hosts', 404],
      ['/api/v1/aggregates/other/hosts', 404],
      [`${path}/none`, 404],
      [`${path}/imbalance?points=5`, 400],
      [`${path}/vms?limit=0`, 400],
      [`${path}/drains`, 400],
      [`${path}/drains?host=h1&parallel=0`, 400],
      ['/api/v1/plans/none/hosts', 404],
      ['/api/v1/tasks?aggregate=other', 404],
      ['/api/v1/changes?since=now', 400],
    ] as const) {
      const answer = await ledger.get(wrong);
      expect(answer.status, wrong).toBe(status);
      expect(refusal.safeParse(answer.body).success, wrong).toBe(true);
    }
  });
});

describe('the read models', () => {
  it('give the plans between cells of a VM: who answered, and what became of its move', async () => {
    const log = testLog(AGGREGATE, Date.now() - 100_000);
    log.configured();
    const plan = log.at(1).cellsProposed([
      { serverId: 'vm1', from: 'h1', to: 'n1' },
      { serverId: 'vm2', from: 'h1', to: 'n1' },
    ]);
    log.at(2).approved(plan, [1]);
    log.at(3).started({ task: `${plan}-s1` });
    log.at(4).verifying({ task: `${plan}-s1` });
    await bed.append(log.events);
    const ledger = await bed.start({ scope: [AGGREGATE] });
    const body = await ledger.body('/api/v1/vms/vm1');
    expect(answers.vm.safeParse(body).error).toBeUndefined();
    expect(body).toMatchObject({
      cells: [
        {
          planId: plan,
          to: 'new',
          state: 'approved',
          step: { taskId: `${plan}-s1`, from: 'h1', to: 'n1', method: 'migrate' },
          reason: { code: 'gain' },
          events: [{ type: 'plan.approved' }, { type: 'migration.started' }, { type: 'migration.verifying' }],
        },
      ],
    });
    expect(await ledger.body('/api/v1/vms/vm2')).toMatchObject({ cells: [{ state: 'leftOut' }] });
  });

  it('give drains in turn: how far each is, and what is next', async () => {
    const log = testLog(AGGREGATE, Date.now() - 100_000);
    log.configured();
    const { commandId } = log.at(1).drainAsked('h1').data;
    log.at(2).hostDisabled(commandId, 'h1');
    log.at(3).hostDrained(commandId, 'h1');
    log.at(4).drainAsked('h2');
    await bed.append(log.events);
    const ledger = await bed.start({ scope: [AGGREGATE] });
    const run = (query: string) => ledger.body(`${path}/drains?host=h1&host=h2&host=h3&${query}`);
    expect(await run('parallel=2')).toMatchObject({
      hosts: [
        { host: 'h1', state: 'drained', text: 'drained: no VM is left on it' },
        { host: 'h2', state: 'disabling' },
        { host: 'h3', state: 'todo', text: 'waiting' },
      ],
      next: { act: 'drain', host: 'h3' },
    });
    expect(await run('parallel=1')).toMatchObject({ next: { act: 'wait' } });
    expect(await run('rolling=true')).toMatchObject({ next: { act: 'maintain', host: 'h1' } });
  });

  it('give the hosts of the newest snapshot, and of a recorded one', async () => {
    const { planId, ledger } = await recorded();
    expect(await ledger.body(`${path}/hosts`)).toMatchObject({
      snapshot: { id: 'newest' },
      policies: [
        { policy: 'cpu', threshold: 0.2, lowest: 0, highest: 0.4, participates: true, detected: false },
        { policy: 'memory' },
      ],
      hosts: [
        { name: 'h1', vms: 1, values: [0.2, 0.1], service: { status: 'enabled' } },
        { name: 'h2', vms: 2, values: [0.4, 0.3] },
        { name: 'h3', vms: 0, values: [0, 0], zone: 'az-2', service: { status: 'disabled' } },
      ],
    });
    expect(await ledger.body(`${path}/hosts?snapshot=${encodeURIComponent(planId)}`)).toMatchObject({
      snapshot: { id: planId },
      policies: [{ policy: 'cpu', detected: true, highest: 0.5 }, {}],
      hosts: [{ name: 'h1', vms: 2, values: [0.5, 0.3] }, { name: 'h2' }, {}],
    });
  });

  it('give the VMs page by page, also those of one name, by host and by uuid', async () => {
    const { ledger } = await recorded();
    const seen: unknown[] = [];
    let next: string | null = '';
    while (next !== null) {
      const page = (await ledger.body(`${path}/vms?limit=1&after=${encodeURIComponent(next)}`)) as {
        total: number;
        vms: { id: string; name: string }[];
        next: string | null;
      };
      expect(page).toMatchObject({ total: 3, vms: [{}] });
      seen.push(...page.vms.map(({ id, name }) => [name, id]));
      next = page.next;
    }
    expect(seen).toEqual([
      ['db <b>', 'vm3'],
      ['web-1', 'vm1'],
      ['web-1', 'vm2'],
    ]);
    expect(await ledger.body(`${path}/vms?host=h2&id=vm1`)).toMatchObject({
      policies: ['cpu', 'memory'],
      total: 1,
      vms: [{ id: 'vm1', host: 'h2', values: [0.3, 0.2] }],
      next: null,
    });
    expect(await ledger.body(`${path}/vms?host=h9`)).toMatchObject({ total: 0, vms: [], next: null });
  });

  it('give the hosts that a plan changes, before and after', async () => {
    const { planId, ledger } = await recorded();
    expect(await ledger.body(`/api/v1/plans/${encodeURIComponent(planId)}/hosts`)).toMatchObject({
      policies: [{ policy: 'cpu', threshold: 0.2 }, { policy: 'memory' }],
      hosts: [
        { name: 'h1', before: [0.5, 0.3], after: [0.42, 0.25], vmsBefore: 2, vmsAfter: 1, leaving: [1], arriving: [] },
        { name: 'h2', before: [0.1, 0.1], after: [0.18, 0.15], vmsBefore: 1, vmsAfter: 2, leaving: [], arriving: [1] },
      ],
    });
  });

  it('say that a snapshot is no longer kept, and show what the log still knows', async () => {
    const { planId, ledger } = await recorded();
    await bed.forgetSnapshots();
    const id = encodeURIComponent(planId);
    expect(await ledger.get(`${path}/hosts?snapshot=${id}`)).toMatchObject({ status: 410 });
    expect(await ledger.get(`/api/v1/plans/${id}/hosts`)).toMatchObject({ status: 410 });
    expect(await ledger.get(`/api/v1/plans/${id}`)).toMatchObject({ status: 200, body: { plan: { id: planId } } });
  });

  it('give the tasks that are not over, and the imbalance as arrays', async () => {
    const { planId, ledger } = await recorded();
    expect(await ledger.body('/api/v1/tasks')).toMatchObject({
      total: 1,
      tasks: [{ id: `${planId}-s1`, aggregate: AGGREGATE, status: 'started' }],
    });
    expect(await ledger.body('/api/v1/tasks?aggregate=idle')).toMatchObject({ total: 0, tasks: [] });
    expect(await ledger.body(`${path}/imbalance`)).toMatchObject({
      points: 1,
      snapshotIds: [planId],
      steps: [1],
      release: ['released'],
    });
    expect(await ledger.body('/api/v1/aggregates/idle/imbalance')).toMatchObject({ points: 0, times: [] });
  });

  it('are sent once: a client that has this version gets 304, whatever the time', async () => {
    const { ledger } = await recorded();
    for (const call of ['/api/v1/aggregates', `${path}/hosts`, path]) {
      const first = await fetch(`${ledger.url}${call}`);
      const etag = String(first.headers.get('etag'));
      await first.body?.cancel();
      const second = await fetch(`${ledger.url}${call}`, { headers: { 'if-none-match': etag } });
      expect([call, second.status, await second.text()]).toEqual([call, 304, '']);
    }
  });
});

/** Reads server-sent events until the given number has come. */
async function events(url: string, count: number, headers: Record<string, string> = {}) {
  const stop = new AbortController();
  const response = await fetch(`${url}/api/v1/changes`, { headers, signal: stop.signal });
  const found: { id: string | undefined; event: string | undefined; data: unknown }[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true });
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1];
      const data = field('data');
      if (data !== undefined) found.push({ id: field('id'), event: field('event'), data: JSON.parse(data) });
    }
    if (found.length >= count) break;
  }
  stop.abort();
  return found;
}

describe('the changes', () => {
  it('come as they are folded, and go on after the last one that the client has', async () => {
    const ledger = await bed.start();
    const log = testLog('gpu', Date.now());
    log.configured();
    log.paused();
    const live = events(ledger.url, 2, { 'last-event-id': '0' });
    await bed.append(log.events.splice(0));
    expect(await live).toEqual([
      { id: '1', event: 'change', data: { sequence: 1, aggregate: 'gpu', type: 'planner.configured' } },
      { id: '2', event: 'change', data: { sequence: 2, aggregate: 'gpu', type: 'aggregate.paused' } },
    ]);
    log.resumed();
    await bed.append(log.events);
    expect(await events(ledger.url, 1, { 'last-event-id': '2' })).toMatchObject([{ id: '3' }]);
    expect(await events(ledger.url, 2, { 'last-event-id': '1' })).toMatchObject([{ id: '2' }, { id: '3' }]);
  });

  it('say that everything must be read again when they cannot go on', async () => {
    const log = testLog('gpu', Date.now());
    for (let i = 0; i < 1_100; i++) log.paused();
    await bed.append(log.events);
    const ledger = await bed.start();
    for (const id of ['5', '5000'])
      expect(await events(ledger.url, 1, { 'last-event-id': id })).toEqual([
        { id: '1100', event: 'reset', data: { sequence: 1100 } },
      ]);
  });
});

const CPU = { policy: 'cpu', participates: true, sustainedCycles: 1, threshold: 0.2 };

describe('the standing of an aggregate', () => {
  async function standing(options: object, decide: (log: ReturnType<typeof testLog>) => void) {
    const log = testLog(AGGREGATE, Date.now() - 100_000);
    log.configured(options);
    decide(log.at(1));
    await bed.append(log.events);
    const ledger = await bed.start({ scope: [AGGREGATE] });
    const body = await ledger.body('/api/v1/fleet');
    const [line] = (body as { aggregates: { standing: string; ratio: number; plan: { moves: number } | null }[] })
      .aggregates;
    return line;
  }
  const worse = [{ ...CPU, imbalance: 0.565, detected: true }];

  it('is a dry run, with its plan, where a plan is not released', async () => {
    const line = await standing({ dryRun: true }, (log) =>
      log.decided('dryRun', [{ serverId: 'vm1', from: 'h1', to: 'h2' }], { policies: worse }),
    );
    expect(line).toMatchObject({ standing: 'dryRun', ratio: expect.closeTo(2.825), plan: { moves: 1 } });
  });

  it('is never rest while a policy is above its threshold, nor where none has a value', async () => {
    const line = await standing({}, (log) => log.decided('none', [], { policies: worse }));
    expect(line).toMatchObject({ standing: 'outOfBalance', plan: null });
  });

  it('is unmeasured where no policy has a value', async () => {
    const policies = [{ ...CPU, imbalance: null, detected: false }];
    expect(await standing({}, (log) => log.decided('none', [], { policies }))).toMatchObject({
      standing: 'unmeasured',
      ratio: null,
    });
  });

  it('is rest where every policy is below its threshold', async () => {
    const policies = [{ ...CPU, imbalance: 0.1, detected: false }];
    expect(await standing({}, (log) => log.decided('none', [], { policies }))).toMatchObject({
      standing: 'idle',
      ratio: 0.5,
    });
  });
});

it('a VM of the plan that waits moves when it is approved: its step says where to', async () => {
  const log = testLog(AGGREGATE, Date.now() - 100_000);
  log.configured({ approval: 'manual' });
  const planId = log.at(1).proposed([
    { serverId: 'vm2', from: 'h1', to: 'h2' },
    { serverId: 'vm1', from: 'h1', to: 'h2' },
  ]);
  await bed.observed(planId, AGGREGATE, log.nowMs, before);
  await bed.append(log.events);
  const ledger = await bed.start({ scope: [AGGREGATE] });
  const why = (id: string) => ledger.body(`${path}/vms/${id}/why`);
  expect(await why('vm1')).toMatchObject({ waits: { planId, step: 2, of: 2, from: 'h1', to: 'h2' } });
  expect(await why('vm3')).toMatchObject({ waits: null });
});

it('a picture has every VM on its host, by weight', async () => {
  const { ledger } = await recorded();
  const body = await ledger.body(`${path}/picture`);
  const { hosts, vms } = body as {
    hosts: { name: string }[];
    vms: { names: string[]; hosts: number[]; weights: number[][] };
  };
  expect(vms.hosts.map((host) => hosts[host]?.name)).toEqual(['h2', 'h1', 'h2']);
  expect([vms.names, vms.weights]).toEqual([
    ['web-1', 'web-1', 'db <b>'],
    [
      [0.3, 0.2, 0.1],
      [0.2, 0.1, 0.1],
    ],
  ]);
});

it('the fleet has the hosts of each aggregate by value, the highest first', async () => {
  const { ledger } = await recorded();
  const body = await ledger.body('/api/v1/fleet');
  const [line, idle] = (body as { aggregates: object[] }).aggregates;
  expect(line).toMatchObject({ hosts: 3, vms: 3, trend: [null] });
  expect(line).toMatchObject({
    skylines: [{ policy: 'cpu', threshold: 0.2, values: [0.4, 0.2] }, { policy: 'memory' }],
  });
  expect(idle).toMatchObject({ hosts: null, skylines: [], trend: [] });
});

it('other regions are what their own ledgers say, or why they do not', async () => {
  const { ledger: west } = await recorded();
  const regions = [`west=${west.url}`, 'north=http://127.0.0.1:1', `south=${west.url}/elsewhere`];
  const here = await bed.start({ regions });
  // A busy machine may answer later than the regions are given time for.
  await expect
    .poll(() => here.body('/api/v1/regions'))
    .toEqual({
      time: expect.any(String),
      regions: [
        {
          name: 'west',
          url: west.url,
          seen: {
            aggregates: 2,
            hosts: 3,
            vms: 3,
            moves: 1,
            alarms: expect.any(Number),
            ratio: null,
            standings: { moving: 1, unknown: 1 },
          },
          problem: null,
        },
        { name: 'north', url: 'http://127.0.0.1:1', seen: null, problem: expect.stringContaining('ECONNREFUSED') },
        {
          name: 'south',
          url: `${west.url}/elsewhere`,
          seen: null,
          problem: expect.stringMatching(/^it answers 404 to \/api\/v1\/(fleet|alarms): /),
        },
      ],
    });
});
