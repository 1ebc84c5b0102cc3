import { type ArchivedEvent, type ArchiveReport, installationOf, readArchive, verifyArchive } from '@kronos/archive';
import { foldLog, readIdentity, stateInstallation } from '@kronos/checkpoints';
import { scopeOf } from '@kronos/config/conf';
import { connectLog } from '@kronos/connect/nats';
import { type Actor, ALL, count, iso, streamNames, subject } from '@kronos/contracts';
import { lostRequests } from '@kronos/cycle';
import type { EventLog } from '@kronos/eventlog';
import { aggregateState, inForce } from '@kronos/projections';
import { kronosVersion } from '@kronos/telemetry/version';
import { UsageError } from '../errors.ts';
import type { ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configOf } from '../open.ts';
import { answer, answerInParts } from '../output.ts';
import { type Progress, progressBar } from '../progress.ts';
import { requireDirectory } from '../recordings.ts';
import type { Shell } from '../shell.ts';
import { when } from '../times.ts';

/** The subject of the statements about an installation. */
const STATEMENTS = subject('controls', ALL);

export type ArchiveCommandOptions = ConfigOption & OutputOption;

/** kronos archive verify. */
export async function archiveVerify(shell: Shell, directory: string, options: ArchiveCommandOptions): Promise<void> {
  const report = await read(shell, directory);
  await answer(shell, options, { directory, ...named(report) }, () => `${describe(directory, report, shell.now())}\n`);
}

/** kronos archive restore. */
export async function archiveRestore(shell: Shell, directory: string, options: ArchiveCommandOptions): Promise<void> {
  const report = await read(shell, directory);
  const config = configOf(shell, options);
  const log = await connectLog(config, 'cli', null);
  try {
    await log.verify({
      streams: [streamNames.log, streamNames.migrations],
      buckets: [],
      taskConsumers: scopeOf(config),
    });
    const restored = await restore(shell, log, directory, report);
    await answerInParts(shell, options, { directory, ...named(report), ...restored }, (on) =>
      tell(on, directory, report, restored),
    );
  } finally {
    await log.close();
  }
}

/** @throws UsageError where there is no archive, ArchiveBroken where it is not whole */
async function read(shell: Shell, directory: string): Promise<ArchiveReport> {
  const remedy = 'Name the directory of [ledger] archive_dir, or a copy of it.';
  requireDirectory(directory, remedy);
  const progress = counting(progressBar(shell.terminal, 'reading', shell.now), null);
  const report = await verifyArchive(directory, progress.next).finally(progress.end);
  if (report.events === 0) throw new UsageError(`${directory} holds no events of an archive`, remedy);
  return report;
}

type Restored = {
  readonly restored: number;
  readonly present: number;
  readonly requeued: number;
  /** Under which the log goes on. */
  readonly installationId: string;
};

async function restore(shell: Shell, log: EventLog, directory: string, report: ArchiveReport): Promise<Restored> {
  const progress = counting(progressBar(shell.terminal, 'restoring', shell.now), report.events);
  // The statement of an earlier run of this restore is all that may stand behind the archive's events.
  const identity = await readIdentity(log);
  const stated = inForce(identity);
  if (identity.lastSequence === 1 && stated !== null && stated.id !== (await firstInstallation(directory)))
    throw new UsageError(
      'the log already holds one event: the installation id that kronos provision wrote. An archive needs an empty log',
      'Delete the stream (nats stream rm KRONOS_LOG), run kronos provision --for-restore, then run this command again.',
    );
  const again =
    stated?.statement === 'restored' &&
    stated.sequence === (report.last ?? 0) + 1 &&
    stated.sequence === identity.lastSequence;
  // The number comes from the archive and not from the log: a statement that another process makes during the restore must conflict with ours.
  let expectedLastSequence = 0;
  const events = watched(readArchive(directory), (event) => {
    if (event.subject === STATEMENTS) expectedLastSequence = event.sequence;
    progress.next();
  });
  const all = again ? followedBy(events, log.copy({ from: stated.sequence })) : events;
  const { restored, skipped } = await log.restore(all).finally(progress.end);
  const installation = again
    ? stated
    : await stateInstallation(log, 'restored', {
        by: { service: 'provisioner', instance: shell.person, version: kronosVersion },
        comment: `from an archive of ${report.events} events`,
        nowMs: shell.now(),
        installationId: shell.newId(),
        expectedLastSequence,
      });
  const present = skipped - (again ? 1 : 0);
  return { restored, present, requeued: await requeue(shell, log), installationId: installation.id };
}

/** The installation id that an archive begins with; null: its log got one later. */
async function firstInstallation(directory: string): Promise<string | null> {
  for await (const event of readArchive(directory)) return installationOf(event);
  return null;
}

async function* followedBy<T>(first: AsyncIterable<T>, second: AsyncIterable<T>): AsyncGenerator<T> {
  yield* first;
  yield* second;
}

/** Puts what had not ended back on the work queue, which is in no archive. What is on it already is harmless twice. */
async function requeue(shell: Shell, log: EventLog): Promise<number> {
  // Tasks for the work queue must not come from an unverified checkpoint.
  const view = await foldLog(log, { checkpoints: false });
  const state = view.at().state;
  await view.close();
  const by: Actor = { service: 'restorer', instance: shell.person, version: kronosVersion };
  let requeued = 0;
  for (const aggregate of state.aggregates.keys())
    for (const request of lostRequests(aggregateState(state, aggregate), by, shell.now())) {
      await log.append(request);
      requeued++;
    }
  return requeued;
}

const REDRAW_EVENTS = 500;

/** A progress bar that is redrawn once per REDRAW_EVENTS. */
const counting = (progress: Progress, total: number | null) => {
  let done = 0;
  return {
    next: () => {
      if (++done % REDRAW_EVENTS === 0) progress.update(done, total);
    },
    end: () => progress.end(),
  };
};

async function* watched(
  events: AsyncIterable<ArchivedEvent>,
  next: (event: ArchivedEvent) => void,
): AsyncGenerator<ArchivedEvent> {
  for await (const event of events) {
    yield event;
    next(event);
  }
}

const named = ({ lastStoredAtMs, torn, ...report }: ArchiveReport) => ({
  ...report,
  lastStoredAt: lastStoredAtMs === null ? null : iso(lastStoredAtMs),
  unfinishedBytes: torn,
});

const describe = (directory: string, report: ArchiveReport, nowMs: number): string => {
  const { files, events, first, last, lastStoredAtMs, torn } = report;
  const tail = torn === 0 ? '' : `; the last ${count(torn, 'byte')} are an incomplete event and are ignored`;
  return `${directory} is whole: ${count(events, 'event')} (${first} to ${last}) in ${count(files, 'file')}, the last of ${when(lastStoredAtMs ?? 0, nowMs)}${tail}`;
};

function tell(
  shell: Shell,
  directory: string,
  report: ArchiveReport,
  { restored, present, requeued, installationId }: Restored,
): void {
  const { out } = shell.terminal;
  out(`${describe(directory, report, shell.now())}\n`);
  out(`restored ${count(restored, 'event')}${present > 0 ? `; ${count(present, 'event')} were already there` : ''}\n`);
  out(`the log continues as installation ${installationId}\n`);
  if (requeued > 0) out(`requeued ${count(requeued, 'task')} that had not ended\n`);
  out(
    'The log does not hold anything after its last event: compare with Nova, then start\nthe services. To plan and start nothing until you have compared: kronos pause --all.\n',
  );
}
