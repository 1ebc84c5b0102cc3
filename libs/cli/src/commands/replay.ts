import { writeFileSync } from 'node:fs';
import { ConfigError, overrideEngineOption, parsePolicies } from '@kronos/config';
import { defaultEngineOptions, type EngineOptions, type Policy } from '@kronos/contracts';
import type { Cooldowns } from '@kronos/projections';
import {
  allBreaks,
  type History,
  liveHistory,
  NothingRecorded,
  type Range,
  type VerifiedCycle,
  verify,
  verifyTotals,
  type WhatIfCycle,
  whatIf,
  whatIfChart,
  whatIfTotals,
} from '@kronos/replay';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { withSession } from '../open.ts';
import { answerInParts } from '../output.ts';
import { progressBar } from '../progress.ts';
import { openRecording, tellProblems } from '../recordings.ts';
import type { Shell } from '../shell.ts';
import { type Cell, count, figure, paint, table } from '../terminal.ts';
import { absolute, parseTime, span } from '../times.ts';
import { readCooldownsFile, readText } from './inputs.ts';

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
  };

/** Decisions that differ and are shown in full; the JSON has all of them. */
const SHOWN = 10;

/** kronos replay. */
export async function replayCommand(
  shell: Shell,
  directory: string | undefined,
  options: ReplayOptions,
): Promise<void> {
  if (directory !== undefined) {
    const { history, about, cooldowns, problems } = await openRecording(shell, directory);
    const [first] = Object.values(about.options);
    const edited = Object.values(cooldowns).some((section) => Object.keys(section).length > 0);
    const recorded = { defaults: first ?? defaultEngineOptions, seeded: edited ? cooldowns : undefined, problems };
    await replay(shell, options, history, recorded);
    return;
  }
  await withSession(shell, options, async ({ log, config }) => {
    const running = { defaults: defaultEngineOptions, seeded: undefined, problems: [] };
    await replay(shell, options, liveHistory(log, config.nats.servers.join(', ')), running);
  });
}

type Source = {
  readonly defaults: EngineOptions;
  readonly seeded: Cooldowns | undefined;
  /** What was changed in a recorded directory. */
  readonly problems: readonly string[];
};

async function replay(
  shell: Shell,
  options: ReplayOptions,
  history: History,
  { defaults, seeded, problems }: Source,
): Promise<void> {
  const at = (name: 'since' | 'until') => {
    const text = options[name];
    return text === undefined || text === 'all' ? null : parseTime(`--${name}`, text, shell.now());
  };
  const sinceMs = at('since');
  const untilMs = at('until');
  const range: Range = {
    ...(sinceMs === null ? {} : { sinceMs }),
    ...(untilMs === null ? {} : { untilMs }),
    ...(options.aggregate === undefined ? {} : { aggregates: options.aggregate }),
  };
  const sets = [
    ...(options.set ?? []),
    ...(options.planner === undefined ? [] : [`engine.planner=${options.planner}`]),
  ];
  const policies = options.policies === undefined ? undefined : readPolicies(options.policies);
  const cooldowns = options.cooldowns === undefined ? seeded : readCooldownsFile(options.cooldowns);
  const change = changeOf(sets);
  const asked = sets.length > 0 || policies !== undefined || cooldowns !== undefined || options.whatIf === true;
  if (!asked) {
    for (const name of ['chart', 'moves'] as const)
      if (options[name] !== undefined)
        throw new UsageError(
          `--${name} is for a what-if`,
          'Say what is otherwise: --set, --planner, --policies or --what-if.',
        );
    await runVerify(shell, options, history, await verifiedRange(options, history, range), problems);
    return;
  }
  if (options.strict === true) throw new UsageError('--strict compares recorded decisions, and a what-if has others');
  const title = [
    ...sets,
    ...(options.policies === undefined ? [] : [`policies of ${options.policies}`]),
    ...(cooldowns === undefined ? [] : [`cooldowns of ${options.cooldowns ?? 'the recording'}`]),
  ];
  const progress = progressBar(shell.terminal, 'simulating', shell.now);
  const cycles = await Array.fromAsync(
    whatIf(
      history,
      range,
      {
        defaults,
        options: change,
        ...(policies === undefined ? {} : { policies }),
        ...(cooldowns === undefined ? {} : { cooldowns }),
      },
      progress.update,
    ),
  ).finally(progress.end);
  const name = title.length === 0 ? 'every plan carried out at once' : title.join(', ');
  if (options.chart !== undefined) writeFileSync(options.chart, whatIfChart(cycles, name));
  await answerInParts(shell, options, { ...whatIfJson(name, cycles), problems }, (on) =>
    printWhatIf(on, options, name, cycles),
  );
  tellProblems(shell, history.name, problems);
}

/** Without --since and --until, what is kept: decisions whose snapshots are gone are run again only when asked for. */
async function verifiedRange(options: ReplayOptions, history: History, range: Range): Promise<Range> {
  const { sinceMs, untilMs } = await history.kept();
  return {
    ...range,
    ...(options.since === undefined && sinceMs !== undefined ? { sinceMs } : {}),
    ...(options.until === undefined && untilMs !== undefined ? { untilMs } : {}),
  };
}

/** Options with the given ones set. @throws UsageError */
function changeOf(sets: readonly string[]): (options: EngineOptions) => EngineOptions {
  const pairs = sets.map((text) => {
    const at = text.indexOf('=');
    if (at < 1)
      throw new UsageError(
        `--set takes OPTION=VALUE, not ${JSON.stringify(text)}`,
        'For example: --set engine.cooldown=0',
      );
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
  const apply = (options: EngineOptions): EngineOptions =>
    pairs.reduce((current, [name, value]) => {
      const set = overrideEngineOption(current, name, value);
      if (!set.ok) throw new UsageError(set.problem, set.remedy);
      return set.options;
    }, options);
  // Mistakes show before anything is read.
  apply(defaultEngineOptions);
  return apply;
}

function readPolicies(file: string): readonly Policy[] {
  const { policies, problems } = parsePolicies({ file, text: readText('--policies', file) });
  if (problems.length > 0) throw new ConfigError(problems);
  return policies;
}

/** Events of the whole log that nobody can read, and what was skipped of them: both are shown for ever. */
async function unreadOf(history: History) {
  const unreadable: { sequence: number; aggregate: string; problem: string }[] = [];
  const skipped: { sequence: number; through: number; by: string; reason: string | null }[] = [];
  for await (const { sequence, event } of history.events())
    if (event.type === 'unreadable') unreadable.push({ sequence, aggregate: event.aggregate, problem: event.problem });
    else if (event.type === 'event.skipped')
      skipped.push({
        sequence: event.data.sequence,
        through: event.data.through,
        by: event.by.instance,
        reason: event.data.comment,
      });
  return { unreadable, skipped };
}

async function runVerify(
  shell: Shell,
  options: ReplayOptions,
  history: History,
  range: Range,
  problems: readonly string[],
): Promise<void> {
  const progress = progressBar(shell.terminal, 'replaying', shell.now);
  const cycles = await Array.fromAsync(verify(history, range, progress.update)).finally(progress.end);
  if (cycles.length === 0) tellProblems(shell, history.name, problems);
  if (cycles.length === 0)
    throw new NothingRecorded(
      `${history.name} holds no decision in that range`,
      'Give another range; or ask what would have been: --what-if, --set, --policies.',
    );
  const strict = options.strict === true;
  const totals = verifyTotals(cycles, { strict });
  const unread = await unreadOf(history);
  const value = { mode: 'verify', strict, totals, problems, ...unread, cycles };
  await answerInParts(shell, options, value, (on) => {
    printVerify(on, cycles, totals, strict);
    for (const { sequence, problem } of unread.unreadable)
      on.terminal.out(`event ${sequence} cannot be read: ${problem}\n`);
    for (const { sequence, through, by, reason } of unread.skipped)
      on.terminal.out(
        `unreadable events ${sequence === through ? sequence : `${sequence} to ${through}`} were skipped by ${by}${reason === null ? '' : `: ${reason}`}\n`,
      );
  });
  if (!totals.ok) process.exitCode = 1;
  tellProblems(shell, history.name, problems);
}

const verdictWords = {
  identical: 'identical',
  different: 'different',
  otherVersion: 'decided otherwise by another planner version',
  notReplayed: 'not run again',
} as const;

function printVerify(
  shell: Shell,
  cycles: readonly VerifiedCycle[],
  totals: ReturnType<typeof verifyTotals>,
  strict: boolean,
): void {
  const { terminal } = shell;
  const times = cycles.map((cycle) => cycle.snapshotTimeMs);
  terminal.out(
    `${totals.notReplayed === 0 ? '' : `${totals.decisions - totals.notReplayed} of `}${count(cycles.length, 'decision')} run again, ${absolute(Math.min(...times), shell.now())} to ${absolute(Math.max(...times), shell.now())}\n\n`,
  );
  const rows = [...Map.groupBy(cycles, (cycle) => cycle.aggregate)].map(([aggregate, own]) => {
    const of = verifyTotals(own);
    const number = (n: number, style: 'red' | 'yellow'): Cell => (n === 0 ? '0' : { text: String(n), style });
    return [
      aggregate,
      String(of.decisions),
      String(of.identical),
      number(of.different, 'red'),
      number(of.otherVersion, 'yellow'),
      number(of.notReplayed, 'yellow'),
      of.notReplayed === of.decisions ? '-' : percent(of.identicalShare),
    ];
  });
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
  const others = cycles.filter(({ verdict }) => verdict === 'different' || verdict === 'otherVersion');
  const order = { different: 0, otherVersion: 1, notReplayed: 2, identical: 3 } as const;
  const shown = others.toSorted((a, b) => order[a.verdict] - order[b.verdict]).slice(0, SHOWN);
  for (const cycle of shown) terminal.out(`\n${describeVerified(shell, cycle)}`);
  if (others.length > shown.length) terminal.out(`\n${others.length - shown.length} more: --json has all of them.\n`);
  const [notRun, ...more] = cycles.filter((cycle) => cycle.verdict === 'notReplayed');
  if (notRun !== undefined) {
    terminal.out(`\n${describeVerified(shell, notRun)}`);
    if (more.length > 0) terminal.out(`  and ${more.length} more like it: --json has all of them\n`);
  }
  if (totals.notReplayed === totals.decisions) {
    terminal.out(`\n${paint(terminal, 'yellow', 'No decision could be run again: nothing was compared.')}\n`);
    return;
  }
  terminal.out(`\n${paint(terminal, totals.ok ? 'green' : 'red', verdictOf(totals, strict))}\n`);
}

function verdictOf(totals: ReturnType<typeof verifyTotals>, strict: boolean): string {
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
    if (cycle.verdict === 'otherVersion') lines.push(`  the recorded one is of version ${cycle.plannerVersion}`);
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

function whatIfJson(change: string, cycles: readonly WhatIfCycle[]): object {
  return {
    mode: 'whatIf',
    simulated: true,
    change,
    totals: whatIfTotals(cycles),
    cycles: cycles.map(({ simulated: { decision, ...simulated }, ...cycle }) => ({
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
    })),
  };
}

function printWhatIf(shell: Shell, options: ReplayOptions, change: string, cycles: readonly WhatIfCycle[]): void {
  const { terminal } = shell;
  const totals = whatIfTotals(cycles);
  const since = Math.min(...totals.map((t) => t.sinceMs));
  const until = Math.max(...totals.map((t) => t.untilMs));
  terminal.out(
    `${paint(terminal, 'bold', 'Simulated')}: ${change}\n${count(cycles.length, 'snapshot')}, ${absolute(since, shell.now())} to ${absolute(until, shell.now())} (${span(until - since)})\n\n`,
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
  if (options.moves === true)
    for (const { aggregate, timeMs, simulated } of cycles) {
      if (simulated.decision.plan === null) continue;
      terminal.out(`\n${absolute(timeMs, shell.now())}  ${aggregate}: ${simulated.reason}\n`);
      for (const { serverName, from, to, phase } of simulated.decision.plan.steps)
        terminal.out(`  ${serverName}  ${from} -> ${to}  (${phase})\n`);
    }
  terminal.out(
    '\nEvery plan was carried out at once, also where the real one was a dry run or waited for approval; rule breaks are of\nserver groups, at the end. Nothing was moved.\n',
  );
  if (options.chart !== undefined) terminal.out(`The chart is in ${options.chart}\n`);
}
