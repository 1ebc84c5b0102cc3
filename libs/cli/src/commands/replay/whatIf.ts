/** Runs recorded snapshots with changed options. */
import { writeFileSync } from 'node:fs';
import { count } from '@kronos/contracts';
import {
  allBreaks,
  type Change,
  CycleChart,
  extentOf,
  WhatIfCount,
  type WhatIfCycle,
  type WhatIfTotals,
  whatIf,
  whatIfDrawn,
  whatIfLabels,
} from '@kronos/replay';
import { figure } from '../../numbers.ts';
import { answerStream, textShell } from '../../output.ts';
import { progressBar } from '../../progress.ts';
import { tellProblems } from '../../recordings.ts';
import type { Shell } from '../../shell.ts';
import { type Cell, table } from '../../table.ts';
import { paint } from '../../terminal.ts';
import { absolute, span } from '../../times.ts';
import { type ReplayInput, type ReplayOptions, tellInterrupted, threadsOf } from './input.ts';

type NamedChange = {
  /** The change, in words. */
  readonly name: string;
  readonly change: Change;
};

export async function runWhatIf(
  shell: Shell,
  options: ReplayOptions,
  { history, range, problems }: ReplayInput,
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
      // The first cycle shows that the change can be simulated: nothing is printed before it.
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
