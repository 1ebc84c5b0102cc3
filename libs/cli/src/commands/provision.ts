import type { NamedLog } from '@kronos/checkpoints';
import { loadConf } from '@kronos/config/conf';
import { connectLog } from '@kronos/connect/nats';
import { UsageError } from '../errors.ts';
import type { ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configFile } from '../open.ts';
import { answer, isStructured } from '../output.ts';
import { nameInstallation, provisionStreams } from '../provisioning.ts';
import type { Shell } from '../shell.ts';

export type ProvisionCommandOptions = ConfigOption &
  OutputOption & { readonly newLog?: boolean; readonly forRestore?: boolean; readonly comment?: string };

/** kronos provision. */
export async function provision(shell: Shell, options: ProvisionCommandOptions): Promise<void> {
  const { terminal } = shell;
  if (options.newLog === true && options.forRestore === true)
    throw new UsageError('--new-log and --for-restore cannot be used together', 'Give one of them.');
  if (options.comment !== undefined && options.newLog !== true)
    throw new UsageError('--comment needs --new-log', 'Leave it out.');
  const config = loadConf({ file: configFile(shell, options), env: shell.env, role: 'provision' });
  const log = await connectLog(config, 'provisioner', null);
  try {
    const report = await provisionStreams(log, config);
    if (!isStructured(options)) {
      // Told before the log is named, which may be refused.
      for (const what of report.created) terminal.out(line('created', what));
      for (const { what, fields } of report.changed) terminal.out(line('changed', `${what} (${fields.join(', ')})`));
      for (const what of report.unchanged) terminal.out(line('unchanged', what));
      for (const what of report.extra)
        terminal.out(line('skipped', `${what}: no aggregate in scope and no sink uses it`));
    }
    const named =
      options.forRestore === true
        ? null
        : await nameInstallation(log, config, {
            by: shell.person,
            nowMs: shell.now(),
            installationId: shell.newId(),
            ...(options.newLog === true ? { accepted: { comment: options.comment ?? null } } : {}),
          });
    await answer(shell, options, { ...report, ...shown(named) }, () =>
      named === null
        ? line('skipped', 'the log: kronos archive restore DIRECTORY fills it')
        : line(
            named.created ? 'created' : 'unchanged',
            `installation ${named.installation.id} (event ${named.installation.sequence} of the log)`,
          ),
    );
  } finally {
    await log.close();
  }
}

/** One part of the installation, and what the command did with it. */
const line = (did: 'created' | 'changed' | 'unchanged' | 'skipped', what: string): string =>
  `${did.padEnd('unchanged'.length)}  ${what}\n`;

const shown = (named: NamedLog | null) => ({
  installation: named === null ? null : { ...named.installation, created: named.created },
});
