import type { Clock } from '@kronos/clock';
import type { SinkOptions } from '@kronos/config';
import { type Actor, iso, streamNames } from '@kronos/contracts';
import { AppendConflict, type EventLog, type SinkDelivery, type TaskOutcome } from '@kronos/eventlog';
import {
  type AlarmsSeen,
  current,
  type DeliveryTrouble,
  isDead,
  judgeAttempt,
  lookOf,
  noticeOf,
  openSender,
  type RecordedAlarm,
  type Sender,
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

const MOST_REASON = 500;

/** The sinks that do not take what is sent to them. */
class SinkTroubles {
  readonly #troubles = new Map<string, DeliveryTrouble>();
  readonly #deps: Pick<NotifierInput, 'logger' | 'metrics' | 'clock'>;

  constructor(deps: Pick<NotifierInput, 'logger' | 'metrics' | 'clock'>) {
    this.#deps = deps;
  }

  succeeded(sink: string): void {
    const { logger, metrics } = this.#deps;
    metrics.sinkAttempts.add(1, { sink, outcome: 'delivered' });
    if (this.#troubles.delete(sink)) logger.info({ sink }, 'the receiver accepts notifications again');
  }

  failed(sink: string, reason: string, outcome: 'failed' | 'dropped', about: object): void {
    const { logger, metrics, clock } = this.#deps;
    metrics.sinkAttempts.add(1, { sink, outcome });
    const before = this.#troubles.get(sink) ?? null;
    this.#troubles.set(sink, troubled(before, reason, clock.now()));
    if (outcome === 'dropped')
      logger.error({ sink, reason, ...about }, 'the receiver keeps refusing a notification: the ledger drops it');
    else
      logger[before === null ? 'warn' : 'debug'](
        { sink, reason, ...about },
        'the receiver did not accept a notification; the ledger sends it again',
      );
  }

  dead(): DeadSink[] {
    const nowMs = this.#deps.clock.now();
    return [...this.#troubles].flatMap(([sink, trouble]): DeadSink[] =>
      isDead(trouble, nowMs)
        ? [{ sink, since: iso(trouble.sinceMs), reason: trouble.reason.slice(0, MOST_REASON) }]
        : [],
    );
  }
}

/** The alarms as their stream has them, which all ledgers write. */
class AlarmRecord {
  readonly #input: Pick<NotifierInput, 'log' | 'status' | 'by' | 'clock'>;
  /** The alarms that the look before this one saw. */
  #before: AlarmsSeen = null;

  constructor(input: Pick<NotifierInput, 'log' | 'status' | 'by' | 'clock'>) {
    this.#input = input;
  }

  /** The newest message of each alarm. */
  async read(): Promise<Map<string, RecordedAlarm>> {
    const { log } = this.#input;
    const found = new Map<string, RecordedAlarm>();
    for await (const { message, problem, sequence } of log.tail({ families: ['alarms'], since: 'last', end: true }))
      if (problem === undefined && (message.type === 'alarm.raised' || message.type === 'alarm.resolved'))
        found.set(message.data.key, { message, sequence });
    return found;
  }

  /** Looks at the installation, and records the alarms that were raised or are over. Whether there were any. */
  async look(): Promise<boolean> {
    const { log, status, by, clock } = this.#input;
    const now = lookOf((await status()).alarms);
    const changes = transitions(await this.read(), { before: this.#before, now }, { by, nowMs: clock.now() });
    this.#before = now;
    for (const { message, expected } of changes)
      try {
        await log.append(message, { expectedLastSequence: expected });
      } catch (error) {
        // Another ledger has recorded it.
        if (!(error instanceof AppendConflict)) throw error;
      }
    return changes.length > 0;
  }
}

/** Runs one act of a kind at a time; a further one is left out, since the next is due soon. */
class Acts {
  readonly #running = new Map<string, Promise<void>>();
  readonly #logger: Logger;
  readonly #stopping: AbortSignal;

  constructor(logger: Logger, stopping: AbortSignal) {
    this.#logger = logger;
    this.#stopping = stopping;
  }

  once(kind: string, act: () => Promise<void>): void {
    if (this.#running.has(kind) || this.#stopping.aborted) return;
    this.#running.set(
      kind,
      act()
        .catch((error: unknown) => {
          if (!this.#stopping.aborted)
            this.#logger.warn({ err: error, kind }, 'the work on notifications failed: the ledger retries');
        })
        .finally(() => this.#running.delete(kind)),
    );
  }

  async ended(): Promise<void> {
    await Promise.all(this.#running.values());
  }
}

/**
 * Sends what happens to people. Events and alarms come from durables, one per sink and stream, which all ledgers share: a sink
 * that fails holds back its own notices only. Every ledger looks for alarms; which of them records a change, the stream of
 * alarms decides.
 */
export function startNotifier(input: NotifierInput): Notifier {
  const { log, sinks, nameOf, by, logger, clock } = input;
  const stopping = new AbortController();
  const troubles = new SinkTroubles(input);
  const alarms = new AlarmRecord(input);
  const acts = new Acts(logger, stopping.signal);
  const agent = `kronos/${by.version}`;
  const opened = [...sinks].map(([name, sink]) => ({ name, sink, sender: openSender(name, sink, agent, { clock }) }));

  async function deliver(
    { name, sink, sender }: OpenSink,
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
      if (verdict.kind === 'delivered') troubles.succeeded(name);
      else
        troubles.failed(name, verdict.reason, verdict.kind === 'dropped' ? 'dropped' : 'failed', { stream, sequence });
      return verdict.kind === 'later' ? { kind: 'later', delayMs: verdict.delayMs } : { kind: 'done' };
    } catch (error) {
      if (signal.aborted) return { kind: 'handOver' };
      throw error;
    }
  }

  /** Sends all current alarms to an Alertmanager. */
  async function tell({ name, sink, sender }: OpenSink): Promise<void> {
    const notices = current((await alarms.read()).values(), clock.now())
      .map(({ message, sequence }) => noticeOf(message, { stream: streamNames.alarms, sequence }))
      .filter((notice) => wants(sink, notice));
    if (notices.length === 0) return;
    const attempt = await sender.sendAlerts(notices, stopping.signal);
    const verdict = judgeAttempt(attempt, 1);
    if (verdict.kind === 'delivered') troubles.succeeded(name);
    else troubles.failed(name, verdict.reason, 'failed', {});
  }

  const isManager = ({ sink }: OpenSink): boolean => sink.format === 'alertmanager';
  const managers = opened.filter(isManager);
  const tellManagers = (): void => {
    for (const manager of managers) acts.once(`alerts of ${manager.name}`, () => tell(manager));
  };
  const look = async (): Promise<void> => {
    if (await alarms.look()) tellManagers();
  };

  const workers = opened
    .filter((one) => !isManager(one))
    .flatMap((one) =>
      [streamNames.log, streamNames.alarms].map((stream) =>
        log.sink({ stream, sink: one.name, handle: (delivery) => deliver(one, stream, delivery) }),
      ),
    );
  const endLooks = sinks.size === 0 ? null : clock.every(LOOK_MS, () => acts.once('alarms', look));
  const endAlerts = managers.length === 0 ? null : clock.every(ALERTS_MS, tellManagers);

  return {
    deadSinks: () => troubles.dead(),
    async stop() {
      endLooks?.();
      endAlerts?.();
      stopping.abort();
      await Promise.all(workers.map((worker) => worker.stop()));
      await acts.ended();
      await Promise.all(opened.map(({ sender }) => sender.close()));
    },
  };
}

/** A sink with what sends to it. */
interface OpenSink {
  readonly name: string;
  readonly sink: SinkOptions;
  readonly sender: Sender;
}
