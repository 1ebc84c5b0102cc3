/** Reads a recorded directory. */
import { existsSync } from 'node:fs';
import { open, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  byText,
  decodeToken,
  encodeToken,
  type LogEventType,
  readLogEvent,
  type Snapshot,
  type StoredEvent,
  snapshotSchema,
} from '@kronos/contracts';
import { type Cooldowns, emptyCooldowns, readCooldowns } from '@kronos/projections';
import { z } from 'zod';
import { ABOUT, checkChain, checkMark, LOG, manifestSnapshots, SNAPSHOTS } from './chain.ts';
import { isMissing, RecordingInvalid } from './errors.ts';
import {
  decisionIn,
  type History,
  inRange,
  openSnapshot,
  proposalIn,
  type Range,
  type SnapshotEntry,
  type StoredBody,
} from './history.ts';
import { type About, aboutSchema, COOLDOWNS, detailsFile, FILE, fileOf, invalid } from './recordingForm.ts';

/** A recorded directory, to be replayed. */
export type Recording = {
  readonly history: History;
  readonly about: About;
  readonly cooldowns: Cooldowns;
  /** The changes, moves, losses and additions since it was written, each with file and place. */
  readonly problems: readonly string[];
};

const NO_CHAIN = `${ABOUT}: form 1 has no chain: nothing shows whether the recording is whole. Record it again.`;

/** Gives the snapshots of a recording that are not files, in the order of their times. @throws RecordingInvalid */
export type Reconstruct = (directory: string) => Promise<readonly SnapshotEntry[]>;

/**
 * @param reconstruct for recordings of a backtest
 * @throws RecordingInvalid, CooldownsInvalid
 */
export async function readRecording(
  directory: string,
  onProgress?: (done: number, share: number) => void,
  reconstruct?: Reconstruct,
): Promise<Recording> {
  const about = aboutSchema.safeParse(
    await readJson(
      join(directory, ABOUT),
      'Is the directory a recording (kronos record --to), and was it written to its end?',
    ),
  );
  if (!about.success) throw invalid(join(directory, ABOUT), about.error);
  const cooldownsFile = await readJson(join(directory, COOLDOWNS)).catch((error: unknown) => {
    // It may be deleted: then nothing is remembered beside the log.
    if (error instanceof RecordingInvalid && isMissing(error.cause)) return emptyCooldowns;
    throw error;
  });
  const { problems, ordered } =
    about.data.form === 1 ? { problems: [NO_CHAIN], ordered: false } : await checkChain(directory, onProgress);
  const otherLog = about.data.log === undefined ? null : await checkMark(directory, about.data.log);
  // A manifest that may be wrong does not list the snapshots: the directory does.
  const rebuilt = about.data.reconstructed === true ? await rebuiltSnapshots(directory, reconstruct) : null;
  const listed = rebuilt?.entries ?? (ordered && problems.length === 0 ? null : await listedSnapshots(directory));
  const kept = rangeOf(about.data, listed ?? []);
  return {
    about: about.data,
    cooldowns: readCooldowns(cooldownsFile),
    problems: otherLog === null ? problems : [...problems, otherLog],
    history: {
      name: directory,
      anonymized: about.data.anonymized,
      events: (to, from) => eventsOf(directory, to, from),
      kept: async () => kept,
      newestMs: async () => kept.untilMs ?? null,
      checkpoint: async () => null,
      decisions: (range) => among(directory, 'cycle.decided', (stored) => decisionIn(range, stored)),
      proposals: (range) => among(directory, 'plan.proposed', (stored) => proposalIn(range, stored)),
      async *snapshots(range) {
        for await (const entry of listed ?? namedSnapshots(directory))
          if (inRange(range, entry.aggregate, entry.timeMs)) yield entry;
      },
      finder: (range) => ({
        async find({ event: { aggregate, data }, snapshotMs }) {
          const { snapshotId: id, snapshotTime: time } = data;
          if (rebuilt !== null) return inRange(range, aggregate, snapshotMs) ? (rebuilt.byId.get(id) ?? null) : null;
          if (id.includes('/')) return null;
          const file = `${SNAPSHOTS}${encodeToken(aggregate)}/${fileOf({ time, id })}`;
          const entry = entryOf(directory, file);
          return inRange(range, aggregate, snapshotMs) && existsSync(join(directory, file)) ? entry : null;
        },
        close: async () => undefined,
      }),
      details: async (ref) => {
        const value = await readJson(join(directory, 'details', detailsFile(ref)));
        return new TextEncoder().encode(JSON.stringify(value));
      },
    },
  };
}

async function rebuiltSnapshots(
  directory: string,
  reconstruct: Reconstruct | undefined,
): Promise<{ readonly entries: readonly SnapshotEntry[]; readonly byId: ReadonlyMap<string, SnapshotEntry> }> {
  if (reconstruct === undefined)
    throw new RecordingInvalid(directory, 'is of a backtest', 'Read it with kronos replay, explain or report.');
  const entries = await reconstruct(directory);
  return { entries, byId: new Map(entries.map((entry) => [entry.id, entry])) };
}

/** The range that was recorded, of its aggregates: the log has decisions of others too. In form 1 the range of the snapshots which are there. */
function rangeOf({ range, aggregates }: About, entries: readonly SnapshotEntry[]): Range {
  const [sinceMs, untilMs] =
    range === undefined
      ? [entries[0]?.timeMs, entries.at(-1)?.timeMs]
      : [Date.parse(range.since), Date.parse(range.until)];
  return { aggregates, ...(sinceMs === undefined ? {} : { sinceMs }), ...(untilMs === undefined ? {} : { untilMs }) };
}

/** The snapshots in a recorded directory, in the order of their times. Takes memory for each. */
async function listedSnapshots(directory: string): Promise<SnapshotEntry[]> {
  const root = join(directory, SNAPSHOTS);
  const entries: SnapshotEntry[] = [];
  const folders = await readdir(root, { withFileTypes: true }).catch((cause: unknown) => {
    throw new RecordingInvalid(root, 'cannot be read', 'The snapshots of a recording are there.', { cause });
  });
  for (const folder of folders.filter((entry) => entry.isDirectory()))
    for (const name of await readdir(join(root, folder.name))) {
      const entry = entryOf(directory, `${SNAPSHOTS}${folder.name}/${name}`);
      if (entry !== null) entries.push(entry);
    }
  return entries.sort((a, b) => a.timeMs - b.timeMs || byText(a.id, b.id));
}

/** The snapshots that the manifest names, in its order. */
async function* namedSnapshots(directory: string): AsyncGenerator<SnapshotEntry, void, undefined> {
  for await (const file of manifestSnapshots(directory)) {
    const entry = entryOf(directory, file);
    if (entry !== null) yield entry;
  }
}

/** A snapshot by its file; null where its name is not that of one. */
function entryOf(directory: string, file: string): SnapshotEntry | null {
  const [, folder, name] = file.split('/');
  const parts = FILE.exec(name ?? '');
  const aggregate = aggregateOf(folder ?? '');
  if (parts === null || aggregate === null) return null;
  const [, day, hours, minutes, seconds, id = ''] = parts;
  const path = join(directory, file);
  return {
    id,
    aggregate,
    timeMs: Date.parse(`${day}${hours}:${minutes}:${seconds}`),
    purpose: () => purposeOf(path),
    read: () => bodyOf(path),
  };
}

function aggregateOf(folder: string): string | null {
  try {
    return decodeToken(folder);
  } catch {
    return null;
  }
}

/** Stands at the top of a snapshot's file: the rest of it is not read. */
async function purposeOf(file: string): Promise<Snapshot['purpose']> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4096), 0, 4096, 0);
    const found = /^ {2}"purpose": ?"([^"]*)",?$/m.exec(buffer.toString('utf8', 0, bytesRead))?.[1];
    const purpose = snapshotSchema.shape.purpose.safeParse(found);
    // Another program may have written it, in any order.
    return purpose.success ? purpose.data : openSnapshot(await bodyOf(file)).snapshot.purpose;
  } finally {
    await handle.close();
  }
}

async function bodyOf(file: string): Promise<StoredBody> {
  try {
    return { bytes: await readFile(file), digest: null, name: file };
  } catch (cause) {
    throw new RecordingInvalid(file, isMissing(cause) ? 'is not there' : 'cannot be read', undefined, { cause });
  }
}

const lineSchema = z.object({
  sequence: z.int().min(1),
  storedAt: z.iso.datetime(),
  originallyStoredAt: z.iso.datetime().optional(),
  event: z.unknown(),
});
const unreadableSchema = z.object({
  type: z.literal('unreadable'),
  aggregate: z.string(),
  claimedType: z.string(),
  claimedVersion: z.number().nullable(),
  problem: z.string(),
  remedy: z.enum(['upgrade', 'skip']).default('upgrade'),
});
const addressSchema = z.object({ aggregate: z.string() });

type Line = { readonly at: string; readonly text: string };

/** The lines of a recorded log that are not empty. */
async function* logLines(directory: string): AsyncGenerator<Line, void, undefined> {
  const file = join(directory, LOG);
  const handle = await open(file).catch((cause: unknown) => {
    if (isMissing(cause)) return null;
    throw new RecordingInvalid(file, 'cannot be read', undefined, { cause });
  });
  if (handle === null) return;
  try {
    let number = 0;
    for await (const text of createInterface({ input: handle.createReadStream({ autoClose: false }) })) {
      number += 1;
      if (text.trim() !== '') yield { at: `${basename(directory)}/${LOG}:${number}`, text };
    }
  } finally {
    await handle.close();
  }
}

async function* eventsOf(
  directory: string,
  to = Number.POSITIVE_INFINITY,
  from = 1,
): AsyncGenerator<StoredEvent, void, undefined> {
  for await (const line of logLines(directory)) {
    const stored = eventOf(line);
    if (stored.sequence > to) return;
    if (stored.sequence >= from) yield stored;
  }
}

/** @throws RecordingInvalid */
function eventOf({ at, text }: Line): StoredEvent {
  const line = lineSchema.safeParse(parse(text, at));
  if (!line.success) throw invalid(at, line.error);
  const { sequence, storedAt, originallyStoredAt: original, event: body } = line.data;
  const unreadable = unreadableSchema.safeParse(body);
  const aggregate = addressSchema.safeParse(body).data?.aggregate ?? '';
  const event = unreadable.success ? unreadable.data : readLogEvent(body, aggregate);
  const stamp = original === undefined ? {} : { originallyStoredAt: Date.parse(original) };
  return { sequence, storedAt: Date.parse(storedAt), ...stamp, event };
}

/** The picked values of the events of a type, in the order of the log. */
async function* among<D>(
  directory: string,
  type: LogEventType,
  pick: (stored: StoredEvent) => D | null,
): AsyncGenerator<D, void, undefined> {
  for await (const line of logLines(directory)) {
    // Most other lines are skipped without being parsed.
    if (!line.text.includes(type)) continue;
    const picked = pick(eventOf(line));
    if (picked !== null) yield picked;
  }
}

function parse(text: string, at: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RecordingInvalid(at, 'is no JSON', undefined, { cause });
  }
}

async function readJson(file: string, remedy?: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw new RecordingInvalid(file, isMissing(cause) ? 'is not there' : 'cannot be read', remedy, { cause });
  }
  return parse(text, file);
}
