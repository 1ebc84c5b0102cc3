import { type Snapshot, type SnapshotTaken, snapshotTimeMs } from '@kronos/contracts';
import { type EventLog, nullIfUnusable } from '@kronos/eventlog';
import { newestSnapshot } from '@kronos/replay';
import type { Costly } from './input.ts';

export type SnapshotSource = Pick<EventLog, 'lastSequenceOf' | 'tail' | 'replaySnapshots' | 'getSnapshot'>;

export type Snapshots = {
  /** The newest one of an aggregate; null when none is kept. */
  newest(aggregate: string): Promise<Snapshot | null>;
  /** A recorded one, by the time of the snapshot that its decision states; null when it is not kept. */
  recorded(aggregate: string, id: string, atMs: number): Promise<Snapshot | null>;
};

/** A snapshot is stored within this many ms of its time: the maximum skew between the clocks of NATS and the scorer. */
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
  load: Costly,
  limits = defaultLimits,
): Snapshots {
  type Kept = { readonly bytes: number; readonly snapshot: Promise<Snapshot | null> };
  /** By digest; the one used last is the last. */
  const kept = new Map<string, Kept>();
  const newest = new Map<string, { readonly atMs: number; readonly taken: Promise<SnapshotTaken | null> }>();
  /** By aggregate, id and time: where a recorded snapshot is. */
  const found = new Map<string, SnapshotTaken>();

  function body(taken: SnapshotTaken): Promise<Snapshot | null> {
    const { digest, bytes } = taken.data.body;
    const known = kept.get(digest);
    const entry = known ?? { bytes, snapshot: load(() => log.getSnapshot(taken).catch(nullIfUnusable)) };
    kept.delete(digest);
    kept.set(digest, entry);
    const forget = () => void (kept.get(digest) === entry && kept.delete(digest));
    // A snapshot that could not be read is requested again.
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
    async recorded(aggregate, id, atMs) {
      const key = `${aggregate} ${id} ${atMs}`;
      const taken = found.get(key) ?? (await load(() => find(aggregate, id, atMs)));
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

  async function find(aggregate: string, id: string, atMs: number): Promise<SnapshotTaken | null> {
    return (await decidedSnapshots(log, aggregate, [{ id, atMs }])).get(id) ?? null;
  }
}

/**
 * The snapshots of decisions, by id; those that are no longer kept are left out. Two scorers may have taken snapshots with
 * one id: the one of the decision's time was decided. Where clocks disagree, no time is the same, and the first counts.
 */
export async function decidedSnapshots(
  log: Pick<EventLog, 'replaySnapshots'>,
  aggregate: string,
  decided: readonly { readonly id: string; readonly atMs: number }[],
): Promise<Map<string, SnapshotTaken>> {
  const found = new Map<string, SnapshotTaken>();
  const wanted = new Map(decided.map(({ id, atMs }) => [id, atMs]));
  const times = [...wanted.values()];
  const range = {
    since: new Date(Math.min(...times) - AROUND_MS),
    until: new Date(Math.max(...times) + AROUND_MS),
  };
  for await (const { message, problem, firstStoredAt } of log.replaySnapshots({ aggregates: [aggregate], ...range })) {
    if (problem !== undefined) continue;
    const id = message.data.snapshotId;
    const atMs = wanted.get(id);
    if (atMs === undefined) continue;
    const exact = snapshotTimeMs(message.time, firstStoredAt) === atMs;
    if (exact || !found.has(id)) found.set(id, message);
    if (exact) wanted.delete(id);
    if (wanted.size === 0) break;
  }
  return found;
}
