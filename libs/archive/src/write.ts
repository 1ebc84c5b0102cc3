import { createHash, type Hash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { ArchiveGap, ArchiveTaken } from './errors.ts';
import { type ArchivedEvent, eventLine, fileName, type Head, headLine, installationOf, sealLine } from './format.ts';
import { type ArchiveFile, archiveFiles, digestSoFar, type FileEnd, readFile } from './read.ts';

export interface Archive {
  /** Sequence of the event to be written next. */
  readonly next: number;
  /** The last event; null before the first. */
  readonly last: ArchivedEvent | null;
  /** Installation id in force at the last event; null: the log names none. */
  readonly installation: string | null;
  /**
   * Writes events that follow each other and makes them safe on the disk. When it fails nothing of it counts as written.
   *
   * @throws ArchiveGap, ArchiveTaken, and what the file system says
   */
  write(events: readonly ArchivedEvent[]): Promise<void>;
  close(): Promise<void>;
}

type OpenFile = {
  readonly handle: FileHandle;
  readonly name: string;
  readonly form: Head['kronosArchive'];
  readonly hash: Hash;
  bytes: number;
};

/**
 * Opens a directory for writing, and makes it when it is not there. What a crash left behind is put right: events without
 * a seal are cut off, a full file that was not compressed yet is compressed, one that is there twice is not kept twice.
 *
 * @throws ArchiveBroken when its last files are not what they must be
 */
export async function openArchive(dir: string, options: { readonly maxFileBytes: number }): Promise<Archive> {
  await mkdir(dir, { recursive: true });
  const files = await archiveFiles(dir);
  for (const { first, closed } of files) if (closed) await rm(join(dir, fileName(first)), { force: true });
  const end = await endOf(dir, files);
  for (const file of files.slice(0, -1)) if (!file.closed) await compress(dir, file.name);
  return new Writer(dir, options.maxFileBytes, end);
}

/** Where an archive ends. */
type End = {
  next: number;
  last: ArchivedEvent | null;
  /** Digest of the file before the one to be begun. */
  previous: string | null;
  installation: string | null;
  current: OpenFile | null;
};

/** The end of the files. A newest file whose head was never written whole is removed, and taken out of the list. */
async function endOf(dir: string, files: ArchiveFile[]): Promise<End> {
  const found: End = { next: 1, last: null, previous: null, installation: null, current: null };
  for (let newest = files.at(-1); newest !== undefined; newest = files.at(-1)) {
    const end = await readThrough(dir, newest, found);
    if (!newest.closed && end.bytes === 0) {
      await rm(join(dir, newest.name));
      files.pop();
      continue;
    }
    found.next = end.last + 1;
    if (newest.closed) found.previous = end.digest;
    else found.current = await reopen(dir, newest, end);
    // Form 1 names no installation: an event anywhere in it may.
    if (end.head?.kronosArchive === 1 && found.installation === null) {
      const { last } = found;
      for (const file of files.slice(0, -1)) await readThrough(dir, file, found);
      found.last = last ?? found.last;
    }
    const before = files.at(-2);
    if (found.last === null && before !== undefined) await readThrough(dir, before, found);
    break;
  }
  return found;
}

/** Reads a file to its end, for its last event, its digest and the installation. */
async function readThrough(dir: string, file: ArchiveFile, found: End): Promise<FileEnd> {
  const events = readFile(dir, file);
  let named: string | null = null;
  for (;;) {
    const { done, value } = await events.next();
    if (done === true) {
      found.installation = named ?? value.head?.installation ?? found.installation;
      return value;
    }
    found.last = value;
    named = installationOf(value) ?? named;
  }
}

class Writer implements Archive {
  readonly #dir: string;
  readonly #maxFileBytes: number;
  readonly #end: End;

  constructor(dir: string, maxFileBytes: number, end: End) {
    this.#dir = dir;
    this.#maxFileBytes = maxFileBytes;
    this.#end = end;
  }

  get next(): number {
    return this.#end.next;
  }

  get last(): ArchivedEvent | null {
    return this.#end.last;
  }

  get installation(): string | null {
    return this.#end.installation;
  }

  async write(events: readonly ArchivedEvent[]): Promise<void> {
    const end = this.#end;
    for (const [index, event] of events.entries())
      if (event.sequence !== end.next + index) throw new ArchiveGap(end.next + index, event.sequence);
    if (events.length === 0) return;
    // The first file names the installation that its own first event creates.
    const [first] = events;
    if (end.next === 1 && first !== undefined) end.installation = installationOf(first);
    const file = await this.#room();
    const lines = Buffer.from(events.map(eventLine).join(''));
    const seal = sealLine(end.next + events.length - 1, digestSoFar(file.hash.copy().update(lines)));
    await put(file, Buffer.concat([lines, Buffer.from(seal)]));
    end.next += events.length;
    end.last = events.at(-1) ?? end.last;
    for (const event of events) end.installation = installationOf(event) ?? end.installation;
  }

  async close(): Promise<void> {
    await this.#end.current?.handle.close();
    this.#end.current = null;
  }

  /** The file that the next events go into. A new one is begun before the full one is compressed: the newest is open. */
  async #room(): Promise<OpenFile> {
    const full = this.#end.current;
    if (full !== null && full.form === 2 && full.bytes < this.#maxFileBytes) return full;
    const file = await this.#begin(full === null ? this.#end.previous : digestSoFar(full.hash));
    this.#end.current = file;
    if (full !== null) {
      await full.handle.close();
      await compress(this.#dir, full.name);
    }
    return file;
  }

  /** Begins the file of the next event. */
  async #begin(after: string | null): Promise<OpenFile> {
    const { next, installation } = this.#end;
    const name = fileName(next);
    const handle = await open(join(this.#dir, name), 'wx');
    const file: OpenFile = { handle, name, form: 2, hash: createHash('sha256'), bytes: 0 };
    try {
      await put(file, Buffer.from(headLine(next, after, installation)));
      await syncDirectory(this.#dir);
    } catch (error) {
      await handle.close();
      await rm(join(this.#dir, name), { force: true });
      throw error;
    }
    return file;
  }
}

/** Goes on in a file that was left open. */
async function reopen(
  dir: string,
  file: ArchiveFile,
  { bytes, head }: { bytes: number; head: Head | null },
): Promise<OpenFile> {
  const path = join(dir, file.name);
  const handle = await open(path, 'r+');
  await handle.truncate(bytes);
  await handle.sync();
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return { handle, name: file.name, form: head?.kronosArchive ?? 2, hash, bytes };
}

/** Writes at the end that we know; a failure leaves what was written before as the file's content. */
async function put(file: OpenFile, data: Buffer): Promise<void> {
  if ((await file.handle.stat()).size !== file.bytes) throw new ArchiveTaken(file.name);
  try {
    await writeAll(file.handle, data, file.bytes);
    await file.handle.sync();
  } catch (error) {
    await file.handle.truncate(file.bytes).catch(() => undefined);
    throw error;
  }
  file.hash.update(data);
  file.bytes += data.length;
}

/** Compresses a full file, whose digest the next one names. When it fails the file stays as it is. */
async function compress(dir: string, name: string): Promise<void> {
  const plain = join(dir, name);
  const draft = `${plain}.gz.part`;
  try {
    await pipeline(createReadStream(plain), createGzip(), createWriteStream(draft, { flush: true }));
    await rename(draft, `${plain}.gz`);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncDirectory(dir);
  await rm(plain, { force: true });
}

async function writeAll(handle: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let written = 0; written < data.length; )
    written += (await handle.write(data, written, data.length - written, position + written)).bytesWritten;
}

/** Makes a new name in a directory safe on the disk. */
async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
