import { foldLog, type PassedOver } from '@kronos/checkpoints';
import { type Config, DEFAULT_CONFIG_FILE, loadConfig, scopeOf } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import { streamNames } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import { createLogger, kronosVersion } from '@kronos/telemetry';
import type { Command } from 'commander';
import type { Shell } from './shell.ts';

/** What every command that reads the configuration takes. */
export type ConfigOption = { readonly config?: string };

/** Where kronos.conf is when `--config` does not say. */
const CONFIG_VARIABLE = 'KRONOS_CONFIG';

export const withConfig = (command: Command): Command =>
  command.option(
    '-c, --config <file>',
    `Path of kronos.conf (default: $${CONFIG_VARIABLE}, else ${DEFAULT_CONFIG_FILE})`,
  );

export const configFile = (shell: Shell, { config }: ConfigOption): string | undefined =>
  config ?? (shell.env[CONFIG_VARIABLE] || undefined);

/** The configuration that a command works with. @throws ConfigError */
export const configOf = (shell: Shell, options: ConfigOption): Config =>
  loadConfig({ file: configFile(shell, options), env: shell.env, role: 'cli' }).config;

/** The configuration and the event log, as commands use them. */
export type Session = {
  readonly config: Config;
  readonly log: EventLog;
  /** Aggregates in scope, `_unassigned_` for the pool. */
  readonly scope: readonly string[];
};

/** A logger for connections of commands: people are told by the commands themselves. */
export const quiet = () => createLogger({ service: 'cli', version: kronosVersion, level: 'silent', format: 'json' });

/**
 * Runs a command on the event log, under the CLI's own NATS user.
 *
 * @throws ConfigError, NatsUnreachable, NatsRefused, NotProvisioned
 */
export async function withSession<T>(
  shell: Shell,
  options: ConfigOption,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const config = configOf(shell, options);
  const log = await connectLog(config, 'cli', quiet());
  try {
    await log.verify({ streams: [streamNames.log], buckets: [], taskConsumers: [] });
    return await run({ config, log, scope: scopeOf(config) });
  } finally {
    await log.close();
  }
}

/** Says that a checkpoint was not used. */
export const tellPassedOver =
  (shell: Shell) =>
  ({ sequence, problem }: PassedOver): void =>
    shell.terminal.err(`kronos: the checkpoint at event ${sequence} is passed over: ${problem}\n`);

/** The log folded up to its last event. */
export async function currentState(shell: Shell, log: EventLog): Promise<LogState> {
  const view = await foldLog(log, { onPassedOver: tellPassedOver(shell) });
  try {
    return view.at().state;
  } finally {
    await view.close();
  }
}
