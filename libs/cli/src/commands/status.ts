import type { Command } from 'commander';
import { type ConfigOption, currentState, withConfig, withSession } from '../open.ts';
import type { Shell } from '../shell.ts';
import { collectStatus } from '../status/collect.ts';
import { renderStatus } from '../status/render.ts';
import { examples, printJson } from './help.ts';

export function statusCommand(program: Command, shell: Shell): void {
  withConfig(program.command('status'))
    .description('is all well, what is it doing, what is it waiting for')
    .option('--json', 'print everything as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['kronos status', 'one screen'],
        ['watch -c kronos status', 'again and again'],
        ['kronos status --json | jq .alarms', 'for monitoring'],
      )}\n\nExit status: 0 all is well, 1 there is something to look at.`,
    )
    .action(async (options: ConfigOption & { json?: boolean }) => {
      await withSession(shell, options, async (session) => {
        const status = await collectStatus(session, await currentState(shell, session.log), shell.now());
        if (options.json === true) printJson(shell.terminal, status);
        else shell.terminal.out(renderStatus(shell.terminal, status));
        if (!status.well) process.exitCode = 1;
      });
    });
}
