/** Runs recorded decisions again and compares them. */
import { count, type StoredEvent } from '@kronos/contracts';
import { NothingRecorded, type VerifiedCycle, VerifyCount, type VerifyTotals, verify } from '@kronos/replay';
import { answerStream, textShell } from '../../output.ts';
import { progressBar } from '../../progress.ts';
import { tellProblems } from '../../recordings.ts';
import type { Shell } from '../../shell.ts';
import { type Cell, table } from '../../table.ts';
import { paint } from '../../terminal.ts';
import { absolute } from '../../times.ts';
import { type ReplayInput, type ReplayOptions, tellInterrupted, threadsOf } from './input.ts';

/** Decisions that differ and are shown in full; the JSON has all of them. */
const SHOWN = 10;

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

export async function runVerify(
  shell: Shell,
  options: ReplayOptions,
  { history, range, problems }: ReplayInput,
): Promise<void> {
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

/** A share in percent, rounded down: only the whole is 100 %. */
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
