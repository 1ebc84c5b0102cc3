import { type NamedLog, nameLog } from '@kronos/checkpoints';
import { loadConfig, scopeOf, storageLimits } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import { createLogger, kronosVersion } from '@kronos/telemetry';
import type { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { type ConfigOption, configFile, withConfig } from '../open.ts';
import type { Shell } from '../shell.ts';
import { examples } from './help.ts';

type ProvisionCommandOptions = ConfigOption & {
  readonly newLog?: boolean;
  readonly forRestore?: boolean;
  readonly comment?: string;
  readonly json?: boolean;
};

export function provisionCommand(program: Command, shell: Shell): void {
  const { terminal } = shell;
  withConfig(program.command('provision'))
    .description('Create or update the streams, durables and buckets in NATS, and name the log; idempotent')
    .option('--new-log', 'State that the log is used as it is, whatever was seen of it before')
    .option('--for-restore', 'Leave the log empty for kronos archive restore')
    .option('-m, --comment <text>', 'Record a reason (with --new-log)')
    .option('--json', 'Print the changes as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['kronos provision', 'create what is missing, and give the log its installation id'],
        ['kronos provision --for-restore', 'before kronos archive restore, on an empty server'],
        ['kronos provision --new-log -m "the archive is lost too"', 'begin without memory'],
      )}\n\nExit status 1: refused, or checkpoints or snapshots have seen another log or more\nof this one: state which it is with --new-log or kronos archive restore.`,
    )
    .action(async (options: ProvisionCommandOptions) => {
      if (options.newLog === true && options.forRestore === true)
        throw new UsageError('--new-log and --for-restore exclude each other', 'Give the one that is meant.');
      if (options.comment !== undefined && options.newLog !== true)
        throw new UsageError('--comment is for --new-log', 'Leave it out.');
      const { config } = loadConfig({ file: configFile(shell, options), env: shell.env, role: 'provision' });
      const logger = createLogger({ service: 'provision', version: kronosVersion, level: 'silent', format: 'json' });
      const log = await connectLog(config, 'provisioner', logger);
      try {
        const report = await log.provision({
          limits: storageLimits(config),
          replicas: config.nats.replicas,
          aggregates: scopeOf(config),
          ackWaitSeconds: config.nats.ackWait,
        });
        const told = () => {
          for (const what of report.created) terminal.out(`created    ${what}\n`);
          for (const { what, fields } of report.changed) terminal.out(`changed    ${what} (${fields.join(', ')})\n`);
          for (const what of report.unchanged) terminal.out(`unchanged  ${what}\n`);
          for (const what of report.extra) terminal.out(`left alone ${what}: no aggregate in scope uses it\n`);
        };
        if (options.json !== true) told();
        const named =
          options.forRestore === true
            ? null
            : await nameLog(log, {
                aggregates: scopeOf(config),
                by: { service: 'provisioner', instance: shell.person, version: kronosVersion },
                nowMs: shell.now(),
                installationId: shell.newId(),
                newLog: options.newLog === true,
                comment: options.comment ?? null,
              });
        if (options.json === true) terminal.out(`${JSON.stringify({ ...report, ...shown(named) }, null, 2)}\n`);
        else if (named === null) terminal.out('left alone the log: kronos archive restore DIRECTORY fills it\n');
        else
          terminal.out(
            `${named.created ? 'created   ' : 'unchanged '} installation ${named.installation.id} (event ${named.installation.sequence} of the log)\n`,
          );
      } finally {
        await log.close();
      }
    });
}

const shown = (named: NamedLog | null) => ({
  installation: named === null ? null : { ...named.installation, created: named.created },
});
