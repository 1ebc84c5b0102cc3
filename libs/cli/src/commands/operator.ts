import { choosePlan, commandTypes, control, type TaskCommand, type Told, taskCommand } from '@kronos/operator';
import { plansOf } from '@kronos/replay';
import { UsageError } from '../errors.ts';
import type { AggregateOption, OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { currentState, type OpenLog, withSession } from '../open.ts';
import { isStructured } from '../output.ts';
import { renderPlan } from '../plans/record.ts';
import { aggregateOption, chooseAddresses } from '../scope.ts';
import { agrees, type Shell } from '../shell.ts';
import { give, giveEach, tell } from './give.ts';

export type TargetOptions = OperatorOptions & AggregateOption & { readonly all?: boolean };
export type AnswerOptions = OperatorOptions & { readonly step?: readonly number[] };
export type CloseOptions = OperatorOptions & { readonly force?: boolean };

/** kronos pause, resume. */
export async function pause(shell: Shell, name: 'pause' | 'resume', options: TargetOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    const addresses = chooseAddresses(session.scope, { names: options.aggregate, all: options.all === true }, name);
    const told = await giveEach({ shell, session, options }, addresses, (address, _, asking) =>
      control(commandTypes[name], address, {}, asking),
    );
    await tell(shell, options, told, name === 'pause' ? resumeHint : undefined);
  });
}

const resumeHint = ({ aggregate }: Told): string => `; kronos resume ${aggregateOption(aggregate)} ends it`;

/** kronos approve, reject. */
export async function answerPlan(
  shell: Shell,
  name: keyof typeof answering,
  planId: string | undefined,
  options: AnswerOptions,
): Promise<void> {
  await withSession(shell, options, async (session) => {
    const steps = options.step === undefined ? null : [...options.step];
    const named = planId ?? (await confirmed(shell, session, name, { ...options, steps }));
    if (named === null) return;
    const told = await give(shell, session, options, (state, asking) => {
      const plan = choosePlan(state, session.scope, asking.nowMs, { planId: named, steps });
      return control(commandTypes[name], plan.aggregate, { planId: plan.planId, steps }, asking);
    });
    await tell(shell, options, [told]);
  });
}

/** The words of the question before an answer, and of its effect on the plan. */
const answering = {
  approve: { ask: 'Release', does: 'releases it', none: 'Nothing was released.' },
  reject: { ask: 'Reject', does: 'rejects it', none: 'Nothing was rejected.' },
} as const;

/**
 * The plan that the person wants to answer, after seeing it; null where they do not.
 *
 * @throws UsageError where nobody can answer
 */
async function confirmed(
  shell: Shell,
  { log, history, scope }: OpenLog,
  name: keyof typeof answering,
  { steps, ...options }: OutputOption & { readonly steps: readonly number[] | null },
): Promise<string | null> {
  const { ask, does, none } = answering[name];
  const chosen = choosePlan(await currentState(shell, log), scope, shell.now(), { planId: undefined, steps });
  const command = `kronos ${name} ${chosen.planId}${steps === null ? '' : ` --step ${steps.join(',')}`}`;
  if (shell.ask === null || isStructured(options))
    throw new UsageError(
      `${name} without a plan id needs a terminal to ask for confirmation`,
      `kronos plan show ${chosen.planId} shows the plan that waits; ${command} ${does}.`,
    );
  const [record] = await plansOf(history.events(), { aggregates: [chosen.aggregate] }, (id) => id === chosen.planId);
  if (record !== undefined) shell.terminal.out(`${renderPlan(shell, record)}\n`);
  const what = steps === null ? 'this plan' : `step ${steps.join(', ')} of this plan`;
  if (await agrees(shell.ask, `${ask} ${what}?`)) return chosen.planId;
  shell.terminal.out(`${none}\n`);
  process.exitCode = 1;
  return null;
}

/** kronos cancel, abort, close, cells confirm and revert: one command for each task. */
export async function commandTasks(
  shell: Shell,
  command: TaskCommand,
  tasks: readonly string[],
  options: CloseOptions,
): Promise<void> {
  const force = options.force === true;
  await withSession(shell, options, async (session) => {
    const told = await giveEach({ shell, session, options }, tasks, (taskId, state, asking) =>
      taskCommand(state, session.scope, { command, taskId, force }, asking),
    );
    await tell(shell, options, told);
  });
}
