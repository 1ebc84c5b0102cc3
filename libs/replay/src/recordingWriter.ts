/** Writes a recorded directory. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeToken, iso, type ObjectRef, type Snapshot, type StoredEvent, snapshotSchema } from '@kronos/contracts';
import { digestOf } from '@kronos/eventlog';
import { emptyCooldowns } from '@kronos/projections';
import { ABOUT, LOG, MANIFEST, type ManifestFile, manifestText, SNAPSHOTS } from './chain.ts';
import { isMissing, RecordingExists } from './errors.ts';
import { inLines } from './lines.ts';
import { type About, COOLDOWNS, detailsFile, FORM, fileOf, invalid } from './recordingForm.ts';

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
