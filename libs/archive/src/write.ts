import { createHash, type Hash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { ArchiveBroken, ArchiveGap, ArchiveTaken } from './errors.ts';
import { eventLine, fileName, headLine, type RawEvent } from './format.ts';
import { type ArchiveFile, archiveFiles, readFile } from './read.ts';

export interface Archive {
  /** Sequence of the event to be written next. */
  readonly next: number;
  /** The last event; null before the first. */
  readonly last: RawEvent | null;
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
  readonly hash: Hash;
  bytes: number;
};

/**
 * Opens a directory for writing, and makes it when it is not there. What a crash left behind is put right: an incomplete
 * line is cut off, a file that was compressed already is not kept twice.
 *
 * @throws ArchiveBroken when its last files are not what they must be
 */
export async function openArchive(dir: string, options: { readonly maxFileBytes: number }): Promise<Archive> {
  await mkdir(dir, { recursive: true });
  const files = await archiveFiles(dir);
  const newest = files.at(-1);
  for (const { first, closed } of files) if (closed) await rm(join(dir, fileName(first, false)), { force: true });
  for (const file of files.slice(0, -1))
    if (!file.closed) throw new ArchiveBroken(file.name, 'is still open, and there is a file after it');

  let next = 1;
  let last: RawEvent | null = null;
  /** Digest of the last closed file. */
  let previous: string | null = null;
  let current: OpenFile | null = null;

  /** Reads a file to its end, for its last event and its digest. */
  async function readThrough(file: ArchiveFile) {
    const events = readFile(dir, file, undefined);
    for (;;) {
      const { done, value } = await events.next();
      if (done === true) return value;
      last = value;
    }
  }

  if (newest !== undefined) {
    const end = await readThrough(newest);
    next = end.last + 1;
    if (newest.closed) previous = end.digest;
    else current = await reopen(newest, end.bytes);
    const before = files.at(-2);
    // A file whose head was never written is gone now: the next one follows the one before it.
    if (!newest.closed && current === null && before !== undefined) previous = (await readThrough(before)).digest;
  }

  /** Goes on in a file that was left open. */
  async function reopen(file: ArchiveFile, bytes: number): Promise<OpenFile | null> {
    const path = join(dir, file.name);
    const handle = await open(path, 'r+');
    await handle.truncate(bytes);
    await handle.sync();
    if (bytes === 0) {
      await handle.close();
      await rm(path);
      return null;
    }
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
    return { handle, name: file.name, hash, bytes };
  }

  async function begin(): Promise<OpenFile> {
    const name = fileName(next, false);
    const handle = await open(join(dir, name), 'wx');
    const file: OpenFile = { handle, name, hash: createHash('sha256'), bytes: 0 };
    try {
      await put(file, Buffer.from(headLine(next, previous)));
      await syncDirectory(dir);
    } catch (error) {
      await handle.close();
      await rm(join(dir, name), { force: true });
      throw error;
    }
    return file;
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

  /** Compresses a full file; the next one names its digest. When it fails the file stays as it is. */
  async function finish(file: OpenFile): Promise<void> {
    const plain = join(dir, file.name);
    const draft = `${plain}.gz.part`;
    try {
      await pipeline(createReadStream(plain), createGzip(), createWriteStream(draft, { flush: true }));
      await rename(draft, `${plain}.gz`);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    current = null;
    previous = `sha256:${file.hash.digest('hex')}`;
    await file.handle.close();
    await syncDirectory(dir);
    await rm(plain, { force: true });
  }

  return {
    get next() {
      return next;
    },
    get last() {
      return last;
    },
    async write(events) {
      for (const [index, event] of events.entries())
        if (event.sequence !== next + index) throw new ArchiveGap(next + index, event.sequence);
      if (events.length === 0) return;
      if (current !== null && current.bytes >= options.maxFileBytes) await finish(current);
      current ??= await begin();
      await put(current, Buffer.from(events.map(eventLine).join('')));
      next += events.length;
      last = events.at(-1) ?? last;
    },
    async close() {
      await current?.handle.close();
      current = null;
    },
  };
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
