/** Reads the past into a directory; what an interrupted run has read is not read again. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '@kronos/clock';
import { iso } from '@kronos/contracts';
import type { Placement } from '@kronos/openstack';
import type { Prometheus } from '@kronos/prometheus';
import { checkEmpty } from '@kronos/replay';
import { BacktestDirectory, NothingToTest } from './errors.ts';
import { type ReadNovaInput, readNova } from './readNova.ts';
import { windowReader } from './readSeries.ts';
import { type Parameters, readParameters, sourcesIn, windowsOf, writeParameters } from './sources.ts';
import { allQueries } from './steps.ts';
import { throttleOf } from './throttle.ts';

export type ReadInput = {
  readonly directory: string;
  readonly parameters: Parameters;
  readonly nova: ReadNovaInput['nova'];
  readonly placement: Placement;
  /** Null: no policy asks Prometheus. */
  readonly prometheus: Pick<Prometheus, 'range'> | null;
  readonly clock: Clock;
  /** Requests per second, to Nova and to Prometheus alike. */
  readonly perSecond: number;
  readonly signal: AbortSignal;
  readonly onProgress: (what: 'nova' | 'prometheus', done: number, total: number) => void;
};

/** Beside a recording that was made to its end. */
const FINISHED = 'recording.json';

/** Whether the directory holds a recording that was made to its end. */
export const isFinished = (directory: string): boolean => existsSync(join(directory, FINISHED));

/** The parameters of the run in the directory where it is the same one, or the given ones. @throws BacktestDirectory, RecordingExists */
async function begin(directory: string, given: Parameters): Promise<Parameters> {
  const before = await readParameters(directory);
  if (before === null) {
    await checkEmpty(directory);
    await writeParameters(directory, given);
    return given;
  }
  const same = (one: Parameters): string => JSON.stringify({ ...one, sinceMs: 0, untilMs: 0 });
  if (same(before) !== same(given))
    throw new BacktestDirectory(
      directory,
      'holds a backtest with another range, step, scope, policies or options',
      'Give another directory with --to, or delete this one.',
    );
  return before;
}

/**
 * Reads what is missing, and gives the parameters of the run in the directory.
 *
 * @throws BacktestDirectory, RecordingExists, NothingToTest, the errors of both clients, and the signal's reason when it aborts
 */
export async function readPast(input: ReadInput): Promise<Parameters> {
  const { directory, clock, signal, onProgress } = input;
  const parameters = await begin(directory, input.parameters);
  if (isFinished(directory)) return parameters;
  const sources = sourcesIn(directory);
  const pace = throttleOf(clock, input.perSecond);
  if ((await sources.readNova()) === null) {
    const history = await readNova({
      nova: input.nova,
      placement: input.placement,
      clock,
      sinceMs: parameters.sinceMs,
      scope: Object.keys(parameters.aggregates),
      options: parameters.observe,
      pace,
      signal,
      onProgress: (done, total) => onProgress('nova', done, total),
    });
    await sources.writeNova(history);
  }
  const queries = allQueries(parameters);
  const windows = windowsOf(parameters);
  if (windows.length === 0)
    throw new NothingToTest(
      `there is no step from ${iso(parameters.sinceMs)} to ${iso(parameters.untilMs)}`,
      'Give a longer range or a shorter step.',
    );
  if (queries.length > 0 && input.prometheus === null)
    throw new NothingToTest(
      'the policies ask Prometheus, and no [prometheus] url is set',
      'Set it, or use allocation policies.',
    );
  if (input.prometheus === null) return parameters;
  const read = windowReader({ prometheus: input.prometheus, pace, signal, clock });
  let done = 0;
  for (const [w, { startMs, points }] of windows.entries())
    for (const [q, query] of queries.entries()) {
      if (!sources.hasWindow(q, w))
        await sources.writeWindow(q, w, await read(query, startMs, parameters.stepMs, points));
      done += 1;
      onProgress('prometheus', done, windows.length * queries.length);
    }
  return parameters;
}
