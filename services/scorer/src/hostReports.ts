/** The messages of kronos.inventory: the newest one of each host, and how the next one is written. */
import { createHash } from 'node:crypto';
import { type Clock, Turns } from '@kronos/clock';
import { type Actor, type InventoryReported, iso, messageId, subject } from '@kronos/contracts';
import { AppendConflict, type EventLog } from '@kronos/eventlog';
import type { HostReport, StoredReport } from '@kronos/inventory';
import { createLimiter } from '@kronos/observation';

/** Hosts whose messages are written at once. */
const HOSTS_AT_ONCE = 8;
/** Each loss of the race for a host's next message means that another scorer wrote one. */
const MOST_CONFLICTS = 100;

/** The next message of a host after the newest one; null: there is nothing to write. */
type NextReport = (before: StoredReport | null) => HostReport | null;

export interface HostReports {
  /** The newest message of each host, as far as this process knows. */
  readonly newest: ReadonlyMap<string, StoredReport>;
  /** A message was read or written. */
  note(host: string, stored: StoredReport): void;
  /**
   * Writes the next message of a host, after those of this process that are under way.
   *
   * @param acts what is reported: the same acts give the same message id
   * @throws what appending throws
   */
  write(host: string, cause: string, acts: readonly string[], next: NextReport): Promise<void>;
  /** The stream was made again. */
  forget(): void;
}

/** The message that states a host's report; `digest`: of the acts that it reports. */
function messageOf(
  host: string,
  report: HostReport,
  {
    by,
    cause,
    digest,
    nowMs,
  }: { readonly by: Actor; readonly cause: string; readonly digest: string; readonly nowMs: number },
): InventoryReported {
  const time = iso(nowMs);
  const id = messageId.inventory(host, report.after, digest);
  return {
    type: 'inventory.reported',
    version: 1,
    id,
    time,
    aggregate: host,
    by,
    correlationId: id,
    causationId: null,
    data: {
      host,
      observedAt: time,
      cause,
      ...report,
      instances: report.instances === null ? null : [...report.instances],
      notices: [...report.notices],
    },
  };
}

export function hostReports(deps: {
  readonly log: Pick<EventLog, 'append' | 'tail'>;
  readonly by: Actor;
  readonly clock: Pick<Clock, 'now'>;
}): HostReports {
  const { log, by, clock } = deps;
  const newest = new Map<string, StoredReport>();

  function note(host: string, stored: StoredReport): void {
    if (stored.sequence > (newest.get(host)?.sequence ?? 0)) newest.set(host, stored);
  }

  async function write(host: string, cause: string, acts: readonly string[], next: NextReport): Promise<void> {
    const digest = createHash('sha256').update(acts.join('\n')).digest('hex').slice(0, 32);
    for (let conflicts = 0; ; conflicts++) {
      const before = newest.get(host) ?? null;
      const report = next(before);
      if (report === null) return;
      const message = messageOf(host, report, { by, cause, digest, nowMs: clock.now() });
      try {
        const { sequence } = await log.append(message, { expectedLastSequence: before?.sequence ?? 0 });
        note(host, { report, sequence });
        return;
      } catch (error) {
        if (!(error instanceof AppendConflict) || conflicts >= MOST_CONFLICTS) throw error;
        await reread(host);
      }
    }
  }

  /** The newest message of a host, which another scorer wrote; an unreadable one is replaced. */
  async function reread(host: string): Promise<void> {
    const wanted = subject('inventory', host);
    for await (const one of log.tail({ families: ['inventory'], aggregates: [host], since: 'last', end: true })) {
      if (one.subject !== wanted) continue;
      const none: HostReport = { instances: null, notices: [], completeFrom: one.sequence + 1, after: 0 };
      const report = one.problem === undefined ? (one.message as InventoryReported).data : none;
      note(host, { report, sequence: one.sequence });
    }
  }

  /** By host: the writes of this process. */
  const writing = new Turns();
  const limit = createLimiter(HOSTS_AT_ONCE);
  return {
    newest,
    note,
    write: (host, cause, acts, next) => limit(() => writing.take(host, () => write(host, cause, acts, next))),
    forget: () => newest.clear(),
  };
}
