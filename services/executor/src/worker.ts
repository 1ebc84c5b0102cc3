/** Takes tasks from the queue and brings each as far as it can be brought. */
import type { LogGuard } from '@kronos/checkpoints';
import { type Cancel, type Clock, Turns } from '@kronos/clock';
import type { Actor, MigrationRequested, StoredEvent } from '@kronos/contracts';
import {
  contextFrom,
  type EventLog,
  type LogView,
  type TaskDelivery,
  type TaskOutcome,
  type TaskWorker,
} from '@kronos/eventlog';
import { type AggregateState, type AllCaps, type LogState, optionsOf, refusalsOf } from '@kronos/projections';
import { attemptAttributes, attributes, type Logger, spans, withCorrelation, withSpan } from '@kronos/telemetry';
import { SpanKind, type Tracer } from '@opentelemetry/api';
import { hostsInEvent } from './attemptLog.ts';
import { StartBoard } from './board.ts';
import type { RunDeps } from './deliveredTask.ts';
import { runDrains } from './drains/drains.ts';
import { type LogReader, logReader } from './logReader.ts';
import type { TaskMeters } from './meters.ts';
import type { TaskOptions } from './options.ts';
import type { CheckedCloud } from './preflight.ts';
import type { CheckOptions } from './preflightRules.ts';
import { RecentMoves } from './recentMoves.ts';
import { recordDeadLetter } from './recordDeadLetter.ts';
import { runTask } from './run.ts';
import type { Task } from './taskFacts.ts';
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
  state: AggregateState,
  { taskId, planId, destination }: Task,
): Omit<CheckOptions, keyof ExecutorDeps['check'] | 'nowMs'> {
  const { restrictToAz, softRules, timezone, evacuationIgnoresWindows, moveUnknownTopology, movableDevices } =
    optionsOf(state);
  const { tasks, plans } = state;
  const planned = plans.get(planId)?.sequence ?? 0;
  return {
    restrictToAz,
    softRules,
    timezone,
    evacuationIgnoresWindows,
    awaited: [...tasks.values()].some(({ step }) => step.dependsOn.includes(taskId)),
    moveUnknownTopology,
    movableDevices,
    refusals: refusalsOf(state).filter(({ host, sequence }) => host === destination && sequence > planned),
  };
}

/** The boards on which tasks wait for their start, one for each aggregate. */
class StartBoards {
  readonly #boards: ReadonlyMap<string, StartBoard>;
  readonly #recent = new RecentMoves();
  readonly #clock: Clock;
  #endRoomCheck: Cancel | null = null;
  #closed = false;

  constructor({ aggregates, caps, clock, clockProblem, logger, meters }: ExecutorDeps, reader: LogReader) {
    this.#clock = clock;
    const boardOf = (aggregate: string): StartBoard =>
      new StartBoard({
        aggregate,
        at: () => reader.at(aggregate),
        refresh: () => reader.refresh(aggregate),
        caps,
        recent: this.#recent,
        clock,
        clockProblem,
        onWait(task, code, text) {
          meters.heldBack(task, code);
          logger.debug({ aggregate, taskId: task.taskId, code, text }, 'the start of a task is delayed');
        },
      });
    this.#boards = new Map(aggregates.map((aggregate) => [aggregate, boardOf(aggregate)]));
  }

  of(aggregate: string): StartBoard | undefined {
    return this.#boards.get(aggregate);
  }

  /** An event about a move concerns other aggregates too: its VM or a host may have come from one of them. */
  changed(stored: StoredEvent): void {
    const { event } = stored;
    this.#recent.note(stored);
    const one = hostsInEvent(event).length > 0 ? undefined : this.#boards.get(event.aggregate);
    if (one !== undefined) one.changed(stored);
    else for (const board of this.#boards.values()) board.changed(stored);
  }

  /**
   * Requeues some of the waiting tasks for as long as every place is taken: they may wait for a task that is still on the queue.
   *
   * @param isFull whether every place of this executor is taken
   */
  keepRoom(isFull: () => boolean): void {
    if (this.#closed) return;
    this.#endRoomCheck ??= this.#clock.after(ROOM_CHECK_MS, () => {
      this.#endRoomCheck = null;
      if (!isFull()) return;
      for (const board of this.#boards.values()) board.requeue(Math.ceil(board.waiting / 4));
      this.keepRoom(isFull);
    });
  }

  /** Ends the checks of room; the tasks go on waiting. */
  endRoomChecks(): void {
    this.#closed = true;
    this.#endRoomCheck?.();
  }

  close(): void {
    for (const board of this.#boards.values()) board.close();
  }
}

/** Tells the runs of tasks when an operator closes them with force. */
class ForcedCloses {
  readonly #runs = new Map<string, AbortController>();

  /** @param closed whether the log has such a close already */
  async during<T>(taskId: string, closed: boolean, run: (forced: AbortSignal) => Promise<T>): Promise<T> {
    const forced = new AbortController();
    this.#runs.set(taskId, forced);
    if (closed) forced.abort();
    try {
      return await run(forced.signal);
    } finally {
      if (this.#runs.get(taskId) === forced) this.#runs.delete(taskId);
    }
  }

  changed({ event }: StoredEvent): void {
    if (event.type === 'migration.closed' && event.data.force === true) this.#runs.get(event.data.taskId)?.abort();
  }
}

/** Runs a task in a span of its own. */
function runTraced(task: MigrationRequested, delivery: TaskDelivery, deps: RunDeps): Promise<TaskOutcome> {
  const { data } = task;
  const span = {
    kind: SpanKind.CONSUMER,
    parent: contextFrom(delivery.traceparent),
    attributes: {
      [attributes.aggregate]: task.aggregate,
      [attributes.correlationId]: task.correlationId,
      [attributes.phase]: data.phase,
      ...attemptAttributes(data),
    },
  };
  if (delivery.lost.aborted || delivery.stopping.aborted) return Promise.resolve({ kind: 'handOver' });
  return withSpan(deps.tracer, spans.task, span, async (active) => {
    const outcome = await withCorrelation(task.correlationId, () => runTask(task, delivery, deps));
    active.setAttribute(attributes.outcome, outcome.kind);
    return outcome;
  });
}

export function createExecutor(deps: ExecutorDeps): Executor {
  const { log, view, aggregates, cloud, options, by, clock, logger, tracer, meters } = deps;
  const reader = logReader(view);
  const boards = new StartBoards(deps, reader);
  const closes = new ForcedCloses();
  /** Another message for the same attempt, or one again after its delivery was lost, waits. */
  const attempts = new Turns();
  const trials = new Trials();
  const checkOptions = (task: Task): CheckOptions => ({
    ...deps.check,
    ...checkOptionsBy(reader.at(task.aggregate).state, task),
    nowMs: clock.read().wall,
  });

  async function handle(delivery: TaskDelivery): Promise<TaskOutcome> {
    const { task, aggregate } = delivery;
    boards.keepRoom(() => worker.held >= deps.concurrency);
    meters.delivered(aggregate, delivery.deliveries);
    delivery.lost.addEventListener('abort', () => meters.lost(aggregate), { once: true });
    if ((deps.guard?.problem ?? null) !== null) return { kind: 'later', delayMs: IN_DOUBT_MS };
    if ('unreadable' in task) return recordDeadLetter({ ...deps, reader }, delivery, task.unreadable, task.body);
    const board = boards.of(aggregate);
    if (board === undefined) return { kind: 'handOver' };
    const run = { log, reader, board, trials, cloud, checkOptions, options, by, clock, logger, tracer, meters };
    const { taskId, attempt } = task.data;
    return attempts.take(`${taskId}/${attempt}`, () => {
      const closed = reader.at(aggregate).state.tasks.get(taskId)?.closeAsked?.force === true;
      return closes.during(taskId, closed, (forced) => runTraced(task, delivery, { ...run, forced }));
    });
  }

  const { concurrency, ackWaitMs } = deps;
  const worker: TaskWorker = log.tasks({ aggregates, concurrency, ackWaitMs, handle });
  const drains = runDrains({
    log,
    reader,
    aggregates,
    nova: cloud.nova,
    dryRun: options.dryRun,
    problem: () => deps.guard?.problem ?? deps.clockProblem(),
    by,
    clock,
    logger,
  });
  drains.wake();

  async function follow(): Promise<void> {
    try {
      for await (const stored of view.changes()) {
        boards.changed(stored);
        closes.changed(stored);
        drains.changed(stored);
      }
    } finally {
      // Without the log there is no permission for the held tasks: their moves are neither followed nor aborted.
      void worker.stop();
    }
  }

  return {
    get held() {
      return worker.held;
    },
    done: follow(),
    async stop(graceMs) {
      boards.endRoomChecks();
      drains.stop();
      await worker.stop(graceMs);
      boards.close();
    },
  };
}
