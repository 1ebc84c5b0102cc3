import { stat } from 'node:fs/promises';
import { type ArchiveReport, installationOf, type RawEvent, readArchive, verifyArchive } from '@kronos/archive';
import { foldLog, readIdentity, stateInstallation } from '@kronos/checkpoints';
import { loadConfig, scopeOf } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import { type Actor, streamNames } from '@kronos/contracts';
import { lostRequests } from '@kronos/cycle';
import type { EventLog } from '@kronos/eventlog';
import { aggregateState, inForce } from '@kronos/projections';
import { kronosVersion } from '@kronos/telemetry';
import type { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { type ConfigOption, configFile, quiet, withConfig } from '../open.ts';
import { type Progress, progressBar } from '../progress.ts';
import type { Shell } from '../shell.ts';
import { count } from '../terminal.ts';
import { when } from '../times.ts';
import { examples, printJson } from './help.ts';

type ArchiveOptions = ConfigOption & { readonly json?: boolean };

/** archive verify | restore. */
export function archiveCommands(program: Command, shell: Shell): void {
  const archive = program.command('archive').description("Verify or restore the ledger's copy of the event log");

  archive
    .command('verify')
    .description('Check the chain of an archive: every event, and each file against the previous one')
    .argument('<directory>', 'Archive directory: [ledger] archive_dir, or a copy of it')
    .option('--json', 'Print the findings as JSON')
    .addHelpText(
      'after',
      `${examples([
        'kronos archive verify /var/lib/kronos/archive',
        'is it whole?',
      ])}\n\nExit status 1: something in it was changed, reordered or is missing: the file\nand the place are named. A cut right behind a batch of events at its end cannot\nbe seen: look at how far it reaches.`,
    )
    .action(async (directory: string, options: ArchiveOptions) => {
      const report = await read(shell, directory);
      if (options.json === true) printJson(shell.terminal, { directory, ...named(report) });
      else shell.terminal.out(`${describe(directory, report, shell.now())}\n`);
    });

  withConfig(archive.command('restore'))
    .description('Restore an archive to an empty NATS server, event by event')
    .argument('<directory>', 'Archive directory: [ledger] archive_dir, or a copy of it')
    .option('--json', 'Print the changes as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['kronos provision --for-restore', 'first: the empty streams'],
        ['kronos archive restore /backup/archive', 'then, with every service stopped'],
      )}\n\nIt needs the NATS user restorer, who may publish all that was on the log:\nOS_NATS__USER=restorer OS_NATS__PASSWORD=... kronos archive restore ...\nA log that holds anything else is refused. An interrupted restore goes on where\nit stopped. Tasks that had not ended are put back on the work queue. The log then\ngoes on under a new installation id: services wait for that when it ends before\nwhat they have seen.\nExit status 1: refused, or the archive is not whole: then nothing is written.`,
    )
    .action(async (directory: string, options: ArchiveOptions) => {
      const report = await read(shell, directory);
      const { config } = loadConfig({ file: configFile(shell, options), env: shell.env, role: 'cli' });
      const log = await connectLog(config, 'cli', quiet());
      try {
        await log.verify({
          streams: [streamNames.log, streamNames.migrations],
          buckets: [],
          taskConsumers: scopeOf(config),
        });
        const restored = await restore(shell, log, directory, report);
        if (options.json === true) printJson(shell.terminal, { directory, ...named(report), ...restored });
        else tell(shell, directory, report, restored);
      } finally {
        await log.close();
      }
    });
}

/** @throws UsageError where there is no archive, ArchiveBroken where it is not whole */
async function read(shell: Shell, directory: string): Promise<ArchiveReport> {
  const there = await stat(directory).catch(() => null);
  const remedy = 'Name the directory of [ledger] archive_dir, or a copy of it.';
  if (there?.isDirectory() !== true) throw new UsageError(`there is no directory ${directory}`, remedy);
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
      'the log holds one event, the installation id that kronos provision gave it, and no archive fits behind that',
      'Delete the stream (nats stream rm KRONOS_LOG) and run kronos provision --for-restore, then this again.',
    );
  const again =
    stated?.statement === 'restored' &&
    stated.sequence === (report.last ?? 0) + 1 &&
    stated.sequence === identity.lastSequence;
  const events = watched(readArchive(directory), progress.next);
  const all = again ? followedBy(events, log.copy({ from: stated.sequence })) : events;
  const { restored, skipped } = await log.restore(all).finally(progress.end);
  const installation = again
    ? stated
    : await stateInstallation(log, 'restored', {
        by: { service: 'provisioner', instance: shell.person, version: kronosVersion },
        comment: `from an archive of ${report.events} events`,
        nowMs: shell.now(),
        installationId: shell.newId(),
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
  // What is put on the work queue must not come from a checkpoint that nobody has verified.
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

/** A bar that is moved once per so many events. */
const counting = (progress: Progress, total: number | null) => {
  let done = 0;
  return {
    next: () => {
      if (++done % REDRAW_EVENTS === 0) progress.update(done, total);
    },
    end: () => progress.end(),
  };
};

async function* watched(events: AsyncIterable<RawEvent>, next: () => void): AsyncGenerator<RawEvent> {
  for await (const event of events) {
    yield event;
    next();
  }
}

const named = ({ lastStoredAtMs, torn, ...report }: ArchiveReport) => ({
  ...report,
  lastStoredAt: lastStoredAtMs === null ? null : new Date(lastStoredAtMs).toISOString(),
  unfinishedBytes: torn,
});

const describe = (directory: string, report: ArchiveReport, nowMs: number): string => {
  const { files, events, first, last, lastStoredAtMs, torn } = report;
  const tail = torn === 0 ? '' : `; ${count(torn, 'byte')} behind it were not written to their end and are not read`;
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
  out(
    `restored ${count(restored, 'event')}${present > 0 ? `; ${count(present, 'event')} had been there already` : ''}\n`,
  );
  out(`the log goes on as installation ${installationId}\n`);
  if (requeued > 0) out(`put ${count(requeued, 'task')} that had not ended back on the work queue\n`);
  out(
    'What happened after its last event is not known to this log: compare with Nova,\nthen start the services. After kronos pause --all nothing is planned or started\nuntil kronos resume --all.\n',
  );
}
