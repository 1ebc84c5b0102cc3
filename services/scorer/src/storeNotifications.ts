/** Stores Nova's notifications on kronos.inventory. */
import { InvalidMessage } from '@kronos/eventlog';
import { heardByHost, heardReport } from '@kronos/inventory';
import { type Notification, parseNotification } from '@kronos/notifications';
import type { Instruments, Logger } from '@kronos/telemetry';
import type { HostReports } from './hostReports.ts';

interface Waiting {
  readonly notification: Notification;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/** Stores one message of RabbitMQ. @throws what appending throws: then it was not stored */
export type Store = (body: Uint8Array) => Promise<'stored' | 'bad'>;

export function createStore(
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Instruments },
  reports: Pick<HostReports, 'newest' | 'write'>,
): Store {
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

  return async function store(body) {
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
  };
}
