import { serviceNames, streamNames } from '@kronos/contracts';
import type { LogView } from '@kronos/eventlog';
import {
  type AggregateState,
  brokenHosts,
  cooldownOf,
  courseLeft,
  type LogState,
  lateResizes,
  openCellPlans,
  pauseInForce,
  quarantineTable,
  waitingPlan,
} from '@kronos/projections';
import { LivingInstances } from '@kronos/status';
import { statesOf } from './api/stateJson.ts';
import type { LedgerInput } from './memory/input.ts';
import type { SkewWatch } from './memory/skew.ts';
import type { Notifier } from './notifications/notify.ts';

/** Interval between two reads of the log's size and of the services' heartbeats. */
const MEASURE_MS = 15_000;
/** Share of the log's bytes from which people are warned: at all of them nothing is planned. */
const ALMOST_FULL = 0.8;

/** Measures the log and the services on the server, now and every {@link MEASURE_MS}. Returns what ends it. */
export function startMeasures(
  { log, logger, metrics, clock }: Pick<LedgerInput, 'log' | 'logger' | 'metrics' | 'clock'>,
  view: LogView<LogState>,
): () => void {
  const instances = new LivingInstances(log);
  let almostFull = false;

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
    const living = await instances.at(clock.now());
    for (const service of serviceNames)
      metrics.serviceInstances.set(living?.filter((one) => one.service === service).length ?? Number.NaN, { service });
  }
  const measureSafely = () =>
    void measure().catch((error: unknown) => logger.debug({ err: error }, 'the log could not be measured'));
  measureSafely();
  return clock.every(MEASURE_MS, measureSafely);
}

function measureCourse(metrics: LedgerInput['metrics'], state: AggregateState, nowMs: number): void {
  const { aggregate } = state;
  const { moves, cycles, seconds } = courseLeft(state, nowMs) ?? { moves: 0, cycles: 0, seconds: 0 };
  metrics.courseMoves.set(moves, { aggregate });
  metrics.courseCycles.set(cycles, { aggregate });
  metrics.courseDuration.set(seconds, { aggregate });
}

/** Sets the metrics that follow from the folded state, for a scrape. */
export function scrape(
  { options, metrics, clock, ownClock }: Pick<LedgerInput, 'options' | 'metrics' | 'clock' | 'ownClock'>,
  { view, skew, notifier }: { readonly view: LogView<LogState>; readonly skew: SkewWatch; readonly notifier: Notifier },
): void {
  const nowMs = clock.now();
  for (const one of statesOf(options.scope, view.at().state)) {
    const { aggregate, configured } = one;
    const engine = configured?.options;
    const proposed = waitingPlan(one, nowMs)?.open ? 1 : 0;
    metrics.plansWaiting.set(proposed + openCellPlans(one, nowMs).length, { aggregate });
    metrics.resizesLate.set(lateResizes(one, nowMs).length, { aggregate });
    metrics.damagedServers.set(one.damaged.size, { aggregate });
    measureCourse(metrics, one, nowMs);
    metrics.paused.set(pauseInForce(one) === null ? 0 : 1, { aggregate });
    if (engine === undefined) continue;
    const cooldown = cooldownOf(one, nowMs, engine);
    metrics.aggregateCooldown.set(cooldown === null ? 0 : (cooldown.untilMs - nowMs) / 1000, { aggregate });
    metrics.quarantined.set(quarantineTable(one, nowMs, engine).length, { aggregate });
    metrics.brokenHosts.set(brokenHosts(one, nowMs, engine).length, { aggregate });
  }
  const dead = new Set(notifier.deadSinks().map(({ sink }) => sink));
  for (const sink of options.sinks.keys()) metrics.sinkDead.set(dead.has(sink) ? 1 : 0, { sink });
  metrics.clockSkew.set(Math.max(skew.largest(nowMs), ownClock.skewSeconds()), {});
  metrics.foldSequence.set(view.at().sequence, {});
}
