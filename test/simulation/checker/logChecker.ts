import type { StoredMessage } from '@kronos/eventlog/simulated';
import { PROXY_PASSWORD } from '../simulatedCloud.ts';
import {
  type Aggregate,
  type Attempt,
  type Body,
  type Book,
  lateTasks,
  type Plan,
  type Quarantine,
  RACE_MS,
  type Snapshot,
  type Step,
  type Task,
} from './book.ts';
import type { CloudChecker } from './cloudChecker.ts';
import type { QueueChecker } from './queueChecker.ts';

/** Who may write what, and where. */
const WRITERS: Readonly<Record<string, readonly [family: string, writers: readonly string[]]>> = {
  'snapshot.taken': ['snapshots', ['scorer']],
  'planner.configured': ['plans', ['planner']],
  'cycle.decided': ['plans', ['planner']],
  'plan.dispatched': ['plans', ['planner']],
  'plan.withdrawn': ['plans', ['planner']],
  'migration.requested': ['migrations', ['planner', 'executor']],
  'migration.started': ['results', ['executor']],
  'migration.observed': ['results', ['executor']],
  'migration.suspected': ['results', ['executor']],
  'migration.abortRequested': ['results', ['executor']],
  'migration.abortRefused': ['results', ['executor']],
  'migration.completed': ['results', ['executor']],
  'migration.failed': ['results', ['executor', 'planner']],
  'migration.skipped': ['results', ['executor']],
  'host.claimed': ['results', ['executor']],
  'host.actFailed': ['results', ['executor']],
  'host.disabled': ['results', ['executor']],
  'host.drained': ['results', ['executor']],
  'host.enabled': ['results', ['executor']],
  'host.leftDisabled': ['results', ['executor']],
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
  'plan.withdrawn',
  'planner.configured',
  'migration.started',
  'migration.completed',
  'migration.failed',
  'migration.skipped',
  'host.claimed',
  'host.actFailed',
  'host.disabled',
  'host.drained',
  'host.enabled',
  'host.leftDisabled',
]);
/** Events that no service may write while the log contradicts a former one. */
const ACTING = new Set(['planner.configured', 'cycle.decided', 'migration.started']);
const QUARANTINING = new Set(['PreFlightError', 'MigrationFailed', 'MigrationTimeout']);
const AT_THE_VM = new Set(['server', 'unknown', undefined]);
const RUNNING = new Set(['accepted', 'queued', 'preparing', 'running', 'post-migrating', 'pre-migrating', 'migrating']);
const UNSUCCESSFUL = new Set(['error', 'abandoned']);
/** Statuses of a cold migration whose server is on its destination. */
const COLD = new Set(['post-migrating', 'finished', 'confirming', 'confirmed']);
const MINUTE_MS = 60_000;

/** A service with a wrong clock decides and starts nothing. An event may be made long before it can be stored. */
const FAST_MS = 30_000;
const SLOW_MS = 1_000_000;

/** An event's time counts up to this far from the server's stamp. */
const MAX_TIME_DIFFERENCE_MS = 60_000;

/** An event's own time, bounded by the server's stamp: a writer's clock may be hours wrong. */
const boundedMs = (time: string, stampMs: number): number =>
  Math.min(Math.max(Date.parse(time), stampMs - MAX_TIME_DIFFERENCE_MS), stampMs + MAX_TIME_DIFFERENCE_MS);

const decoder = new TextDecoder();

/** Nova's words when the cells of a host do not take a server. */
const NO_CELLS = /NUMA topology cannot fit/;

/** Reasons of a task that ends because the window of its plan, or that of its VM, is closed. */
const OUTSIDE_WINDOW: ReadonlySet<string | undefined> = new Set(['window-closed', 'vm-outside-window']);

/** A move, as windows know it. */
interface Moved {
  readonly aggregate: string;
  readonly serverId: string | null;
  readonly phase: string;
}

/** A message that is read: its sequence, and when it was stored, ms since the epoch. */
interface Entry {
  readonly sequence: number;
  readonly ms: number;
  readonly body: Body;
}

/** Checks each message that the server stores, and folds it into the book. */
export class LogChecker {
  readonly #book: Book;
  readonly #seen: CloudChecker;
  readonly #queue: QueueChecker;
  /** By the digests of their bodies: two scorers may take snapshots with one id. */
  readonly #snapshots = new Map<string, Snapshot>();
  readonly #quarantines = new Map<string, Quarantine>();
  readonly #lastOfSubject = new Map<string, number>();
  readonly #optionsOf = new Map<string, string>();
  #logEnd = 0;
  /** When a person stated last that the log is to be used as it is, ms since the epoch. */
  statedMs = 0;

  constructor(book: Book, seen: CloudChecker, queue: QueueChecker) {
    this.#book = book;
    this.#seen = seen;
    this.#queue = queue;
  }

  /** A process starts, with options that have this name. */
  configured(instance: string, options: string): void {
    this.#optionsOf.set(instance, options);
  }

  /** Streams are lost, KRONOS_LOG among them: what is there from now on is another log. */
  wiped(streams: readonly string[]): void {
    this.#book.count('wiped');
    this.#book.lost();
    this.#quarantines.clear();
    this.#logEnd = 0;
    for (const subject of [...this.#lastOfSubject.keys()])
      if (LOGGED.has(subject.split('.')[1] ?? '')) this.#lastOfSubject.delete(subject);
    for (const [id, snapshot] of this.#snapshots) this.#snapshots.set(id, { ...snapshot, logEnd: 0 });
    if (!streams.includes('KRONOS_MIGRATIONS')) return;
    this.#queue.clear();
  }

  /** A message that must have no effect. */
  forged(stream: string, { subject, sequence }: StoredMessage): void {
    if (stream === 'KRONOS_LOG') this.#logEnd = sequence;
    this.#lastOfSubject.set(subject, sequence);
    this.#book.count('forged');
  }

  stored(stream: string, message: StoredMessage): void {
    if (!message.subject.startsWith('kronos.')) return;
    if (stream === 'KRONOS_LOG') this.#logEnd = message.sequence;
    const before = this.#lastOfSubject.get(message.subject) ?? 0;
    this.#lastOfSubject.set(message.subject, message.sequence);
    const text = decoder.decode(message.data);
    if (text.includes(PROXY_PASSWORD))
      this.#book.breach('secret', `${message.subject} (${message.sequence}) holds the password of the proxy`);
    const body = this.#read(stream, message, text);
    if (body === null) return;
    this.#book.count(body.type);
    this.#authority(message, body);
    if (this.#book.doubtfulSinceMs !== null && ACTING.has(body.type))
      this.#book.breach('identity', `${body.id} (${message.sequence}) was stored on a log that nobody has stated`);
    if (stream === 'KRONOS_LOG' && EXPECTING.has(body.type)) this.#expectation(message, body, before);
    if (body.type === 'cycle.decided' || body.type === 'migration.started') this.#clock(body, message.storedAt);
    this.#foldOf[body.type]?.({ sequence: message.sequence, ms: message.storedAt, body });
  }

  /** Null: it cannot be read. */
  #read(stream: string, message: StoredMessage, text: string): Body | null {
    try {
      return JSON.parse(text) as Body;
    } catch {
      this.#book.count('unreadable');
      if (stream !== 'KRONOS_LOG') return null;
      // subject: kronos.<family>.<aggregate>
      const aggregate = this.#book.aggregate(message.subject.split('.')[2] ?? '');
      aggregate.unreadable = [...aggregate.unreadable, { sequence: message.sequence, ms: message.storedAt }];
      return null;
    }
  }

  /** An event names the state that it was made on, and was stored on that. @param before the sequence before it on its subject */
  #expectation({ sequence, headers }: StoredMessage, { id, type, data }: Body, before: number): void {
    const expected = headers?.get('Nats-Expected-Last-Subject-Sequence') ?? '';
    if (expected === '') this.#book.breach('expectation', `${id} (${sequence}) was stored without expectation`);
    else if (Number(expected) !== before)
      this.#book.breach('expectation', `${id} expected ${expected}, but was stored after ${before}`);
    else if (type === 'cycle.decided' && Number(expected) > data.basis)
      this.#book.breach('expectation', `${id} expected ${expected}, which its basis ${data.basis} does not have`);
  }

  #clock({ id, time }: Body, storedAt: number): void {
    const aheadMs = Date.parse(time) - storedAt;
    if (aheadMs > FAST_MS || aheadMs < -SLOW_MS)
      this.#book.breach('clock', `${id} has a time that is ${aheadMs / 1000} s ahead of the server's`);
  }

  #authority({ subject, sequence }: StoredMessage, { type, by }: Body): void {
    const [, family = ''] = subject.split('.');
    const [wanted, writers] = WRITERS[type] ?? ['controls', OPERATOR];
    if (family !== wanted) this.#book.breach('authority', `${type} on ${subject} (${sequence})`);
    else if (!writers.includes(by.service)) this.#book.breach('authority', `${type} by ${by.service} (${sequence})`);
  }

  /** The effect of each type of event on the book. */
  readonly #foldOf: Readonly<Record<string, (entry: Entry) => void>> = {
    'snapshot.taken': (entry) => this.#taken(entry),
    'planner.configured': ({ sequence, body }) => this.#configuredBy(sequence, body),
    'cycle.decided': (entry) => {
      this.#inForce(entry.body);
      this.#decided(entry);
    },
    'plan.approved': (entry) => {
      const plan = this.#book.plans.get(entry.body.data.planId);
      if (plan !== undefined && plan.releasedMs === null) this.#approved(plan, entry);
    },
    'plan.dispatched': ({ body }) => this.#dispatched(body),
    'migration.requested': (entry) => this.#requested(entry),
    'migration.started': (entry) => this.#started(entry),
    'migration.completed': (entry) => this.#ended(entry),
    'migration.failed': (entry) => this.#ended(entry),
    'migration.skipped': (entry) => this.#ended(entry),
    'aggregate.paused': ({ sequence, ms, body }) =>
      this.#book.forEach(body.aggregate, (aggregate) => {
        aggregate.paused ??= { sequence, ms };
      }),
    'aggregate.resumed': ({ body }) =>
      this.#book.forEach(body.aggregate, (aggregate) => {
        aggregate.paused = null;
      }),
    'instance.quarantined': ({ sequence, ms, body: { data } }) => {
      const untilMs = data.seconds < 0 ? Number.POSITIVE_INFINITY : ms + data.seconds * 1000;
      this.#quarantines.set(data.serverId, { sequence, ms, untilMs });
    },
    'instance.unquarantined': ({ body }) => this.#quarantines.delete(body.data.serverId),
    'migration.cancelled': (entry) => this.#cancelled(entry),
    'migration.aborted': (entry) => this.#cancelled(entry),
    'migration.closed': ({ body }) => {
      const task = this.#book.tasks.get(body.data.taskId);
      if (task !== undefined) task.closed = body.data.force === true ? 'forced' : (task.closed ?? 'plainly');
    },
    'event.skipped': ({ body: { aggregate: name, data } }) =>
      this.#book.forEach(name, (aggregate) => {
        aggregate.unreadable = aggregate.unreadable.filter(
          (one) => one.sequence < data.sequence || one.sequence > data.through,
        );
      }),
    'installation.created': ({ ms, body }) => {
      if (body.data.statement !== 'newLog') return;
      this.#book.doubtfulSinceMs = null;
      this.statedMs = ms;
    },
    'state.checkpointed': ({ ms, body }) => {
      this.#book.aggregate(body.aggregate).checkpointMs = ms;
    },
  };

  #taken({ ms, body: { time, data } }: Entry): void {
    this.#snapshots.set(data.body.digest, {
      ms,
      logEnd: this.#logEnd,
      timeMs: Date.parse(time),
      observedFromMs: Date.parse(data.observedFrom),
    });
  }

  #dispatched({ data }: Body): void {
    const plan = this.#book.plans.get(data.planId);
    if (plan === undefined && this.#book.formerPlans.has(data.planId)) return;
    if (plan === undefined) {
      this.#book.breach('atomic', `${data.planId} was dispatched and never decided`);
      return;
    }
    plan.dispatched = true;
    const missing = plan.steps.filter(
      ({ taskId }) => !plan.late.has(taskId) && this.#book.tasks.get(taskId)?.requested !== true,
    );
    if (plan.releasedMs !== null && missing.length > 0)
      this.#book.breach('atomic', `${plan.id} was dispatched without ${missing.map((one) => one.taskId).join(', ')}`);
  }

  #requested({ sequence, ms, body: { aggregate, data } }: Entry): void {
    const plan = this.#book.plans.get(data.planId);
    if (plan !== undefined && plan.releasedMs === null && plan.approvedMs === null)
      this.#book.breach('approval', `${data.taskId} was dispatched, and its plan was not approved in time`);
    if (plan?.late.has(data.taskId) === true)
      this.#book.breach('window', `${data.taskId} was released after its window had closed`);
    // A task of a lost log: no executor may start it.
    if (plan === undefined && this.#book.formerPlans.has(data.planId)) return;
    const task = this.#book.task(data, aggregate, sequence, ms);
    task.requested = true;
    task.queued.add(data.attempt);
    this.#queue.put(sequence, { taskId: data.taskId, attempt: data.attempt });
  }

  #cancelled({ ms, body }: Entry): void {
    const task = this.#book.tasks.get(body.data.taskId);
    if (task !== undefined) task.cancelledMs ??= ms;
  }

  /** Of planners with different options, the one that started last plans. */
  #configuredBy(sequence: number, { aggregate: name, by, data }: Body): void {
    const { configurations } = this.#book.aggregate(name);
    const before = configurations.at(-1);
    const { startedAfter } = data;
    if (before !== undefined && this.#differ(before.instance, by.instance) && startedAfter < before.startedAfter)
      this.#book.breach(
        'options',
        `${by.instance} set its options (${sequence}); ${before.instance} has others, and started later`,
      );
    configurations.push({ sequence, instance: by.instance, startedAfter });
  }

  /** A decision is made with the options that its basis has. */
  #inForce({ aggregate: name, by, data }: Body): void {
    const found = this.#book.aggregate(name).configurations.findLast(({ sequence }) => sequence <= data.basis);
    if (found === undefined)
      this.#book.breach('options', `${data.snapshotId} was decided, and no planner had set its options`);
    else if (this.#differ(found.instance, by.instance))
      this.#book.breach(
        'options',
        `${data.snapshotId} was decided by ${by.instance}, and ${found.instance} has set others`,
      );
  }

  #differ(one: string, other: string): boolean {
    return this.#optionsOf.get(one) !== this.#optionsOf.get(other);
  }

  #decided({ sequence, ms, body: { aggregate: name, data, time } }: Entry): void {
    const { snapshotId, basis, digests } = data;
    this.#book.count(`decided by planner ${data.plannerVersion}`);
    const aggregate = this.#book.aggregate(name);
    const before = aggregate.decided.get(snapshotId);
    if (before !== undefined)
      this.#book.breach('one-decision', `${snapshotId} was decided at ${before} and ${sequence}`);
    aggregate.decided.set(snapshotId, sequence);
    const snapshot = this.#snapshots.get(digests.snapshot);
    if (snapshot === undefined) this.#book.breach('basis', `${snapshotId} was decided and never taken`);
    else this.#fresh(snapshot, aggregate, ms, data);
    if (basis >= sequence)
      this.#book.breach('basis', `${snapshotId}: the basis ${basis} is not before its event ${sequence}`);
    if (data.reason?.code === 'outside-window') this.#book.count('outside-window');
    this.#mayWait(aggregate, snapshotId, data.reason);
    if (data.plan === null || data.release === 'none' || data.release === 'dryRun') return;
    this.#book.count('plans');
    const steps = data.plan.steps as Plan['steps'];
    this.#inWindows(name, steps, data.snapshotTime);
    for (const { dependsOn } of steps) if (dependsOn.length > 0) this.#book.count('dependent');
    if (snapshot !== undefined) {
      this.#measured(name, snapshotId, snapshot.timeMs, steps);
      this.#isClear(name, snapshotId, snapshot.timeMs);
    }
    const plan: Plan = {
      id: snapshotId,
      aggregate: name,
      steps,
      sequence,
      storedMs: ms,
      snapshotMs: Date.parse(data.snapshotTime),
      releasedMs: null,
      approvedMs: null,
      late: new Set(),
      dispatched: false,
    };
    this.#book.plans.set(snapshotId, plan);
    this.#mayPlan(plan, aggregate, basis);
    if (snapshot !== undefined) this.#hasSettled(snapshotId, snapshot, aggregate, basis);
    if (data.release !== 'released') return;
    if (this.#book.rules.approvalTtlMs !== null)
      this.#book.breach('approval', `${plan.id} was released, and nobody was asked`);
    this.#release(plan, sequence, ms, boundedMs(time, ms));
  }

  /** A decision's basis reaches the end that the log had when its snapshot was taken; it follows the snapshot soon; snapshots are decided in order. */
  #fresh(snapshot: Snapshot, aggregate: Aggregate, ms: number, { snapshotId, basis }: Body['data']): void {
    if (basis < snapshot.logEnd)
      this.#book.breach(
        'basis',
        `${snapshotId}: the basis ${basis} is before ${snapshot.logEnd}, the log's end when it was taken`,
      );
    if (ms - snapshot.ms > 2 * this.#book.rules.intervalMs + RACE_MS)
      this.#book.breach('fresh', `${snapshotId} was decided ${(ms - snapshot.ms) / 1000} s after it was taken`);
    if (snapshot.timeMs < aggregate.lastDecidedSnapshotMs)
      this.#book.breach('fresh', `${snapshotId} is older than a snapshot that was decided before`);
    aggregate.lastDecidedSnapshotMs = snapshot.timeMs;
  }

  /** A plan is released or proposed by the time of its snapshot, to the minute. */
  #inWindows(aggregate: string, steps: readonly Step[], snapshotTime: string): void {
    for (const { taskId, serverId, phase } of steps)
      if (this.#closedFor({ aggregate, serverId, phase }, Date.parse(snapshotTime), 0))
        this.#book.breach('window', `${taskId} was planned for release at ${snapshotTime}, outside of its window`);
  }

  #hasSettled(id: string, snapshot: Snapshot, { moveEnds }: Aggregate, basis: number): void {
    const { settleMs, maxSkewMs } = this.#book.rules;
    const ended = moveEnds.findLast((end) => end.sequence <= basis);
    if (ended !== undefined && snapshot.observedFromMs < ended.ms + settleMs - maxSkewMs)
      this.#book.breach('settle', `${id} was observed before the end ${ended.sequence} of a move had settled`);
  }

  #approved(plan: Plan, { ms, body: { time } }: Entry): void {
    this.#book.count('approvals');
    const { approvalTtlMs, maxSkewMs } = this.#book.rules;
    // The fold judges whether a later plan replaced this one or a person rejected it; its tasks show what it released.
    if (approvalTtlMs === null || ms > plan.storedMs + approvalTtlMs + maxSkewMs) return;
    // It waits until the last window of its steps closes.
    const { aggregate } = plan;
    if (plan.steps.every(({ phase }) => this.#closedFor({ aggregate, serverId: null, phase }, ms, maxSkewMs))) return;
    if (plan.approvedMs !== null) return;
    plan.late = lateTasks(plan.steps, boundedMs(time, ms));
    plan.approvedMs = ms;
  }

  /**
   * Whether no move of a server may start at a time, nor shortly before and after it.
   *
   * @param serverId null: by the windows of the aggregate alone
   */
  #closedFor({ aggregate, serverId, phase }: Moved, atMs: number, leewayMs: number): boolean {
    const { openings } = this.#book.rules;
    if (openings === null || (phase === 'evacuate' && openings.evacuationIgnoresWindows)) return false;
    return [-leewayMs, 0, leewayMs].every((by) => !openings.open(aggregate, serverId, atMs + by));
  }

  /** Whether a task's window was closed at any minute since the snapshot of its plan: it may be open again when the plan is decided. */
  #hasClosed(task: Task, untilMs: number): boolean {
    const fromMs = this.#book.plans.get(task.planId)?.snapshotMs ?? this.#book.releasedMs(task);
    for (let ms = fromMs; ms < untilMs + MINUTE_MS; ms += MINUTE_MS) if (this.#closedFor(task, ms, 0)) return true;
    return false;
  }

  /** @param atMs as folds take the time of the release */
  #release(plan: Plan, sequence: number, ms: number, atMs: number): void {
    plan.late = lateTasks(plan.steps, atMs);
    if (plan.late.size === plan.steps.length) return;
    plan.releasedMs = ms;
    this.#book.aggregate(plan.aggregate).releases.push({ sequence, ms });
    for (const { taskId, serverId, phase, dependsOn } of plan.steps)
      if (!plan.late.has(taskId))
        this.#book.task(
          { taskId, serverId, phase, planId: plan.id, dependsOn: [...dependsOn] },
          plan.aggregate,
          sequence,
          ms,
        );
  }

  /** A release of which nothing could start any more holds back no decision. */
  #mayWait({ name, releases }: Aggregate, id: string, reason: Body['data']): void {
    if (reason?.code !== 'cooldown' || reason.detail?.after !== 'release') return;
    // As folds take the time of the release.
    const atMs = Date.parse(reason.detail.at);
    const near = (ms: number | null): boolean => ms !== null && Math.abs(ms - atMs) <= MAX_TIME_DIFFERENCE_MS;
    if (releases.some(({ ms }) => near(ms))) return;
    for (const { aggregate, approvedMs } of this.#book.plans.values())
      if (aggregate === name && near(approvedMs)) return;
    this.#book.breach('cooldown', `${id} waits after a release at ${new Date(atMs).toISOString()}, which was none`);
  }

  /** Nothing is balanced on metrics that lack a host. */
  #measured(name: string, id: string, timeMs: number, steps: readonly Step[]): void {
    if (!steps.some(({ phase }) => phase === 'spread' || phase === 'pack')) return;
    const beforeMs = timeMs - this.#book.rules.intervalMs - 30_000;
    for (const host of this.#book.cloud.hostsOf(name)) {
      const since = this.#book.cloud.unmeasuredSince(host);
      const open = this.#seen.openSince(host);
      if (since !== null && since < beforeMs && open !== undefined && open < beforeMs)
        this.#book.breach('blind', `${id} balances, and ${host} has no metrics since ${(timeMs - since) / 1000} s`);
    }
    for (const { phase, serverId } of steps) {
      if (phase !== 'spread' && phase !== 'pack') continue;
      const since = Math.max(
        this.#book.cloud.unprofiledSince(serverId) ?? Number.POSITIVE_INFINITY,
        this.#seen.placedSince(serverId) ?? Number.POSITIVE_INFINITY,
      );
      if (since < beforeMs)
        this.#book.breach(
          'blind',
          `${id} moves ${serverId}, whose load is not known since ${(timeMs - since) / 1000} s`,
        );
    }
  }

  /** Nothing is planned with a host that Kronos could not plan by the snapshot, nor with one that is not known whole. */
  #isClear(name: string, id: string, timeMs: number): void {
    const beforeMs = timeMs - this.#book.rules.intervalMs - 30_000;
    const [found] = this.#book.cloud.hostsOf(name).flatMap((host) => this.#seen.forbids(host, beforeMs) ?? []);
    if (found !== undefined) this.#book.breach(found.rule, `${id} is a plan of ${name}, and ${found.text}`);
  }

  /** Breaches of a plan by the log up to its basis. */
  #mayPlan(plan: Plan, aggregate: Aggregate, basis: number): void {
    const { cooldownMs, maxSkewMs } = this.#book.rules;
    const ms = plan.storedMs;
    if (aggregate.paused !== null && aggregate.paused.sequence <= basis)
      this.#book.breach(
        'paused',
        `${plan.id} was planned while ${aggregate.name} was paused (${aggregate.paused.sequence})`,
      );
    if (aggregate.paused !== null && ms - aggregate.paused.ms > RACE_MS)
      this.#book.breach('paused', `${plan.id} was decided ${(ms - aggregate.paused.ms) / 1000} s after a pause`);
    this.#understood(plan.id, aggregate, (one) => one.sequence <= basis);
    const last = aggregate.releases.findLast((release) => release.sequence <= basis);
    if (last !== undefined && ms - last.ms < cooldownMs - maxSkewMs)
      this.#book.breach('cooldown', `${plan.id} comes ${(ms - last.ms) / 1000} s after the last release`);
    for (const { serverId } of plan.steps) this.#mayMove(plan, serverId, basis);
  }

  /** Breaches of a plan's move of a server by the log up to its basis. */
  #mayMove(plan: Plan, serverId: string, basis: number): void {
    const { instanceCooldownMs, maxSkewMs } = this.#book.rules;
    const ms = plan.storedMs;
    for (const task of this.#book.byServer.get(serverId) ?? []) {
      if (task.planId === plan.id || task.releasedSequence > basis) continue;
      if (task.finalSequence === null || task.finalSequence > basis)
        this.#book.breach('twice', `${plan.id} moves ${serverId}, which ${task.id} still moves`);
      const ago = ms - this.#book.releasedMs(task);
      if (ago < instanceCooldownMs - maxSkewMs)
        this.#book.breach('instance-cooldown', `${plan.id} moves ${serverId}, released ${ago / 1000} s before`);
    }
    const quarantine = this.#quarantines.get(serverId);
    if (quarantine !== undefined && quarantine.sequence <= basis && ms < quarantine.untilMs - maxSkewMs)
      this.#book.breach('quarantine', `${plan.id} moves ${serverId}, which is in quarantine (${quarantine.sequence})`);
  }

  /** Nothing is planned or started by a log that is not understood. */
  #understood(
    what: string,
    { unreadable }: Aggregate,
    counts: (one: { sequence: number; ms: number }) => boolean,
  ): void {
    const one = unreadable.find(counts);
    if (one !== undefined) this.#book.breach('unreadable', `${what} in spite of the unreadable event ${one.sequence}`);
  }

  #started({ sequence, ms, body: { data, aggregate: name } }: Entry): void {
    const task = this.#book.tasks.get(data.taskId);
    if (task === undefined) {
      this.#book.breach('unasked', `${data.taskId} was started and never released`);
      return;
    }
    if (task.finalSequence !== null)
      this.#book.breach('final', `${task.id} was started (${sequence}) after its final result (${task.finalSequence})`);
    if (task.attempts.has(data.attempt)) this.#book.breach('started-twice', `${task.id} attempt ${data.attempt}`);
    if (ms - task.sinceMs > this.#book.rules.planTtlMs + RACE_MS + this.#book.rules.maxSkewMs)
      this.#book.breach('expired', `${task.id} was started ${(ms - task.sinceMs) / 1000} s after its release`);
    const aggregate = this.#book.aggregate(name);
    this.#understood(task.id, aggregate, (one) => ms - one.ms > RACE_MS);
    if (aggregate.paused !== null && ms - aggregate.paused.ms > RACE_MS)
      this.#book.breach('paused', `${task.id} was started ${(ms - aggregate.paused.ms) / 1000} s after a pause`);
    for (const id of task.dependsOn)
      if (this.#book.tasks.get(id)?.completed !== true)
        this.#book.breach('order', `${task.id} was started before ${id} was completed`);
    this.#mayStart(task, data.attempt, ms);
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
    this.#caps(name, task, ms);
  }

  /** Starts that people or windows forbid. */
  #mayStart(task: Task, attempt: number, ms: number): void {
    if (task.cancelledMs !== null && ms - task.cancelledMs > RACE_MS)
      this.#book.breach(
        'cancelled',
        `${task.id} was started ${(ms - task.cancelledMs) / 1000} s after it was cancelled`,
      );
    const quarantine = this.#quarantines.get(task.serverId);
    if (
      quarantine !== undefined &&
      ms - quarantine.ms > RACE_MS &&
      ms < quarantine.untilMs - this.#book.rules.maxSkewMs
    )
      this.#book.breach('quarantine', `${task.id} was started while ${task.serverId} was in quarantine`);
    if (this.#closedFor(task, ms, RACE_MS))
      this.#book.breach('window', `${task.id} attempt ${attempt} was started outside of its window`);
  }

  #caps(aggregate: string, task: Task, ms: number): void {
    const open: Attempt[] = [];
    /** A VM, a host or a group may be in a move of another aggregate. Starts of two aggregates do not wait for each other. */
    const elsewhere: Attempt[] = [];
    for (const each of this.#book.tasks.values()) {
      if (each.finalSequence !== null) continue;
      for (const attempt of each.attempts.values()) {
        if (attempt.ended) continue;
        if (each.aggregate === aggregate) open.push(attempt);
        else if (ms - attempt.startedMs <= RACE_MS) continue;
        else if (each.serverId === task.serverId)
          this.#book.breach('twice', `${task.id} was started while ${each.id} moves ${task.serverId}`);
        else elsewhere.push(attempt);
      }
    }
    const over = (count: number, cap: number, what: string): void => {
      if (count > cap) this.#book.breach('caps', `${task.id} is number ${count} of at most ${cap} ${what}`);
    };
    const { maxConcurrentMigrations, maxOutboundPerHost, maxInboundPerHost, maxConcurrentPerGroup } = this.#book.rules;
    over(open.length, maxConcurrentMigrations, `in ${aggregate}`);
    const newest = open.findLast((attempt) => attempt === [...task.attempts.values()].at(-1));
    if (newest === undefined) return;
    const all = [...open, ...elsewhere];
    over(all.filter((one) => one.from === newest.from).length, maxOutboundPerHost, `from ${newest.from}`);
    const { destination } = newest;
    over(all.filter((one) => one.destination === destination).length, maxInboundPerHost, `to ${destination}`);
    for (const group of newest.groups)
      over(all.filter((one) => one.groups.includes(group)).length, maxConcurrentPerGroup, `of group ${group}`);
  }

  #ended(entry: Entry): void {
    const { sequence, ms, body } = entry;
    const { type, time, data } = body;
    const task = this.#endedTask(entry);
    if (task === null) return;
    this.#mayEnd(task, entry);
    const attempt = task.attempts.get(data.attempt);
    if (attempt !== undefined) this.#attemptEnded(task, attempt, sequence);
    if (type === 'migration.completed' && data.outcome === 'migrated') this.#reached(task, data);
    this.#refused(task, attempt, ms, body);
    if (type === 'migration.failed' && data.retryPending === true) {
      task.announced = data.next?.attempt ?? null;
      return;
    }
    if (type === 'migration.completed' || attempt !== undefined)
      this.#book.aggregate(task.aggregate).moveEnds.push({ sequence, ms: boundedMs(time, ms) });
    task.completed = type === 'migration.completed';
    task.finalSequence = sequence;
    task.finalMs = ms;
    this.#book.count('finals');
    this.#quarantined(task, entry);
  }

  /** Null: the result is of no task that may have one. */
  #endedTask({ sequence, body: { type, data } }: Entry): Task | null {
    // The result of a message on the work queue that is no task.
    if (data.errorType === 'DeadLetter' && data.taskId.startsWith('unreadable-')) return null;
    const task = this.#book.tasks.get(data.taskId);
    if (task !== undefined) return task;
    // Its message is left from a log that is lost.
    if (type !== 'migration.skipped' || !this.#book.formerTasks.has(data.taskId))
      this.#book.breach('unasked', `${data.taskId} ended (${sequence}) and was never released`);
    return null;
  }

  /** A task has one result, whose reason agrees with operators, windows and deadlines. */
  #mayEnd(task: Task, { sequence, ms, body: { type, by, data } }: Entry): void {
    if (task.finalSequence !== null)
      this.#book.breach('final', `${task.id} has two results, ${task.finalSequence} and ${sequence}`);
    if (type === 'migration.failed' && data.reason?.code === 'closed') this.#mayClose(task, sequence, by.service, data);
    if (OUTSIDE_WINDOW.has(data.reason?.code)) {
      this.#book.count('window-closed');
      if (data.errorType !== 'Cancelled')
        this.#book.breach('window', `${task.id} ended as ${data.errorType} (${sequence}) because its window closed`);
      if (!this.#hasClosed(task, ms))
        this.#book.breach('window', `${task.id} ended (${sequence}) because its window closed, which it did not`);
    }
    if (data.reason?.code === 'expired') this.#expired(task, sequence, ms, by.service);
  }

  /** An operator closed the task. Without force a started one ends when its executor sees that Nova no longer works on its server. */
  #mayClose(task: Task, sequence: number, service: string, data: Body['data']): void {
    const ended = `${task.id} ended as closed (${sequence})`;
    if (task.closed === null) this.#book.breach('closed', `${ended}, and no operator closed it`);
    const attempt = task.attempts.get(data.attempt);
    if (task.closed !== 'plainly' || attempt === undefined) return;
    if (service === 'planner') this.#book.breach('closed', `${ended} by the planner, and was closed without force`);
    // A later migration is another one, for which the server may be busy.
    const last = this.#book.cloud.migrations().findLast(({ server }) => server === task.serverId);
    const own =
      last?.byKronos === true && last.dest === attempt.destination && last.createdMs >= attempt.startedMs - 1000;
    if (own && this.#book.cloud.taskState(task.serverId) === 'migrating')
      this.#book.breach('closed', `${ended}, was closed without force, and Nova calls its server migrating`);
  }

  /** An attempt ends once, and not before its migration. */
  #attemptEnded(task: Task, attempt: Attempt, sequence: number): void {
    if (attempt.ended) this.#book.breach('final', `${task.id} attempt ${attempt.attempt} ended twice (${sequence})`);
    attempt.ended = true;
    if (this.#undone(task.serverId, attempt))
      this.#book.breach('early', `${task.id} attempt ${attempt.attempt} ended while Nova still has to begin it`);
    const alive = this.#running(task.serverId, attempt);
    if (alive !== null)
      this.#book.breach('early', `${task.id} attempt ${attempt.attempt} ended while its migration ${alive} runs`);
  }

  /** A migration took a server to the host that it is said to have reached. */
  #reached({ id, serverId }: Task, { host, warnings }: Body['data']): void {
    const there = this.#book.cloud.host(serverId) === host;
    const reached = this.#book.cloud.migrations().some(
      (one) =>
        one.server === serverId &&
        one.dest === host &&
        // A compute died: Nova names the host and calls the migration no success, which the result must say.
        // A person moved it on, cold: the result must say that it is no longer where the move took it.
        (one.status === 'completed' ||
          (there && warnings.length > 0 && (UNSUCCESSFUL.has(one.status) || COLD.has(one.status)))),
    );
    // Nova may have lost the row of the migration, which the result must say.
    const unseen = there && warnings.some((one: { readonly code: string }) => one.code === 'no-migration-seen');
    if (!reached && !unseen)
      this.#book.breach('untrue', `${id} is said to have reached ${host}, which no migration did`);
  }

  /** Failures for which a VM is to blame put it into quarantine. */
  #quarantined(task: Task, { sequence, ms, body: { type, time, data } }: Entry): void {
    const { quarantineMs } = this.#book.rules;
    if (type !== 'migration.failed' || !QUARANTINING.has(data.errorType) || !AT_THE_VM.has(data.cause)) return;
    if (quarantineMs <= 0) return;
    // The writer's clock counts as far as the server's confirms it.
    const fromMs = Math.min(boundedMs(time, ms), ms);
    this.#quarantines.set(task.serverId, { sequence, ms, untilMs: fromMs + quarantineMs });
  }

  /** Remembers what Nova's scheduler or its computes refused. */
  #refused(task: Task, attempt: Attempt | undefined, ms: number, { type, data }: Pick<Body, 'type' | 'data'>): void {
    if (type !== 'migration.failed' || data.cause !== 'scheduler') return;
    const { aggregate, serverId: server } = task;
    this.#book.count('refused');
    this.#book.novaRefusals.push({ aggregate, server, host: data.destination, ms });
    if (attempt !== undefined && NO_CELLS.test(data.nova?.reason ?? data.reason.text))
      this.#seen.cellsRefused(task, attempt);
  }

  /** A task expires when its plan's time to live is over; a planner says so one more time to live later. */
  #expired(task: Task, sequence: number, ms: number, service: string): void {
    const sinceMs = this.#book.releasedMs(task);
    const leastMs = this.#book.rules.planTtlMs * (service === 'planner' ? 2 : 1) - MAX_TIME_DIFFERENCE_MS;
    if (ms - sinceMs < leastMs)
      this.#book.breach(
        'expired',
        `the ${service} let ${task.id} expire (${sequence}) ${(ms - sinceMs) / 1000} s after its release`,
      );
  }

  /** Whether Nova has taken the request and has no migration for it yet. */
  #undone(server: string, attempt: Attempt): boolean {
    if (attempt.posts === 0 || this.#book.cloud.taskState(server) !== 'migrating') return false;
    return !this.#book.cloud
      .migrations()
      .some((one) => one.server === server && one.createdMs >= attempt.startedMs - 1000);
  }

  /** The id of a migration of this attempt that Nova still runs. */
  #running(server: string, attempt: Attempt): number | null {
    const found = this.#book.cloud
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
}
