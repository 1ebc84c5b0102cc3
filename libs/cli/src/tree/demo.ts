import type { Command } from 'commander';
import type { DemoOptions } from '../commands/demo.ts';
import { examples } from '../grammar/help.ts';
import { wholeNumber } from '../grammar/shared.ts';
import type { Shell } from '../shell.ts';

export function demoCommand(program: Command, { terminal }: Shell): void {
  program
    .command('demo')
    .description('Balance a simulated cloud with the four services and its own nats-server')
    .option('--keep', 'Keep running after the cloud is balanced, until Ctrl-C')
    .option('--seed <n>', 'Seed of the simulated cloud', wholeNumber('--seed', 1), 7)
    .option(
      '--speed <n>',
      'Run the simulated Nova this many times faster than real time',
      wholeNumber('--speed', 1),
      10,
    )
    .addHelpText(
      'after',
      `${examples(['kronos demo', 'until the cloud is balanced'], ['kronos demo --keep', 'and keep running, with a console'])}\n\nExit status: 0 when the cloud ended balanced, 1 otherwise.`,
    )
    .action(async (options: DemoOptions) => {
      process.exitCode = await (await import('../commands/demo.ts')).demo(terminal, options);
    });
}
