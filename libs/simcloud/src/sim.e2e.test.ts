import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { manualClock } from './clock.ts';
import type { ApiFaultSetting } from './faults.ts';
import type { ScenarioInput } from './scenario.ts';
import { generate } from './scenarios/generate.ts';
import { type Sim, startSim } from './sim.ts';

const SCENARIO: ScenarioInput = {
  hosts: [{ name: 'h1' }, { name: 'h2' }],
  flavors: [{ name: 'f', vcpus: 2, memoryMb: 4096, diskGb: 1 }],
  servers: [{ name: 'v1', host: 'h1', flavor: 'f' }],
  users: [
    { name: 'reader', password: 'r', roles: ['kronos_reader'] },
    { name: 'member', password: 'm', roles: ['member'] },
  ],
};

const sims: Sim[] = [];
async function start(scenario: ScenarioInput = SCENARIO, more: object = {}): Promise<Sim> {
  const sim = await startSim({ scenario, speed: 50, ...more });
  sims.push(sim);
  return sim;
}
afterEach(async () => {
  for (const sim of sims.splice(0)) await sim.close();
});

async function login(sim: Sim, name = 'admin', password = 'secret'): Promise<string> {
  const answer = await fetch(`${sim.urls.identity}/auth/tokens`, {
    method: 'POST',
    body: JSON.stringify({
      auth: {
        identity: { methods: ['password'], password: { user: { name, domain: { id: 'default' }, password } } },
        scope: { project: { name: 'admin', domain: { id: 'default' } } },
      },
    }),
  });
  expect(answer.status).toBe(201);
  return answer.headers.get('x-subject-token') ?? '';
}

async function loggedIn() {
  const sim = await start();
  return { sim, token: await login(sim) };
}
const faultApi = (sim: Sim, fault: ApiFaultSetting) => sim.act({ act: 'faultApi', fault });

function nova(sim: Sim, token: string, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { 'X-Auth-Token': token, 'OpenStack-API-Version': 'compute 2.96' };
  return fetch(sim.urls.compute + path, { ...init, headers });
}

function migrate(sim: Sim, token: string, host = 'h2'): Promise<Response> {
  const { uuid } = sim.cloud.server('v1');
  const body = JSON.stringify({ 'os-migrateLive': { host, block_migration: 'auto' } });
  return nova(sim, token, `/servers/${uuid}/action`, { method: 'POST', body });
}

describe('API faults', () => {
  test('a call that is cut off after it was carried out was carried out', async () => {
    // At Nova's own pace: the server must still be migrating when it is asked again.
    const sim = await start(SCENARIO, { speed: 1 });
    const token = await login(sim);
    faultApi(sim, { api: 'compute', method: 'post', times: 1, effect: { kind: 'cut', when: 'after' } });
    await expect(migrate(sim, token)).rejects.toThrow();
    expect(sim.cloud.server('v1').taskState).toBe('migrating');
    expect(sim.calls().filter((call) => call.api === 'compute')).toMatchObject([
      { method: 'POST', status: null, fault: 'cut' },
    ]);
    expect((await migrate(sim, token)).status).toBe(409);
  });

  test('a call that is cut off before it was not', async () => {
    const { sim, token } = await loggedIn();
    faultApi(sim, { api: '*', times: 1, effect: { kind: 'cut', when: 'before' } });
    await expect(migrate(sim, token)).rejects.toThrow();
    expect(sim.cloud.server('v1').taskState).toBeNull();
  });

  test('half an answer breaks off in the middle', async () => {
    const { sim, token } = await loggedIn();
    faultApi(sim, { api: 'compute', effect: { kind: 'cut', when: 'middle' } });
    const answer = await nova(sim, token, '/servers/detail?all_tenants=1');
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
  });

  test('a gateway timeout after the act, 5xx by path, 401 and garbage', async () => {
    const { sim, token } = await loggedIn();
    const effects = [
      [{ kind: 'status', status: 504, processed: true }, 504],
      [{ kind: 'unauthorized' }, 401],
      [{ kind: 'garbage' }, 200],
    ] as const;
    for (const [effect, status] of effects) {
      faultApi(sim, { api: 'compute', path: '/servers/', times: 1, effect });
      const answer = await nova(sim, token, `/servers/${sim.cloud.server('v1').uuid}`);
      expect(answer.status).toBe(status);
      if (effect.kind === 'garbage') await expect(answer.json()).rejects.toThrow();
    }
    expect((await nova(sim, token, '/os-services')).status).toBe(200);
    faultApi(sim, { api: 'compute', times: 1, effect: { kind: 'status', status: 504, processed: true } });
    expect((await migrate(sim, token)).status).toBe(504);
    expect(sim.cloud.server('v1').taskState).toBe('migrating');
  });

  test('a hanging call ends with the patience of its caller; latency is only slow', async () => {
    const { sim, token } = await loggedIn();
    faultApi(sim, { api: 'compute', times: 1, effect: { kind: 'hang' } });
    const patience = new AbortController();
    const hanging = expect(nova(sim, token, '/servers', { signal: patience.signal })).rejects.toThrow();
    const taken = async () => {
      const answer = await fetch(new URL('/_sim/faults', sim.urls.compute));
      return ((await answer.json()) as { api: unknown[] }).api.length === 0;
    };
    // Without this wait a later request would take the next fault.
    await expect.poll(taken).toBe(true);
    patience.abort();
    await hanging;
    faultApi(sim, { api: 'compute', times: 1, effect: { kind: 'latency', ms: 120 } });
    const before = performance.now();
    expect((await nova(sim, token, '/servers')).status).toBe(200);
    expect(performance.now() - before).toBeGreaterThan(110);
  });

  test('a rate hits about its share', async () => {
    const { sim, token } = await loggedIn();
    faultApi(sim, { api: 'compute', probability: 0.3, effect: { kind: 'status', status: 503 } });
    let failed = 0;
    for (let i = 0; i < 200; i++) if ((await nova(sim, token, '/os-services')).status === 503) failed++;
    expect(failed).toBeGreaterThan(35);
    expect(failed).toBeLessThan(85);
  });

  test('a paused API answers when it is resumed', async () => {
    const { sim, token } = await loggedIn();
    sim.act({ act: 'pauseApi', api: 'compute' });
    let answered = false;
    const waiting = nova(sim, token, '/os-services').finally(() => {
      answered = true;
    });
    for (let i = 0; i < 10; i++) expect((await fetch(`${sim.urls.prometheus}/-/ready`)).status).toBe(200);
    expect(answered).toBe(false);
    sim.act({ act: 'resumeApi', api: 'compute' });
    expect((await waiting).status).toBe(200);
  });
});

describe('tokens and roles', () => {
  test('a token expires, and all can be revoked', async () => {
    const clock = manualClock();
    const sim = await start(SCENARIO, { clock });
    sim.act({ act: 'setTokenSeconds', seconds: 10 });
    const token = await login(sim);
    expect((await nova(sim, token, '/servers')).status).toBe(200);
    clock.advance(10_001);
    expect((await nova(sim, token, '/servers')).status).toBe(401);
    const fresh = await login(sim);
    sim.act({ act: 'revokeTokens' });
    expect((await nova(sim, fresh, '/servers')).status).toBe(401);
  });

  test('a reader reads and may not act; a member of a project may not even read the hosts', async () => {
    const sim = await start();
    const reader = await login(sim, 'reader', 'r');
    expect((await nova(sim, reader, '/servers/detail?all_tenants=1')).status).toBe(200);
    const refused = await migrate(sim, reader);
    expect(refused.status).toBe(403);
    expect(await refused.json()).toEqual({
      forbidden: {
        code: 403,
        message: "Policy doesn't allow os_compute_api:os-migrate-server:migrate_live:host to be performed.",
      },
    });
    const member = await login(sim, 'member', 'm');
    expect((await nova(sim, member, '/os-hypervisors/detail')).status).toBe(403);
  });
});

// The rest is in test/contract/unreachable.ts.
test('the servers of a cell that the API does not reach come first in its list, as far as the page has room', async () => {
  const sim = await start({
    ...SCENARIO,
    maxLimit: 2,
    hosts: [{ name: 'h1' }, { name: 'other', cell: 'cell2' }],
    servers: ['h1', 'h1', 'other'].map((host, i) => ({ name: `v${i}`, host, flavor: 'f' })),
  });
  const token = await login(sim);
  const list = async (path: string) => {
    const { servers, servers_links: links } = (await (await nova(sim, token, path)).json()) as {
      servers: { id: string; status: string }[];
      servers_links?: { href: string }[];
    };
    return { servers: servers.map(({ id, status }) => [id, status]), next: links?.[0]?.href.replace(/.*v2.1/, '') };
  };
  const [first, , other] = ['v0', 'v1', 'v2'].map((name) => sim.cloud.server(name).uuid);
  sim.act({ act: 'setCell', cell: 'cell1', reachable: false });
  const page = await list('/servers/detail?all_tenants=true');
  expect(page.servers).toEqual([
    [first, 'UNKNOWN'],
    [other, 'ACTIVE'],
  ]);
  expect(page.next).toContain(`marker=${other}`);
  expect((await list(page.next ?? '')).servers).toEqual([]);
  sim.act({ act: 'setCell', cell: 'cell2', reachable: false });
  sim.act({ act: 'setCell', cell: 'cell1', reachable: true });
  expect((await list('/servers/detail?all_tenants=true')).servers).toEqual(
    ['v1', 'v0'].map((name) => [sim.cloud.server(name).uuid, 'ACTIVE']),
  );
});

describe('the admin endpoint', () => {
  const acts = async (sim: Sim, body: unknown): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`${sim.urls.admin}/acts`, { method: 'POST', body: JSON.stringify(body) });
    return { status: answer.status, body: await answer.json() };
  };

  test('does what it is told, and says where a mistake is', async () => {
    const sim = await start();
    const made = await acts(sim, [
      { act: 'createGroup', group: { name: 'g', policy: 'anti-affinity' } },
      { act: 'createServer', server: { name: 'v2', host: 'h2', flavor: 'f', group: 'g' } },
      { act: 'setHost', host: 'h2', disabled: true, disabledReason: 'test' },
    ]);
    expect(made.status).toBe(200);
    expect(sim.cloud.group('g').members).toEqual([sim.cloud.server('v2').uuid]);
    expect(sim.cloud.host('h2').disabled).toBe(true);
    expect(await acts(sim, { act: 'deleteServer', server: 'nobody' })).toMatchObject({
      status: 400,
      body: { message: 'act 0: there is no server nobody' },
    });
    expect(
      await acts(sim, [
        { act: 'lockServer', server: 'v1' },
        { act: 'setHost', hots: 'h1' },
      ]),
    ).toMatchObject({ status: 400, body: { message: expect.stringMatching(/^act 1: host: /) } });
    expect((await acts(sim, 'xx')).status).toBe(400);
  });

  test('keeps the record of migrations and of calls, and no secret in it', async () => {
    const { sim, token } = await loggedIn();
    const answer = await migrate(sim, token);
    await expect.poll(() => sim.migrations()[0]?.status).toBe('completed');
    const record = await (await fetch(`${sim.urls.admin}/migrations`)).json();
    expect(record).toMatchObject({
      migrations: [
        {
          id: 1,
          name: 'v1',
          source: 'h1',
          dest: 'h2',
          requestedHost: 'h2',
          forced: false,
          user: 'admin',
          requestId: answer.headers.get('x-openstack-request-id'),
          history: ['accepted', 'queued', 'preparing', 'running', 'completed'].map((status) => ({ status })),
        },
      ],
    });
    const calls = await (await fetch(`${sim.urls.admin}/calls`)).text();
    expect(JSON.parse(calls)).toMatchObject({
      calls: [
        { api: 'identity', method: 'POST', status: 201, body: null },
        { api: 'compute', method: 'POST', status: 202, microversion: 'compute 2.96' },
      ],
    });
    expect(calls).not.toContain('"secret"');
    expect(calls).not.toContain(token);
  });
});

test('a list of 5000 servers comes page by page', async () => {
  const sim = await start(generate({ hosts: 100, vms: 5000, seed: 1 }));
  const token = await login(sim);
  const seen = new Set<string>();
  let path: string | undefined = '/servers/detail?all_tenants=1&limit=1000';
  let pages = 0;
  while (path !== undefined) {
    const page = (await (await nova(sim, token, path)).json()) as {
      servers: { id: string }[];
      servers_links?: { href: string }[];
    };
    for (const server of page.servers) seen.add(server.id);
    const next = page.servers_links?.[0]?.href;
    path = next?.slice(next.indexOf('/servers/detail'));
    pages++;
  }
  expect([seen.size, pages]).toEqual([5000, 6]);
});

test('as a process it prints its URLs on one line and ends on SIGTERM', async () => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, '--scenario', '4x20', '--speed', '100'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.on('error', reject);
    child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString('utf8')));
  });
  const { urls } = JSON.parse(line) as { urls: { admin: string } };
  expect(await (await fetch(urls.admin)).json()).toMatchObject({ hosts: 4, servers: 20, speed: 100 });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});
