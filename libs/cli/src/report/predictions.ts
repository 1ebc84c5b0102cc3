/** How well the loads of hosts were predicted in a range, from the event log alone. Pure. */
import { type LogEvent, timeMs } from '@kronos/contracts';
import { aggregateState, comparisons, createFolder, type PredictionsOff, predictionsOff } from '@kronos/projections';

/** Differences between the measured and the predicted value of a host. */
export type ErrorFigures = {
  readonly comparisons: number;
  readonly median: number;
  /** Nine of ten are no larger. */
  readonly ninth: number;
  readonly highest: number;
};

export type PredictionFigures = {
  /** One minute and ten minutes after the moves; null: nothing was compared. */
  readonly soon: ErrorFigures | null;
  readonly later: ErrorFigures | null;
  /** The policies whose predictions are off at the end of the range. */
  readonly off: readonly PredictionsOff[];
};

/** Takes the events of a range one by one, in the order of the log. */
export class PredictionCount {
  readonly #folder = createFolder();
  readonly #errors = new Map<string, { readonly soon: number[]; readonly later: number[] }>();

  add(event: LogEvent, storedAtMs: number): void {
    if (event.type === 'cycle.decided' && event.data.loads !== undefined) {
      const { aggregate, data } = event;
      const errors = this.#errors.get(aggregate) ?? { soon: [], later: [] };
      this.#errors.set(aggregate, errors);
      const state = aggregateState(this.#folder.snapshot(), aggregate);
      for (const { after, measured, predicted } of comparisons(state, data, timeMs(data.snapshotTime)))
        errors[after].push(Math.abs(measured - predicted));
    }
    this.#folder.apply({ sequence: this.#folder.sequence + 1, storedAt: storedAtMs, event });
  }

  figures(aggregate: string): PredictionFigures {
    const { soon, later } = this.#errors.get(aggregate) ?? { soon: [], later: [] };
    return {
      soon: figuresOf(soon),
      later: figuresOf(later),
      off: predictionsOff(aggregateState(this.#folder.snapshot(), aggregate)),
    };
  }
}

function figuresOf(errors: readonly number[]): ErrorFigures | null {
  const sorted = errors.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
  return sorted.length === 0 ? null : { comparisons: sorted.length, median: at(0.5), ninth: at(0.9), highest: at(1) };
}
