import type { Clock } from '@kronos/clock';
import type { SnapshotTaken } from '@kronos/contracts';
import { type EventLog, nullIfUnusable } from '@kronos/eventlog';
import type { Logger } from '@kronos/telemetry';
import type { Aside } from '../aside/aside.ts';
import type { FoundNames } from '../aside/names.ts';
import type { Orders } from '../aside/work.ts';

/** The names of an aggregate are read at most once in this many ms: their CPU is bounded, however often a scorer observes. */
const EVERY_MS = 60_000;
/** Interval between two looks for new snapshots. */
const LOOK_MS = 1_000;
/** When the stream of snapshots is read again after an error. */
const AGAIN_MS = 30_000;

export type NameKeeperInput = {
  readonly log: Pick<EventLog, 'tail'> & { readonly objects: Pick<EventLog['objects'], 'get'> };
  readonly aside: Aside;
  /** Aggregates whose names are kept. */
  readonly aggregates: () => readonly string[];
  readonly clock: Pick<Clock, 'monotonic' | 'every' | 'sleep'>;
  readonly logger: Logger;
};

export type NameKeeper = {
  /** Reads the names of the newest snapshots, then of each that arrives. Resolves after the first ones; never rejects. */
  start(): Promise<void>;
  /** The names that match. `query` is in lower case. Waits for the first names, and starts to read them if nobody did. */
  find(query: string, limit: number): Promise<FoundNames>;
  /** The names of VMs by uuid; one that no newest snapshot has is left out. Waits as `find` does. */
  named(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The hosts of every aggregate by value. Waits as `find` does. */
  skylines(): Promise<Orders['skylines']['answer']>;
  close(): void;
};

/** The snapshots whose names the ledger's thread has. */
class KeptNames {
  readonly #input: Pick<NameKeeperInput, 'log' | 'aside' | 'clock' | 'logger'>;
  /** `digest` null: the last read failed. */
  readonly #read = new Map<string, { readonly digest: string | null; readonly atMs: number }>();

  constructor(input: Pick<NameKeeperInput, 'log' | 'aside' | 'clock' | 'logger'>) {
    this.#input = input;
    input.aside.onEnd(() => this.#read.clear());
  }

  has(aggregate: string): boolean {
    return this.#read.has(aggregate);
  }

  due(aggregate: string, { data }: SnapshotTaken): boolean {
    const known = this.#read.get(aggregate);
    if (known === undefined) return true;
    return known.digest !== data.body.digest && this.#input.clock.monotonic() - known.atMs >= EVERY_MS;
  }

  async read(aggregate: string, { data }: SnapshotTaken): Promise<void> {
    const { log, aside, clock, logger } = this.#input;
    const { body, snapshotId: name } = data;
    let digest: string | null = body.digest;
    try {
      const bytes = await log.objects.get(body).catch(nullIfUnusable);
      await aside.run('names', { aggregate, body: bytes === null ? null : { bytes, digest: body.digest, name } });
    } catch (error) {
      digest = null;
      logger.debug(
        { err: error, aggregate },
        'the names of a snapshot could not be read; they are read again in a minute',
      );
    }
    // Also after an error: one bad snapshot must not be read again and again.
    this.#read.set(aggregate, { digest, atMs: clock.monotonic() });
  }
}

/**
 * Keeps the names of the hosts and VMs in the newest snapshots in the ledger's thread, so that a search reads no snapshot.
 * Names are read one snapshot at a time, and are at most a minute older than the newest snapshot.
 */
export function nameKeeper({ log, aside, aggregates, clock, logger }: NameKeeperInput): NameKeeper {
  const ending = new AbortController();
  const newest = new Map<string, SnapshotTaken>();
  const kept = new KeptNames({ log, aside, clock, logger });
  let started: Promise<void> | null = null;
  let looking: Promise<void> | null = null;
  let endLooks = (): void => undefined;

  function look(): Promise<void> {
    looking ??= (async () => {
      for (const [aggregate, taken] of newest)
        if (!ending.signal.aborted && kept.due(aggregate, taken)) await kept.read(aggregate, taken);
    })().finally(() => {
      looking = null;
    });
    return looking;
  }

  async function collect(end: boolean): Promise<void> {
    for await (const { message, problem } of log.tail({ families: ['snapshots'], since: 'last', end }))
      if (problem === undefined && message.type === 'snapshot.taken' && aggregates().includes(message.aggregate))
        newest.set(message.aggregate, message);
  }

  async function follow(): Promise<void> {
    while (!ending.signal.aborted) {
      await collect(false).catch((error: unknown) => {
        if (!ending.signal.aborted) logger.debug({ err: error }, 'new snapshots cannot be read; it is tried again');
      });
      await clock.sleep(AGAIN_MS, ending.signal);
    }
  }

  function start(): Promise<void> {
    started ??= (async () => {
      await collect(true).catch((error: unknown) => logger.debug({ err: error }, 'snapshots cannot be read'));
      await look();
      if (ending.signal.aborted) return;
      void follow();
      endLooks = clock.every(LOOK_MS, () => void look());
    })();
    return started;
  }

  async function ready(): Promise<void> {
    await start();
    // A thread that ended took the names with it.
    if ([...newest.keys()].some((aggregate) => !kept.has(aggregate))) await look();
  }

  return {
    start,
    async find(query, limit) {
      await ready();
      return await aside.run('find', { query, limit });
    },
    async skylines() {
      await ready();
      return await aside.run('skylines', {});
    },
    async named(ids) {
      if (ids.length === 0) return new Map();
      await ready();
      return new Map(await aside.run('named', { ids }));
    },
    close() {
      ending.abort();
      endLooks();
    },
  };
}
