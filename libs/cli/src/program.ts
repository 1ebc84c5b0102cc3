import { CommandRefused } from '@kronos/operator/errors';
import { isKronosError } from '@kronos/telemetry/errors';
import { scrub } from '@kronos/telemetry/scrub';
import { kronosVersion } from '@kronos/telemetry/version';
import { Command, CommanderError, Help } from 'commander';
import { UsageError } from './errors.ts';
import { globalConfig } from './grammar/globalConfig.ts';
import { prose } from './grammar/help.ts';
import { isService, serviceCommands } from './grammar/services.ts';
import type { Shell } from './shell.ts';
import type { Terminal } from './terminal.ts';
import { actCommands } from './tree/act.ts';
import { completionCommand } from './tree/completion.ts';
import { demoCommand } from './tree/demo.ts';
import { seeCommands } from './tree/see.ts';
import { setUpCommands } from './tree/setUp.ts';
import { understandCommands } from './tree/understand.ts';
import { upCommand } from './tree/up.ts';

/** The `kronos` command: its grammar alone. What a command does is loaded when it is run. */
export function createProgram(shell: Shell): Command {
  const { terminal } = shell;
  const program = new Command('kronos')
    .description('Keep the hosts of an OpenStack cloud balanced, and explain and replay every move')
    .version(`kronos ${kronosVersion}`, '--version', 'Print the version')
    .helpOption('-h, --help', 'Show the help of a command')
    .showHelpAfterError('(kronos --help lists the commands)')
    .configureOutput({
      writeOut: (help) => terminal.out(prose(help)),
      writeErr: terminal.err,
      outputError: (text, write) => write(inWords(text)),
    })
    // One line a command: its options and arguments are in its own help.
    .configureHelp({ visibleCommands, subcommandTerm: (sub) => sub.name() })
    .exitOverride();
  program.option('--all', 'With --help: list every command');
  program.hook('preAction', () => {
    if (program.opts<AllOption>().all === true)
      throw new UsageError('--all before a command is only for kronos --help', 'Give it after the command.');
  });
  globalConfig(program);
  program.commandsGroup('Try it:');
  demoCommand(program, shell);
  upCommand(program, shell);
  program.commandsGroup('See:');
  seeCommands(program, shell);
  program.commandsGroup('Understand:');
  understandCommands(program, shell);
  program.commandsGroup('Act:');
  actCommands(program, shell);
  program.commandsGroup('Set up:');
  setUpCommands(program, shell);
  completionCommand(program, shell);
  program.helpCommand('help [command]', 'Show the help of a command');
  program.commandsGroup('Services:');
  serviceCommands(program);
  for (const sub of program.commands) sub.summary(SHORT[sub.name()] ?? '');
  pointToHelp(program, 'kronos');
  return program;
}

/** An error of the command line as the other errors are written. */
const inWords = (text: string): string =>
  text
    .replace(/^error: /, 'kronos: ')
    .replace(/command-argument value '(.*)' is invalid for argument '(.*)'\./, "'$1' is not possible for <$2>.")
    .replace(/option '(.*)' argument '(.*)' is invalid\./, "'$2' is not possible for $1.");

/** What a command does, in one line of `kronos --help`; its own help says all of it. */
const SHORT: Readonly<Record<string, string>> = {
  close: 'End a started task that nothing else can end',
  evaluate: 'Take a snapshot and decide now',
  drain: 'Empty hosts: disable the service, then move the VMs away',
  undrain: 'End drains: enable the services again',
  cells: 'Move servers between cells',
  demo: 'Balance a simulated cloud with the four services',
  tap: 'Follow snapshots, decisions, results and commands',
  init: 'Inspect a cloud, write kronos.conf and policies.yaml',
  provision: 'Create or update the streams and buckets in NATS',
  fit: 'Count the VMs of a flavor that fit; plan room for more',
  headroom: 'Count free slots; find hosts for the VMs of failed hosts',
  advise: 'Recommend changes to Nova, policies and exporters',
  backtest: 'Show what Kronos would have done; needs no service',
  replay: 'Run recorded decisions again, and compare them',
  record: 'Take a snapshot, or copy a time range into a directory',
  evidence: 'Write a file that makes decisions again in any browser',
  explain: 'Show why a VM moved, or why nothing moved',
  up: 'Run NATS and the four services on this machine',
};

/** Commands of installations and of repairs, which `kronos --help` lists with `--all` only. */
const SELDOM: ReadonlySet<string> = new Set(['log', 'archive', 'completion']);

type AllOption = { readonly all?: boolean };

/** The commands that a help text lists. */
function visibleCommands(command: Command): Command[] {
  const all = new Help().visibleCommands(command);
  if (command.parent !== null || command.opts<AllOption>().all === true) return all;
  return all.filter((sub) => !isService(sub.name()) && !SELDOM.has(sub.name()));
}

/** An error about one command's arguments leads to that command's help; what stands after a subcommand's name is its own. */
function pointToHelp(command: Command, name: string): void {
  command.enablePositionalOptions();
  for (const sub of command.commands) {
    const path = `${name} ${sub.name()}`;
    sub.showHelpAfterError(`(${path} --help)`);
    if (!isService(sub.name())) sub.helpOption('-h, --help', 'Show this help');
    if (new Help().visibleCommands(sub).some((one) => one.name() === 'help'))
      sub.helpCommand('help [command]', 'Show the help of a command');
    pointToHelp(sub, path);
  }
}

/** Whatever a command writes goes through here. */
const withoutSecrets = (terminal: Terminal): Terminal => ({
  ...terminal,
  out: (text) => terminal.out(scrub(text)),
  err: (text) => terminal.err(scrub(text)),
});

/** `help explain vm` is `explain vm --help`: commander's own help command reads one word. */
const asHelp = (args: readonly string[]): readonly string[] =>
  args[0] === 'help' && args.length > 1 ? [...args.slice(1), '--help'] : args;

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
    await createProgram(shell).parseAsync(asHelp(args), { from: 'user' });
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
    return error instanceof UsageError || error instanceof CommandRefused || ('named' in error && error.named === true)
      ? 2
      : 1;
  } finally {
    process.exitCode = undefined;
  }
}
