import type { Rule } from '../rules.ts';
import type { Openings } from '../windows.ts';

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
  /** Without faults an aggregate has a decision about a snapshot of at most this age. */
  readonly decidedWithinMs: number;
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
  /** Kronos knows the NUMA cells of the hosts. */
  readonly cellsKnown: boolean;
}

/** The cloud's own record, as far as rules are judged by it. */
export interface CloudRecord {
  host(server: string): string | null;
  /** Of the server's group: policy and the other members that are on a host, or on their way to it. */
  companions(server: string, host: string): { readonly policy: string; readonly members: readonly string[] } | null;
  /** Whether new servers may come: up, enabled, not forced down. */
  open(host: string): boolean;
  /** Aggregates of Kronos that have the host. */
  aggregatesWith(host: string): readonly string[];
  /** Whether Nova's API reaches the database of the host's cell. */
  reachable(host: string): boolean;
  hypervisorVersion(host: string): number;
  /** Its service is disabled, which is a trait of its resource provider. */
  disabled(host: string): boolean;
  /** Servers with the same text are alike to Nova's scheduler; null: there is no such server. */
  shape(server: string): string | null;
  /** Whether the NUMA cells of a host take a server now. */
  cellsFit(server: string, host: string): boolean;
  /** Nova's `task_state` of a server. */
  taskState(server: string): string | null;
  /** Since when a host has no usable series, ms since the epoch; null: it has them. */
  unmeasuredSince(host: string): number | null;
  /** Since when a server has no usable series of some metric, where it is now, ms since the epoch; null: it has them. */
  unprofiledSince(server: string): number | null;
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
/** Nova's scheduler or a check of its computes refused a destination. */
interface NovaRefusal {
  readonly aggregate: string;
  readonly server: string;
  readonly host: string;
  /** When the log had it. */
  readonly ms: number;
}
export interface Attempt {
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
export interface Delivery {
  readonly sequence: number;
  /** From then on the server may deliver it to another. */
  deadlineMs: number;
}
/** A message on the work queue. */
export interface TaskMessage {
  readonly taskId: string;
  readonly attempt: number;
}
export interface Task {
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
  /** An operator closed it: its result may say so. Without force, only when Nova no longer works on its server. */
  closed: 'plainly' | 'forced' | null;
}
export interface Step {
  readonly taskId: string;
  readonly serverId: string;
  readonly phase: string;
  readonly dependsOn: readonly string[];
  readonly startBefore?: string | undefined;
}
export interface Plan {
  readonly id: string;
  readonly aggregate: string;
  readonly steps: readonly Step[];
  readonly sequence: number;
  readonly storedMs: number;
  /** By this time its windows were judged. */
  readonly snapshotMs: number;
  releasedMs: number | null;
  /** When it was approved in time. */
  approvedMs: number | null;
  /** Its tasks whose window had closed by then, and those that depend on them: they are not released. */
  late: ReadonlySet<string>;
  dispatched: boolean;
}

/** The tasks of steps that can start no more at a time. */
export function lateTasks(steps: readonly Omit<Step, 'phase' | 'serverId'>[], atMs: number): ReadonlySet<string> {
  const late = new Set<string>();
  for (let before = -1; before < late.size; ) {
    before = late.size;
    for (const { taskId, startBefore, dependsOn } of steps)
      if ((startBefore !== undefined && Date.parse(startBefore) <= atMs) || dependsOn.some((id) => late.has(id)))
        late.add(taskId);
  }
  return late;
}

export interface Aggregate {
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
  /** The options that planners wrote, in the order of the log. */
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
export interface Snapshot {
  readonly ms: number;
  readonly logEnd: number;
  readonly timeMs: number;
  readonly observedFromMs: number;
}
export interface Quarantine {
  readonly sequence: number;
  readonly ms: number;
  readonly untilMs: number;
}

export type Body = {
  readonly type: string;
  readonly id: string;
  readonly time: string;
  readonly aggregate: string;
  readonly by: { readonly service: string; readonly instance: string };
  // biome-ignore lint/suspicious/noExplicitAny: read as it is stored, without the schemas of the services
  readonly data: any;
};
/** Between a look and an act the world may change: what is true for no longer than this is no breach. */
export const RACE_MS = 15_000;

/** The facts that the parts of the checker share: the fold of the log, and the breaches found. */
export class Book {
  readonly breaches: Breach[] = [];
  readonly counts = new Map<string, number>();
  readonly rules: Rules;
  readonly cloud: CloudRecord;
  readonly now: () => number;
  readonly #onBreach: (breach: Breach) => void;
  readonly plans = new Map<string, Plan>();
  readonly tasks = new Map<string, Task>();
  readonly byServer = new Map<string, Task[]>();
  readonly aggregates = new Map<string, Aggregate>();
  readonly novaRefusals: NovaRefusal[] = [];
  /** The log was lost then, and nobody has stated which log is in its place. */
  doubtfulSinceMs: number | null = null;
  /** Of the logs that are lost. */
  readonly formerPlans = new Set<string>();
  readonly formerTasks = new Map<string, Task>();

  constructor(rules: Rules, cloud: CloudRecord, now: () => number, onBreach: (breach: Breach) => void) {
    this.rules = rules;
    this.cloud = cloud;
    this.now = now;
    this.#onBreach = onBreach;
  }

  breach(rule: Rule, text: string): void {
    const breach = { rule, text, atMs: this.now() };
    this.breaches.push(breach);
    this.#onBreach(breach);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  aggregate(name: string): Aggregate {
    let known = this.aggregates.get(name);
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
      this.aggregates.set(name, known);
    }
    return known;
  }

  forEach(name: string, act: (aggregate: Aggregate) => void): void {
    if (name === '_all_') for (const aggregate of this.aggregates.values()) act(aggregate);
    else act(this.aggregate(name));
  }

  task(
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
    let task = this.tasks.get(id);
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
        closed: null,
      };
      this.tasks.set(id, task);
      const others = this.byServer.get(serverId);
      if (others === undefined) this.byServer.set(serverId, [task]);
      else others.push(task);
    }
    return task;
  }

  /** When the task's plan was released or approved: its message may come to the work queue minutes later. */
  releasedMs({ planId, sinceMs }: Task): number {
    const plan = this.plans.get(planId);
    return plan?.releasedMs ?? plan?.approvedMs ?? sinceMs;
  }

  /** The log is lost: what is there from now on is another log. */
  lost(): void {
    this.doubtfulSinceMs = this.now();
    for (const id of this.plans.keys()) this.formerPlans.add(id);
    for (const task of this.tasks.values()) this.formerTasks.set(task.id, task);
    this.plans.clear();
    this.tasks.clear();
    this.byServer.clear();
    this.aggregates.clear();
    this.novaRefusals.length = 0;
  }
}
