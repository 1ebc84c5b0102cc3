import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, opendir, readFile, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { createInterface } from 'node:readline';
import { errorText, type LogMark } from '@kronos/contracts';
import { digestOf } from '@kronos/eventlog';
import { z } from 'zod';
import { isMissing } from './errors.ts';

/**
 * The chain of a recorded directory. `manifest.jsonl` names every file with its digest; each of its lines names the digest
 * of the line above, the first one names the beginning, the last one is of `recording.json`. Each line of `log.jsonl` names
 * the digest and the sequence of the line above it.
 */

export const MANIFEST = 'manifest.jsonl';
export const LOG = 'log.jsonl';
export const ABOUT = 'recording.json';
/** The folder of the snapshots, as it begins the names of files. */
export const SNAPSHOTS = 'snapshots/';
/** Files that people may change, and on which nothing depends. */
const FREE: ReadonlySet<string> = new Set(['README.txt', 'cooldowns.json', MANIFEST]);

const digestSchema = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const beginningSchema = z.strictObject({
  kronosRecording: z.literal(2),
  /** Sequence of the first recorded event; null: there is none. */
  firstSequence: z.int().min(1).nullable(),
  previous: z.null(),
});
const fileSchema = z.strictObject({
  file: z.string(),
  /** Of the file's bytes. */
  digest: digestSchema,
  bytes: z.int().min(0),
  /** Of the log: how many events, and the sequences of the first and the last. */
  events: z.int().min(0).optional(),
  first: z.int().min(1).nullable().optional(),
  last: z.int().min(1).nullable().optional(),
  /** Digest of the line above. */
  previous: digestSchema,
});
export type ManifestFile = Omit<z.infer<typeof fileSchema>, 'previous'>;

/** The lines of a manifest: the beginning, then every file in the order given. */
export function manifestText(firstSequence: number | null, files: readonly ManifestFile[]): string {
  const lines = [JSON.stringify({ kronosRecording: 2, firstSequence, previous: null })];
  for (const file of files) lines.push(JSON.stringify({ ...file, previous: digestOf(lines.at(-1) ?? '') }));
  return `${lines.join('\n')}\n`;
}

/** The result of checking the chain of a recorded directory. */
export type ChainCheck = {
  /** The changes since it was written: one sentence each, with file and place. */
  readonly problems: readonly string[];
  /** Whether the manifest names the snapshots in the order of their times. Then they can be read in its order. */
  readonly ordered: boolean;
};

/** Files that are read at once. */
const READ_AT_ONCE = 8;

/**
 * Checks every file of a recorded directory. What it holds in memory does not grow with the number of files.
 *
 * @param onProgress called with the files checked, and their share of all
 */
export async function checkChain(
  directory: string,
  onProgress: (done: number, share: number) => void = () => {},
): Promise<ChainCheck> {
  const problems: string[] = [];
  const path = join(directory, MANIFEST);
  const size = (await stat(path).catch(() => null))?.size ?? null;
  if (size === null) {
    problems.push(`${MANIFEST}: is missing: nothing shows whether the recording is whole`);
    return { problems, ordered: false };
  }
  let files = 0;
  let missing = 0;
  let checked = 0;
  let ordered = true;
  let last = '';
  const under: Promise<string | null>[] = [];
  const settle = async (): Promise<void> => {
    const problem = await under.shift();
    checked += 1;
    if (typeof problem === 'string') problems.push(problem);
  };
  for await (const { file, bytes } of manifestFiles(path, problems)) {
    files += 1;
    const name = file.file.startsWith(SNAPSHOTS) ? basename(file.file) : '';
    if (name !== '') {
      ordered &&= last <= name;
      last = name;
    }
    const checking = checkFile(directory, file, problems, () => {
      missing += 1;
    });
    checking.catch(() => undefined);
    under.push(checking);
    if (under.length === READ_AT_ONCE) await settle();
    onProgress(checked, size === 0 ? 1 : bytes / size);
  }
  while (under.length > 0) await settle();
  onProgress(checked, 1);
  problems.push(...(await addedFiles(directory, path, files - missing)));
  return { problems, ordered };
}

/** The files that the manifest does not name. With as many files as are named, none was added; which ones were takes a list of all. */
async function addedFiles(directory: string, path: string, expected: number): Promise<string[]> {
  let there = 0;
  for await (const _ of filesOf(directory)) there += 1;
  if (there === expected) return [];
  const named = new Set<string>();
  for await (const { file } of manifestFiles(path, [])) named.add(file.file);
  const problems: string[] = [];
  for await (const file of filesOf(directory))
    if (!named.has(file)) problems.push(`${file}: was added: ${MANIFEST} does not name it`);
  return problems;
}

/** The files of a recorded directory that the manifest must name. */
async function* filesOf(directory: string): AsyncGenerator<string, void, undefined> {
  for await (const entry of await opendir(directory, { recursive: true })) {
    if (!entry.isFile()) continue;
    const file = relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/');
    if (!FREE.has(file)) yield file;
  }
}

/** The snapshots that a manifest names, in its order. */
export async function* manifestSnapshots(directory: string): AsyncGenerator<string, void, undefined> {
  for await (const { file } of manifestFiles(join(directory, MANIFEST), []))
    if (file.file.startsWith(SNAPSHOTS)) yield file.file;
}

/** The files that a manifest names, each with the bytes of the manifest up to there. */
async function* manifestFiles(
  path: string,
  problems: string[],
): AsyncGenerator<{ readonly file: ManifestFile; readonly bytes: number }, void, undefined> {
  let above: string | null = null;
  let number = 0;
  let bytes = 0;
  let last = '';
  for await (const text of linesOf(path)) {
    number += 1;
    bytes += Buffer.byteLength(text) + 1;
    const at = `${MANIFEST}:${number}`;
    const value = parse(text);
    if (number === 1) {
      if (!beginningSchema.safeParse(value).success) problems.push(`${at}: the beginning of the chain is missing`);
    } else {
      const file = fileSchema.safeParse(value);
      if (!file.success) problems.push(`${at}: was changed: it names no file`);
      else {
        if (above !== null && file.data.previous !== digestOf(above))
          problems.push(`${at}: a line was changed, dropped or moved here: it does not fit the line above it`);
        const { previous: _, ...kept } = file.data;
        last = kept.file;
        yield { file: kept, bytes };
      }
    }
    above = text;
  }
  if (last !== ABOUT) problems.push(`${MANIFEST}: its end is missing: the last line must be of ${ABOUT}`);
}

/** The problem of a file; null: none. The log may have several. */
async function checkFile(
  directory: string,
  file: ManifestFile,
  problems: string[],
  onMissing: () => void,
): Promise<string | null> {
  const path = join(directory, file.file);
  let digest: string;
  try {
    digest = file.file === LOG ? await digestOfStream(path) : await digestOfFile(path);
  } catch (error) {
    if (isMissing(error)) {
      onMissing();
      return `${file.file}: is missing`;
    }
    return `${file.file}: cannot be read: ${errorText(error)}`;
  }
  if (digest === file.digest) return null;
  if (file.file !== LOG) return `${file.file}: was changed after it was recorded`;
  problems.push(...(await placesInLog(path, file)));
  return null;
}

/** Off the thread of the caller. */
async function digestOfFile(path: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', await readFile(path));
  return `sha256:${Buffer.from(digest).toString('hex')}`;
}

async function digestOfStream(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return `sha256:${hash.digest('hex')}`;
}

const linkSchema = z.object({
  sequence: z.int().min(1),
  after: z.int().min(1).nullable(),
  previous: digestSchema.nullable(),
});

/** `sequence`: null where the line is no recorded event. */
type LogLine = { readonly text: string; readonly sequence: number | null };

/** Why an event does not follow the line above it; null where it does. */
function brokenLink(
  { sequence, after, previous }: z.infer<typeof linkSchema>,
  above: LogLine | null,
  number: number,
): string | null {
  const has = above === null ? 'nothing' : `event ${above.sequence ?? '?'}`;
  const wants = after === null ? 'nothing' : `event ${after}`;
  if (has !== wants)
    return `${LOG}:${number}: event ${sequence} followed ${wants} when it was recorded, and here it follows ${has}`;
  if (above === null || previous === digestOf(above.text)) return null;
  return `${LOG}:${number - 1}: event ${above.sequence ?? '?'} was changed`;
}

/** Where a log that is not the recorded one differs from it. */
async function placesInLog(path: string, recorded: ManifestFile): Promise<string[]> {
  const problems: string[] = [];
  let above: LogLine | null = null;
  let number = 0;
  let events = 0;
  for await (const text of linesOf(path)) {
    number += 1;
    if (text.trim() === '') continue;
    events += 1;
    const at = `${LOG}:${number}`;
    const link = linkSchema.safeParse(parse(text));
    if (!link.success) {
      problems.push(`${at}: was changed: it is no recorded event`);
      above = { text, sequence: null };
      continue;
    }
    const problem = brokenLink(link.data, above, number);
    if (problem !== null) problems.push(problem);
    above = { text, sequence: link.data.sequence };
  }
  const last = above?.sequence ?? null;
  if (last !== recorded.last || events !== recorded.events)
    problems.push(
      `${LOG}: holds ${events} events up to ${last ?? '(none)'}; ${recorded.events ?? '?'} events up to ${recorded.last ?? '(none)'} were recorded`,
    );
  if (problems.length === 0) problems.push(`${LOG}:${number}: event ${last ?? '?'} was changed`);
  return problems;
}

const installationSchema = z.object({
  event: z.object({ type: z.literal('installation.created'), data: z.object({ installationId: z.string() }) }),
});

/** The difference between the log in a recorded directory and the recorded one; null: there is none, or the log is missing. */
export async function checkMark(directory: string, recorded: LogMark): Promise<string | null> {
  const path = join(directory, LOG);
  if ((await stat(path).catch(() => null)) === null) return null;
  let installationId: string | null = null;
  let last: string | null = null;
  for await (const text of linesOf(path)) {
    if (text.trim() === '') continue;
    last = text;
    // Most of what is no such event is known without being parsed.
    if (!text.includes('installation.created')) continue;
    const created = installationSchema.safeParse(parse(text));
    if (created.success) installationId = created.data.event.data.installationId;
  }
  const end = linkSchema.safeParse(last === null ? null : parse(last));
  const there: LogMark = { installationId, sequence: end.success ? end.data.sequence : 0 };
  if (there.installationId === recorded.installationId && there.sequence === recorded.sequence) return null;
  return `${LOG}: is of ${nameOf(there)}, and ${ABOUT} says that ${nameOf(recorded)} was recorded`;
}

const nameOf = ({ installationId, sequence }: LogMark): string =>
  `${installationId === null ? 'a log without an installation id' : `installation ${installationId}`} up to event ${sequence}`;

async function* linesOf(path: string): AsyncGenerator<string, void, undefined> {
  const handle = await open(path);
  try {
    yield* createInterface({ input: handle.createReadStream({ autoClose: false }) });
  } finally {
    await handle.close();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
