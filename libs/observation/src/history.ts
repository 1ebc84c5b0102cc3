/** The values of VMs at this time on former days: a few points are read in each cycle, and kept while they are of use. */
import { type Clock, limit as timeLimit } from '@kronos/clock';
import {
  byText,
  DAY_MS,
  errorText,
  type Forecast,
  MAX_FORECAST_POINTS,
  MAX_FORECAST_VALUES,
  type Policy,
  some,
  type VmHistory,
  type VmQuery,
  vmQueryOf,
} from '@kronos/contracts';
import { matchVms, type Prometheus, type RangeSeries, type VmNames } from '@kronos/prometheus';
import { createLimiter } from './limit.ts';

/** Points are this far apart, or further where the horizon is long. */
const LEAST_STEP_MS = 300_000;
/** Range queries of one query of a policy in one cycle. */
const QUERIES_PER_CYCLE = 2;

/** One point of the day on each former day. */
type Slot = {
  /** By value of the label: a value for each day, `[ago - 1]`; NaN where there is none, or several. */
  readonly values: ReadonlyMap<string, Float64Array>;
};

export type HistorySettings = {
  readonly prometheus: Prometheus;
  readonly clock: Clock;
  readonly horizonMs: number;
  /** Number of former days. */
  readonly days: number;
  readonly concurrency: number;
  /** Without an answer for this time Prometheus counts as unreachable. */
  readonly deadlineMs: number;
};

/** The values of the past that were read until now. */
export type ReadHistory = {
  readonly stepMs: number;
  readonly points: number;
  readonly days: number;
  readonly queries: readonly (VmQuery & {
    /** Null where a point has not been read yet. */
    readonly slots: readonly (Slot | null)[];
    /** Why the last query failed; null where it did not. */
    readonly failure: string | null;
  })[];
};

const keyOf = ({ query, label, labelType }: VmQuery): string => JSON.stringify([query, label, labelType]);
/** The queries of the policies whose VMs Prometheus knows. */
const queried = (policies: readonly Policy[]): VmQuery[] =>
  policies
    .filter(({ enabled, allocation, mode }) => enabled && allocation === undefined && mode === 'spread')
    .map((policy) => vmQueryOf(policy, 'vm_profile'));

/** Reads the values of VMs on former days for the forecast, a few points in each cycle, and keeps them. */
export class HistoryReader {
  readonly #settings: HistorySettings;
  readonly #stepMs: number;
  readonly #points: number;
  /** By query: the points by their time of today. */
  readonly #kept = new Map<string, Map<number, Slot>>();

  constructor(settings: HistorySettings) {
    this.#settings = settings;
    const { horizonMs } = settings;
    this.#stepMs = Math.max(LEAST_STEP_MS, Math.ceil(horizonMs / (MAX_FORECAST_POINTS - 1) / 60_000) * 60_000);
    this.#points = Math.ceil(horizonMs / this.#stepMs) + 1;
  }

  /**
   * Reads what is missing, at most two range queries per policy: after a start the history is whole after a few cycles, and then a new
   * point is due in each step.
   *
   * @throws the signal's reason when it aborts; nothing else.
   */
  async read(policies: readonly Policy[], nowMs: number, signal: AbortSignal): Promise<ReadHistory> {
    const { prometheus, clock, days, concurrency, deadlineMs } = this.#settings;
    const queries = [...new Map(queried(policies).map((query) => [keyOf(query), query])).values()];
    const firstMs = Math.floor(nowMs / this.#stepMs) * this.#stepMs;
    const times = Array.from({ length: this.#points }, (_, k) => firstMs + k * this.#stepMs);
    const limit = createLimiter(concurrency);
    const late = timeLimit(clock, deadlineMs);
    const either = AbortSignal.any([signal, late.signal]);
    try {
      const read = await Promise.all(
        queries.map(async (one) => {
          const kept = this.#kept.get(keyOf(one)) ?? new Map<number, Slot>();
          this.#kept.set(keyOf(one), kept);
          for (const time of kept.keys()) if (!times.includes(time)) kept.delete(time);
          const missing = times.filter((time) => !kept.has(time)).slice(0, QUERIES_PER_CYCLE);
          const asks = await Promise.allSettled(
            missing.map((time) =>
              limit(async () => {
                const range = { startMs: time - days * DAY_MS, endMs: time - DAY_MS, stepMs: DAY_MS };
                const { series, warnings } = await prometheus.range(one.query, range, { signal: either });
                // A point of a partial answer would be kept for days.
                if (warnings.length > 0) throw new Error(`the answer may be partial: ${some(warnings, 3)}`);
                kept.set(time, slotOf(series, one.label, time, days));
              }),
            ),
          );
          signal.throwIfAborted();
          const failed = asks.find((ask) => ask.status === 'rejected');
          const failure = failed === undefined ? null : errorText(failed.reason);
          return { ...one, slots: times.map((time) => kept.get(time) ?? null), failure };
        }),
      );
      return { stepMs: this.#stepMs, points: this.#points, days, queries: read };
    } finally {
      late.clear();
    }
  }
}

function slotOf(series: readonly RangeSeries[], label: string, timeMs: number, days: number): Slot {
  const values = new Map<string, Float64Array>();
  const seen = new Set<string>();
  for (const { labels, samples } of series) {
    const name = Object.hasOwn(labels, label) ? labels[label] : undefined;
    if (name === undefined || name === '') continue;
    const row = values.get(name) ?? new Float64Array(days).fill(Number.NaN);
    values.set(name, row);
    for (const { timeMs: at, value } of samples) {
      const ago = Math.round((timeMs - at) / DAY_MS);
      if (ago < 1 || ago > days) continue;
      // Two series for one VM: none counts.
      const place = `${ago} ${name}`;
      row[ago - 1] = seen.has(place) || !(value >= 0 && value <= 1) ? Number.NaN : value;
      seen.add(place);
    }
  }
  return { values };
}

/**
 * The history of the servers of one aggregate. A server has a day where it has a value at each point. Days are left out,
 * the oldest first, where there would be too many values.
 *
 * @param names every server of the cloud, for the labels
 */
export function forecastOf(
  history: ReadHistory,
  policies: readonly Policy[],
  servers: readonly { readonly id: string }[],
  names: readonly VmNames[],
): Forecast {
  const wanted = new Set(queried(policies).map(keyOf));
  const ids = new Set(servers.map(({ id }) => id));
  let left = MAX_FORECAST_VALUES;
  const readings = history.queries.flatMap((one): VmHistory[] => {
    if (!wanted.has(keyOf(one))) return [];
    const { query, label, labelType, slots, failure } = one;
    const head = { query, label, labelType };
    const read = slots.filter((slot) => slot !== null);
    if (read.length < slots.length) {
      const why = failure === null ? '' : `: ${failure}`;
      return [
        { ...head, text: `${read.length} of ${slots.length} points of the former days are read${why}`, days: [] },
      ];
    }
    const labels = new Set(read.flatMap(({ values }) => [...values.keys()]));
    const { byLabel } = matchVms(labels, names, labelType);
    const labelOf = new Map<string, string | null>();
    for (const [value, id] of byLabel) if (ids.has(id)) labelOf.set(id, labelOf.has(id) ? null : value);
    const sorted = [...labelOf].sort(([a], [b]) => byText(a, b));
    const days: VmHistory['days'] = [];
    let text = '';
    for (let ago = 1; ago <= history.days; ago++) {
      const found = sorted.flatMap(([id, value]): [string, number[]][] => {
        if (value === null) return [];
        const points = read.map(({ values }) => values.get(value)?.[ago - 1] ?? Number.NaN);
        return points.some(Number.isNaN) ? [] : [[id, points.map((point) => Math.round(point * 1e4) / 1e4)]];
      });
      if (found.length === 0) continue;
      const cost = found.length * slots.length;
      if (cost > left) {
        text = `more than ${MAX_FORECAST_VALUES} values: days before the last ${ago - 1} are left out`;
        break;
      }
      left -= cost;
      days.push({ ago, servers: Object.fromEntries(found) });
    }
    if (days.length === 0 && text === '') text = 'Prometheus has no values of former days';
    return [{ ...head, text, days }];
  });
  return { stepSeconds: history.stepMs / 1000, points: history.points, readings };
}
