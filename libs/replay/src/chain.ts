import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';

/**
 * The chain of a recorded directory. `manifest.jsonl` names every file with its digest; each of its lines names the digest
 * of the line above, the first one names the beginning, the last one is of `recording.json`. Each line of `log.jsonl` names
 * the digest and the sequence of the line above it.
 */

export const MANIFEST = 'manifest.jsonl';
export const LOG = 'log.jsonl';
export const ABOUT = 'recording.json';
/** What people may change, and what nothing depends on. */
const FREE: ReadonlySet<string> = new Set(['README.txt', 'cooldowns.json', MANIFEST]);

export const digestOfText = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;

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
  for (const file of files) lines.push(JSON.stringify({ ...file, previous: digestOfText(lines.at(-1) ?? '') }));
  return `${lines.join('\n')}\n`;
}

/** What was done to a recorded directory since it was written: one sentence each, with file and place. */
export async function checkChain(
  directory: string,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<string[]> {
  const problems: string[] = [];
  const files = await manifestOf(directory, problems);
  if (files === null) return problems;
  const named = new Map(files.map((file) => [file.file, file]));
  for (const [i, file] of files.entries()) {
    onProgress(i, files.length);
    problems.push(...(await checkFile(directory, file)));
  }
  onProgress(files.length, files.length);
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/');
    if (entry.isFile() && !FREE.has(path) && !named.has(path))
      problems.push(`${path}: was added: ${MANIFEST} does not name it`);
  }
  return problems;
}

/** The files that the manifest names. Null: there is none that could be used. */
async function manifestOf(directory: string, problems: string[]): Promise<ManifestFile[] | null> {
  const files: ManifestFile[] = [];
  let above: string | null = null;
  let number = 0;
  const lines = linesOf(join(directory, MANIFEST));
  if ((await stat(join(directory, MANIFEST)).catch(() => null)) === null) {
    problems.push(`${MANIFEST}: is missing: nothing shows whether the recording is whole`);
    return null;
  }
  for await (const text of lines) {
    number += 1;
    const at = `${MANIFEST}:${number}`;
    const value = parse(text);
    if (number === 1) {
      if (!beginningSchema.safeParse(value).success) problems.push(`${at}: the beginning of the chain is missing`);
    } else {
      const file = fileSchema.safeParse(value);
      if (!file.success) problems.push(`${at}: was changed: it names no file`);
      else {
        if (above !== null && file.data.previous !== digestOfText(above))
          problems.push(`${at}: a line was changed, dropped or moved here: it does not fit the line above it`);
        const { previous: _, ...kept } = file.data;
        files.push(kept);
      }
    }
    above = text;
  }
  if (files.at(-1)?.file !== ABOUT) problems.push(`${MANIFEST}: its end is missing: the last line must be of ${ABOUT}`);
  return files;
}

async function checkFile(directory: string, file: ManifestFile): Promise<string[]> {
  const path = join(directory, file.file);
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [`${file.file}: is missing`];
    return [`${file.file}: cannot be read: ${error instanceof Error ? error.message : String(error)}`];
  }
  if (`sha256:${hash.digest('hex')}` === file.digest) return [];
  return file.file === LOG ? await placesInLog(path, file) : [`${file.file}: was changed after it was recorded`];
}

const linkSchema = z.object({
  sequence: z.int().min(1),
  after: z.int().min(1).nullable(),
  previous: digestSchema.nullable(),
});

/** Where a log that is not the recorded one differs from it. */
async function placesInLog(path: string, recorded: ManifestFile): Promise<string[]> {
  const problems: string[] = [];
  let above: { readonly text: string; readonly sequence: number | null } | null = null;
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
    const { sequence, after, previous } = link.data;
    const has: string = above === null ? 'nothing' : `event ${above.sequence ?? '?'}`;
    const wants = after === null ? 'nothing' : `event ${after}`;
    if (has !== wants)
      problems.push(`${at}: event ${sequence} followed ${wants} when it was recorded, and here it follows ${has}`);
    else if (above !== null && previous !== digestOfText(above.text))
      problems.push(`${LOG}:${number - 1}: event ${above.sequence ?? '?'} was changed`);
    above = { text, sequence };
  }
  const last = above?.sequence ?? null;
  if (last !== recorded.last || events !== recorded.events)
    problems.push(
      `${LOG}: holds ${events} events up to ${last ?? '(none)'}; ${recorded.events ?? '?'} events up to ${recorded.last ?? '(none)'} were recorded`,
    );
  if (problems.length === 0) problems.push(`${LOG}:${number}: event ${last ?? '?'} was changed`);
  return problems;
}

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
