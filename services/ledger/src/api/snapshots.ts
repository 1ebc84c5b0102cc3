import type { Snapshot, SnapshotTaken } from '@kronos/contracts';
import { BadObject, type EventLog, MissingObject } from '@kronos/eventlog';
import { newestSnapshot } from '@kronos/replay';

export type SnapshotSource = Pick<EventLog, 'lastSequenceOf' | 'tail' | 'replaySnapshots' | 'getSnapshot'>;

export type Snapshots = {
  /** The newest one of an aggregate; null when none is kept. */
  newest(aggregate: string): Promise<Snapshot | null>;
  /** A recorded one, looked for around the time of its decision; null when it is not kept. */
  recorded(aggregate: string, id: string, aroundMs: number): Promise<Snapshot | null>;
};

/** A snapshot is looked for within this many ms of its decision: the maximum skew between the clocks of NATS and the scorer. */
const AROUND_MS = 120_000;
/** The newest snapshot of an aggregate is looked up at most once in this many ms, however many readers ask. */
const NEWEST_MS = 2_000;
const defaultLimits = { snapshots: 16, bytes: 64 * 1024 * 1024 };

/**
 * Reads snapshots on request and caches the most recently used: at most `limits.snapshots` of them, and at most
 * `limits.bytes` of JSON (at least one is kept). Concurrent readers of one snapshot share a read. `load` limits how many
 * reads run at a time.
 */
export function snapshotReader(
  log: SnapshotSource,
  monotonic: () => number,
  load: <T>(read: () => Promise<T>) => Promise<T>,
  limits = defaultLimits,
): Snapshots {
  type Kept = { readonly bytes: number; readonly snapshot: Promise<Snapshot | null> };
  /** By digest; the one used last is the last. */
  const kept = new Map<string, Kept>();
  const newest = new Map<string, { readonly atMs: number; readonly taken: Promise<SnapshotTaken | null> }>();
  /** By aggregate and id: where a recorded snapshot is. */
  const found = new Map<string, SnapshotTaken>();

  function body(taken: SnapshotTaken): Promise<Snapshot | null> {
    const { digest, bytes } = taken.data.body;
    const known = kept.get(digest);
    const entry = known ?? { bytes, snapshot: load(() => log.getSnapshot(taken).catch(nullIfGone)) };
    kept.delete(digest);
    kept.set(digest, entry);
    const forget = () => void (kept.get(digest) === entry && kept.delete(digest));
    // What could not be read is asked for again.
    if (known === undefined) entry.snapshot.then((snapshot) => snapshot ?? forget(), forget);
    let total = [...kept.values()].reduce((sum, one) => sum + one.bytes, 0);
    for (const [oldest, one] of kept) {
      if (kept.size === 1 || (kept.size <= limits.snapshots && total <= limits.bytes)) break;
      kept.delete(oldest);
      total -= one.bytes;
    }
    return entry.snapshot;
  }

  return {
    async newest(aggregate) {
      const known = newest.get(aggregate);
      if (known === undefined || monotonic() - known.atMs >= NEWEST_MS) {
        const entry = { atMs: monotonic(), taken: load(() => newestSnapshot(log, aggregate)) };
        newest.set(aggregate, entry);
        entry.taken.catch(() => void (newest.get(aggregate) === entry && newest.delete(aggregate)));
      }
      const taken = await newest.get(aggregate)?.taken;
      return taken === null || taken === undefined ? null : await body(taken);
    },
    async recorded(aggregate, id, aroundMs) {
      const key = `${aggregate} ${id}`;
      const taken = found.get(key) ?? (await load(() => find(aggregate, id, aroundMs)));
      if (taken === null) return null;
      found.delete(key);
      found.set(key, taken);
      for (const oldest of found.keys()) {
        if (found.size <= limits.snapshots) break;
        found.delete(oldest);
      }
      return await body(taken);
    },
  };

  /** Of two scorers' snapshots with one id the first is decided. */
  async function find(aggregate: string, id: string, aroundMs: number): Promise<SnapshotTaken | null> {
    const range = { since: new Date(aroundMs - AROUND_MS), until: new Date(aroundMs + AROUND_MS) };
    for await (const { message, problem } of log.replaySnapshots({ aggregates: [aggregate], ...range }))
      if (problem === undefined && message.data.snapshotId === id) return message;
    return null;
  }
}

/** For a body that is no longer kept, or was changed. */
export function nullIfGone(error: unknown): null {
  if (error instanceof MissingObject || error instanceof BadObject) return null;
  throw error;
}
