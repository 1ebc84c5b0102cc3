import type { Snapshot, StoredEvent } from '@kronos/contracts';
import { anonymousEvent } from './event.ts';
import { learnEvent, learnSnapshot } from './learn.ts';
import { Names } from './names.ts';
import { anonymousSnapshot } from './snapshot.ts';

/** Replaces names and ids by made-up ones, the same everywhere. First it learns all names, then it is settled, then it rewrites. */
export type Anonymizer = {
  learnSnapshot(snapshot: Snapshot): void;
  learnEvent(event: StoredEvent['event']): void;
  settle(): void;
  snapshot(snapshot: Snapshot): Snapshot;
  event<E extends StoredEvent['event']>(event: E): E;
  aggregate(name: string): string;
  /** Every name that it replaces, for a check that none is left. */
  names(): readonly string[];
};

/** Replaces the names in a recording by made-up ones: first it learns all of them, then it renames. */
export function anonymizer(): Anonymizer {
  const names = new Names();
  return {
    learnSnapshot: (snapshot) => learnSnapshot(names, snapshot),
    learnEvent: (event) => learnEvent(names, event),
    settle: () => names.settle(),
    snapshot: (snapshot) => anonymousSnapshot(names, snapshot),
    event: (event) => anonymousEvent(names, event),
    aggregate: (name) => names.as('aggregate', name),
    names: () => names.all(),
  };
}
