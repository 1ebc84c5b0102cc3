import type { Snapshot, StoredEvent } from '@kronos/contracts';
import { digestOf, MissingObject } from '@kronos/eventlog';
import { decisionIn, type History, inRange, proposalIn, type Range, type SnapshotEntry } from '../src/history.ts';

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
  newestMs: async () => snapshots.reduce<number | null>((a, s) => Math.max(a ?? 0, Date.parse(s.time)), null),
  checkpoint: async () => null,
  async *decisions(range) {
    for (const stored of events) {
      const decision = decisionIn(range, stored);
      if (decision !== null) yield decision;
    }
  },
  async *proposals(range) {
    for (const stored of events) {
      const proposal = proposalIn(range, stored);
      if (proposal !== null) yield proposal;
    }
  },
  async *snapshots(range) {
    for (const snapshot of snapshots) if (isIn(range, snapshot)) yield entryOf(snapshot);
  },
  finder(range) {
    const byId = new Map(snapshots.filter((snapshot) => isIn(range, snapshot)).map((s) => [s.id, s]));
    return {
      async find({ event }) {
        const snapshot = byId.get(event.data.snapshotId);
        return snapshot === undefined ? null : entryOf(snapshot);
      },
      close: async () => undefined,
    };
  },
  details: async (ref) => {
    throw new MissingObject(`${ref.object} is not there`);
  },
});

const isIn = (range: Range, { aggregate, time }: Snapshot): boolean => inRange(range, aggregate, Date.parse(time));

const entryOf = (snapshot: Snapshot): SnapshotEntry => ({
  id: snapshot.id,
  aggregate: snapshot.aggregate,
  timeMs: Date.parse(snapshot.time),
  purpose: async () => snapshot.purpose,
  read: async () => ({
    bytes: new TextEncoder().encode(JSON.stringify(snapshot)),
    digest: storedDigest(snapshot),
    name: snapshot.id,
  }),
});
