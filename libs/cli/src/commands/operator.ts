import { leastSkew, skewProblem } from '@kronos/clock';
import type { Control } from '@kronos/contracts';
import type { LogState } from '@kronos/projections';
import type { Command } from 'commander';
import { ClockWrong, UsageError } from '../errors.ts';
import { type ConfigOption, type Session, tellPassedOver, withConfig, withSession } from '../open.ts';
import { act } from '../operator/act.ts';
import { aggregateOfTask, choosePlan, requireClosable } from '../operator/ask.ts';
import { judgeClock } from '../operator/clock.ts';
import { type Asking, control } from '../operator/control.ts';
import { type Outcome, outcomeOf } from '../operator/outcome.ts';
import { aggregateText, chooseAddress } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { paint } from '../terminal.ts';
import { examples, printJson } from './help.ts';

/** What every command of a person takes. */
export type OperatorOptions = ConfigOption & { readonly comment?: string; readonly json?: boolean };

export const operatorCommand = (command: Command): Command =>
  withConfig(command)
    .option('-m, --comment <text>', 'Reason, recorded on the log')
    .option('--json', 'Print the outcome as JSON');

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

/** Appends a command of this person, and gives what the log says it did. */
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
    if (!warned) shell.terminal.err(`kronos: ${problem}; folds take the server's time for the command's\n`);
    warned = true;
  };
  const { event, sequence, storedAt, before, after } = await act(
    session.log,
    (state) => {
      const command = ask(state, { ...asking, nowMs: shell.now() });
      const verdict = judgeClock(command.type, skewMs, maxSkewMs);
      if (verdict.kind === 'refuse') throw new ClockWrong(`${verdict.problem}; nothing was asked`);
      if (verdict.kind === 'warn') warn(verdict.problem);
      return command;
    },
    tellPassedOver(shell),
  );
  const stamped = { beforeMs: Date.parse(event.time), serverMs: storedAt, afterMs: shell.now() };
  const problem = skewProblem(leastSkew(stamped), maxSkewMs);
  if (problem !== null) warn(problem);
  const outcome = outcomeOf(event, before, after);
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
export function tell(shell: Shell, options: OperatorOptions, told: readonly Told[]): void {
  const { terminal } = shell;
  if (options.json === true) printJson(terminal, told.length === 1 ? told[0] : told);
  else
    for (const { aggregate, effect, text } of told)
      terminal.out(`${aggregateText(aggregate)}: ${paint(terminal, styles[effect], text)}\n`);
  if (told.some(({ effect }) => effect === 'refused')) process.exitCode = 1;
}

type Target = OperatorOptions & { readonly all?: boolean };

const wholeNumbers = (value: string, previous: readonly number[] = []): number[] => [
  ...previous,
  ...value.split(',').map((text) => {
    if (/^[1-9]\d{0,6}$/.test(text.trim())) return Number(text);
    throw new UsageError(
      `--step takes numbers of steps, not ${JSON.stringify(value)}`,
      'Write --step 2 or --step 1,3.',
    );
  }),
];

/** pause, resume, approve, reject, cancel, abort, close. */
export function operatorCommands(program: Command, shell: Shell): void {
  const pauses = [
    ['pause', 'aggregate.paused', 'Stop planning and starting moves; running migrations continue'],
    ['resume', 'aggregate.resumed', 'End a pause'],
  ] as const;
  for (const [name, type, description] of pauses)
    operatorCommand(program.command(name))
      .description(description)
      .argument('[aggregate]', 'Aggregate (optional when only one is in scope)')
      .option('--all', 'All aggregates, future ones included')
      .addHelpText(
        'after',
        examples(
          [`kronos ${name}`, 'the only aggregate in scope'],
          [`kronos ${name} gpu -m "change 4711"`, 'one aggregate, and why'],
          [`kronos ${name} --all`, 'every aggregate: a pause of all is lifted by a resume of all'],
        ),
      )
      .action(async (aggregate: string | undefined, options: Target) => {
        await withSession(shell, options, async (session) => {
          const address = chooseAddress(session.scope, aggregate, options.all === true, name);
          const told = await give(shell, session, options, (_, asking) => control(type, address, {}, asking));
          tell(shell, options, [told]);
        });
      });

  const answers = [
    [
      'approve',
      'plan.approved',
      'Release a proposed plan, whole or in part',
      'steps that they depend on are approved too',
    ],
    [
      'reject',
      'plan.rejected',
      'Reject a proposed plan, whole or in part',
      'steps that depend on them are rejected too',
    ],
  ] as const;
  for (const [name, type, description, also] of answers)
    operatorCommand(program.command(name))
      .description(description)
      .argument('[plan]', 'Plan id (optional when only one plan waits)')
      .option('--step <numbers>', `Only these steps, e.g. 1,3; ${also}`, wholeNumbers)
      .addHelpText(
        'after',
        `${examples(
          ['kronos plans', 'which plans wait'],
          [`kronos ${name}`, 'the only one that waits'],
          [`kronos ${name} gpu-29537 --step 1,3`, 'two steps of it'],
        )}\n\nThe first answer on the log counts. Exit status 1: too late, or nothing of it waits any more.`,
      )
      .action(async (planId: string | undefined, options: OperatorOptions & { step?: number[] }) => {
        await withSession(shell, options, async (session) => {
          const steps = options.step ?? null;
          const told = await give(shell, session, options, (state, asking) => {
            const plan = choosePlan(state, session.scope, asking.nowMs, { planId, steps });
            return control(type, plan.aggregate, { planId: plan.planId, steps }, asking);
          });
          tell(shell, options, [told]);
        });
      });

  const stops = [
    ['cancel', 'migration.cancelled', 'Cancel released moves; running migrations are aborted'],
    ['abort', 'migration.aborted', 'Abort running migrations; moves that have not started are cancelled'],
  ] as const;
  for (const [name, type, description] of stops)
    operatorCommand(program.command(name))
      .description(description)
      .argument('<task...>', 'Task ids, as in kronos status')
      .addHelpText(
        'after',
        `${examples(
          ['kronos status', 'which tasks are in flight'],
          [`kronos ${name} gpu-29537-s2`, 'one move'],
        )}\n\nExit status 1: too late, the move has ended.`,
      )
      .action(async (tasks: string[], options: OperatorOptions) => {
        await withSession(shell, options, async (session) => {
          const told: Told[] = [];
          for (const taskId of tasks)
            told.push(
              await give(shell, session, options, (state, asking) =>
                control(type, aggregateOfTask(state, session.scope, taskId), { taskId }, asking),
              ),
            );
          tell(shell, options, told);
        });
      });

  operatorCommand(program.command('close'))
    .description('End a started task that nothing else can end and free its slots; Nova is not called')
    .argument('<task...>', 'Task ids, as in kronos status')
    .option('--force', 'Also close a task whose abort was never requested')
    .addHelpText(
      'after',
      `${examples(
        ['kronos abort gpu-29537-s2', 'first: ask Nova to end it'],
        ['kronos close gpu-29537-s2 -m "row lost with the database"', 'Nova cannot: end the task in Kronos'],
      )}\n\nClose only what Nova no longer works on: while it still does, the move no longer counts towards the limits.\nExit status 1: too late, the move has ended.`,
    )
    .action(async (tasks: string[], options: OperatorOptions & { force?: boolean }) => {
      await withSession(shell, options, async (session) => {
        const told: Told[] = [];
        for (const taskId of tasks)
          told.push(
            await give(shell, session, options, (state, asking) => {
              const aggregate = aggregateOfTask(state, session.scope, taskId);
              requireClosable(state, aggregate, taskId, options.force === true);
              return control('migration.closed', aggregate, { taskId }, asking);
            }),
          );
        tell(shell, options, told);
      });
    });
}
