import type { Snapshot, SnapshotTaken } from '@kronos/contracts';
import { type EventLog, nullIfUnusable } from '@kronos/eventlog';

/** The newest snapshot's message of an aggregate; null when the stream has none. */
export async function newestSnapshot(
  log: Pick<EventLog, 'lastSequenceOf' | 'tail'>,
  aggregate: string,
): Promise<SnapshotTaken | null> {
  const since = await log.lastSequenceOf('snapshots', aggregate);
  if (since === 0) return null;
  for await (const { message, problem } of log.tail({
    families: ['snapshots'],
    aggregates: [aggregate],
    since,
    end: true,
  }))
    if (problem === undefined && message.type === 'snapshot.taken') return message;
  return null;
}

/** The newest snapshots of these aggregates; without those that the stream no longer has. */
export async function newestSnapshots(
  log: Pick<EventLog, 'lastSequenceOf' | 'tail' | 'getSnapshot'>,
  aggregates: readonly string[],
): Promise<Snapshot[]> {
  const found: Snapshot[] = [];
  for (const aggregate of aggregates) {
    const taken = await newestSnapshot(log, aggregate);
    const snapshot = taken === null ? null : await log.getSnapshot(taken).catch(nullIfUnusable);
    if (snapshot !== null) found.push(snapshot);
  }
  return found;
}

/** A server as the newest snapshot of its aggregate has it. */
export type FoundServer = {
  readonly aggregate: string;
  readonly id: string;
  readonly name: string;
  readonly host: string;
};

/** Servers of that uuid or name in the newest snapshots of these aggregates; a uuid comes before names. */
export async function findServers(
  log: Pick<EventLog, 'lastSequenceOf' | 'tail' | 'getSnapshot'>,
  aggregates: readonly string[],
  wanted: string,
): Promise<FoundServer[]> {
  const found: FoundServer[] = [];
  for (const { aggregate, servers } of await newestSnapshots(log, aggregates))
    for (const { id, name, host } of servers)
      if (id === wanted || name === wanted) found.push({ aggregate, id, name, host });
  const byId = found.filter((server) => server.id === wanted);
  return byId.length > 0 ? byId : found;
}
