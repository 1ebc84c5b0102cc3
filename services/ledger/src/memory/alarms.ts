import type { Clock } from '@kronos/clock';
import type { EventLog } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import { alarmKey, collectFacts, type Facts, type Status, statusOf, unreadableFacts } from '@kronos/status';
import type { EventHistory } from './history.ts';

export type AlarmsInput = {
  readonly log: Pick<EventLog, 'tail' | 'replay' | 'replaySnapshots' | 'usage' | 'healthy'>;
  readonly state: () => LogState;
  readonly history: Pick<EventHistory, 'lastDecision'>;
  readonly scope: readonly string[];
  readonly maxClockSkewMs: number;
  readonly clock: Pick<Clock, 'now'>;
};

/** An answer serves all requests for this time: its cost does not grow with the number of readers. */
const KEPT_MS = 3000;

/** The status, and since when this ledger has seen each alarm, by its key. */
export type WatchedStatus = Status & { readonly firstSeenMs: ReadonlyMap<string, number> };

/**
 * Since when each alarm has been seen. While the log cannot be read, the alarms that it had are not known to be over: they keep their times.
 * Pure.
 */
export function seenSince(
  before: ReadonlyMap<string, number>,
  { alarms, timeMs }: Pick<Status, 'alarms' | 'timeMs'>,
  nats: Facts['nats']['state'],
): ReadonlyMap<string, number> {
  const now = alarms.map(alarmKey).map((key) => [key, before.get(key) ?? timeMs] as const);
  return new Map(nats === 'ok' ? now : [...before, ...now]);
}

/** The alarms of the installation, as `kronos status` judges it. Gives the same answer for {@link KEPT_MS}. */
export function alarmReader({
  log,
  state,
  history,
  scope,
  maxClockSkewMs,
  clock,
}: AlarmsInput): () => Promise<WatchedStatus> {
  let kept: { readonly atMs: number; readonly status: Promise<WatchedStatus> } | null = null;
  let firstSeenMs: ReadonlyMap<string, number> = new Map();

  function watched(found: Facts): WatchedStatus {
    const status = statusOf(found);
    firstSeenMs = seenSince(firstSeenMs, status, found.nats.state);
    return { ...status, firstSeenMs };
  }

  async function facts(): Promise<Facts> {
    const { ok, detail } = log.healthy();
    if (!ok) return unreadFacts(detail);
    try {
      return await collectFacts({
        log,
        state: state(),
        scope,
        maxClockSkewMs,
        clock: () => clock.now(),
        decision(aggregate, sequence) {
          const last = history.lastDecision(aggregate);
          return last?.sequence === sequence ? last.data : null;
        },
      });
    } catch (error) {
      const found = unreadableFacts(error, clock.now());
      if (found === null) throw error;
      return found;
    }
  }

  const unreadFacts = (text: string): Facts => ({
    nowMs: clock.now(),
    maxClockSkewMs,
    nats: { state: 'unreachable', text },
    streams: [],
    services: { known: false, text },
    aggregates: [],
  });

  return () => {
    const nowMs = clock.now();
    if (kept === null || nowMs - kept.atMs >= KEPT_MS || nowMs < kept.atMs) {
      const status = facts().then(watched);
      kept = { atMs: nowMs, status };
      // A failure is not kept.
      status.catch(() => {
        if (kept?.status === status) kept = null;
      });
    }
    return kept.status;
  };
}
