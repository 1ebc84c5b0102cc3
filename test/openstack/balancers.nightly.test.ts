/**
 * A real OpenStack with a second mover, and metrics that only a Keystone token opens: a person moves one VM back, then a second one. The
 * proxy before Prometheus does what OpenStack's own one (Aetos) does: it asks Keystone about each token, and takes queries by GET alone.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { LogEvent } from '@kronos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { runKronos } from '../e2e/command.ts';
import { ofType, settled, type Watch, watch } from '../e2e/world.ts';
import { bed, bedConfig, bedCpu, bedPolicy, bedUrls } from './urls.ts';

const AGGREGATE = 'kronos-balancers';
const HOSTS = ['cmp1', 'cmp2', 'cmp3'];
const LIMIT_MS = 280_000;

const config = ({ natsUrl, policiesFile }: { natsUrl: string; policiesFile: string }) => `[engine]
aggregates = ${AGGREGATE}
policies_file = ${policiesFile}
dry_run = false
evaluation_interval = 5
search_work_limit = 200000
cooldown = 1
instance_cooldown = 1
settle_seconds = 6
[executor]
poll_interval = 1
[prometheus]
auth = keystone
staleness_threshold = 30
${bedConfig({ natsUrl })}`;

const POLICIES = `policies:\n${bedPolicy({ ...bedCpu, weight: 1, threshold: 0.12, moves: 6 })}`;

/** Keystone as its administrator uses it. */
class Keystone {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  static async logIn(): Promise<Keystone> {
    const domain = { id: 'default' };
    const auth = {
      identity: { methods: ['password'], password: { user: { name: 'admin', password: 'secret', domain } } },
      scope: { project: { name: 'admin', domain } },
    };
    const answer = await fetch(`${bedUrls.identity}/auth/tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ auth }),
    });
    return new Keystone(answer.headers.get('x-subject-token') ?? expect.fail(`no token: ${answer.status}`));
  }

  async call(method: string, path: string, body?: object, more: Record<string, string> = {}): Promise<Response> {
    return await fetch(`${bedUrls.identity}${path}`, {
      method,
      headers: { 'x-auth-token': this.#token, 'content-type': 'application/json', ...more },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** The name of the token's user; null: Keystone does not know the token. */
  async userOf(token: string): Promise<string | null> {
    const answer = await this.call('GET', '/auth/tokens', undefined, { 'x-subject-token': token });
    const { token: found } = (await answer.json()) as { token?: { user: { name: string } } };
    return answer.ok ? (found?.user.name ?? null) : null;
  }
}

/** The requests that the proxy has seen. */
type Seen = { readonly tokens: Set<string>; refused: number; queries: number; posts: number };

async function startMetricsProxy(
  keystone: Keystone,
): Promise<{ readonly url: string; readonly seen: Seen; readonly server: Server }> {
  const seen: Seen = { tokens: new Set(), refused: 0, queries: 0, posts: 0 };
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const token = incoming.headers['x-auth-token'];
    if (typeof token !== 'string' || (await keystone.userOf(token)) === null) {
      seen.refused += 1;
      outgoing.writeHead(401).end('the request you have made requires authentication');
      return;
    }
    seen.tokens.add(token);
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://proxy');
    if (incoming.method !== 'GET' || pathname !== '/prometheus/api/v1/query') {
      if (incoming.method === 'POST') seen.posts += 1;
      outgoing.writeHead(incoming.method === 'GET' ? 404 : 405).end();
      return;
    }
    seen.queries += 1;
    const query = new URLSearchParams({ query: searchParams.get('query') ?? '' });
    const got = await fetch(`${bedUrls.prometheus}/api/v1/query?${query}`);
    outgoing.writeHead(got.status, { 'content-type': 'application/json' }).end(await got.text());
  };
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return { url: `http://127.0.0.1:${address.port}/prometheus`, seen, server };
}

/** Server -> the host where Nova has it. */
async function placements(): Promise<Map<string, string>> {
  const { servers } = JSON.parse(await bed('api', 'GET', '/servers/detail?all_tenants=1')) as {
    servers: { id: string; 'OS-EXT-SRV-ATTR:host': string }[];
  };
  return new Map(servers.map((one) => [one.id, one['OS-EXT-SRV-ATTR:host']]));
}

describe('a second mover, and metrics behind Keystone', () => {
  let keystone: Keystone;
  let proxy: Awaited<ReturnType<typeof startMetricsProxy>>;
  let service = '';
  let kronos: DemoInstallation;
  let log: Watch;
  let first = '';

  beforeAll(async () => {
    keystone = await Keystone.logIn();
    proxy = await startMetricsProxy(keystone);
    const made = await keystone.call('POST', '/services', { service: { type: 'metric-storage', name: 'aetos' } });
    service = ((await made.json()) as { service: { id: string } }).service.id;
    const endpoint = { service_id: service, interface: 'public', region_id: 'RegionOne', url: proxy.url };
    expect((await keystone.call('POST', '/endpoints', { endpoint })).status).toBe(201);
    await bed('reset');
    await bed('seconds', '1');
    await bed('aggregate', AGGREGATE, ...HOSTS);
    await bed('servers', '6', 'cmp1', '5', '6000');
    kronos = await openInstallation({ config, policies: POLICIES, say: () => {}, onExit: () => {} });
    log = watch(kronos);
  });
  afterAll(async () => {
    await kronos?.close();
    proxy?.server.closeAllConnections();
    proxy?.server.close();
    // Its endpoints go with it.
    if (service !== '') await keystone.call('DELETE', `/services/${service}`);
    await bed('reset');
  });

  /** The newest move of each server that Kronos completed. */
  const moves = () =>
    new Map(
      ofType(log.events, 'migration.completed').map(({ data: { serverId, from, host } }) => [serverId, { from, host }]),
    );

  /** Moves a server back to where it was, as a person or another balancer does. */
  async function moveBack(id: string): Promise<string> {
    const { from = '' } = moves().get(id) ?? {};
    const body = JSON.stringify({ 'os-migrateLive': { host: from, block_migration: 'auto' } });
    await bed('api', 'POST', `/servers/${id}/action`, body);
    await expect.poll(async () => (await placements()).get(id), { timeout: LIMIT_MS, interval: 1000 }).toBe(from);
    return from;
  }
  const startsOf = (id: string) =>
    ofType(log.events, 'migration.started').filter(({ data }) => data.serverId === id).length;

  it('balances by metrics that it gets with a token, from the server in the catalog', async () => {
    await log.until('a balanced cloud', settled, LIMIT_MS);
    expect(moves().size).toBeGreaterThanOrEqual(4);
    expect(proxy.seen.queries).toBeGreaterThan(0);
    expect(proxy.seen.posts).toBe(0);
    for (const token of proxy.seen.tokens) expect(await keystone.userOf(token)).toBe('admin');
  }, 290_000);

  it('gets a new token after Keystone has revoked the one that it had', async () => {
    const [token = ''] = proxy.seen.tokens;
    await keystone.call('DELETE', '/auth/tokens', undefined, { 'x-subject-token': token });
    await expect.poll(() => proxy.seen.tokens.size, { timeout: LIMIT_MS, interval: 1000 }).toBeGreaterThan(1);
    expect(proxy.seen.refused).toBeGreaterThan(0);
  }, 290_000);

  it('leaves a VM where a person has moved it back, and balances with others', async () => {
    [first = ''] = moves().keys();
    const before = startsOf(first);
    const at = await moveBack(first);
    const held = (events: readonly LogEvent[]) =>
      ofType(events, 'cycle.decided').some(
        ({ data: { foreign, plan } }) =>
          plan !== null && foreign?.stayUntil !== undefined && foreign.moves[0]?.serverId === first,
      );
    await log.until('a plan that names the move', held, LIMIT_MS);
    await log.until('a balanced cloud', (events) => held(events) && settled(events), LIMIT_MS);
    expect(startsOf(first)).toBe(before);
    expect((await placements()).get(first)).toBe(at);
    const explained = await runKronos(['explain', 'vm', first], { KRONOS_CONFIG: kronos.configFile });
    expect(explained.text).toContain('others moved the VM after Kronos had moved it');
  }, 600_000);

  it('waits instead of fighting when a second VM is moved back, and says so', async () => {
    const [second = ''] = [...moves().keys()].filter((id) => id !== first);
    await moveBack(second);
    const waiting = (events: readonly LogEvent[]) =>
      ofType(events, 'cycle.decided').filter(({ data }) => data.reason.code === 'foreign-moves');
    await log.until('three cycles of waiting', (events) => waiting(events).length >= 3, LIMIT_MS);
    const [decision] = waiting(log.events);
    expect(decision?.data).toMatchObject({ outcome: 'quiet', plan: null, foreign: { count: 2, undone: 2 } });
    const since = log.events.indexOf(decision as LogEvent);
    expect(ofType(log.events.slice(since), 'migration.started')).toEqual([]);
    const status = await runKronos(['status'], { KRONOS_CONFIG: kronos.configFile });
    expect(status.text).toContain('2 migrations that Kronos did not start undo its moves');
    const report = await runKronos(['report'], { KRONOS_CONFIG: kronos.configFile });
    expect(report.text).toMatch(
      /Moves of others +2 undo or repeat moves of Kronos \(2 undo one\); it balanced nothing for /,
    );
  }, 600_000);
});
