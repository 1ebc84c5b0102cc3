/** Takes tasks from the queue and brings each as far as it can be brought. */
import type { LogGuard } from '@kronos/checkpoints';
import type { Cancel } from '@kronos/clock';
import type { Actor, MigrationRequested, StoredEvent } from '@kronos/contracts';
import {
  contextFrom,
  type EventLog,
  type LogView,
  type TaskDelivery,
  type TaskOutcome,
  type TaskWorker,
} from '@kronos/eventlog';
import type { AggregateState, AllCaps, LogState } from '@kronos/projections';
import { UTC } from '@kronos/rules';
import { attributes, type Logger, spans, withCorrelation, withSpan } from '@kronos/telemetry';
import { SpanKind, type Tracer } from '@opentelemetry/api';
import { StartBoard } from './board.ts';
import { bury } from './bury.ts';
import type { Clock } from './clock.ts';
import { tendDrains } from './drains/drains.ts';
import { logReader } from './logReader.ts';
import type { TaskMeters } from './meters.ts';
import type { TaskOptions } from './options.ts';
import type { CheckedCloud, CheckOptions } from './preflight.ts';
import { runTask } from './run.ts';
import type { Task } from './taskStages.ts';
import { Trials } from './trials.ts';

export interface ExecutorDeps {
  readonly log: EventLog;
  readonly view: LogView<LogState>;
  /** While it has a problem no task is worked on. Absent: the log is not in doubt. */
  readonly guard?: Pick<LogGuard, 'problem'>;
  /** Those that this executor serves. */
  readonly aggregates: readonly string[];
  readonly cloud: CheckedCloud;
  /** All aggregates in scope, and what else pre-flight depends on. */
  readonly check: Pick<CheckOptions, 'aggregates' | 'optOut' | 'force'>;
  readonly options: TaskOptions;
  readonly caps: AllCaps;
  readonly ackWaitMs: number;
  /** Tasks held at once, waiting ones included. */
  readonly concurrency: number;
  readonly by: Actor;
  readonly clock: Clock;
  /** The problem of the own clock; null: none. By a wrong clock nothing new is started. */
  readonly clockProblem: () => string | null;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly meters: TaskMeters;
}

export interface Executor {
  /** Tasks held now. */
  readonly held: number;
  /** Settles when the log can no longer be followed. */
  readonly done: Promise<void>;
  /** Takes no more, hands over what runs. */
  stop(graceMs?: number): Promise<void>;
}

/** Requeue delay of tasks while the log is in doubt. */
const IN_DOUBT_MS = 5_000;
/** Interval between two checks whether waiting tasks use all places of this executor, while it holds that many. */
const ROOM_CHECK_MS = 1000;

/** The part of a pre-flight's options that the log says. */
function checkOptionsBy(
  { configured, tasks, plans, refusals }: AggregateState,
  { taskId, planId, destination }: Task,
): Omit<CheckOptions, keyof ExecutorDeps['check'] | 'nowMs'> {
  const options = configured?.options;
  const planned = plans.get(planId)?.sequence ?? 0;
  return {
    restrictToAz: options?.restrictToAz ?? false,
    softRules: options?.softRules ?? 'veto',
    timezone: options?.timezone ?? UTC,
    evacuationIgnoresWindows: options?.evacuationIgnoresWindows ?? false,
    awaited: [...tasks.values()].some(({ step }) => step.dependsOn.includes(taskId)),
    moveUnknownTopology: options?.moveUnknownTopology ?? false,
    refusals: [...refusals.values()].filter(({ host, sequence }) => host === destination && sequence > planned),
  };
}

export function createExecutor(deps: ExecutorDeps): Executor {
  const { log, view, logger, clock, options, meters, tracer } = deps;
  const reader = logReader(view);
  const boards = new Map(deps.aggregates.map((aggregate) => [aggregate, boardOf(aggregate)]));
  const trials = new Trials();
  /** Task and attempt -> what this process does for it. */
  const held = new Map<string, Promise<void>>();

  function boardOf(aggregate: string): StartBoard {
    return new StartBoard({
      aggregate,
      at: () => reader.at(aggregate),
      refresh: () => reader.refresh(aggregate),
      caps: deps.caps,
      clock,
      clockProblem: deps.clockProblem,
      onWait(task, code, text) {
        meters.heldBack(task, code);
        logger.debug({ aggregate, taskId: task.taskId, code, text }, 'the start of a task is delayed');
      },
    });
  }

  const checkOptions = (task: Task): CheckOptions => ({
    ...deps.check,
    ...checkOptionsBy(reader.at(task.aggregate).state, task),
    nowMs: clock.read().wall,
  });

  async function handle(delivery: TaskDelivery): Promise<TaskOutcome> {
    const { task } = delivery;
    checkRoom();
    meters.delivered(delivery.aggregate, delivery.deliveries);
    delivery.lost.addEventListener('abort', () => meters.lost(delivery.aggregate), { once: true });
    if ((deps.guard?.problem ?? null) !== null) return { kind: 'later', delayMs: IN_DOUBT_MS };
    if ('unreadable' in task) return bury({ ...deps, reader }, delivery, task.unreadable, task.body);
    const board = boards.get(delivery.aggregate);
    if (board === undefined) return { kind: 'handOver' };
    // Another message for the same attempt, or this one again after its delivery was lost: one after the other.
    const key = `${task.data.taskId}/${task.data.attempt}`;
    const before = held.get(key) ?? Promise.resolve();
    const work = before.then(() => traced(task, delivery, board));
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    held.set(key, settled);
    try {
      return await work;
    } finally {
      if (held.get(key) === settled) held.delete(key);
    }
  }

  function traced(task: MigrationRequested, delivery: TaskDelivery, board: StartBoard): Promise<TaskOutcome> {
    const { data } = task;
    const span = {
      kind: SpanKind.CONSUMER,
      parent: contextFrom(delivery.traceparent),
      attributes: {
        [attributes.aggregate]: task.aggregate,
        [attributes.correlationId]: task.correlationId,
        [attributes.planId]: data.planId,
        [attributes.taskId]: data.taskId,
        [attributes.attempt]: data.attempt,
        [attributes.phase]: data.phase,
        [attributes.serverId]: data.serverId,
        [attributes.sourceHost]: data.from,
        [attributes.destinationHost]: data.destination,
      },
    };
    const { by, cloud } = deps;
    if (delivery.lost.aborted || delivery.stopping.aborted) return Promise.resolve({ kind: 'handOver' });
    return withSpan(tracer, spans.task, span, async (active) => {
      const run = { log, reader, board, trials, cloud, checkOptions, options, by, clock, logger, tracer, meters };
      const outcome = await withCorrelation(task.correlationId, () => runTask(task, delivery, run));
      active.setAttribute(attributes.outcome, outcome.kind);
      return outcome;
    });
  }

  const worker: TaskWorker = log.tasks({
    aggregates: deps.aggregates,
    concurrency: deps.concurrency,
    ackWaitMs: deps.ackWaitMs,
    handle,
  });

  let endRoomCheck: Cancel | null = null;
  let stopping = false;
  /** Waiting tasks must not take every slot: they may wait for a task that is still on the queue. */
  function checkRoom(): void {
    if (stopping) return;
    endRoomCheck ??= clock.after(ROOM_CHECK_MS, () => {
      endRoomCheck = null;
      if (worker.held < deps.concurrency) return;
      for (const board of boards.values()) board.requeue(Math.ceil(board.waiting / 4));
      checkRoom();
    });
  }
  const drains = tendDrains({
    log,
    reader,
    aggregates: deps.aggregates,
    nova: deps.cloud.nova,
    dryRun: options.dryRun,
    problem: () => deps.guard?.problem ?? deps.clockProblem(),
    by: deps.by,
    clock,
    logger,
  });
  drains.wake();

  async function follow(): Promise<void> {
    try {
      for await (const stored of view.changes()) notify(stored);
    } finally {
      // Without the log there is no permission for the held tasks: their moves are neither followed nor aborted.
      void worker.stop();
    }
  }
  function notify(stored: StoredEvent): void {
    const { aggregate } = stored.event;
    const one = boards.get(aggregate);
    if (one !== undefined) one.changed(stored);
    else for (const board of boards.values()) board.changed(stored);
    drains.changed(stored);
  }

  return {
    get held() {
      return worker.held;
    },
    done: follow(),
    async stop(graceMs) {
      stopping = true;
      endRoomCheck?.();
      drains.stop();
      await worker.stop(graceMs);
      for (const board of boards.values()) board.close();
    },
  };
}
