/** Gives a person's commands, and tells what became of them. */
import { foldLog } from '@kronos/checkpoints';
import type { Control } from '@kronos/contracts';
import { type Asking, followCommands, type Giving, giveCommand, type Told } from '@kronos/operator';
import type { LogState } from '@kronos/projections';
import { kronosVersion } from '@kronos/telemetry/version';
import type { OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { type OpenLog, tellCheckpoints } from '../open.ts';
import { answer } from '../output.ts';
import { aggregateText } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { paint } from '../terminal.ts';

/** Appends a command of this person, and returns its effect by the log. */
export async function give(
  shell: Shell,
  { config, log }: OpenLog,
  options: OperatorOptions & Pick<Giving, 'nameOf'>,
  ask: (state: LogState, asking: Asking) => Control,
): Promise<Told> {
  const giving = {
    commandId: shell.newId(),
    person: shell.person,
    version: kronosVersion,
    comment: options.comment ?? null,
    nameOf: options.nameOf,
    now: shell.now,
    maxSkewMs: config.engine.maxClockSkew * 1000,
    onSkew: (problem: string) => shell.terminal.err(`kronos: ${problem}; folds use the server's time of the command\n`),
  };
  const following = followCommands();
  const view = await foldLog(log, { ...tellCheckpoints(shell), evolve: following.evolve });
  try {
    return await giveCommand(log, { view, following }, giving, ask);
  } finally {
    await view.close();
  }
}

type Given = { readonly shell: Shell; readonly session: OpenLog; readonly options: OperatorOptions };

/** Gives one command for each of these, one after the other. */
export async function giveEach<T>(
  { shell, session, options }: Given,
  each: Iterable<T>,
  ask: (one: T, state: LogState, asking: Asking) => Control,
): Promise<Told[]> {
  const told: Told[] = [];
  for (const one of each) told.push(await give(shell, session, options, (state, asking) => ask(one, state, asking)));
  return told;
}

const styles = { done: 'green', unchanged: 'yellow', refused: 'red' } as const;

/** Prints outcomes, each with what `hint` adds for people. Status 1 when the log refused one. */
export async function tell(
  shell: Shell,
  options: OutputOption,
  told: readonly Told[],
  hint: (one: Told) => string = () => '',
): Promise<void> {
  await answer(shell, options, told.length === 1 ? told[0] : told, (terminal) =>
    told
      .map((one) => `${aggregateText(one.aggregate)}: ${paint(terminal, styles[one.effect], one.text)}${hint(one)}\n`)
      .join(''),
  );
  if (told.some(({ effect }) => effect === 'refused')) process.exitCode = 1;
}
