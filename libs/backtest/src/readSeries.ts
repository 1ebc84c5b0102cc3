/** Reads the series of the policies by range queries, in pieces that the server accepts. */

import type { Clock } from '@kronos/clock';
import { byText, errorText } from '@kronos/contracts';
import { BadQuery, type Prometheus, type RangeSeries, ServerError, Timeout } from '@kronos/prometheus';
import type { Throttle } from './throttle.ts';

/** Steps of one window: what is kept in one file. */
export const WINDOW_POINTS = 72;
/** A query that times out is not divided below this number of steps: the server is too slow for it. */
const LEAST_AFTER_TIMEOUT = 9;

/** The values of one query in a window. */
export type SeriesWindow = {
  readonly query: string;
  /** Of its first step, ms since the epoch. */
  readonly startMs: number;
  readonly stepMs: number;
  readonly points: number;
  /** Labels, and a value for each step: null where there is none; NaN and the infinities as text. */
  readonly series: readonly (readonly [labels: Readonly<Record<string, string>>, values: readonly Value[]])[];
  /** Steps that could not be read, by their number in the window, both ends included. */
  readonly lost: readonly { readonly from: number; readonly to: number; readonly text: string }[];
  /** Warnings of the server about steps. */
  readonly warned: readonly { readonly from: number; readonly to: number; readonly text: string }[];
};
type Value = number | string | null;

export type ReadWindowInput = {
  readonly prometheus: Pick<Prometheus, 'range'>;
  readonly pace: Throttle;
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'monotonic'>;
};

/** As it came: a rounded value can tip a decision. */
const kept = (value: number): Value => (Number.isFinite(value) ? value : String(value));

/**
 * Reads windows one after the other. It remembers how many steps the server accepted at once.
 *
 * @throws the errors of the Prometheus client that no shorter range cures, and the signal's reason when it aborts
 */
export function windowReader({ prometheus, pace, signal }: ReadWindowInput) {
  let most = WINDOW_POINTS;

  return async (query: string, startMs: number, stepMs: number, points: number): Promise<SeriesWindow> => {
    const series = new Map<string, { labels: Readonly<Record<string, string>>; values: Value[] }>();
    const lost: { from: number; to: number; text: string }[] = [];
    const warned: { from: number; to: number; text: string }[] = [];
    const add = (read: readonly RangeSeries[]): void => {
      for (const { labels, samples } of read) {
        const key = JSON.stringify(Object.entries(labels).sort(([a], [b]) => byText(a, b)));
        const one = series.get(key) ?? { labels, values: new Array<Value>(points).fill(null) };
        series.set(key, one);
        for (const { timeMs, value } of samples) {
          const at = Math.round((timeMs - startMs) / stepMs);
          if (at >= 0 && at < points) one.values[at] = kept(value);
        }
      }
    };
    const read = async (from: number, to: number): Promise<void> => {
      const count = to - from + 1;
      if (count > most) {
        const half = from + Math.ceil(count / 2) - 1;
        await read(from, half);
        await read(half + 1, to);
        return;
      }
      await pace(signal);
      try {
        const range = { startMs: startMs + from * stepMs, endMs: startMs + to * stepMs, stepMs };
        const answer = await prometheus.range(query, range, { signal });
        add(answer.series);
        if (answer.warnings.length > 0) warned.push({ from, to, text: answer.warnings.join('; ') });
      } catch (error) {
        signal.throwIfAborted();
        const least = leastOf(error);
        if (least === null) throw error;
        if (count <= least) {
          lost.push({ from, to, text: errorText(error) });
          return;
        }
        most = Math.ceil(count / 2);
        await read(from, to);
      }
    };
    await read(0, points - 1);
    const sorted = [...series].sort(([a], [b]) => byText(a, b));
    return {
      query,
      startMs,
      stepMs,
      points,
      series: sorted.map(([, { labels, values }]) => [labels, values]),
      lost,
      warned,
    };
  };
}

/** The shortest range that is worth a try after this error, in steps; null: a shorter range does not help. */
function leastOf(error: unknown): number | null {
  if (error instanceof Timeout) return LEAST_AFTER_TIMEOUT;
  // Too many samples, or more than 11,000 points; a query that is wrong is wrong at any length.
  if (error instanceof BadQuery)
    return error.errorType === 'execution' || /maximum resolution|too many|range/i.test(error.reason) ? 1 : null;
  if (error instanceof ServerError) return [422, 429, 500, 502, 503, 504].includes(error.status) ? 1 : null;
  return null;
}

const numberOf = (value: Value): number =>
  typeof value === 'number' ? value : Number(value?.replace('Inf', 'Infinity'));

/** The answer that an instant query would have had at a step. */
export type StepAnswer = {
  readonly samples: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly timeMs: number;
    readonly value: number;
  }[];
  /** Series that had a value at this step or at the one before. */
  readonly recent: readonly RangeSeries[];
  /** Why the step could not be read; null: it was. */
  readonly lost: string | null;
  readonly warnings: readonly string[];
};

/**
 * @param before the window before; null: there is none
 * @param withBefore whether the step before is within the staleness threshold
 */
export function answerAt(
  window: SeriesWindow,
  at: number,
  { before, withBefore }: { readonly before: SeriesWindow | null; readonly withBefore: boolean },
): StepAnswer {
  const timeMs = window.startMs + at * window.stepMs;
  const samples: StepAnswer['samples'][number][] = [];
  const recent: RangeSeries[] = [];
  for (const [labels, values] of window.series) {
    const value = values[at] ?? null;
    const former = at > 0 && withBefore ? (values[at - 1] ?? null) : null;
    if (value !== null) samples.push({ labels, timeMs, value: numberOf(value) });
    if (value !== null || former !== null)
      recent.push({ labels, samples: [{ timeMs, value: numberOf(value ?? former) }] });
  }
  if (at === 0 && withBefore && before !== null)
    for (const former of lastOf(before, timeMs - window.stepMs)) recent.push(former);
  const of = (list: SeriesWindow['lost']): string[] =>
    list.filter(({ from, to }) => from <= at && at <= to).map(({ text }) => text);
  const [lost = null] = of(window.lost);
  return { samples, recent, lost, warnings: of(window.warned) };
}

/** The values of the last step of a window. */
const lastOf = ({ series, points }: SeriesWindow, timeMs: number): RangeSeries[] =>
  [...series].flatMap(([labels, values]) => {
    const value = values[points - 1] ?? null;
    return value === null ? [] : [{ labels, samples: [{ timeMs, value: numberOf(value) }] }];
  });
