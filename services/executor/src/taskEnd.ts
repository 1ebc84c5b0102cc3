/** How an attempt ends and what follows it: the rules of the stage explaining, and the outcome that goes onto the log. */
import { type CellResult, type NovaFacts, type Reason, SERVER_IN_ERROR, timeMs } from '@kronos/contracts';
import type { ReleaseReasonCode } from '@kronos/facts';
import {
  type Account,
  cancelled,
  elsewhere,
  failedMigration,
  type JudgedFailure,
  NO_ACCOUNT,
  reason,
} from './failure.ts';
import type { AttemptOrders, Ended, Fact, Next, Reading, ServerFacts, Task } from './taskFacts.ts';
import { type AttemptOutcome, type Run, type Stage, type TaskState, to, UnexpectedFact } from './taskStages.ts';

export const finish = (
  state: TaskState,
  code: ReleaseReasonCode,
  text: string,
  outcome: AttemptOutcome = { kind: 'done' },
): TaskState => to(state, { at: 'finished', outcome, why: { code, text } });

export const handOver = (state: TaskState): TaskState =>
  finish(state, 'handed-over', 'this executor stops; another one goes on', { kind: 'handOver' });

/** Whether Nova is asked again why a migration ended otherwise; not for an operator who closes the task with force. */
export const asksAgain = ({ options }: TaskState, tries: number, fact: Fact): boolean =>
  fact.kind === 'blind' && fact.orders.closeAsked?.force !== true && tries + 1 < options.explainTries;

/** Whether a person stops the task, and so wants no further attempt. */
export const isStopped = ({ stopAsked, closeAsked }: AttemptOrders): boolean => stopAsked || closeAsked !== null;

/** The same failure, after which no attempt follows. */
export const finalOf = (failure: JudgedFailure): JudgedFailure => ({ ...failure, fault: 'none' });

export function explained(state: TaskState, stage: Stage & { at: 'explaining' }, fact: Fact): TaskState {
  const { run, server, tries } = stage;
  if (fact.kind === 'draining') return handOver(state);
  if (asksAgain(state, tries, fact)) return to(state, { ...stage, tries: tries + 1 });
  if (fact.kind !== 'explained' && fact.kind !== 'blind') throw new UnexpectedFact(stage.at, fact.kind);
  const account = fact.kind === 'explained' ? fact.account : NO_ACCOUNT;
  const nova = { ...novaFacts(run, fact.at), reason: account.story?.text ?? null };
  const status = run.status ?? 'unknown';
  if (server.host === state.task.destination) {
    const warnings: Reason[] = [];
    if (status !== 'completed') warnings.push(endedOtherwise(status, account));
    if (!runs(server)) warnings.push(notUp(server, account));
    return to(state, { at: 'ending', ended: completed(server.host, warnings, nova), expected: null });
  }
  const seen = { status, destCompute: run.destCompute, serverInError: inError(server) };
  const failure = failedMigration(seen, account, state.task);
  const stopped = run.stop?.cause === 'operator' || isStopped(fact.orders);
  return fail(state, stopped ? finalOf(failure) : failure, fact.at, { started: true, nova });
}

export const completed = (host: string, warnings: Reason[], nova: NovaFacts): Ended => ({
  type: 'completed',
  outcome: 'migrated',
  host,
  warnings,
  nova,
});

/** Ends the attempt; a further one follows where it can help and may still be made. */
export function fail(
  state: TaskState,
  failure: JudgedFailure,
  at: Reading,
  {
    expected = null,
    ...facts
  }: {
    readonly started: boolean;
    readonly nova: NovaFacts | null;
    readonly cell?: CellResult;
    /** Sequence of the log after which the result may stand; null: after any. */
    readonly expected?: number | null;
  },
): TaskState {
  const { errorType, cause, hostAtFault } = failure;
  const next = nextAttempt(state, failure, at);
  const ended: Ended = { type: 'failed', errorType, reason: failure.reason, cause, hostAtFault, next, ...facts };
  return to(state, { at: 'ending', ended, expected });
}

/** Ends an attempt whose migration was asked for. */
export const failAfter = (state: TaskState, run: Run, failure: JudgedFailure, at: Reading): TaskState =>
  fail(state, failure, at, { started: true, nova: novaFacts(run, at) });

/** The attempt that follows a failure; null when the failure is final. */
function nextAttempt(
  { task, options }: Pick<TaskState, 'task' | 'options'>,
  failure: JudgedFailure,
  at: Reading,
): Next | null {
  const { attempt } = task;
  if (failure.fault === 'none' || attempt > options.maxRetries) return null;
  const destination = failure.fault === 'destination' ? nextDestination(task) : task.destination;
  if (destination === null) return null;
  const wait = Math.min(options.retryBackoffMs * 2 ** (attempt - 1), options.retryBackoffMaxMs);
  const notBeforeMs = failure.fault === 'destination' ? at.wall : at.wall + wait;
  if (notBeforeMs >= timeMs(task.notAfter)) return null;
  return { attempt: attempt + 1, destination, notBeforeMs };
}

/** The destination after the current one in the order of the plan: `to`, then the alternates. */
function nextDestination(task: Task): string | null {
  const all = [task.to, ...task.alternates];
  return all[all.indexOf(task.destination) + 1] ?? null;
}

export function gone(state: TaskState, run: Run, at: Reading): TaskState {
  return failAfter(state, run, cancelled('server-gone', 'Nova does not know the server any more'), at);
}

export const movedByOthers = (host: string | null): JudgedFailure => cancelled('moved-by-others', elsewhere(host));

export const abortedByOthers = (): JudgedFailure =>
  cancelled('aborted-by-others', 'somebody else aborted the migration in Nova');

export const operatorStopped = (): JudgedFailure => cancelled('operator', 'an operator stopped it');

export const runs = (server: ServerFacts): boolean =>
  server.taskState === null && (server.status === 'ACTIVE' || server.status === 'PAUSED');

export const inError = (server: ServerFacts): boolean => server.vmState === 'error' || server.status === 'ERROR';

export function notUp(server: ServerFacts, account: Account = NO_ACCOUNT): Reason {
  const facts = { status: server.status, vmState: server.vmState, taskState: server.taskState };
  if (!inError(server))
    return reason('server-not-up', `the server is on its destination with status ${server.status}`, facts);
  const down = account.hosts.destination === 'down' ? ', whose nova-compute is down' : '';
  return reason(SERVER_IN_ERROR, `the server is in ERROR on ${server.host}${down}`, facts);
}

const endedOtherwise = (status: string, { story }: Account): Reason =>
  reason(
    'ended-otherwise',
    `Nova calls the migration ${status}, and the server is on its destination${story === null ? '' : `: ${story.text}`}`,
    { status, event: story?.event ?? null },
  );

export function novaFacts(run: Run, at: Reading): NovaFacts {
  const end = run.overAt ?? at.mono;
  const running = run.watch?.runningSince ?? null;
  return {
    migrationId: run.migrationId,
    requestId: run.requestId,
    status: run.status,
    reason: null,
    queuedMs: run.acceptedAt === null || running === null ? null : Math.round(running - run.acceptedAt),
    runningMs: running === null ? null : Math.round(end - running),
    totalMs: run.acceptedAt === null ? null : Math.round(end - run.acceptedAt),
    memoryBytes: run.watch?.memoryBytes ?? null,
    diskBytes: run.watch?.diskBytes ?? null,
  };
}
