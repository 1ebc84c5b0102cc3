import { leastSkew, skewProblem } from '@kronos/clock';
import { type Control, eventTimeMs } from '@kronos/contracts';
import type { LogState } from '@kronos/projections';
import { liveHistory, plansOf } from '@kronos/replay';
import { ClockWrong, UsageError } from '../errors.ts';
import type { AggregateOption, OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { currentState, type Session, tellCheckpoints, withSession } from '../open.ts';
import { act } from '../operator/act.ts';
import { aggregateOfTask, choosePlan, requireClosable } from '../operator/ask.ts';
import { judgeClock } from '../operator/clock.ts';
import { type Asking, control } from '../operator/control.ts';
import { type Outcome, outcomeOf } from '../operator/outcome.ts';
import { answer, isStructured } from '../output.ts';
import { aggregateText, chooseAddresses } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { paint } from '../terminal.ts';
import { renderPlan } from './plan.ts';

/** One command's outcome, as `--json` prints it. */
export type Told = Outcome & {
  readonly command: Control['type'];
  readonly commandId: string;
  readonly aggregate: string;
  readonly sequence: number;
  readonly by: string;
  readonly time: string;
};

const askingOf = (shell: Shell, options: OperatorOptions): Asking => ({
  commandId: shell.newId(),
  person: shell.person,
  nowMs: shell.now(),
  comment: options.comment ?? null,
});

/** Appends a command of this person, and returns its effect by the log. */
export async function give(
  shell: Shell,
  session: Session,
  options: OperatorOptions,
  ask: (state: LogState, asking: Asking) => Control,
): Promise<Told> {
  const asking = askingOf(shell, options);
  const maxSkewMs = session.config.engine.maxClockSkew * 1000;
  const beforeMs = shell.now();
  const { serverMs } = await session.log.readClock();
  const skewMs = leastSkew({ beforeMs, serverMs, afterMs: shell.now() });
  let warned = false;
  const warn = (problem: string): void => {
    if (!warned) shell.terminal.err(`kronos: ${problem}; folds use the server's time of the command\n`);
    warned = true;
  };
  const { event, sequence, storedAt, before, after } = await act(
    session.log,
    (state) => {
      const command = ask(state, { ...asking, nowMs: shell.now() });
      const verdict = judgeClock(command.type, skewMs, maxSkewMs);
      if (verdict.kind === 'refuse') throw new ClockWrong(`${verdict.problem}; the command was not sent`);
      if (verdict.kind === 'warn') warn(verdict.problem);
      return command;
    },
    tellCheckpoints(shell),
  );
  const stamped = { beforeMs: Date.parse(event.time), serverMs: storedAt, afterMs: shell.now() };
  const problem = skewProblem(leastSkew(stamped), maxSkewMs);
  if (problem !== null) warn(problem);
  const outcome = outcomeOf(event, eventTimeMs(event.time, storedAt), before, after);
  return {
    command: event.type,
    commandId: asking.commandId,
    aggregate: event.aggregate,
    sequence,
    by: asking.person,
    time: event.time,
    ...outcome,
  };
}

const styles = { done: 'green', unchanged: 'yellow', refused: 'red' } as const;

/** Prints outcomes. Status 1 when the log refused one. */
export async function tell(shell: Shell, options: OutputOption, told: readonly Told[]): Promise<void> {
  await answer(shell, options, told.length === 1 ? told[0] : told, (terminal) =>
    told
      .map(({ aggregate, effect, text }) => `${aggregateText(aggregate)}: ${paint(terminal, styles[effect], text)}\n`)
      .join(''),
  );
  if (told.some(({ effect }) => effect === 'refused')) process.exitCode = 1;
}

export type Target = OperatorOptions & AggregateOption & { readonly all?: boolean };
export type AnswerOptions = OperatorOptions & { readonly step?: readonly number[] };
export type CloseOptions = OperatorOptions & { readonly force?: boolean };

const pauses = { pause: 'aggregate.paused', resume: 'aggregate.resumed' } as const;
const answers = { approve: 'plan.approved', reject: 'plan.rejected' } as const;
const stops = { cancel: 'migration.cancelled', abort: 'migration.aborted' } as const;

/** kronos pause, resume. */
export async function pause(shell: Shell, name: keyof typeof pauses, options: Target): Promise<void> {
  await withSession(shell, options, async (session) => {
    const told: Told[] = [];
    for (const address of chooseAddresses(session.scope, options.aggregate, options.all === true, name))
      told.push(await give(shell, session, options, (_, asking) => control(pauses[name], address, {}, asking)));
    await tell(shell, options, told);
  });
}

/** kronos approve, reject. */
export async function answerPlan(
  shell: Shell,
  name: keyof typeof answers,
  planId: string | undefined,
  options: AnswerOptions,
): Promise<void> {
  await withSession(shell, options, async (session) => {
    const steps = options.step === undefined ? null : [...options.step];
    const named = name === 'approve' && planId === undefined ? await confirmed(shell, session, options, steps) : planId;
    if (named === null) return;
    const told = await give(shell, session, options, (state, asking) => {
      const plan = choosePlan(state, session.scope, asking.nowMs, { planId: named, steps });
      return control(answers[name], plan.aggregate, { planId: plan.planId, steps }, asking);
    });
    await tell(shell, options, [told]);
  });
}

/**
 * The plan that the person wants to release, after seeing it; null where they do not.
 *
 * @throws UsageError where nobody can answer
 */
async function confirmed(
  shell: Shell,
  { log, scope }: Session,
  options: AnswerOptions,
  steps: readonly number[] | null,
): Promise<string | null> {
  const chosen = choosePlan(await currentState(shell, log), scope, shell.now(), { planId: undefined, steps });
  const command = `kronos approve ${chosen.planId}${steps === null ? '' : ` --step ${steps.join(',')}`}`;
  if (shell.ask === null || isStructured(options))
    throw new UsageError(
      'approve without a plan id needs a terminal to ask for confirmation',
      `kronos plan show ${chosen.planId} shows the plan that waits; ${command} releases it.`,
    );
  const [record] = await plansOf(
    liveHistory(log, '').events(),
    { aggregates: [chosen.aggregate] },
    (id) => id === chosen.planId,
  );
  if (record !== undefined) shell.terminal.out(`${renderPlan(shell, record)}\n`);
  const what = steps === null ? 'this plan' : `step ${steps.join(', ')} of this plan`;
  const answered = await shell.ask(`Release ${what}? [y/N] `);
  if (/^y(es)?$/i.test(answered.trim())) return chosen.planId;
  shell.terminal.out('Nothing was released.\n');
  process.exitCode = 1;
  return null;
}

/** kronos cancel, abort. */
export async function stop(
  shell: Shell,
  name: keyof typeof stops,
  tasks: readonly string[],
  options: OperatorOptions,
): Promise<void> {
  await eachTask(shell, tasks, options, (session) => (state, asking, taskId) => {
    return control(stops[name], aggregateOfTask(state, session.scope, taskId), { taskId }, asking);
  });
}

/** kronos close. */
export async function close(shell: Shell, tasks: readonly string[], options: CloseOptions): Promise<void> {
  await eachTask(shell, tasks, options, (session) => (state, asking, taskId) => {
    const aggregate = aggregateOfTask(state, session.scope, taskId);
    requireClosable(state, aggregate, taskId, options.force === true);
    return control('migration.closed', aggregate, { taskId }, asking);
  });
}

async function eachTask(
  shell: Shell,
  tasks: readonly string[],
  options: OperatorOptions,
  ask: (session: Session) => (state: LogState, asking: Asking, taskId: string) => Control,
): Promise<void> {
  await withSession(shell, options, async (session) => {
    const told: Told[] = [];
    for (const taskId of tasks)
      told.push(await give(shell, session, options, (state, asking) => ask(session)(state, asking, taskId)));
    await tell(shell, options, told);
  });
}
