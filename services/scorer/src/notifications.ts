/** Nova's notifications: from RabbitMQ to kronos.inventory, and from there into the inventory that this process keeps. */
import type { Clock } from '@kronos/clock';
import type { Actor } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { readReport } from '@kronos/inventory';
import type { KeptServers, ServerSource } from '@kronos/observation';
import type { Instruments, Logger } from '@kronos/telemetry';
import { Follower } from './followInventory.ts';
import { hostReports } from './hostReports.ts';
import { createStore } from './storeNotifications.ts';

export interface FeedDeps {
  readonly log: Pick<EventLog, 'append' | 'tail' | 'lastSequence' | 'healthy'>;
  readonly inventory: KeptServers['inventory'];
  /** `[inventory] sync_interval`. */
  readonly syncIntervalMs: number;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Instruments;
}

export interface Feed {
  /** Follows kronos.inventory until the log is closed. @throws what reading it throws */
  follow(): Promise<void>;
  /** Stores one message of RabbitMQ. @throws what appending throws: then it was not stored */
  store(body: Uint8Array): Promise<'stored' | 'bad'>;
  /** Told when messages of RabbitMQ arrive, and when they no longer do. */
  connected(yes: boolean, detail: string): void;
  /** Whether messages of RabbitMQ can be stored. */
  ready(): boolean;
  /** Waits until everything on the stream has reached the inventory; where that is not known, no host is trusted. */
  level(signal: AbortSignal): Promise<void>;
  /** Reports the lists that were read from Nova, of the hosts where the stream has another. */
  report(placement: ReadonlyMap<string, ReadonlySet<string>>, hosts: Iterable<string>): Promise<void>;
}

export function createFeed(deps: FeedDeps): Feed {
  const { log, inventory, clock, logger, metrics } = deps;
  const reports = hostReports(deps);
  const follower = new Follower(deps, reports);
  /** When RabbitMQ was lost; null while it is connected. */
  let lostMs: number | null = clock.monotonic();
  metrics.notificationsConnected.set(0, {});

  /** Whether RabbitMQ has been lost for longer than its notifications may be late. */
  const lostLong = (nowMs: number): boolean => lostMs !== null && nowMs - lostMs > deps.syncIntervalMs;

  return {
    follow: () => follower.follow(),
    store: createStore(deps, reports),
    connected(yes, detail) {
      const nowMs = clock.monotonic();
      metrics.notificationsConnected.set(yes ? 1 : 0, {});
      if (yes) {
        logger.info({ broker: detail }, "Nova's notifications arrive");
        // The binding may have been gone with a broker that was restarted.
        inventory.doubt(nowMs);
        if (lostLong(nowMs)) inventory.distrust(nowMs);
        lostMs = null;
        return;
      }
      // Tried again for ever: one line for each loss.
      logger[lostMs === null ? 'warn' : 'debug']({ broker: detail }, `Nova's notifications do not arrive: ${detail}`);
      lostMs ??= nowMs;
    },
    ready: () => follower.ready() && log.healthy().ok,
    async level(signal) {
      const nowMs = clock.monotonic();
      if (lostLong(nowMs)) inventory.distrust(nowMs);
      await follower.level(signal);
    },
    async report(placement, hosts) {
      const none: ReadonlySet<string> = new Set();
      const failures = await Promise.allSettled(
        [...hosts].map((host) => {
          const ids = placement.get(host) ?? none;
          return reports.write(host, 'read', ['read', ...ids], (before) => readReport(before, ids));
        }),
      );
      const failure = failures.find((one) => one.status === 'rejected');
      if (failure !== undefined)
        logger.warn(
          { err: failure.reason },
          'lists of servers could not be written to kronos.inventory; the next cycle writes them',
        );
    },
  };
}

/** The servers that are kept by a feed: each read sees what the stream held when it began, and reports what it read. */
export function fedServers(kept: KeptServers, feed: Pick<Feed, 'level' | 'report'>): ServerSource {
  return {
    async read(signal, beside) {
      await feed.level(signal);
      const servers = await kept.read(signal, beside);
      await feed.report(kept.inventory.placement(), await beside.hosts());
      return servers;
    },
    listingOf: (host) => kept.listingOf(host),
  };
}
