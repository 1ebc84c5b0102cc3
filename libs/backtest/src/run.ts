/** The planner over a reconstructed past. */
import type { EngineOptions } from '@kronos/contracts';
import { type History, type WhatIfCycle, whatIf } from '@kronos/replay';
import { BacktestCount, type BacktestFigures } from './figures.ts';
import type { Steps } from './steps.ts';

export type RunInput = {
  /** Of the recording that was made of the steps. */
  readonly history: History;
  readonly steps: Steps;
  readonly defaults: EngineOptions;
  readonly threads?: number;
  readonly signal: AbortSignal;
  readonly onProgress?: (done: number, share: number | null) => void;
  readonly onCycle?: (cycle: WhatIfCycle) => void;
};

/** Each step with the planner's moves of the steps before it applied, counted. */
export async function runBacktest(input: RunInput): Promise<BacktestFigures[]> {
  const { history, steps, defaults, threads, signal, onProgress, onCycle } = input;
  const members = new Map(steps.past.aggregates.map(({ name, hosts }) => [name, new Set(hosts)]));
  const assigned = new Set(steps.past.aggregates.flatMap(({ hosts }) => hosts));
  const isIn = (aggregate: string, host: string): boolean => members.get(aggregate)?.has(host) ?? !assigned.has(host);
  const count = new BacktestCount(steps.parameters.stepMs, steps.past.moves, isIn);
  const running = {
    signal,
    ...(threads === undefined ? {} : { threads }),
    ...(onProgress === undefined ? {} : { onProgress }),
  };
  const { parameters } = steps;
  const range = { sinceMs: parameters.sinceMs, untilMs: parameters.untilMs };
  for await (const cycle of whatIf(history, range, { defaults, options: (own) => own }, running)) {
    count.add(cycle);
    onCycle?.(cycle);
  }
  return count.figures();
}
