/** Brings what kronos.inventory holds into the inventory that this process keeps. */
import type { Clock } from '@kronos/clock';
import { type InventoryReported, parseSubject, streamNames } from '@kronos/contracts';
import type { Delivered, EventLog } from '@kronos/eventlog';
import { type HostReport, unseenNotices } from '@kronos/inventory';
import type { KeptServers } from '@kronos/observation';
import type { Logger } from '@kronos/telemetry';
import type { HostReports } from './hostReports.ts';

/** Limit of a cycle's wait until this process has read the stream. */
const LEVEL_WITHIN_MS = 10_000;

export interface FollowerDeps {
  readonly log: Pick<EventLog, 'tail' | 'lastSequence'>;
  readonly inventory: KeptServers['inventory'];
  readonly clock: Clock;
  readonly logger: Logger;
}

export class Follower {
  readonly #deps: FollowerDeps;
  readonly #reports: Pick<HostReports, 'note' | 'forget'>;
  /** By host: sequence of the newest message that reached the inventory. */
  readonly #seen = new Map<string, number>();
  /** Last sequence of the stream when it was first read: what is not newer says nothing about who is heard now. */
  #began: number | null = null;
  #reached = 0;
  #reach = Promise.withResolvers<void>();

  constructor(deps: FollowerDeps, reports: Pick<HostReports, 'note' | 'forget'>) {
    this.#deps = deps;
    this.#reports = reports;
  }

  /** Until the log is closed. @throws what reading it throws */
  async follow(): Promise<void> {
    const { log } = this.#deps;
    this.#began = await log.lastSequence(streamNames.inventory);
    for await (const one of log.tail({ families: ['inventory'], since: 'last' })) {
      this.#take(one);
      this.#reached = Math.max(this.#reached, one.sequence);
      this.#reach.resolve();
      this.#reach = Promise.withResolvers();
    }
  }

  /** Whether what the stream held at first has been read. */
  ready(): boolean {
    return this.#began !== null && this.#reached >= this.#began;
  }

  /** Waits until everything on the stream has reached the inventory; where that is not known, no host is trusted. */
  async level(signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#deps;
    let last: number;
    try {
      last = await log.lastSequence(streamNames.inventory);
    } catch (error) {
      signal.throwIfAborted();
      this.#distrust(`kronos.inventory cannot be read: ${String(error)}`);
      return;
    }
    if (last < this.#reached) {
      this.#reports.forget();
      this.#seen.clear();
      this.#reached = 0;
      this.#distrust('kronos.inventory was created again');
    }
    const ending = new AbortController();
    const late = clock.sleep(LEVEL_WITHIN_MS, ending.signal, signal).then(() => 'late' as const);
    try {
      while (this.#reached < last)
        if ((await Promise.race([this.#reach.promise, late])) === 'late') {
          signal.throwIfAborted();
          this.#distrust(`kronos.inventory was read up to ${this.#reached} of ${last}`);
          return;
        }
    } finally {
      ending.abort();
    }
  }

  #distrust(reason: string): void {
    const { inventory, clock, logger } = this.#deps;
    logger.warn({}, `the lists of servers are not trusted until Nova is read again: ${reason}`);
    inventory.distrust(clock.monotonic());
  }

  #take(one: Delivered<unknown>): void {
    const { inventory, clock, logger } = this.#deps;
    const host = parseSubject(one.subject)?.name;
    if (host === undefined) return;
    const nowMs = clock.monotonic();
    const before = this.#seen.get(host);
    if (before !== undefined && one.sequence <= before) return;
    if (one.problem !== undefined) {
      logger.warn(
        { host, sequence: one.sequence, problem: one.problem },
        'a message of kronos.inventory cannot be read: its host is not trusted until Nova is read again',
      );
      inventory.distrustHost(host);
      inventory.doubt(nowMs);
      return;
    }
    const report: HostReport = (one.message as InventoryReported).data;
    this.#reports.note(host, { report, sequence: one.sequence });
    this.#seen.set(host, one.sequence);
    const { notices, gap } = unseenNotices(report, before ?? 0);
    if (before !== undefined && gap) {
      logger.warn(
        { host },
        'messages of kronos.inventory were missed: the inventory is not trusted until it is read again',
      );
      inventory.distrustHost(host);
      inventory.doubt(nowMs);
    }
    // Of a first message, only what it was written for is news.
    const isNews = ({ after }: HostReport['notices'][number]): boolean =>
      before === undefined ? after === report.after && one.sequence > (this.#began ?? 0) : true;
    for (const notice of notices) {
      const { server, deleted, own } = notice;
      if (own && isNews(notice)) inventory.heard(host, nowMs);
      if (server !== null) inventory.notified({ id: server, deleted, receivedMs: nowMs });
    }
  }
}
