/** The planner over a reconstructed past. */
import type { EngineOptions } from '@kronos/contracts';
import { type History, type WhatIfCycle, whatIf } from '@kronos/replay';
import { BacktestCount, type BacktestFigures } from './figures.ts';
import { openPlanned } from './planned.ts';
import type { Steps } from './steps.ts';

export type BacktestInput = {
  readonly directory: string;
  /** Of the recording that was made of the steps. */
  readonly history: History;
  readonly steps: Steps;
  readonly defaults: EngineOptions;
  readonly threads?: number;
  readonly signal: AbortSignal;
  readonly onProgress?: (done: number, share: number | null) => void;
  /** How many steps an earlier run has decided. */
  readonly onKnown?: (count: number) => void;
  readonly onCycle?: (cycle: WhatIfCycle) => void;
};

/**
 * Each step with the planner's moves of the steps before it applied, counted. Decisions are kept as they are made until
 * all are, and not made again by a later run.
 */
export async function runBacktest(input: BacktestInput): Promise<BacktestFigures[]> {
  const { directory, history, steps, defaults, threads, signal, onProgress, onCycle } = input;
  const members = new Map(steps.past.aggregates.map(({ name, hosts }) => [name, new Set(hosts)]));
  const assigned = new Set(steps.past.aggregates.flatMap(({ hosts }) => hosts));
  const isIn = (aggregate: string, host: string): boolean => members.get(aggregate)?.has(host) ?? !assigned.has(host);
  const count = new BacktestCount(steps.parameters.stepMs, steps.past.moves, isIn);
  const planned = openPlanned(directory, steps.parameters, defaults);
  input.onKnown?.(planned.count);
  const running = {
    signal,
    known: planned.decision,
    ...(threads === undefined ? {} : { threads }),
    ...(onProgress === undefined ? {} : { onProgress }),
  };
  const { parameters } = steps;
  const range = { sinceMs: parameters.sinceMs, untilMs: parameters.untilMs };
  for await (const cycle of whatIf(history, range, { defaults, options: (own) => own }, running)) {
    planned.add(cycle.snapshotId, cycle.simulated.decision);
    count.add(cycle);
    onCycle?.(cycle);
  }
  if (!signal.aborted) planned.forget();
  return count.figures();
}
