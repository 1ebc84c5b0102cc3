import { writeFileSync } from 'node:fs';
import { ConfigError, parsePolicies } from '@kronos/config';
import { count, defaultEngineOptions, type EngineOptions, type Policy, type StoredEvent } from '@kronos/contracts';
import type { Cooldowns } from '@kronos/projections';
import {
  allBreaks,
  type Change,
  CycleChart,
  extentOf,
  type History,
  NothingRecorded,
  type Range,
  type VerifiedCycle,
  VerifyCount,
  type VerifyTotals,
  verify,
  WhatIfCount,
  type WhatIfCycle,
  type WhatIfTotals,
  whatIf,
  whatIfDrawn,
  whatIfLabels,
} from '@kronos/replay';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { figure } from '../numbers.ts';
import { withSession } from '../open.ts';
import { answerStream, textShell } from '../output.ts';
import { progressBar } from '../progress.ts';
import { isEvidence, openRecording, tellProblems } from '../recordings.ts';
import { INTERRUPTED, type Shell } from '../shell.ts';
import { type Cell, table } from '../table.ts';
import { paint } from '../terminal.ts';
import { absolute, partOfRange, span } from '../times.ts';
import { overridesOf, readCooldownsFile, readText, settingsOf } from './inputs.ts';

export type ReplayOptions = ConfigOption &
  OutputOption &
  AggregateOption & {
    readonly since?: string;
    readonly until?: string;
    readonly strict?: boolean;
    readonly policies?: string;
    readonly set?: string[];
    readonly planner?: string;
    readonly cooldowns?: string;
    readonly whatIf?: boolean;
    readonly moves?: boolean;
    readonly chart?: string;
    readonly threads?: number;
  };

/** Decisions that differ and are shown in full; the JSON has all of them. */
const SHOWN = 10;

/** kronos replay. */
export async function replayCommand(
  shell: Shell,
  directory: string | undefined,
  options: ReplayOptions,
): Promise<void> {
  // Mistakes show before anything is read.
  const asked = askedOf(shell, options);
  if (directory !== undefined && isEvidence(directory)) {
    const { withRecordingOf } = await import('@kronos/evidence');
    await withRecordingOf(directory, readText('replay', directory), (unpacked, changed) =>
      replayRecording(shell, unpacked, asked, changed),
    );
    return;
  }
  if (directory !== undefined) {
    await replayRecording(shell, directory, asked, []);
    return;
  }
  await withSession(shell, options, async ({ history }) => {
    const running = { defaults: defaultEngineOptions, seeded: undefined, problems: [] };
    await replay(shell, asked, history, running);
  });
}

/** The request of a person, parsed and checked. */
type Asked = { readonly options: ReplayOptions; readonly range: Range; readonly change: Omit<Change, 'defaults'> };

/** @throws UsageError, ConfigError, CooldownsInvalid */
function askedOf(shell: Shell, options: ReplayOptions): Asked {
  const range = {
    ...partOfRange(options, shell.now()),
    ...(options.aggregate === undefined ? {} : { aggregates: options.aggregate }),
  };
  const overrides = overridesOf(settingsOf(options));
  const change = {
    options: (recorded: EngineOptions) => ({ ...recorded, ...overrides }),
    ...(options.policies === undefined ? {} : { policies: readPolicies(options.policies) }),
    ...(options.cooldowns === undefined ? {} : { cooldowns: readCooldownsFile(options.cooldowns) }),
  };
  return { options, range, change };
}

/** @param changed what was changed in the file that the directory was unpacked from */
async function replayRecording(
  shell: Shell,
  directory: string,
  asked: Asked,
  changed: readonly string[],
): Promise<void> {
  const { history, about, cooldowns, problems } = await openRecording(shell, directory);
  const [first] = Object.values(about.options);
  const edited = Object.values(cooldowns).some((section) => Object.keys(section).length > 0);
  await replay(shell, asked, history, {
    defaults: first ?? defaultEngineOptions,
    seeded: edited ? cooldowns : undefined,
    problems: [...changed, ...problems],
  });
}

type Source = {
  readonly defaults: EngineOptions;
  readonly seeded: Cooldowns | undefined;
  /** The changes in a recorded directory. */
  readonly problems: readonly string[];
};

/** The recorded decisions to run again. */
type Recorded = { readonly history: History; readonly range: Range; readonly problems: readonly string[] };

async function replay(
  shell: Shell,
  { options, range, change }: Asked,
  history: History,
  { defaults, seeded, problems }: Source,
): Promise<void> {
  const cooldowns = change.cooldowns ?? seeded;
  const changed =
    settingsOf(options).length > 0 ||
    change.policies !== undefined ||
    cooldowns !== undefined ||
    options.whatIf === true;
  if (!changed) {
    for (const name of ['chart', 'moves'] as const)
      if (options[name] !== undefined)
        throw new UsageError(`--${name} needs a what-if`, 'Add --set, --planner, --policies or --what-if.');
    await runVerify(shell, options, { history, range: await verifiedRange(options, history, range), problems });
    return;
  }
  if (options.strict === true)
    throw new UsageError('--strict compares recorded decisions and cannot be used with a what-if');
  const from = cooldowns === undefined ? null : (options.cooldowns ?? 'the recording');
  const all: Change = { ...change, defaults, ...(cooldowns === undefined ? {} : { cooldowns }) };
  await runWhatIf(shell, options, { history, range, problems }, { name: whatIfName(options, from), change: all });
}

/** @param cooldowns where they come from; null: from the log */
function whatIfName(options: ReplayOptions, cooldowns: string | null): string {
  const parts = [
    ...settingsOf(options),
    ...(options.policies === undefined ? [] : [`policies of ${options.policies}`]),
    ...(cooldowns === null ? [] : [`cooldowns of ${cooldowns}`]),
  ];
  return parts.length === 0 ? 'every plan carried out at once' : parts.join(', ');
}

const threadsOf = ({ threads }: ReplayOptions): { readonly threads?: number } =>
  threads === undefined ? {} : { threads };

/** Says that a replay was ended before its end; what was printed is of the part that was done. */
function tellInterrupted(shell: Shell, stop: AbortSignal): void {
  if (!stop.aborted) return;
  shell.terminal.err('kronos: interrupted: the output covers only the part that was done.\n');
  process.exitCode = INTERRUPTED;
}

/** Without --since and --until, what is kept: decisions whose snapshots are gone are run again only when asked for. */
async function verifiedRange(options: ReplayOptions, history: History, range: Range): Promise<Range> {
  const { sinceMs, untilMs, aggregates } = await history.kept();
  return {
    ...(aggregates === undefined ? {} : { aggregates }),
    ...range,
    ...(options.since === undefined && sinceMs !== undefined ? { sinceMs } : {}),
    ...(options.until === undefined && untilMs !== undefined ? { untilMs } : {}),
  };
}

function readPolicies(file: string): readonly Policy[] {
  const { policies, problems } = parsePolicies({ file, text: readText('--policies', file) });
  if (problems.length > 0) throw new ConfigError(problems);
  return policies;
}

/** Events of the log that nobody can read, and what was skipped of them: both are shown for ever. */
class Unread {
  readonly unreadable: { sequence: number; aggregate: string; problem: string }[] = [];
  readonly skipped: { sequence: number; through: number; by: string; reason: string | null }[] = [];

  readonly add = ({ sequence, event }: StoredEvent): void => {
    if (event.type === 'unreadable')
      this.unreadable.push({ sequence, aggregate: event.aggregate, problem: event.problem });
    else if (event.type === 'event.skipped')
      this.skipped.push({
        sequence: event.data.sequence,
        through: event.data.through,
        by: event.by.instance,
        reason: event.data.comment,
      });
  };
}

async function runVerify(shell: Shell, options: ReplayOptions, { history, range, problems }: Recorded): Promise<void> {
  const strict = options.strict === true;
  const stop = shell.interrupted();
  const progress = progressBar(shell.terminal, 'replaying', shell.now);
  const unread = new Unread();
  const report = new VerifyReport();
  const stream = await answerStream(shell, options, { mode: 'verify', strict }, 'cycles');
  const running = { ...threadsOf(options), signal: stop, onProgress: progress.share, onEvent: unread.add };
  try {
    for await (const cycle of verify(history, range, running)) {
      report.add(cycle);
      if (stream === null) continue;
      progress.end();
      stream.add(cycle);
    }
  } finally {
    progress.end();
  }
  if (report.decisions === 0 && !stop.aborted) {
    tellProblems(shell, history.name, problems);
    throw new NothingRecorded(
      `${history.name} holds no decision in this range`,
      'Give another range, or run a what-if: --what-if, --set, --policies.',
    );
  }
  const totals = report.totals({ strict });
  const { unreadable, skipped } = unread;
  if (stream !== null) stream.end({ totals, problems, unreadable, skipped, interrupted: stop.aborted });
  else {
    const on = textShell(shell, options);
    if (report.decisions > 0) printVerify(on, report, strict);
    for (const { sequence, problem } of unreadable) on.terminal.out(`event ${sequence} cannot be read: ${problem}\n`);
    for (const { sequence, through, by, reason } of skipped)
      on.terminal.out(
        `unreadable events ${sequence === through ? sequence : `${sequence} to ${through}`} were skipped by ${by}${reason === null ? '' : `: ${reason}`}\n`,
      );
  }
  if (!totals.ok) process.exitCode = 1;
  tellProblems(shell, history.name, problems);
  tellInterrupted(shell, stop);
}

/** The report of a verification, gathered cycle by cycle. */
class VerifyReport {
  readonly #count = new VerifyCount();
  readonly #aggregates = new Map<string, VerifyCount>();
  sinceMs = Number.POSITIVE_INFINITY;
  untilMs = Number.NEGATIVE_INFINITY;
  decisions = 0;
  /** The first ones of each kind, to be shown. */
  readonly different: VerifiedCycle[] = [];
  readonly otherVersion: VerifiedCycle[] = [];
  notReplayed: VerifiedCycle | null = null;

  add(cycle: VerifiedCycle): void {
    this.decisions += 1;
    this.#count.add(cycle);
    const own = this.#aggregates.get(cycle.aggregate) ?? new VerifyCount();
    this.#aggregates.set(cycle.aggregate, own);
    own.add(cycle);
    this.sinceMs = Math.min(this.sinceMs, cycle.snapshotTimeMs);
    this.untilMs = Math.max(this.untilMs, cycle.snapshotTimeMs);
    const { verdict } = cycle;
    if (verdict === 'notReplayed') this.notReplayed ??= cycle;
    else if (verdict !== 'identical' && this[verdict].length < SHOWN) this[verdict].push(cycle);
  }

  totals(options: { readonly strict: boolean }): VerifyTotals {
    return this.#count.totals(options);
  }

  /** By aggregate, in the order in which they came. */
  byAggregate(): [aggregate: string, totals: VerifyTotals][] {
    return [...this.#aggregates].map(([aggregate, count]) => [aggregate, count.totals()]);
  }
}

const verdictWords = {
  identical: 'identical',
  different: 'different',
  otherVersion: 'another planner version decided differently',
  notReplayed: 'not run again',
} as const;

function printVerify(shell: Shell, report: VerifyReport, strict: boolean): void {
  const { terminal } = shell;
  const totals = report.totals({ strict });
  terminal.out(
    `${totals.notReplayed === 0 ? '' : `${totals.decisions - totals.notReplayed} of `}${count(totals.decisions, 'decision')} run again, ${absolute(report.sinceMs, shell.now())} to ${absolute(report.untilMs, shell.now())}\n\n`,
  );
  const number = (n: number, style: 'red' | 'yellow'): Cell => (n === 0 ? '0' : { text: String(n), style });
  const rows = report
    .byAggregate()
    .map(([aggregate, of]) => [
      aggregate,
      String(of.decisions),
      String(of.identical),
      number(of.different, 'red'),
      number(of.otherVersion, 'yellow'),
      number(of.notReplayed, 'yellow'),
      of.notReplayed === of.decisions ? '-' : percent(of.identicalShare),
    ]);
  terminal.out(
    table(
      terminal,
      [
        { head: 'aggregate', flex: true },
        ...['decisions', 'identical', 'different', 'other version', 'not run', 'share'].map((head) => ({
          head,
          right: true,
        })),
      ],
      rows,
    ),
  );
  const shown = [...report.different, ...report.otherVersion].slice(0, SHOWN);
  const others = totals.different + totals.otherVersion;
  for (const cycle of shown) terminal.out(`\n${describeVerified(shell, cycle)}`);
  if (others > shown.length) terminal.out(`\n${others - shown.length} more: --json lists all of them.\n`);
  if (report.notReplayed !== null) {
    terminal.out(`\n${describeVerified(shell, report.notReplayed)}`);
    if (totals.notReplayed > 1)
      terminal.out(`  and ${totals.notReplayed - 1} more like it: --json lists all of them\n`);
  }
  if (totals.notReplayed === totals.decisions) {
    terminal.out(`\n${paint(terminal, 'yellow', 'No decision could be run again: nothing was compared.')}\n`);
    return;
  }
  terminal.out(`\n${paint(terminal, totals.ok ? 'green' : 'red', verdictOf(totals, strict))}\n`);
}

function verdictOf(totals: VerifyTotals, strict: boolean): string {
  const { decisions, identical, different, notReplayed } = totals;
  if (identical === decisions) return 'Every decision is identical.';
  if (totals.ok) return 'Every decision of this planner version is identical.';
  if (different + notReplayed === 0 && strict) return 'Not every decision is identical (--strict).';
  return [
    ...(different === 0 ? [] : [`${count(different, 'decision')} ${different === 1 ? 'differs' : 'differ'}.`]),
    ...(notReplayed === 0 ? [] : [`${notReplayed} of ${count(decisions, 'decision')} could not be run again.`]),
  ].join(' ');
}

/** Never 100 % when one is missing. */
const percent = (share: number): string => `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;

function describeVerified(shell: Shell, cycle: VerifiedCycle): string {
  const { terminal } = shell;
  const head = `${cycle.snapshotId} (${cycle.aggregate}, ${absolute(cycle.snapshotTimeMs, shell.now())}, event ${cycle.sequence}): `;
  const style = cycle.verdict === 'different' ? 'red' : 'yellow';
  const lines = [`${head}${paint(terminal, style, verdictWords[cycle.verdict])}`];
  if (cycle.verdict === 'notReplayed') lines.push(`  ${cycle.reason}`);
  if (cycle.verdict === 'different' || cycle.verdict === 'otherVersion') {
    if (cycle.verdict === 'otherVersion') lines.push(`  the recorded decision is of version ${cycle.plannerVersion}`);
    for (const cause of cycle.causes) lines.push(`  ${cause}`);
    for (const { path, recorded, replayed } of cycle.differences) {
      lines.push(`  ${path}`);
      lines.push(`    ${paint(terminal, 'red', `- ${shortJson(recorded)}`)}`);
      lines.push(`    ${paint(terminal, 'green', `+ ${shortJson(replayed)}`)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

const LONG = 160;
function shortJson(value: unknown): string {
  if (value === undefined) return '(nothing)';
  const text = JSON.stringify(value);
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

type NamedChange = {
  /** The change, in words. */
  readonly name: string;
  readonly change: Change;
};

async function runWhatIf(
  shell: Shell,
  options: ReplayOptions,
  { history, range, problems }: Recorded,
  { name, change }: NamedChange,
): Promise<void> {
  const on = textShell(shell, options);
  const stop = shell.interrupted();
  const progress = progressBar(shell.terminal, 'simulating', shell.now);
  const counted = new WhatIfCount();
  try {
    const extent = await extentOf(history, range);
    const chart = options.chart === undefined ? null : new CycleChart(extent);
    const stream = await answerStream(shell, options, { mode: 'whatIf', simulated: true, change: name }, 'cycles');
    const running = { ...threadsOf(options), signal: stop, onProgress: progress.share };
    for await (const cycle of whatIf(history, range, change, { ...running, extent })) {
      // Nothing is printed before it is known that the change can be simulated.
      if (counted.cycles === 0 && stream === null) {
        progress.end();
        on.terminal.out(`${paint(on.terminal, 'bold', 'Simulated')}: ${name}\n`);
      }
      counted.add(cycle);
      chart?.add(whatIfDrawn(cycle));
      if (stream === null && options.moves !== true) continue;
      progress.end();
      if (stream === null) printMoves(on, cycle);
      else stream.add(whatIfJson(cycle));
    }
    progress.end();
    const totals = counted.totals();
    if (options.chart !== undefined && chart !== null) writeFileSync(options.chart, chart.svg(whatIfLabels(name)));
    if (stream !== null) stream.end({ totals, problems, interrupted: stop.aborted });
    else if (totals.length > 0) printWhatIf(on, options, totals);
  } finally {
    progress.end();
  }
  tellProblems(shell, history.name, problems);
  tellInterrupted(shell, stop);
}

function whatIfJson({ simulated: { decision, ...simulated }, ...cycle }: WhatIfCycle): object {
  return {
    ...cycle,
    simulated: {
      ...simulated,
      plan: (decision.plan?.steps ?? []).map(({ serverId, serverName, from, to, phase }) => ({
        serverId,
        serverName,
        from,
        to,
        phase,
      })),
    },
  };
}

function printMoves(shell: Shell, { aggregate, timeMs, simulated }: WhatIfCycle): void {
  const { terminal } = shell;
  if (simulated.decision.plan === null) return;
  terminal.out(`\n${absolute(timeMs, shell.now())}  ${aggregate}: ${simulated.reason}\n`);
  for (const { serverName, from, to, phase } of simulated.decision.plan.steps)
    terminal.out(`  ${serverName}  ${from} -> ${to}  (${phase})\n`);
}

function printWhatIf(shell: Shell, options: ReplayOptions, totals: readonly WhatIfTotals[]): void {
  const { terminal } = shell;
  const since = Math.min(...totals.map((t) => t.sinceMs));
  const until = Math.max(...totals.map((t) => t.untilMs));
  const snapshots = totals.reduce((sum, t) => sum + t.snapshots, 0);
  terminal.out(
    `${options.moves === true ? '\n' : ''}${count(snapshots, 'snapshot')}, ${absolute(since, shell.now())} to ${absolute(until, shell.now())} (${span(until - since)})\n\n`,
  );
  const rows = totals.flatMap((of): Cell[][] =>
    (['recorded', 'simulated'] as const).map((world) => [
      world === 'recorded' ? of.aggregate : '',
      world,
      String(of[world].moves),
      figure(of[world].meanImbalance),
      figure(of[world].maxImbalance),
      figure(of[world].lastImbalance),
      String(allBreaks(of[world].ruleBreaks)),
    ]),
  );
  terminal.out(
    table(
      terminal,
      [
        { head: 'aggregate', flex: true },
        { head: '' },
        ...['moves', 'mean imbalance', 'highest', 'at the end', 'rule breaks'].map((head) => ({ head, right: true })),
      ],
      rows,
    ),
  );
  terminal.out(
    '\nThe simulation carried out every plan at once, also plans that were a dry run or waited for approval.\nRule breaks: VMs that break a server group rule at the end. Nothing was moved.\n',
  );
  if (options.chart !== undefined) terminal.out(`Wrote the chart to ${options.chart}\n`);
}
