import { type Control, streamNames } from '@kronos/contracts';
import type { Asking } from '@kronos/operator';
import { collect, recordedProposal } from '@kronos/replay';
import type { OperatorOptions } from '../grammar/shared.ts';
import type { OpenLog } from '../open.ts';
import { answer } from '../output.ts';
import { type AskedPlan, proposalText, RELEASES } from '../plans/proposal.ts';
import { whileWaiting } from '../progress.ts';
import type { Shell } from '../shell.ts';
import type { Terminal } from '../terminal.ts';
import { give } from './give.ts';
import { tellLate } from './late.ts';

type Request = {
  readonly aggregate: string;
  /** How long the planner's answer is waited for. */
  readonly waitMs: number;
  readonly ask: (asking: Asking) => Control;
};

/** Asks for a plan, waits for the planner's answer and prints it. Status 1 when there is no plan. */
export async function askForPlan(
  shell: Shell,
  session: OpenLog,
  options: OperatorOptions,
  { aggregate, waitMs, ask }: Request,
): Promise<void> {
  const since = (await session.log.lastSequence(streamNames.log)) + 1;
  const told = await give(shell, session, options, (_, asking) => ask(asking));
  const [proposed] = await whileWaiting(
    shell,
    { what: 'the plan', atMostMs: waitMs },
    collect(
      session.log.tail({ families: ['plans'], aggregates: [aggregate], since }),
      (message) => (message.type === 'plan.proposed' && message.data.commandId === told.commandId ? message : null),
      1,
      AbortSignal.timeout(waitMs),
    ),
  );
  if (proposed === undefined) {
    await tellLate(shell, session, { what: 'plan', asked: told, aggregates: [aggregate], waitMs });
    process.exitCode = 1;
    return;
  }
  const { details } = proposed.data;
  const body = details === null ? null : await session.history.details(details);
  const whole = { ...proposed.data, ...recordedProposal(proposed.data, body) };
  await answer(shell, options, whole, (terminal) => renderProposal(terminal, { aggregate, data: whole }));
  if (whole.outcome !== 'planned') process.exitCode = 1;
}

function renderProposal(terminal: Terminal, plan: AskedPlan): string {
  const { planId, release } = plan.data;
  const next = release === 'proposed' ? `\nkronos approve ${planId} releases it.\n` : '';
  return `${proposalText(terminal, plan, RELEASES[release])}${next}`;
}
