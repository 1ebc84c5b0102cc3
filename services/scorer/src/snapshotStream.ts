/** Follows the snapshots of all replicas, this one's among them. */
import type { Clock } from '@kronos/clock';
import {
  type FailingPart,
  iso,
  partCodes,
  type SnapshotTaken,
  storedLateText,
  subject,
  timeMs,
} from '@kronos/contracts';
import type { Delivered, EventLog } from '@kronos/eventlog';
import type { Check, Logger } from '@kronos/telemetry';
import { REQUEST_KEPT_MS } from './openRequests.ts';
import type { Seen } from './seen.ts';

export interface SnapshotStreamDeps {
  readonly log: Pick<EventLog, 'snapshots' | 'replaySnapshots' | 'lastSequenceOf'>;
  readonly seen: Pick<Seen, 'note'>;
  readonly scope: readonly string[];
  readonly intervalMs: number;
  readonly clock: Pick<Clock, 'now'>;
  readonly maxClockSkewMs: number;
  /** The name of this process in what it writes. */
  readonly instance: string;
  readonly logger: Logger;
}

/** After this many intervals without a snapshot the scorer is not ready. */
const MISSED_INTERVALS = 3;

export class SnapshotStream {
  readonly #deps: SnapshotStreamDeps;
  readonly #startedMs: number;
  /** By aggregate: the server's stamp of the newest snapshot. */
  readonly #newestMs = new Map<string, number>();
  /** By aggregate: the time in the newest snapshot of this process, less the server's stamp of it. */
  readonly #aheadMs = new Map<string, number>();

  constructor(deps: SnapshotStreamDeps) {
    this.#deps = deps;
    this.#startedMs = deps.clock.now();
  }

  /** Follows the stream; `level` is called once it has delivered what was there at the start, `noted` for each snapshot. */
  async follow(level: () => void, noted: () => void): Promise<void> {
    const { log, scope, clock, intervalMs } = this.#deps;
    const note = (one: Delivered<SnapshotTaken>): void => {
      if (this.#note(one)) noted();
    };
    const missing = new Map<string, number>();
    for (const aggregate of scope) {
      const sequence = await log.lastSequenceOf('snapshots', aggregate);
      if (sequence > 0) missing.set(subject('snapshots', aggregate), sequence);
    }
    const since = new Date(clock.now() - Math.max(REQUEST_KEPT_MS, 2 * intervalMs));
    for await (const one of log.replaySnapshots({ aggregates: scope, since })) note(one);
    if (missing.size === 0) level();
    for await (const one of log.snapshots({ aggregates: scope })) {
      note(one);
      if (one.sequence >= (missing.get(one.subject) ?? Number.POSITIVE_INFINITY)) missing.delete(one.subject);
      if (missing.size === 0) level();
    }
  }

  /** Whether the message could be read. */
  #note(delivered: Delivered<SnapshotTaken>): boolean {
    const { seen, instance, logger } = this.#deps;
    if (delivered.problem !== undefined) {
      logger.warn({ sequence: delivered.sequence, problem: delivered.problem }, 'a snapshot message cannot be read');
      return false;
    }
    const { message, sequence, storedAt } = delivered;
    seen.note(message, sequence);
    this.#newestMs.set(message.aggregate, storedAt);
    if (message.by.instance === instance) this.#aheadMs.set(message.aggregate, timeMs(message.time) - storedAt);
    return true;
  }

  /** The aggregates that had no recent snapshot, and those of which this process did not store the last one in time. */
  missing(): FailingPart[] {
    const { scope, clock, intervalMs, maxClockSkewMs } = this.#deps;
    const late = scope.filter((aggregate) => {
      const at = Math.max(this.#startedMs, this.#newestMs.get(aggregate) ?? 0);
      return clock.now() - at > MISSED_INTERVALS * intervalMs;
    });
    const parts = late.map((aggregate) => {
      const at = this.#newestMs.get(aggregate);
      const text = at === undefined ? 'no snapshot' : `no snapshot since ${iso(at)}`;
      return { code: 'snapshot-late', part: aggregate, text };
    });
    const slow = [...this.#aheadMs].flatMap(([part, aheadMs]): FailingPart[] =>
      -aheadMs > maxClockSkewMs ? [{ code: partCodes.storedLate, part, text: storedLateText(-aheadMs) }] : [],
    );
    return [...parts, ...slow];
  }

  /** Whether this process's clock agrees with the server's. A late stamp is no proof: the snapshot may have taken long to store. */
  clockRight(): Check {
    const aheadMs = Math.max(0, ...this.#aheadMs.values());
    if (aheadMs <= this.#deps.maxClockSkewMs) return { ok: true };
    return {
      ok: false,
      reason: `the last snapshot's time is ${(aheadMs / 1000).toFixed(1)} s ahead of the NATS server's timestamp, more than max_clock_skew: set the clocks right`,
    };
  }
}
