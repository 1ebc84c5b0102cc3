import { createHash, type Hash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { ArchiveGap, ArchiveTaken } from './errors.ts';
import { eventLine, fileName, type Head, headLine, installationOf, type RawEvent, sealLine } from './format.ts';
import { type ArchiveFile, archiveFiles, readFile } from './read.ts';

export interface Archive {
  /** Sequence of the event to be written next. */
  readonly next: number;
  /** The last event; null before the first. */
  readonly last: RawEvent | null;
  /** Installation id in force at the last event; null: the log names none. */
  readonly installation: string | null;
  /**
   * Writes events that follow each other and makes them safe on the disk. When it fails nothing of it counts as written.
   *
   * @throws ArchiveGap, ArchiveTaken, and what the file system says
   */
  write(events: readonly RawEvent[]): Promise<void>;
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

  let next = 1;
  let last: RawEvent | null = null;
  /** Digest of the file before the one to be begun. */
  let previous: string | null = null;
  let installation: string | null = null;
  let current: OpenFile | null = null;

  /** Reads a file to its end, for its last event, its digest and the installation. */
  async function readThrough(file: ArchiveFile) {
    const events = readFile(dir, file);
    let found: string | null = null;
    for (;;) {
      const { done, value } = await events.next();
      if (done !== true) {
        last = value;
        found = installationOf(value) ?? found;
        continue;
      }
      installation = found ?? value.head?.installation ?? installation;
      return value;
    }
  }

  // A file whose head was never written whole is of no use: the one before it goes on.
  for (let newest = files.at(-1); newest !== undefined; newest = files.at(-1)) {
    const end = await readThrough(newest);
    if (!newest.closed && end.bytes === 0) {
      await rm(join(dir, newest.name));
      files.pop();
      continue;
    }
    next = end.last + 1;
    if (newest.closed) previous = end.digest;
    else current = await reopen(dir, newest, end);
    // Form 1 names no installation: an event anywhere in it may.
    if (end.head?.kronosArchive === 1 && installation === null) {
      const newestEvent: RawEvent | null = last;
      for (const file of files.slice(0, -1)) await readThrough(file);
      last = newestEvent ?? last;
    }
    const before = files.at(-2);
    if (last === null && before !== undefined) await readThrough(before);
    break;
  }
  for (const file of files.slice(0, -1)) if (!file.closed) await compress(dir, file.name);

  /** Begins the file of the next event. */
  async function begin(after: string | null): Promise<OpenFile> {
    const name = fileName(next);
    const handle = await open(join(dir, name), 'wx');
    const file: OpenFile = { handle, name, form: 2, hash: createHash('sha256'), bytes: 0 };
    try {
      await put(file, Buffer.from(headLine(next, after, installation)));
      await syncDirectory(dir);
    } catch (error) {
      await handle.close();
      await rm(join(dir, name), { force: true });
      throw error;
    }
    return file;
  }

  /** The file that the next events go into. A new one is begun before the full one is compressed: the newest is open. */
  async function room(): Promise<OpenFile> {
    const full = current;
    if (full !== null && full.form === 2 && full.bytes < options.maxFileBytes) return full;
    const file = await begin(full === null ? previous : digestOf(full.hash));
    current = file;
    if (full !== null) {
      await full.handle.close();
      await compress(dir, full.name);
    }
    return file;
  }

  return {
    get next() {
      return next;
    },
    get last() {
      return last;
    },
    get installation() {
      return installation;
    },
    async write(events) {
      for (const [index, event] of events.entries())
        if (event.sequence !== next + index) throw new ArchiveGap(next + index, event.sequence);
      if (events.length === 0) return;
      // The first file names the installation that its own first event creates.
      const [first] = events;
      if (next === 1 && first !== undefined) installation = installationOf(first);
      const file = await room();
      const lines = Buffer.from(events.map(eventLine).join(''));
      const seal = sealLine(next + events.length - 1, digestOf(file.hash.copy().update(lines)));
      await put(file, Buffer.concat([lines, Buffer.from(seal)]));
      next += events.length;
      last = events.at(-1) ?? last;
      for (const event of events) installation = installationOf(event) ?? installation;
    },
    async close() {
      await current?.handle.close();
      current = null;
    },
  };
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

const digestOf = (hash: Hash): string => `sha256:${hash.copy().digest('hex')}`;

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
