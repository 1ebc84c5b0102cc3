/**
 * Moves between cells: a cold migration or a resize, from its POST to its end. Nova leaves the server in VERIFY_RESIZE; it is
 * checked there and then confirmed or reverted. README.md has the diagram.
 */
import { closedText } from '@kronos/contracts';
import { cancelled, failureFor, type JudgedFailure, NO_ACCOUNT, reason, refusedPost } from '../failure.ts';
import { asksAgain, handOver, inError, isStopped, movedByOthers } from '../taskEnd.ts';
import type {
  AttemptLog,
  AttemptOrders,
  CellLook,
  CellMigration,
  CellServer,
  Fact,
  PostAnswer,
  Reading,
  Settle,
  Task,
} from '../taskFacts.ts';
import {
  backoff,
  type CellRun,
  type Command,
  mayBeBusy,
  type Stage,
  seeing,
  startCellRun,
  type TaskState,
  to,
  UnexpectedFact,
} from '../taskStages.ts';
import { failedCheck, UNREAD, wrongHost } from './checks.ts';
import { BROKEN, conclude, failed, infrastructure, ofMethod, RUNNING } from './outcome.ts';

type CellStage = Extract<Stage, { readonly run: CellRun }>;
type Started = Extract<AttemptLog, { readonly kind: 'started' }>;

/** An attempt that another executor has started, from where the log has it. */
export function resumed(
  state: TaskState,
  started: Started,
  cell: NonNullable<Started['cell']>,
  at: Reading,
): TaskState {
  const { migrationUuid, verifying, verified, settle } = cell;
  const run: CellRun = {
    ...startCellRun(cell, cell.startedAtMs, at.mono),
    migrationId: started.migrationId,
    requestId: started.requestId,
    uuid: migrationUuid,
    arrived: verifying,
    verified: verified !== null,
    settle,
  };
  if (settle !== null) return to(state, { at: 'concluding', run, soon: true });
  return to(state, { at: verifying === null ? 'travelling' : 'verifying', run, soon: true });
}

/** Whether the additional check is made: of a guest that runs, until the log has that it passed. */
const isProbed = ({ options }: TaskState, { start, verified }: CellRun): boolean =>
  options.verify.kind !== 'none' && start.before.powerState === RUNNING && !verified;

/** The command that a stage of a move between cells asks for. */
export function decideCell(state: TaskState, stage: CellStage): Command {
  switch (stage.at) {
    case 'resizing':
      return { do: 'postCell', by: stage.by, flavorId: stage.flavorId };
    case 'travelling':
    case 'verifying':
    case 'concluding':
      return nextLook(state, stage);
    case 'recording': {
      const { migrationId, requestId, uuid } = stage.run;
      return { do: 'appendObserved', migrationId: migrationId ?? 0, requestId, migrationUuid: uuid };
    }
    case 'arriving':
      return { do: 'appendVerifying', host: stage.host };
    case 'reportingVerified':
      return { do: 'appendVerified', host: stage.host, verifySeconds: state.task.cell?.verifySeconds ?? 0 };
    case 'settling':
      return { do: 'appendSettle', settle: stage.settle };
    case 'agreeing':
      return { do: 'readLog' };
    case 'asking':
      return { do: 'settle', act: stage.act, by: stage.by };
    case 'inquiring':
      return inquiry(state, stage);
  }
}

function inquiry(
  { options }: TaskState,
  { tries, run: { arrived, requestId } }: Extract<CellStage, { readonly at: 'inquiring' }>,
): Command {
  const afterMs = tries === 0 ? 0 : options.pollIntervalMs;
  return { do: 'explain', afterMs, requestId: arrived === null ? requestId : null };
}

function nextLook(
  state: TaskState,
  { at, soon, run }: Extract<CellStage, { readonly at: 'travelling' | 'verifying' | 'concluding' }>,
): Command {
  const poll = state.options.pollIntervalMs;
  const afterMs = soon ? Math.min(poll, 1000) : backoff(state, poll);
  return { do: 'lookCell', afterMs, probe: at === 'verifying' && isProbed(state, run) };
}

/** The state after a fact, for the stages of a move between cells. */
export function evolveCell(state: TaskState, stage: CellStage, fact: Fact): TaskState {
  const { run } = stage;
  switch (stage.at) {
    case 'resizing':
      if (fact.kind === 'posted') return posted(state, run, fact.answer, fact.at);
      break;
    case 'travelling':
    case 'verifying':
    case 'concluding':
      return watched(state, stage, fact);
    case 'agreeing':
      if (fact.kind === 'log') return agreed(state, run, fact.log.attempt, fact.at);
      break;
    case 'asking':
      if (fact.kind === 'settleAnswered')
        return to(state, { at: 'concluding', run: { ...run, askedAt: fact.at.mono }, soon: true });
      break;
    case 'inquiring':
      return inquired(state, stage, fact);
    default:
      return written(state, stage, fact);
  }
  throw new UnexpectedFact(stage.at, fact.kind);
}

type Watching = Extract<CellStage, { readonly at: 'travelling' | 'verifying' | 'concluding' }>;
type Writing = Extract<CellStage, { readonly at: 'recording' | 'arriving' | 'reportingVerified' | 'settling' }>;

function watched(state: TaskState, stage: Watching, fact: Fact): TaskState {
  const { run } = stage;
  if (fact.kind === 'draining') return handOver(state);
  const told = 'orders' in fact ? obeyed(state, run, fact) : null;
  if (told !== null) return told;
  if (fact.kind === 'blind')
    return to({ ...state, blind: state.blind + 1 }, { ...stage, run: unwatched(run), soon: false });
  if (fact.kind !== 'lookedCell') throw new UnexpectedFact(stage.at, fact.kind);
  return looked(seeing(state), stage, fact);
}

/** After an append of the stage's event. */
function written(state: TaskState, stage: Writing, fact: Fact): TaskState {
  const { run } = stage;
  const isWritten = fact.kind === 'appended' || fact.kind === 'conflict';
  if (!isWritten && fact.kind !== 'lostTrack') throw new UnexpectedFact(stage.at, fact.kind);
  // When it was not written, the attempt goes on all the same: a successor finds the migration as this one did.
  if (stage.at === 'recording') return to(state, { at: 'travelling', run, soon: true });
  if (!isWritten) return state;
  switch (stage.at) {
    case 'arriving': {
      const arrived = { host: stage.host, atMs: fact.at.wall };
      return to(state, { at: 'verifying', run: { ...run, arrived }, soon: true });
    }
    case 'reportingVerified':
      return to(state, { at: 'verifying', run: { ...run, verified: true }, soon: true });
    case 'settling':
      return to(state, { at: 'agreeing', run });
  }
}

/** Restarts the times that a look must see without a gap. */
const unwatched = (run: CellRun): CellRun => ({ ...run, idleSince: null, goodSince: null });

function posted(state: TaskState, run: CellRun, answer: PostAnswer, at: Reading): TaskState {
  const look = { ...run, since: at.mono };
  switch (answer.kind) {
    case 'accepted':
      return to(state, {
        at: 'travelling',
        run: { ...look, requestId: answer.requestId, acceptedAt: at.mono },
        soon: true,
      });
    case 'unknown':
      return to(state, { at: 'travelling', run: look, soon: true });
    case 'notSent':
      return failed(state, run, infrastructure('not-sent', `the request was not sent: ${answer.text}`), { at });
    case 'refused': {
      // A proxy may have sent this request twice, or somebody else moves the server: Nova's migrations tell.
      if (answer.status === 409 && /task_state resize_/i.test(answer.text))
        return to(state, { at: 'travelling', run: look, soon: true });
      const failure = refusedPost(answer, state.task);
      if (failure === 'look') return to(state, { at: 'travelling', run: look, soon: true });
      return failed(state, run, ofMethod(run, policyOr(failure, answer.text)), { at });
    }
  }
}

/** Nova calls a host of another cell unknown to who may not move servers there; pre-flight has seen the host. */
const policyOr = (failure: JudgedFailure, text: string): JudgedFailure =>
  /compute host .* could not be found/i.test(text)
    ? failureFor('cell-policy', {
        errorType: 'NovaClientError',
        text: `${failure.reason.text} Nova's policy compute:servers:resize:cross_cell does not let Kronos move servers between cells`,
      })
    : failure;

/** An event of the log that ends an attempt; null: none. Without force, a close waits until Nova shows that nothing works on the server. */
function obeyed(
  state: TaskState,
  run: CellRun,
  fact: Extract<Fact, { readonly orders: AttemptOrders }>,
): TaskState | null {
  const { orders, at } = fact;
  if (orders.ended) return to(state, { at: 'received' });
  const { closeAsked } = orders;
  if (closeAsked === null) return null;
  if (closeAsked.force !== true && mayBeMoving(state, run, fact)) return null;
  const where = run.arrived === null ? 'it was on its way' : `it was in VERIFY_RESIZE on ${run.arrived.host}`;
  const seen = run.uuid === null ? 'no migration was seen' : `${where}, and Nova still has it so`;
  const text = `${closedText(closeAsked)}; ${seen}`;
  return failed(state, run, cancelled('closed', text), { at });
}

/** Whether Nova may work on the server, or have a request for it that it has not begun: the POST may have had no clear answer. */
function mayBeMoving(
  { task, options }: TaskState,
  run: CellRun,
  fact: Extract<Fact, { readonly orders: AttemptOrders }>,
): boolean {
  if (fact.kind !== 'lookedCell') return true;
  const { server, migrations } = fact.look;
  if (mayBeBusy(server)) return true;
  if (run.uuid !== null) return false;
  return fact.at.mono - run.since < options.takeoverMs || oursOf(migrations, run, task).length > 0;
}

function looked(
  state: TaskState,
  stage: Watching,
  { look, orders, at }: { readonly look: CellLook; readonly orders: AttemptOrders; readonly at: Reading },
): TaskState {
  const { task } = state;
  const { server } = look;
  const rows = oursOf(look.migrations, stage.run, task);
  const [row] = rows;
  let run = stage.run;
  if (row !== undefined) {
    run = { ...run, status: row.status };
    if (run.uuid === null && server !== 'gone')
      return to(state, { at: 'recording', run: { ...run, uuid: row.uuid, migrationId: row.id } });
  }
  if (server === 'gone')
    return failed(state, run, cancelled('server-gone', 'Nova does not know the server any more'), { at });
  if (server === null) return to(state, { ...stage, run: unwatched(run), soon: false });
  switch (stage.at) {
    case 'travelling':
      return travelled(state, run, { rows, server, at });
    case 'verifying':
      return isWaiting(server, rows)
        ? verified(state, run, { look, server, orders, at })
        : to(state, { at: 'concluding', run: unwatched(run), soon: true });
    case 'concluding':
      return concluded(state, run, { rows, server, at });
  }
}

/** The rows of this attempt, in Nova's order: the one that changed last first. */
function oursOf(migrations: readonly CellMigration[], { uuid, start }: CellRun, task: Task): readonly CellMigration[] {
  if (uuid !== null) return migrations.filter((row) => row.uuid === uuid);
  const type = start.method === 'migrate' ? 'migration' : 'resize';
  const found = migrations.find(
    (row) =>
      row.type === type &&
      !start.knownMigrations.includes(row.uuid) &&
      (row.sourceCompute === null || row.sourceCompute === task.from) &&
      (start.method === 'resize' || row.destCompute === null || row.destCompute === task.destination),
  );
  return found === undefined ? [] : migrations.filter((row) => row.uuid === found.uuid);
}

/** A confirmation that is under way shows only in the migration. */
const isWaiting = (server: CellServer, rows: readonly CellMigration[]): boolean =>
  arrivedIn(server) && !rows.some(({ status }) => status === 'confirming' || status === 'reverting');

const arrivedIn = ({ status, taskState }: CellServer): boolean => status === 'VERIFY_RESIZE' && taskState === null;

const SETTLED: ReadonlySet<string> = new Set(['confirmed', 'reverted']);

/** The server and the rows of its attempt, as Nova shows them. */
type Seen = { readonly rows: readonly CellMigration[]; readonly server: CellServer; readonly at: Reading };

/** On its way to VERIFY_RESIZE. */
function travelled(state: TaskState, before: CellRun, { rows, server, at }: Seen): TaskState {
  const { task, options } = state;
  if (server.taskState !== null) return to(state, { at: 'travelling', run: unwatched(before), soon: false });
  const run = { ...before, idleSince: before.idleSince ?? at.mono };
  const stay = to(state, { at: 'travelling', run, soon: false });
  if (run.uuid === null) return unlisted(state, run, server, at) ?? stay;
  if (arrivedIn(server)) return to(state, { at: 'arriving', run, host: server.host ?? task.destination });
  const idleMs = at.mono - (run.idleSince ?? at.mono);
  if (rows.some(({ status }) => SETTLED.has(status)) && idleMs >= options.settleMs)
    return conclude(state, run, { server, at });
  if (rows.some(({ status }) => BROKEN.has(status)) || inError(server))
    return to(state, { at: 'inquiring', run, server, tries: 0 });
  // Nobody works on it any more: a compute that restarted, or a row that is lost.
  return idleMs >= options.rowGoneMs ? to(state, { at: 'inquiring', run, server, tries: 0 }) : stay;
}

/** A move for which Nova lists no migration; null: one may yet come. */
function unlisted(state: TaskState, run: CellRun, server: CellServer, at: Reading): TaskState | null {
  const { task, options } = state;
  // An empty list means nothing for as long as Nova may still be at work.
  if (at.mono - run.since < options.takeoverMs) return null;
  if (arrivedIn(server)) return failed(state, run, movedByOthers(server.host), { at });
  if (inError(server)) return to(state, { at: 'inquiring', run, server, tries: 0 });
  if (server.host !== task.from) return failed(state, run, movedByOthers(server.host), { at });
  const waited = Math.round((at.mono - run.since) / 1000);
  const text = `Nova shows no migration after ${waited} s; the server is on its source and idle`;
  return failed(state, run, infrastructure('no-migration', text), { at });
}

/** In VERIFY_RESIZE, neither confirmed nor reverted. */
function verified(
  state: TaskState,
  before: CellRun,
  { look, server, orders, at }: Omit<Seen, 'rows'> & { readonly look: CellLook; readonly orders: AttemptOrders },
): TaskState {
  const { task, options } = state;
  const { verifySeconds = 0, confirm = 'manual' } = task.cell ?? {};
  const settle = (how: Settle): TaskState => to(state, { at: 'settling', run: before, settle: how });
  const ordered = orderedBy(orders);
  if (ordered !== null) return settle(ordered);
  if (before.verified) {
    const text = `its checks have passed for ${verifySeconds} s`;
    if (confirm === 'auto') return settle({ act: 'confirm', cause: 'verified', reason: reason('verified', text) });
    return to(state, { at: 'verifying', run: before, soon: false });
  }
  const wrong = wrongHost(task, before, server, look.targetHosts);
  if (wrong !== null) return settle({ act: 'revert', cause: 'wrong-host', reason: wrong });
  const checkedSince = before.checkedSince ?? at.mono;
  const problem =
    look.targetHosts === null ? UNREAD : failedCheck(before.start.before, before.start.newFlavor, server, look);
  if (problem !== null) {
    const run = { ...before, checkedSince, goodSince: null, problem };
    if (at.mono - checkedSince >= options.verifyTimeoutMs)
      return settle({ act: 'revert', cause: 'verification', reason: problem });
    return to(state, { at: 'verifying', run, soon: false });
  }
  const goodSince = before.goodSince ?? at.mono;
  const run = { ...before, checkedSince, goodSince };
  if (at.mono - goodSince < verifySeconds * 1000) return to(state, { at: 'verifying', run, soon: false });
  return to(state, { at: 'reportingVerified', run, host: server.host ?? task.destination });
}

/** The end of the move that an operator asked for; null: nobody did. */
function orderedBy({ settleAsked, stopAsked }: AttemptOrders): Settle | null {
  if (settleAsked !== undefined) {
    const { act, by } = settleAsked;
    return { act, cause: 'operator', reason: reason('operator', `${by} asked for it`) };
  }
  if (!stopAsked) return null;
  return { act: 'revert', cause: 'operator', reason: reason('operator', 'an operator stopped it') };
}

/** If both confirm and revert are on the log, the first counts, whatever its author. */
function agreed(state: TaskState, run: CellRun, attempt: AttemptLog, at: Reading): TaskState {
  if (attempt.kind !== 'started') return to(state, { at: 'received' });
  const settle = attempt.cell?.settle ?? null;
  if (settle === null) return to(state, { at: 'verifying', run, soon: true });
  const { act, cause, reason: why } = settle;
  const by = at.mono + state.options.postWindowMs;
  return to(state, { at: 'asking', run: { ...run, settle: { act, cause, reason: why } }, by, act });
}

/** On its way out of VERIFY_RESIZE. */
function concluded(state: TaskState, before: CellRun, { rows, server, at }: Seen): TaskState {
  const { options } = state;
  const stay = (run: CellRun): TaskState => to(state, { at: 'concluding', run, soon: false });
  if (isWaiting(server, rows)) {
    const { settle, askedAt } = before;
    if (settle === null) return to(state, { at: 'verifying', run: before, soon: false });
    if (askedAt !== null && at.mono - askedAt < options.abortAgainMs) return stay(unwatched(before));
    return to(state, { at: 'asking', run: before, by: at.mono + options.postWindowMs, act: settle.act });
  }
  if (server.taskState !== null || arrivedIn(server)) return stay(unwatched(before));
  if (inError(server)) return to(state, { at: 'inquiring', run: before, server, tries: 0 });
  const run = { ...before, idleSince: before.idleSince ?? at.mono };
  // Nova sets the migration's status a moment before or after the server's; without a row, the server alone counts.
  const over = rows.length === 0 || rows.some(({ status }) => SETTLED.has(status) || BROKEN.has(status));
  if (!over && at.mono - (run.idleSince ?? at.mono) < options.settleMs) return stay(run);
  return conclude(state, run, { server, at });
}

function inquired(state: TaskState, stage: Stage & { at: 'inquiring' }, fact: Fact): TaskState {
  const { run, server, tries } = stage;
  if (fact.kind === 'draining') return handOver(state);
  if (asksAgain(state, tries, fact)) return to(state, { ...stage, tries: tries + 1 });
  if (fact.kind !== 'explained' && fact.kind !== 'blind') throw new UnexpectedFact(stage.at, fact.kind);
  const account = fact.kind === 'explained' ? fact.account : NO_ACCOUNT;
  return conclude(state, run, { server, at: fact.at, account, stopped: isStopped(fact.orders) });
}
