/**
 * Watches moves between cells, on the log, in the requests to Nova and in the cloud's own record. It has its own parser and its
 * own fold, and shares no code with the services.
 */
import type { StoredMessage } from '@kronos/eventlog/simulated';

export const cellRules = [
  /** An attempt asked Nova twice for its move, or without having been started. */
  'post-twice',
  'unasked',
  /** A task was started without approval, or twice, or while another attempt has the server. */
  'unapproved',
  'started-twice',
  'twice',
  /** Nova was asked to confirm or to revert without an event that says so, before verification, or both ways. */
  'unverified',
  'both',
  /** A second final result, or one that the cloud does not confirm. */
  'final',
  'untrue',
  /** A server that was changed by its move, and no result that says so. */
  'changed',
  /** In the end: a task without a result, or a server that still moves. */
  'liveness',
] as const;
export type CellRule = (typeof cellRules)[number];

export interface CellBreach {
  readonly rule: CellRule;
  readonly text: string;
  readonly atMs: number;
}

/** A server in the cloud's own record. */
export interface CloudServer {
  readonly host: string;
  readonly vmState: string;
  readonly taskState: string | null;
}

export interface CellCloud {
  /** Null: it is deleted. */
  server(id: string): CloudServer | null;
  hostsOf(aggregate: string): readonly string[];
}

interface Body {
  readonly type: string;
  readonly data: {
    readonly planId: string;
    readonly taskId: string;
    readonly serverId: string;
    readonly attempt: number;
    readonly release?: string;
    readonly steps?:
      | readonly {
          readonly step: number;
          readonly taskId: string;
          readonly serverId: string;
          readonly from: string;
          readonly cell?: { readonly target: string };
        }[]
      | readonly number[]
      | null;
    readonly host?: string;
    readonly outcome?: string;
    readonly started?: boolean;
    readonly retryPending?: boolean;
    readonly reason?: { readonly code: string };
    readonly warnings?: readonly { readonly code: string }[];
    readonly statement?: string;
  };
}

interface Attempt {
  readonly task: Task;
  readonly number: number;
  readonly startedMs: number;
  posts: number;
  verifying: boolean;
  verified: boolean;
  settle: 'confirm' | 'revert' | null;
  ended: boolean;
}
interface Task {
  readonly id: string;
  readonly serverId: string;
  readonly from: string;
  readonly target: string;
  readonly attempts: Map<number, Attempt>;
  approved: boolean;
  rejected: boolean;
  asked: 'confirm' | 'revert' | null;
  finals: number;
}

/** Reason codes of results that say that the server is not as it was. */
const CHANGED = new Set(['server-in-error', 'guest-off', 'server-not-up']);
/** The longest time between the start of a move on a log that is lost and its request: the window of a request, and some more. */
const WINDOW_MS = 11_000;
/** The longest time until a message arrives that a service had sent or a process held when the log was lost. */
const FAREWELL_MS = 300_000;

const tellsDamage = ({ warnings = [], reason }: Body['data']): boolean =>
  [...warnings, ...(reason === undefined ? [] : [reason])].some(({ code }) => CHANGED.has(code));

export class CellsChecker {
  readonly breaches: CellBreach[] = [];
  readonly counts = new Map<string, number>();
  readonly #tasks = new Map<string, Task>();
  readonly #plans = new Map<string, { readonly tasks: Map<number, Task>; released: boolean }>();
  /** Server -> its vm_state before any move. */
  readonly #before: ReadonlyMap<string, string>;
  /** Tasks of logs that are lost. */
  readonly #former = new Map<string, Task>();
  /** When a log was lost last, and whether nobody has stated since that the one in its place is to be used. */
  #lostMs = Number.NEGATIVE_INFINITY;
  #doubtful = false;
  /** Servers whose damage a result has told, or would have told had its log not been lost. */
  readonly #told = new Set<string>();
  readonly #cloud: CellCloud;
  readonly #now: () => number;

  constructor(cloud: CellCloud, before: ReadonlyMap<string, string>, now: () => number) {
    this.#cloud = cloud;
    this.#before = before;
    this.#now = now;
  }

  /** KRONOS_LOG is lost: from now on the log in its place counts. What the lost one started may only end. */
  wiped(): void {
    this.#count('wiped');
    this.#lostMs = this.#now();
    this.#doubtful = true;
    for (const task of this.#tasks.values()) {
      this.#former.set(task.id, task);
      // Nothing tells any more what became of it.
      for (const attempt of task.attempts.values()) if (!attempt.ended) this.#told.add(task.serverId);
    }
    this.#tasks.clear();
    this.#plans.clear();
  }

  /** Servers of which a result has told that they are damaged, and those of lost logs; no task has them now. */
  left(): string[] {
    return this.#parting() ? [] : [...this.#told].filter((id) => this.#open(id) === undefined);
  }

  /** A person has brought a server back to what it was. */
  mended(id: string): void {
    this.#told.delete(id);
  }

  /** A message that the server has stored on KRONOS_LOG. The cloud's record must be up to date. */
  stored(message: Pick<StoredMessage, 'data'>): void {
    const body = JSON.parse(new TextDecoder().decode(message.data)) as Body;
    this.#count(body.type);
    this.#foldOf[body.type]?.(body.type, body.data);
  }

  /** The effect of each type of event. */
  readonly #foldOf: Readonly<Record<string, (type: string, data: Body['data']) => void>> = {
    'plan.proposed': (_, data) => this.#proposed(data),
    'plan.approved': (type, data) => this.#answered(type, data),
    'plan.rejected': (type, data) => this.#answered(type, data),
    'migration.confirmAsked': (_, data) => this.#asked(data.taskId, 'confirm'),
    'migration.revertAsked': (_, data) => this.#asked(data.taskId, 'revert'),
    'installation.created': (_, { statement }) => {
      if (statement === 'newLog') this.#doubtful = false;
    },
    'migration.started': (_, data) => this.#started(data),
    'migration.verifying': (type, data) => this.#moved(type, data),
    'migration.verified': (type, data) => this.#moved(type, data),
    'migration.confirmRequested': (type, data) => this.#moved(type, data),
    'migration.revertRequested': (type, data) => this.#moved(type, data),
    'migration.completed': (type, data) => this.#ended(type, data),
    'migration.failed': (type, data) => this.#ended(type, data),
    'migration.skipped': (type, data) => this.#ended(type, data),
  };

  #asked(taskId: string, act: 'confirm' | 'revert'): void {
    const task = this.#tasks.get(taskId);
    if (task !== undefined) task.asked ??= act;
  }

  /** A request that the cloud has received from a service. */
  called(call: {
    readonly method: string;
    readonly path: string;
    readonly body: unknown;
    readonly status: number | null;
  }): void {
    const id = /^\/v2\.1\/servers\/([^/]+)\/action/.exec(call.path)?.[1];
    if (call.method !== 'POST' || id === undefined || call.status === 401) return;
    const [action = ''] = Object.keys((call.body ?? {}) as object);
    this.#count(action);
    if (action === 'migrate' || action === 'resize') this.#moveRequested(id, action);
    const act = action === 'confirmResize' ? 'confirm' : action === 'revertResize' ? 'revert' : null;
    if (act !== null && this.#open(id)?.settle !== act && !this.#settledByFormer(id, act))
      this.#breach('unverified', `${id} was to be ${act}ed, and the log does not say so`);
  }

  #moveRequested(id: string, action: string): void {
    const mine = this.#open(id);
    if (mine === undefined) {
      if (!this.#ofFormer(id)) this.#breach('unasked', `a ${action} of ${id} was requested, and no attempt is started`);
    } else if (++mine.posts > 1) this.#breach('post-twice', `${mine.task.id} attempt ${mine.number}: ${action}`);
  }

  /** Whether a move is that of an attempt that a lost log has started, while its window was open. */
  #ofFormer(serverId: string): boolean {
    for (const attempt of this.#formerAttempts(serverId)) {
      if (this.#now() - attempt.startedMs > WINDOW_MS) continue;
      if (++attempt.posts > 1) this.#breach('post-twice', `${attempt.task.id} attempt ${attempt.number}`);
      return true;
    }
    return false;
  }

  /** Whether a lost log said so, and the executor could not know yet that it is lost. */
  #settledByFormer(serverId: string, act: 'confirm' | 'revert'): boolean {
    return this.#parting() && this.#formerAttempts(serverId).some(({ settle }) => settle === act);
  }

  /** Whether an executor may not know yet that the log is lost. */
  #parting(): boolean {
    return this.#now() - this.#lostMs <= FAREWELL_MS;
  }

  #formerAttempts(serverId: string): Attempt[] {
    const tasks = [...this.#former.values()].filter((task) => task.serverId === serverId);
    return tasks.flatMap(({ attempts }) => [...attempts.values()].filter(({ ended }) => !ended));
  }

  /** Tasks that were approved and have no result. */
  unfinished(): string[] {
    return [...this.#tasks.values()].filter((task) => task.approved && task.finals === 0).map(({ id }) => id);
  }

  /** Everything is over: no task is open, and each server has its former state, on any host. */
  settled(): void {
    for (const id of this.unfinished()) this.#breach('liveness', `${id} has no final result`);
    for (const [id, vmState] of this.#before) {
      const server = this.#cloud.server(id);
      if (server === null || this.#told.has(id)) continue;
      if (server.taskState !== null) this.#breach('liveness', `${id} is ${server.taskState}`);
      if (server.vmState !== vmState) this.#breach('changed', `${id} was ${vmState} and is ${server.vmState}`);
    }
  }

  #proposed({ planId, release, steps }: Body['data']): void {
    if (release !== 'proposed' || this.#plans.has(planId)) return;
    const tasks = new Map<number, Task>();
    for (const step of steps ?? []) {
      if (typeof step === 'number') continue;
      const { taskId, serverId, from, cell } = step;
      const task: Task = {
        id: taskId,
        serverId,
        from,
        target: cell?.target ?? '',
        attempts: new Map(),
        approved: false,
        rejected: false,
        asked: null,
        finals: 0,
      };
      tasks.set(step.step, task);
      this.#tasks.set(taskId, task);
    }
    this.#plans.set(planId, { tasks, released: false });
  }

  #answered(type: string, { planId, steps }: Body['data']): void {
    const plan = this.#plans.get(planId);
    if (plan === undefined || plan.released) return;
    const named = [...plan.tasks].filter(([step]) => steps == null || (steps as readonly unknown[]).includes(step));
    if (type === 'plan.approved') plan.released = true;
    for (const [, task] of named)
      if (type === 'plan.rejected') task.rejected = true;
      else if (!task.rejected) task.approved = true;
  }

  #open(serverId: string): Attempt | undefined {
    for (const task of this.#tasks.values())
      if (task.serverId === serverId) for (const attempt of task.attempts.values()) if (!attempt.ended) return attempt;
    return undefined;
  }

  #started({ taskId, serverId, attempt: number }: Body['data']): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined || !task.approved) {
      this.#breach('unapproved', `${taskId} was started`);
      if (task === undefined) return;
    }
    if (task.attempts.has(number)) this.#breach('started-twice', `${taskId} attempt ${number}`);
    const other = this.#open(serverId);
    if (other !== undefined) this.#breach('twice', `${taskId} was started while ${other.task.id} has ${serverId}`);
    if (this.#doubtful) this.#breach('unapproved', `${taskId} was started on a log that nobody has stated`);
    const startedMs = this.#now();
    const attempt = {
      task,
      number,
      startedMs,
      posts: 0,
      verifying: false,
      verified: false,
      settle: null,
      ended: false,
    };
    task.attempts.set(number, attempt);
  }

  #moved(type: string, { taskId, attempt: number }: Body['data']): void {
    const attempt = this.#tasks.get(taskId)?.attempts.get(number);
    if (attempt === undefined && this.#parting() && this.#former.has(taskId)) return;
    if (attempt === undefined) {
      this.#breach('unasked', `${type} of ${taskId} attempt ${number}, which was not started`);
      return;
    }
    if (type === 'migration.verifying') attempt.verifying = true;
    else if (type === 'migration.verified') this.#verified(attempt);
    else this.#settled(attempt, type === 'migration.confirmRequested' ? 'confirm' : 'revert');
  }

  #verified(attempt: Attempt): void {
    const { task } = attempt;
    const about = `${task.id} attempt ${attempt.number}`;
    attempt.verified = true;
    const server = this.#cloud.server(task.serverId);
    if (!attempt.verifying) this.#breach('unverified', `${about} is verified and never came to VERIFY_RESIZE`);
    if (server?.vmState === 'resized' && !this.#cloud.hostsOf(task.target).includes(server.host))
      this.#breach('unverified', `${about} is verified on ${server.host}, which is not of ${task.target}`);
  }

  #settled(attempt: Attempt, act: 'confirm' | 'revert'): void {
    const { task } = attempt;
    const about = `${task.id} attempt ${attempt.number}`;
    if (attempt.settle !== null && attempt.settle !== act) this.#breach('both', `${about}: confirm and revert`);
    attempt.settle ??= act;
    if (!attempt.verifying) this.#breach('unverified', `${about}: ${act} before VERIFY_RESIZE`);
    if (act === 'confirm' && !attempt.verified && task.asked !== 'confirm')
      this.#breach('unverified', `${about}: confirm before its checks have passed, and nobody asked for it`);
  }

  #ended(type: string, data: Body['data']): void {
    const { taskId, attempt: number } = data;
    const task = this.#tasks.get(taskId);
    // Its message is left from a log that is lost.
    if (task === undefined && type === 'migration.skipped' && this.#former.has(taskId)) return;
    if (task === undefined) {
      this.#breach('unasked', `${taskId} has a result and was never proposed`);
      return;
    }
    const attempt = task.attempts.get(number);
    if (attempt?.ended === true) this.#breach('final', `${taskId} attempt ${number} ended twice`);
    if (attempt !== undefined) attempt.ended = true;
    const server = this.#cloud.server(task.serverId);
    if (tellsDamage(data)) this.#told.add(task.serverId);
    if (server !== null && attempt !== undefined && !this.#told.has(task.serverId)) this.#isTrue(type, task, server);
    if (type === 'migration.failed' && data.retryPending === true) return;
    if (++task.finals > 1) this.#breach('final', `${taskId} has ${task.finals} results`);
  }

  /** A server that no result calls damaged is as it was, on the host that the result says. */
  #isTrue(type: string, task: Task, server: CloudServer): void {
    const before = this.#before.get(task.serverId);
    if (server.vmState !== before || server.taskState !== null)
      this.#breach(
        'changed',
        `${task.id} ended, and its server is ${server.vmState} (${server.taskState}), not ${before}`,
      );
    const arrived = this.#cloud.hostsOf(task.target).includes(server.host);
    if (type === 'migration.completed' && !arrived)
      this.#breach('untrue', `${task.id} is said to have arrived, and its server is on ${server.host}`);
    if (type === 'migration.failed' && server.host !== task.from)
      this.#breach('untrue', `${task.id} is said to have failed, and its server is on ${server.host}`);
  }

  #breach(rule: CellRule, text: string): void {
    this.breaches.push({ rule, text, atMs: this.#now() });
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}
