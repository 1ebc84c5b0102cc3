import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { type Archive, type ArchivedEvent, openArchive } from '@kronos/archive';
import type { Cancel, Clock } from '@kronos/clock';
import { errorText, streamNames } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { type LogIdentity, SETTLE_MS, type Witness } from '@kronos/projections';
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
  /** The copy that was there is of a log that a person has stated to be over: it was moved here. */
  readonly onSetAside: (dir: string) => void;
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

/** Events that arrive within this many ms are written together, at most BATCH of them. */
const GATHER_MS = 200;
const BATCH = 2000;
const RETRY_MS = 5000;

/** The end of the archive in a directory, and its log; null: it is empty. @throws ArchiveBroken */
export async function archiveWitness(options: ArchiveOptions): Promise<Witness | null> {
  const archive = await openArchive(options.dir, options);
  const { last, installation } = archive;
  await archive.close();
  if (last === null) return null;
  return {
    source: "the ledger's archive",
    installationId: installation,
    sequence: last.sequence,
    seenAtMs: last.storedAt,
  };
}

/**
 * Copies the log to a directory as it grows, from where the directory's copy ends. A copy of a log that a person has
 * stated to be over is set aside in a directory below it, and a new one begun.
 *
 * @param identity of the log: nothing contradicts it any more
 * @throws ArchiveForeign when the directory holds a copy of another log; ArchiveBroken; what the file system says
 */
export async function startArchiver(
  { log, clock }: { readonly log: Pick<EventLog, 'copy' | 'lastSequence'>; readonly clock: Clock },
  identity: LogIdentity,
  options: ArchiveOptions,
  hooks: ArchiveHooks,
): Promise<Archiver> {
  const archive = await openCopy(log, identity, options, hooks);
  if (archive.next > 1) hooks.onWritten(archive.next - 1);

  let gathered: ArchivedEvent[] = [];
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
        trouble = errorText(error);
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

/** Opens the copy of this log; one of a log that is over is set aside first. @throws ArchiveForeign */
async function openCopy(
  log: Pick<EventLog, 'copy' | 'lastSequence'>,
  identity: LogIdentity,
  options: ArchiveOptions,
  { onSetAside }: Pick<ArchiveHooks, 'onSetAside'>,
): Promise<Archive> {
  const archive = await openArchive(options.dir, options);
  const problem = await otherOrigin(log, archive);
  if (problem === null) return archive;
  await archive.close();
  const stated = identity.installations.findLast((one) => one.statement !== 'provisioned');
  if (stated === undefined || (archive.last?.storedAt ?? 0) > stated.storedAtMs + SETTLE_MS)
    throw new ArchiveForeign(options.dir, problem);
  onSetAside(await setAside(options.dir, archive));
  return openArchive(options.dir, options);
}

/** The last event of the copy must be that of the log; else what is wrong. */
async function otherOrigin(
  log: Pick<EventLog, 'copy' | 'lastSequence'>,
  { last }: Pick<Archive, 'last'>,
): Promise<string | null> {
  if (last === null) return null;
  const end = await log.lastSequence(streamNames.log);
  if (end < last.sequence) return `it reaches event ${last.sequence}, and the log ends at ${end}`;
  for await (const event of log.copy({ from: last.sequence, to: last.sequence }))
    if (event.subject !== last.subject || Buffer.compare(event.data, last.data) !== 0)
      return `its event ${last.sequence} is not that of the log`;
  return null;
}

/** Moves the files of an archive into a directory of their own below it, and gives its path. */
async function setAside(dir: string, { installation, last }: Pick<Archive, 'installation' | 'last'>): Promise<string> {
  const place = join(dir, `set-aside-${installation ?? 'unnamed'}-${last?.sequence ?? 0}`);
  await mkdir(place, { recursive: true });
  for (const entry of await readdir(dir, { withFileTypes: true }))
    if (entry.isFile()) await rename(join(dir, entry.name), join(place, entry.name));
  return place;
}
