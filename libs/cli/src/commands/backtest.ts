import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  type BacktestFigures,
  isFinished,
  openSteps,
  type Parameters,
  readPast,
  runBacktest,
  type Steps,
  writeRecording,
} from '@kronos/backtest';
import { systemClock } from '@kronos/clock';
import { aggregateConfig, engineOptions, type Loaded, loadConfig, scopeOf } from '@kronos/config';
import { openCloud, openPrometheus } from '@kronos/connect';
import { count, defaultEngineOptions } from '@kronos/contracts';
import { kronosVersion } from '@kronos/telemetry/version';
import { backtestHeads, backtestLines, backtestRows, NOTES } from '../backtest/lines.ts';
import { BacktestCharts, backtestPage } from '../backtest/page.ts';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configFile } from '../open.ts';
import { answer, isStructured } from '../output.ts';
import { progressBar } from '../progress.ts';
import { openRecording } from '../recordings.ts';
import { figureText, withNotes } from '../report/render.ts';
import { filterAggregates } from '../scope.ts';
import { INTERRUPTED, type Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';
import { absolute, parseDuration, parseTime } from '../times.ts';

export type BacktestOptions = ConfigOption &
  OutputOption &
  AggregateOption & {
    readonly since: string;
    readonly until?: string;
    readonly step: string;
    readonly to: string;
    readonly html?: string;
    readonly rate: number;
    readonly decisions?: boolean;
    readonly threads?: number;
  };

/** kronos backtest: what Kronos would have done, from the history that Nova and Prometheus keep. */
export async function backtest(shell: Shell, options: BacktestOptions): Promise<void> {
  const directory = resolve(options.to);
  const asked = stepsOf(shell, options);
  const loaded = loadConfig({ file: configFile(shell, options), env: shell.env, role: 'check' });
  const given = parametersOf(options, asked, loaded);
  const stop = shell.interrupted();
  const say = (text: string): void => {
    if (!isStructured(options)) shell.terminal.err(`${text}\n`);
  };
  await read({ shell, options, loaded, given, directory, stop, say });
  const steps = await openSteps(directory);
  if (!isFinished(directory)) {
    const progress = progressBar(shell.terminal, 'deciding each step as it was', shell.now);
    await writeRecording({
      directory,
      steps,
      decisions: options.decisions === true,
      madeBy: kronosVersion,
      nowMs: shell.now(),
      signal: stop,
      onProgress: progress.update,
    }).finally(progress.end);
  }
  say(`The recording is in ${directory}: kronos replay ${options.to} --what-if, --set, --policies work on it.`);
  const { figures, charts } = await plan(shell, options, { directory, steps, stop, say });
  if (options.html !== undefined) writeFileSync(options.html, backtestPage(figures, charts, shell.now()));
  await answer(shell, options, { recording: directory, aggregates: figures, notes: NOTES }, (terminal) => {
    const written = options.html === undefined ? '' : `\nWrote the page to ${options.html}\n`;
    return `${render(terminal, figures, shell.now())}${written}`;
  });
  if (stop.aborted) process.exitCode = INTERRUPTED;
}

type AskedSteps = Pick<Parameters, 'sinceMs' | 'untilMs' | 'stepMs'>;

/** @throws UsageError */
function stepsOf(shell: Shell, options: BacktestOptions): AskedSteps {
  const nowMs = shell.now();
  const stepMs = stepOf(options.step);
  const align = (ms: number): number => Math.floor(ms / stepMs) * stepMs;
  const untilMs = align(options.until === undefined ? nowMs : parseTime('--until', options.until, nowMs));
  const sinceMs = align(parseTime('--since', options.since, nowMs));
  if (sinceMs >= untilMs) throw new UsageError('--since is not before --until');
  return { sinceMs, untilMs, stepMs };
}

function parametersOf(options: BacktestOptions, asked: AskedSteps, { config, policiesOf }: Loaded): Parameters {
  const scope = filterAggregates(scopeOf(config), options.aggregate);
  return {
    form: 1,
    asked: `${options.since} ${options.until ?? 'now'}`,
    ...asked,
    stalenessMs: config.prometheus.stalenessThreshold * 1000,
    observe: {
      hypervisorTypes: config.nova.hypervisorTypes,
      optOut: config.engine.optOut,
      cells: config.nova.cells,
    },
    aggregates: Object.fromEntries(
      scope.map((name) => [
        name,
        {
          policies: policiesOf(name),
          balance: aggregateConfig(config, name).engine.balance,
          options: engineOptions(config, name),
        },
      ]),
    ),
    sources: [
      'Nova: servers, os-migrations, instance actions',
      ...(config.prometheus.url === null ? [] : ['Prometheus: query_range']),
    ],
  };
}

const LEAST_STEP_MS = 10_000;

/** @throws UsageError */
function stepOf(text: string): number {
  const ms = parseDuration('--step', text);
  if (ms < LEAST_STEP_MS) throw new UsageError(`--step ${text} is no step of at least 10s`, 'For example: --step 5m');
  return ms;
}

type Reading = {
  readonly shell: Shell;
  readonly options: BacktestOptions;
  readonly loaded: Loaded;
  readonly given: Parameters;
  readonly directory: string;
  readonly stop: AbortSignal;
  readonly say: (text: string) => void;
};

async function read({ shell, options, loaded: { config }, given, directory, stop, say }: Reading): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const { nova, placement, session } = openCloud(config, shell.env);
  opened.defer(() => session.close());
  const prometheus = openPrometheus(config);
  if (prometheus !== null) opened.defer(() => prometheus.close());
  const bars = {
    nova: progressBar(shell.terminal, 'reading Nova', shell.now),
    prometheus: progressBar(shell.terminal, 'reading Prometheus', shell.now),
  };
  say(
    `Reading ${options.since} of history at most ${options.rate} times a second. An interrupted run goes on where it stopped.`,
  );
  await readPast({
    directory,
    parameters: given,
    nova,
    placement,
    prometheus,
    clock: systemClock,
    perSecond: options.rate,
    signal: stop,
    onProgress: (what, done, total) => {
      if (what === 'prometheus') bars.nova.end();
      bars[what].update(done, total);
    },
  }).finally(() => {
    bars.nova.end();
    bars.prometheus.end();
  });
}

async function plan(
  shell: Shell,
  options: BacktestOptions,
  { directory, steps, stop, say }: Pick<Reading, 'directory' | 'stop' | 'say'> & { readonly steps: Steps },
): Promise<{ readonly figures: BacktestFigures[]; readonly charts: BacktestCharts }> {
  const { history, about } = await openRecording(shell, directory);
  const progress = progressBar(shell.terminal, 'planning', shell.now);
  const charts = new BacktestCharts(steps.parameters);
  const [defaults = defaultEngineOptions] = Object.values(about.options);
  const figures = await runBacktest({
    directory,
    history,
    steps,
    defaults,
    ...(options.threads === undefined ? {} : { threads: options.threads }),
    signal: stop,
    onKnown(known) {
      if (known > 0) say(`${count(known, 'step')} of an earlier run ${known === 1 ? 'is' : 'are'} not decided again.`);
    },
    onProgress: progress.share,
    onCycle: (cycle) => charts.add(cycle),
  }).finally(progress.end);
  return { figures, charts };
}

function render(terminal: Terminal, figures: readonly BacktestFigures[], nowMs: number): string {
  const parts = figures.map((of) =>
    figureText(terminal, {
      head: `${paint(terminal, 'bold', of.aggregate)} ${absolute(of.sinceMs, nowMs)} to ${absolute(of.untilMs, nowMs)}`,
      lines: backtestLines(of),
      heads: backtestHeads,
      rows: backtestRows(of),
    }),
  );
  return withNotes(terminal, parts, NOTES);
}
