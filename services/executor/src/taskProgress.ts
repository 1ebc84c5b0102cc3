/** From the POST to the end that Nova shows: the rules of the stages seeking and following. */
import { closedText } from '@kronos/contracts';
import { type Overdue, overdue, startWatch, watched } from './deadline.ts';
import { cancelled, failureFor, type JudgedFailure, reason } from './failure.ts';
import type { TaskOptions } from './options.ts';
import {
  abortedByOthers,
  completed,
  failAfter,
  gone,
  handOver,
  movedByOthers,
  notUp,
  novaFacts,
  operatorStopped,
  runs,
} from './taskEnd.ts';
import type { AttemptOrders, Fact, MigrationFacts, NovaLook, Reading, ServerFacts, Stop, Task } from './taskFacts.ts';
import { mayBeBusy, type Run, type Stage, type TaskState, to, UnexpectedFact } from './taskStages.ts';

/** The answers to a look that are no look. */
export function unseen(state: TaskState, fact: Fact, stage: Stage & { at: 'seeking' | 'following' }): TaskState {
  if (fact.kind === 'blind') {
    // One call that failed says nothing of the migration, which would count towards no limit: a close with force waits for the next look.
    const told = state.blind === 0 && !fact.orders.ended ? null : obeyed(state, stage.run, null, fact);
    return told ?? to({ ...state, blind: state.blind + 1 }, { ...stage, run: { ...stage.run, idleSince: null } });
  }
  if (fact.kind === 'draining') return handOver(state);
  throw new UnexpectedFact(stage.at, fact.kind);
}

/**
 * The migration of this attempt: a live migration off the source that is newer than what was there before the POST, to this
 * destination or (until Nova's conductor has chosen) to none. Of several the oldest: while it runs no other can begin.
 */
function ours(
  migrations: readonly MigrationFacts[],
  newestMigrationId: number,
  move: { readonly from: string; readonly destination: string },
): MigrationFacts | null {
  let found: MigrationFacts | null = null;
  for (const m of migrations) {
    const fits =
      m.type === 'live-migration' &&
      m.id > newestMigrationId &&
      (m.sourceCompute === null || m.sourceCompute === move.from) &&
      (m.destCompute === null || m.destCompute === move.destination);
    if (fits && (found === null || m.id < found.id)) found = m;
  }
  return found;
}

const FINAL: ReadonlySet<string> = new Set(['completed', 'failed', 'error', 'cancelled']);

/**
 * Time for which a close waits for Nova to end the move. Together with the look before it and the look after it, it is
 * shorter than the time after which a planner ends the task.
 */
const CLOSE_WAIT_MS = 30_000;

/** The run with what an operator asked of it. */
function withOrders(run: Run, { stopAsked, closeAsked }: AttemptOrders, at: Reading): Run {
  const asked = stopAsked || closeAsked !== null;
  const stop: Stop | null = run.stop ?? (asked ? { cause: 'operator' } : null);
  return { ...run, stop, closeSince: closeAsked === null ? null : (run.closeSince ?? at.mono) };
}

/**
 * Whether the move may still end without the close: Nova has just ended it, or shows the server idle, or works on it and has not refused
 * to abort it. A task that is closed meanwhile would leave a migration that counts towards no limit.
 */
function mayStillEnd(
  { abort, closeSince, status }: Run,
  { from, destination }: Task,
  server: NovaLook['server'],
  at: Reading,
): boolean {
  if (server === null || server === 'gone' || at.mono - (closeSince ?? at.mono) >= CLOSE_WAIT_MS) return false;
  if (FINAL.has(status ?? '')) return true;
  // Nova shows the server on its destination before it ends the migration.
  if (server.host === destination) return true;
  if (server.host !== from) return false;
  if (server.taskState !== null) return abort?.answer !== 'refused';
  // Nova shows the server idle before it ends the migration, and may have ended it since the row was read: a later look shows it.
  return status !== null;
}

/** An event of the log that ends an attempt; null: none. Without force, a close waits until Nova shows that nothing works on the server. */
function obeyed(
  state: TaskState,
  run: Run,
  server: NovaLook['server'],
  { orders, at }: { readonly orders: AttemptOrders; readonly at: Reading },
): TaskState | null {
  if (orders.ended) return to(state, { at: 'received' });
  const { closeAsked } = orders;
  if (closeAsked === null) return null;
  // A migration that Nova does not show may still begin; the operator's stop ends the attempt when it does not.
  if (closeAsked.force !== true && (mayBeBusy(server) || run.migrationId === null)) return null;
  if (mayStillEnd(run, state.task, server, at)) return null;
  const seen =
    run.migrationId === null ? 'no migration was seen' : `Nova called migration ${run.migrationId} ${run.status}`;
  const text = `${closedText(closeAsked)}; ${seen}`;
  if (server !== null && server !== 'gone' && server.host === state.task.destination) {
    const warnings = [reason('closed', text), ...(runs(server) ? [] : [notUp(server)])];
    return to(state, { at: 'ending', ended: completed(server.host, warnings, novaFacts(run, at)), expected: null });
  }
  return failAfter(state, run, cancelled('closed', text), at);
}

type Looked = Extract<Fact, { readonly kind: 'looked' }>;

export function sought(state: TaskState, before: Run, fact: Looked): TaskState {
  const { task, options } = state;
  const { look, orders, at } = fact;
  const run = withOrders(before, orders, at);
  const told = obeyed(state, run, look.server, fact);
  if (told !== null) return told;
  const found = ours(look.migrations, run.newestMigrationId, task);
  if (found !== null) {
    const { id, status, destCompute } = found;
    return to(state, { at: 'noting', run: { ...run, migrationId: id, status, destCompute } });
  }
  const stay = to(state, { at: 'seeking', run, soon: false });
  const { server } = look;
  if (server === null) return stay;
  if (server === 'gone') return gone(state, run, at);
  // An empty list means nothing for as long as Nova may still be at work.
  if (at.mono - run.since < options.takeoverMs || server.taskState !== null) return stay;
  // A restart of the source's compute frees the server, and the conductor begins the request all the same.
  if (look.accepted && at.mono - run.since < options.queueTimeoutMs) return stay;
  if (server.host === task.destination) {
    const warning = reason(
      'no-migration-seen',
      'the server is on its destination; Nova shows no migration that took it there',
    );
    const ended = completed(task.destination, [warning], novaFacts(run, at));
    return to(state, { at: 'ending', ended, expected: null });
  }
  if (server.host !== task.from) return failAfter(state, run, movedByOthers(server.host), at);
  if (run.stop?.cause === 'operator') return failAfter(state, run, operatorStopped(), at);
  const waited = Math.round((at.mono - run.since) / 1000);
  const text = `Nova shows no migration after ${waited} s; the server is on its source and idle`;
  return failAfter(state, run, failureFor('no-migration', { errorType: 'NovaClientError', text }), at);
}

/** Statuses from which Nova lets a live migration be aborted: running, since 2.65 also the two before it. */
const ABORTABLE: ReadonlySet<string> = new Set(['queued', 'preparing', 'running']);

export function followed(state: TaskState, before: Run, fact: Looked): TaskState {
  const { task, options } = state;
  const { look, orders, at } = fact;
  const { server } = look;
  if (server === 'gone') return gone(state, before, at);
  const row = look.migrations.find((m) => m.id === before.migrationId);
  const listed = withRow(withOrders(before, orders, at), row, at);
  const told = obeyed(state, listed, server, fact);
  if (told !== null) return told;
  if (row !== undefined && FINAL.has(row.status))
    return over(state, { ...listed, overAt: listed.overAt ?? at.mono }, look, at);
  const seen = withProgress(listed, look, at);
  if (server !== null && isAbandoned(seen, at, options)) return abandoned(state, seen, server, at);
  const late = (): Stop | null =>
    idleTooLong(seen, at, options) ?? overdue({ ...seen, usual: orders.usual ?? null }, task, at.mono, options);
  const stop = seen.stop ?? late();
  const run = { ...seen, stop };
  const { migrationId } = run;
  if (stop !== null && migrationId !== null && row !== undefined && mayAbort(run, at, options))
    return run.noted ? aborting(state, run, migrationId, at) : to(state, { at: 'stopping', run, migrationId, stop });
  return to(state, { at: 'following', run, soon: false });
}

const withRow = (run: Run, row: MigrationFacts | undefined, at: Reading): Run =>
  row === undefined
    ? { ...run, goneSince: run.goneSince ?? at.mono }
    : { ...run, status: row.status, destCompute: row.destCompute, goneSince: null };

/** The run with the counts of its bytes, and since when its server is idle. */
function withProgress(run: Run, { server, progress }: NovaLook, at: Reading): Run {
  const started = run.status?.startsWith('running') === true ? startWatch(at.mono) : null;
  const watch = run.watch ?? started;
  const idle = server !== null && server !== 'gone' && server.taskState === null && server.host !== null;
  return {
    ...run,
    watch: watch === null ? null : watched(watch, progress, at.mono),
    idleSince: idle ? (run.idleSince ?? at.mono) : null,
  };
}

/** Whether Nova lets the migration be aborted now, and was not asked a moment ago. */
function mayAbort(run: Run, at: Reading, options: TaskOptions): boolean {
  const { abort } = run;
  const status = run.status ?? '';
  if (!ABORTABLE.has(status) && idleTooLong(run, at, options) === null) return false;
  if (abort === null || at.mono - abort.at >= options.abortAgainMs) return true;
  return abort.answer !== 'accepted' && abort.status !== status;
}

/**
 * Time for which a server must be idle before its migration may be abandoned: longer than Nova ever takes to make its records
 * consistent. A restart
 * of the source's compute frees the server of an accepted migration, and nova-conductor goes on with it all the same. A row that
 * is lost has a limit of its own.
 */
const idleLimitMs = ({ status, goneSince }: Run, { settleMs, queueTimeoutMs }: TaskOptions): number =>
  status === 'accepted' && goneSince === null ? queueTimeoutMs : settleMs;

/** Idle for long, and nothing is being copied. */
function isIdle(run: Run, at: Reading, options: TaskOptions): boolean {
  const copiedAt = run.watch?.best?.at ?? Number.NEGATIVE_INFINITY;
  return (
    run.idleSince !== null &&
    at.mono - run.idleSince >= idleLimitMs(run, options) &&
    at.mono - copiedAt >= options.settleMs
  );
}

/** The reason to ask Nova to abort a migration whose server has long been idle: the answer tells whether anybody works on it. */
function idleTooLong(run: Run, at: Reading, options: TaskOptions): Overdue | null {
  if (run.goneSince !== null || !isIdle(run, at, options)) return null;
  const limitMs = idleLimitMs(run, options);
  const text = `the server has been idle for ${limitMs / 1000} s, and Nova calls the migration ${run.status}`;
  return { cause: 'abandoned', limitMs, text };
}

/**
 * Nova no longer works on the migration: its server is idle, and Nova refused an abort since, or has not listed the row for long.
 * A restarted compute leaves such rows behind, and a database restored from a backup loses rows.
 */
function isAbandoned(run: Run, at: Reading, options: TaskOptions): boolean {
  const { abort, idleSince, goneSince, status } = run;
  if (idleSince === null || !isIdle(run, at, options)) return false;
  if (goneSince !== null) return at.mono - goneSince >= options.rowGoneMs;
  return abort !== null && abort.answer === 'refused' && abort.status === status && abort.at >= idleSince;
}

/** Ends an attempt that Nova has abandoned, by where its server is. */
function abandoned(state: TaskState, run: Run, server: ServerFacts, at: Reading): TaskState {
  const { task } = state;
  const row =
    run.goneSince === null
      ? `it still calls migration ${run.migrationId} ${run.status} and refuses to abort it`
      : `it no longer lists migration ${run.migrationId}`;
  const why = reason('abandoned', `Nova has abandoned the migration: ${row}; the server is idle on ${server.host}`, {
    status: run.goneSince === null ? run.status : null,
  });
  if (server.host === task.destination) {
    const warnings = runs(server) ? [why] : [why, notUp(server)];
    return to(state, {
      at: 'ending',
      ended: completed(task.destination, warnings, novaFacts(run, at)),
      expected: null,
    });
  }
  if (server.host !== task.from) return failAfter(state, run, movedByOthers(server.host), at);
  // Nova refused the operator's abort: the row, not the operator, ended the task.
  if (run.stop?.cause === 'operator')
    return failAfter(state, run, { ...cancelled('abandoned', why.text), reason: why }, at);
  // No further attempt: who resets a server's state by hand makes it look idle, too.
  const failure: JudgedFailure = {
    ...failureFor('abandoned', { errorType: 'NovaClientError', text: why.text }),
    reason: why,
  };
  return failAfter(state, run, failure, at);
}

export const aborting = (state: TaskState, run: Run, migrationId: number, at: Reading): TaskState =>
  to(state, { at: 'aborting', run, migrationId, by: at.mono + state.options.postWindowMs });

/** The migration is over by its status: where is the server? Trust the host, not the status. */
function over(state: TaskState, run: Run, look: NovaLook, at: Reading): TaskState {
  const { task, options } = state;
  const { server } = look;
  const again = to(state, { at: 'following', run, soon: server === null });
  if (server === null || server === 'gone') return again;
  const status = run.status ?? '';
  const settled = at.mono - (run.overAt ?? at.mono) >= options.settleMs;
  if (server.host === task.destination) {
    if (status !== 'completed' || !runs(server)) return to(state, { at: 'explaining', run, server, tries: 0 });
    const ended = completed(task.destination, [], novaFacts(run, at));
    return to(state, { at: 'ending', ended, expected: null });
  }
  if (status === 'completed')
    return (
      movedOn(state, run, { server, migrations: look.migrations }, at) ?? (settled ? unmoved(state, run, at) : again)
    );
  // Nova clears the task state when its roll-back is done.
  if (server.taskState !== null && !settled) return again;
  if (server.host !== task.from) return failAfter(state, run, movedByOthers(server.host), at);
  // An abort is a cast: only a cancelled migration was ended by one.
  if (status === 'cancelled') return failAfter(state, run, stopped(run.stop), at);
  return to(state, { at: 'explaining', run, server, tries: 0 });
}

type ListedLook = { readonly server: ServerFacts; readonly migrations: NovaLook['migrations'] };

/** A server that was moved again after its migration completed; null: it was not. */
function movedOn(state: TaskState, run: Run, look: ListedLook, at: Reading): TaskState | null {
  const { task } = state;
  const { server, migrations } = look;
  const newer = migrations.some((m) => run.migrationId !== null && m.id > run.migrationId);
  if (!newer && (server.host === task.from || server.host === null)) return null;
  const host = server.host ?? task.destination;
  const warning = reason('moved-since', `the migration completed, and the server has moved on to ${host} since`);
  const ended = completed(host, [warning], novaFacts(run, at));
  return to(state, { at: 'ending', ended, expected: null });
}

function unmoved(state: TaskState, run: Run, at: Reading): TaskState {
  const text = 'Nova calls the migration completed, and the server is still on its source';
  return failAfter(state, run, failureFor('host-did-not-change', { errorType: 'MigrationFailed', text }), at);
}

/** The failure that a cancelled migration means. */
function stopped(stop: Stop | null): JudgedFailure {
  if (stop === null || stop.cause === 'abandoned') return abortedByOthers();
  if (stop.cause === 'operator') return operatorStopped();
  return failureFor(stop.cause, {
    errorType: 'MigrationTimeout',
    text: `aborted: ${stop.text}`,
    detail: { limitMs: stop.limitMs },
  });
}
