/** The data of a task in each of its stages, its requests to the shell, and the facts that come back. README.md has the diagram. */
import type {
  CellMethod,
  ErrorType,
  MigrationCompleted,
  MigrationFailed,
  MigrationRequested,
  MigrationSkipped,
  Reason,
  ServerBefore,
} from '@kronos/contracts';
import type { Party } from '@kronos/facts';
import type { Migration, Server } from '@kronos/openstack';
import type { CellSlot, SettleAct } from '@kronos/projections';
import type { Duration } from '@kronos/rules';
import type { Overdue, ProgressFacts, Watch } from './deadline.ts';
import type { Account, JudgedFailure } from './failure.ts';
import type { TaskOptions } from './options.ts';

/** A task as it was delivered. */
export type Task = MigrationRequested['data'] & {
  readonly aggregate: string;
};

/** Two clocks: `mono` never jumps and measures durations, `wall` is ms since the epoch. */
export interface Reading {
  readonly mono: number;
  readonly wall: number;
}

/** One attempt of a task on the log. */
export type AttemptLog =
  /** No released plan has it, or an attempt that was never asked for. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'waiting' }
  | {
      readonly kind: 'started';
      readonly newestMigrationId: number;
      readonly migrationId: number | null;
      readonly requestId: string | null;
      /** The reason for which an earlier executor wanted to abort it. */
      readonly stop: Stop | null;
      /** Of a move between cells: how far it is, and when it was started (ms since the epoch). */
      readonly cell?: CellSlot & { readonly startedAtMs: number };
    }
  /** `next`: a further attempt was announced and has not begun. */
  | { readonly kind: 'ended'; readonly next: Next | null };

export interface TaskLog {
  readonly attempt: AttemptLog;
  /** Last sequence folded on `kronos.results.<agg>`: the next append there expects it. */
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

/** The verdict of pre-flight. */
export type PreflightVerdict =
  | { readonly kind: 'go'; readonly newestMigrationId: number; readonly forced: boolean; readonly cell?: CheckedCell }
  | { readonly kind: 'there'; readonly host: string }
  | { readonly kind: 'no'; readonly failure: JudgedFailure }
  /** An API did not answer: nothing is known. */
  | { readonly kind: 'unreachable'; readonly text: string };

/** A move between cells as the log has it from its start. */
export interface CellStart {
  readonly method: CellMethod;
  readonly oldFlavor: string | null;
  readonly newFlavor: string | null;
  readonly before: ServerBefore;
  /** Uuids of the server's migrations before the attempt. */
  readonly knownMigrations: readonly string[];
}

/** The result of pre-flight for a move between cells; `flavorId`: of the new flavor, null for a cold migration. */
export type CheckedCell = CellStart & { readonly flavorId: string | null };

export type PostAnswer =
  | { readonly kind: 'accepted'; readonly requestId: string | null }
  | { readonly kind: 'refused'; readonly status: number; readonly text: string }
  /** It may have reached Nova. */
  | { readonly kind: 'unknown'; readonly text: string }
  /** It surely did not reach Nova. */
  | { readonly kind: 'notSent'; readonly text: string };

/** The fields of Nova's servers and migrations that a task needs. */
export type ServerFacts = Pick<Server, 'host' | 'status' | 'vmState' | 'taskState'>;
export type MigrationFacts = Pick<Migration, 'id' | 'type' | 'status' | 'sourceCompute' | 'destCompute'>;

/** One look at Nova. The migrations are read before the server, so the server is never older than a status. */
export interface NovaLook {
  /** Of this server, the newest ones, in any order. */
  readonly migrations: readonly MigrationFacts[];
  /** Null: not read this time. */
  readonly server: ServerFacts | 'gone' | null;
  readonly progress: ProgressFacts | null;
  /** Nova has accepted a live migration of the server, and its conductor has not begun it. */
  readonly accepted: boolean;
}

/** A server that moves between cells. */
export interface CellServer extends ServerFacts {
  readonly powerState: number | null;
  readonly flavor: string | null;
  readonly addresses: readonly string[];
  readonly volumes: readonly string[];
}

/** A row of Nova's migrations. One move between cells has a row in each cell, with one uuid. */
export type CellMigration = MigrationFacts & Pick<Migration, 'uuid'>;

/** One look at Nova for a move between cells. The migrations are read before the server. */
export interface CellLook {
  readonly migrations: readonly CellMigration[];
  /** Null: its cell is down. */
  readonly server: CellServer | 'gone' | null;
  /** Hosts of the target aggregate; null: not read this time. */
  readonly targetHosts: readonly string[] | null;
  /** The additional check of the guest; null: none was made. */
  readonly probe: { readonly ok: boolean; readonly text: string } | null;
}

/** Why a move in VERIFY_RESIZE is confirmed or reverted. */
export interface Settle {
  readonly act: SettleAct;
  readonly cause: string;
  readonly reason: Reason;
}

/** A move between cells that was started. Times are monotonic readings where nothing else is said. */
export interface CellRun {
  readonly start: CellStart;
  /** ms since the epoch */
  readonly startedAtMs: number;
  readonly requestId: string | null;
  readonly migrationId: number | null;
  readonly uuid: string | null;
  /** Of the row that changed last. */
  readonly status: string | null;
  /** Since when this executor looks for it. */
  readonly since: number;
  readonly acceptedAt: number | null;
  /** VERIFY_RESIZE; ms since the epoch. */
  readonly arrived: { readonly host: string; readonly atMs: number } | null;
  /** The log has that its checks have passed. */
  readonly verified: boolean;
  /** The end of the move on the log. */
  readonly settle: Settle | null;
  /** When this executor asked Nova for it last. */
  readonly askedAt: number | null;
  /** Since when this executor checks it, since when all checks pass, and what failed last. */
  readonly checkedSince: number | null;
  readonly goodSince: number | null;
  readonly problem: Reason | null;
  /** Since when every look found the server idle, neither in VERIFY_RESIZE nor at an end. */
  readonly idleSince: number | null;
}

/** An attempt that was started. Times are monotonic readings. */
export interface Run {
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
  /** Since when this executor knows that an operator wants the task closed. */
  readonly closeSince: number | null;
}

/** Why a migration has to end before its time. */
export type Stop = { readonly cause: 'operator' } | Overdue;

type AbortAnswer = 'accepted' | 'refused' | 'unknown';

/** How Nova refused an abort. */
export interface AbortRefusal {
  /** HTTP status. */
  readonly status: number;
  /** Nova's own words. */
  readonly text: string;
}

/** The orders of people about an attempt, by the log; its end by another executor; and the usual duration. */
export interface AttemptOrders {
  /** An operator wants the move stopped. */
  readonly stopAsked: boolean;
  /** An operator wants a move between cells confirmed or reverted. */
  readonly settleAsked?: { readonly act: SettleAct; readonly by: string };
  /** An operator wants the task ended when Nova no longer works on its server. `force`: whatever becomes of its migration. */
  readonly closeAsked: { readonly by: string; readonly comment: string | null; readonly force?: true } | null;
  /** The log has the end of the attempt: another executor appended it. */
  readonly ended: boolean;
  /** Duration of former live migrations like it. Absent: too few are known. */
  readonly usual?: Duration;
}

/** The data of an event about an attempt that the task itself does not have. */
type Told<E extends { readonly data: AttemptNames }> = Omit<E['data'], keyof AttemptNames | 'retries'>;
export type AttemptNames = Pick<Task, 'taskId' | 'planId' | 'serverId' | 'attempt' | 'from' | 'destination'>;

/** The outcome of an attempt, as its event has it. */
export type Ended =
  | ({ readonly type: 'completed' } & Told<MigrationCompleted>)
  | ({ readonly type: 'skipped' } & Told<MigrationSkipped>)
  | ({
      readonly type: 'failed';
      readonly errorType: ErrorType;
      readonly cause: Party;
      readonly next: Next | null;
    } & Omit<Told<MigrationFailed>, 'errorType' | 'cause' | 'next' | 'retryPending'>);

export type AttemptOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'later'; readonly delayMs: number }
  | { readonly kind: 'handOver' };

export type Stage =
  | { readonly at: 'received' }
  /** It may be a poison message: it waits until an executor can work on it alone. */
  | { readonly at: 'suspected'; readonly started: boolean }
  /** Its turn: the start is appended to the log before it happens. */
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
  | { readonly at: 'refused'; readonly run: Run; readonly migrationId: number; readonly refusal: AbortRefusal }
  | { readonly at: 'explaining'; readonly run: Run; readonly server: ServerFacts; readonly tries: number }
  /** A move between cells: its POST. */
  | { readonly at: 'resizing'; readonly run: CellRun; readonly by: number; readonly flavorId: string | null }
  /** On its way to VERIFY_RESIZE. */
  | { readonly at: 'travelling'; readonly run: CellRun; readonly soon: boolean }
  /** Nova's migration goes onto the log. */
  | { readonly at: 'recording'; readonly run: CellRun }
  /** That it is in VERIFY_RESIZE goes onto the log. */
  | { readonly at: 'arriving'; readonly run: CellRun; readonly host: string }
  | { readonly at: 'verifying'; readonly run: CellRun; readonly soon: boolean }
  /** That its checks have passed goes onto the log. */
  | { readonly at: 'reportingVerified'; readonly run: CellRun; readonly host: string }
  /** Whether it is confirmed or reverted goes onto the log. */
  | { readonly at: 'settling'; readonly run: CellRun; readonly settle: Settle }
  /** Which of the two counts: the first on the log. */
  | { readonly at: 'agreeing'; readonly run: CellRun }
  /** Nova is asked to confirm or to revert. */
  | { readonly at: 'asking'; readonly run: CellRun; readonly by: number; readonly act: SettleAct }
  | { readonly at: 'concluding'; readonly run: CellRun; readonly soon: boolean }
  /** Nova's reason for an end that was not wanted. */
  | { readonly at: 'inquiring'; readonly run: CellRun; readonly server: CellServer; readonly tries: number }
  | { readonly at: 'ending'; readonly ended: Ended; readonly expected: number | null }
  | { readonly at: 'passing'; readonly next: Next }
  | { readonly at: 'finished'; readonly outcome: AttemptOutcome; readonly why: Reason };

export type StageName = Stage['at'];

interface Checked {
  readonly newestMigrationId: number;
  /** Nova's scheduler is to be bypassed (`[executor] force`, below 2.68 only). */
  readonly forced: boolean;
  /** Of a move between cells. */
  readonly cell?: CheckedCell;
  /** When its reads were over. From a slow API nothing fresher can be had; `checkMaxMs` bounds how long they took. */
  readonly at: number;
}

export interface TaskState {
  readonly task: Task;
  readonly options: TaskOptions;
  /** 1 for the first delivery of this message. */
  readonly deliveries: number;
  /** It has the turn of a suspected task, and the log says so. */
  readonly tried: boolean;
  /** Number of times in a row that an API did not answer. */
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
      readonly cell?: CellStart;
    }
  /** Ask Nova; not a byte leaves after `by` (monotonic). */
  | { readonly do: 'post'; readonly by: number; readonly forced: boolean }
  /** Wait, then read Nova. `migrationId`: the one that is followed; null while it is looked for. */
  | { readonly do: 'look'; readonly afterMs: number; readonly migrationId: number | null }
  | {
      readonly do: 'appendObserved';
      readonly migrationId: number;
      readonly requestId: string | null;
      readonly migrationUuid?: string | null;
    }
  /** Ask Nova for a cold migration, or a resize to the flavor; not a byte leaves after `by` (monotonic). */
  | { readonly do: 'postCell'; readonly by: number; readonly flavorId: string | null }
  /** Wait, then read Nova. `probe`: check the guest too. */
  | { readonly do: 'lookCell'; readonly afterMs: number; readonly probe: boolean }
  | { readonly do: 'appendVerifying'; readonly host: string }
  | { readonly do: 'appendVerified'; readonly host: string; readonly verifySeconds: number }
  | { readonly do: 'appendSettle'; readonly settle: Settle }
  /** Ask Nova to confirm or to revert; not a byte leaves after `by` (monotonic). */
  | { readonly do: 'settle'; readonly act: SettleAct; readonly by: number }
  | { readonly do: 'appendAbortRequested'; readonly stop: Stop }
  /** Ask Nova to abort; not a byte leaves after `by` (monotonic). */
  | { readonly do: 'abort'; readonly migrationId: number; readonly by: number }
  | { readonly do: 'appendAbortRefused'; readonly migrationId: number; readonly refusal: AbortRefusal }
  | { readonly do: 'explain'; readonly afterMs: number; readonly requestId: string | null }
  | { readonly do: 'appendEnded'; readonly expected: number; readonly ended: Ended }
  | { readonly do: 'publishNext'; readonly next: Next }
  | { readonly do: 'finish'; readonly outcome: AttemptOutcome; readonly why: Reason };

export type FactBody =
  | { readonly kind: 'log'; readonly log: TaskLog }
  /** It has the turn of a suspected task. `tries`: how often it was begun before; `agoMs`: when it was begun last. */
  | { readonly kind: 'turn'; readonly tries: number; readonly agoMs: number }
  /** It gave the turn up, because its wait may be long. */
  | { readonly kind: 'yielded' }
  | { readonly kind: 'mayStart'; readonly grant: Grant }
  /** It must not start: it ends with this failure. */
  | { readonly kind: 'mustEnd'; readonly failure: JudgedFailure; readonly expected: number }
  /** The log has the attempt started or ended by another. */
  | { readonly kind: 'overtaken' }
  | { readonly kind: 'requeued'; readonly delayMs: number }
  /** The executor stops. */
  | { readonly kind: 'draining' }
  /** `tookMs`: from its first read to its last. */
  | { readonly kind: 'checked'; readonly verdict: PreflightVerdict; readonly tookMs: number }
  /** It is on the log, and by this append. `began`: when the append was begun. */
  | { readonly kind: 'appended'; readonly began: number }
  /** It was not written: the subject has moved on, or the same act is already there. */
  | { readonly kind: 'conflict' }
  /** Nobody knows whether it was written. */
  | { readonly kind: 'lostTrack' }
  | { readonly kind: 'posted'; readonly answer: PostAnswer }
  | { readonly kind: 'looked'; readonly look: NovaLook; readonly orders: AttemptOrders }
  | { readonly kind: 'lookedCell'; readonly look: CellLook; readonly orders: AttemptOrders }
  | { readonly kind: 'settleAnswered' }
  /** An API did not answer. */
  | { readonly kind: 'blind'; readonly text: string; readonly orders: AttemptOrders }
  | { readonly kind: 'abortAnswered'; readonly answer: 'accepted' | 'unknown' }
  | { readonly kind: 'abortAnswered'; readonly answer: 'refused'; readonly refusal: AbortRefusal }
  | { readonly kind: 'explained'; readonly account: Account; readonly orders: AttemptOrders }
  | { readonly kind: 'published' };

export type FactKind = FactBody['kind'];

export type Fact = FactBody & { readonly at: Reading };

/** Waits grow while an API does not answer. */
export function backoff(state: TaskState, base: number): number {
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

export const to = (state: TaskState, stage: Stage): TaskState => ({ ...state, stage });

/** Whether Nova may still work on a server. It may while it does not show the server, as when its cell is down. */
export const mayBeBusy = (server: { readonly taskState: string | null } | 'gone' | null): boolean =>
  server === null || (server !== 'gone' && server.taskState !== null);

export const seeing = (state: TaskState): TaskState => (state.blind === 0 ? state : { ...state, blind: 0 });

export const startRun = (newestMigrationId: number, at: number): Run => ({
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
  closeSince: null,
});

/** @param at monotonic */
export const startCellRun = (start: CellStart, startedAtMs: number, at: number): CellRun => ({
  start,
  startedAtMs,
  requestId: null,
  migrationId: null,
  uuid: null,
  status: null,
  since: at,
  acceptedAt: null,
  arrived: null,
  verified: false,
  settle: null,
  askedAt: null,
  checkedSince: null,
  goodSince: null,
  problem: null,
  idleSince: null,
});
