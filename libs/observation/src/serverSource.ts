/** The source of an observation's servers: read in every cycle, or kept and brought up to date. */
import type { Clock } from '@kronos/clock';
import { iso, type ServerListing } from '@kronos/contracts';
import { isNothing, type KeptMode, type ResyncReason, ServerInventory, type WantedReads } from '@kronos/inventory';
import { NotFound, type Nova, type Server } from '@kronos/openstack';
import { createLimiter } from './limit.ts';

/** Reads of a cycle that a source of servers may need. */
interface ReadBeside {
  /** Every service host of the cloud. */
  readonly hosts: () => Promise<readonly string[]>;
  /** Whether Nova reaches every cell; false where that is not known. */
  readonly cellsReached: () => Promise<boolean>;
}

export interface ServerSource {
  /**
   * Every server of the cloud, as Nova's own list has them.
   *
   * @throws what Nova's calls throw: then nothing is known for this cycle
   */
  read(signal: AbortSignal, beside: ReadBeside): Promise<readonly Server[]>;
  /** The source of a host's list in the last read; null before the first. */
  listingOf(host: string): ServerListing | null;
}

/** Reads every server each time. */
export function everyServer(nova: Pick<Nova, 'listServers'>, clock: Pick<Clock, 'now'>): ServerSource {
  let readAt: string | null = null;
  return {
    async read(signal) {
      const began = iso(clock.now());
      const servers = await nova.listServers({}, { signal });
      readAt = began;
      return servers;
    },
    listingOf: () => (readAt === null ? null : { from: 'api', checkedAt: readAt }),
  };
}

/** Reads that one use of the list may take; each has all that the ones before it made necessary. */
const MOST_ROUNDS = 8;
/** A change may be written this long after the time that Nova gives it, whatever the clocks. */
const OVERLAP_MS = 25_000;

export interface KeepServers {
  readonly nova: Pick<Nova, 'listServers' | 'listServerIds' | 'listServerIdsByHost' | 'getServer'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly mode: KeptMode;
  /** Tags (and metadata keys) that opt a server out. */
  readonly optOut: readonly string[];
  /** `[inventory] sync_interval`. */
  readonly syncIntervalMs: number;
  /** `[engine] max_clock_skew`: how far Nova's clock may be from this one. */
  readonly maxClockSkewMs: number;
  /** Whether this clock is further off, now: then no time of Nova can be told by it. */
  readonly clockWrong: () => boolean;
  /** Calls at a time. */
  readonly concurrency: number;
  /** Told of every read that neither the cycle nor a change asked for; `what` is a host, a server, or the whole cloud. */
  readonly onResync: (reason: ResyncReason, what: { readonly host?: string; readonly server?: string }) => void;
}

export interface KeptServers extends ServerSource {
  /** Told of notifications, in the mode `notifications`; times are of the clock's `monotonic`. */
  readonly inventory: Pick<
    ServerInventory<Server>,
    'notified' | 'heard' | 'distrust' | 'distrustHost' | 'doubt' | 'placement'
  >;
}

/** The result of a read, with the times at which it began and ended. */
async function timedBy<T>(
  clock: Pick<Clock, 'monotonic'>,
  read: () => Promise<T>,
): Promise<[T, { beganMs: number; endedMs: number }]> {
  const beganMs = clock.monotonic();
  const value = await read();
  return [value, { beganMs, endedMs: clock.monotonic() }];
}

async function serverOrNull(nova: Pick<Nova, 'getServer'>, id: string, signal: AbortSignal): Promise<Server | null> {
  try {
    return await nova.getServer(id, { signal });
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}

/** Keeps the servers from one read to the next, and reads what changed. */
export function keepServers(deps: KeepServers): KeptServers {
  const { nova, clock, mode, onResync } = deps;
  const inventory = new ServerInventory<Server>(deps.optOut);
  let cycleMs: number | null = null;

  /** Nova's time, with the overlap. Nova compares by the second. */
  const novaTime = (monotonicMs: number): string => {
    const at = clock.now() - (clock.monotonic() - monotonicMs) - OVERLAP_MS - deps.maxClockSkewMs;
    return `${iso(at).slice(0, 19)}Z`;
  };

  const timed = <T>(read: () => Promise<T>) => timedBy(clock, read);

  async function everything(reason: ResyncReason, signal: AbortSignal): Promise<void> {
    if (reason !== 'start') onResync(reason, {});
    inventory.bulkRead(...(await timed(() => nova.listServers({}, { signal }))));
  }

  /** By a wrong clock the list could begin too late. It would lack changes, and no later list has them. */
  async function changes(sinceMs: number, signal: AbortSignal): Promise<void> {
    if (deps.clockWrong()) return everything('clock', signal);
    const filter = { changesSince: novaTime(sinceMs) };
    inventory.changesRead(sinceMs, ...(await timed(() => nova.listServers(filter, { signal }))));
  }

  async function make(wanted: WantedReads, signal: AbortSignal): Promise<void> {
    if (wanted.bulk !== null) return everything(wanted.bulk, signal);
    // The changes last, so that they explain what the lists of ids show.
    if (wanted.comparison) inventory.compared(...(await timed(() => nova.listServerIdsByHost({ signal }))));
    if (wanted.tagged)
      inventory.taggedRead(...(await timed(() => nova.listServerIds({ tagsAny: deps.optOut }, { signal }))));
    if (wanted.changesSinceMs !== null) await changes(wanted.changesSinceMs, signal);
    const limit = createLimiter(deps.concurrency);
    await Promise.all([
      ...[...wanted.hosts].map(([host, reason]) =>
        limit(async () => {
          onResync(reason, { host });
          inventory.hostRead(host, ...(await timed(() => nova.listServers({ host }, { signal }))));
        }),
      ),
      ...[...wanted.servers].map(([id, reason]) =>
        limit(async () => {
          if (reason !== null) onResync(reason, { server: id });
          inventory.serverRead(id, ...(await timed(() => serverOrNull(nova, id, signal))));
        }),
      ),
    ]);
  }

  return {
    inventory,
    async read(signal, { hosts, cellsReached }) {
      inventory.cellsReached({ all: await cellsReached() });
      const asked = {
        mode,
        cycleMs: clock.monotonic(),
        syncIntervalMs: deps.syncIntervalMs,
        hosts: mode === 'notifications' ? await hosts() : [],
      };
      for (let round = 0; round < MOST_ROUNDS; round++) {
        const wanted = inventory.wanted(asked);
        if (isNothing(wanted)) {
          cycleMs = asked.cycleMs;
          return inventory.list();
        }
        await make(wanted, signal);
      }
      throw new Error(`Nova's servers changed during each of ${MOST_ROUNDS} readings`);
    },
    listingOf(host) {
      if (cycleMs === null) return null;
      const { from, checkedMs } = inventory.sourceOf(host, { mode, cycleMs });
      const checkedAt = iso(clock.now() - (clock.monotonic() - checkedMs));
      return { from: from === 'api' ? 'api' : mode, checkedAt };
    },
  };
}
