/** The events of a recording under other names. */
import type { LogEvent, Snapshot, StoredEvent } from '@kronos/contracts';
import { newRefusals } from '@kronos/projections';
import { recordedDecision } from '../compare.ts';
import { detailsOf, type History, loadRecordedSnapshot, type SnapshotEntry } from '../history.ts';
import type { Anonymizer } from './anonymizer.ts';

type Event = StoredEvent['event'];

/** Renames the events of a history, from whose entries the recording is made. */
export function eventRenamer(
  history: History,
  entries: readonly SnapshotEntry[],
  names: Anonymizer,
): (event: Event) => Promise<Event> {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const snapshotOf = async (id: string): Promise<Snapshot | null> => {
    const entry = byId.get(id);
    // Its body may be gone.
    const loaded = entry === undefined ? null : await loadRecordedSnapshot(entry).catch(() => null);
    return loaded === null ? null : names.snapshot(loaded.snapshot);
  };
  return async (event) => {
    if (event.type !== 'cycle.decided') return names.event(event);
    // Under other names the digest of the details would lead nowhere: the decision goes into the event whole.
    const decision =
      event.data.details === null
        ? {}
        : { ...recordedDecision(event.data, await detailsOf(history, event.data)), details: null };
    const renamed = names.event({ ...event, data: { ...event.data, ...decision } });
    return event.data.novaRefusals === undefined
      ? renamed
      : withRefusalsOf(await snapshotOf(event.data.snapshotId), renamed);
  };
}

/**
 * Remembered refusals of a decision, made again from the renamed snapshot. The recorded ones are made of the former names: one
 * would confirm a guess of them, and fit nothing in the recording. Without the snapshot the refusal counts for its whole time.
 */
function withRefusalsOf(snapshot: Snapshot | null, event: Event): Event {
  if (event.type !== 'cycle.decided') return event;
  const { novaRefusals = [], ...data } = event.data;
  const unseen = { sequence: 0, atMs: 0, text: '', shape: null, mark: null };
  const refusals = new Map(novaRefusals.map(({ serverId, host }, i) => [String(i), { ...unseen, serverId, host }]));
  const found = snapshot === null ? undefined : newRefusals({ refusals, elsewhere: [] }, snapshot);
  return { ...event, data: { ...data, ...(found === undefined ? {} : { novaRefusals: found }) } } satisfies LogEvent;
}
