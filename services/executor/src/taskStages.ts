/** The stages of a task with their data, and the commands that they ask for. README.md has the diagram. */
import type { Reason } from '@kronos/contracts';
import type { SettleAct } from '@kronos/projections';
import type { Watch } from './deadline.ts';
import type { TaskOptions } from './options.ts';
import type {
  AbortRefusal,
  CellServer,
  CellStart,
  CheckedCell,
  Ended,
  FactKind,
  Grant,
  Next,
  ServerFacts,
  Settle,
  Stop,
  Task,
} from './taskFacts.ts';

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

type AbortAnswer = 'accepted' | 'refused' | 'unknown';

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
