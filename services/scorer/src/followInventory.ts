/** Brings what kronos.inventory holds into the inventory that this process keeps. */
import type { Clock } from '@kronos/clock';
import { type InventoryReported, parseSubject, streamNames } from '@kronos/contracts';
import type { Delivered, EventLog } from '@kronos/eventlog';
import { type HostReport, unseen } from '@kronos/inventory';
import type { KeptServers } from '@kronos/observation';
import type { Logger } from '@kronos/telemetry';
import type { HostReports } from './hostReports.ts';

/** Limit of a cycle's wait until this process has read the stream. */
const LEVEL_WITHIN_MS = 10_000;

export interface Follower {
  /** Until the log is closed. @throws what reading it throws */
  follow(): Promise<void>;
  /** Whether what the stream held at first has been read. */
  ready(): boolean;
  /** Waits until everything on the stream has reached the inventory; where that is not known, no host is trusted. */
  level(signal: AbortSignal): Promise<void>;
}

export function createFollower(
  deps: {
    readonly log: Pick<EventLog, 'tail' | 'lastSequence'>;
    readonly inventory: KeptServers['inventory'];
    readonly clock: Clock;
    readonly logger: Logger;
  },
  reports: Pick<HostReports, 'note' | 'forget'>,
): Follower {
  const { log, inventory, clock, logger } = deps;
  /** By host: sequence of the newest message that reached the inventory. */
  const seen = new Map<string, number>();
  /** Last sequence of the stream when it was first read: what is not newer says nothing about who is heard now. */
  let began: number | null = null;
  let reached = 0;
  let reach = Promise.withResolvers<void>();

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
    ready: () => began !== null && reached >= began,
    async level(signal) {
      const distrust = (reason: string): void => {
        logger.warn({}, `no host is trusted: ${reason}`);
        inventory.distrust(clock.monotonic());
      };
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
  };
}
