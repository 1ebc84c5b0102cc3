import { type Attempt, type Book, RACE_MS, type Task } from './book.ts';

export interface Call {
  readonly method: string;
  /** True time at which it arrived. */
  readonly atMs: number;
  /** True time at which its bytes left the executor. */
  readonly leftMs: number;
  readonly path: string;
  readonly body: unknown;
  readonly requestId: string;
  readonly status: number | null;
}
/** The longest time until a message arrives that a service had sent or a process held when the log was lost. */
const FAREWELL_MS = 300_000;
/** A move is requested at most this long after its server and its hosts were read: 60 s for slow reads, 10 s to its start, 10 s to the request. */
const READ_MS = 80_000;
/** The interval of the checker's looks at the cloud, and some more. */
const LOOK_MS = 15_000;

/** Nova's refusal of a destination is remembered for so long, while the VMs on it stay the same. */
const REMEMBERED_MS = 86_400_000;

/** Checks the requests that reach the cloud, and looks at the cloud itself. */
export class CloudChecker {
  readonly #book: Book;
  readonly #places = new Map<string, { host: string; since: number; look: number }>();
  #looks = 0;
  readonly #closedSince = new Map<string, number>();
  readonly #openSince = new Map<string, number>();
  /** By host: since when several aggregates of Kronos have it. */
  readonly #sharedSince = new Map<string, number>();
  /** By host: since when Nova's API does not reach its cell. */
  readonly #unreachableSince = new Map<string, number>();
  readonly #versions = new Map<string, { readonly version: number; readonly since: number }>();
  readonly #disabled = new Set<string>();
  /** By host: when a server was last seen to come to it or to leave it, or its traits or its version to change; else when it was first seen. */
  readonly #changedMs = new Map<string, number>();
  /** When the server's own page was last read, by server. */
  readonly #readMs = new Map<string, number>();

  constructor(book: Book) {
    this.#book = book;
  }

  /** Since when a host takes servers, ms since the epoch; undefined: it takes none, or was not seen. */
  openSince(host: string): number | undefined {
    return this.#openSince.get(host);
  }

  /** Since when a server is where it is, ms since the epoch; undefined: it was not seen. */
  placedSince(server: string): number | undefined {
    return this.#places.get(server)?.since;
  }

  /** The reason that forbids each plan of an aggregate with this host since a time, ms since the epoch; null: none. */
  forbids(
    host: string,
    sinceMs: number,
  ): { readonly rule: 'two-aggregates' | 'unreachable'; readonly text: string } | null {
    const { cloud } = this.#book;
    const [shared, unreachable] = [this.#sharedSince.get(host), this.#unreachableSince.get(host)];
    const aggregates = cloud.aggregatesWith(host);
    // Either may have ended since the last look.
    if (shared !== undefined && shared < sinceMs && aggregates.length > 1)
      return { rule: 'two-aggregates', text: `${host} is in ${aggregates.join(' and ')}` };
    if (unreachable !== undefined && unreachable < sinceMs && !cloud.reachable(host))
      return { rule: 'unreachable', text: `Nova does not reach the cell of ${host}` };
    return null;
  }

  /** A call that the cloud received, after it was answered or cut. `former`: the move of a log that is lost. */
  called(call: Call): 'former' | null {
    const doubtfulMs = this.#book.doubtfulSinceMs === null ? 0 : call.atMs - this.#book.doubtfulSinceMs;
    if (call.method === 'DELETE' && doubtfulMs > FAREWELL_MS)
      this.#book.breach('identity', `${call.path} was deleted ${doubtfulMs / 1000} s after the log was lost`);
    const match = /^\/v2\.1\/servers\/([^/]+)\/action/.exec(call.path);
    const move = (call.body as { 'os-migrateLive'?: { host?: string | null } } | null)?.['os-migrateLive'];
    if (match === null || move === undefined) return null;
    // With 401 Nova has done nothing: the same request may come again with a new token.
    if (call.status === 401) return null;
    this.#book.count('posts');
    const server = match[1] ?? '';
    const open = (this.#book.byServer.get(server) ?? []).flatMap((task) =>
      [...task.attempts.values()].filter((attempt) => !attempt.ended).map((attempt) => ({ task, attempt })),
    );
    const [mine] = open.filter(({ attempt }) => attempt.destination === move.host);
    if (mine === undefined) {
      if (this.#byFormer(server, move.host ?? null, call.leftMs)) return 'former';
      this.#book.breach('unasked', `a move of ${server} to ${move.host} was requested, and no attempt is started`);
      return null;
    }
    this.#requested(mine.task, mine.attempt, call.leftMs);
    return null;
  }

  /** A request is the only one of its attempt, follows the start and a read of its server soon, and is of a move that is allowed. */
  #requested(task: Task, attempt: Attempt, leftMs: number): void {
    attempt.posts++;
    if (attempt.posts > 1) this.#book.breach('post-twice', `${task.id} attempt ${attempt.attempt}`);
    const lateMs = leftMs - attempt.startedMs;
    if (lateMs > this.#book.rules.postWindowMs + 1000)
      this.#book.breach('post-late', `${task.id}: ${lateMs / 1000} s after its start`);
    const lookMs = leftMs - (this.#readMs.get(task.serverId) ?? 0);
    if (lookMs > READ_MS)
      this.#book.breach('unchecked', `${task.id}: its server was last read ${lookMs / 1000} s before`);
    this.#destination(task, attempt.destination);
    this.#refusedBefore(task, attempt.destination);
    this.#cells(task, attempt.destination);
    this.#cloudCaps(task);
  }

  /** Whether a request is the one of an attempt that was started by a log that is lost, while its window was open. */
  #byFormer(server: string, host: string | null, leftMs: number): boolean {
    for (const task of this.#book.formerTasks.values()) {
      if (task.serverId !== server || task.finalSequence !== null) continue;
      for (const attempt of task.attempts.values()) {
        if (attempt.ended || attempt.destination !== host) continue;
        if (leftMs - attempt.startedMs > this.#book.rules.postWindowMs + 1000) continue;
        attempt.posts++;
        if (attempt.posts > 1) this.#book.breach('post-twice', `${task.id} attempt ${attempt.attempt}`);
        return true;
      }
    }
    return false;
  }

  /** A read of the cloud by a service. */
  read(path: string): void {
    const server = /^\/v2\.1\/servers\/([0-9a-f-]{36})$/.exec(path)?.[1];
    if (server !== undefined) this.#readMs.set(server, this.#book.now());
  }

  #destination(task: Task, host: string): void {
    const now = this.#book.now();
    const forbids = this.forbids(host, now - READ_MS - LOOK_MS);
    if (forbids !== null) this.#book.breach(forbids.rule, `${task.id} goes to ${host}: ${forbids.text}`);
    this.#hypervisor(task, host);
    const closed = this.#closedSince.get(host);
    // It may have been opened since the last look.
    if (closed !== undefined && !this.#book.cloud.open(host) && now - closed > READ_MS + LOOK_MS)
      this.#book.breach(
        'closed-host',
        `${task.id} goes to ${host}, which takes no servers since ${(now - closed) / 1000} s`,
      );
    const companions = this.#book.cloud.companions(task.serverId, host);
    if (companions === null || !companions.policy.includes('anti-affinity')) return;
    for (const member of companions.members) {
      const place = this.#places.get(member);
      const since = place?.host === host ? place.since : now;
      if (now - since > READ_MS + LOOK_MS)
        this.#book.breach(
          'group',
          `${task.id} goes to ${host}, where ${member} of its group is since ${(now - since) / 1000} s`,
        );
    }
  }

  /** Live migration goes to no older hypervisor. The versions are those of the plan's snapshot: an upgrade may follow it. */
  #hypervisor({ id, planId, serverId }: Task, host: string): void {
    const { cloud, plans, rules } = this.#book;
    const [from, to] = [cloud.host(serverId) ?? host, host].map((name) => this.#versions.get(name));
    const snapshotMs = plans.get(planId)?.snapshotMs;
    if (from === undefined || to === undefined || snapshotMs === undefined || to.version >= from.version) return;
    if (Math.max(from.since, to.since) > snapshotMs - rules.intervalMs - LOOK_MS) return;
    this.#book.breach('older-host', `${id} goes from hypervisor ${from.version} to ${to.version} on ${host}`);
  }

  /** Nova is not asked again for what it refused while nothing about the host has changed. */
  #refusedBefore({ id, aggregate, serverId }: Task, host: string): void {
    const { novaRefusals, cloud, rules } = this.#book;
    const now = this.#book.now();
    const shape = cloud.shape(serverId);
    // The decision after a refusal notes the VMs on the host by its snapshot, which may be older than the refusal.
    const staleMs = 2 * rules.intervalMs + RACE_MS;
    for (const one of novaRefusals) {
      if (one.aggregate !== aggregate || one.host !== host || shape === null || cloud.shape(one.server) !== shape)
        continue;
      const ago = now - one.ms;
      if (ago < READ_MS + RACE_MS || ago > REMEMBERED_MS - rules.maxSkewMs) continue;
      if ((this.#changedMs.get(host) ?? now) > one.ms - staleMs) continue;
      // A server that leaves the aggregate before the next decision takes the shape of the refusal with it.
      if (!cloud.hostsOf(aggregate).includes(cloud.host(one.server) ?? '')) continue;
      this.#book.breach(
        'refused-again',
        `${id} goes to ${host}, which Nova refused for ${one.server} (${shape}) ${ago / 1000} s before`,
      );
    }
  }

  /** Where the NUMA cells are known, no request asks for what they do not take. */
  #cells({ id, serverId }: Task, host: string): void {
    if (!this.#book.rules.cellsKnown || this.#book.cloud.cellsFit(serverId, host)) return;
    if (this.#changes(host, this.#book.now() - READ_MS - LOOK_MS)) return;
    this.#book.breach('topology', `${id} goes to ${host}, whose NUMA cells do not take ${serverId}`);
  }

  /** Nova refused an attempt because of the NUMA cells of its destination. */
  cellsRefused({ id }: Task, { destination, startedMs }: Attempt): void {
    if (!this.#book.rules.cellsKnown || this.#changes(destination, startedMs - READ_MS - LOOK_MS)) return;
    this.#book.breach('topology', `Nova refused ${destination} for ${id} because of its NUMA cells, which are known`);
  }

  /** Whether servers came to a host or left it since a time, or others than Kronos move one there. */
  #changes(host: string, sinceMs: number): boolean {
    if ((this.#changedMs.get(host) ?? sinceMs) >= sinceMs) return true;
    return this.#book.cloud.running().some(({ dest, byKronos }) => dest === host && !byKronos);
  }

  #cloudCaps({ aggregate }: Task): void {
    const mine = new Set<string>();
    for (const task of this.#book.tasks.values()) if (task.aggregate === aggregate) mine.add(task.serverId);
    const running = this.#book.cloud.running().filter((one) => one.byKronos && mine.has(one.server));
    const most = (what: string, count: number, cap: number): void => {
      if (count > cap) this.#book.breach('caps', `${count} migrations run ${what}, and ${cap} may`);
    };
    const { maxConcurrentMigrations, maxOutboundPerHost, maxInboundPerHost } = this.#book.rules;
    most(`in ${aggregate}`, running.length, maxConcurrentMigrations);
    for (const host of new Set(running.flatMap(({ source, dest }) => [source, dest ?? source]))) {
      most(`from ${host}`, running.filter(({ source }) => source === host).length, maxOutboundPerHost);
      most(`to ${host}`, running.filter(({ dest }) => dest === host).length, maxInboundPerHost);
    }
  }

  #seeHosts(hosts: Iterable<string>, now: number): void {
    const { cloud } = this.#book;
    const note = (since: Map<string, number>, host: string, holds: boolean): void => {
      if (!holds) since.delete(host);
      else if (!since.has(host)) since.set(host, now);
    };
    for (const host of hosts) {
      note(this.#sharedSince, host, cloud.aggregatesWith(host).length > 1);
      note(this.#unreachableSince, host, !cloud.reachable(host));
      if (cloud.disabled(host) !== this.#disabled.has(host)) {
        if (!this.#disabled.delete(host)) this.#disabled.add(host);
        this.#changedMs.set(host, now);
      }
      const version = cloud.hypervisorVersion(host);
      const known = this.#versions.get(host);
      if (known?.version !== version) {
        this.#versions.set(host, { version, since: now });
        // Nova may take there now what it refused before.
        this.#changedMs.set(host, now);
      }
      const [since, other] = cloud.open(host)
        ? [this.#openSince, this.#closedSince]
        : [this.#closedSince, this.#openSince];
      other.delete(host);
      if (!since.has(host)) since.set(host, now);
      if (!this.#changedMs.has(host)) this.#changedMs.set(host, now);
    }
  }

  /** Looks at the cloud: since when servers are where they are, and hosts closed. Called every few simulated seconds. */
  look(servers: Iterable<{ readonly uuid: string; readonly host: string }>, hosts: Iterable<string>): void {
    const now = this.#book.now();
    const look = ++this.#looks;
    let seen = 0;
    for (const { uuid, host } of servers) {
      const place = this.#places.get(uuid);
      if (place === undefined) {
        this.#places.set(uuid, { host, since: now, look });
        this.#changedMs.set(host, now);
      } else {
        if (place.host !== host) {
          this.#changedMs.set(place.host, now).set(host, now);
          place.host = host;
          place.since = now;
        }
        place.look = look;
      }
      seen++;
    }
    if (this.#places.size > seen)
      for (const [id, place] of this.#places)
        if (place.look !== look) {
          this.#places.delete(id);
          this.#changedMs.set(place.host, now);
        }
    this.#seeHosts(hosts, now);
    if (this.#book.doubtfulSinceMs !== null) return;
    for (const one of this.#book.cloud.running()) {
      if (!one.byKronos || now - one.createdMs < RACE_MS || this.#book.cloud.host(one.server) === null) continue;
      const tasks = this.#book.byServer.get(one.server) ?? [];
      if (!tasks.some((task) => [...task.attempts.values()].some((attempt) => !attempt.ended)))
        this.#book.breach('early', `Nova runs migration ${one.id} of ${one.server}, and no attempt is open`);
    }
  }
}
