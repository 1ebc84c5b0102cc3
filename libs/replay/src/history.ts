import { type CycleDecided, type ObjectRef, type Snapshot, type StoredEvent, snapshotSchema } from '@kronos/contracts';
import type { LogState } from '@kronos/projections';

/** One recorded snapshot: what is known without its body, and the body on demand. */
export type SnapshotEntry = {
  readonly id: string;
  readonly aggregate: string;
  readonly timeMs: number;
  readonly purpose: Snapshot['purpose'];
  /** @throws MissingObject, BadObject, RecordingInvalid */
  readonly load: () => Promise<LoadedSnapshot>;
};

export type LoadedSnapshot = {
  readonly snapshot: Snapshot;
  /** The body as it is stored: later versions may have put more into it. */
  readonly body: unknown;
  /** `sha256:<hex>` of the body's bytes. */
  readonly digest: string;
};

/** A stored body as a snapshot, or what is wrong with it. */
export function readSnapshot(
  body: unknown,
  digest: string,
): { readonly ok: true; readonly loaded: LoadedSnapshot } | { readonly ok: false; readonly problem: string } {
  const parsed = snapshotSchema.safeParse(body);
  if (parsed.success) return { ok: true, loaded: { snapshot: parsed.data, body, digest } };
  const [issue] = parsed.error.issues;
  return { ok: false, problem: `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'it is no snapshot'}` };
}

/** Part of a history, by the time of snapshots (ms since the epoch, both ends included) and by aggregate. */
export type Range = {
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** Default: all. */
  readonly aggregates?: readonly string[];
};

/** A decision and its place on the log. */
export type StoredDecision = { readonly sequence: number; readonly event: CycleDecided };

/** What can be replayed: a log and the snapshots that its decisions name. A running system and a recorded directory are both. */
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
  /** Decisions about snapshots of the range, in the order of the log. */
  decisions(range: Range): AsyncIterable<StoredDecision>;
  /** Snapshots of the range, those of one aggregate in the order of their times. */
  snapshots(range: Range): AsyncIterable<SnapshotEntry>;
  /** @throws MissingObject, BadObject, RecordingInvalid */
  details(ref: ObjectRef): Promise<Uint8Array>;
}

export const inRange = (range: Range, aggregate: string, timeMs: number): boolean =>
  timeMs >= (range.sinceMs ?? Number.NEGATIVE_INFINITY) &&
  timeMs <= (range.untilMs ?? Number.POSITIVE_INFINITY) &&
  (range.aggregates?.includes(aggregate) ?? true);
