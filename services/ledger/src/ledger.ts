import { reportSeen, type Verification, writeCheckpoint } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import type { SinkOptions } from '@kronos/config';
import { awaitTrustedLog, foldVerified, healthCheck, holdThroughReplacement } from '@kronos/connect';
import { type Actor, parseSubject, type StoredEvent, serviceNames, streamNames } from '@kronos/contracts';
import type { EventLog, ReplayedEvent } from '@kronos/eventlog';
import { followCommands } from '@kronos/operator';
import {
  aggregateCooldown,
  anchorOf,
  brokenHosts,
  type LogState,
  lateResizes,
  openCellPlans,
  quarantineTable,
  waitingPlan,
} from '@kronos/projections';
import { alive, heartbeats } from '@kronos/status';
import {
  attributes,
  type HttpServer,
  type Instruments,
  type Logger,
  type RunningService,
  spans,
  withSpan,
} from '@kronos/telemetry';
import type { Tracer } from '@opentelemetry/api';
import { type Acting, addActing } from './acting/acting.ts';
import { alarmReader } from './alarms.ts';
import { addChanges, type Changes } from './api/changes.ts';
import { statesOf } from './api/pages.ts';
import { addRoutes } from './api/routes.ts';
import { type ArchiveOptions, archiveWitness, startArchiver } from './archive.ts';
import { createAside } from './aside/aside.ts';
import { addConsole } from './console.ts';
import { history, RECENT_EVENTS } from './history.ts';
import { type Notifier, startNotifier } from './notify.ts';
import { skewWatch } from './skew.ts';
import { traceArrival } from './spans.ts';

export type LedgerOptions = {
  /** Aggregates of the configuration. */
  readonly scope: readonly string[];
  readonly checkpointIntervalSeconds: number;
  readonly checkpointEvents: number;
  readonly maxClockSkewSeconds: number;
  readonly console: boolean;
  /** Where the log is copied to; null: nowhere. */
  readonly archive: ArchiveOptions | null;
  /** Where notifications are sent. */
  readonly sinks: ReadonlyMap<string, SinkOptions>;
};

export type RunningLedger = RunningService & Pick<Notifier, 'deadSinks'>;

export type LedgerInput = {
  readonly log: EventLog;
  readonly options: LedgerOptions;
  readonly by: Actor;
  readonly logger: Logger;
  readonly metrics: Instruments;
  readonly onScrape: (fn: () => void) => void;
  readonly http: HttpServer;
  readonly tracer: Tracer;
  /** Aborted when the service is told to stop. */
  readonly stopping: AbortSignal;
  readonly clock: Clock;
  /** What is wrong with the own clock; null: nothing. */
  readonly clockProblem: () => string | null;
  /** What people can do who log in to the console; null: nothing. */
  readonly acting: Acting | null;
  /** The log is folded, and the checkpoint that the fold started from is being verified. */
  readonly onVerification?: (verification: Verification) => void;
};

/** How often it is looked whether a checkpoint is due. */
const LOOK_MS = 1000;
/** How often the server is asked how full the log is, and which services send heartbeats. */
const MEASURE_MS = 15_000;
/** Share of the log's bytes from which people are warned: at all of them nothing is planned. */
const ALMOST_FULL = 0.8;

/** Folds the log, keeps checkpoints of it, and shows it to people. */
export async function startLedger(input: LedgerInput): Promise<RunningLedger> {
  const { log, options, by, logger, metrics, http, tracer } = input;
  const clock = (): number => input.clock.now();
  const seen = history();
  const following = followCommands();
  const skew = skewWatch(options.maxClockSkewSeconds);

  const own = options.archive === null ? null : await archiveWitness(options.archive);
  if (own !== null) await reportSeen(log, own, 'archive', by, clock());
  const guard = await awaitTrustedLog({
    log,
    clock: input.clock,
    snapshotsOf: options.scope,
    own: own === null ? [] : [own],
    needsLedger: false,
    logger,
    http,
    stopping: input.stopping,
  });
  let from = 1;
  let watching = false;
  let last: StoredEvent | null = null;
  let changes: Changes | null = null;
  const folded = await foldVerified(log, {
    guard,
    clock: input.clock,
    logger,
    http,
    metrics,
    onSkipped({ sequence, problem }) {
      metrics.checkpointsSkipped.add(1, {});
      logger.warn({ sequence, problem }, 'a checkpoint is skipped');
    },
    onStart(sequence) {
      from = sequence + 1;
      logger.info(
        { sequence },
        sequence === 0 ? 'folding the log from its first event' : 'folding the log from a checkpoint',
      );
    },
    evolve(folder, stored) {
      following.evolve(folder, stored);
      last = stored;
      seen.add(stored);
      changes?.publish(stored);
      // What was there before says nothing about clocks now: a restored log has the stamps of its restore.
      const wrong = watching ? skew.see(stored, clock()) : null;
      if (wrong !== null)
        logger.warn(
          { writer: wrong.writer, seconds: wrong.seconds, sequence: stored.sequence },
          "a writer's clock and the NATS server's differ by more than max_clock_skew",
        );
      return folder;
    },
  });
  const { view, verification, distrusted } = folded;
  input.onVerification?.(verification);
  const state = (): LogState => view.at().state;
  const level = view.at().sequence;
  watching = true;

  /** People also want to see events before the checkpoint. */
  async function lookBack(): Promise<void> {
    const older: StoredEvent[] = [];
    const first = Math.max(1, level - RECENT_EVENTS + 1);
    for await (const stored of log.replay({ from: first, to: from - 1 })) older.push(stored);
    seen.prepend(older);
  }
  lookBack().catch((error: unknown) => logger.debug({ err: error }, 'older events are not in memory'));

  const archiver =
    options.archive === null
      ? null
      : await startArchiver(log, guard.identity, options.archive, input.clock, {
          onSetAside: (dir) =>
            logger.warn(
              { dir },
              'the archive belongs to an abandoned log, as an operator stated: it was set aside, and a new one started',
            ),
          around: (sequence, write) =>
            withSpan(tracer, spans.archive, { attributes: { [attributes.sequence]: sequence } }, write),
          onWritten: (sequence) => metrics.archiveSequence.set(sequence, {}),
          onTrouble: (error) => logger.error({ err: error }, 'the archive cannot be written; it is tried again'),
        });

  // A wrong checkpoint is replaced as soon as the log goes on: another one of the same event would be a duplicate.
  let written = distrusted ? level : from - 1;
  let writtenAtMs = distrusted ? Number.NEGATIVE_INFINITY : clock();
  let writing: Promise<void> | null = null;
  let almostFull = false;

  /** Writes a checkpoint of what is folded now, unless nothing came since the last one. */
  async function checkpointNow(): Promise<void> {
    // A checkpoint that was folded on a wrong one would be wrong too.
    if (!verification.verified) return;
    const now = state();
    if (last === null || now.sequence <= written || now.aggregates.size === 0) return;
    const anchor = anchorOf(last);
    const named = folded.installation();
    await withSpan(tracer, spans.checkpoint, { attributes: { [attributes.sequence]: now.sequence } }, () =>
      writeCheckpoint(log, now, anchor, by, clock(), named),
    );
    await sayFolded();
    written = now.sequence;
    for (const aggregate of now.aggregates.keys()) metrics.checkpointSequence.set(written, { aggregate });
    logger.debug({ sequence: written }, 'checkpoint written');
  }

  /** Tells the other services that this log is the one that the ledger folds and keeps an archive of, and how far. */
  const sayFolded = (): Promise<void> =>
    reportSeen(
      log,
      { installationId: folded.installation(), sequence: view.at().sequence, seenAtMs: last?.storedAt ?? clock() },
      'log',
      by,
      clock(),
    );
  await sayFolded();

  function checkpointSafely(): Promise<void> {
    writing ??= checkpointNow()
      .catch((error: unknown) =>
        logger.warn({ err: error }, 'the checkpoint could not be written; the next one is tried'),
      )
      .finally(() => {
        writing = null;
        writtenAtMs = clock();
      });
    return writing;
  }

  function look(): void {
    const events = view.at().sequence - written;
    const due = clock() - writtenAtMs >= options.checkpointIntervalSeconds * 1000;
    if (events > 0 && (due || events >= options.checkpointEvents)) void checkpointSafely();
  }
  const endLooks = input.clock.every(LOOK_MS, look);

  async function measure(): Promise<void> {
    const usage = await log.usage(streamNames.log);
    metrics.foldLag.set(Math.max(0, usage.lastSequence - view.at().sequence), {});
    metrics.logBytes.set(usage.bytes, {});
    metrics.logMaxBytes.set(usage.maxBytes, {});
    const full = usage.maxBytes > 0 && usage.bytes >= ALMOST_FULL * usage.maxBytes;
    if (full && !almostFull)
      logger.warn(
        { bytes: usage.bytes, maxBytes: usage.maxBytes },
        'the event log is almost full: raise [nats] log_max_bytes and run kronos provision, or nothing is planned soon',
      );
    almostFull = full;
    const found = await heartbeats(log);
    const living = found.known ? alive(found.heartbeats, clock()) : null;
    for (const service of serviceNames)
      metrics.serviceInstances.set(living?.filter((one) => one.service === service).length ?? Number.NaN, { service });
  }
  const measureSafely = () =>
    void measure().catch((error: unknown) => logger.debug({ err: error }, 'the log could not be measured'));
  measureSafely();
  const endMeasures = input.clock.every(MEASURE_MS, measureSafely);

  let stopping = false;
  // The view knows no trace contexts, so the arrivals are read beside it, from here on.
  async function trace(from: number): Promise<void> {
    try {
      for await (const event of log.replay({ from, to: Number.MAX_SAFE_INTEGER })) arrived(event);
    } catch (error) {
      // It ends with the connection.
      if (!stopping) throw error;
    }
  }

  /** Ends as the view does. When the log was replaced nothing of the new one may get into the old one's archive. */
  async function followed(): Promise<void> {
    try {
      for await (const { event } of view.changes()) if (event.type === 'installation.created') await sayFolded();
    } catch (error) {
      await archiver?.stop();
      throw error;
    }
  }

  function arrived(event: ReplayedEvent): void {
    if (event.event.type === 'unreadable') {
      metrics.foldUnreadable.add(1, { family: parseSubject(event.subject)?.family ?? 'controls' });
      logger.error(
        { sequence: event.sequence, subject: event.subject, problem: event.event.problem },
        'an event cannot be read: its aggregate is not planned until a version of Kronos that can is installed',
      );
    }
    traceArrival(tracer, event);
  }

  http.check('nats', () => healthCheck(log.healthy()));
  http.check('log', () => healthCheck(view.healthy()));
  http.check('clock', () => {
    const own = input.clockProblem();
    if (own !== null) return { ok: false, reason: own };
    const wrong = skew.skewed(clock()).map(({ writer, seconds }) => `${writer} (${seconds.toFixed(1)} s)`);
    return wrong.length === 0
      ? { ok: true }
      : { ok: false, reason: `clocks differ from the NATS server's by more than max_clock_skew: ${wrong.join(', ')}` };
  });
  if (archiver !== null)
    http.check('archive', () => (archiver.trouble === null ? { ok: true } : { ok: false, reason: archiver.trouble }));
  const { scope } = options;
  const maxClockSkewMs = options.maxClockSkewSeconds * 1000;
  const status = alarmReader({ log, state, scope, maxClockSkewMs, clock: input.clock });
  const notifier = startNotifier({ log, sinks: options.sinks, status, by, logger, metrics, clock: input.clock });
  const { monotonic, after } = input.clock;
  const aside = createAside();
  const api = addRoutes(http, {
    state,
    history: seen,
    log,
    aside,
    scope,
    version: by.version,
    clock,
    monotonic,
    after,
    status,
  });
  changes = addChanges(http, seen, () => view.at().sequence, input.clock);
  addActing(http, {
    acting: input.acting,
    log,
    view,
    following,
    scope,
    version: by.version,
    maxSkewMs: maxClockSkewMs,
    clock,
    monotonic,
    logger,
    drain: api.drain,
  });
  if (options.console) await addConsole(http);

  input.onScrape(() => {
    const nowMs = clock();
    for (const one of statesOf(options.scope, state())) {
      const { aggregate, configured } = one;
      const engine = configured?.options;
      const proposed = waitingPlan(one, nowMs)?.open ? 1 : 0;
      metrics.plansWaiting.set(proposed + openCellPlans(one, nowMs).length, { aggregate });
      metrics.resizesLate.set(lateResizes(one, nowMs).length, { aggregate });
      metrics.damagedServers.set(one.damaged.size, { aggregate });
      metrics.paused.set((one.paused.here ?? one.paused.everywhere) ? 1 : 0, { aggregate });
      if (engine === undefined) continue;
      const cooldown = aggregateCooldown(one, nowMs, engine);
      metrics.aggregateCooldown.set(cooldown === null ? 0 : (cooldown.untilMs - nowMs) / 1000, { aggregate });
      metrics.quarantined.set(quarantineTable(one, nowMs, engine).length, { aggregate });
      metrics.brokenHosts.set(brokenHosts(one, nowMs, engine).length, { aggregate });
    }
    const dead = new Set(notifier.deadSinks().map(({ sink }) => sink));
    for (const sink of options.sinks.keys()) metrics.sinkDead.set(dead.has(sink) ? 1 : 0, { sink });
    metrics.clockSkew.set(skew.largest(nowMs), {});
    metrics.foldSequence.set(view.at().sequence, {});
  });

  logger.info({ sequence: level }, 'folded');
  return {
    done: holdThroughReplacement(
      Promise.all([trace(level + 1), archiver?.done, followed()]).then(() => undefined),
      { guard, folded, clock: input.clock, stopping: input.stopping },
    ),
    deadSinks: () => notifier.deadSinks(),
    async stop() {
      guard.close();
      verification.close();
      changes?.close();
      await aside.close();
      endLooks();
      endMeasures();
      stopping = true;
      await notifier.stop();
      await writing;
      await archiver?.stop();
      await checkpointSafely();
      await view.close();
      await log.close();
    },
  };
}
