import { writeFileSync } from 'node:fs';
import {
  defaultEngineOptions,
  type EngineOptions,
  eventTimeMs,
  type LogEvent,
  type Snapshot,
  timeMs,
} from '@kronos/contracts';
import { generationsOf } from '@kronos/placement';
import { aggregateState, optionsOf } from '@kronos/projections';
import { firstStoredMs, newestSnapshots } from '@kronos/replay';
import { brokenGroups } from '../brokenGroups.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { currentState, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { openRecording, tellProblems } from '../recordings.ts';
import type { NewestFacts, ReportCycle } from '../report/figures.ts';
import { ReportFold, type ReportOptions } from '../report/fold.ts';
import { reportPage } from '../report/page.ts';
import { renderReport } from '../report/render.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { parseRange } from '../times.ts';

export type ReportCommandOptions = ConfigOption &
  OutputOption &
  AggregateOption & { readonly since: string; readonly until?: string; readonly html?: string };

/** kronos report: what Kronos did, or would have done. */
export async function report(
  shell: Shell,
  directory: string | undefined,
  options: ReportCommandOptions,
): Promise<void> {
  const nowMs = shell.now();
  const { sinceMs, untilMs } = parseRange(options, nowMs);
  const within = (event: LogEvent, storedAtMs: number): boolean => {
    const atMs = eventTimeMs(event.time, storedAtMs);
    return (sinceMs === null || atMs >= sinceMs) && (untilMs === null || atMs <= untilMs);
  };
  const cycles: ReportCycle[] = [];
  const folding = (optionsOf: ReportOptions['optionsOf']): ReportFold =>
    new ReportFold({ optionsOf, ...(options.html === undefined ? {} : { onCycle: (cycle) => cycles.push(cycle) }) });
  const newest = new Map<string, NewestFacts>();
  let fold: ReportFold;
  if (directory !== undefined) {
    const { history, problems } = await openRecording(shell, directory);
    fold = folding(() => defaultEngineOptions);
    for await (const stored of history.events()) {
      const { event } = stored;
      if (event.type === 'unreadable' || !(options.aggregate?.includes(event.aggregate) ?? true)) continue;
      // The options of a planner hold from before the range on.
      const storedAtMs = firstStoredMs(stored);
      if (event.type === 'planner.configured' || within(event, storedAtMs)) fold.add(event, storedAtMs);
    }
    tellProblems(shell, directory, problems);
  } else
    fold = await withSession(shell, options, async ({ log, scope }) => {
      const aggregates = filterAggregates(scope, options.aggregate);
      const state = await currentState(shell, log);
      const live = folding((name) => optionsOf(aggregateState(state, name)));
      const since = sinceMs === null ? 'all' : new Date(sinceMs);
      for await (const { message, problem, firstStoredAt } of log.tail({
        families: ['plans', 'results', 'controls'],
        aggregates,
        since,
        end: true,
      }))
        if (problem === undefined && within(message as LogEvent, firstStoredAt))
          live.add(message as LogEvent, firstStoredAt);
      for (const snapshot of await newestSnapshots(log, aggregates))
        if (timeMs(snapshot.time) <= (untilMs ?? nowMs))
          newest.set(snapshot.aggregate, factsOf(snapshot, optionsOf(aggregateState(state, snapshot.aggregate))));
      return live;
    });
  const figures = fold.figures(newest);
  if (options.html !== undefined) writeFileSync(options.html, reportPage(figures, cycles, nowMs));
  await answer(shell, options, { aggregates: figures }, (terminal) => {
    const written = options.html === undefined ? '' : `\nWrote the page to ${options.html}\n`;
    return `${renderReport(terminal, figures)}${written}`;
  });
}

const factsOf = (snapshot: Snapshot, options: EngineOptions): NewestFacts => ({
  profileSums: snapshot.profileSums ?? [],
  generations: options.cpuCompatibility === 'ignore' ? [] : generationsOf(snapshot).filter(({ closed }) => closed > 0),
  ...brokenGroups(snapshot, options),
});
