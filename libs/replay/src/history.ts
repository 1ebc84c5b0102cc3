import {
  type CycleDecided,
  type ObjectRef,
  type PlanProposed,
  type Snapshot,
  type StoredEvent,
  snapshotSchema,
  snapshotTimeMs,
  validator,
} from '@kronos/contracts';
import { BadObject, digestOf } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import { RecordingInvalid } from './errors.ts';
import { withoutLines } from './lines.ts';

/** The body of a snapshot as it is kept: nothing has looked into it yet. It can be sent to another thread. */
export type StoredBody = {
  /** JSON, UTF-8. */
  readonly bytes: Uint8Array;
  /** `sha256:<hex>` of these bytes, checked. Null in a recorded directory, whose files have several lines: there it is of the JSON without spaces. */
  readonly digest: string | null;
  /** The id of the snapshot, or the file. */
  readonly name: string;
};

/** One recorded snapshot: what is known without its body, and the body on demand. */
export type SnapshotEntry = {
  readonly id: string;
  readonly aggregate: string;
  /** See `snapshotTimeMs`. In a recorded directory, which has no timestamp of it: as the snapshot says. */
  readonly timeMs: number;
  /** @throws RecordingInvalid */
  readonly purpose: () => Promise<Snapshot['purpose']>;
  /** @throws MissingObject, BadObject, RecordingInvalid */
  readonly read: () => Promise<StoredBody>;
};

export type LoadedSnapshot = {
  readonly snapshot: Snapshot;
  /** The body as it is stored: later versions may have put more into it. */
  readonly body: unknown;
  /** Whether the body's JSON without spaces has this digest, `sha256:<hex>`. */
  readonly hasDigest: (expected: string) => boolean;
};

const readSnapshot = validator(snapshotSchema);
const decoder = new TextDecoder();

/** The snapshot in a stored body. @throws BadObject, RecordingInvalid */
export function openSnapshot(stored: StoredBody): LoadedSnapshot {
  const { bytes, digest, name } = stored;
  const wrong = (problem: string, options?: ErrorOptions): Error =>
    digest === null
      ? new RecordingInvalid(name, problem, undefined, options)
      : new BadObject(`the body of snapshot ${name} is no snapshot: ${problem}`, options);
  let text: string;
  let body: unknown;
  try {
    text = decoder.decode(bytes);
    if (digest === null) text = withoutLines(text);
    body = JSON.parse(text);
  } catch (cause) {
    throw wrong('is no JSON', { cause });
  }
  const read = readSnapshot(body);
  if (!read.ok) throw wrong(read.problem);
  return {
    snapshot: read.value,
    body,
    hasDigest(expected) {
      if (digest !== null) return digest === expected;
      // Recordings of Kronos 0.1, and what other programs wrote, have spaces elsewhere too.
      return digestOf(text) === expected || digestOf(JSON.stringify(body)) === expected;
    },
  };
}

/** @throws MissingObject, BadObject, RecordingInvalid */
export const loadRecordedSnapshot = async (entry: SnapshotEntry): Promise<LoadedSnapshot> =>
  openSnapshot(await entry.read());

/** Part of a history, by the time of snapshots (ms since the epoch, both ends included) and by aggregate. */
export type Range = {
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** Default: all. */
  readonly aggregates?: readonly string[];
};

/** A decision and its place on the log. */
export type StoredDecision<E extends CycleDecided | PlanProposed = CycleDecided> = {
  readonly sequence: number;
  readonly event: E;
  /** Time of its snapshot, see `snapshotTimeMs`. */
  readonly snapshotMs: number;
};

/** The decision about a request for a plan: for moves between cells, or for room for new VMs. */
export type StoredProposal = StoredDecision<PlanProposed>;

/** Finds the snapshots that decisions name. */
export type SnapshotFinder = {
  /** The snapshot of a decision; null when it is not kept. Decisions are asked for in the order of the log. */
  readonly find: (decision: StoredDecision | StoredProposal) => Promise<SnapshotEntry | null>;
  readonly close: () => Promise<void>;
};

/** The source of a replay: a log and the snapshots that its decisions name. Both a running system and a recorded directory are one. */
export interface History {
  /** For people: the servers, or the directory. */
  readonly name: string;
  /** Names were replaced: digests and texts are not what they were. */
  readonly anonymized: boolean;
  /** The log in order, up to a sequence. It can be read again and again. */
  events(to?: number, from?: number): AsyncIterable<StoredEvent>;
  /** A state to start a fold from, at most up to this sequence; null: there is none, so from the first event. */
  checkpoint(upTo: number): Promise<LogState | null>;
  /** The range whose snapshots are kept: what can be run again when no range is asked for. */
  kept(): Promise<Range>;
  /** Time of the newest snapshot, for estimates; null when there is none. */
  newestMs(): Promise<number | null>;
  /** Decisions about snapshots of the range, in the order of the log. */
  decisions(range: Range): AsyncIterable<StoredDecision>;
  /** Likewise about requests for plans. */
  proposals(range: Range): AsyncIterable<StoredProposal>;
  /** Snapshots of the range, those of one aggregate in the order of their times. */
  snapshots(range: Range): AsyncIterable<SnapshotEntry>;
  /** For the decisions about snapshots of the range. What it holds in memory does not grow with the range. */
  finder(range: Range): SnapshotFinder;
  /** @throws MissingObject, BadObject, RecordingInvalid */
  details(ref: ObjectRef): Promise<Uint8Array>;
}

/** Whether a cycle is decided on such a snapshot: not on one that is only kept, or that was taken for a request for a plan. */
export const isOfCycle = (purpose: Snapshot['purpose']): boolean => purpose === 'cycle' || purpose === 'command';

/** Whether an aggregate's event at a time (ms since the epoch) is in the range, both ends included. */
export const inRange = (range: Range, aggregate: string, timeMs: number): boolean =>
  timeMs >= (range.sinceMs ?? Number.NEGATIVE_INFINITY) &&
  timeMs <= (range.untilMs ?? Number.POSITIVE_INFINITY) &&
  (range.aggregates?.includes(aggregate) ?? true);

/** When an event was stored first: a restored log has newer stamps of the server. */
export const firstStoredMs = ({ storedAt, originallyStoredAt = storedAt }: StoredEvent): number => originallyStoredAt;

/** A cycle's decision on the log, when it is one about a snapshot of the range. */
export const decisionIn = (range: Range, stored: StoredEvent): StoredDecision | null =>
  stored.event.type === 'cycle.decided' ? placedIn(range, stored, stored.event) : null;

/** Likewise the decision about a request for a plan. */
export const proposalIn = (range: Range, stored: StoredEvent): StoredProposal | null =>
  stored.event.type === 'plan.proposed' ? placedIn(range, stored, stored.event) : null;

function placedIn<E extends CycleDecided | PlanProposed>(
  range: Range,
  stored: StoredEvent,
  event: E,
): StoredDecision<E> | null {
  const snapshotMs = snapshotTimeMs(event.data.snapshotTime, firstStoredMs(stored));
  return inRange(range, event.aggregate, snapshotMs) ? { sequence: stored.sequence, event, snapshotMs } : null;
}

/** The part of a decision that its event leaves out; null: none. @throws MissingObject, BadObject, RecordingInvalid */
export const detailsOf = async (
  history: History,
  { details }: Pick<CycleDecided['data'], 'details'>,
): Promise<Uint8Array | null> => (details === null ? null : await history.details(details));
