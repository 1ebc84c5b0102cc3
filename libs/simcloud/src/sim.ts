import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Act, type ActInput, actSchema } from './acts.ts';
import { realClock, type SimClock } from './clock.ts';
import { Cloud } from './cloud.ts';
import { ActError } from './errors.ts';
import { type ActiveApiFault, type ApiName, apis } from './faults.ts';
import { Compute } from './http/compute/routes.ts';
import type { Call, Reply } from './http/exchange.ts';
import { bodyJson, json, object } from './http/exchange.ts';
import { type CatalogEntry, Keystone } from './http/identity.ts';
import { NeutronApi } from './http/neutron.ts';
import { PlacementApi } from './http/placement.ts';
import { answerPrometheus } from './http/prometheus.ts';
import type { Server } from './model.ts';
import { random, type SeededRandom } from './random.ts';
import { describeIssues, parseScenario, type ScenarioInput } from './scenario.ts';

export interface SimOptions {
  readonly scenario: ScenarioInput;
  /** Default: the scenario's. */
  readonly seed?: number;
  /** The pace of its steps; 1, the default, is Nova's own. */
  readonly speed?: number;
  /** Default 0: a free one. */
  readonly port?: number;
  /**
   * The name by which others reach it: it then listens on every interface, and its URLs carry this name. Default: it
   * listens on 127.0.0.1 alone.
   */
  readonly host?: string;
  readonly clock?: SimClock;
  /** Delays an answer; default: a timer of Node. Returns what takes it back. */
  readonly after?: (ms: number, act: () => void) => () => void;
}

export interface SimUrls {
  /** For `auth_url`. */
  readonly identity: string;
  readonly compute: string;
  readonly placement: string;
  readonly network: string;
  readonly prometheus: string;
  readonly admin: string;
}

/** One call that the cloud received: its own record. */
export interface CallRecord {
  readonly seq: number;
  readonly atMs: number;
  readonly api: ApiName;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly microversion: string | null;
  readonly requestId: string;
  readonly body: unknown;
  /** Null when it got no answer. */
  status: number | null;
  /** The fault that hit it, if any. */
  fault: string | null;
}

/** A migration with every status it went through: the cloud's own record. */
export interface MigrationRecord {
  readonly id: number;
  readonly uuid: string;
  readonly server: string;
  readonly name: string;
  readonly source: string;
  readonly dest: string | null;
  readonly requestedHost: string | null;
  readonly forced: boolean;
  readonly requestId: string;
  readonly user: string;
  readonly status: string;
  readonly history: readonly { readonly status: string; readonly atMs: number }[];
}

/** A simulated cloud that listens. */
export interface Sim {
  readonly urls: SimUrls;
  readonly cloud: Cloud;
  readonly clock: SimClock;
  /** Brings the cloud to the clock's time; every call does it by itself. */
  settle(): void;
  /** Does one act to the cloud; returns the id of the thing that it made, if any. @throws ActError */
  act(act: ActInput): Readonly<Record<string, unknown>>;
  /** POST, PUT and DELETE calls since a sequence number, oldest first. */
  calls(since?: number): readonly CallRecord[];
  migrations(): readonly MigrationRecord[];
  /** Calls counted by `METHOD api route`, ids replaced by `{id}`; reads included. */
  counts(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}

const LOOPBACK = '127.0.0.1';

const PREFIXES: Readonly<Record<ApiName, string>> = {
  identity: '/identity',
  compute: '/compute',
  placement: '/placement',
  network: '/networking',
  prometheus: '/prometheus',
};

/** A call as it arrives. Header names are in lower case. */
export interface Arrived {
  readonly method: string;
  /** Path and query, or a whole URL. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** The outcome of a call: a reply, a connection that is cut (in the middle of a reply), or nothing at all. */
export interface ActOutcome {
  reply(reply: Reply): void;
  cut(middle?: Reply): void;
}

/** A simulated cloud without sockets: calls are handed to it as they are. */
export interface InProcessSim extends Sim {
  dispatch(call: Arrived, outcome: ActOutcome): void;
}

/** A simulated cloud in this process; its URLs lead nowhere. Throws ScenarioError. */
export function openSim(options: SimOptions): InProcessSim {
  return new SimServer(options, 'http://cloud.invalid');
}

/** Starts a simulated cloud. Throws ScenarioError. */
export async function startSim(options: SimOptions): Promise<Sim> {
  const sim = new SimServer(options);
  await sim.listen(options.port ?? 0, options.host ?? null);
  return sim;
}

/** An act of one kind. */
type ActOf<Kind extends Act['act']> = Extract<Act, { readonly act: Kind }>;

/** A call, and the API that it is for. */
type Addressed = Pick<Call, 'method' | 'path' | 'rawQuery' | 'body' | 'requestId'> & { readonly api: ApiName };

class SimServer implements InProcessSim {
  readonly cloud: Cloud;
  readonly clock: SimClock;
  readonly #identity: Keystone;
  readonly #compute: Compute;
  readonly #placement: PlacementApi;
  readonly #neutron: NeutronApi;
  readonly #http: HttpServer;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<() => void>();
  readonly #after: NonNullable<SimOptions['after']>;
  readonly #random: SeededRandom;
  readonly #requestIds: SeededRandom;
  readonly #calls: CallRecord[] = [];
  readonly #counts = new Map<string, number>();
  readonly #paused = new Map<ApiName, (() => void)[]>();
  #faults: ActiveApiFault[] = [];
  #seq = 0;
  #faultId = 0;
  #origin: string;

  constructor(options: SimOptions, origin = '') {
    this.#origin = origin;
    this.#after = options.after ?? afterWithTimer;
    const scenario = parseScenario(options.scenario);
    this.clock = options.clock ?? realClock;
    const seed = options.seed ?? scenario.seed;
    this.cloud = new Cloud(scenario, {
      startMs: this.clock.now(),
      seed,
      ...(options.speed === undefined ? {} : { speed: options.speed }),
    });
    this.#random = random(seed ^ 0x5eed);
    this.#requestIds = random(seed ^ 0x1d);
    this.#identity = new Keystone(this.cloud, () => this.#catalog(), seed ^ 0x70ce);
    const keystone = (): string => this.urls.identity;
    this.#compute = new Compute(this.cloud, this.#identity, keystone);
    this.#placement = new PlacementApi(this.cloud, this.#identity, keystone);
    this.#neutron = new NeutronApi(this.cloud, this.#identity, keystone);
    this.#http = createServer((request, response) => this.#receive(request, response));
    this.#http.keepAliveTimeout = 60_000;
    this.#http.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  async listen(port: number, host: string | null): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(port, host === null ? LOOPBACK : '0.0.0.0', resolve);
    });
    const address = this.#http.address() as AddressInfo;
    this.#origin = `http://${host ?? LOOPBACK}:${address.port}`;
  }

  get urls(): SimUrls {
    const origin = this.#origin;
    return {
      identity: `${origin}${PREFIXES.identity}/v3`,
      compute: `${origin}${PREFIXES.compute}/v2.1`,
      placement: `${origin}${PREFIXES.placement}`,
      network: `${origin}${PREFIXES.network}`,
      prometheus: `${origin}${PREFIXES.prometheus}`,
      admin: `${origin}/_sim`,
    };
  }

  #catalog(): CatalogEntry[] {
    const { identity, compute, placement, network } = this.urls;
    return [
      { type: 'placement', name: 'placement', url: placement },
      { type: 'compute', name: 'nova', url: compute },
      { type: 'network', name: 'neutron', url: network },
      { type: 'identity', name: 'keystone', url: identity },
    ];
  }

  settle(): void {
    this.cloud.advance(this.clock.now());
  }

  // ---------------------------------------------------------------- acts

  act(input: ActInput): Readonly<Record<string, unknown>> {
    const parsed = actSchema.safeParse(input);
    if (!parsed.success) throw new ActError(describeIssues(parsed.error));
    return this.#do(parsed.data);
  }

  #do(act: Act): Readonly<Record<string, unknown>> {
    const now = this.clock.now();
    this.cloud.advance(now);
    const perform = SimServer.#acts[act.act] as (sim: SimServer, act: Act, now: number) => unknown;
    return object(perform(this, act, now)) ?? {};
  }

  /** Each returns the id of the thing that it made, if any. */
  static readonly #acts: { readonly [Kind in Act['act']]: (sim: SimServer, act: ActOf<Kind>, now: number) => unknown } =
    {
      createServer: ({ cloud }, { server }, now) => ({ id: cloud.createServer(now, server).uuid }),
      deleteServer: ({ cloud }, { server }, now) => cloud.deleteServer(now, server),
      migrateServer: (sim, { server, host }, now) => sim.#migrateServer(server, host, now),
      lockServer: ({ cloud }, { server, reason }, now) =>
        cloud.setServer(now, server, { locked: true, lockedReason: reason }),
      unlockServer: ({ cloud }, { server }, now) => cloud.setServer(now, server, { locked: false }),
      setServer: ({ cloud }, { act: _, server, demand, ...change }, now) =>
        cloud.setServer(now, server, {
          ...change,
          ...(demand === undefined
            ? {}
            : { demand: demand as NonNullable<Parameters<Cloud['setServer']>[2]['demand']> }),
        }),
      addFlavor: ({ cloud }, { flavor }) => {
        cloud.addFlavor(flavor);
      },
      addHost: ({ cloud }, { host }) => {
        cloud.addHost(host);
      },
      setHost: ({ cloud }, { act: _, host, ...change }, now) => cloud.setHost(now, host, change),
      createGroup: ({ cloud }, { group }) => ({ id: cloud.addGroup(group).uuid }),
      deleteGroup: ({ cloud }, { group }) => cloud.removeGroup(group),
      setGroup: ({ cloud }, { server, group }) => cloud.setMembership(server, group),
      createAggregate: ({ cloud }, { aggregate }) => ({ id: cloud.addAggregate(aggregate).id }),
      deleteAggregate: ({ cloud }, { aggregate }) => cloud.removeAggregate(aggregate),
      setAggregate: ({ cloud }, { act: _, aggregate, ...change }) => cloud.setAggregate(aggregate, change),
      killHost: ({ cloud }, { host }, now) => cloud.killHost(now, host),
      startHost: ({ cloud }, { host }, now) => cloud.startHost(now, host),
      loseMigrations: ({ cloud }, { server }, now) => cloud.loseMigrations(now, server),
      faultServer: ({ cloud }, { server, fault }, now) => {
        const { uuid } = cloud.server(server);
        if (fault === null) cloud.mendServer(now, uuid);
        else cloud.serverFaults.set(uuid, fault);
      },
      faultHost: ({ cloud }, act) => {
        const { name } = cloud.host(act.host);
        if (act.fault === null) cloud.hostFaults.delete(name);
        else cloud.hostFaults.set(name, act.fault);
      },
      faultApi: (sim, { fault }) => ({ id: sim.#faultApi(fault) }),
      mendApi: (sim, { id }) => {
        sim.#faults = id === undefined ? [] : sim.#faults.filter((fault) => fault.id !== id);
      },
      faultSeries: ({ cloud }, { fault }, now) => ({ id: cloud.faultSeries(now, fault) }),
      mendSeries: ({ cloud }, { id }, now) => cloud.clearSeries(now, id),
      pauseApi: (sim, act) => {
        for (const api of named(act.api)) if (!sim.#paused.has(api)) sim.#paused.set(api, []);
      },
      resumeApi: (sim, act) => {
        for (const api of named(act.api)) sim.#resume(api);
      },
      revokeTokens: (sim) => sim.#identity.revokeAll(),
      setRoles: (sim, { user, roles }) => sim.#identity.setRoles(user, roles),
      setCell: ({ cloud }, { cell, ...change }, now) => cloud.setCell(now, cell, change),
      mendAll: (sim, _act, now) => {
        sim.#faults = [];
        sim.cloud.unreachable.clear();
        sim.cloud.serverFaults.clear();
        sim.cloud.hostFaults.clear();
        sim.cloud.clearSeries(now);
        for (const api of apis) sim.#resume(api);
      },
      setSpeed: ({ cloud }, { speed }, now) => cloud.setSpeed(now, speed),
      setTokenSeconds: (sim, { seconds }) => {
        sim.#identity.tokenSeconds = seconds;
      },
    };

  #migrateServer(server: string, host: string | null, now: number): { readonly requestId: string } {
    const { admin } = this.cloud;
    const requestId = this.#requestId();
    const caller = { userId: admin.id, projectId: admin.projectId, requestId };
    this.cloud.liveMigrate(now, caller, this.cloud.server(server).uuid, { host, force: false, async: true });
    return { requestId };
  }

  #faultApi(fault: ActOf<'faultApi'>['fault']): number {
    if (fault.path !== undefined && !isPattern(fault.path))
      throw new ActError(`fault.path: ${fault.path} is no regular expression`);
    const id = ++this.#faultId;
    this.#faults.push({ ...fault, id, left: fault.times ?? Number.POSITIVE_INFINITY });
    return id;
  }

  #resume(api: ApiName): void {
    const held = this.#paused.get(api) ?? [];
    this.#paused.delete(api);
    for (const go of held) go();
  }

  // ---------------------------------------------------------------- records

  calls(since = 0): readonly CallRecord[] {
    return this.#calls.filter((call) => call.seq > since);
  }

  migrations(): readonly MigrationRecord[] {
    this.settle();
    const { cloud } = this;
    return cloud.migrations.map((migration) => ({
      id: migration.id,
      uuid: migration.uuid,
      server: migration.serverUuid,
      name: (cloud.servers.get(migration.serverUuid) ?? cloud.deleted.get(migration.serverUuid))?.name ?? '',
      source: migration.source,
      dest: migration.dest,
      requestedHost: migration.requestedHost,
      forced: migration.forced,
      requestId: migration.requestId,
      user: cloud.users.get(migration.userId)?.name ?? '',
      status: migration.status,
      history: migration.history,
    }));
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  // ---------------------------------------------------------------- HTTP

  #requestId(): string {
    return `req-${this.#requestIds.uuid()}`;
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => response.destroy());
    request.on('end', () => {
      const { method = 'GET', url = '/', headers } = request;
      const body = Buffer.concat(chunks).toString('utf8');
      this.dispatch({ method, url, headers, body }, overHttp(response));
    });
  }

  dispatch(request: Arrived, outcome: ActOutcome): void {
    const { method, body } = request;
    const { rawPath, rawQuery } = this.#partsOf(request.url);
    if (rawPath === '/_sim' || rawPath.startsWith('/_sim/')) {
      outcome.reply(this.#admin(method, rawPath.slice('/_sim'.length), new URLSearchParams(rawQuery), body));
      return;
    }
    const api = apis.find((each) => rawPath === PREFIXES[each] || rawPath.startsWith(`${PREFIXES[each]}/`));
    if (api === undefined) {
      outcome.reply({ status: 404, headers: { 'Content-Type': 'text/plain' }, body: 'no such API\n' });
      return;
    }
    const path = rawPath.slice(PREFIXES[api].length);
    const requestId = this.#requestId();
    const route = `${method} ${api} ${path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|req-[0-9a-f-]+|\/\d+(?=\/|$)/g, (id) => (id.startsWith('/') ? '/{id}' : '{id}'))}`;
    this.#counts.set(route, (this.#counts.get(route) ?? 0) + 1);
    const record: CallRecord = {
      seq: ++this.#seq,
      atMs: this.clock.now(),
      api,
      method,
      path: rawQuery === '' ? path : `${path}?${rawQuery}`,
      microversion: headerText(request.headers['openstack-api-version']) ?? null,
      requestId,
      // Secrets stay out of the record.
      body: api === 'identity' || body === '' ? null : (bodyJson(body) ?? body),
      status: null,
      fault: null,
    };
    if (method !== 'GET' && method !== 'HEAD' && api !== 'prometheus') this.#calls.push(record);
    const waiting = this.#paused.get(api);
    const go = (): void => {
      this.#serve(request, outcome, record, { api, method, path, rawQuery, body, requestId });
    };
    if (waiting !== undefined) waiting.push(go);
    else go();
  }

  #partsOf(whole: string): { readonly rawPath: string; readonly rawQuery: string } {
    const url = this.#origin !== '' && whole.startsWith(this.#origin) ? whole.slice(this.#origin.length) : whole;
    const mark = url.indexOf('?');
    return mark < 0 ? { rawPath: url, rawQuery: '' } : { rawPath: url.slice(0, mark), rawQuery: url.slice(mark + 1) };
  }

  #serve(request: Arrived, outcome: ActOutcome, record: CallRecord, given: Addressed): void {
    const { latencyMs, fault } = this.#faultFor(given.api, given.method, record.path);
    if (fault !== undefined) record.fault = fault.effect.kind;
    const carryOut = (): Reply => this.#carryOut(request, given);
    const finish = (): void => answer(fault?.effect, record, outcome, carryOut);
    if (latencyMs <= 0) {
      finish();
      return;
    }
    const cancel = this.#after(latencyMs, () => {
      this.#timers.delete(cancel);
      finish();
    });
    this.#timers.add(cancel);
  }

  #carryOut(request: Arrived, { api, rawQuery, ...given }: Addressed): Reply {
    const nowMs = this.clock.now();
    this.cloud.advance(nowMs);
    const call: Call = {
      ...given,
      query: new URLSearchParams(rawQuery),
      rawQuery,
      headers: Object.fromEntries(Object.entries(request.headers).map(([key, value]) => [key, headerText(value)])),
      nowMs,
      base: `${this.#origin}${PREFIXES[api]}`,
    };
    switch (api) {
      case 'identity':
        return this.#identity.answer(call);
      case 'compute':
        return this.#compute.answer(call);
      case 'placement':
        return this.#placement.answer(call);
      case 'network':
        return this.#neutron.answer(call);
      case 'prometheus':
        return answerPrometheus(this.cloud, call);
    }
  }

  #faultFor(api: ApiName, method: string, path: string): { latencyMs: number; fault: ActiveApiFault | undefined } {
    let latencyMs = 0;
    let hit: ActiveApiFault | undefined;
    for (const fault of this.#faults) {
      if (fault.api !== '*' && fault.api !== api) continue;
      if (fault.method !== undefined && fault.method !== method) continue;
      if (fault.path !== undefined && !new RegExp(fault.path).test(path)) continue;
      if (hit !== undefined && fault.effect.kind !== 'latency') continue;
      if (fault.probability < 1 && this.#random.next() >= fault.probability) continue;
      fault.left--;
      if (fault.effect.kind === 'latency') latencyMs += fault.effect.ms + fault.effect.jitterMs * this.#random.next();
      else hit = fault;
    }
    this.#faults = this.#faults.filter((fault) => fault.left > 0);
    return { latencyMs, fault: hit };
  }

  #admin(method: string, path: string, query: URLSearchParams, body: string): Reply {
    this.settle();
    if (method === 'POST' && path === '/acts') return this.#performAll(body);
    const view = method === 'GET' ? this.#views[path] : undefined;
    if (view === undefined) return json(404, { code: 'KRONOS_SIM_ACT', message: `there is no ${method} /_sim${path}` });
    return json(200, view(query));
  }

  /** Performs acts until one is refused. */
  #performAll(body: string): Reply {
    const given = bodyJson(body);
    if (given === undefined)
      return json(400, { code: 'KRONOS_SIM_ACT', message: 'the body must be JSON: one act or a list' });
    const acts = Array.isArray(given) ? given : [given];
    const results: unknown[] = [];
    for (const each of acts) {
      try {
        results.push(this.act(each as ActInput));
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        return json(400, { code: 'KRONOS_SIM_ACT', message: `act ${results.length}: ${error.message}`, results });
      }
    }
    return json(200, { results });
  }

  #overview(): unknown {
    const { cloud } = this;
    return {
      scenario: cloud.scenario.name,
      now: new Date(cloud.nowMs).toISOString(),
      speed: cloud.speed,
      urls: this.urls,
      hosts: cloud.hosts.size,
      servers: cloud.servers.size,
      migrations: cloud.migrations.length,
    };
  }

  /** The answers to GET below /_sim, by path. */
  readonly #views: Readonly<Record<string, (query: URLSearchParams) => unknown>> = {
    '': () => this.#overview(),
    '/': () => this.#overview(),
    '/calls': (query) => ({ calls: this.calls(Number(query.get('since') ?? 0)) }),
    '/counts': () => this.counts(),
    '/migrations': () => ({ migrations: this.migrations() }),
    '/faults': () => ({
      api: this.#faults,
      servers: Object.fromEntries(this.cloud.serverFaults),
      hosts: Object.fromEntries(this.cloud.hostFaults),
      series: this.cloud.seriesFaults.filter((fault) => fault.untilMs === null),
      paused: [...this.#paused.keys()],
    }),
    '/servers': () => ({ servers: this.cloud.listing().map((server) => serverRecord(this.cloud, server)) }),
    '/hosts': () => ({
      hosts: [...this.cloud.hosts.values()].map((host) => ({
        name: host.name,
        up: host.up,
        disabled: host.disabled,
        forcedDown: host.forcedDown,
        cell: host.cell,
        zone: this.cloud.zoneOf(host.name),
        total: host.total,
        used: host.used,
      })),
    }),
  };

  async close(): Promise<void> {
    for (const cancel of this.#timers) cancel();
    if (!this.#http.listening) return;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#http.close(() => resolve()));
  }
}

/** The cloud's own record of a server. */
const serverRecord = (cloud: Cloud, server: Server): unknown => ({
  id: server.uuid,
  name: server.name,
  host: server.host,
  guestHost: server.guestHost,
  vmState: server.vmState,
  taskState: server.taskState,
  locked: server.locked,
  group: cloud.groupOf.get(server.uuid)?.name ?? null,
  vcpus: server.flavor.vcpus,
  memoryMb: server.flavor.memoryMb,
  demand: server.demand,
});

/** Answers a call the way that its fault prescribes. Some faults prevent the call from being carried out. */
function answer(
  effect: ActiveApiFault['effect'] | undefined,
  record: CallRecord,
  outcome: ActOutcome,
  carryOut: () => Reply,
): void {
  switch (effect?.kind) {
    case undefined:
    case 'latency': {
      const reply = carryOut();
      record.status = reply.status;
      outcome.reply(reply);
      return;
    }
    case 'status': {
      if (effect.processed) carryOut();
      record.status = effect.status;
      const text = effect.body ?? `<html><body><h1>${effect.status}</h1></body></html>`;
      outcome.reply({ status: effect.status, headers: { 'Content-Type': 'text/html' }, body: text });
      return;
    }
    case 'unauthorized': {
      record.status = 401;
      const message = 'The request you have made requires authentication.';
      outcome.reply(json(401, { error: { code: 401, title: 'Unauthorized', message } }));
      return;
    }
    case 'garbage':
      carryOut();
      record.status = 200;
      outcome.reply({ status: 200, headers: { 'Content-Type': 'application/json' }, body: '{"truncat' });
      return;
    case 'cut': {
      const reply = effect.when === 'before' ? undefined : carryOut();
      outcome.cut(effect.when === 'middle' ? reply : undefined);
      return;
    }
    case 'hang':
      if (effect.when === 'after') carryOut();
      return;
  }
}

function named(api: ApiName | '*'): readonly ApiName[] {
  return api === '*' ? apis : [api];
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

const headerText = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value;

function afterWithTimer(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
}

const overHttp = (response: ServerResponse): ActOutcome => ({
  reply: (reply) => send(response, reply),
  cut(reply) {
    if (reply === undefined) {
      response.destroy();
      return;
    }
    // The length promises more than comes.
    const whole = Buffer.from(reply.body);
    const headers = { ...reply.headers, 'Content-Length': String(whole.length + 1) };
    response.writeHead(reply.status, headers as Record<string, string | string[]>);
    response.write(whole.subarray(0, Math.floor(whole.length / 2)), () => response.destroy());
  },
});

function send(response: ServerResponse, reply: Reply): void {
  if (response.destroyed) return;
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(reply.headers))
    headers[name] = typeof value === 'string' ? value : [...value];
  if (reply.status !== 204) headers['Content-Length'] = String(Buffer.byteLength(reply.body));
  response.writeHead(reply.status, headers);
  response.end(reply.body);
}
