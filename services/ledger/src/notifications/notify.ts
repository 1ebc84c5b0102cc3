import type { Clock } from '@kronos/clock';
import type { SinkOptions } from '@kronos/config';
import { type Actor, iso, streamNames } from '@kronos/contracts';
import { AppendConflict, type EventLog, type SinkDelivery, type TaskOutcome, type TaskWorker } from '@kronos/eventlog';
import {
  current,
  isDead,
  judgeAttempt,
  type Look,
  lookOf,
  noticeOf,
  openSender,
  type Recorded,
  type Sender,
  type Trouble,
  transitions,
  troubled,
  wants,
} from '@kronos/notify';
import type { Status } from '@kronos/status';
import type { Instruments, Logger } from '@kronos/telemetry';

export type NotifierInput = {
  readonly log: Pick<EventLog, 'append' | 'sink' | 'tail'>;
  readonly sinks: ReadonlyMap<string, SinkOptions>;
  /** The current status. */
  readonly status: () => Promise<Status>;
  /** The name of a server of an aggregate; null: it is not known. */
  readonly nameOf: (aggregate: string, serverId: string) => string | null;
  readonly by: Actor;
  readonly logger: Logger;
  readonly metrics: Instruments;
  readonly clock: Clock;
};

/** A sink that takes nothing. */
type DeadSink = { readonly sink: string; readonly since: string; readonly reason: string };

export interface Notifier {
  /** Sinks that have taken nothing for minutes. */
  deadSinks(): DeadSink[];
  /** Hands over what it holds. Before the connection closes. */
  stop(): Promise<void>;
}

/** Interval between two looks at the installation. An alarm is raised, or over, when two looks say so. */
const LOOK_MS = 15_000;
/** Interval between two messages to an Alertmanager; well below the time after which it forgets an alert. */
const ALERTS_MS = 60_000;

/**
 * Sends what happens to people. Events and alarms come from durables, one per sink and stream, which all ledgers share: a sink
 * that fails holds back its own notices only. Every ledger looks for alarms; which of them records a change, the stream of
 * alarms decides.
 */
export function startNotifier(input: NotifierInput): Notifier {
  const { log, sinks, status, nameOf, by, logger, metrics, clock } = input;
  const troubles = new Map<string, Trouble>();
  const stopping = new AbortController();
  const senders = new Map<string, Sender>();
  const workers: TaskWorker[] = [];

  function succeeded(sink: string): void {
    metrics.sinkAttempts.add(1, { sink, outcome: 'delivered' });
    if (troubles.delete(sink)) logger.info({ sink }, 'the sink takes notifications again');
  }

  function failed(sink: string, reason: string, outcome: 'failed' | 'dropped', about: object): void {
    metrics.sinkAttempts.add(1, { sink, outcome });
    const before = troubles.get(sink) ?? null;
    troubles.set(sink, troubled(before, reason, clock.now()));
    if (outcome === 'dropped')
      logger.error({ sink, reason, ...about }, 'the receiver keeps refusing a notification: the ledger drops it');
    else
      logger[before === null ? 'warn' : 'debug'](
        { sink, reason, ...about },
        'a notification was not taken; it is sent again',
      );
  }

  async function deliver(
    [name, sink]: [string, SinkOptions],
    sender: Sender,
    stream: string,
    delivery: SinkDelivery,
  ): Promise<TaskOutcome> {
    const { message, problem, sequence, deliveries, lost } = delivery;
    // An unreadable event has an alarm. A restored event was sent when it happened.
    if (problem !== undefined || delivery.firstStoredAt !== delivery.storedAt) return { kind: 'done' };
    const notice = noticeOf(message, { stream, sequence }, (id) => nameOf(message.aggregate, id) ?? id);
    if (!wants(sink, notice)) return { kind: 'done' };
    const signal = AbortSignal.any([lost, delivery.stopping, stopping.signal]);
    try {
      const attempt = await sender.send(notice, signal);
      const verdict = judgeAttempt(attempt, deliveries);
      if (verdict.kind === 'delivered') succeeded(name);
      else failed(name, verdict.reason, verdict.kind === 'dropped' ? 'dropped' : 'failed', { stream, sequence });
      return verdict.kind === 'later' ? { kind: 'later', delayMs: verdict.delayMs } : { kind: 'done' };
    } catch (error) {
      if (signal.aborted) return { kind: 'handOver' };
      throw error;
    }
  }

  /** The newest message of each alarm. */
  async function recorded(): Promise<Map<string, Recorded>> {
    const found = new Map<string, Recorded>();
    for await (const { message, problem, sequence } of log.tail({ families: ['alarms'], since: 'last', end: true }))
      if (problem === undefined && (message.type === 'alarm.raised' || message.type === 'alarm.resolved'))
        found.set(message.data.key, { message, sequence });
    return found;
  }

  let before: Look = null;
  async function look(): Promise<void> {
    const now = lookOf((await status()).alarms);
    const changes = transitions(await recorded(), { before, now }, { by, nowMs: clock.now() });
    before = now;
    for (const { message, expected } of changes)
      try {
        await log.append(message, { expectedLastSequence: expected });
      } catch (error) {
        // Another ledger has recorded it.
        if (!(error instanceof AppendConflict)) throw error;
      }
    if (changes.length > 0) tellAlertmanagers();
  }

  const managers = [...sinks].filter(([, { format }]) => format === 'alertmanager');
  async function tell(name: string, sink: SinkOptions): Promise<void> {
    const notices = current((await recorded()).values(), clock.now())
      .map(({ message, sequence }) => noticeOf(message, { stream: streamNames.alarms, sequence }))
      .filter((notice) => wants(sink, notice));
    const sender = senders.get(name);
    if (notices.length === 0 || sender === undefined) return;
    const attempt = await sender.sendAlerts(notices, stopping.signal);
    const verdict = judgeAttempt(attempt, 1);
    if (verdict.kind === 'delivered') succeeded(name);
    else failed(name, verdict.reason, 'failed', {});
  }

  const acts = new Map<string, Promise<void>>();
  /** Runs one act of a kind at a time; the next one is due soon. */
  function once(kind: string, act: () => Promise<void>): void {
    if (acts.has(kind) || stopping.signal.aborted) return;
    acts.set(
      kind,
      act()
        .catch((error: unknown) => {
          if (!stopping.signal.aborted)
            logger.warn({ err: error, kind }, 'the work on notifications failed: the ledger retries');
        })
        .finally(() => acts.delete(kind)),
    );
  }
  function tellAlertmanagers(): void {
    for (const [name, sink] of managers) once(`alerts of ${name}`, () => tell(name, sink));
  }

  for (const entry of sinks) {
    const [name, sink] = entry;
    const sender = openSender(name, sink, `kronos/${by.version}`, { clock });
    senders.set(name, sender);
    if (sink.format === 'alertmanager') continue;
    for (const stream of [streamNames.log, streamNames.alarms])
      workers.push(log.sink({ stream, sink: name, handle: (delivery) => deliver(entry, sender, stream, delivery) }));
  }
  const endLooks = sinks.size === 0 ? null : clock.every(LOOK_MS, () => once('alarms', look));
  const endAlerts = managers.length === 0 ? null : clock.every(ALERTS_MS, tellAlertmanagers);

  return {
    deadSinks() {
      const nowMs = clock.now();
      return [...troubles].flatMap(([sink, trouble]): DeadSink[] =>
        isDead(trouble, nowMs)
          ? [{ sink, since: iso(trouble.sinceMs), reason: trouble.reason.slice(0, MOST_REASON) }]
          : [],
      );
    },
    async stop() {
      endLooks?.();
      endAlerts?.();
      stopping.abort();
      await Promise.all(workers.map((worker) => worker.stop()));
      await Promise.all(acts.values());
      await Promise.all([...senders.values()].map((sender) => sender.close()));
    },
  };
}

const MOST_REASON = 500;
