import { byText, type CycleDecided, iso, type StoredEvent, snapshotTimeMs } from '@kronos/contracts';
import { aggregateState, createFolder, forgetHour } from '@kronos/projections';
import { type Anonymizer, anonymizer } from './anonymize/anonymizer.ts';
import { eventRenamer } from './anonymize/recorded.ts';
import { NothingRecorded } from './errors.ts';
import {
  firstStoredMs,
  type History,
  type LoadedSnapshot,
  loadRecordedSnapshot,
  type Range,
  type SnapshotEntry,
} from './history.ts';
import { createRecording, type RecordingWriter } from './recordingWriter.ts';

export type RecordOptions = {
  readonly range: Range;
  /** Only these of its snapshots, by id. Default: all. */
  readonly only?: readonly string[];
  readonly anonymize: boolean;
  /** The version of Kronos that records. */
  readonly madeBy: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  readonly onProgress?: (done: number, total: number) => void;
};

export type Recorded = {
  readonly directory: string;
  readonly snapshots: number;
  readonly events: number;
  readonly aggregates: readonly string[];
  /** Snapshots that the stream named and whose bodies were gone. */
  readonly missing: readonly string[];
};

/**
 * Copies part of a history into a directory: its snapshots and, so that their decisions can be run again, the log from
 * its first event: of their aggregates whole, of the others what is about hosts and VMs.
 *
 * @throws RecordingExists, NothingRecorded
 */
export async function recordRange(history: History, directory: string, options: RecordOptions): Promise<Recorded> {
  const { range, onProgress = () => {} } = options;
  const entries: SnapshotEntry[] = [];
  for await (const entry of history.snapshots(range)) if (options.only?.includes(entry.id) ?? true) entries.push(entry);
  if (entries.length === 0)
    throw new NothingRecorded(
      `${history.name} holds no snapshot in that range`,
      'Give a longer range (--since), or take a snapshot now: kronos record --to DIRECTORY without --since.',
    );
  // Readers of the recording take them in this order.
  entries.sort((a, b) => a.timeMs - b.timeMs || byText(a.id, b.id));
  const newest = new Map(entries.map((entry) => [entry.aggregate, entry.timeMs]));
  const aggregates = [...newest.keys()].sort();
  const names = options.anonymize ? await learnt(history, entries, concerning(aggregates, range)) : null;
  const times = entries.map((entry) => entry.timeMs);
  const recordedRange = {
    since: iso(times.reduce((a, b) => Math.min(a, b))),
    until: iso(times.reduce((a, b) => Math.max(a, b))),
  };

  const writer = await createRecording(directory);
  const missing = await recordSnapshots(entries, writer, names, onProgress);
  const recorded =
    names === null
      ? (event: StoredEvent['event']) => whole(history, event, writer.details)
      : eventRenamer(history, entries, names);
  const folder = createFolder();
  let events = 0;
  let lastSequence = 0;
  let installationId: string | null = null;
  const concerns = concerning(aggregates, range);
  for await (const stored of history.events()) {
    if (!concerns(stored)) continue;
    // The system runs on while it is recorded: the log ends where a decision names a snapshot that came too late.
    const { event } = stored;
    const seenMs = newest.get(event.aggregate) ?? Number.POSITIVE_INFINITY;
    if (event.type === 'cycle.decided' && snapshotTimeMs(event.data.snapshotTime, firstStoredMs(stored)) > seenMs)
      break;
    folder.apply(stored);
    events += 1;
    const kept = await recorded(event);
    if (kept.type === 'installation.created') installationId = kept.data.installationId;
    lastSequence = stored.sequence;
    await writer.event({ ...stored, event: kept });
  }
  const state = folder.snapshot();
  const inForce = aggregates.flatMap((name) => {
    const configured = aggregateState(state, name).configured;
    return configured === null ? [] : [[names?.aggregate(name) ?? name, configured.options] as const];
  });
  await writer.close({
    madeBy: options.madeBy,
    madeAt: iso(options.nowMs),
    anonymized: options.anonymize,
    aggregates: aggregates.map((name) => names?.aggregate(name) ?? name),
    range: recordedRange,
    log: { installationId, sequence: lastSequence },
    options: Object.fromEntries(inForce),
  });
  return { directory, snapshots: entries.length - missing.length, events, aggregates, missing };
}

/**
 * Picks the events on which the decisions of some aggregates depend. Events of the others are among them, as a host may have come from one of
 * these. Decisions of the others without a plan and findings are left out, but for the first of each hour, at which facts are forgotten.
 *
 * @returns to be called with every event of the log, in its order
 */
function concerning(
  aggregates: readonly string[],
  { untilMs = Number.POSITIVE_INFINITY }: Range,
): (stored: StoredEvent) => boolean {
  const hours = new Map<string, number>();
  return (stored) => {
    const { event, storedAt } = stored;
    if (storedAt > untilMs) return false;
    if (event.type !== 'cycle.decided' || aggregates.includes(event.aggregate)) return true;
    const { plan, absence, novaRefusals, snapshotTime } = event.data;
    const hour = forgetHour(snapshotTimeMs(snapshotTime, firstStoredMs(stored)));
    const first = hour > (hours.get(event.aggregate) ?? Number.NEGATIVE_INFINITY);
    if (first) hours.set(event.aggregate, hour);
    return first || plan !== null || absence !== undefined || novaRefusals !== undefined;
  };
}

/** @returns the ids of snapshots that are no longer kept */
async function recordSnapshots(
  entries: readonly SnapshotEntry[],
  writer: Pick<RecordingWriter, 'snapshot'>,
  names: Pick<Anonymizer, 'snapshot'> | null,
  onProgress: NonNullable<RecordOptions['onProgress']>,
): Promise<string[]> {
  const missing: string[] = [];
  for (const [i, entry] of entries.entries()) {
    onProgress(i, entries.length);
    const loaded = await loadOrNull(entry);
    if (loaded === null) missing.push(entry.id);
    else
      await (names === null
        ? writer.snapshot(loaded.snapshot, loaded.body)
        : writer.snapshot(names.snapshot(loaded.snapshot)));
  }
  onProgress(entries.length, entries.length);
  return missing;
}

/** The names of all that is recorded, before the first of them is replaced. */
async function learnt(
  history: History,
  entries: readonly SnapshotEntry[],
  concerns: (stored: StoredEvent) => boolean,
): Promise<Anonymizer> {
  const names = anonymizer();
  for (const entry of entries) {
    const loaded = await loadOrNull(entry);
    if (loaded !== null) names.learnSnapshot(loaded.snapshot);
  }
  for await (const stored of history.events()) if (concerns(stored)) names.learnEvent(stored.event);
  names.settle();
  return names;
}

async function loadOrNull(entry: SnapshotEntry): Promise<LoadedSnapshot | null> {
  try {
    return await loadRecordedSnapshot(entry);
  } catch {
    return null;
  }
}

/** An event as it is recorded, with the details of its decision beside it. */
async function whole(
  history: History,
  event: StoredEvent['event'],
  keep: (ref: NonNullable<CycleDecided['data']['details']>, body: Uint8Array) => Promise<void>,
): Promise<StoredEvent['event']> {
  if (event.type === 'cycle.decided' && event.data.details !== null)
    await keep(event.data.details, await history.details(event.data.details));
  return event;
}
