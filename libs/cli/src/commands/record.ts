import { ALL, commandSnapshotId, count, some, streamNames } from '@kronos/contracts';
import { control } from '@kronos/operator';
import { checkEmpty, collect, recordRange } from '@kronos/replay';
import { kronosVersion } from '@kronos/telemetry/version';
import { UsageError } from '../errors.ts';
import type { AggregateOption, OperatorOptions } from '../grammar/shared.ts';
import { type OpenLog, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { progressBar, whileWaiting } from '../progress.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { parseDuration, partOfRange } from '../times.ts';
import { give } from './give.ts';
import { tellLate } from './late.ts';

export type RecordCommandOptions = OperatorOptions &
  AggregateOption & {
    readonly to?: string;
    readonly since?: string;
    readonly until?: string;
    readonly anonymize?: boolean;
    readonly wait: string;
  };

/** kronos record. */
export async function record(shell: Shell, options: RecordCommandOptions): Promise<void> {
  if (options.to === undefined)
    for (const name of ['since', 'until', 'anonymize'] as const)
      if (options[name] !== undefined) throw new UsageError(`--${name} needs --to`, 'Add --to DIRECTORY.');
  if (options.until !== undefined && options.since === undefined)
    throw new UsageError('--until needs --since', 'Set the start of the range: --since 2h, or --since all.');
  await withSession(shell, options, async (session) => {
    const aggregates = filterAggregates(session.scope, options.aggregate);
    if (options.to !== undefined) await checkEmpty(options.to);
    const ids = options.since === undefined ? await takeNow(shell, session, aggregates, options) : null;
    if (ids !== null && ids.length === 0) {
      process.exitCode = 1;
      return;
    }
    if (options.to !== undefined)
      await writeDirectory(shell, session, options, { aggregates, directory: options.to, ids });
    else await answer(shell, options, { snapshots: ids }, () => (ids ?? []).map((id) => `recorded ${id}\n`).join(''));
  });
}

/** Asks the scorer for snapshots to keep, and waits for them. Gives the ids of those that came. */
async function takeNow(
  shell: Shell,
  session: OpenLog,
  aggregates: readonly string[],
  options: RecordCommandOptions,
): Promise<string[]> {
  const waitMs = parseDuration('--wait', options.wait);
  const since = (await session.log.lastSequence(streamNames.snapshots)) + 1;
  const [only] = aggregates;
  const address = aggregates.length === 1 && only !== undefined ? only : ALL;
  const told = await give(shell, session, options, (_, asking) =>
    control('evaluation.requested', address, { purpose: 'record' }, asking),
  );
  const wanted = new Map(aggregates.map((name) => [commandSnapshotId(name, told.commandId), name]));
  const ids = await whileWaiting(
    shell,
    { what: count(wanted.size, 'snapshot'), atMostMs: waitMs },
    collect(
      session.log.tail({ families: ['snapshots'], aggregates, since }),
      (message) =>
        message.type === 'snapshot.taken' && wanted.has(message.data.snapshotId) ? message.data.snapshotId : null,
      wanted.size,
      AbortSignal.timeout(waitMs),
    ),
  );
  const late = [...wanted].filter(([id]) => !ids.includes(id)).map(([, name]) => name);
  if (late.length > 0) await tellLate(shell, session, { what: 'snapshot', asked: told, aggregates: late, waitMs });
  return ids;
}

type Wanted = {
  readonly aggregates: readonly string[];
  readonly directory: string;
  /** Only these snapshots; null: those of the range. */
  readonly ids: readonly string[] | null;
};

async function writeDirectory(
  shell: Shell,
  { history }: OpenLog,
  options: RecordCommandOptions,
  { aggregates, directory, ids }: Wanted,
): Promise<void> {
  const { terminal } = shell;
  const between = partOfRange(options, shell.now());
  const progress = progressBar(terminal, 'recording', shell.now);
  const recorded = await recordRange(history, directory, {
    range: { aggregates, ...between },
    ...(ids === null ? {} : { only: ids }),
    anonymize: options.anonymize === true,
    madeBy: `kronos ${kronosVersion}`,
    nowMs: shell.now(),
    onProgress: progress.update,
  }).finally(progress.end);
  if (recorded.missing.length > 0) process.exitCode = 1;
  const { snapshots, events, missing } = recorded;
  if (missing.length > 0)
    terminal.err(`kronos: the bodies of ${count(missing.length, 'snapshot')} are gone: ${some(missing)}\n`);
  const next =
    ids === null
      ? `kronos replay ${directory} runs its decisions again.\n`
      : `kronos replay ${directory} --what-if shows what would be planned on it now; with --since a range is kept,\nwhose decisions can be run again.\n`;
  await answer(
    shell,
    options,
    recorded,
    () =>
      `recorded ${count(snapshots, 'snapshot')} and ${count(events, 'event')} of the log into ${directory}\n${next}`,
  );
}
