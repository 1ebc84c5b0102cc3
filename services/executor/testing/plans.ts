/** Plans for an executor to carry out, put on the log and on the work queue as the planner does it, and their results. */
import { until } from '@kronos/clock/testing';
import {
  type CellMove,
  cellsPlanId,
  type LogEvent,
  type LogEventOf,
  type MigrationRequested,
  messageId,
  type PlanLoads,
  type StoredEvent,
  streamNames,
  taskId,
} from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { commandEvent } from '@kronos/eventlog/testing';
import type { TaskFacts } from '@kronos/projections';
import { type StepInput, testLog } from '@kronos/projections/testing';

/** A move as tests name it: the server by name. */
export type Move = Omit<StepInput, 'serverId'> & { readonly server: string };

interface ReleaseOptions {
  readonly planTtlSeconds?: number;
  /** Changes a task's message before it is published. */
  readonly edit?: (message: MigrationRequested) => MigrationRequested;
  /** Moves between cells: what their steps say; null: live migrations. */
  readonly cell?: (Partial<CellMove> & Pick<CellMove, 'target'>) | null;
}

export type Result = StoredEvent & {
  readonly event: LogEventOf<
    | 'migration.started'
    | 'migration.observed'
    | 'migration.abortRefused'
    | 'migration.verifying'
    | 'migration.verified'
    | 'migration.confirmRequested'
    | 'migration.revertRequested'
    | 'migration.completed'
    | 'migration.failed'
    | 'migration.skipped'
  >;
};
export type Final = LogEventOf<'migration.completed' | 'migration.failed' | 'migration.skipped'>;

type TaskCommand =
  | 'migration.cancelled'
  | 'migration.aborted'
  | 'migration.closed'
  | 'migration.confirmAsked'
  | 'migration.revertAsked';

export interface Plans {
  readonly log: EventLog;
  /** Puts a released plan on the log and its tasks on the queue; gives the tasks' ids. */
  release(moves: readonly Move[], options?: ReleaseOptions): Promise<readonly string[]>;
  /** A person's command about a task. */
  command(type: TaskCommand, task: string, more?: { readonly force: true }): Promise<void>;
  pause(paused: boolean): Promise<void>;
  /** The results on the log, oldest first. */
  results(): Promise<readonly Result[]>;
  /** The final result of each of these tasks, once all have one. Rejects after `withinMs`. */
  finals(tasks: readonly string[], withinMs?: number): Promise<readonly Final[]>;
}

/** Sets up a nats-server for one aggregate; the log is closed by the caller. `uuid`: of a server by the name a move has. */
export async function openPlans(setup: {
  readonly natsUrl: string;
  readonly aggregate: string;
  readonly ackWaitSeconds: number;
  readonly uuid: (server: string) => string;
}): Promise<Plans> {
  const { natsUrl, aggregate, ackWaitSeconds, uuid } = setup;
  const log = await connectEventLog({ servers: [natsUrl], name: 'bed' });
  await log.provision({
    limits: { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 1024 ** 2, logMaxBytes: 256 * 1024 ** 2 },
    replicas: 1,
    aggregates: [aggregate],
    ackWaitSeconds,
  });
  const results = resultsOf(log, aggregate, (await log.lastSequence(streamNames.log)) + 1);
  let released = 0;
  const plans: Plans = {
    log,
    async release(moves, { planTtlSeconds = 3600, edit = (message: MigrationRequested) => message, cell = null } = {}) {
      released += 1;
      // Each plan is decided on a snapshot a minute later than the one before it.
      const draft = testLog(aggregate, Date.now() + released * 60_000);
      draft.configured({ planTtlSeconds });
      const steps = stepsOf(moves, uuid);
      const planId = cell === null ? balanced(draft, steps) : betweenCells(draft, aggregate, steps, cell);
      draft.dispatched(planId, moves.length);
      const state = draft.state(aggregate);
      for (const { event } of draft.events)
        await log.append({
          ...(event as LogEvent),
          id: unique(event as LogEvent, planId),
          time: new Date().toISOString(),
        });
      const ids = moves.map((_, i) => taskId(planId, i + 1));
      for (const id of ids) {
        const facts = state.tasks.get(id);
        if (facts === undefined) throw new Error(`no task ${id}`);
        await log.append(edit(requestOf(aggregate, planId, facts.step, planTtlSeconds)));
      }
      return ids;
    },
    async command(type, task, more) {
      await log.append(commandEvent(type, aggregate, nextCommandId(), { taskId: task, ...more }));
    },
    async pause(paused) {
      const type = paused ? 'aggregate.paused' : 'aggregate.resumed';
      await log.append(commandEvent(type, aggregate, nextCommandId(), {}));
    },
    results,
    finals: (tasks, withinMs) => awaitFinals(() => plans.results(), tasks, withinMs),
  };
  return plans;
}

/** The first attempt of a step, which may start now. */
function requestOf(
  aggregate: string,
  planId: string,
  { delaySeconds, ...step }: TaskFacts['step'],
  planTtlSeconds: number,
): MigrationRequested {
  const now = Date.now();
  return {
    type: 'migration.requested',
    version: 1,
    id: messageId.requested(step.taskId, 1),
    time: new Date(now).toISOString(),
    aggregate,
    by: { service: 'planner', instance: 'test', version: '0' },
    correlationId: planId,
    causationId: messageId.decided(planId),
    data: {
      ...step,
      planId,
      attempt: 1,
      destination: step.to,
      notBefore: new Date(now + delaySeconds * 1000).toISOString(),
      notAfter: new Date(now + planTtlSeconds * 1000).toISOString(),
    },
  };
}

async function awaitFinals(
  results: () => Promise<readonly Result[]>,
  tasks: readonly string[],
  withinMs: number | undefined,
): Promise<readonly Final[]> {
  let seen: readonly Result[] = [];
  const found = () => {
    const finals = seen.map(({ event }) => event).filter(isFinal);
    return tasks.map((id) => finals.find((event) => event.data.taskId === id));
  };
  const look = async () => {
    // The server may be away: that is what some tests are about.
    seen = await results().catch(() => []);
    const finals = found();
    return finals.every((event) => event !== undefined) && finals;
  };
  const missing = () => {
    const without = tasks.filter((_, i) => found()[i] === undefined);
    const last = seen.map(({ event }) => `${event.type} ${event.data.taskId}/${event.data.attempt}`);
    return `a final result of ${without.join(', ')}; on the log: ${last.join('; ')}`;
  };
  return await until(look, withinMs, missing);
}

const policyOf = (move: number): string => `policy-${move + 1}`;

const stepsOf = (moves: readonly Move[], uuid: (server: string) => string): StepInput[] =>
  moves.map(({ server, ...move }, i) => ({
    ...move,
    serverId: uuid(server),
    weights: { [policyOf(i)]: { source: 0.2, destination: 0.2 } },
  }));

/** A policy for each move, by which only its source carries much: each move helps, whatever the other moves do. */
const loadsOf = (moves: readonly StepInput[]): PlanLoads => ({
  policies: moves.map((_, i) => ({ policy: policyOf(i), weight: 1, threshold: 0.2 })),
  hosts: [...new Set(moves.flatMap(({ from, to, alternates = [] }) => [from, to, ...alternates]))].map((host) => ({
    host,
    values: moves.map(({ from }) => (from === host ? 0.9 : 0.1)),
  })),
});

/** A released plan on the draft; gives its id. */
const balanced = (draft: ReturnType<typeof testLog>, steps: readonly StepInput[]): string =>
  draft.decided('released', steps, { loads: loadsOf(steps) });

/** Reads the results of an aggregate from this sequence on. Tests ask every few milliseconds: each event is read once. */
function resultsOf(log: EventLog, aggregate: string, from: number): () => Promise<readonly Result[]> {
  const found: Result[] = [];
  let next = from;
  const read = async () => {
    for await (const stored of log.replay({ from: next })) {
      next = stored.sequence + 1;
      const { event } = stored;
      if (event.aggregate !== aggregate) continue;
      switch (event.type) {
        case 'migration.started':
        case 'migration.observed':
        case 'migration.abortRefused':
        case 'migration.verifying':
        case 'migration.verified':
        case 'migration.confirmRequested':
        case 'migration.revertRequested':
        case 'migration.completed':
        case 'migration.failed':
        case 'migration.skipped':
          found.push({ ...stored, event });
      }
    }
  };
  let reading: Promise<void> = Promise.resolve();
  return async () => {
    // One reading after the other, or two would find the same event.
    reading = reading.catch(() => undefined).then(read);
    await reading;
    return [...found];
  };
}

export const isFinal = (event: Result['event']): event is Final =>
  event.type === 'migration.completed' ||
  event.type === 'migration.skipped' ||
  (event.type === 'migration.failed' && !event.data.retryPending);

/** Every draft counts its commands anew: with the plan's id theirs are unique on a server of several tests. */
const unique = ({ id }: LogEvent, planId: string): string =>
  /^(control|plan\.proposed):/.test(id) ? `${id}:${planId}` : id;

/** An approved plan between cells on the draft; gives its id. */
function betweenCells(
  draft: ReturnType<typeof testLog>,
  aggregate: string,
  steps: readonly StepInput[],
  cell: Partial<CellMove> & Pick<CellMove, 'target'>,
): string {
  const commandId = `cells-${process.pid}-${draft.nowMs}`;
  const planId = cellsPlanId(aggregate, commandId);
  draft.cellsProposed(steps, {
    to: cell.target,
    change: (data) => ({
      ...data,
      commandId,
      planId,
      steps: data.steps.map((step) => ({
        ...step,
        taskId: taskId(planId, step.step),
        ...(step.cell === undefined ? {} : { cell: { ...step.cell, verifySeconds: 0, ...cell } }),
      })),
    }),
  });
  draft.approved(planId);
  return planId;
}

let commands = 0;

function nextCommandId(): string {
  commands += 1;
  return `test-${process.pid}-${commands}`;
}
