/** The reads that the snapshots of one cycle share, and whether they succeed. */
import type { Policy } from '@kronos/contracts';
import { type KnownServer, type Observation, readCloud } from '@kronos/observation';
import type { Check } from '@kronos/telemetry';
import type { CycleReadings } from './compose.ts';
import type { ScorerDeps } from './deps.ts';
import { measureReads } from './meters.ts';
import {
  type CloudReads,
  type HangingCall,
  hangingAfterMs,
  hangingCalls,
  openstackCheck,
  prometheusCheck,
} from './reads.ts';

export class SharedReads {
  readonly #deps: ScorerDeps;
  /** Of all aggregates: what Prometheus is asked. */
  readonly #policies: readonly Policy[];
  /** Those whose history is read. */
  readonly #forecasting: readonly Policy[];
  readonly #hangingAfterMs: number;
  #last: Observation | null = null;

  constructor(deps: ScorerDeps) {
    const { settings } = deps;
    this.#deps = deps;
    this.#policies = [...new Set(settings.scope.flatMap(settings.policiesOf))];
    this.#forecasting = [...new Set(settings.scope.filter(settings.forecasts).flatMap(settings.policiesOf))];
    this.#hangingAfterMs = hangingAfterMs(settings.intervalMs);
  }

  /**
   * Reads what snapshots need beside their capacities.
   *
   * @param known the servers that must be found, or found deleted
   * @throws the signal's reason
   */
  async read(known: readonly KnownServer[], signal: AbortSignal): Promise<CycleReadings> {
    const deps = this.#deps;
    const { settings, clock, metrics, logger } = deps;
    const [observation, history] = await Promise.all([
      readCloud({
        nova: deps.nova,
        ...(deps.servers === undefined ? {} : { servers: deps.servers }),
        prometheus: deps.prometheus,
        policies: this.#policies,
        stalenessMs: settings.stalenessMs,
        queryDeadlineMs: settings.queryDeadlineMs,
        concurrency: settings.concurrency,
        known,
        clock,
        signal,
      }),
      deps.history?.read(this.#forecasting, clock.now(), signal) ?? null,
    ]);
    // After the unfinished migrations: one that ends meanwhile is in one of the two lists at least.
    const ended = (await deps.ended?.read(clock.now(), signal)) ?? null;
    this.#last = observation;
    measureReads(metrics, observation.durations);
    if (ended?.ok === false)
      logger.warn({ error: ended.code }, `Nova's completed migrations could not be read: ${ended.text}`);
    return { ...observation, history, ended };
  }

  /** How long the last reads took. */
  durations(): Observation['durations'] {
    return this.#last?.durations ?? [];
  }

  /** The check of the last reads of OpenStack; ok before the first. */
  openstack(capacities: CloudReads['capacities']): Check {
    const lists = this.#last?.lists ?? null;
    return openstackCheck({ lists, capacities }, this.hanging(), this.#deps.clock.now());
  }

  /** The check of the last queries; ok before the first. */
  prometheus(): Check {
    return prometheusCheck(this.#last?.asked ?? [], this.hanging(), this.#deps.clock.now());
  }

  /** The calls that have not been answered for long: of each API the oldest. */
  hanging(): HangingCall[] {
    const { calls, clock, settings } = this.#deps;
    const limit = { monotonicMs: clock.monotonic(), afterMs: this.#hangingAfterMs };
    return hangingCalls(calls?.() ?? [], limit, settings.observe.cells);
  }
}
