import { NotOnTheLog } from '@kronos/replay';
import { isKronosError, kronosVersion, scrub } from '@kronos/telemetry';
import { Command, CommanderError } from 'commander';
import { archiveCommands } from './commands/archive.ts';
import { completionCommand } from './commands/completion.ts';
import { configCommands } from './commands/config.ts';
import { demoCommand } from './commands/demo.ts';
import { evaluateCommand } from './commands/evaluate.ts';
import { explainCommands } from './commands/explain.ts';
import { prose } from './commands/help.ts';
import { initCommand } from './commands/init.ts';
import { logCommands } from './commands/log.ts';
import { operatorCommands } from './commands/operator.ts';
import { planCommands } from './commands/plan.ts';
import { provisionCommand } from './commands/provision.ts';
import { quarantineCommands } from './commands/quarantine.ts';
import { recordCommand } from './commands/record.ts';
import { replayCommand } from './commands/replay.ts';
import { serviceCommands } from './commands/service.ts';
import { statusCommand } from './commands/status.ts';
import { tapCommand } from './commands/tap.ts';
import { UsageError } from './errors.ts';
import type { Shell } from './shell.ts';
import type { Terminal } from './terminal.ts';

/** The `kronos` command. */
export function createProgram(shell: Shell): Command {
  const { terminal } = shell;
  const program = new Command('kronos')
    .description('Keep the hosts of an OpenStack cloud balanced, and explain and replay every move')
    .version(`kronos ${kronosVersion}`, '--version')
    .showHelpAfterError('(kronos --help lists the commands)')
    .configureOutput({ writeOut: (help) => terminal.out(prose(help)), writeErr: terminal.err })
    .exitOverride();
  program.commandsGroup('Try it:');
  demoCommand(program, terminal);
  program.commandsGroup('See:');
  statusCommand(program, shell);
  planCommands(program, shell);
  tapCommand(program, shell);
  program.commandsGroup('Understand:');
  explainCommands(program, shell);
  replayCommand(program, shell);
  recordCommand(program, shell);
  program.commandsGroup('Act:');
  operatorCommands(program, shell);
  evaluateCommand(program, shell);
  quarantineCommands(program, shell);
  logCommands(program, shell);
  program.commandsGroup('Set up:');
  initCommand(program, shell);
  configCommands(program, shell);
  provisionCommand(program, shell);
  archiveCommands(program, shell);
  completionCommand(program, shell);
  program.commandsGroup('Services:');
  serviceCommands(program);
  pointToHelp(program, 'kronos');
  return program;
}

/** An error about one command's arguments leads to that command's help; what stands after a subcommand's name is its own. */
function pointToHelp(command: Command, name: string): void {
  command.enablePositionalOptions();
  for (const sub of command.commands) {
    const path = `${name} ${sub.name()}`;
    sub.showHelpAfterError(`(${path} --help)`);
    pointToHelp(sub, path);
  }
}

/** Whatever a command writes goes through here. */
const withoutSecrets = (terminal: Terminal): Terminal => ({
  ...terminal,
  out: (text) => terminal.out(scrub(text)),
  err: (text) => terminal.err(scrub(text)),
});

/**
 * Runs a command line (without the program's name) and returns the exit status: 0 it worked, 1 it failed, 2 it was not
 * understood. Errors that are meant for people are printed as one message with the remedy; any other error is a defect and
 * shows its stack.
 */
export async function runProgram(args: readonly string[], given: Shell): Promise<number> {
  const shell = { ...given, terminal: withoutSecrets(given.terminal) };
  const { terminal } = shell;
  process.exitCode = undefined;
  try {
    await createProgram(shell).parseAsync(args, { from: 'user' });
    return typeof process.exitCode === 'number' ? process.exitCode : 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (!isKronosError(error)) {
      terminal.err(
        `kronos: unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
      );
      return 1;
    }
    terminal.err(`kronos: ${error.message}\n${error.remedy === undefined ? '' : `${error.remedy}\n`}`);
    return error instanceof UsageError || (error instanceof NotOnTheLog && error.named) ? 2 : 1;
  } finally {
    process.exitCode = undefined;
  }
}
