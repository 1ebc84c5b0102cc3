import { loadConfig, scopeOf, storageLimits } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import { createLogger, kronosVersion } from '@kronos/telemetry';
import type { Command } from 'commander';
import { configFile, withConfig } from '../open.ts';
import type { Shell } from '../shell.ts';

export function provisionCommand(program: Command, shell: Shell): void {
  const { terminal } = shell;
  withConfig(program.command('provision'))
    .description('Create or update the streams, durables and buckets in NATS; idempotent')
    .option('--json', 'Print the changes as JSON')
    .action(async (options: { config?: string; json?: boolean }) => {
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
        if (options.json === true) {
          terminal.out(`${JSON.stringify(report, null, 2)}\n`);
          return;
        }
        for (const what of report.created) terminal.out(`created    ${what}\n`);
        for (const { what, fields } of report.changed) terminal.out(`changed    ${what} (${fields.join(', ')})\n`);
        for (const what of report.unchanged) terminal.out(`unchanged  ${what}\n`);
        for (const what of report.kept)
          terminal.out(
            `kept       ${what}: this server cannot change it; the limit of its account holds (deploy/nats)\n`,
          );
        for (const what of report.extra) terminal.out(`left alone ${what}: no aggregate in scope uses it\n`);
      } finally {
        await log.close();
      }
    });
}
