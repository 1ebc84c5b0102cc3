/** The snapshots on the stream, from any replica. */
import type { StoredSnapshot } from '@kronos/checkpoints';
import type { SnapshotTaken } from '@kronos/contracts';

/** Ids of an aggregate that are remembered. */
const KEPT = 256;

interface Aggregate {
  newest: StoredSnapshot | null;
  cycle: number | null;
  readonly ids: Set<string>;
}

/** The snapshots that were seen: to know which cycle is done, which request answered, and which servers are known. */
export class Seen {
  readonly #aggregates = new Map<string, Aggregate>();

  /** Takes note of a snapshot; one noted before changes nothing. */
  note(taken: SnapshotTaken, sequence: number): void {
    const one = this.#of(taken.aggregate);
    const { snapshotId, purpose, cycle } = taken.data;
    one.ids.add(snapshotId);
    for (const id of one.ids) {
      if (one.ids.size <= KEPT) break;
      one.ids.delete(id);
    }
    if (one.newest !== null && sequence <= one.newest.sequence) return;
    one.newest = { taken, sequence };
    if (purpose === 'cycle') one.cycle = cycle;
  }

  has(aggregate: string, snapshotId: string): boolean {
    return this.#aggregates.get(aggregate)?.ids.has(snapshotId) ?? false;
  }

  /** The cycle of the newest snapshot that a cycle took; null when none is known. */
  cycle(aggregate: string): number | null {
    return this.#aggregates.get(aggregate)?.cycle ?? null;
  }

  newest(aggregate: string): StoredSnapshot | null {
    return this.#aggregates.get(aggregate)?.newest ?? null;
  }

  #of(aggregate: string): Aggregate {
    const known = this.#aggregates.get(aggregate);
    if (known !== undefined) return known;
    const one: Aggregate = { newest: null, cycle: null, ids: new Set() };
    this.#aggregates.set(aggregate, one);
    return one;
  }
}
