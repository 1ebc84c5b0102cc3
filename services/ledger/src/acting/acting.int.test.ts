import { ALL } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { bareConnection } from '@kronos/eventlog/testing';
import type { Sketch } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { actingBed, actingPage, people } from '../../testing/acting.ts';
import { ledgerBed, type TestLedger } from '../../testing/index.ts';
import type { CommandRequest } from '../api/commandSchemas.ts';

const AGGREGATE = 'web eu/1';
const MARKUP = '<img src=x onerror=alert(1)>';

/** A busy host whose name is markup, and an idle one. */
const sketch: Sketch = {
  policies: { cpu: { threshold: 0.2 } },
  hosts: { [MARKUP]: {}, h2: {} },
  vms: { vm1: { host: MARKUP, w: { cpu: 0.3 }, set: { name: MARKUP } }, vm2: { host: MARKUP, w: { cpu: 0.2 } } },
};
const moves = [
  { serverId: 'vm1', from: MARKUP, to: 'h2' },
  { serverId: 'vm2', from: MARKUP, to: 'h2' },
];

let bed: Awaited<ReturnType<typeof ledgerBed>>;
let world: Awaited<ReturnType<typeof actingBed>>;
let ledger: TestLedger;
let log: ReturnType<typeof testLog>;
let page: ReturnType<typeof actingPage>;
let commands: EventLog;

beforeAll(async () => {
  bed = await ledgerBed();
  commands = await bed.connect('console');
  world = await actingBed(commands, { cells: [AGGREGATE, 'idle'] });
  log = testLog(AGGREGATE, Date.now() - 60_000);
  log.configured({ approval: 'manual', approvalTtlSeconds: 86_400 });
});
afterAll(async () => {
  await bed.close();
  await world.close();
});

/** A ledger of its own for each test: the limits of log-ins are its. */
beforeEach(async () => {
  await bed.append(log.events.splice(0));
  ledger = await bed.start({ scope: [AGGREGATE, 'idle'] }, Date.now, world.acting);
  page = actingPage(ledger.url);
  return () => ledger.stop();
});

/** The events of a person on the log. */
async function asked() {
  const events: { type: string; by: string; data: Record<string, unknown> }[] = [];
  for await (const { event } of bed.log.replay())
    if (event.type !== 'unreadable' && ['operator', 'custodian'].includes(event.by.service))
      events.push({ type: event.type, by: event.by.instance, data: event.data as Record<string, unknown> });
  return events;
}

/** Reads what a command would do, and confirms it. */
async function confirm(command: CommandRequest, comment: string | null = null) {
  const read = await page.foresee(command);
  expect(read.status, JSON.stringify(read.body)).toBe(200);
  return await page.give(command, read.body.digest, comment);
}

describe('a person who may act', () => {
  it('logs in with a password, gives a command under their name, and logs out; no secret is logged', async () => {
    expect((await page.call('GET', '/session')).body).toMatchObject({ acting: true, person: null, csrf: null });
    const { status, body, headers } = await page.logIn(people.ada);
    expect([status, body.person]).toEqual([200, 'ada@Default']);
    expect(headers.get('set-cookie')).toMatch(/^kronos-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    expect((await page.call('GET', '/session')).body).toMatchObject({ person: 'ada@Default', csrf: body.csrf });
    const { body: told } = await confirm({ command: 'pause', aggregate: 'idle' }, ` change ${MARKUP} `);
    expect(told).toMatchObject({ effect: 'done', by: 'ada@Default', aggregate: 'idle', command: 'aggregate.paused' });
    expect((await asked()).at(-1)).toMatchObject({ by: 'ada@Default', data: { comment: `change ${MARKUP}` } });
    expect((await page.call('DELETE', '/session')).body).toMatchObject({ person: null, csrf: null });
    expect((await page.foresee({ command: 'resume', aggregate: 'idle' })).status).toBe(401);
    expect(JSON.stringify(ledger.lines)).toContain('a person gave a command');
    for (const secret of [people.ada.password, String(body.csrf), 'gAAAAAB'])
      expect(JSON.stringify(ledger.lines)).not.toContain(secret);
  });

  it('logs in with an application credential; over TLS the cookie is for TLS only', async () => {
    const { host } = new URL(ledger.url);
    const credential = { method: 'applicationCredential', id: 'cred-1', secret: 'secret-of-cred-1' };
    const { body, headers } = await page.call('POST', '/session', credential, { origin: `https://${host}` });
    expect(body.person).toBe('ada@Default');
    expect(headers.get('set-cookie')).toMatch(/^__Host-kronos-session=.*; Secure$/);
  });

  it('has every command of the command line; each is an event of its type', async () => {
    const planId = log.pass(1).proposed(moves);
    await bed.observed(planId, AGGREGATE, log.nowMs, sketch);
    await bed.append(log.events.splice(0));
    await page.logIn(people.ada);
    const given: string[] = [];
    const give = async (command: CommandRequest) => {
      const { status, body } = await confirm(command);
      expect(status, JSON.stringify([command, body])).toBe(200);
      given.push(`${body.command}: ${body.effect}`);
    };
    await give({ command: 'reject', planId, steps: [2] });
    await give({ command: 'approve', planId, steps: null });
    const taskId = `${planId}-s1`;
    log.started({ task: taskId });
    await bed.append(log.events.splice(0));
    // Only a move between cells is confirmed or reverted.
    for (const command of ['confirm', 'revert'] as const)
      expect((await page.foresee({ command, taskId })).body).toMatchObject({
        effect: 'refused',
        says: [expect.stringContaining('is a live migration')],
      });
    await give({ command: 'abort', taskId });
    await give({ command: 'close', taskId, force: false });
    await give({ command: 'cancel', taskId });
    for (const aggregate of [AGGREGATE, ALL]) await give({ command: 'pause', aggregate });
    for (const aggregate of [AGGREGATE, ALL]) await give({ command: 'resume', aggregate });
    await give({ command: 'evaluate', aggregate: ALL });
    await give({ command: 'record', aggregate: AGGREGATE });
    await give({ command: 'quarantine', aggregate: AGGREGATE, serverId: 'vm1', seconds: 60 });
    await give({ command: 'release', serverId: 'vm1' });
    expect(given).toEqual([
      'plan.rejected: done',
      'plan.approved: done',
      'migration.aborted: done',
      'migration.closed: done',
      'migration.cancelled: done',
      'aggregate.paused: done',
      'aggregate.paused: done',
      'aggregate.resumed: done',
      'aggregate.resumed: done',
      'evaluation.requested: done',
      'evaluation.requested: done',
      'instance.quarantined: done',
      'instance.unquarantined: done',
    ]);
    await give({ command: 'drain', aggregate: AGGREGATE, host: 'h2' });
    await give({ command: 'undrain', host: 'h2' });
    const all = { host: null, flavorMap: {}, servers: null, project: null, limit: 3 };
    await give({ command: 'cellsPlan', aggregate: AGGREGATE, to: 'idle', ...all });
    expect(given.slice(-3)).toEqual(['host.drainAsked: done', 'host.undrainAsked: done', 'cells.moveAsked: done']);
    const far = await page.foresee({ command: 'cellsPlan', aggregate: AGGREGATE, to: 'far', ...all });
    expect([far.status, far.body.error]).toEqual([409, expect.stringContaining('does not name "far"')]);
  });
});

/** Puts an event on the log that no version reads. @returns its sequence, when the ledger has folded it */
async function unreadable(): Promise<number> {
  const connection = await bareConnection(bed.server.url);
  const answer = await connection.request('kronos.controls.idle', '{}');
  await connection.close();
  const { seq } = answer.json() as { seq: number };
  const page = `/api/v1/aggregates/idle`;
  await expect.poll(() => ledger.body(page)).toMatchObject({ unreadable: { sequence: seq } });
  return seq;
}

describe('a custodian', () => {
  it('skips an unreadable event with a reason; a role for commands alone is not enough', async () => {
    const sequence = await unreadable();
    const skip: CommandRequest = { command: 'skip', sequence, through: sequence, force: false };
    expect((await page.logIn(people.ada)).body).toMatchObject({ custodian: false });
    const refused = await page.foresee(skip);
    expect([refused.status, refused.body.error]).toEqual([403, expect.stringContaining('kronos_custodian')]);
    // Neither is a right that was forged into the page.
    expect((await page.give(skip, 'sha256:0', 'garbage')).status).toBe(403);
    const carols = actingPage(ledger.url);
    expect((await carols.logIn(people.carol)).body).toMatchObject({ custodian: true });
    const read = await carols.foresee(skip);
    expect(read.body).toMatchObject({ effect: 'done' });
    const silent = await carols.give(skip, read.body.digest, '  ');
    expect([silent.status, silent.body.error]).toEqual([400, expect.stringContaining('needs a reason')]);
    const { body: told } = await carols.give(skip, read.body.digest, 'garbage, change 42');
    expect(told).toMatchObject({ effect: 'done', command: 'event.skipped', by: 'carol@Default', aggregate: 'idle' });
    expect((await asked()).at(-1)).toMatchObject({
      type: 'event.skipped',
      by: 'carol@Default',
      data: { sequence, through: sequence, comment: 'garbage, change 42' },
    });
    expect(await ledger.body('/api/v1/aggregates/idle')).toMatchObject({ unreadable: null });
    const again = await carols.foresee(skip);
    expect([again.status, again.body.error]).toEqual([409, expect.stringContaining('no unreadable event')]);
  });

  it('is nobody where custodian_roles is empty', async () => {
    await ledger.stop();
    const options = { ...world.acting.options, custodianRoles: [] };
    ledger = await bed.start({ scope: [AGGREGATE, 'idle'] }, Date.now, { ...world.acting, options });
    page = actingPage(ledger.url);
    expect((await page.logIn(people.carol)).body).toMatchObject({ custodian: false });
    const refused = await page.foresee({ command: 'skip', sequence: 1, through: 1, force: true });
    expect([refused.status, refused.body.error]).toEqual([403, expect.stringContaining('custodian_roles is empty')]);
  });
});

describe('refused, and nothing is appended:', () => {
  let before: number;
  beforeEach(async () => {
    before = (await asked()).length;
    return async () => expect((await asked()).length).toBe(before);
  });
  const pause: CommandRequest = { command: 'pause', aggregate: 'idle' };

  it('a person without the role, on another project, or with a wrong password', async () => {
    const { status, body } = await page.logIn(people.grace);
    expect([status, body.error]).toEqual([403, expect.stringContaining('none of the roles kronos_operator')]);
    const wrong = await page.logIn({ ...people.ada, password: 'pw-of-grace-90d' });
    expect([wrong.status, wrong.headers.get('set-cookie')]).toEqual([401, null]);
    expect((await page.foresee(pause)).status).toBe(401);
    expect(JSON.stringify([ledger.lines, wrong.body, body])).not.toMatch(/pw-of/);
  });

  it('a session whose token has ended', async () => {
    await page.logIn(people.ada);
    const { body } = await page.foresee(pause);
    world.sim.act({ act: 'revokeTokens' });
    const { status, body: said } = await page.give(pause, body.digest);
    expect([status, said.error]).toEqual([401, expect.stringContaining('log in again')]);
    expect((await page.foresee(pause)).status).toBe(401);
  });

  it.each([
    ['the role, and has others', 403, ['member']],
    // A worker of Keystone that has the token in its cache shows no roles, the others refuse the token.
    ['their last role', expect.toBeOneOf([401, 403]), []],
  ])('a session whose person has lost %s', async (_, refused, roles) => {
    const setRoles = (now: readonly string[]) =>
      world.sim.act({ act: 'setRoles', user: people.ada.userName, roles: [...now] });
    await page.logIn(people.ada);
    const { body } = await page.foresee(pause);
    setRoles(roles);
    expect((await page.give(pause, body.digest)).status).toEqual(refused);
    setRoles(people.ada.roles);
    expect((await page.foresee(pause)).status).toBe(401);
  });

  it('a request that another page forged', async () => {
    await page.logIn(people.ada);
    const { body: read } = await page.foresee(pause);
    const body = { command: pause, digest: read.digest, comment: null };
    for (const headers of [
      { 'x-kronos-csrf': null },
      { 'x-kronos-csrf': 'A'.repeat(43) },
      { origin: null },
      { origin: 'https://evil.example.com' },
      { origin: 'http://localhost:1' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
    ])
      expect((await page.call('POST', '/commands', body, headers)).status, JSON.stringify(headers)).toBe(403);
    expect((await page.call('POST', '/commands', body, { cookie: 'kronos-session=AAAA' })).status).toBe(401);
    expect((await page.call('POST', '/commands', body, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await page.call('POST', '/commands', { ...body, command: { command: 'drop' } })).status).toBe(400);
    // A log-in over plain HTTP from elsewhere would show the password to the network.
    const plain = await page.call('POST', '/session', {}, { origin: 'http://10.0.0.5:9784', host: '10.0.0.5:9784' });
    expect(plain.status).toBe(403);
  });

  it('log-ins beyond the limit, for one name before the others', async () => {
    const wrong = { userName: 'mallory', password: 'guess' };
    for (let i = 0; i < 5; i++) expect((await page.logIn(wrong)).status).toBe(401);
    const { status, headers } = await page.logIn(wrong);
    expect(status).toBe(429);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await page.logIn(people.ada)).status).toBe(200);
  });

  it('everything, where acting is off', async () => {
    await ledger.stop();
    ledger = await bed.start({ scope: [AGGREGATE] });
    page = actingPage(ledger.url);
    expect((await page.call('GET', '/session')).body).toMatchObject({ acting: false, person: null });
    expect((await page.logIn(people.ada)).status).toBe(405);
    expect((await page.give(pause, 'x')).status).toBe(405);
  });
});

describe('a confirmation', () => {
  it('of a plan that has changed since is a conflict, and the changed plan is not approved', async () => {
    const planId = log.pass(1).proposed(moves);
    await bed.append(log.events.splice(0));
    await page.logIn(people.ada);
    const approve: CommandRequest = { command: 'approve', planId, steps: null };
    const { body: read } = await page.foresee(approve);
    expect(read).toMatchObject({ effect: 'done', planId, digest: expect.stringMatching(/^sha256:/) });
    expect(read.says).toEqual([
      'approved: 2 tasks released',
      expect.stringContaining(`${MARKUP} → h2`),
      expect.stringContaining('vm2'),
    ]);
    log.pass(1).rejected(planId, [2]);
    await bed.append(log.events.splice(0));
    const { status, body } = await page.give(approve, read.digest);
    expect([status, body.error]).toEqual([409, expect.stringContaining('has changed since you read it')]);
    expect((await asked()).at(-1)).toMatchObject({ type: 'plan.rejected' });
    // The plan can be approved after another read. A replay of that approval is refused.
    const { body: again } = await page.foresee(approve);
    expect((await page.give(approve, again.digest)).body).toMatchObject({ effect: 'done' });
    expect((await page.give(approve, again.digest)).status).toBe(409);
  });

  it('of what cannot have an effect is refused', async () => {
    await page.logIn(people.ada);
    const nothing = await page.foresee({ command: 'cancel', taskId: 'none-s1' });
    expect([nothing.status, nothing.body.error]).toEqual([409, expect.stringContaining('no task "none-s1"')]);
    const elsewhere = await page.foresee({ command: 'pause', aggregate: 'other' });
    log.pass(1).paused();
    await bed.observed('newest', AGGREGATE, log.nowMs, sketch);
    await bed.append(log.events.splice(0));
    const drain = await page.foresee({ command: 'drain', aggregate: AGGREGATE, host: MARKUP });
    expect([drain.status, drain.body.error]).toEqual([
      409,
      expect.stringMatching(/drain of .* is blocked by: .*paused/),
    ]);
    expect([elsewhere.status, elsewhere.body.error]).toEqual([
      409,
      expect.stringContaining('not an aggregate in scope'),
    ]);
  });
});
