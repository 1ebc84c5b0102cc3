/** Nova's notifications: from RabbitMQ to kronos.inventory, and from there into the inventory that this process keeps. */
import type { Clock } from '@kronos/clock';
import { type Actor, type InventoryReported, parseSubject, streamNames } from '@kronos/contracts';
import { type Delivered, type EventLog, InvalidMessage } from '@kronos/eventlog';
import { type HostReport, heardByHost, heardReport, readReport, unseen } from '@kronos/inventory';
import { type Notification, parseNotification } from '@kronos/notifications';
import type { KeptServers, ServerSource } from '@kronos/observation';
import type { Instruments, Logger } from '@kronos/telemetry';
import { hostReports } from './hostReports.ts';

/** How long a cycle waits for this process to have read what the stream holds. */
const LEVEL_WITHIN_MS = 10_000;

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

interface Waiting {
  readonly notification: Notification;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

export function createFeed(deps: FeedDeps): Feed {
  const { log, inventory, clock, logger, metrics } = deps;
  const reports = hostReports(deps);
  /** By host: sequence of the newest message that reached the inventory. */
  const seen = new Map<string, number>();
  /** Last sequence of the stream when it was first read: what is not newer says nothing about who is heard now. */
  let began: number | null = null;
  let reached = 0;
  let reach = Promise.withResolvers<void>();
  /** When RabbitMQ was lost; null while it is connected. */
  let lostMs: number | null = clock.monotonic();
  metrics.notificationsConnected.set(0, {});

  function take(one: Delivered<unknown>): void {
    const host = parseSubject(one.subject)?.name;
    if (host === undefined) return;
    const nowMs = clock.monotonic();
    const before = seen.get(host);
    if (before !== undefined && one.sequence <= before) return;
    if (one.problem !== undefined) {
      logger.warn(
        { host, sequence: one.sequence, problem: one.problem },
        'unreadable on kronos.inventory: not trusted',
      );
      inventory.distrustHost(host);
      inventory.doubt(nowMs);
      return;
    }
    const report: HostReport = (one.message as InventoryReported).data;
    reports.note(host, { report, sequence: one.sequence });
    seen.set(host, one.sequence);
    const { notices, gap } = unseen(report, before ?? 0);
    if (before !== undefined && gap) {
      logger.warn(
        { host },
        'messages of kronos.inventory were missed: the inventory is not trusted until it is read again',
      );
      inventory.distrustHost(host);
      inventory.doubt(nowMs);
    }
    for (const { server, deleted, own, after } of notices) {
      // Of a first message, only what it was written for is news.
      const isNews = before === undefined ? after === report.after && one.sequence > (began ?? 0) : true;
      if (own && isNews) inventory.heard(host, nowMs);
      if (server !== null) inventory.notified({ id: server, deleted, receivedMs: nowMs });
    }
  }

  let waiting: Waiting[] = [];
  let pumping = false;

  /** Stores what waits, all that names one host in one message; meanwhile more may come. */
  async function pump(): Promise<void> {
    if (pumping) return;
    pumping = true;
    try {
      while (waiting.length > 0) {
        const batch = waiting;
        waiting = [];
        const ids = batch.map((one) => one.notification.id);
        const byHost = heardByHost(
          batch.map((one) => one.notification),
          reports.newest,
        );
        const writes = [...byHost].map(([host, heard]) =>
          reports.write(host, heard.at(-1)?.event ?? '', ids, (before) => heardReport(before, heard)),
        );
        const results = await Promise.allSettled(writes);
        const failure = results.find((one) => one.status === 'rejected');
        for (const one of batch) {
          if (failure === undefined) one.done();
          else one.failed(failure.reason);
        }
      }
    } finally {
      pumping = false;
    }
  }

  return {
    async follow() {
      began = await log.lastSequence(streamNames.inventory);
      for await (const one of log.tail({ families: ['inventory'], since: 'last' })) {
        take(one);
        reached = Math.max(reached, one.sequence);
        reach.resolve();
        reach = Promise.withResolvers();
      }
    },
    async store(body) {
      const parsed = parseNotification(body);
      if (parsed.kind === 'bad') {
        metrics.notifications.add(1, { outcome: 'rejected' });
        logger.warn({ bytes: body.length }, `a notification was rejected: ${parsed.problem}`);
        return 'bad';
      }
      if (parsed.kind === 'unversioned') {
        metrics.notifications.add(1, { outcome: 'unversioned' });
        return 'stored';
      }
      const { notification } = parsed;
      if (notification.server === null && notification.compute === null) {
        metrics.notifications.add(1, { outcome: 'ignored' });
        return 'stored';
      }
      try {
        await new Promise<void>((done, failed) => {
          waiting.push({ notification, done, failed });
          void pump();
        });
      } catch (error) {
        if (!(error instanceof InvalidMessage)) throw error;
        metrics.notifications.add(1, { outcome: 'rejected' });
        logger.error({ err: error }, `a notification was rejected: ${notification.event} cannot be stored`);
        return 'bad';
      }
      metrics.notifications.add(1, { outcome: 'stored' });
      return 'stored';
    },
    connected(yes, detail) {
      const nowMs = clock.monotonic();
      metrics.notificationsConnected.set(yes ? 1 : 0, {});
      if (yes) {
        logger.info({ broker: detail }, "Nova's notifications arrive");
        // The binding may have been gone with a broker that was restarted.
        inventory.doubt(nowMs);
        if (lostMs !== null && nowMs - lostMs > deps.syncIntervalMs) inventory.distrust(nowMs);
        lostMs = null;
        return;
      }
      // Tried again for ever: one line for each loss.
      logger[lostMs === null ? 'warn' : 'debug']({ broker: detail }, `Nova's notifications do not arrive: ${detail}`);
      lostMs ??= nowMs;
    },
    ready: () => began !== null && reached >= began && log.healthy().ok,
    async level(signal) {
      const distrust = (reason: string): void => {
        logger.warn({}, `no host is trusted: ${reason}`);
        inventory.distrust(clock.monotonic());
      };
      if (lostMs !== null && clock.monotonic() - lostMs > deps.syncIntervalMs) inventory.distrust(clock.monotonic());
      let last: number;
      try {
        last = await log.lastSequence(streamNames.inventory);
      } catch (error) {
        signal.throwIfAborted();
        distrust(`kronos.inventory cannot be read: ${String(error)}`);
        return;
      }
      if (last < reached) {
        reports.forget();
        seen.clear();
        reached = 0;
        distrust('kronos.inventory was created again');
      }
      const ending = new AbortController();
      const late = clock.sleep(LEVEL_WITHIN_MS, ending.signal, signal).then(() => 'late' as const);
      try {
        while (reached < last)
          if ((await Promise.race([reach.promise, late])) === 'late') {
            signal.throwIfAborted();
            distrust(`kronos.inventory was read up to ${reached} of ${last}`);
            return;
          }
      } finally {
        ending.abort();
      }
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
        logger.warn({ err: failure.reason }, 'lists of hosts were not reported; the next cycle reports them');
    },
  };
}

/** The servers that are kept by a feed: each read sees what the stream held when it began, and reports what it read. */
export function fedServers(kept: KeptServers, feed: Pick<Feed, 'level' | 'report'>): ServerSource {
  return {
    async read(signal, hosts) {
      await feed.level(signal);
      const servers = await kept.read(signal, hosts);
      await feed.report(kept.inventory.placement(), await hosts());
      return servers;
    },
    listingOf: (host) => kept.listingOf(host),
  };
}
