import type { Command } from 'commander';
import type { UpOptions } from '../commands/up.ts';
import { examples } from '../grammar/help.ts';
import { withConfig } from '../grammar/shared.ts';
import type { Shell } from '../shell.ts';

export function upCommand(program: Command, shell: Shell): void {
  withConfig(program.command('up'))
    .description('Run NATS and the four services on this machine, until Ctrl-C')
    .option('--data <directory>', 'Directory of the log and of its archive (default: kronos-data beside kronos.conf)')
    .addHelpText(
      'after',
      `${examples([
        'kronos init --cloud prod && kronos up -c kronos.conf',
        'from a cloud to its first plan in dry run',
      ])}\n\nFor a trial or a small cloud. It starts a nats-server at [nats] servers, creates the streams, and restarts what ends. A second start continues where the first one ended.\nWith /etc/kronos/kronos.conf the data are in /var/lib/kronos.\nTo move to a NATS cluster later: docs/install.md.`,
    )
    .action(async (options: UpOptions) => {
      process.exitCode = await (await import('../commands/up.ts')).up(shell, options);
    });
}
