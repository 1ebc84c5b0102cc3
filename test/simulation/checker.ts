/**
 * Watches what must always hold, on the log and in the cloud's own record. It has its own parser and its own fold, and
 * shares no code with the services: a mistake there cannot hide here.
 */
import type { StoredMessage } from '@kronos/eventlog/simulated';

export interface Breach {
  /** Name of the rule. */
  readonly rule: string;
  readonly text: string;
  /** Wall clock of the simulation, ms since the epoch. */
  readonly atMs: number;
}

export interface Rules {
  readonly maxConcurrentMigrations: number;
  readonly maxOutboundPerHost: number;
  readonly maxInboundPerHost: number;
  readonly maxConcurrentPerGroup: number;
  readonly cooldownMs: number;
  readonly instanceCooldownMs: number;
  readonly quarantineMs: number;
  readonly intervalMs: number;
  readonly postWindowMs: number;
  readonly planTtlMs: number;
  /** Clocks of services may be wrong by as much. */
  readonly maxSkewMs: number;
}

/** The cloud's own record, as far as rules are judged by it. */
export interface CloudRecord {
  host(server: string): string | null;
  /** Of the server's group: policy and the other members that are on a host, or on their way to it. */
  companions(server: string, host: string): { readonly policy: string; readonly members: readonly string[] } | null;
  /** Whether new servers may come: up, enabled, not forced down. */
  open(host: string): boolean;
  migrations(): readonly {
    readonly id: number;
    readonly server: string;
    readonly source: string;
    readonly dest: string | null;
    readonly status: string;
    readonly createdMs: number;
    readonly byKronos: boolean;
  }[];
}

interface Call {
  readonly atMs: number;
  readonly path: string;
  readonly body: unknown;
  readonly requestId: string;
  readonly status: number | null;
}

interface Attempt {
  readonly attempt: number;
  readonly startedMs: number;
  readonly startedSequence: number;
  readonly from: string;
  readonly destination: string;
  readonly groups: readonly string[];
  posts: number;
  ended: boolean;
}
interface Task {
  readonly id: string;
  readonly planId: string;
  readonly aggregate: string;
  readonly serverId: string;
  /** Since when it is to be done: its plan's release, or its first message. */
  readonly sinceMs: number;
  readonly releasedSequence: number;
  readonly attempts: Map<number, Attempt>;
  requested: boolean;
  finalSequence: number | null;
  finalMs: number;
  cancelledMs: number | null;
}
interface Plan {
  readonly id: string;
  readonly aggregate: string;
  readonly steps: readonly { readonly taskId: string; readonly serverId: string }[];
  readonly sequence: number;
  readonly storedMs: number;
  releasedMs: number | null;
  dispatched: boolean;
}
interface Aggregate {
  readonly name: string;
  readonly decided: Map<string, number>;
  lastDecidedSnapshotMs: number;
  /** Sequence and time of the pause in force, of this aggregate. */
  paused: { readonly sequence: number; readonly ms: number } | null;
  releases: { readonly sequence: number; readonly ms: number }[];
}
interface Quarantine {
  readonly sequence: number;
  readonly ms: number;
  readonly untilMs: number;
}

type Body = {
  readonly type: string;
  readonly id: string;
  readonly time: string;
  readonly aggregate: string;
  readonly by: { readonly service: string; readonly instance: string };
  // biome-ignore lint/suspicious/noExplicitAny: read as it is stored, without the schemas of the services
  readonly data: any;
};

/** Who may write what, and where. */
const WRITERS: Readonly<Record<string, readonly [family: string, writers: readonly string[]]>> = {
  'snapshot.taken': ['snapshots', ['scorer']],
  'planner.configured': ['plans', ['planner']],
  'cycle.decided': ['plans', ['planner']],
  'plan.dispatched': ['plans', ['planner']],
  'migration.requested': ['migrations', ['planner', 'executor']],
  'migration.started': ['results', ['executor']],
  'migration.observed': ['results', ['executor']],
  'migration.suspected': ['results', ['executor']],
  'migration.abortRequested': ['results', ['executor']],
  'migration.abortRefused': ['results', ['executor']],
  'migration.completed': ['results', ['executor']],
  'migration.failed': ['results', ['executor', 'planner']],
  'migration.skipped': ['results', ['executor']],
  'state.checkpointed': ['ledger', ['ledger']],
  'log.seen': ['ledger', ['ledger']],
  'service.reported': ['services', ['scorer', 'planner', 'executor', 'ledger']],
  'installation.created': ['controls', ['provisioner']],
};
const OPERATOR = ['operator', 'custodian'];
/** Events that may only be stored on the state that they were made on. */
const EXPECTING = new Set([
  'cycle.decided',
  'planner.configured',
  'migration.started',
  'migration.completed',
  'migration.failed',
  'migration.skipped',
]);
const QUARANTINING = new Set(['PreFlightError', 'MigrationFailed', 'MigrationTimeout']);
const RUNNING = new Set(['accepted', 'queued', 'preparing', 'running', 'post-migrating', 'pre-migrating', 'migrating']);
/** What is only true in passing is no breach: between a look and an act the world may change for as long. */
const RACE_MS = 15_000;

const decoder = new TextDecoder();

export class Checker {
  readonly breaches: Breach[] = [];
  readonly counts = new Map<string, number>();
  readonly #rules: Rules;
  readonly #cloud: CloudRecord;
  readonly #now: () => number;
  readonly #onBreach: (breach: Breach) => void;
  readonly #plans = new Map<string, Plan>();
  readonly #tasks = new Map<string, Task>();
  readonly #byServer = new Map<string, Task[]>();
  readonly #aggregates = new Map<string, Aggregate>();
  readonly #snapshots = new Map<string, { readonly ms: number; readonly logEnd: number; readonly timeMs: number }>();
  readonly #quarantines = new Map<string, Quarantine>();
  readonly #lastOfSubject = new Map<string, number>();
  readonly #places = new Map<string, { host: string; since: number; look: number }>();
  #looks = 0;
  readonly #closedSince = new Map<string, number>();
  #logEnd = 0;

  constructor(rules: Rules, cloud: CloudRecord, now: () => number, onBreach: (breach: Breach) => void) {
    this.#rules = rules;
    this.#cloud = cloud;
    this.#now = now;
    this.#onBreach = onBreach;
  }

  breach(rule: string, text: string): void {
    const breach = { rule, text, atMs: this.#now() };
    this.breaches.push(breach);
    this.#onBreach(breach);
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  #aggregate(name: string): Aggregate {
    let known = this.#aggregates.get(name);
    if (known === undefined) {
      known = { name, decided: new Map(), lastDecidedSnapshotMs: 0, paused: null, releases: [] };
      this.#aggregates.set(name, known);
    }
    return known;
  }

  // ---------------------------------------------------------------- the log

  stored(stream: string, message: StoredMessage): void {
    if (!message.subject.startsWith('kronos.')) return;
    const onLog = stream === 'KRONOS_LOG';
    if (onLog) this.#logEnd = message.sequence;
    const before = this.#lastOfSubject.get(message.subject) ?? 0;
    this.#lastOfSubject.set(message.subject, message.sequence);
    let body: Body;
    try {
      body = JSON.parse(decoder.decode(message.data)) as Body;
    } catch {
      this.#count('unreadable');
      return;
    }
    this.#count(body.type);
    this.#authority(message, body);
    if (onLog && EXPECTING.has(body.type)) {
      const expected = message.headers?.get('Nats-Expected-Last-Subject-Sequence') ?? '';
      if (expected === '')
        this.breach('expectation', `${body.id} (${message.sequence}) was stored without expectation`);
      else if (Number(expected) !== before)
        this.breach('expectation', `${body.id} expected ${expected}, but was stored after ${before}`);
    }
    this.#fold(message, body);
  }

  #authority({ subject, sequence }: StoredMessage, { type, by }: Body): void {
    const [, family = ''] = subject.split('.');
    const [wanted, writers] = WRITERS[type] ?? ['controls', OPERATOR];
    if (family !== wanted) this.breach('authority', `${type} on ${subject} (${sequence})`);
    else if (!writers.includes(by.service)) this.breach('authority', `${type} by ${by.service} (${sequence})`);
  }

  #fold(message: StoredMessage, body: Body): void {
    const { sequence, storedAt: ms } = message;
    const { data } = body;
    switch (body.type) {
      case 'snapshot.taken':
        this.#snapshots.set(data.snapshotId, { ms, logEnd: this.#logEnd, timeMs: Date.parse(body.time) });
        break;
      case 'cycle.decided':
        this.#decided(sequence, ms, body);
        break;
      case 'plan.approved': {
        const plan = this.#plans.get(data.planId);
        if (plan !== undefined && plan.releasedMs === null) this.#approved(plan, sequence, ms);
        break;
      }
      case 'plan.dispatched': {
        const plan = this.#plans.get(data.planId);
        if (plan === undefined) this.breach('atomic', `${data.planId} was dispatched and never decided`);
        else {
          plan.dispatched = true;
          const missing = plan.steps.filter((step) => this.#tasks.get(step.taskId)?.requested !== true);
          if (plan.releasedMs !== null && missing.length > 0)
            this.breach('atomic', `${plan.id} was dispatched without ${missing.map((one) => one.taskId).join(', ')}`);
        }
        break;
      }
      case 'migration.requested': {
        const task = this.#task(data.taskId, data.planId, body.aggregate, data.serverId, sequence, ms);
        task.requested = true;
        break;
      }
      case 'migration.started':
        this.#started(sequence, ms, body);
        break;
      case 'migration.completed':
      case 'migration.failed':
      case 'migration.skipped':
        this.#ended(sequence, ms, body);
        break;
      case 'aggregate.paused':
        this.#forEach(body.aggregate, (aggregate) => {
          aggregate.paused ??= { sequence, ms };
        });
        break;
      case 'aggregate.resumed':
        this.#forEach(body.aggregate, (aggregate) => {
          aggregate.paused = null;
        });
        break;
      case 'instance.quarantined': {
        const untilMs = data.seconds < 0 ? Number.POSITIVE_INFINITY : ms + data.seconds * 1000;
        this.#quarantines.set(data.serverId, { sequence, ms, untilMs });
        break;
      }
      case 'instance.unquarantined':
        this.#quarantines.delete(data.serverId);
        break;
      case 'migration.cancelled': {
        const task = this.#tasks.get(data.taskId);
        if (task !== undefined) task.cancelledMs ??= ms;
        break;
      }
    }
  }

  #forEach(name: string, act: (aggregate: Aggregate) => void): void {
    if (name === '_all_') for (const aggregate of this.#aggregates.values()) act(aggregate);
    else act(this.#aggregate(name));
  }

  #task(id: string, planId: string, aggregate: string, serverId: string, sequence: number, ms: number): Task {
    let task = this.#tasks.get(id);
    if (task === undefined) {
      task = {
        id,
        planId,
        aggregate,
        serverId,
        sinceMs: ms,
        releasedSequence: sequence,
        attempts: new Map(),
        requested: false,
        finalSequence: null,
        finalMs: 0,
        cancelledMs: null,
      };
      this.#tasks.set(id, task);
      const others = this.#byServer.get(serverId);
      if (others === undefined) this.#byServer.set(serverId, [task]);
      else others.push(task);
    }
    return task;
  }

  #decided(sequence: number, ms: number, { aggregate: name, data }: Body): void {
    const { snapshotId, basis } = data;
    const aggregate = this.#aggregate(name);
    const before = aggregate.decided.get(snapshotId);
    if (before !== undefined) this.breach('one-decision', `${snapshotId} was decided at ${before} and ${sequence}`);
    aggregate.decided.set(snapshotId, sequence);
    const snapshot = this.#snapshots.get(snapshotId);
    if (snapshot === undefined) this.breach('basis', `${snapshotId} was decided and never taken`);
    else {
      if (basis < snapshot.logEnd)
        this.breach(
          'basis',
          `${snapshotId}: the basis ${basis} is before ${snapshot.logEnd}, the log's end when it was taken`,
        );
      if (ms - snapshot.ms > 2 * this.#rules.intervalMs + RACE_MS)
        this.breach('fresh', `${snapshotId} was decided ${(ms - snapshot.ms) / 1000} s after it was taken`);
      if (snapshot.timeMs < aggregate.lastDecidedSnapshotMs)
        this.breach('fresh', `${snapshotId} is older than a snapshot that was decided before`);
      aggregate.lastDecidedSnapshotMs = snapshot.timeMs;
    }
    if (basis >= sequence)
      this.breach('basis', `${snapshotId}: the basis ${basis} is not before its event ${sequence}`);
    if (data.plan === null || data.release === 'none' || data.release === 'dryRun') return;
    this.#count('plans');
    const steps = data.plan.steps as Plan['steps'];
    const plan: Plan = {
      id: snapshotId,
      aggregate: name,
      steps,
      sequence,
      storedMs: ms,
      releasedMs: null,
      dispatched: false,
    };
    this.#plans.set(snapshotId, plan);
    this.#mayPlan(plan, aggregate, basis);
    if (data.release === 'released') this.#release(plan, sequence, ms);
  }

  #approved(plan: Plan, sequence: number, ms: number): void {
    // Whether the approval counts is for the fold to judge; what it releases is seen by the tasks.
    this.#count('approvals');
    void plan;
    void sequence;
    void ms;
  }

  #release(plan: Plan, sequence: number, ms: number): void {
    plan.releasedMs = ms;
    this.#aggregate(plan.aggregate).releases.push({ sequence, ms });
    for (const step of plan.steps) this.#task(step.taskId, plan.id, plan.aggregate, step.serverId, sequence, ms);
  }

  /** What forbids a plan, by the log up to its basis. */
  #mayPlan(plan: Plan, aggregate: Aggregate, basis: number): void {
    const { cooldownMs, instanceCooldownMs, maxSkewMs } = this.#rules;
    const ms = plan.storedMs;
    if (aggregate.paused !== null && aggregate.paused.sequence <= basis)
      this.breach('paused', `${plan.id} was planned while ${aggregate.name} was paused (${aggregate.paused.sequence})`);
    const last = aggregate.releases.findLast((release) => release.sequence <= basis);
    if (last !== undefined && ms - last.ms < cooldownMs - maxSkewMs)
      this.breach('cooldown', `${plan.id} comes ${(ms - last.ms) / 1000} s after the last release`);
    for (const { serverId } of plan.steps) {
      for (const task of this.#byServer.get(serverId) ?? []) {
        if (task.planId === plan.id || task.releasedSequence > basis) continue;
        if (task.finalSequence === null || task.finalSequence > basis)
          this.breach('twice', `${plan.id} moves ${serverId}, which ${task.id} still moves`);
        if (ms - task.sinceMs < instanceCooldownMs - maxSkewMs)
          this.breach(
            'instance-cooldown',
            `${plan.id} moves ${serverId}, released ${(ms - task.sinceMs) / 1000} s before`,
          );
      }
      const quarantine = this.#quarantines.get(serverId);
      if (quarantine !== undefined && quarantine.sequence <= basis && ms < quarantine.untilMs - maxSkewMs)
        this.breach('quarantine', `${plan.id} moves ${serverId}, which is in quarantine (${quarantine.sequence})`);
    }
  }

  #started(sequence: number, ms: number, { data, aggregate: name }: Body): void {
    const task = this.#tasks.get(data.taskId);
    if (task === undefined) {
      this.breach('unasked', `${data.taskId} was started and never released`);
      return;
    }
    if (task.finalSequence !== null)
      this.breach('final', `${task.id} was started (${sequence}) after its final result (${task.finalSequence})`);
    if (task.attempts.has(data.attempt)) this.breach('started-twice', `${task.id} attempt ${data.attempt}`);
    if (ms - task.sinceMs > this.#rules.planTtlMs + RACE_MS + this.#rules.maxSkewMs)
      this.breach('expired', `${task.id} was started ${(ms - task.sinceMs) / 1000} s after its release`);
    const aggregate = this.#aggregate(name);
    if (aggregate.paused !== null && ms - aggregate.paused.ms > RACE_MS)
      this.breach('paused', `${task.id} was started ${(ms - aggregate.paused.ms) / 1000} s after a pause`);
    if (task.cancelledMs !== null && ms - task.cancelledMs > RACE_MS)
      this.breach('cancelled', `${task.id} was started ${(ms - task.cancelledMs) / 1000} s after it was cancelled`);
    const quarantine = this.#quarantines.get(task.serverId);
    if (quarantine !== undefined && ms - quarantine.ms > RACE_MS && ms < quarantine.untilMs - this.#rules.maxSkewMs)
      this.breach('quarantine', `${task.id} was started while ${task.serverId} was in quarantine`);
    task.attempts.set(data.attempt, {
      attempt: data.attempt,
      startedMs: ms,
      startedSequence: sequence,
      from: data.from,
      destination: data.destination,
      groups: data.groups,
      posts: 0,
      ended: false,
    });
    this.#caps(name, task);
  }

  #caps(aggregate: string, task: Task): void {
    const open: Attempt[] = [];
    for (const each of this.#tasks.values()) {
      if (each.aggregate !== aggregate || each.finalSequence !== null) continue;
      for (const attempt of each.attempts.values()) if (!attempt.ended) open.push(attempt);
    }
    const over = (count: number, cap: number, what: string): void => {
      if (count > cap) this.breach('caps', `${task.id} is number ${count} of at most ${cap} ${what}`);
    };
    const { maxConcurrentMigrations, maxOutboundPerHost, maxInboundPerHost, maxConcurrentPerGroup } = this.#rules;
    over(open.length, maxConcurrentMigrations, `in ${aggregate}`);
    const newest = open.findLast((attempt) => attempt === [...task.attempts.values()].at(-1));
    if (newest === undefined) return;
    over(open.filter((one) => one.from === newest.from).length, maxOutboundPerHost, `from ${newest.from}`);
    const { destination } = newest;
    over(open.filter((one) => one.destination === destination).length, maxInboundPerHost, `to ${destination}`);
    for (const group of newest.groups)
      over(open.filter((one) => one.groups.includes(group)).length, maxConcurrentPerGroup, `of group ${group}`);
  }

  #ended(sequence: number, ms: number, { type, data }: Body): void {
    const task = this.#tasks.get(data.taskId);
    if (task === undefined) {
      this.breach('unasked', `${data.taskId} ended (${sequence}) and was never released`);
      return;
    }
    if (task.finalSequence !== null)
      this.breach('final', `${task.id} has two results, ${task.finalSequence} and ${sequence}`);
    const attempt = task.attempts.get(data.attempt);
    if (attempt?.ended === true) this.breach('final', `${task.id} attempt ${data.attempt} ended twice (${sequence})`);
    if (attempt !== undefined) {
      attempt.ended = true;
      const alive = this.#running(task.serverId, attempt);
      if (alive !== null)
        this.breach('early', `${task.id} attempt ${data.attempt} ended while its migration ${alive} runs`);
    }
    if (type === 'migration.completed' && data.outcome === 'migrated') {
      const reached = this.#cloud
        .migrations()
        .some((one) => one.server === task.serverId && one.dest === data.host && one.status === 'completed');
      if (!reached) this.breach('untrue', `${task.id} is said to have reached ${data.host}, which no migration did`);
    }
    if (type === 'migration.failed' && data.retryPending === true) return;
    task.finalSequence = sequence;
    task.finalMs = ms;
    this.#count('finals');
    if (type === 'migration.failed' && QUARANTINING.has(data.errorType) && this.#rules.quarantineMs > 0)
      this.#quarantines.set(task.serverId, { sequence, ms, untilMs: ms + this.#rules.quarantineMs });
  }

  /** The id of a migration of this attempt that Nova still runs. */
  #running(server: string, attempt: Attempt): number | null {
    const found = this.#cloud
      .migrations()
      .find(
        (one) =>
          one.byKronos &&
          one.server === server &&
          one.createdMs >= attempt.startedMs - 1000 &&
          one.dest === attempt.destination &&
          RUNNING.has(one.status),
      );
    return found?.id ?? null;
  }

  // ---------------------------------------------------------------- the cloud

  /** A call that the cloud received, after it was answered or cut. */
  called(call: Call): void {
    const match = /^\/v2\.1\/servers\/([^/]+)\/action/.exec(call.path);
    const move = (call.body as { 'os-migrateLive'?: { host?: string | null } } | null)?.['os-migrateLive'];
    if (match === null || move === undefined) return;
    // With 401 Nova has done nothing: the same request may come again with a new token.
    if (call.status === 401) return;
    this.#count('posts');
    const server = match[1] ?? '';
    const open = (this.#byServer.get(server) ?? []).flatMap((task) =>
      [...task.attempts.values()].filter((attempt) => !attempt.ended).map((attempt) => ({ task, attempt })),
    );
    const [mine] = open.filter(({ attempt }) => attempt.destination === move.host);
    if (mine === undefined) {
      this.breach('unasked', `a move of ${server} to ${move.host} was requested, and no attempt is started`);
      return;
    }
    const { task, attempt } = mine;
    attempt.posts++;
    if (attempt.posts > 1) this.breach('post-twice', `${task.id} attempt ${attempt.attempt}`);
    const lateMs = call.atMs - attempt.startedMs;
    if (lateMs > this.#rules.postWindowMs + 1000)
      this.breach('post-late', `${task.id}: ${lateMs / 1000} s after its start`);
    this.#destination(task, attempt.destination);
    this.#cloudCaps(task.aggregate);
  }

  #destination(task: Task, host: string): void {
    const now = this.#now();
    const closed = this.#closedSince.get(host);
    if (closed !== undefined && now - closed > 2 * RACE_MS)
      this.breach('closed-host', `${task.id} goes to ${host}, which takes no servers since ${(now - closed) / 1000} s`);
    const companions = this.#cloud.companions(task.serverId, host);
    if (companions === null || !companions.policy.includes('anti-affinity')) return;
    for (const member of companions.members) {
      const place = this.#places.get(member);
      const since = place?.host === host ? place.since : now;
      if (now - since > 2 * RACE_MS)
        this.breach(
          'group',
          `${task.id} goes to ${host}, where ${member} of its group is since ${(now - since) / 1000} s`,
        );
    }
  }

  #cloudCaps(aggregate: string): void {
    const mine = new Set<string>();
    for (const task of this.#tasks.values()) if (task.aggregate === aggregate) mine.add(task.serverId);
    const running = this.#cloud
      .migrations()
      .filter((one) => one.byKronos && mine.has(one.server) && RUNNING.has(one.status)).length;
    if (running > this.#rules.maxConcurrentMigrations)
      this.breach('caps', `${running} migrations run in ${aggregate}, and ${this.#rules.maxConcurrentMigrations} may`);
  }

  /** Looks at the cloud: since when servers are where they are, and hosts closed. Called every few simulated seconds. */
  look(servers: Iterable<{ readonly uuid: string; readonly host: string }>, hosts: Iterable<string>): void {
    const now = this.#now();
    const look = ++this.#looks;
    let seen = 0;
    for (const { uuid, host } of servers) {
      const place = this.#places.get(uuid);
      if (place === undefined) this.#places.set(uuid, { host, since: now, look });
      else {
        if (place.host !== host) {
          place.host = host;
          place.since = now;
        }
        place.look = look;
      }
      seen++;
    }
    if (this.#places.size > seen)
      for (const [id, place] of this.#places) if (place.look !== look) this.#places.delete(id);
    for (const host of hosts) {
      if (this.#cloud.open(host)) this.#closedSince.delete(host);
      else if (!this.#closedSince.has(host)) this.#closedSince.set(host, now);
    }
  }

  // ---------------------------------------------------------------- the end

  /** Tasks that have no final result and were released before a time. */
  unfinished(beforeMs: number): string[] {
    return [...this.#tasks.values()]
      .filter((task) => task.finalSequence === null && task.sinceMs < beforeMs)
      .map((task) => task.id);
  }

  /** Everything that must finish has finished: looked at once the faults have been over for long enough. */
  settled(calmMs: number, aggregates: readonly string[]): void {
    for (const id of this.unfinished(calmMs)) this.breach('liveness', `${id} has no final result`);
    for (const plan of this.#plans.values())
      if (plan.releasedMs !== null && plan.releasedMs < calmMs && !plan.dispatched)
        this.breach('liveness', `${plan.id} was released and never dispatched`);
    for (const name of aggregates) {
      const decided = this.#aggregate(name).lastDecidedSnapshotMs;
      const age = this.#now() - decided;
      if (age > 4 * this.#rules.intervalMs)
        this.breach('liveness', `nothing was decided in ${name} for ${Math.round(age / 1000)} s`);
    }
  }
}
