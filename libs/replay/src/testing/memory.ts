import type { Snapshot, StoredEvent } from '@kronos/contracts';
import { digestOf, MissingObject } from '@kronos/eventlog';
import { type History, inRange } from '../history.ts';

/** The digest that a snapshot's body has in the bucket. */
export const storedDigest = (snapshot: Snapshot): string =>
  digestOf(new TextEncoder().encode(JSON.stringify(snapshot)));

/** A history kept in memory. Snapshots come in the order given. */
export const memoryHistory = (events: readonly StoredEvent[], snapshots: readonly Snapshot[]): History => ({
  name: 'memory',
  anonymized: false,
  async *events(to = Number.POSITIVE_INFINITY, from = 1) {
    for (const stored of events) if (stored.sequence >= from && stored.sequence <= to) yield stored;
  },
  kept: async () => ({}),
  checkpoint: async () => null,
  async *decisions(range) {
    for (const { sequence, event } of events)
      if (event.type === 'cycle.decided' && inRange(range, event.aggregate, Date.parse(event.data.snapshotTime)))
        yield { sequence, event };
  },
  async *snapshots(range) {
    for (const snapshot of snapshots) {
      const { id, aggregate, purpose } = snapshot;
      const timeMs = Date.parse(snapshot.time);
      if (!inRange(range, aggregate, timeMs)) continue;
      yield {
        id,
        aggregate,
        purpose,
        timeMs,
        load: async () => ({ snapshot, body: snapshot, digest: storedDigest(snapshot) }),
      };
    }
  },
  details: async (ref) => {
    throw new MissingObject(`${ref.object} is not there`);
  },
});
