import { ALL, eventTimeMs, type LogEvent, type StoredEvent } from '@kronos/contracts';
import { hostReleased } from './breaker.ts';
import { cellMoved, settleAsked } from './cells.ts';
import { configured } from './configuration.ts';
import { paused } from './controls.ts';
import { decided } from './decisions.ts';
import { Draft } from './draft.ts';
import { drainAsked, hostEvent } from './drains.ts';
import { approved, dispatched, rejected, withdrawn } from './plans.ts';
import { proposed } from './proposals.ts';
import { quarantineAsked, quarantineReleased } from './quarantine.ts';
import { ended } from './results.ts';
import { initialLogState, type LogState } from './state.ts';
import { abortRefused, endAsked, observed, started, suspected } from './tasks.ts';
import { skipped, unreadable } from './unreadable.ts';
import { upcast } from './upcast.ts';

/**
 * A fold of the log that goes on. `apply` is fast because it writes in place what it owns; `snapshot` gives an immutable
 * state for the price of copying, on the next event, the tables which that event touches.
 */
export type Folder = {
  /** Stream sequence of the last event folded. */
  readonly sequence: number;
  /** Folds one event. Events come in the order of their sequences; one that was folded already changes nothing. */
  apply(stored: StoredEvent): Folder;
  /** The state now. It never changes afterwards. */
  snapshot(): LogState;
};

/** The state after one more event: the pure form of {@link createFolder}, for tests and for single events. */
export const evolve = (state: LogState, stored: StoredEvent): LogState => createFolder(state).apply(stored).snapshot();

/** The state after all of these events. */
export function fold(events: Iterable<StoredEvent>, from: LogState = initialLogState()): LogState {
  const folder = createFolder(from);
  for (const stored of events) folder.apply(stored);
  return folder.snapshot();
}

/** The fold as `EventLog.view` takes it. */
export const folding = (from?: LogState) => ({
  initial: createFolder(from),
  evolve: (folder: Folder, stored: StoredEvent): Folder => folder.apply(stored),
  snapshot: (folder: Folder): LogState => folder.snapshot(),
});

export function createFolder(from: LogState = initialLogState()): Folder {
  const draft = new Draft(from);
  const folder: Folder = {
    get sequence() {
      return draft.sequence;
    },
    apply(stored) {
      if (stored.sequence <= draft.sequence) return folder;
      draft.sequence = stored.sequence;
      const { event } = stored;
      const stamp = stampOf(draft, stored);
      if (event.type === 'unreadable') {
        const { aggregate, claimedType, claimedVersion, problem, remedy } = event;
        unreadable(draft, { aggregate, claimedType, claimedVersion, problem, remedy });
      } else if (event.aggregate === ALL && !ADDRESSES_ALL.has(event.type))
        cannotFold(draft, event, `${event.type} belongs to one aggregate and was addressed to all`);
      else foldSafely(draft, event, stamp);
      return folder;
    },
    snapshot: () => draft.snapshot(),
  };
  return folder;
}

/** No event, however made, ends a fold: one that cannot be folded makes its aggregate unplannable. */
function foldSafely(draft: Draft, event: LogEvent, storedAt: number): void {
  try {
    one(draft, upcast(event), storedAt);
  } catch (error) {
    cannotFold(draft, event, `it cannot be folded: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const cannotFold = (draft: Draft, { aggregate, type, version }: LogEvent, problem: string): void =>
  unreadable(draft, { aggregate, claimedType: type, claimedVersion: version, problem, remedy: 'skip' });

/**
 * The server's timestamp of an event, on a log that was restored the original one. Only the first events of a log can be
 * restored ones: after an event that no restore published, none may claim another timestamp than its own.
 */
function stampOf(draft: Draft, { storedAt, originallyStoredAt }: StoredEvent): number {
  if (!draft.all.live && originallyStoredAt !== undefined) return originallyStoredAt;
  if (!draft.all.live) draft.allFacts().live = true;
  return storedAt;
}

/** Each event goes to the concern whose facts it states. The compiler asks for a case of every type. */
function one(draft: Draft, event: LogEvent, storedAt: number): void {
  const at = eventTimeMs(event.time, storedAt);
  switch (event.type) {
    case 'cycle.decided':
      decided(draft, event, at, storedAt);
      break;
    case 'plan.dispatched':
      dispatched(draft, event, at);
      break;
    case 'plan.withdrawn':
      withdrawn(draft, event, at);
      break;
    case 'planner.configured':
      configured(draft, event, at);
      break;
    case 'migration.started':
      started(draft, event, at);
      break;
    case 'migration.observed':
      observed(draft, event);
      break;
    case 'migration.abortRefused':
      abortRefused(draft, event, at);
      break;
    case 'migration.verifying':
    case 'migration.verified':
    case 'migration.confirmRequested':
    case 'migration.revertRequested':
      cellMoved(draft, event, at);
      break;
    case 'plan.proposed':
      proposed(draft, event, at);
      break;
    case 'migration.confirmAsked':
    case 'migration.revertAsked':
      settleAsked(draft, event, at);
      break;
    case 'migration.completed':
    case 'migration.failed':
    case 'migration.skipped':
      ended(draft, event, at);
      break;
    case 'plan.approved':
      approved(draft, event, at);
      break;
    case 'plan.rejected':
      rejected(draft, event, at);
      break;
    case 'instance.quarantined':
      quarantineAsked(draft, event, at);
      break;
    case 'instance.unquarantined':
      quarantineReleased(draft, event);
      break;
    case 'host.released':
      hostReleased(draft, event);
      break;
    case 'migration.cancelled':
    case 'migration.aborted':
    case 'migration.closed':
      endAsked(draft, event, at);
      break;
    case 'aggregate.paused':
    case 'aggregate.resumed':
      paused(draft, event, at);
      break;
    case 'host.drainAsked':
    case 'host.undrainAsked':
      drainAsked(draft, event, at);
      break;
    case 'host.claimed':
    case 'host.disabled':
    case 'host.drained':
    case 'host.enabled':
    case 'host.leftDisabled':
    case 'host.actFailed':
      hostEvent(draft, event, at);
      break;
    case 'event.skipped':
      skipped(draft, event, at);
      break;
    case 'migration.suspected':
      suspected(draft, event, at);
      break;
    case 'migration.abortRequested':
      // A note of an executor for its successors; it does not change the task.
      break;
    case 'evaluation.requested':
    case 'cells.moveAsked':
    case 'capacity.asked':
      // Asks the scorer for a snapshot; nothing of it is remembered.
      break;
    case 'installation.created':
      // Says which log this is. Readers ask the log itself for it, before they fold anything.
      break;
    default:
      event satisfies never;
  }
}

const ADDRESSES_ALL: ReadonlySet<string> = new Set([
  'aggregate.paused',
  'aggregate.resumed',
  'plan.approved',
  'plan.rejected',
  'instance.quarantined',
  'instance.unquarantined',
  'migration.cancelled',
  'migration.aborted',
  'migration.closed',
  'migration.confirmAsked',
  'migration.revertAsked',
  'host.released',
  'evaluation.requested',
  'event.skipped',
  'installation.created',
]);
