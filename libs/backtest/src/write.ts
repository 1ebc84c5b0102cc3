/** Makes a recording of what was read: the log, and the chain over the sources. */
import {
  type Actor,
  type EngineOptions,
  iso,
  type LogEvent,
  MAX_TIME_DIFFERENCE_MS,
  type StoredEvent,
  timeMs,
} from '@kronos/contracts';
import { configuredEvent, decidedEvent, runCycle } from '@kronos/cycle';
import { plannerVersion } from '@kronos/placement';
import { aggregateState, createFolder } from '@kronos/projections';
import { createRecording, openSnapshot } from '@kronos/replay';
import { SOURCES, sourcesIn } from './sources.ts';
import type { Steps } from './steps.ts';

export type WriteInput = {
  readonly directory: string;
  readonly steps: Steps;
  /** Also decide every step as it was, in dry run: only then can replay and explain run decisions of it. */
  readonly decisions: boolean;
  /** The version of Kronos. */
  readonly madeBy: string;
  readonly nowMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (done: number, total: number) => void;
};

const by: Actor = { service: 'planner', instance: 'backtest', version: plannerVersion };

/** The options of decisions as it was: nothing moves. */
const inDryRun = (options: EngineOptions): EngineOptions => ({ ...options, dryRun: true, approval: 'auto' });

/** @throws RecordingExists, RecordingInvalid, and the signal's reason when it aborts */
export async function writeRecording(input: WriteInput): Promise<void> {
  const { directory, steps, decisions, signal, onProgress } = input;
  const { parameters } = steps;
  const writer = await createRecording(directory, [
    SOURCES,
    'README.txt',
    'cooldowns.json',
    'snapshots',
    'log.jsonl',
    'details',
  ]);
  const folder = createFolder();
  let sequence = 0;
  const add = async (event: LogEvent): Promise<void> => {
    sequence += 1;
    const stored: StoredEvent = { sequence, storedAt: timeMs(event.time), event };
    folder.apply(stored);
    await writer.event(stored);
  };
  // Before the first snapshot, by more than any clock may differ.
  const beforeMs = parameters.sinceMs - 2 * MAX_TIME_DIFFERENCE_MS;
  for (const [aggregate, { options }] of Object.entries(parameters.aggregates)) {
    const given = { aggregate, options: inDryRun(options), plannerVersion, basis: sequence, by };
    await add(configuredEvent({ ...given, nowMs: beforeMs }));
  }
  const entries = decisions ? steps.entries() : [];
  for (const [i, entry] of entries.entries()) {
    signal.throwIfAborted();
    onProgress(i, entries.length);
    const { aggregate } = entry;
    const body = await entry.read();
    const { snapshot } = openSnapshot(body);
    const options = inDryRun(parameters.aggregates[aggregate]?.options ?? unknownAggregate(aggregate));
    const state = aggregateState(folder.snapshot(), aggregate);
    const cycle = runCycle({ snapshot, state, options });
    await add(
      decidedEvent(cycle.decision, {
        snapshot,
        basis: sequence,
        plannerVersion,
        options,
        digests: { ...cycle.digests, snapshot: body.digest ?? '' },
        absence: cycle.absence,
        details: null,
        by,
        nowMs: entry.timeMs,
      }),
    );
  }
  for (const file of await sourcesIn(directory).files()) await writer.take(file);
  const names = Object.keys(parameters.aggregates);
  await writer.close({
    madeBy: input.madeBy,
    madeAt: iso(input.nowMs),
    anonymized: false,
    aggregates: names,
    range: { since: iso(parameters.sinceMs), until: iso(steps.timeOf(steps.count - 1)) },
    log: { installationId: null, sequence },
    reconstructed: true,
    options: Object.fromEntries(Object.entries(parameters.aggregates).map(([name, { options }]) => [name, options])),
  });
}

function unknownAggregate(aggregate: string): never {
  throw new RangeError(`the backtest has no aggregate ${aggregate}`);
}
