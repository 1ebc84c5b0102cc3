import { type AggregateStatus, ratioText, statusOf } from '@kronos/status';
import { figure } from '../../numbers.ts';
import { withSession } from '../../open.ts';
import { answer } from '../../output.ts';
import { filterAggregates } from '../../scope.ts';
import type { Shell } from '../../shell.ts';
import { readFacts } from '../../status/facts.ts';
import { table } from '../../table.ts';
import type { Terminal } from '../../terminal.ts';
import { said, when } from '../../times.ts';
import type { ListOptions } from './filters.ts';

/** kronos aggregates. */
export async function listAggregates(shell: Shell, options: ListOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    const wanted = filterAggregates(session.scope, options.aggregate);
    const facts = await readFacts(shell, session);
    const rows = statusOf(facts).aggregates.filter(({ aggregate }) => wanted.includes(aggregate));
    await answer(shell, options, rows, (terminal) => aggregatesTable(terminal, rows, shell.now()));
  });
}

const aggregatesTable = (terminal: Terminal, rows: readonly AggregateStatus[], nowMs: number): string =>
  table(
    terminal,
    [
      { head: 'aggregate', flex: true },
      { head: 'doing', flex: true },
      { head: 'hosts', right: true, minor: true },
      { head: 'vms', right: true, minor: true },
      { head: 'moves', right: true, minor: true },
      { head: 'ratio', right: true },
      { head: 'imbalance', right: true, minor: true },
      { head: 'last look', minor: true },
      { head: 'policies', wide: true },
    ],
    rows.map(({ aggregate, doing, lastLook, lastDecision, moves, policies, ratio }) => [
      aggregate,
      said(doing, nowMs),
      lastLook === null ? '' : String(lastLook.hosts),
      lastLook === null ? '' : String(lastLook.servers),
      String(moves.length),
      ratio !== null && ratio > 1 ? { text: ratioText(ratio), style: 'yellow' } : ratioText(ratio),
      figure(lastDecision?.combined ?? null),
      lastLook === null ? 'never' : when(lastLook.timeMs, nowMs),
      policies.map(({ policy, imbalance, threshold }) => `${policy} ${figure(imbalance)} of ${threshold}`).join(', '),
    ]),
  );
