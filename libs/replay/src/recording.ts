import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  byText,
  decodeToken,
  encodeToken,
  engineOptionsSchema,
  iso,
  type LogEventType,
  logMarkSchema,
  type ObjectRef,
  readLogEvent,
  type Snapshot,
  type StoredEvent,
  snapshotSchema,
} from '@kronos/contracts';
import { digestOf } from '@kronos/eventlog';
import { type Cooldowns, emptyCooldowns, readCooldowns } from '@kronos/projections';
import { z } from 'zod';
import {
  ABOUT,
  checkChain,
  checkMark,
  LOG,
  MANIFEST,
  type ManifestFile,
  manifestSnapshots,
  manifestText,
  SNAPSHOTS,
} from './chain.ts';
import { isMissing, RecordingExists, RecordingInvalid } from './errors.ts';
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
import { inLines } from './lines.ts';

/** The form of a recorded directory. A later version reads every earlier one; form 1 has no chain and no range. */
const FORM = 2;
const COOLDOWNS = 'cooldowns.json';

const aboutSchema = z.object({
  form: z.union([z.literal(1), z.literal(FORM)]),
  madeBy: z.string(),
  madeAt: z.iso.datetime(),
  anonymized: z.boolean(),
  aggregates: z.array(z.string()),
  /** Times of the first and the last snapshot that were to be recorded: the decisions of this range can be run again. */
  range: z.object({ since: z.iso.datetime(), until: z.iso.datetime() }).optional(),
  /** Which log was recorded, and up to which event. Recordings of Kronos 0.1 do not have it. */
  log: logMarkSchema.optional(),
  /** The snapshots are not files: they are put together from `sources/`, the history that others keep. */
  reconstructed: z.literal(true).optional(),
  /** The options in force at the end, by aggregate; for what-ifs where the log names none. */
  options: z.record(z.string(), engineOptionsSchema),
});
/** The description of a recorded directory, in its own file. */
type About = z.infer<typeof aboutSchema>;

const README = `A recording of Kronos.

  recording.json   what this is, and the engine options that were in force
  snapshots/       what was seen: one file per snapshot, by aggregate, in the order of time; a server, a host or a reading on each line
  log.jsonl        the event log from its first event: one event per line, with its sequence and the server's time
  details/         details of large decisions, by digest
  manifest.jsonl   every file with its digest, each line with the digest of the line above
  cooldowns.json   what a what-if remembers at its start beside the log: seconds that remain (quarantines: -1 for ever)

  kronos replay DIRECTORY                            run every recorded decision again and compare
  kronos replay DIRECTORY --set engine.cooldown=0    what would have been

Edit cooldowns.json as you like. kronos replay names every other file and event that was changed, moved, dropped or
added, and exits with status 1.
`;

/** \`2026-03-01T120000.123Z-gpu-29537.json\`: names sort by time, and hold the id. */
const fileOf = ({ time, id }: Pick<Snapshot, 'time' | 'id'>): string => `${time.replaceAll(':', '')}-${id}.json`;
const FILE = /^(\d{4}-\d{2}-\d{2}T)(\d{2})(\d{2})(\d{2}(?:\.\d+)?Z)-(.+)\.json$/;

/** A directory that is being recorded into. */
export type RecordingWriter = {
  /** @param body what is written, where that is not the snapshot itself */
  readonly snapshot: (snapshot: Snapshot, body?: unknown) => Promise<void>;
  readonly event: (stored: StoredEvent) => Promise<void>;
  readonly details: (ref: ObjectRef, body: Uint8Array) => Promise<void>;
  /** Takes a file that is in the directory into the chain. */
  readonly take: (file: string) => Promise<void>;
  readonly close: (about: Omit<About, 'form'>) => Promise<void>;
};

/**
 * Whether a recording may be written there: it is empty or not there.
 *
 * @param beside names that may be there
 * @throws RecordingExists
 */
export async function checkEmpty(directory: string, beside: readonly string[] = []): Promise<void> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  if (names.some((name) => !beside.includes(name))) throw new RecordingExists(directory);
}

/**
 * Begins a recording in a directory that is empty or not there.
 *
 * @param beside names that may be there
 * @throws RecordingExists
 */
export async function createRecording(directory: string, beside: readonly string[] = []): Promise<RecordingWriter> {
  await checkEmpty(directory, beside);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'README.txt'), README);
  await writeFile(join(directory, COOLDOWNS), json(emptyCooldowns));
  await mkdir(join(directory, 'snapshots'));
  const log = await open(join(directory, LOG), 'w');
  const logHash = createHash('sha256');
  const files: ManifestFile[] = [];
  const details = new Set<string>();
  const events = { count: 0, bytes: 0, first: null as number | null, last: null as number | null };
  let above: string | null = null;

  async function put(file: string, text: string): Promise<void> {
    await writeFile(join(directory, file), text);
    files.push({ file, digest: digestOf(text), bytes: Buffer.byteLength(text) });
  }

  return {
    async snapshot(snapshot, body = snapshot) {
      const folder = `${SNAPSHOTS}${encodeToken(snapshot.aggregate)}`;
      await mkdir(join(directory, folder), { recursive: true });
      await put(`${folder}/${fileOf(snapshot)}`, inLines(body));
    },
    async event({ sequence, storedAt, originallyStoredAt, event }) {
      const original = originallyStoredAt === undefined ? {} : { originallyStoredAt: iso(originallyStoredAt) };
      const link = { after: events.last, previous: above === null ? null : digestOf(above) };
      above = JSON.stringify({ sequence, storedAt: iso(storedAt), ...original, ...link, event });
      const line = `${above}\n`;
      await log.appendFile(line);
      logHash.update(line);
      events.count += 1;
      events.bytes += Buffer.byteLength(line);
      events.first ??= sequence;
      events.last = sequence;
    },
    async details(ref, body) {
      const file = `details/${detailsFile(ref)}`;
      if (details.has(file)) return;
      details.add(file);
      await mkdir(join(directory, 'details'), { recursive: true });
      await put(file, json(JSON.parse(new TextDecoder().decode(body))));
    },
    async take(file) {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of createReadStream(join(directory, file))) {
        hash.update(chunk as Buffer);
        bytes += (chunk as Buffer).length;
      }
      files.push({ file, digest: `sha256:${hash.digest('hex')}`, bytes });
    },
    async close(about) {
      await log.close();
      const digest = `sha256:${logHash.digest('hex')}`;
      const { count, bytes, first, last } = events;
      files.push({ file: LOG, digest, bytes, events: count, first, last });
      await put(ABOUT, json({ form: FORM, ...about }));
      await writeFile(join(directory, MANIFEST), manifestText(first, files));
    },
  };
}

/** The file of a snapshot in a recording: its name in the directory, and its text. @throws RecordingInvalid */
export function snapshotFiles(body: unknown): { readonly name: string; readonly text: string } {
  const about = snapshotSchema.pick({ aggregate: true, time: true, id: true }).safeParse(body);
  if (!about.success) throw invalid('a snapshot', about.error);
  const { aggregate } = about.data;
  return { name: `${SNAPSHOTS}${encodeToken(aggregate)}/${fileOf(about.data)}`, text: inLines(body) };
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
const detailsFile = (ref: ObjectRef): string => `${ref.digest.replace(/^sha256:/, '')}.json`;

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

function invalid(file: string, error: z.ZodError): RecordingInvalid {
  const [issue] = error.issues;
  return new RecordingInvalid(file, `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'has another form'}`);
}
