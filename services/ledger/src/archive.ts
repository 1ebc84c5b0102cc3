import { type Archive, openArchive, type RawEvent } from '@kronos/archive';
import type { Cancel, Clock } from '@kronos/clock';
import { streamNames } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { ArchiveForeign } from './errors.ts';

export type ArchiveOptions = {
  readonly dir: string;
  readonly maxFileBytes: number;
};

export type ArchiveHooks = {
  /** Runs around each write; `sequence`: the first event of it. */
  readonly around?: (sequence: number, write: () => Promise<void>) => Promise<void>;
  /** Events up to this sequence are safe on the disk. */
  readonly onWritten: (sequence: number) => void;
  /** Something could not be written; it is tried again. */
  readonly onTrouble: (error: unknown) => void;
};

export interface Archiver {
  /** Null while everything goes well, else what does not. */
  readonly trouble: string | null;
  /** Rejects when the log can no longer be read. */
  readonly done: Promise<void>;
  /** Writes what has arrived and ends. Before the connection closes. */
  stop(): Promise<void>;
}

/** Events that arrive within this time are written together, and at the latest after so many. */
const GATHER_MS = 200;
const BATCH = 2000;
const RETRY_MS = 5000;

/**
 * Copies the log to a directory as it grows, from where the directory's copy ends.
 *
 * @throws ArchiveForeign when the directory holds a copy of another log; ArchiveBroken; what the file system says
 */
export async function startArchiver(
  log: Pick<EventLog, 'copy' | 'lastSequence'>,
  options: ArchiveOptions,
  clock: Clock,
  hooks: ArchiveHooks,
): Promise<Archiver> {
  const archive = await openArchive(options.dir, options);
  await checkOrigin(log, archive, options.dir);
  if (archive.next > 1) hooks.onWritten(archive.next - 1);

  let gathered: RawEvent[] = [];
  let trouble: string | null = null;
  let stopping = false;
  let timer: Cancel | null = null;
  let writing: Promise<void> | null = null;

  function write(): Promise<void> {
    timer?.();
    timer = null;
    writing ??= drain().finally(() => {
      writing = null;
    });
    return writing;
  }

  async function drain(): Promise<void> {
    while (gathered.length > 0) {
      const batch = gathered.slice(0, BATCH);
      try {
        const write = () => archive.write(batch);
        await (hooks.around === undefined ? write() : hooks.around(archive.next, write));
      } catch (error) {
        trouble = error instanceof Error ? error.message : String(error);
        hooks.onTrouble(error);
        if (!stopping) timer ??= clock.after(RETRY_MS, () => void write());
        return;
      }
      gathered = gathered.slice(batch.length);
      trouble = null;
      hooks.onWritten(archive.next - 1);
    }
  }

  async function follow(): Promise<void> {
    try {
      for await (const event of log.copy({ from: archive.next, to: Number.MAX_SAFE_INTEGER })) {
        gathered.push(event);
        // A disk that is full must not fill the memory too: the log keeps what is not read yet.
        if (gathered.length >= BATCH) await written();
        else timer ??= clock.after(GATHER_MS, () => void write());
      }
    } catch (error) {
      if (!stopping) throw error;
    }
  }

  /** Waits until there is room again. */
  async function written(): Promise<void> {
    while (gathered.length >= BATCH && !stopping) {
      await write();
      if (gathered.length >= BATCH) await clock.sleep(RETRY_MS);
    }
  }

  return {
    get trouble() {
      return trouble;
    },
    done: follow(),
    async stop() {
      stopping = true;
      await writing;
      await write();
      await archive.close();
    },
  };
}

/** The last event of the copy must be that of the log. */
async function checkOrigin(log: Pick<EventLog, 'copy' | 'lastSequence'>, archive: Archive, dir: string): Promise<void> {
  const { last } = archive;
  if (last === null) return;
  const end = await log.lastSequence(streamNames.log);
  if (end < last.sequence)
    throw new ArchiveForeign(dir, `it reaches event ${last.sequence}, and the log ends at ${end}`);
  for await (const event of log.copy({ from: last.sequence, to: last.sequence }))
    if (event.subject !== last.subject || Buffer.compare(event.data, last.data) !== 0)
      throw new ArchiveForeign(dir, `its event ${last.sequence} is not that of the log`);
}
