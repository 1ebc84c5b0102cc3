/** The servers that the next snapshot of an aggregate must find: those of the newest snapshot of any replica. */
import type { Snapshot } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { type KnownServer, knownAfter, type Observation, stillKnown } from '@kronos/observation';
import type { Logger } from '@kronos/telemetry';
import type { Seen } from './seen.ts';

export interface KnownServers {
  /** As the newest snapshot has them: read from the stream where another replica took it. */
  newest(aggregate: string): Promise<readonly KnownServer[]>;
  /** As this process has them. */
  of(aggregate: string): readonly KnownServer[];
  /** Notes a snapshot of this process, and the servers that it had to find. */
  note(snapshot: Snapshot, known: readonly KnownServer[], observation: Pick<Observation, 'index' | 'fates'>): void;
}

export function createKnownServers(deps: {
  readonly log: Pick<EventLog, 'getSnapshot'>;
  readonly seen: Pick<Seen, 'newest'>;
  readonly logger: Logger;
}): KnownServers {
  const { log, seen, logger } = deps;
  /** By aggregate, with the snapshot that they are known from. */
  const memory = new Map<string, { readonly snapshotId: string; readonly known: readonly KnownServer[] }>();
  const of = (aggregate: string): readonly KnownServer[] => memory.get(aggregate)?.known ?? [];

  return {
    of,
    async newest(aggregate) {
      const newest = seen.newest(aggregate)?.taken ?? null;
      if (newest === null || newest.data.snapshotId === memory.get(aggregate)?.snapshotId) return of(aggregate);
      const { snapshotId } = newest.data;
      try {
        const known = knownAfter(await log.getSnapshot(newest), of(aggregate));
        memory.set(aggregate, { snapshotId, known });
        return known;
      } catch (error) {
        logger.warn(
          { aggregate, snapshotId, err: error },
          'the previous snapshot cannot be read: servers that have vanished since then are not noticed',
        );
        return of(aggregate);
      }
    },
    note(snapshot, known, { index, fates }) {
      const still = stillKnown(snapshot, known, index, fates);
      memory.set(snapshot.aggregate, { snapshotId: snapshot.id, known: still });
    },
  };
}
