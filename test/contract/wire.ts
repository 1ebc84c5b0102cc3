import { until } from '@kronos/clock/testing';
import { expect } from 'vitest';
import { z } from 'zod';
import type { CloudUnderTest } from './cloud.ts';

/** An HTTP answer. `body` is the parsed JSON, or the text if it is not JSON. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: unknown;
}

/** One look at a server and its migrations. It reads the rows first and the server last. */
export interface Look {
  readonly atMs: number;
  readonly row: Row | null;
  readonly inProgress: readonly string[];
  readonly status: string;
  readonly taskState: string | null;
  readonly host: string;
}

const rowSchema = z.looseObject({
  id: z.number(),
  uuid: z.string(),
  status: z.string(),
  source_compute: z.string(),
  dest_compute: z.string().nullable(),
});
export type Row = z.infer<typeof rowSchema>;

const rowsSchema = z.object({ migrations: z.array(rowSchema) });
const tokenSchema = z.object({
  token: z.object({
    catalog: z.array(
      z.object({ type: z.string(), endpoints: z.array(z.object({ interface: z.string(), url: z.string() })) }),
    ),
  }),
});
const serverSchema = z.looseObject({
  id: z.string(),
  status: z.string(),
  'OS-EXT-STS:task_state': z.string().nullable(),
  'OS-EXT-STS:vm_state': z.string(),
  'OS-EXT-SRV-ATTR:host': z.string().nullable(),
});
export type ServerView = z.infer<typeof serverSchema>;

export const NEWEST = '2.96';

/** Plain calls to a cloud's APIs: no retries, no interpretation. */
export class Wire {
  readonly #token: string;
  readonly compute: string;
  readonly placementUrl: string;
  readonly cloud: CloudUnderTest;

  private constructor(cloud: CloudUnderTest, token: string, compute: string, placement: string) {
    this.cloud = cloud;
    this.#token = token;
    this.compute = compute;
    this.placementUrl = placement;
  }

  static async connect(cloud: CloudUnderTest): Promise<Wire> {
    const answer = await send('POST', `${cloud.identity}/auth/tokens`, {}, passwordBody(cloud));
    expect(answer.status, answer.text).toBe(201);
    const { token } = tokenSchema.parse(answer.body);
    const url = (type: string): string => {
      const found = token.catalog
        .find((entry) => entry.type === type)
        ?.endpoints.find((endpoint) => endpoint.interface === 'public');
      if (found === undefined) throw new Error(`the catalog has no ${type}`);
      return found.url;
    };
    return new Wire(cloud, answer.headers.get('x-subject-token') ?? '', url('compute'), url('placement'));
  }

  get token(): string {
    return this.#token;
  }

  nova(method: string, path: string, version = NEWEST, body?: unknown): Promise<Answer> {
    const headers = { 'X-Auth-Token': this.#token, 'OpenStack-API-Version': `compute ${version}` };
    return send(method, this.compute + path, headers, body);
  }

  placement(path: string, version = '1.36', method = 'GET', body?: unknown): Promise<Answer> {
    const headers = { 'X-Auth-Token': this.#token, 'OpenStack-API-Version': `placement ${version}` };
    return send(method, this.placementUrl + path, headers, body);
  }

  prometheus(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const query = new URLSearchParams(parameters).toString();
    return send('GET', `${this.cloud.prometheus}${path}${query === '' ? '' : `?${query}`}`, {});
  }

  /** GET that must answer 200. */
  async get(path: string, version = NEWEST): Promise<unknown> {
    const answer = await this.nova('GET', path, version);
    expect(answer.status, `GET ${path}: ${answer.text}`).toBe(200);
    return answer.body;
  }

  async server(id: string): Promise<ServerView> {
    return z.object({ server: serverSchema }).parse(await this.get(`/servers/${id}`)).server;
  }

  async rows(id: string): Promise<readonly Row[]> {
    return rowsSchema.parse(await this.get(`/os-migrations?instance_uuid=${id}&migration_type=live-migration`))
      .migrations;
  }

  async look(id: string): Promise<Look> {
    const newest = rowsSchema.parse(
      await this.get(`/os-migrations?instance_uuid=${id}&migration_type=live-migration&limit=1`),
    ).migrations[0];
    const progress = z
      .object({ migrations: z.array(z.object({ status: z.string() })) })
      .parse(await this.get(`/servers/${id}/migrations`));
    const server = await this.server(id);
    return {
      atMs: Date.now(),
      row: newest ?? null,
      inProgress: progress.migrations.map((each) => each.status),
      status: server.status,
      taskState: server['OS-EXT-STS:task_state'],
      host: server['OS-EXT-SRV-ATTR:host'] ?? '',
    };
  }

  /** Looks repeatedly until the test holds. Returns every look, oldest first. */
  watch(id: string, done: (look: Look) => boolean): Promise<readonly Look[]> {
    return this.#watch(id, done, this.cloud.lookEveryMs);
  }

  /** Looks again at once, to see short states; runs `also` after each look. */
  watchClosely(
    id: string,
    done: (look: Look) => boolean,
    also: (look: Look) => Promise<void>,
  ): Promise<readonly Look[]> {
    return this.#watch(id, done, 0, also);
  }

  async #watch(
    id: string,
    done: (look: Look) => boolean,
    everyMs: number,
    also?: (look: Look) => Promise<void>,
  ): Promise<readonly Look[]> {
    const looks: Look[] = [];
    const over = async (): Promise<boolean> => {
      const look = await this.look(id);
      looks.push(look);
      if (also !== undefined) await also(look);
      return done(look);
    };
    await until(over, this.cloud.patienceMs, () => `${id}; last seen ${JSON.stringify(looks.at(-1))}`, everyMs);
    return looks;
  }

  until<T>(what: string, find: () => Promise<T | undefined | false>): Promise<T> {
    return until(find, this.cloud.patienceMs, what, this.cloud.lookEveryMs) as Promise<T>;
  }

  act(id: string, action: unknown, version = NEWEST): Promise<Answer> {
    return this.nova('POST', `/servers/${id}/action`, version, action);
  }

  /** Waits for the status of a server that is free. */
  settled(id: string, status: string): Promise<ServerView> {
    return this.until(`${id} ${status}`, async () => {
      const server = await this.server(id);
      return server.status === status && server['OS-EXT-STS:task_state'] === null && server;
    });
  }

  liveMigrate(id: string, host: string | null, version = NEWEST): Promise<Answer> {
    return this.act(id, { 'os-migrateLive': { host, block_migration: 'auto' } }, version);
  }

  /** Starts a live migration that Nova must accept. Returns its request id. */
  async start(id: string, host: string | null): Promise<string> {
    const answer = await this.liveMigrate(id, host);
    expect(answer.status, answer.text).toBe(202);
    return answer.headers.get('x-openstack-request-id') ?? '';
  }

  /** Servers on a host, ACTIVE. */
  async boot(
    count: number,
    host: string,
    more: { group?: string; metadata?: Record<string, string> } = {},
  ): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      const answer = await this.nova('POST', '/servers', NEWEST, {
        server: {
          name: `contract-${host}-${i}`,
          flavorRef: this.cloud.flavorRef,
          imageRef: this.cloud.imageRef,
          networks: 'none',
          host,
          metadata: more.metadata ?? {},
        },
        ...(more.group === undefined ? {} : { 'os:scheduler_hints': { group: more.group } }),
      });
      expect(answer.status, answer.text).toBe(202);
      ids.push(z.object({ server: z.object({ id: z.string() }) }).parse(answer.body).server.id);
    }
    for (const id of ids)
      await this.until(`${id} ACTIVE on ${host}`, async () => {
        const server = await this.server(id);
        if (server.status === 'ERROR') throw new Error(`server ${id} did not boot: ${JSON.stringify(server)}`);
        return server.status === 'ACTIVE';
      });
    return ids;
  }

  /** One server, ACTIVE. */
  async bootOne(host: string, more: { group?: string; metadata?: Record<string, string> } = {}): Promise<string> {
    const [id] = await this.boot(1, host, more);
    if (id === undefined) throw new Error('no server');
    return id;
  }

  async group(policy: string, maxServerPerHost?: number): Promise<string> {
    const answer = await this.nova('POST', '/os-server-groups', NEWEST, {
      server_group: {
        name: `contract-${policy}`,
        policy,
        ...(maxServerPerHost === undefined ? {} : { rules: { max_server_per_host: maxServerPerHost } }),
      },
    });
    expect(answer.status, answer.text).toBe(200);
    return z.object({ server_group: z.object({ id: z.string() }) }).parse(answer.body).server_group.id;
  }

  /** Follows the migration newer than `after` until shortly after its end. Returns the looks and the last row. */
  async follow(id: string, after = 0): Promise<{ looks: readonly Look[]; row: Row }> {
    const looks = await this.watch(
      id,
      (look) => look.row !== null && look.row.id > after && ENDED.includes(look.row.status) && look.taskState === null,
    );
    const row = looks.at(-1)?.row;
    if (row === undefined || row === null) throw new Error('no row');
    return { looks, row };
  }

  async action(id: string, requestId: string): Promise<Action> {
    const body = await this.get(`/servers/${id}/os-instance-actions/${requestId}`);
    return z.object({ instanceAction: actionSchema }).parse(body).instanceAction;
  }

  /** The actions on a server, the newest first. A deleted server still has them. */
  async actions(id: string): Promise<readonly { readonly action: string; readonly request_id: string }[]> {
    const body = await this.get(`/servers/${id}/os-instance-actions`);
    return actionsSchema.parse(body).instanceActions;
  }

  /** Consumer -> provider uuid -> resources. */
  async allocations(consumer: string): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.placement(`/allocations/${consumer}`);
    expect(answer.status, answer.text).toBe(200);
    return z.object({ allocations: z.record(z.string(), z.unknown()) }).parse(answer.body).allocations;
  }

  /** The host's resource provider, which is its hypervisor id. */
  async provider(host: string): Promise<string> {
    const body = z
      .object({ hypervisors: z.array(z.object({ id: z.string(), service: z.object({ host: z.string() }) })) })
      .parse(await this.get('/os-hypervisors/detail'));
    const found = body.hypervisors.find((each) => each.service.host === host);
    if (found === undefined) throw new Error(`there is no host ${host}`);
    return found.id;
  }

  async serviceId(host: string): Promise<string> {
    const body = z
      .object({ services: z.array(z.object({ id: z.string(), host: z.string() })) })
      .parse(await this.get(`/os-services?binary=nova-compute&host=${host}`));
    const [found] = body.services;
    if (found === undefined) throw new Error(`there is no service ${host}`);
    return found.id;
  }
}

export const ENDED = ['completed', 'failed', 'error', 'cancelled'];

const actionsSchema = z.object({
  instanceActions: z.array(z.looseObject({ action: z.string(), request_id: z.string() })),
});

const actionSchema = z.looseObject({
  action: z.string(),
  message: z.string().nullable(),
  events: z.array(
    z.looseObject({
      event: z.string(),
      result: z.string().nullable(),
      host: z.string().nullable(),
      details: z.string().nullable(),
      finish_time: z.string().nullable(),
    }),
  ),
});
export type Action = z.infer<typeof actionSchema>;

export function passwordBody(
  cloud: Pick<CloudUnderTest, 'username' | 'password' | 'project'>,
  password: string = cloud.password,
): unknown {
  return {
    auth: {
      identity: {
        methods: ['password'],
        password: { user: { name: cloud.username, domain: { id: 'default' }, password } },
      },
      scope: { project: { name: cloud.project, domain: { id: 'default' } } },
    },
  };
}

export async function send(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body?: unknown,
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  let parsed: unknown = text;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Not JSON: the body is the text.
  }
  return { status: response.status, headers: response.headers, text, body: parsed };
}
