/**
 * Watches what must always hold, on the log and in the cloud's own record. It has its own parser and its own fold, and
 * shares no code with the services: a mistake there cannot hide here.
 */
import type { StoredMessage } from '@kronos/eventlog/simulated';
import type { Rule } from './rules.ts';
import type { Openings } from './windows.ts';

export interface Breach {
  readonly rule: Rule;
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
  readonly settleMs: number;
  /** Null: plans are released without a person. */
  readonly approvalTtlMs: number | null;
  readonly postWindowMs: number;
  readonly planTtlMs: number;
  /** How long the server waits for an answer to a delivery. */
  readonly ackWaitMs: number;
  /** How often the ledger stores a checkpoint. */
  readonly checkpointMs: number;
  /** Clocks of services may be wrong by as much. */
  readonly maxSkewMs: number;
  /** When moves may start; null: at any time. */
  readonly openings: Openings | null;
}

/** The cloud's own record, as far as rules are judged by it. */
export interface CloudRecord {
  host(server: string): string | null;
  /** Of the server's group: policy and the other members that are on a host, or on their way to it. */
  companions(server: string, host: string): { readonly policy: string; readonly members: readonly string[] } | null;
  /** Whether new servers may come: up, enabled, not forced down. */
  open(host: string): boolean;
  /** Nova's `task_state` of a server. */
  taskState(server: string): string | null;
  /** Since when a host has no usable series, ms since the epoch; null: it has them. */
  unmeasuredSince(host: string): number | null;
  hostsOf(aggregate: string): readonly string[];
  migrations(): readonly CloudMigration[];
  /** Those that are not over. */
  running(): readonly CloudMigration[];
}

export interface CloudMigration {
  readonly id: number;
  readonly server: string;
  readonly source: string;
  readonly dest: string | null;
  readonly status: string;
  readonly createdMs: number;
  readonly byKronos: boolean;
}

interface Call {
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
/** A task message that a consumer delivered and that no answer has settled. */
interface Delivery {
  readonly sequence: number;
  /** From then on the server may deliver it to another. */
  deadlineMs: number;
}
/** A message on the work queue. */
interface TaskMessage {
  readonly taskId: string;
  readonly attempt: number;
}
interface Task {
  readonly id: string;
  readonly planId: string;
  readonly aggregate: string;
  readonly serverId: string;
  readonly phase: string;
  /** Since when it is to be done: its plan's release, or its first message. */
  readonly sinceMs: number;
  readonly releasedSequence: number;
  readonly attempts: Map<number, Attempt>;
  requested: boolean;
  /** Attempts that are on the work queue, or were. */
  readonly queued: Set<number>;
  /** The attempt that the last failure announced. */
  announced: number | null;
  readonly dependsOn: readonly string[];
  completed: boolean;
  finalSequence: number | null;
  finalMs: number;
  cancelledMs: number | null;
  /** An operator closed it: its result may say so. */
  closed: boolean;
}
interface Step {
  readonly taskId: string;
  readonly serverId: string;
  readonly phase: string;
  readonly dependsOn: readonly string[];
}
interface Plan {
  readonly id: string;
  readonly aggregate: string;
  readonly steps: readonly Step[];
  readonly sequence: number;
  readonly storedMs: number;
  releasedMs: number | null;
  /** When it was approved in time. */
  approvedMs: number | null;
  dispatched: boolean;
}
interface Aggregate {
  readonly name: string;
  readonly decided: Map<string, number>;
  lastDecidedSnapshotMs: number;
  /** Sequence and time of the pause in force, of this aggregate. */
  paused: { readonly sequence: number; readonly ms: number } | null;
  releases: { readonly sequence: number; readonly ms: number }[];
  /** The newest ends of moves: sequence, and time by the event. */
  moveEnds: { readonly sequence: number; readonly ms: number }[];
  /** When the ledger last stored its state. */
  checkpointMs: number;
  /** What planners wrote of their options, in the order of the log. */
  readonly configurations: Configuration[];
  /** Events that no reader understands and that are not skipped. */
  unreadable: readonly { readonly sequence: number; readonly ms: number }[];
}
interface Configuration {
  readonly sequence: number;
  readonly instance: string;
  /** The log's end when that planner started. */
  readonly startedAfter: number;
}
interface Snapshot {
  readonly ms: number;
  readonly logEnd: number;
  readonly timeMs: number;
  readonly observedFromMs: number;
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
  'alarm.raised': ['alarms', ['ledger']],
  'alarm.resolved': ['alarms', ['ledger']],
  'service.reported': ['services', ['scorer', 'planner', 'executor', 'ledger']],
  'installation.created': ['controls', ['provisioner']],
  'event.skipped': ['custody', ['custodian']],
};
/** Families whose subjects are of KRONOS_LOG. */
const LOGGED = new Set(['plans', 'results', 'controls', 'custody']);
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
/** Events that no service may write while the log contradicts a former one. */
const ACTING = new Set(['planner.configured', 'cycle.decided', 'migration.started']);
const QUARANTINING = new Set(['PreFlightError', 'MigrationFailed', 'MigrationTimeout']);
const RUNNING = new Set(['accepted', 'queued', 'preparing', 'running', 'post-migrating', 'pre-migrating', 'migrating']);
const UNSUCCESSFUL = new Set(['error', 'abandoned']);
/** What is only true in passing is no breach: between a look and an act the world may change for as long. */
const RACE_MS = 15_000;
const MINUTE_MS = 60_000;
/** What a service sent or a process held when the log was lost may take as long to arrive. */
const FAREWELL_MS = 300_000;
/** A move is requested on what was read of its server and its hosts this long before at most: 60 s for slow reads, 10 s to its start, 10 s to the request. */
const READ_MS = 80_000;
/** How often the checker looks at the cloud, and some more. */
const LOOK_MS = 15_000;

/** By a clock that is wrong nothing is decided or started. An event may be made long before it can be stored. */
const FAST_MS = 30_000;
const SLOW_MS = 1_000_000;

/** An event's time counts up to this far from the server's stamp. */
const MAX_TIME_DIFFERENCE_MS = 60_000;

/** An event's own time, bounded by the server's stamp: a writer's clock may be hours wrong. */
const boundedMs = (time: string, stampMs: number): number =>
  Math.min(Math.max(Date.parse(time), stampMs - MAX_TIME_DIFFERENCE_MS), stampMs + MAX_TIME_DIFFERENCE_MS);

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
  /** By the digests of their bodies: two scorers may take snapshots with one id. */
  readonly #snapshots = new Map<string, Snapshot>();
  readonly #quarantines = new Map<string, Quarantine>();
  readonly #lastOfSubject = new Map<string, number>();
  readonly #places = new Map<string, { host: string; since: number; look: number }>();
  #looks = 0;
  readonly #closedSince = new Map<string, number>();
  readonly #openSince = new Map<string, number>();
  /** When the server's own page was last read, by server. */
  readonly #readMs = new Map<string, number>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #messages = new Map<number, TaskMessage>();
  readonly #optionsOf = new Map<string, string>();
  #logEnd = 0;
  /** The log was lost then, and nobody has stated which log is in its place. */
  #doubtfulSinceMs: number | null = null;
  /** When a person stated last that the log is to be used as it is, ms since the epoch. */
  statedMs = 0;
  /** Of the logs that are lost. */
  readonly #formerPlans = new Set<string>();
  readonly #formerTasks = new Map<string, Task>();

  constructor(rules: Rules, cloud: CloudRecord, now: () => number, onBreach: (breach: Breach) => void) {
    this.#rules = rules;
    this.#cloud = cloud;
    this.#now = now;
    this.#onBreach = onBreach;
  }

  breach(rule: Rule, text: string): void {
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
      known = {
        name,
        decided: new Map(),
        lastDecidedSnapshotMs: 0,
        paused: null,
        releases: [],
        moveEnds: [],
        checkpointMs: 0,
        configurations: [],
        unreadable: [],
      };
      this.#aggregates.set(name, known);
    }
    return known;
  }

  /** A process starts, with options that have this name. */
  configured(instance: string, options: string): void {
    this.#optionsOf.set(instance, options);
  }

  // ---------------------------------------------------------------- the log

  /** Streams are lost, KRONOS_LOG among them: what is there from now on is another log. */
  wiped(streams: readonly string[]): void {
    this.#count('wiped');
    this.#doubtfulSinceMs = this.#now();
    for (const id of this.#plans.keys()) this.#formerPlans.add(id);
    for (const task of this.#tasks.values()) this.#formerTasks.set(task.id, task);
    this.#plans.clear();
    this.#tasks.clear();
    this.#byServer.clear();
    this.#aggregates.clear();
    this.#quarantines.clear();
    this.#logEnd = 0;
    for (const subject of [...this.#lastOfSubject.keys()])
      if (LOGGED.has(subject.split('.')[1] ?? '')) this.#lastOfSubject.delete(subject);
    for (const [id, snapshot] of this.#snapshots) this.#snapshots.set(id, { ...snapshot, logEnd: 0 });
    if (!streams.includes('KRONOS_MIGRATIONS')) return;
    this.#deliveries.clear();
    this.#messages.clear();
  }

  /** A message that must have no effect. */
  forged(stream: string, { subject, sequence }: StoredMessage): void {
    if (stream === 'KRONOS_LOG') this.#logEnd = sequence;
    this.#lastOfSubject.set(subject, sequence);
    this.#count('forged');
  }

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
      // subject: kronos.<family>.<aggregate>
      if (onLog) {
        const aggregate = this.#aggregate(message.subject.split('.')[2] ?? '');
        aggregate.unreadable = [...aggregate.unreadable, { sequence: message.sequence, ms: message.storedAt }];
      }
      return;
    }
    this.#count(body.type);
    this.#authority(message, body);
    if (this.#doubtfulSinceMs !== null && ACTING.has(body.type))
      this.breach('identity', `${body.id} (${message.sequence}) was stored on a log that nobody has stated`);
    if (onLog && EXPECTING.has(body.type)) {
      const expected = message.headers?.get('Nats-Expected-Last-Subject-Sequence') ?? '';
      if (expected === '')
        this.breach('expectation', `${body.id} (${message.sequence}) was stored without expectation`);
      else if (Number(expected) !== before)
        this.breach('expectation', `${body.id} expected ${expected}, but was stored after ${before}`);
      else if (body.type === 'cycle.decided' && Number(expected) > body.data.basis)
        this.breach('expectation', `${body.id} expected ${expected}, which its basis ${body.data.basis} does not have`);
    }
    if (body.type === 'cycle.decided' || body.type === 'migration.started') {
      const aheadMs = Date.parse(body.time) - message.storedAt;
      if (aheadMs > FAST_MS || aheadMs < -SLOW_MS)
        this.breach('clock', `${body.id} has a time that is ${aheadMs / 1000} s ahead of the server's`);
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
        this.#snapshots.set(data.body.digest, {
          ms,
          logEnd: this.#logEnd,
          timeMs: Date.parse(body.time),
          observedFromMs: Date.parse(data.observedFrom),
        });
        break;
      case 'planner.configured':
        this.#configuredBy(sequence, body);
        break;
      case 'cycle.decided':
        this.#inForce(body);
        this.#decided(sequence, ms, body);
        break;
      case 'plan.approved': {
        const plan = this.#plans.get(data.planId);
        if (plan !== undefined && plan.releasedMs === null) this.#approved(plan, ms);
        break;
      }
      case 'plan.dispatched': {
        const plan = this.#plans.get(data.planId);
        if (plan === undefined && this.#formerPlans.has(data.planId)) break;
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
        const plan = this.#plans.get(data.planId);
        if (plan !== undefined && plan.releasedMs === null && plan.approvedMs === null)
          this.breach('approval', `${data.taskId} was dispatched, and its plan was not approved in time`);
        // A task of a lost log: no executor may start it.
        if (plan === undefined && this.#formerPlans.has(data.planId)) break;
        const task = this.#task(data, body.aggregate, sequence, ms);
        task.requested = true;
        task.queued.add(data.attempt);
        this.#messages.set(sequence, { taskId: data.taskId, attempt: data.attempt });
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
      case 'migration.cancelled':
      case 'migration.aborted': {
        const task = this.#tasks.get(data.taskId);
        if (task !== undefined) task.cancelledMs ??= ms;
        break;
      }
      case 'migration.closed': {
        const task = this.#tasks.get(data.taskId);
        if (task !== undefined) task.closed = true;
        break;
      }
      case 'event.skipped':
        this.#forEach(body.aggregate, (aggregate) => {
          aggregate.unreadable = aggregate.unreadable.filter(
            (one) => one.sequence < data.sequence || one.sequence > data.through,
          );
        });
        break;
      case 'installation.created':
        if (data.statement !== 'newLog') break;
        this.#doubtfulSinceMs = null;
        this.statedMs = ms;
        break;
      case 'state.checkpointed':
        this.#aggregate(body.aggregate).checkpointMs = ms;
        break;
    }
  }

  #forEach(name: string, act: (aggregate: Aggregate) => void): void {
    if (name === '_all_') for (const aggregate of this.#aggregates.values()) act(aggregate);
    else act(this.#aggregate(name));
  }

  #task(
    step: {
      readonly taskId: string;
      readonly serverId: string;
      readonly planId: string;
      readonly phase: string;
      readonly dependsOn?: string[];
    },
    aggregate: string,
    sequence: number,
    ms: number,
  ): Task {
    const { taskId: id, planId, serverId, phase } = step;
    let task = this.#tasks.get(id);
    if (task === undefined) {
      task = {
        id,
        planId,
        aggregate,
        serverId,
        phase,
        sinceMs: ms,
        releasedSequence: sequence,
        attempts: new Map(),
        requested: false,
        queued: new Set(),
        announced: null,
        dependsOn: step.dependsOn ?? [],
        completed: false,
        finalSequence: null,
        finalMs: 0,
        cancelledMs: null,
        closed: false,
      };
      this.#tasks.set(id, task);
      const others = this.#byServer.get(serverId);
      if (others === undefined) this.#byServer.set(serverId, [task]);
      else others.push(task);
    }
    return task;
  }

  /** Of planners with different options, the one that started last plans. */
  #configuredBy(sequence: number, { aggregate: name, by, data }: Body): void {
    const { configurations } = this.#aggregate(name);
    const before = configurations.at(-1);
    const { startedAfter } = data;
    if (before !== undefined && this.#differ(before.instance, by.instance) && startedAfter < before.startedAfter)
      this.breach(
        'options',
        `${by.instance} set its options (${sequence}); ${before.instance} has others, and started later`,
      );
    configurations.push({ sequence, instance: by.instance, startedAfter });
  }

  /** A decision is made with the options that its basis has. */
  #inForce({ aggregate: name, by, data }: Body): void {
    const found = this.#aggregate(name).configurations.findLast(({ sequence }) => sequence <= data.basis);
    if (found === undefined)
      this.breach('options', `${data.snapshotId} was decided, and no planner had set its options`);
    else if (this.#differ(found.instance, by.instance))
      this.breach('options', `${data.snapshotId} was decided by ${by.instance}, and ${found.instance} has set others`);
  }

  #differ(one: string, other: string): boolean {
    return this.#optionsOf.get(one) !== this.#optionsOf.get(other);
  }

  #decided(sequence: number, ms: number, { aggregate: name, data }: Body): void {
    const { snapshotId, basis, digests } = data;
    const aggregate = this.#aggregate(name);
    const before = aggregate.decided.get(snapshotId);
    if (before !== undefined) this.breach('one-decision', `${snapshotId} was decided at ${before} and ${sequence}`);
    aggregate.decided.set(snapshotId, sequence);
    const snapshot = this.#snapshots.get(digests.snapshot);
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
    if (data.reason?.code === 'outside-window') this.#count('outside-window');
    if (data.plan === null || data.release === 'none' || data.release === 'dryRun') return;
    this.#count('plans');
    const steps = data.plan.steps as Plan['steps'];
    // A plan is released or proposed by the time of its snapshot, to the minute.
    for (const { taskId, serverId, phase } of steps)
      if (this.#closedFor(name, serverId, phase, Date.parse(data.snapshotTime), 0))
        this.breach('window', `${taskId} was planned for release at ${data.snapshotTime}, outside of its window`);
    for (const { dependsOn } of steps) if (dependsOn.length > 0) this.#count('dependent');
    if (snapshot !== undefined) this.#measured(name, snapshotId, snapshot.timeMs, steps);
    const plan: Plan = {
      id: snapshotId,
      aggregate: name,
      steps,
      sequence,
      storedMs: ms,
      releasedMs: null,
      approvedMs: null,
      dispatched: false,
    };
    this.#plans.set(snapshotId, plan);
    this.#mayPlan(plan, aggregate, basis);
    if (snapshot !== undefined) {
      const ended = aggregate.moveEnds.findLast((end) => end.sequence <= basis);
      if (ended !== undefined && snapshot.observedFromMs < ended.ms + this.#rules.settleMs - this.#rules.maxSkewMs)
        this.breach('settle', `${snapshotId} was observed before the end ${ended.sequence} of a move had settled`);
    }
    if (data.release !== 'released') return;
    if (this.#rules.approvalTtlMs !== null) this.breach('approval', `${plan.id} was released, and nobody was asked`);
    this.#release(plan, sequence, ms);
  }

  #approved(plan: Plan, ms: number): void {
    this.#count('approvals');
    const { approvalTtlMs, maxSkewMs } = this.#rules;
    // What a later plan replaced and what a person rejected is for the fold to judge; its tasks show what it released.
    if (approvalTtlMs === null || ms > plan.storedMs + approvalTtlMs + maxSkewMs) return;
    // It waits until its window closes at the latest.
    if (plan.steps.some(({ phase }) => this.#closedFor(plan.aggregate, null, phase, ms, maxSkewMs))) return;
    plan.approvedMs ??= ms;
  }

  /**
   * Whether no move of a server may start at a time, nor shortly before and after it.
   *
   * @param server null: by the windows of the aggregate alone
   */
  #closedFor(aggregate: string, server: string | null, phase: string, atMs: number, leewayMs: number): boolean {
    const { openings } = this.#rules;
    if (openings === null || (phase === 'evacuate' && openings.evacuationIgnoresWindows)) return false;
    return [-leewayMs, 0, leewayMs].every((by) => !openings.open(aggregate, server, atMs + by));
  }

  /** Whether a task's window was closed at any minute since its release. */
  #hasClosed({ aggregate, serverId, phase, sinceMs }: Task, untilMs: number): boolean {
    for (let ms = sinceMs; ms < untilMs + MINUTE_MS; ms += MINUTE_MS)
      if (this.#closedFor(aggregate, serverId, phase, ms, 0)) return true;
    return false;
  }

  #release(plan: Plan, sequence: number, ms: number): void {
    plan.releasedMs = ms;
    this.#aggregate(plan.aggregate).releases.push({ sequence, ms });
    for (const { taskId, serverId, phase, dependsOn } of plan.steps)
      this.#task({ taskId, serverId, phase, planId: plan.id, dependsOn: [...dependsOn] }, plan.aggregate, sequence, ms);
  }

  /** Nothing is balanced on metrics that lack a host. */
  #measured(name: string, id: string, timeMs: number, steps: readonly Step[]): void {
    if (!steps.some(({ phase }) => phase === 'spread' || phase === 'pack')) return;
    const beforeMs = timeMs - this.#rules.intervalMs - 30_000;
    for (const host of this.#cloud.hostsOf(name)) {
      const since = this.#cloud.unmeasuredSince(host);
      const open = this.#openSince.get(host);
      if (since !== null && since < beforeMs && open !== undefined && open < beforeMs)
        this.breach('blind', `${id} balances, and ${host} has no metrics since ${(timeMs - since) / 1000} s`);
    }
  }

  /** What forbids a plan, by the log up to its basis. */
  #mayPlan(plan: Plan, aggregate: Aggregate, basis: number): void {
    const { cooldownMs, instanceCooldownMs, maxSkewMs } = this.#rules;
    const ms = plan.storedMs;
    if (aggregate.paused !== null && aggregate.paused.sequence <= basis)
      this.breach('paused', `${plan.id} was planned while ${aggregate.name} was paused (${aggregate.paused.sequence})`);
    if (aggregate.paused !== null && ms - aggregate.paused.ms > RACE_MS)
      this.breach('paused', `${plan.id} was decided ${(ms - aggregate.paused.ms) / 1000} s after a pause`);
    this.#understood(plan.id, aggregate, (one) => one.sequence <= basis);
    const last = aggregate.releases.findLast((release) => release.sequence <= basis);
    if (last !== undefined && ms - last.ms < cooldownMs - maxSkewMs)
      this.breach('cooldown', `${plan.id} comes ${(ms - last.ms) / 1000} s after the last release`);
    for (const { serverId } of plan.steps) {
      for (const task of this.#byServer.get(serverId) ?? []) {
        if (task.planId === plan.id || task.releasedSequence > basis) continue;
        if (task.finalSequence === null || task.finalSequence > basis)
          this.breach('twice', `${plan.id} moves ${serverId}, which ${task.id} still moves`);
        const ago = ms - this.#releasedMs(task);
        if (ago < instanceCooldownMs - maxSkewMs)
          this.breach('instance-cooldown', `${plan.id} moves ${serverId}, released ${ago / 1000} s before`);
      }
      const quarantine = this.#quarantines.get(serverId);
      if (quarantine !== undefined && quarantine.sequence <= basis && ms < quarantine.untilMs - maxSkewMs)
        this.breach('quarantine', `${plan.id} moves ${serverId}, which is in quarantine (${quarantine.sequence})`);
    }
  }

  /** Nothing is planned or started by a log that is not understood. */
  #understood(
    what: string,
    { unreadable }: Aggregate,
    counts: (one: { sequence: number; ms: number }) => boolean,
  ): void {
    const one = unreadable.find(counts);
    if (one !== undefined) this.breach('unreadable', `${what} in spite of the unreadable event ${one.sequence}`);
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
    this.#understood(task.id, aggregate, (one) => ms - one.ms > RACE_MS);
    if (aggregate.paused !== null && ms - aggregate.paused.ms > RACE_MS)
      this.breach('paused', `${task.id} was started ${(ms - aggregate.paused.ms) / 1000} s after a pause`);
    for (const id of task.dependsOn)
      if (this.#tasks.get(id)?.completed !== true)
        this.breach('order', `${task.id} was started before ${id} was completed`);
    if (task.cancelledMs !== null && ms - task.cancelledMs > RACE_MS)
      this.breach('cancelled', `${task.id} was started ${(ms - task.cancelledMs) / 1000} s after it was cancelled`);
    const quarantine = this.#quarantines.get(task.serverId);
    if (quarantine !== undefined && ms - quarantine.ms > RACE_MS && ms < quarantine.untilMs - this.#rules.maxSkewMs)
      this.breach('quarantine', `${task.id} was started while ${task.serverId} was in quarantine`);
    if (this.#closedFor(name, task.serverId, task.phase, ms, RACE_MS))
      this.breach('window', `${task.id} attempt ${data.attempt} was started outside of its window`);
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

  #ended(sequence: number, ms: number, { type, time, by, data }: Body): void {
    // The result of a message on the work queue that is no task.
    if (data.errorType === 'DeadLetter' && data.taskId.startsWith('unreadable-')) return;
    const task = this.#tasks.get(data.taskId);
    // Its message is left from a log that is lost.
    if (task === undefined && type === 'migration.skipped' && this.#formerTasks.has(data.taskId)) return;
    if (task === undefined) {
      this.breach('unasked', `${data.taskId} ended (${sequence}) and was never released`);
      return;
    }
    if (task.finalSequence !== null)
      this.breach('final', `${task.id} has two results, ${task.finalSequence} and ${sequence}`);
    if (type === 'migration.failed' && data.reason?.code === 'closed' && !task.closed)
      this.breach('closed', `${task.id} ended as closed (${sequence}), and no operator closed it`);
    if (data.reason?.code === 'window-closed') {
      this.#count('window-closed');
      if (data.errorType !== 'Cancelled')
        this.breach('window', `${task.id} ended as ${data.errorType} (${sequence}) because its window closed`);
      if (!this.#hasClosed(task, ms))
        this.breach('window', `${task.id} ended (${sequence}) because its window closed, which it did not`);
    }
    if (data.reason?.code === 'expired') this.#expired(task, sequence, ms, by.service);
    const attempt = task.attempts.get(data.attempt);
    if (attempt?.ended === true) this.breach('final', `${task.id} attempt ${data.attempt} ended twice (${sequence})`);
    if (attempt !== undefined) attempt.ended = true;
    if (attempt !== undefined) {
      if (this.#undone(task.serverId, attempt))
        this.breach('early', `${task.id} attempt ${data.attempt} ended while Nova still has to begin it`);
      const alive = this.#running(task.serverId, attempt);
      if (alive !== null)
        this.breach('early', `${task.id} attempt ${data.attempt} ended while its migration ${alive} runs`);
    }
    if (type === 'migration.completed' && data.outcome === 'migrated') {
      const there = this.#cloud.host(task.serverId) === data.host;
      const reached = this.#cloud.migrations().some(
        (one) =>
          one.server === task.serverId &&
          one.dest === data.host &&
          // A compute died: Nova names the host and calls the migration no success, which the result must say.
          (one.status === 'completed' || (there && UNSUCCESSFUL.has(one.status) && data.warnings.length > 0)),
      );
      if (!reached) this.breach('untrue', `${task.id} is said to have reached ${data.host}, which no migration did`);
    }
    if (type === 'migration.failed' && data.retryPending === true) {
      task.announced = data.next?.attempt ?? null;
      return;
    }
    if (type === 'migration.completed' || attempt !== undefined)
      this.#aggregate(task.aggregate).moveEnds.push({ sequence, ms: boundedMs(time, ms) });
    task.completed = type === 'migration.completed';
    task.finalSequence = sequence;
    task.finalMs = ms;
    this.#count('finals');
    if (type === 'migration.failed' && QUARANTINING.has(data.errorType) && this.#rules.quarantineMs > 0) {
      // The writer's clock counts as far as the server's bears it out.
      const fromMs = Math.min(boundedMs(time, ms), ms);
      this.#quarantines.set(task.serverId, { sequence, ms, untilMs: fromMs + this.#rules.quarantineMs });
    }
  }

  /** When the task's plan was released or approved: its message may come to the work queue minutes later. */
  #releasedMs({ planId, sinceMs }: Task): number {
    const plan = this.#plans.get(planId);
    return plan?.releasedMs ?? plan?.approvedMs ?? sinceMs;
  }

  /** A task expires when its plan's time to live is over; a planner says so one more time to live later. */
  #expired(task: Task, sequence: number, ms: number, service: string): void {
    const sinceMs = this.#releasedMs(task);
    const leastMs = this.#rules.planTtlMs * (service === 'planner' ? 2 : 1) - MAX_TIME_DIFFERENCE_MS;
    if (ms - sinceMs < leastMs)
      this.breach(
        'expired',
        `the ${service} let ${task.id} expire (${sequence}) ${(ms - sinceMs) / 1000} s after its release`,
      );
  }

  /** Whether Nova has taken the request and has no migration for it yet. */
  #undone(server: string, attempt: Attempt): boolean {
    if (attempt.posts === 0 || this.#cloud.taskState(server) !== 'migrating') return false;
    return !this.#cloud.migrations().some((one) => one.server === server && one.createdMs >= attempt.startedMs - 1000);
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

  /** A call that the cloud received, after it was answered or cut. `former`: the move of a log that is lost. */
  called(call: Call): 'former' | null {
    const doubtfulMs = this.#doubtfulSinceMs === null ? 0 : call.atMs - this.#doubtfulSinceMs;
    if (call.method === 'DELETE' && doubtfulMs > FAREWELL_MS)
      this.breach('identity', `${call.path} was deleted ${doubtfulMs / 1000} s after the log was lost`);
    const match = /^\/v2\.1\/servers\/([^/]+)\/action/.exec(call.path);
    const move = (call.body as { 'os-migrateLive'?: { host?: string | null } } | null)?.['os-migrateLive'];
    if (match === null || move === undefined) return null;
    // With 401 Nova has done nothing: the same request may come again with a new token.
    if (call.status === 401) return null;
    this.#count('posts');
    const server = match[1] ?? '';
    const open = (this.#byServer.get(server) ?? []).flatMap((task) =>
      [...task.attempts.values()].filter((attempt) => !attempt.ended).map((attempt) => ({ task, attempt })),
    );
    const [mine] = open.filter(({ attempt }) => attempt.destination === move.host);
    if (mine === undefined) {
      if (this.#byFormer(server, move.host ?? null, call.leftMs)) return 'former';
      this.breach('unasked', `a move of ${server} to ${move.host} was requested, and no attempt is started`);
      return null;
    }
    const { task, attempt } = mine;
    attempt.posts++;
    if (attempt.posts > 1) this.breach('post-twice', `${task.id} attempt ${attempt.attempt}`);
    const lateMs = call.leftMs - attempt.startedMs;
    if (lateMs > this.#rules.postWindowMs + 1000)
      this.breach('post-late', `${task.id}: ${lateMs / 1000} s after its start`);
    const lookMs = call.leftMs - (this.#readMs.get(server) ?? 0);
    if (lookMs > READ_MS) this.breach('unchecked', `${task.id}: its server was last read ${lookMs / 1000} s before`);
    this.#destination(task, attempt.destination);
    this.#cloudCaps(task);
    return null;
  }

  /** Whether a request is the one of an attempt that was started by a log that is lost, while its window was open. */
  #byFormer(server: string, host: string | null, leftMs: number): boolean {
    for (const task of this.#formerTasks.values()) {
      if (task.serverId !== server || task.finalSequence !== null) continue;
      for (const attempt of task.attempts.values()) {
        if (attempt.ended || attempt.destination !== host) continue;
        if (leftMs - attempt.startedMs > this.#rules.postWindowMs + 1000) continue;
        attempt.posts++;
        if (attempt.posts > 1) this.breach('post-twice', `${task.id} attempt ${attempt.attempt}`);
        return true;
      }
    }
    return false;
  }

  /** A read of the cloud by a service. */
  read(path: string): void {
    const server = /^\/v2\.1\/servers\/([0-9a-f-]{36})$/.exec(path)?.[1];
    if (server !== undefined) this.#readMs.set(server, this.#now());
  }

  #destination(task: Task, host: string): void {
    const now = this.#now();
    const closed = this.#closedSince.get(host);
    // It may have been opened since the last look.
    if (closed !== undefined && !this.#cloud.open(host) && now - closed > READ_MS + LOOK_MS)
      this.breach('closed-host', `${task.id} goes to ${host}, which takes no servers since ${(now - closed) / 1000} s`);
    const companions = this.#cloud.companions(task.serverId, host);
    if (companions === null || !companions.policy.includes('anti-affinity')) return;
    for (const member of companions.members) {
      const place = this.#places.get(member);
      const since = place?.host === host ? place.since : now;
      if (now - since > READ_MS + LOOK_MS)
        this.breach(
          'group',
          `${task.id} goes to ${host}, where ${member} of its group is since ${(now - since) / 1000} s`,
        );
    }
  }

  #cloudCaps({ aggregate }: Task): void {
    const mine = new Set<string>();
    for (const task of this.#tasks.values()) if (task.aggregate === aggregate) mine.add(task.serverId);
    const running = this.#cloud.running().filter((one) => one.byKronos && mine.has(one.server));
    const most = (what: string, count: number, cap: number): void => {
      if (count > cap) this.breach('caps', `${count} migrations run ${what}, and ${cap} may`);
    };
    const { maxConcurrentMigrations, maxOutboundPerHost, maxInboundPerHost } = this.#rules;
    most(`in ${aggregate}`, running.length, maxConcurrentMigrations);
    for (const host of new Set(running.flatMap(({ source, dest }) => [source, dest ?? source]))) {
      most(`from ${host}`, running.filter(({ source }) => source === host).length, maxOutboundPerHost);
      most(`to ${host}`, running.filter(({ dest }) => dest === host).length, maxInboundPerHost);
    }
  }

  // ---------------------------------------------------------------- the work queue

  /** A consumer delivered a message. */
  delivered(reply: string): void {
    const [, , stream, , , sequence] = reply.split('.');
    if (stream !== 'KRONOS_MIGRATIONS') return;
    this.#deliveries.set(reply, { sequence: Number(sequence), deadlineMs: this.#now() + this.#rules.ackWaitMs });
  }

  /** A process sends an answer to a delivery: no longer after the server may have delivered the message to another. */
  answering(process: string, reply: string): void {
    const delivery = this.#deliveries.get(reply);
    if (delivery === undefined) return;
    const lateMs = this.#now() - delivery.deadlineMs;
    if (lateMs > 1)
      this.breach(
        'lost-delivery',
        `${process} answers message ${delivery.sequence} ${lateMs / 1000} s after its ack wait`,
      );
  }

  /** The server takes an answer to a delivery. A task leaves the queue when the log has the end of its attempt. */
  answered(reply: string, answer: string): void {
    const delivery = this.#deliveries.get(reply);
    if (delivery === undefined) return;
    if (answer === '+WPI') {
      delivery.deadlineMs = this.#now() + this.#rules.ackWaitMs;
      return;
    }
    this.#deliveries.delete(reply);
    if (answer !== '+ACK' && answer !== '+TERM') return;
    const { taskId, attempt } = this.#messages.get(delivery.sequence) ?? { taskId: '', attempt: 0 };
    const task = this.#tasks.get(taskId);
    if (task === undefined || task.finalSequence !== null) return;
    if (task.attempts.get(attempt)?.ended !== true && !(task.announced !== null && attempt < task.announced))
      this.breach('acked-early', `${taskId} attempt ${attempt} left the queue before the log had its end`);
    else if (task.announced !== null && task.announced > attempt && !task.queued.has(task.announced))
      this.breach(
        'acked-early',
        `${taskId} attempt ${attempt} left the queue before attempt ${task.announced} was there`,
      );
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
      const [since, other] = this.#cloud.open(host)
        ? [this.#openSince, this.#closedSince]
        : [this.#closedSince, this.#openSince];
      other.delete(host);
      if (!since.has(host)) since.set(host, now);
    }
    if (this.#doubtfulSinceMs !== null) return;
    for (const one of this.#cloud.running()) {
      if (!one.byKronos || now - one.createdMs < RACE_MS || this.#cloud.host(one.server) === null) continue;
      const tasks = this.#byServer.get(one.server) ?? [];
      if (!tasks.some((task) => [...task.attempts.values()].some((attempt) => !attempt.ended)))
        this.breach('early', `Nova runs migration ${one.id} of ${one.server}, and no attempt is open`);
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
      const stored = this.#now() - this.#aggregate(name).checkpointMs;
      // Without a new event nothing is stored; a decision comes each interval.
      if (stored > 3 * this.#rules.checkpointMs + this.#rules.intervalMs + RACE_MS)
        this.breach('liveness', `no checkpoint of ${name} was stored for ${Math.round(stored / 1000)} s`);
    }
  }
}
