/** The facts that the state machine of a task takes: of the log, of pre-flight, of Nova; and the outcome of an attempt. */
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
import type { Overdue, ProgressFacts } from './deadline.ts';
import type { Account, JudgedFailure } from './failure.ts';

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

/** Why a migration has to end before its time. */
export type Stop = { readonly cause: 'operator' } | Overdue;

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
