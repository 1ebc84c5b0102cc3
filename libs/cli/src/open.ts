import { type FoldOptions, foldLog } from '@kronos/checkpoints';
import type { Config } from '@kronos/config';
import { loadConf, scopeOf } from '@kronos/config/conf';
import { connectLog } from '@kronos/connect/nats';
import { type Snapshot, streamNames } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import { type History, liveHistory, newestSnapshots } from '@kronos/replay';
import { UsageError } from './errors.ts';
import { CONFIG_VARIABLE, type ConfigOption } from './grammar/shared.ts';
import type { Shell } from './shell.ts';

export const configFile = (shell: Shell, { config }: ConfigOption): string | undefined =>
  config ?? (shell.env[CONFIG_VARIABLE] || undefined);

/** The configuration that a command works with. @throws ConfigError */
export const configOf = (shell: Shell, options: ConfigOption): Config =>
  loadConf({ file: configFile(shell, options), env: shell.env, role: 'cli' });

/** The configuration and the event log, as commands use them. */
export type OpenLog = {
  readonly config: Config;
  readonly log: EventLog;
  /** What the log and the kept snapshots hold, under the address of the log. */
  readonly history: History;
  /** Aggregates in scope, `_unassigned_` for the pool. */
  readonly scope: readonly string[];
};

/**
 * Runs a command on the event log, under the CLI's own NATS user.
 *
 * @throws ConfigError, NatsUnreachable, NatsRefused, NotProvisioned
 */
export async function withSession<T>(
  shell: Shell,
  options: ConfigOption,
  run: (session: OpenLog) => Promise<T>,
): Promise<T> {
  const config = configOf(shell, options);
  const log = await connectLog(config, 'cli', null);
  try {
    await log.verify({ streams: [streamNames.log], buckets: [], taskConsumers: [] });
    const history = liveHistory(log, config.nats.servers.join(', '), tellCheckpoints(shell));
    return await run({ config, log, history, scope: scopeOf(config) });
  } finally {
    await log.close();
  }
}

/** The newest snapshot of each of these aggregates. @throws UsageError where none has one */
export async function requireSnapshots(log: EventLog, aggregates: readonly string[]): Promise<Snapshot[]> {
  const snapshots = await newestSnapshots(log, aggregates);
  if (snapshots.length === 0) throw new UsageError('there is no snapshot yet', 'kronos status says why.');
  return snapshots;
}

/** Says on stderr which checkpoints a command skips because something is wrong with them. */
export const tellCheckpoints = (shell: Shell): Required<Pick<FoldOptions, 'onSkipped'>> => ({
  onSkipped({ sequence, problem, otherVersion }) {
    if (!otherVersion) shell.terminal.err(`kronos: skipped the checkpoint at event ${sequence}: ${problem}\n`);
  },
});

/** The log folded up to its last event. */
export async function currentState(shell: Shell, log: EventLog): Promise<LogState> {
  const view = await foldLog(log, tellCheckpoints(shell));
  try {
    return view.at().state;
  } finally {
    await view.close();
  }
}
