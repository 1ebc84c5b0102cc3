import { kronosVersion } from '@kronos/telemetry/version';
import type { Command } from 'commander';
import type { ArchiveCommandOptions } from '../commands/archive.ts';
import type { ConfigCheckOptions } from '../commands/config.ts';
import type { InitOptions } from '../commands/init.ts';
import type { NotifyTestOptions } from '../commands/notify.ts';
import type { ProvisionCommandOptions } from '../commands/provision.ts';
import { examples } from '../grammar/help.ts';
import { httpUrl, type OutputOption, repeated, withConfig, withOutput } from '../grammar/shared.ts';
import { answer } from '../output.ts';
import type { Shell } from '../shell.ts';

const versions = { kronos: kronosVersion, node: process.versions.node };

const HEADER_HELP = 'Send NAME: VALUE with each query, such as X-Scope-OrgID: TENANT; repeatable';

/** Commands that set an installation up. */
export function setUpCommands(program: Command, shell: Shell): void {
  initCommand(program, shell);
  configCommands(program, shell);
  provisionCommand(program, shell);
  keysCommand(program, shell);
  archiveCommands(program, shell);
  notifyCommands(program, shell);
  versionCommand(program, shell);
}

function initCommand(program: Command, shell: Shell): void {
  program
    .command('init')
    .description('Inspect a cloud and its Prometheus, and write kronos.conf and policies.yaml')
    .option('--cloud <name>', 'Cloud in clouds.yaml (default: $OS_CLOUD)')
    .option('--clouds-file <file>', 'Path of clouds.yaml (default: as openstackclient finds it)')
    .option('--region <name>', 'Region of the cloud (default: $OS_REGION_NAME, then the one in clouds.yaml)')
    .option('--prometheus <url>', 'URL of Prometheus (default: balance by allocations)', httpUrl('--prometheus'))
    .option(
      '--prometheus-auth <kind>',
      'Set [prometheus] auth: static, or keystone (OpenStack Aetos; needs no --prometheus)',
    )
    .option('--prometheus-header <header>', HEADER_HELP, repeated)
    .option('--prometheus-token-file <file>', 'Send the bearer token in this file')
    .option('--prometheus-user <name>', 'Send this user, with --prometheus-password-file')
    .option('--prometheus-password-file <file>', 'Send the password in this file')
    .option('--prometheus-ca <file>', 'Verify the server with the CA certificates (PEM) in this file')
    .option('--nats <url>', 'URL of NATS', 'nats://127.0.0.1:4222')
    .option('--to <directory>', 'Directory for both files', '.')
    .option('--force', 'Overwrite files that exist')
    .addHelpText(
      'after',
      examples(
        [
          'kronos init --cloud prod --prometheus http://prometheus:9090',
          'write both files into this directory and check them',
        ],
        [
          'kronos init --cloud prod --prometheus https://mimir/prometheus --prometheus-header "X-Scope-OrgID: ops"',
          'a server with tenants',
        ],
        ['kronos init --cloud prod --prometheus-auth keystone', 'the Prometheus that the catalog of the cloud has'],
      ),
    )
    .action(async (options: InitOptions) => (await import('../commands/init.ts')).init(options, shell));
}

function configCommands(program: Command, shell: Shell): void {
  const config = program.command('config').description('Check the configuration, or print a sample of it');
  withOutput(withConfig(config.command('check')))
    .description(
      'Validate both files, connect to everything, and judge every query as the scorer does (also kronos-test-config)',
    )
    .addHelpText(
      'after',
      `${examples(['kronos config check', 'before the first start, and after each change'])}\n\nExit status: 0 when nothing failed, 1 otherwise.`,
    )
    .action(async (options: ConfigCheckOptions) => (await import('../commands/config.ts')).configCheck(shell, options));
  config
    .command('sample')
    .description('Print kronos.conf with every option, its meaning and its default')
    .option('--policies', 'Print a sample policies.yaml instead')
    .addHelpText('after', examples(['kronos config sample > kronos.conf', 'start without kronos init']))
    .action(async (options: { policies?: boolean }) =>
      (await import('../commands/config.ts')).configSampleCommand(shell, options),
    );
}

function provisionCommand(program: Command, shell: Shell): void {
  withOutput(withConfig(program.command('provision')))
    .description('Create or update the streams, durables and buckets in NATS, and name the log; idempotent')
    .option('--new-log', 'Accept the log as it is, even if services have seen another log or later events')
    .option('--for-restore', 'Leave the log empty for kronos archive restore')
    .option('-m, --comment <text>', 'Record a reason (with --new-log)')
    .addHelpText(
      'after',
      `${examples(
        ['kronos provision', 'create what is missing, and give the log its installation id'],
        ['kronos provision --for-restore', 'before kronos archive restore, on an empty server'],
        ['kronos provision --new-log -m "the archive is lost too"', 'start with an empty log'],
      )}\n\nExit status 1: refused, or checkpoints or snapshots come from another log or from events that this log lacks: use --new-log or kronos archive restore.`,
    )
    .action(async (options: ProvisionCommandOptions) =>
      (await import('../commands/provision.ts')).provision(shell, options),
    );
}

function keysCommand(program: Command, shell: Shell): void {
  program
    .command('keys')
    .description('Create an nkey for each NATS user of the services')
    .argument('<directory>', 'Directory for the seeds and for the public keys; seeds that are there stay')
    .addHelpText('after', examples(['kronos keys keys', 'write keys/scorer/nats.nk and so on, and keys/nats.env']))
    .action(async (directory: string) => (await import('../commands/keys.ts')).keys(shell, directory));
}

function notifyCommands(program: Command, shell: Shell): void {
  const notify = program.command('notify').description('Test the notifications of [notify:NAME]');
  withOutput(withConfig(notify.command('test')))
    .description('Send one test message to a sink and show the answer')
    .argument('<name>', 'Name of the sink: NAME of [notify:NAME]')
    .addHelpText(
      'after',
      `${examples([
        'kronos notify test ops-chat',
        'does the receiver take what the ledger sends?',
      ])}\n\nIt reads what the ledger reads, secrets included: run it where the ledger runs.\nExit status: 0 when the receiver took the message, 1 otherwise.`,
    )
    .action(async (name: string, options: NotifyTestOptions) =>
      (await import('../commands/notify.ts')).notifyTest(shell, name, options),
    );
}

function versionCommand(program: Command, shell: Shell): void {
  withOutput(program.command('version'))
    .description('Print the versions of Kronos and Node')
    .addHelpText('after', examples(['kronos version -o json', 'for scripts']))
    .action(async (options: OutputOption) =>
      answer(shell, options, versions, () => `kronos ${versions.kronos} (node ${versions.node})\n`),
    );
}

function archiveCommands(program: Command, shell: Shell): void {
  const archive = program.command('archive').description("Verify or restore the ledger's copy of the event log");
  withOutput(archive.command('verify'))
    .description('Check the chain of an archive: every event, and each file against the previous one')
    .argument('<directory>', 'Archive directory: [ledger] archive_dir, or a copy of it')
    .addHelpText(
      'after',
      `${examples([
        'kronos archive verify /var/lib/kronos/archive',
        'check that it is complete',
      ])}\n\nExit status 1: something in it was changed, reordered or is missing; the message\nnames the file and the place. The command cannot detect that whole batches were\ncut off at the end: check how far the archive reaches.`,
    )
    .action(async (directory: string, options: ArchiveCommandOptions) =>
      (await import('../commands/archive.ts')).archiveVerify(shell, directory, options),
    );

  withOutput(withConfig(archive.command('restore')))
    .description('Restore an archive to an empty NATS server, event by event')
    .argument('<directory>', 'Archive directory: [ledger] archive_dir, or a copy of it')
    .addHelpText(
      'after',
      `${examples(
        ['kronos provision --for-restore', 'first: the empty streams'],
        ['kronos archive restore /backup/archive', 'then, with every service stopped'],
      )}\n\nIt needs the NATS user restorer, who may publish all that was on the log:\nOS_NATS__USER=restorer OS_NATS__PASSWORD=... kronos archive restore ...\nA log that holds anything else is refused. An interrupted restore continues\nwhere it stopped. Tasks that had not ended are requeued. The log then\ngoes on under a new installation id: services wait for that when it ends before\nwhat they have seen.\nExit status 1: refused, or the archive is not whole: then nothing is written.`,
    )
    .action(async (directory: string, options: ArchiveCommandOptions) =>
      (await import('../commands/archive.ts')).archiveRestore(shell, directory, options),
    );
}
