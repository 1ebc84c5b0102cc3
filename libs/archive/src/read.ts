import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { ArchiveBroken } from './errors.ts';
import { type Head, installationOf, parseFileName, parseHead, parseLine, type RawEvent } from './format.ts';

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

/** The facts about a file that was read to its end. "Whole": up to its last seal; up to its last line in form 1. */
export type FileEnd = {
  /** Null: not even its head is whole. */
  readonly head: Head | null;
  /** Sequence of its last event; one less than its first when it has none. */
  readonly last: number;
  /** Of its uncompressed bytes, as far as they are whole. */
  readonly digest: string;
  /** Uncompressed bytes that are whole. */
  readonly bytes: number;
  /** Bytes behind that: what a crash leaves in the file that is open. */
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

const digestOf = (hash: Hash): string => `sha256:${hash.copy().digest('hex')}`;

/**
 * Reads one file, checking every line. Events are handed over when the seal behind them has been checked.
 *
 * @param check looks at the head; what it returns is wrong with the file
 * @returns what is known at its end
 * @throws ArchiveBroken
 */
export async function* readFile(
  dir: string,
  file: ArchiveFile,
  check: (head: Head) => string | null = () => null,
): AsyncGenerator<RawEvent, FileEnd> {
  const broken = (problem: string, options?: ErrorOptions) => new ArchiveBroken(file.name, problem, options);
  const hash = createHash('sha256');
  let head: Head | null = null;
  let last = file.first - 1;
  let number = 0;
  let read = 0;
  /** Bytes of whole lines. */
  let hashed = 0;
  /** Everything up to the last seal. */
  let whole = { last, digest: digestOf(hash), bytes: 0 };
  let waiting: RawEvent[] = [];
  let firstWaiting = 0;
  const source = lines(join(dir, file.name), file.closed);
  for (;;) {
    let next: Awaited<ReturnType<typeof source.next>>;
    try {
      next = await source.next();
    } catch (cause) {
      throw broken(`cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
    if (next.done === true) break;
    const { line, complete } = next.value;
    read += line.length;
    if (!complete) {
      if (file.closed) throw broken('ends in the middle of a line');
      break;
    }
    hashed = read;
    number++;
    const text = line.toString('utf8');
    if (number === 1) {
      hash.update(line);
      const parsed = parseHead(text);
      if (typeof parsed === 'string') throw broken(parsed);
      if (parsed.first !== file.first) throw broken(`begins with event ${parsed.first} by its head`);
      const problem = check(parsed);
      if (problem !== null) throw broken(problem);
      head = parsed;
      whole = { last, digest: digestOf(hash), bytes: read };
      continue;
    }
    const parsed = parseLine(text);
    if (typeof parsed === 'string') throw broken(`line ${number} ${parsed}`);
    if ('sealed' in parsed) {
      if (parsed.sealed !== last)
        throw broken(`line ${number} seals event ${parsed.sealed}, and event ${last} is above it: a line is missing`);
      if (parsed.digest !== digestOf(hash))
        throw broken(
          `something above line ${number} was changed${waiting.length === 0 ? '' : ` (lines ${firstWaiting} to ${number - 1}, events ${waiting[0]?.sequence} to ${last})`}: the digest of line ${number} does not fit`,
        );
      hash.update(line);
      whole = { last, digest: digestOf(hash), bytes: read };
      yield* waiting;
      waiting = [];
      continue;
    }
    if (parsed.sequence !== last + 1)
      throw broken(`line ${number} is event ${parsed.sequence}, and event ${last + 1} was expected`);
    last = parsed.sequence;
    hash.update(line);
    if (head?.kronosArchive === 1) yield parsed;
    else {
      if (waiting.length === 0) firstWaiting = number;
      waiting.push(parsed);
    }
  }
  if (file.closed && number === 0) throw broken('is empty');
  if (file.closed && waiting.length > 0)
    throw broken(`its end is missing: there is no seal behind line ${number} (event ${last})`);
  if (head?.kronosArchive === 1) whole = { last, digest: digestOf(hash), bytes: hashed };
  return { head, ...whole, torn: read - whole.bytes };
}

export type ArchiveReport = {
  readonly files: number;
  readonly events: number;
  /** Sequences of the first and the last event; null when there is none. */
  readonly first: number | null;
  readonly last: number | null;
  /** The server's stamp of the last event, ms since the epoch; null when there is none. */
  readonly lastStoredAtMs: number | null;
  /** Installation id in force at the last event; null: the log names none. */
  readonly installation: string | null;
  /** Bytes at the end of the open file that no seal covers: what a crash leaves. They are not read. */
  readonly torn: number;
};

/**
 * Every event of an archive in order, each file checked against the one before it, the first against the beginning.
 *
 * @returns what was read
 * @throws ArchiveBroken at the first thing that is wrong
 */
export async function* readArchive(dir: string): AsyncGenerator<RawEvent, ArchiveReport> {
  const files = await archiveFiles(dir);
  let previous: string | null = null;
  let next = 1;
  let events = 0;
  let torn = 0;
  let lastStoredAtMs: number | null = null;
  let installation: string | null = null;
  for (const [index, file] of files.entries()) {
    if (file.first !== next)
      throw new ArchiveBroken(
        file.name,
        index === 0
          ? `it begins with event ${file.first}: the files before it, with the events 1 to ${file.first - 1}, are missing`
          : `a file is missing before it: it begins with event ${file.first}, not ${next}`,
      );
    const check = (head: Head): string | null => {
      if (head.previous !== previous)
        return `the file before it has the digest ${previous ?? '(none)'}, and it names ${head.previous ?? '(none)'}: one of the two was changed`;
      // The first file names the installation that its first event creates.
      if (head.kronosArchive === 1 || index === 0 || head.installation === installation) return null;
      return `it is of installation ${head.installation ?? '(none)'}, and the file before it of ${installation ?? '(none)'}`;
    };
    let named: string | null = null;
    const end: FileEnd = yield* counted(readFile(dir, file, check), (event) => {
      installation = installationOf(event) ?? installation;
      if (events === 0) named = installation;
      events++;
      lastStoredAtMs = event.storedAt;
    });
    const newest = index === files.length - 1;
    if (index === 0 && end.head?.kronosArchive === 2 && end.last >= 1 && end.head.installation !== named)
      throw new ArchiveBroken(
        file.name,
        `its head names the installation ${end.head.installation ?? '(none)'}, and its first event ${named ?? '(none)'}`,
      );
    if (end.torn > 0 && !newest) throw new ArchiveBroken(file.name, `its end is missing behind event ${end.last}`);
    if (newest && file.closed && end.head?.kronosArchive === 2)
      throw new ArchiveBroken(file.name, `the file after it, from event ${end.last + 1} on, is missing`);
    previous = end.digest;
    next = end.last + 1;
    torn = end.torn;
  }
  return {
    files: files.length,
    events,
    first: events > 0 ? 1 : null,
    last: events > 0 ? next - 1 : null,
    lastStoredAtMs,
    installation,
    torn,
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
