import {
  ALL,
  type CycleDecided,
  clause,
  commandSnapshotId,
  count,
  decisionWords,
  releaseWords,
  streamNames,
} from '@kronos/contracts';
import { control } from '@kronos/operator';
import { collect } from '@kronos/replay';
import { figure } from '../numbers.ts';
import { withSession } from '../open.ts';
import { answer } from '../output.ts';
import { chooseAddresses } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';
import { parseDuration, said } from '../times.ts';
import { giveEach, tellLate } from './give.ts';
import type { TargetOptions } from './operator.ts';

export type EvaluateOptions = TargetOptions & { readonly wait: string };

/** kronos evaluate. */
export async function requestEvaluation(shell: Shell, options: EvaluateOptions): Promise<void> {
  const waitMs = parseDuration('--wait', options.wait);
  await withSession(shell, options, async (session) => {
    const all = options.all === true;
    const addresses = chooseAddresses(session.scope, { names: options.aggregate, all }, 'evaluate');
    const from = (await session.log.lastSequence(streamNames.log)) + 1;
    const asked = await giveEach({ shell, session, options }, addresses, (address, _, asking) =>
      control('evaluation.requested', address, { purpose: 'evaluate' }, asking),
    );
    if (waitMs === 0) {
      await answer(shell, options, asked.length === 1 ? asked[0] : asked, () =>
        asked.map((one) => `${one.text}: ${one.commandId}\n`).join(''),
      );
      return;
    }
    const ids = new Map(
      asked.flatMap(({ aggregate, commandId }) =>
        (aggregate === ALL ? session.scope : [aggregate]).map(
          (name) => [commandSnapshotId(name, commandId), name] as const,
        ),
      ),
    );
    const decided = await collect(
      session.log.tail({ families: ['plans'], aggregates: [...ids.values()], since: from }),
      (message) => (message.type === 'cycle.decided' && ids.has(message.data.snapshotId) ? message : null),
      ids.size,
      AbortSignal.timeout(waitMs),
    );
    const decisions = decided.map((event) => event.data);
    await answer(shell, options, { ...(asked.length === 1 ? asked[0] : { asked }), decisions }, (terminal) =>
      decided.map((event) => decisionText(terminal, event, shell.now())).join(''),
    );
    const silent = [...ids].filter(([id]) => !decided.some((event) => event.data.snapshotId === id));
    for (const [, name] of silent) tellLate(shell, name, 'decision', waitMs);
    if (silent.length > 0) process.exitCode = 1;
  });
}

/** One decision in a line. */
export function decisionText(terminal: Terminal, { aggregate, data }: CycleDecided, nowMs: number): string {
  const steps = data.plan === null ? '' : ` (${count(data.plan.steps.length, 'move')}, ${releaseWords[data.release]})`;
  const imbalance = data.before.combined === null ? '' : ` (combined imbalance ${figure(data.before.combined)})`;
  return `${aggregate}: ${paint(terminal, data.outcome === 'planned' ? 'green' : 'yellow', decisionWords[data.outcome])}${steps}: ${said(clause(data.reason.text), nowMs)}${imbalance}\n`;
}
