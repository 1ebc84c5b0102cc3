import { ALL, addressAll, errorText, eventTimeMs, type LogEvent, type StoredEvent } from '@kronos/contracts';
import { breakerEffects } from './breaker.ts';
import { cellEffects } from './cells.ts';
import { configurationEffects } from './configuration.ts';
import { controlEffects } from './controls.ts';
import { decisionEffects } from './decisions.ts';
import { StateDraft } from './draft.ts';
import { drainEffects } from './drains.ts';
import type { Effects } from './effects.ts';
import { planEffects } from './plans.ts';
import { proposalEffects } from './proposals.ts';
import { quarantineEffects } from './quarantine.ts';
import { resultEffects } from './results.ts';
import { initialLogState, type LogState } from './state.ts';
import { taskEffects } from './tasks.ts';
import { skipEffects, unreadable } from './unreadable.ts';
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

/** A fold of the log that goes on from a state. @param from default: the state before the first event */
export function createFolder(from: LogState = initialLogState()): Folder {
  const draft = new StateDraft(from);
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
      } else if (event.aggregate === ALL && !addressAll.has(event.type))
        cannotFold(draft, event, `${event.type} belongs to one aggregate and was addressed to all`);
      else foldSafely(draft, event, stamp);
      return folder;
    },
    snapshot: () => draft.snapshot(),
  };
  return folder;
}

/** No event, however made, ends a fold: one that cannot be folded makes its aggregate unplannable. */
function foldSafely(draft: StateDraft, event: LogEvent, storedAt: number): void {
  try {
    one(draft, upcast(event), storedAt);
  } catch (error) {
    cannotFold(draft, event, `it cannot be folded: ${errorText(error)}`);
  }
}

const cannotFold = (draft: StateDraft, { aggregate, type, version }: LogEvent, problem: string): void =>
  unreadable(draft, { aggregate, claimedType: type, claimedVersion: version, problem, remedy: 'skip' });

/**
 * The server's timestamp of an event, on a log that was restored the original one. Only the first events of a log can be
 * restored ones: after an event that no restore published, none may claim another timestamp than its own.
 */
function stampOf(draft: StateDraft, { storedAt, originallyStoredAt }: StoredEvent): number {
  if (!draft.all.live && originallyStoredAt !== undefined) return originallyStoredAt;
  if (!draft.all.live) draft.allFacts().live = true;
  return storedAt;
}

const none = (): void => undefined;

/** The effect of each event, by the concern whose facts it states. */
const effects: Effects = {
  ...decisionEffects,
  ...planEffects,
  ...configurationEffects,
  ...taskEffects,
  ...cellEffects,
  ...proposalEffects,
  ...resultEffects,
  ...quarantineEffects,
  ...breakerEffects,
  ...controlEffects,
  ...drainEffects,
  ...skipEffects,
  // A note of an executor for its successors; it does not change the task.
  'migration.abortRequested': none,
  // These ask the scorer for a snapshot; nothing of them is remembered.
  'evaluation.requested': none,
  'cells.moveAsked': none,
  'capacity.asked': none,
  // It says which log this is. Readers ask the log itself for it, before they fold anything.
  'installation.created': none,
};

function one(draft: StateDraft, event: LogEvent, storedAt: number): void {
  const effect = effects[event.type] as (draft: StateDraft, event: LogEvent) => void;
  draft.atMs = eventTimeMs(event.time, storedAt);
  draft.storedAtMs = storedAt;
  effect(draft, event);
}
