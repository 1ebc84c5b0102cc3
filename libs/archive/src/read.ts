import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { ArchiveBroken } from './errors.ts';
import { type ArchivedEvent, type Head, installationOf, parseFileName, parseHead, parseLine } from './format.ts';

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

/** The digest of what a hash has read so far. */
export const digestSoFar = (hash: Hash): string => `sha256:${hash.copy().digest('hex')}`;

/** Checks the lines of a file one after the other. Its events are given out when the seal behind them has been checked. */
class Scan {
  readonly #file: ArchiveFile;
  readonly #check: (head: Head) => string | null;
  readonly #hash = createHash('sha256');
  #head: Head | null = null;
  #last: number;
  /** Of the line that was read last; 1 is the head. */
  #number = 0;
  #read = 0;
  /** Bytes of whole lines. */
  #hashed = 0;
  /** Everything up to the last seal. */
  #whole: Pick<FileEnd, 'last' | 'digest' | 'bytes'>;
  #waiting: ArchivedEvent[] = [];
  #firstWaiting = 0;

  constructor(file: ArchiveFile, check: (head: Head) => string | null) {
    this.#file = file;
    this.#check = check;
    this.#last = file.first - 1;
    this.#whole = this.#upToHere(0);
  }

  broken(problem: string, options?: ErrorOptions): ArchiveBroken {
    return new ArchiveBroken(this.#file.name, problem, options);
  }

  /** Takes a whole line; the events that are checked with it. @throws ArchiveBroken */
  take(line: Buffer): readonly ArchivedEvent[] {
    this.#read += line.length;
    this.#hashed = this.#read;
    this.#number++;
    const text = line.toString('utf8');
    if (this.#number === 1) {
      this.#begin(text, line);
      return [];
    }
    const parsed = parseLine(text);
    if (typeof parsed === 'string') throw this.broken(`line ${this.#number} ${parsed}`);
    return 'sealed' in parsed ? this.#seal(parsed, line) : this.#event(parsed, line);
  }

  /** Notes a last line without its end. @throws ArchiveBroken in a closed file */
  tear(line: Buffer): void {
    this.#read += line.length;
    if (this.#file.closed) throw this.broken('ends in the middle of a line');
  }

  /** @throws ArchiveBroken when a closed file lacks its end */
  end(): FileEnd {
    if (this.#file.closed && this.#number === 0) throw this.broken('is empty');
    if (this.#file.closed && this.#waiting.length > 0)
      throw this.broken(`its end is missing: there is no seal behind line ${this.#number} (event ${this.#last})`);
    if (this.#head?.kronosArchive === 1) this.#whole = this.#upToHere(this.#hashed);
    return { head: this.#head, ...this.#whole, torn: this.#read - this.#whole.bytes };
  }

  #upToHere(bytes: number): Pick<FileEnd, 'last' | 'digest' | 'bytes'> {
    return { last: this.#last, digest: digestSoFar(this.#hash), bytes };
  }

  #begin(text: string, line: Buffer): void {
    this.#hash.update(line);
    const head = parseHead(text);
    if (typeof head === 'string') throw this.broken(head);
    if (head.first !== this.#file.first) throw this.broken(`begins with event ${head.first} by its head`);
    const problem = this.#check(head);
    if (problem !== null) throw this.broken(problem);
    this.#head = head;
    this.#whole = this.#upToHere(this.#read);
  }

  #seal(
    { sealed, digest }: { readonly sealed: number; readonly digest: string },
    line: Buffer,
  ): readonly ArchivedEvent[] {
    const number = this.#number;
    if (sealed !== this.#last)
      throw this.broken(`line ${number} seals event ${sealed}, and event ${this.#last} is above it: a line is missing`);
    const checked = this.#waiting;
    if (digest !== digestSoFar(this.#hash)) {
      const [first] = checked;
      const where =
        first === undefined
          ? ''
          : ` (lines ${this.#firstWaiting} to ${number - 1}, events ${first.sequence} to ${this.#last})`;
      throw this.broken(
        `something above line ${number} was changed${where}: the digest of line ${number} does not fit`,
      );
    }
    this.#hash.update(line);
    this.#whole = this.#upToHere(this.#read);
    this.#waiting = [];
    return checked;
  }

  #event(event: ArchivedEvent, line: Buffer): readonly ArchivedEvent[] {
    if (event.sequence !== this.#last + 1)
      throw this.broken(`line ${this.#number} is event ${event.sequence}, and event ${this.#last + 1} was expected`);
    this.#last = event.sequence;
    this.#hash.update(line);
    // Form 1 has no seals.
    if (this.#head?.kronosArchive === 1) return [event];
    if (this.#waiting.length === 0) this.#firstWaiting = this.#number;
    this.#waiting.push(event);
    return [];
  }
}

/**
 * Reads one file, checking every line. Yields events once the seal behind them has been checked.
 *
 * @param check of the head; returns what is wrong with the file
 * @returns what is known at its end
 * @throws ArchiveBroken
 */
export async function* readFile(
  dir: string,
  file: ArchiveFile,
  check: (head: Head) => string | null = () => null,
): AsyncGenerator<ArchivedEvent, FileEnd> {
  const scan = new Scan(file, check);
  const source = lines(join(dir, file.name), file.closed);
  for (;;) {
    let next: Awaited<ReturnType<typeof source.next>>;
    try {
      next = await source.next();
    } catch (cause) {
      throw scan.broken(`cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
    if (next.done === true) break;
    const { line, complete } = next.value;
    // Not yield*, which waits several times, also where a line gives nothing, as most do.
    if (complete) for (const event of scan.take(line)) yield event;
    else scan.tear(line);
  }
  return scan.end();
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
export async function* readArchive(dir: string): AsyncGenerator<ArchivedEvent, ArchiveReport> {
  const files = await archiveFiles(dir);
  let previous: string | null = null;
  let next = 1;
  let events = 0;
  let torn = 0;
  let lastStoredAtMs: number | null = null;
  let installation: string | null = null;
  for (const [index, file] of files.entries()) {
    if (file.first !== next) throw new ArchiveBroken(file.name, missingBefore(file, index, next));
    const check = (head: Head): string | null => wrongHead(head, index, { previous, installation });
    let named: string | null = null;
    const end: FileEnd = yield* counted(readFile(dir, file, check), (event) => {
      installation = installationOf(event) ?? installation;
      if (events === 0) named = installation;
      events++;
      lastStoredAtMs = event.storedAt;
    });
    const newest = index === files.length - 1;
    const wrong = (index === 0 ? wrongInstallation(end, named) : null) ?? wrongEnd(end, file, { newest });
    if (wrong !== null) throw new ArchiveBroken(file.name, wrong);
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

const missingBefore = ({ first }: ArchiveFile, index: number, next: number): string =>
  index === 0
    ? `it begins with event ${first}: the files before it, with the events 1 to ${first - 1}, are missing`
    : `a file is missing before it: it begins with event ${first}, not ${next}`;

/** Why a file does not follow the one before it; null where it does. */
function wrongHead(
  head: Head,
  index: number,
  { previous, installation }: Pick<Head, 'previous' | 'installation'>,
): string | null {
  if (head.previous !== previous)
    return `the file before it has the digest ${previous ?? '(none)'}, and it names ${head.previous ?? '(none)'}: one of the two was changed`;
  // The first file names the installation that its first event creates.
  if (head.kronosArchive === 1 || index === 0 || head.installation === installation) return null;
  return `it is of installation ${head.installation ?? '(none)'}, and the file before it of ${installation ?? '(none)'}`;
}

/** Why the head of the first file does not fit its first event; null where it does. */
function wrongInstallation({ head, last }: FileEnd, named: string | null): string | null {
  if (head?.kronosArchive !== 2 || last < 1 || head.installation === named) return null;
  return `its head names the installation ${head.installation ?? '(none)'}, and its first event ${named ?? '(none)'}`;
}

/** Why a file cannot end here; null where it can. */
function wrongEnd(end: FileEnd, file: ArchiveFile, { newest }: { readonly newest: boolean }): string | null {
  if (!newest) return end.torn > 0 ? `its end is missing behind event ${end.last}` : null;
  if (!file.closed || end.head?.kronosArchive !== 2) return null;
  return `the file after it, from event ${end.last + 1} on, is missing`;
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
