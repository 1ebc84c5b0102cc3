import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { ArchiveBroken } from './errors.ts';
import { parseEvent, parseFileName, parseHead, type RawEvent } from './format.ts';

export type ArchiveFile = { readonly name: string; readonly first: number; readonly closed: boolean };

/** The files of an archive in the order of their events. A file that is there open and closed counts as closed. */
export async function archiveFiles(dir: string): Promise<ArchiveFile[]> {
  const byFirst = new Map<number, ArchiveFile>();
  for (const name of await readdir(dir)) {
    const parsed = parseFileName(name);
    if (parsed === null) continue;
    if (byFirst.get(parsed.first)?.closed !== true) byFirst.set(parsed.first, { name, ...parsed });
  }
  return [...byFirst.values()].sort((a, b) => a.first - b.first);
}

/** What is known of a file after it was read to its end. */
export type FileEnd = {
  /** Sequence of its last event; one less than its first when it has none. */
  readonly last: number;
  /** Of its uncompressed bytes, up to the last complete line. */
  readonly digest: string;
  /** Uncompressed bytes up to the last complete line. */
  readonly bytes: number;
  /** Bytes of an incomplete line behind that: what a crash leaves in the file that is open. */
  readonly torn: number;
};

/** Lines with their bytes; the last one may lack its end. */
async function* lines(path: string, closed: boolean): AsyncGenerator<{ line: Buffer; complete: boolean }> {
  const file = createReadStream(path);
  const source = closed ? file.pipe(createGunzip()) : file;
  if (closed) file.on('error', (error) => source.destroy(error));
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    const data: Buffer = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
    let from = 0;
    for (let end = data.indexOf(10, from); end >= 0; end = data.indexOf(10, from)) {
      yield { line: data.subarray(from, end + 1), complete: true };
      from = end + 1;
    }
    rest = data.subarray(from);
  }
  if (rest.length > 0) yield { line: rest, complete: false };
}

/**
 * Reads one file, checking every line.
 *
 * @param previous digest of the file before it; undefined: not to be checked
 * @returns what is known at its end
 * @throws ArchiveBroken
 */
export async function* readFile(
  dir: string,
  file: ArchiveFile,
  previous: string | null | undefined,
): AsyncGenerator<RawEvent, FileEnd> {
  const hash = createHash('sha256');
  let last = file.first - 1;
  let bytes = 0;
  let torn = 0;
  let number = 0;
  const source = lines(join(dir, file.name), file.closed);
  for (;;) {
    let next: Awaited<ReturnType<typeof source.next>>;
    try {
      next = await source.next();
    } catch (cause) {
      throw new ArchiveBroken(file.name, `cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
        cause,
      });
    }
    if (next.done === true) break;
    const { line, complete } = next.value;
    if (!complete) {
      if (file.closed) throw new ArchiveBroken(file.name, 'ends in the middle of a line');
      torn = line.length;
      break;
    }
    number++;
    hash.update(line);
    bytes += line.length;
    const text = line.toString('utf8');
    if (number === 1) {
      const head = parseHead(text);
      if (typeof head === 'string') throw new ArchiveBroken(file.name, head);
      if (head.first !== file.first) throw new ArchiveBroken(file.name, `begins with event ${head.first} by its head`);
      if (previous !== undefined && head.previous !== previous)
        throw new ArchiveBroken(
          file.name,
          `the file before it has the digest ${previous ?? '(none)'}, and it names ${head.previous ?? '(none)'}: one of the two was changed`,
        );
      continue;
    }
    const event = parseEvent(text);
    if (typeof event === 'string') throw new ArchiveBroken(file.name, `line ${number} ${event}`);
    if (event.sequence !== last + 1)
      throw new ArchiveBroken(
        file.name,
        `line ${number} is event ${event.sequence}, and event ${last + 1} was expected`,
      );
    last = event.sequence;
    yield event;
  }
  if (file.closed && number === 0) throw new ArchiveBroken(file.name, 'is empty');
  return { last, digest: `sha256:${hash.digest('hex')}`, bytes, torn };
}

export type ArchiveReport = {
  readonly files: number;
  readonly events: number;
  /** Sequences of the first and the last event; null when there is none. */
  readonly first: number | null;
  readonly last: number | null;
  /** The server's stamp of the last event, ms since the epoch; null when there is none. */
  readonly lastStoredAtMs: number | null;
};

/**
 * Every event of an archive in order, each file checked against the one before it.
 *
 * @returns what was read
 * @throws ArchiveBroken at the first thing that is wrong
 */
export async function* readArchive(dir: string): AsyncGenerator<RawEvent, ArchiveReport> {
  const files = await archiveFiles(dir);
  let previous: string | null = null;
  let next: number | null = null;
  let events = 0;
  let lastStoredAtMs: number | null = null;
  for (const [index, file] of files.entries()) {
    if (next !== null && file.first !== next)
      throw new ArchiveBroken(
        file.name,
        `a file is missing before it: it begins with event ${file.first}, not ${next}`,
      );
    if (!file.closed && index < files.length - 1)
      throw new ArchiveBroken(file.name, 'is still open, and there is a file after it');
    const end: FileEnd = yield* counted(readFile(dir, file, index === 0 ? undefined : previous), (event) => {
      events++;
      lastStoredAtMs = event.storedAt;
    });
    previous = end.digest;
    next = end.last + 1;
  }
  const first = files[0]?.first ?? null;
  return {
    files: files.length,
    events,
    first: events > 0 ? first : null,
    last: events > 0 && next !== null ? next - 1 : null,
    lastStoredAtMs,
  };
}

async function* counted<T, R>(source: AsyncGenerator<T, R>, count: (value: T) => void): AsyncGenerator<T, R> {
  for (;;) {
    const { done, value } = await source.next();
    if (done === true) return value;
    count(value);
    yield value;
  }
}

/**
 * Reads an archive to its end.
 *
 * @param onEvent called for each event, with how many were read before it
 * @throws ArchiveBroken
 */
export async function verifyArchive(dir: string, onEvent: (before: number) => void = () => {}): Promise<ArchiveReport> {
  const events = readArchive(dir);
  for (let before = 0; ; before++) {
    const { done, value } = await events.next();
    if (done === true) return value;
    onEvent(before);
  }
}
