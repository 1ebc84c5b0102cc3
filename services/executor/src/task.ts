/**
 * The life of a task, as a pure state machine. `decide` names the one command that a stage asks for, `evolve` takes what came
 * of it. Nothing here reads a clock, a log or Nova: facts carry their own readings. README.md has the diagram.
 */
import {
  type ErrorType,
  type MigrationRequested,
  type NovaFacts,
  type Reason,
  SERVER_IN_ERROR,
} from '@kronos/contracts';
import { type Overdue, overdue, type ProgressFacts, startWatch, type Watch, watched } from './deadline.ts';
import { type Account, cancelled, type Failure, failedMigration, NO_ACCOUNT, reason, refusedPost } from './failure.ts';
import type { TaskOptions } from './options.ts';

/** A task as it was delivered. */
export type Task = MigrationRequested['data'] & {
  readonly aggregate: string;
};

/** Two clocks: `mono` never jumps and measures durations, `wall` is ms since the epoch. */
interface Reading {
  readonly mono: number;
  readonly wall: number;
}

/** What the log says about one attempt of a task. */
export type AttemptLog =
  /** No released plan has it, or an attempt that was never asked for. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'waiting' }
  | {
      readonly kind: 'started';
      readonly newestMigrationId: number;
      readonly migrationId: number | null;
      readonly requestId: string | null;
      /** What an executor before this one wanted it aborted for. */
      readonly stop: Stop | null;
    }
  /** `next`: a further attempt was announced and has not begun. */
  | { readonly kind: 'ended'; readonly next: Next | null };

export interface TaskLog {
  readonly attempt: AttemptLog;
  /** Last sequence folded on `kronos.results.<agg>`: what the next append there expects. */
  readonly expected: number;
}

/** The attempt after a failed one. */
export interface Next {
  readonly attempt: number;
  readonly destination: string;
  /** ms since the epoch */
  readonly notBeforeMs: number;
}

/** Leave to start, as the log stood at `expected`. */
export interface Grant {
  readonly expected: number;
  /** Since the pre-flight, something happened on the log that concerns its hosts. */
  readonly disturbed: boolean;
}

/** What pre-flight found. */
export type Verdict =
  | { readonly kind: 'go'; readonly newestMigrationId: number; readonly forced: boolean }
  | { readonly kind: 'there'; readonly host: string }
  | { readonly kind: 'no'; readonly failure: Failure }
  /** An API did not answer: nothing is known. */
  | { readonly kind: 'unreachable'; readonly text: string };

export type PostAnswer =
  | { readonly kind: 'accepted'; readonly requestId: string | null }
  | { readonly kind: 'refused'; readonly status: number; readonly text: string }
  /** It may have reached Nova. */
  | { readonly kind: 'unknown'; readonly text: string }
  /** It surely did not reach Nova. */
  | { readonly kind: 'notSent'; readonly text: string };

export interface ServerFacts {
  readonly host: string | null;
  readonly status: string;
  readonly vmState: string | null;
  readonly taskState: string | null;
}

export interface MigrationFacts {
  readonly id: number;
  readonly type: string;
  readonly status: string;
  readonly sourceCompute: string | null;
  readonly destCompute: string | null;
}

/** One look at Nova. The migrations are read before the server, so the server is never older than a status. */
export interface Look {
  /** Of this server, the newest ones, in any order. */
  readonly migrations: readonly MigrationFacts[];
  /** Null: not read this time. */
  readonly server: ServerFacts | 'gone' | null;
  readonly progress: ProgressFacts | null;
}

/** An attempt that was started. Times are monotonic readings. */
interface Run {
  readonly newestMigrationId: number;
  readonly requestId: string | null;
  readonly migrationId: number | null;
  /** Since when this executor looks for its migration. */
  readonly since: number;
  /** When Nova had accepted the POST, if this executor sent it. */
  readonly acceptedAt: number | null;
  readonly status: string | null;
  readonly destCompute: string | null;
  readonly watch: Watch | null;
  readonly stop: Stop | null;
  /** The log has `stop`. */
  readonly noted: boolean;
  /** The last abort asked of Nova. */
  readonly abort: { readonly at: number; readonly status: string; readonly answer: AbortAnswer } | null;
  /** When the migration was first seen over. */
  readonly overAt: number | null;
  /** Since when every look found the server idle on a known host while its migration was not over. */
  readonly idleSince: number | null;
  /** Since when Nova no longer lists the migration. */
  readonly goneSince: number | null;
  /** The log has that Nova refused an abort. */
  readonly refusalNoted: boolean;
}

/** Why a migration has to end before its time. */
export type Stop = { readonly cause: 'operator' } | Overdue;

type AbortAnswer = 'accepted' | 'refused' | 'unknown';

/** How Nova refused an abort. */
export interface Refusal {
  /** HTTP status. */
  readonly status: number;
  /** Nova's own words. */
  readonly text: string;
}

/** What the log says to an executor that follows an attempt. */
export interface Word {
  /** An operator wants the move stopped. */
  readonly stopAsked: boolean;
  /** An operator wants the task ended without Nova. */
  readonly closeAsked: { readonly by: string; readonly comment: string | null } | null;
  /** The log has the end of the attempt, by another's hand. */
  readonly ended: boolean;
}

/** The outcome of an attempt, as it goes onto the log. */
export type Ended =
  | {
      readonly type: 'completed';
      readonly outcome: 'migrated' | 'alreadyThere';
      readonly host: string;
      readonly warnings: readonly Reason[];
      readonly nova: NovaFacts | null;
    }
  | { readonly type: 'skipped'; readonly reason: Reason }
  | {
      readonly type: 'failed';
      readonly errorType: ErrorType;
      readonly reason: Reason;
      readonly hostAtFault: string | null;
      readonly next: Next | null;
      readonly started: boolean;
      readonly nova: NovaFacts | null;
    };

type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'later'; readonly delayMs: number }
  | { readonly kind: 'handOver' };

type Stage =
  | { readonly at: 'received' }
  /** It may be a poison message: it waits until an executor can work on it alone. */
  | { readonly at: 'suspected'; readonly started: boolean }
  /** Its turn: what is about to begin goes onto the log first. */
  | { readonly at: 'trying'; readonly tries: number }
  | { readonly at: 'waiting'; readonly checked: Checked | null; readonly notBefore: number }
  | { readonly at: 'checking'; readonly grant: Grant }
  | { readonly at: 'claiming'; readonly grant: Grant; readonly checked: Checked }
  | { readonly at: 'posting'; readonly run: Run; readonly by: number; readonly forced: boolean }
  | { readonly at: 'seeking'; readonly run: Run; readonly soon: boolean }
  | { readonly at: 'noting'; readonly run: Run }
  | { readonly at: 'following'; readonly run: Run; readonly soon: boolean }
  /** Why the migration is to be aborted goes onto the log first. */
  | { readonly at: 'stopping'; readonly run: Run; readonly migrationId: number; readonly stop: Stop }
  | { readonly at: 'aborting'; readonly run: Run; readonly migrationId: number; readonly by: number }
  /** That Nova refused goes onto the log. */
  | { readonly at: 'refused'; readonly run: Run; readonly migrationId: number; readonly refusal: Refusal }
  | { readonly at: 'explaining'; readonly run: Run; readonly server: ServerFacts; readonly tries: number }
  | { readonly at: 'ending'; readonly ended: Ended; readonly expected: number | null }
  | { readonly at: 'passing'; readonly next: Next }
  | { readonly at: 'finished'; readonly outcome: Outcome; readonly why: Reason };
export type StageName = Stage['at'];

interface Checked {
  readonly newestMigrationId: number;
  /** Nova's scheduler is to be bypassed (`[executor] force`, below 2.68 only). */
  readonly forced: boolean;
  /** When its reads were over. From an API that takes long for them nothing fresher can be had. */
  readonly at: number;
}

export interface TaskState {
  readonly task: Task;
  readonly options: TaskOptions;
  /** 1 for the first delivery of this message. */
  readonly deliveries: number;
  /** It has the turn of a suspected task, and the log says so. */
  readonly tried: boolean;
  /** How often in a row an API did not answer. */
  readonly blind: number;
  readonly stage: Stage;
}

export type Command =
  /** Fold the log to its end. */
  | { readonly do: 'readLog' }
  /** Wait for the turn of a suspected task, and count by the log how often it was begun already. */
  | { readonly do: 'awaitTurn'; readonly started: boolean }
  | { readonly do: 'appendSuspected'; readonly deliveries: number; readonly tries: number }
  /** Wait until the log lets the attempt start, or says that it must not. Not before `notBefore` (monotonic). */
  | { readonly do: 'awaitStart'; readonly notBefore: number; readonly checkedAt: number | null }
  | { readonly do: 'check' }
  | {
      readonly do: 'appendStarted';
      readonly expected: number;
      readonly newestMigrationId: number;
      readonly forced: boolean;
    }
  /** Ask Nova; not a byte leaves after `by` (monotonic). */
  | { readonly do: 'post'; readonly by: number; readonly forced: boolean }
  /** Wait, then read Nova. `migrationId`: the one that is followed; null while it is looked for. */
  | { readonly do: 'look'; readonly afterMs: number; readonly migrationId: number | null }
  | { readonly do: 'appendObserved'; readonly migrationId: number; readonly requestId: string | null }
  | { readonly do: 'appendAbortRequested'; readonly stop: Stop }
  /** Ask Nova to abort; not a byte leaves after `by` (monotonic). */
  | { readonly do: 'abort'; readonly migrationId: number; readonly by: number }
  | { readonly do: 'appendAbortRefused'; readonly migrationId: number; readonly refusal: Refusal }
  | { readonly do: 'explain'; readonly afterMs: number; readonly requestId: string | null }
  | { readonly do: 'appendEnded'; readonly expected: number; readonly ended: Ended }
  | { readonly do: 'publishNext'; readonly next: Next }
  | { readonly do: 'finish'; readonly outcome: Outcome; readonly why: Reason };

type FactBody =
  | { readonly kind: 'log'; readonly log: TaskLog }
  /** It has the turn of a suspected task. `tries`: how often it was begun before; `agoMs`: when it was begun last. */
  | { readonly kind: 'turn'; readonly tries: number; readonly agoMs: number }
  /** It gave the turn up: what it waits for may take long. */
  | { readonly kind: 'yielded' }
  | { readonly kind: 'mayStart'; readonly grant: Grant }
  /** It must not start: it ends with this failure. */
  | { readonly kind: 'mustEnd'; readonly failure: Failure; readonly expected: number }
  /** The log has the attempt started or ended by another. */
  | { readonly kind: 'overtaken' }
  | { readonly kind: 'putOff'; readonly delayMs: number }
  /** The executor stops. */
  | { readonly kind: 'draining' }
  | { readonly kind: 'checked'; readonly verdict: Verdict }
  /** It is on the log, and by this append. `began`: when the append was begun. */
  | { readonly kind: 'appended'; readonly began: number }
  /** It was not written: the subject has moved on, or the same act is already there. */
  | { readonly kind: 'conflict' }
  /** Nobody knows whether it was written. */
  | { readonly kind: 'lostTrack' }
  | { readonly kind: 'posted'; readonly answer: PostAnswer }
  | { readonly kind: 'looked'; readonly look: Look; readonly word: Word }
  /** An API did not answer. */
  | { readonly kind: 'blind'; readonly text: string; readonly word: Word }
  | { readonly kind: 'abortAnswered'; readonly answer: 'accepted' | 'unknown' }
  | { readonly kind: 'abortAnswered'; readonly answer: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'explained'; readonly account: Account }
  | { readonly kind: 'published' };
export type FactKind = FactBody['kind'];
export type Fact = FactBody & { readonly at: Reading };

export const initialState = (task: Task, options: TaskOptions, deliveries: number): TaskState => ({
  task,
  options,
  deliveries,
  tried: false,
  blind: 0,
  stage: { at: 'received' },
});

/** The command that the stage asks for. */
export function decide(state: TaskState): Command {
  const { stage, options } = state;
  const poll = options.pollIntervalMs;
  switch (stage.at) {
    case 'received':
      return { do: 'readLog' };
    case 'suspected':
      return { do: 'awaitTurn', started: stage.started };
    case 'trying':
      return { do: 'appendSuspected', deliveries: state.deliveries, tries: stage.tries };
    case 'waiting':
      return { do: 'awaitStart', notBefore: stage.notBefore, checkedAt: stage.checked?.at ?? null };
    case 'checking':
      return { do: 'check' };
    case 'claiming':
      return {
        do: 'appendStarted',
        expected: stage.grant.expected,
        newestMigrationId: stage.checked.newestMigrationId,
        forced: stage.checked.forced,
      };
    case 'posting':
      return { do: 'post', by: stage.by, forced: stage.forced };
    case 'seeking':
    case 'following': {
      const afterMs = stage.soon ? Math.min(poll, 1000) : backoff(state, poll);
      return { do: 'look', afterMs, migrationId: stage.run.migrationId };
    }
    case 'noting':
      return { do: 'appendObserved', migrationId: stage.run.migrationId ?? 0, requestId: stage.run.requestId };
    case 'stopping':
      return { do: 'appendAbortRequested', stop: stage.stop };
    case 'aborting':
      return { do: 'abort', migrationId: stage.migrationId, by: stage.by };
    case 'refused':
      return { do: 'appendAbortRefused', migrationId: stage.migrationId, refusal: stage.refusal };
    case 'explaining':
      return { do: 'explain', afterMs: stage.tries === 0 ? 0 : poll, requestId: stage.run.requestId };
    case 'ending':
      if (stage.expected === null) return { do: 'readLog' };
      return { do: 'appendEnded', expected: stage.expected, ended: stage.ended };
    case 'passing':
      return { do: 'publishNext', next: stage.next };
    case 'finished':
      return { do: 'finish', outcome: stage.outcome, why: stage.why };
  }
}

/** Waits grow while an API does not answer. */
function backoff(state: TaskState, base: number): number {
  return Math.min(base * 2 ** Math.min(state.blind, 20), Math.max(base, state.options.blindMaxMs));
}

/** The fact does not belong to the stage: a mistake of the shell, never of the world. */
export class UnexpectedFact extends Error {
  readonly code = 'KRONOS_EXECUTOR_UNEXPECTED_FACT';
  constructor(stage: StageName, fact: FactKind) {
    super(`a task that is ${stage} cannot take the fact ${fact}`);
    this.name = 'UnexpectedFact';
  }
}

/** The state after a fact. Throws UnexpectedFact when the fact is no answer to the stage's command. */
export function evolve(state: TaskState, fact: Fact): TaskState {
  const { stage } = state;
  switch (stage.at) {
    case 'received':
      if (fact.kind === 'log') return received(state, fact.log, fact.at);
      break;
    case 'suspected':
      if (fact.kind === 'draining') return handOver(state);
      if (fact.kind !== 'turn') break;
      if (fact.tries >= state.options.suspectTries) {
        if (!stage.started) return deadLetter(state, fact.tries);
        const waitMs = tryAgainMs(fact.tries, state.options) - fact.agoMs;
        if (waitMs > 0) return setAside(state, fact.tries, waitMs);
      }
      return to(state, { at: 'trying', tries: fact.tries + 1 });
    case 'trying':
      // By whose hand it is there makes no difference: the log says that it is begun.
      if (fact.kind === 'appended' || fact.kind === 'conflict')
        return to({ ...state, tried: true }, { at: 'received' });
      if (fact.kind === 'lostTrack') return state;
      break;
    case 'waiting':
      return waiting(state, stage, fact);
    case 'checking':
      if (fact.kind === 'checked') return checked(state, stage, fact.verdict, fact.at);
      break;
    case 'claiming':
      if (fact.kind === 'appended') {
        const run = startRun(stage.checked.newestMigrationId, fact.at.mono);
        const by = fact.began + state.options.postWindowMs;
        return to(state, { at: 'posting', run, by, forced: stage.checked.forced });
      }
      if (fact.kind === 'conflict')
        return to(state, { at: 'waiting', checked: stage.checked, notBefore: fact.at.mono });
      if (fact.kind === 'lostTrack') return to(state, { at: 'received' });
      break;
    case 'posting':
      if (fact.kind === 'posted') return posted(state, stage.run, fact.answer, fact.at);
      break;
    case 'seeking':
      if (fact.kind === 'looked') return sought(seeing(state), stage.run, fact.look, fact.word, fact.at);
      return unseen(state, fact, { ...stage, soon: false });
    case 'noting':
      // When it was not written, the attempt goes on all the same: a successor finds the migration as this one did.
      if (fact.kind === 'appended' || fact.kind === 'conflict' || fact.kind === 'lostTrack')
        return to(state, { at: 'following', run: stage.run, soon: true });
      break;
    case 'following':
      if (fact.kind === 'looked') return followed(seeing(state), stage.run, fact.look, fact.word, fact.at);
      return unseen(state, fact, { ...stage, soon: false });
    case 'stopping':
      if (fact.kind === 'appended' || fact.kind === 'conflict')
        return aborting(state, { ...stage.run, noted: true }, stage.migrationId, fact.at);
      if (fact.kind === 'lostTrack') return state;
      break;
    case 'aborting':
      if (fact.kind === 'abortAnswered') {
        const abort = { at: fact.at.mono, status: stage.run.status ?? '', answer: fact.answer };
        const run = { ...stage.run, abort };
        if (fact.answer === 'refused' && !run.refusalNoted)
          return to(state, { at: 'refused', run, migrationId: stage.migrationId, refusal: fact.refusal });
        return to(state, { at: 'following', run, soon: true });
      }
      break;
    case 'refused':
      // The first refusal stands for all of the attempt.
      if (fact.kind === 'appended' || fact.kind === 'conflict')
        return to(state, { at: 'following', run: { ...stage.run, refusalNoted: true }, soon: true });
      if (fact.kind === 'lostTrack') return state;
      break;
    case 'explaining':
      return explained(state, stage, fact);
    case 'ending':
      return ending(state, stage, fact);
    case 'passing':
      if (fact.kind === 'published') return finish(state, 'retry-pending', 'the next attempt is on the work queue');
      if (fact.kind === 'lostTrack') return state;
      break;
    case 'finished':
      break;
  }
  throw new UnexpectedFact(stage.at, fact.kind);
}

const to = (state: TaskState, stage: Stage): TaskState => ({ ...state, stage });

const seeing = (state: TaskState): TaskState => (state.blind === 0 ? state : { ...state, blind: 0 });

const finish = (state: TaskState, code: string, text: string, outcome: Outcome = { kind: 'done' }): TaskState =>
  to(state, { at: 'finished', outcome, why: reason(code, text) });

const handOver = (state: TaskState): TaskState =>
  finish(state, 'handed-over', 'this executor stops; another one goes on', { kind: 'handOver' });

const startRun = (newestMigrationId: number, at: number): Run => ({
  newestMigrationId,
  requestId: null,
  migrationId: null,
  since: at,
  acceptedAt: null,
  status: null,
  destCompute: null,
  watch: null,
  stop: null,
  noted: false,
  abort: null,
  overAt: null,
  idleSince: null,
  goneSince: null,
  refusalNoted: false,
});

/** First look at the log: has the attempt begun, has it ended, or is it still to be started? */
function received(state: TaskState, log: TaskLog, at: Reading): TaskState {
  const { attempt } = log;
  switch (attempt.kind) {
    case 'unknown':
      return finish(state, 'unknown-task', 'no released plan on the log has this task and attempt');
    case 'ended':
      if (attempt.next !== null) return to(state, { at: 'passing', next: attempt.next });
      return finish(state, 'already-ended', 'the log has the outcome of this attempt');
    case 'started': {
      if (suspicious(state)) return to(state, { at: 'suspected', started: true });
      const { migrationId, requestId, stop } = attempt;
      const begun = startRun(attempt.newestMigrationId, at.mono);
      const run = { ...begun, migrationId, requestId, stop, noted: stop !== null };
      return to(state, { at: migrationId === null ? 'seeking' : 'following', run, soon: true });
    }
    case 'waiting':
      return to(state, { at: 'waiting', checked: null, notBefore: at.mono });
  }
}

/**
 * Delivered so often that it may be a poison message. So were the tasks that waited beside such a one: which it is
 * shows when each is worked on alone.
 */
const suspicious = ({ deliveries, tried, options }: TaskState): boolean =>
  !tried && deliveries > options.suspectDeliveries;

/** The longest wait before a started task that crashes its executors is tried again. */
const TRY_AGAIN_MAX_MS = 3_600_000;

/** The wait after the last try of a started task that crashes its executors. */
const tryAgainMs = (tries: number, { putOffMs, suspectTries }: TaskOptions): number =>
  Math.min(putOffMs * 2 ** Math.min(tries - suspectTries, 20), Math.max(putOffMs, TRY_AGAIN_MAX_MS));

const endsExecutors = (tries: number): string =>
  `begun alone ${tries} times in a row, and each time its executor ended`;

/** Nova may still move its server: only its end in Nova, or an operator, frees its slots. */
const setAside = (state: TaskState, tries: number, delayMs: number): TaskState =>
  finish(state, 'poisonous', `${endsExecutors(tries)}; it keeps its slots, and is tried again later`, {
    kind: 'later',
    delayMs,
  });

/** Only of a task that has not started: Nova does nothing for it. */
function deadLetter(state: TaskState, tries: number): TaskState {
  const { deliveries } = state;
  const text = endsExecutors(tries);
  const ended: Ended = {
    type: 'failed',
    errorType: 'DeadLetter',
    reason: reason('poisonous', text, { deliveries, tries }),
    hostAtFault: null,
    next: null,
    started: false,
    nova: null,
  };
  return to(state, { at: 'ending', ended, expected: null });
}

function waiting(state: TaskState, stage: Stage & { at: 'waiting' }, fact: Fact): TaskState {
  switch (fact.kind) {
    case 'mayStart': {
      const { checked } = stage;
      if (suspicious(state)) return to(state, { at: 'suspected', started: false });
      const fresh = checked !== null && !fact.grant.disturbed && fact.at.mono - checked.at <= state.options.checkTtlMs;
      if (fresh) return to(state, { at: 'claiming', grant: fact.grant, checked });
      return to(state, { at: 'checking', grant: fact.grant });
    }
    case 'mustEnd':
      return fail(state, fact.failure, { started: false, nova: null }, fact.at, fact.expected);
    case 'overtaken':
      return to(state, { at: 'received' });
    case 'yielded':
      return { ...state, tried: false };
    case 'putOff':
      return finish(state, 'put-off', 'it waits on the queue', { kind: 'later', delayMs: fact.delayMs });
    case 'draining':
      return handOver(state);
    default:
      throw new UnexpectedFact(stage.at, fact.kind);
  }
}

function checked(state: TaskState, { grant }: Stage & { at: 'checking' }, verdict: Verdict, at: Reading): TaskState {
  const { expected } = grant;
  switch (verdict.kind) {
    case 'go': {
      if (state.options.dryRun) {
        const { from, destination } = state.task;
        const text = `dry run: pre-flight passed, it would have been migrated from ${from} to ${destination}`;
        return to(seeing(state), {
          at: 'ending',
          ended: { type: 'skipped', reason: reason('dry-run', text) },
          expected,
        });
      }
      // The log went on while the cloud was read: fold and decide again before the claim.
      const found = { newestMigrationId: verdict.newestMigrationId, forced: verdict.forced, at: at.mono };
      return to(seeing(state), { at: 'waiting', checked: found, notBefore: at.mono });
    }
    case 'there':
      return to(seeing(state), {
        at: 'ending',
        ended: { type: 'completed', outcome: 'alreadyThere', host: verdict.host, warnings: [], nova: null },
        expected,
      });
    case 'no':
      return fail(seeing(state), verdict.failure, { started: false, nova: null }, at, expected);
    case 'unreachable':
      // Nothing has begun, so nothing is lost by waiting; `notAfter` ends it.
      return to(
        { ...state, blind: state.blind + 1 },
        { at: 'waiting', checked: null, notBefore: at.mono + backoff(state, state.options.pollIntervalMs) },
      );
  }
}

function posted(state: TaskState, run: Run, answer: PostAnswer, at: Reading): TaskState {
  const { task } = state;
  const look = { ...run, since: at.mono };
  switch (answer.kind) {
    case 'accepted':
      return to(state, {
        at: 'seeking',
        run: { ...look, requestId: answer.requestId, acceptedAt: at.mono },
        soon: true,
      });
    case 'unknown':
      return to(state, { at: 'seeking', run: look, soon: true });
    case 'notSent': {
      const failure: Failure = {
        errorType: 'NovaClientError',
        reason: reason('not-sent', `the request was not sent: ${answer.text}`),
        fault: 'infrastructure',
        hostAtFault: null,
      };
      return fail(state, failure, { started: true, nova: null }, at, null);
    }
    case 'refused': {
      const failure = refusedPost(answer, task);
      if (failure === 'look') return to(state, { at: 'seeking', run: look, soon: true });
      return fail(state, failure, { started: true, nova: null }, at, null);
    }
  }
}

/** The answers to a look that are no look. */
function unseen(state: TaskState, fact: Fact, stage: Stage & { at: 'seeking' | 'following' }): TaskState {
  if (fact.kind === 'blind') {
    const told = heeded(state, stage.run, fact.word, null, fact.at);
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

/** What the log says that ends an attempt whatever Nova does; null: nothing. */
function heeded(state: TaskState, run: Run, word: Word, server: ServerFacts | null, at: Reading): TaskState | null {
  if (word.ended) return to(state, { at: 'received' });
  if (word.closeAsked === null) return null;
  const { by, comment } = word.closeAsked;
  const seen =
    run.migrationId === null ? 'no migration was seen' : `Nova called migration ${run.migrationId} ${run.status}`;
  const text = `closed by ${by}${comment === null ? '' : ` (${comment})`}; ${seen}`;
  const nova = novaFacts(run, at);
  if (server !== null && server.host === state.task.destination) {
    const warnings = [reason('closed', text), ...(isUp(server) ? [] : [notUp(server)])];
    return to(state, { at: 'ending', ended: completed(server.host, warnings, nova), expected: null });
  }
  return fail(state, cancelled('closed', text), { started: true, nova }, at, null);
}

function sought(state: TaskState, run: Run, look: Look, word: Word, at: Reading): TaskState {
  const { task, options } = state;
  const told = heeded(state, run, word, look.server === 'gone' ? null : look.server, at);
  if (told !== null) return told;
  const stop: Stop | null = run.stop ?? (word.stopAsked ? { cause: 'operator' } : null);
  const found = ours(look.migrations, run.newestMigrationId, task);
  if (found !== null) {
    const { id, status, destCompute } = found;
    return to(state, { at: 'noting', run: { ...run, stop, migrationId: id, status, destCompute } });
  }
  const stay = to(state, { at: 'seeking', run: { ...run, stop }, soon: false });
  const { server } = look;
  if (server === null) return stay;
  if (server === 'gone') return gone(state, run, at);
  // An empty list means nothing for as long as Nova may still be at work.
  if (at.mono - run.since < options.takeoverMs || server.taskState !== null) return stay;
  const nova = novaFacts(run, at);
  if (server.host === task.destination) {
    const warning = reason(
      'no-migration-seen',
      'the server is on its destination; Nova shows no migration that took it there',
    );
    return to(state, { at: 'ending', ended: completed(task.destination, [warning], nova), expected: null });
  }
  if (server.host !== task.from) return fail(state, movedByOthers(server.host), { started: true, nova }, at, null);
  if (stop?.cause === 'operator') return fail(state, operatorStopped(), { started: true, nova }, at, null);
  const waited = Math.round((at.mono - run.since) / 1000);
  const failure: Failure = {
    errorType: 'NovaClientError',
    reason: reason('no-migration', `Nova shows no migration after ${waited} s; the server is on its source and idle`),
    fault: 'infrastructure',
    hostAtFault: null,
  };
  return fail(state, failure, { started: true, nova }, at, null);
}

const FINAL: ReadonlySet<string> = new Set(['completed', 'failed', 'error', 'cancelled']);
/** Statuses from which Nova lets a live migration be aborted: running, since 2.65 also the two before it. */
const ABORTABLE: ReadonlySet<string> = new Set(['queued', 'preparing', 'running']);

function followed(state: TaskState, before: Run, look: Look, word: Word, at: Reading): TaskState {
  const { task, options } = state;
  const { server } = look;
  if (server === 'gone') return gone(state, before, at);
  const told = heeded(state, before, word, server, at);
  if (told !== null) return told;
  const row = look.migrations.find((m) => m.id === before.migrationId);
  let run: Run =
    row === undefined
      ? { ...before, goneSince: before.goneSince ?? at.mono }
      : { ...before, status: row.status, destCompute: row.destCompute, goneSince: null };
  const status = run.status ?? '';
  if (row !== undefined && FINAL.has(status)) return over(state, { ...run, overAt: run.overAt ?? at.mono }, look, at);
  if (status.startsWith('running') && run.watch === null) run = { ...run, watch: startWatch(at.mono) };
  if (run.watch !== null) run = { ...run, watch: watched(run.watch, look.progress, at.mono) };
  const idle = server !== null && server.taskState === null && server.host !== null;
  run = { ...run, idleSince: idle ? (run.idleSince ?? at.mono) : null };
  if (server !== null && isAbandoned(run, at, options)) return abandoned(state, run, server, at);
  if (run.stop === null)
    run = {
      ...run,
      stop: word.stopAsked
        ? { cause: 'operator' }
        : (forsaken(run, at, options) ?? overdue(run, task, at.mono, options)),
    };
  const { abort, stop, migrationId } = run;
  const again =
    abort === null ||
    at.mono - abort.at >= options.abortAgainMs ||
    (abort.answer !== 'accepted' && abort.status !== status);
  const abortable = ABORTABLE.has(status) || forsaken(run, at, options) !== null;
  if (stop !== null && migrationId !== null && row !== undefined && abortable && again)
    return run.noted ? aborting(state, run, migrationId, at) : to(state, { at: 'stopping', run, migrationId, stop });
  return to(state, { at: 'following', run, soon: false });
}

/** Idle for longer than Nova ever takes to agree with itself, and nothing is being copied. */
function isIdle(run: Run, at: Reading, options: TaskOptions): boolean {
  const copiedAt = run.watch?.best?.at ?? Number.NEGATIVE_INFINITY;
  return (
    run.idleSince !== null && at.mono - run.idleSince >= options.settleMs && at.mono - copiedAt >= options.settleMs
  );
}

/** Why Nova is asked to abort a migration whose server has long been idle: its answer tells whether anybody works on it. */
function forsaken(run: Run, at: Reading, options: TaskOptions): Overdue | null {
  if (run.goneSince !== null || !isIdle(run, at, options)) return null;
  const limitMs = options.settleMs;
  const text = `the server has been idle for ${limitMs / 1000} s, and Nova calls the migration ${run.status}`;
  return { cause: 'abandoned', limitMs, text };
}

/**
 * Nova works on the migration no more: its server is idle, and Nova refused an abort since, or has not listed the row for long.
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
  const nova = novaFacts(run, at);
  if (server.host === task.destination) {
    const warnings = isUp(server) ? [why] : [why, notUp(server)];
    return to(state, { at: 'ending', ended: completed(task.destination, warnings, nova), expected: null });
  }
  if (server.host !== task.from) return fail(state, movedByOthers(server.host), { started: true, nova }, at, null);
  if (run.stop?.cause === 'operator') return fail(state, operatorStopped(), { started: true, nova }, at, null);
  // No further attempt: who resets a server's state by hand makes it look idle, too.
  const failure: Failure = { errorType: 'NovaClientError', reason: why, fault: 'none', hostAtFault: null };
  return fail(state, failure, { started: true, nova }, at, null);
}

const aborting = (state: TaskState, run: Run, migrationId: number, at: Reading): TaskState =>
  to(state, { at: 'aborting', run, migrationId, by: at.mono + state.options.postWindowMs });

/** The migration is over by its status: where is the server? Trust the host, not the status. */
function over(state: TaskState, run: Run, look: Look, at: Reading): TaskState {
  const { task, options } = state;
  const { server } = look;
  const again = to(state, { at: 'following', run, soon: server === null });
  if (server === null || server === 'gone') return again;
  const status = run.status ?? '';
  const nova = novaFacts(run, at);
  const settled = at.mono - (run.overAt ?? at.mono) >= options.settleMs;
  if (server.host === task.destination) {
    if (status !== 'completed' || !isUp(server)) return to(state, { at: 'explaining', run, server, tries: 0 });
    return to(state, { at: 'ending', ended: completed(task.destination, [], nova), expected: null });
  }
  if (status === 'completed') {
    const newer = look.migrations.some((m) => run.migrationId !== null && m.id > run.migrationId);
    if (newer || (server.host !== task.from && server.host !== null)) {
      const host = server.host ?? task.destination;
      const text = `the migration completed, and the server has moved on to ${host} since`;
      const ended = completed(host, [reason('moved-since', text)], nova);
      return to(state, { at: 'ending', ended, expected: null });
    }
    if (!settled) return again;
    const failure: Failure = {
      errorType: 'MigrationFailed',
      reason: reason(
        'host-did-not-change',
        'Nova calls the migration completed, and the server is still on its source',
      ),
      fault: 'none',
      hostAtFault: null,
    };
    return fail(state, failure, { started: true, nova }, at, null);
  }
  // Nova clears the task state when its roll-back is done.
  if (server.taskState !== null && !settled) return again;
  if (server.host !== task.from) return fail(state, movedByOthers(server.host), { started: true, nova }, at, null);
  // An abort is a cast: only a cancelled migration was ended by one.
  if (status === 'cancelled') return fail(state, stopped(run.stop), { started: true, nova }, at, null);
  return to(state, { at: 'explaining', run, server, tries: 0 });
}

/** What a cancelled migration means. */
function stopped(stop: Stop | null): Failure {
  if (stop === null || stop.cause === 'abandoned') return abortedByOthers();
  if (stop.cause === 'operator') return operatorStopped();
  return {
    errorType: 'MigrationTimeout',
    reason: reason(stop.cause, `aborted: ${stop.text}`, { limitMs: stop.limitMs }),
    fault: stop.cause === 'queue' ? 'infrastructure' : 'none',
    hostAtFault: null,
  };
}

function explained(state: TaskState, stage: Stage & { at: 'explaining' }, fact: Fact): TaskState {
  const { run, server, tries } = stage;
  if (fact.kind === 'draining') return handOver(state);
  if (fact.kind === 'blind' && tries + 1 < state.options.explainTries) return to(state, { ...stage, tries: tries + 1 });
  if (fact.kind !== 'explained' && fact.kind !== 'blind') throw new UnexpectedFact(stage.at, fact.kind);
  const account = fact.kind === 'explained' ? fact.account : NO_ACCOUNT;
  const nova = { ...novaFacts(run, fact.at), reason: account.story?.text ?? null };
  if (server.host === state.task.destination) {
    const warnings: Reason[] = [];
    const status = run.status ?? 'unknown';
    if (status !== 'completed') warnings.push(endedOtherwise(status, account));
    if (!isUp(server)) warnings.push(notUp(server, account));
    return to(state, { at: 'ending', ended: completed(server.host, warnings, nova), expected: null });
  }
  const seen = { status: run.status ?? 'unknown', destCompute: run.destCompute, serverInError: inError(server) };
  const failure = failedMigration(seen, account, state.task);
  // Who wanted it stopped wants no further attempt.
  const wanted = run.stop?.cause === 'operator' ? { ...failure, fault: 'none' as const } : failure;
  return fail(state, wanted, { started: true, nova }, fact.at, null);
}

function ending(state: TaskState, stage: Stage & { at: 'ending' }, fact: Fact): TaskState {
  const { ended } = stage;
  switch (fact.kind) {
    case 'log': {
      const { attempt, expected } = fact.log;
      const begun =
        ended.type === 'failed' ? ended.started : ended.type === 'completed' && ended.outcome === 'migrated';
      if (attempt.kind === 'waiting' || (attempt.kind === 'started' && begun)) return to(state, { ...stage, expected });
      // Ended by another, or started by another while this one came to the end that it must not start.
      return received(state, fact.log, fact.at);
    }
    case 'appended':
      if (ended.type === 'failed' && ended.next !== null) return to(state, { at: 'passing', next: ended.next });
      return finish(state, 'ended', 'the outcome is on the log');
    case 'conflict':
    case 'lostTrack':
      return to(state, { ...stage, expected: null });
    default:
      throw new UnexpectedFact(stage.at, fact.kind);
  }
}

const completed = (host: string, warnings: readonly Reason[], nova: NovaFacts): Ended => ({
  type: 'completed',
  outcome: 'migrated',
  host,
  warnings,
  nova,
});

/** Ends the attempt; a further one follows where it can help and may still be made. */
function fail(
  state: TaskState,
  failure: Failure,
  facts: { readonly started: boolean; readonly nova: NovaFacts | null },
  at: Reading,
  expected: number | null,
): TaskState {
  const { errorType, hostAtFault } = failure;
  const next = nextAttempt(state, failure, at);
  const ended: Ended = { type: 'failed', errorType, reason: failure.reason, hostAtFault, next, ...facts };
  return to(state, { at: 'ending', ended, expected });
}

/** The attempt that follows a failure; null when the failure is final. */
function nextAttempt(
  { task, options }: Pick<TaskState, 'task' | 'options'>,
  failure: Failure,
  at: Reading,
): Next | null {
  const { attempt } = task;
  if (failure.fault === 'none' || attempt > options.maxRetries) return null;
  const destination = failure.fault === 'destination' ? nextDestination(task) : task.destination;
  if (destination === null) return null;
  const wait = Math.min(options.retryBackoffMs * 2 ** (attempt - 1), options.retryBackoffMaxMs);
  const notBeforeMs = failure.fault === 'destination' ? at.wall : at.wall + wait;
  if (notBeforeMs >= Date.parse(task.notAfter)) return null;
  return { attempt: attempt + 1, destination, notBeforeMs };
}

/** The destination after the current one in the order of the plan: `to`, then the alternates. */
function nextDestination(task: Task): string | null {
  const all = [task.to, ...task.alternates];
  return all[all.indexOf(task.destination) + 1] ?? null;
}

function gone(state: TaskState, run: Run, at: Reading): TaskState {
  const failure = cancelled('server-gone', 'Nova does not know the server any more');
  return fail(state, failure, { started: true, nova: novaFacts(run, at) }, at, null);
}

const movedByOthers = (host: string | null): Failure =>
  cancelled('moved-by-others', `the server is on ${host ?? 'no host'}: somebody else moved it`);

const abortedByOthers = (): Failure => cancelled('aborted-by-others', 'somebody else aborted the migration in Nova');

const operatorStopped = (): Failure => cancelled('operator', 'an operator stopped it');

const isUp = (server: ServerFacts): boolean =>
  server.taskState === null && (server.status === 'ACTIVE' || server.status === 'PAUSED');

const inError = (server: ServerFacts): boolean => server.vmState === 'error' || server.status === 'ERROR';

function notUp(server: ServerFacts, account: Account = NO_ACCOUNT): Reason {
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

function novaFacts(run: Run, at: Reading): NovaFacts {
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
