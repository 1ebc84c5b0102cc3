/**
 * The audit after a run. With the services' own folds: the state from any checkpoint is the same, and decisions replay.
 * With a second opinion, which shares no code with them: plans are legal.
 */
import { newestCheckpoint, readIdentity } from '@kronos/checkpoints';
import {
  type CycleDecided,
  canonicalJson,
  completeEngineOptions,
  defaultStorageLimits,
  type EngineOptions,
  type Snapshot,
  type SnapshotTaken,
  streamDefinitions,
  streamNames,
} from '@kronos/contracts';
import { digest, optionsOfDecision, runCycle } from '@kronos/cycle';
import { type EventLog, MissingObject } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, aggregateState, createFolder, FOLD_VERSION, type LogState } from '@kronos/projections';
import { lateWaits, waitExists, waitStates } from '@kronos/status';
import { verify } from '../property/verifier.ts';
import type { Chance } from './chance.ts';
import { Recollection } from './recollection.ts';
import type { Rule } from './rules.ts';
import { isOpen, readSpan } from './windows.ts';

/** Decisions that are made again: planning is most of what a run costs. */
const REPLAYED = 40;
/** Snapshots whose lists of servers are compared with what the cloud was. */
const LISTED = 500;
/** Messages that the stream of checkpoints keeps on each subject. */
const KEPT =
  streamDefinitions(defaultStorageLimits).find(({ name }) => name === streamNames.checkpoints)?.maxMessagesPerSubject ??
  Number.POSITIVE_INFINITY;

/**
 * A value as JSON. By the services' own code, a field that it leaves out of checkpoints would be missing on both sides of a comparison.
 */
function plain(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, one]) => [key, plain(one)]));
  if (value instanceof Set) return [...value];
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
}

const digestOf = (state: LogState): string => digest(plain(state));

/** Compares a snapshot with what the cloud was; `process` took it, and it was stored at a true time. */
export type JudgeLists = (
  snapshot: Snapshot,
  process: string,
  storedMs: number,
) => readonly { readonly rule: Rule; readonly text: string }[];

/** Calls `breach` for each thing that is wrong. `judge` null: every list of servers was read in its own cycle. */
export async function audit(
  log: EventLog,
  chance: Chance,
  breach: (rule: Rule, text: string) => void,
  judge: JudgeLists | null = null,
): Promise<void> {
  const checkpoints = await checkpointsOf(log);
  const { snapshots, taken } = await snapshotsOf(log);
  if (judge !== null) await auditLists(log, chance.fork('lists').shuffle(taken).slice(0, LISTED), judge, breach);
  const byBasis = Map.groupBy(await chosenDecisions(log, chance, snapshots), ({ data }) => data.basis);

  const folder = createFolder();
  const recollection = new Recollection();
  const starts = await startsAt(log, checkpoints, breach);
  let lastMs = 0;
  for await (const stored of log.replay()) {
    lastMs = stored.storedAt;
    folder.apply(stored);
    for (const start of starts) if (start.sequence < stored.sequence) start.folder.apply(stored);
    if (stored.event.type !== 'unreadable') recollection.apply(stored.event, stored.storedAt);
    for (const decided of byBasis.get(stored.sequence) ?? []) {
      const message = snapshots.get(decided.data.digests.snapshot);
      const snapshot = message === undefined ? null : await snapshotOf(log, message);
      const state = aggregateState(folder.snapshot(), decided.aggregate);
      for (const lost of waitsForNothing(state, stored.storedAt)) breach('liveness', lost);
      const wrong = snapshot === null ? [] : judgeAgain(snapshot, state, decided, recollection);
      for (const { rule, text } of wrong) breach(rule, text);
    }
  }
  auditEnd(folder.snapshot(), starts, lastMs, breach);
}

/** Compares the lists of servers in snapshots with what the cloud was. */
async function auditLists(
  log: EventLog,
  taken: readonly Taken[],
  judge: JudgeLists,
  breach: (rule: Rule, text: string) => void,
): Promise<void> {
  for (const { message, storedAt } of taken) {
    const snapshot = await snapshotOf(log, message);
    if (snapshot === null) continue;
    for (const { rule, text } of judge(snapshot, message.by.instance, storedAt)) breach(rule, text);
  }
}

/** Nothing waits for ever at the end of the log, and each checkpoint leads to the same state. */
function auditEnd(
  end: LogState,
  starts: readonly Start[],
  lastMs: number,
  breach: (rule: Rule, text: string) => void,
): void {
  for (const aggregate of end.aggregates.keys()) {
    const state = aggregateState(end, aggregate);
    for (const lost of [...waitsForNothing(state, lastMs), ...forgotten(state, lastMs)]) breach('liveness', lost);
  }
  const whole = digestOf(end);
  for (const start of starts)
    if (digestOf(start.folder.snapshot()) !== whole)
      breach('state', `the state from the checkpoint at ${start.sequence} differs from that from the first event`);
}

interface Taken {
  readonly message: SnapshotTaken;
  readonly storedAt: number;
}

/** The snapshots of a log, also by their digests: two scorers may have taken snapshots with one id. */
async function snapshotsOf(log: EventLog) {
  const snapshots = new Map<string, SnapshotTaken>();
  const taken: Taken[] = [];
  for await (const { message, problem, storedAt } of log.replaySnapshots())
    if (problem === undefined) {
      snapshots.set(message.data.body.digest, message);
      taken.push({ message, storedAt });
    }
  return { snapshots, taken };
}

/** The decisions that are made again. Plans first: they are made of more than the others. */
async function chosenDecisions(
  log: EventLog,
  chance: Chance,
  snapshots: ReadonlyMap<string, SnapshotTaken>,
): Promise<CycleDecided[]> {
  const decisions: CycleDecided[] = [];
  for await (const { event } of log.replay()) if (event.type === 'cycle.decided') decisions.push(event);
  return chance
    .shuffle(decisions.filter(({ data }) => snapshots.has(data.digests.snapshot)))
    .sort((a, b) => Number(b.data.plan !== null) - Number(a.data.plan !== null))
    .slice(0, REPLAYED);
}

interface Start {
  readonly sequence: number;
  readonly folder: ReturnType<typeof createFolder>;
}

/** A folder that begins at each checkpoint. */
async function startsAt(
  log: EventLog,
  checkpoints: ReadonlyMap<number, ReadonlySet<number>>,
  breach: (rule: Rule, text: string) => void,
): Promise<Start[]> {
  const starts: Start[] = [];
  for (const [sequence, parts] of [...checkpoints].sort(([a], [b]) => a - b)) {
    // A forged message on the subject is skipped: only a checkpoint that the ledger wrote has to be usable.
    const problems: string[] = [];
    const state = await newestCheckpoint(log, ({ problem }) => problems.push(problem), sequence);
    if (state?.sequence === sequence) {
      starts.push({ sequence, folder: createFolder(state) });
      continue;
    }
    // The ledgers still run: each checkpoint that they store removes the oldest one.
    const left = (await checkpointsOf(log)).get(sequence) ?? new Set();
    if (!parts.isSubsetOf(left)) continue;
    const why = problems.length === 0 ? 'a reader does not find it, though it is there' : problems.join('; ');
    breach('state', `the checkpoint at ${sequence} cannot be used: ${why}`);
  }
  return starts;
}

/** The errors of a decision, made again on its basis and judged by the second opinion. */
function judgeAgain(
  snapshot: Snapshot,
  state: AggregateState,
  decided: CycleDecided,
  recollection: Recollection,
): { readonly rule: Rule; readonly text: string }[] {
  const { id } = snapshot;
  const options = state.configured?.options;
  if (options === undefined) return [{ rule: 'replay', text: `${id}: the log names no options at its basis` }];
  const again = decideAgain(snapshot, state, options, decided);
  const input = {
    snapshot,
    memory: recollection.memory(decided.aggregate),
    options: completeEngineOptions(options),
    ownWindow: (windows: readonly string[], zone: string, atMs: number) =>
      isOpen({ zone, spans: windows.map(readSpan), blackouts: [] }, atMs) ? ('open' as const) : ('closed' as const),
  };
  return [
    ...(again === null ? [] : [{ rule: 'replay' as const, text: `${id}: ${again}` }]),
    ...verify(input, decided.data).map((wrong) => ({ rule: 'placement' as const, text: `${id}: ${wrong}` })),
  ];
}

/** Tasks, plans and drains that wait for a thing that does not exist, or are stuck without a reason: they would never end. */
const waitsForNothing = (state: AggregateState, nowMs: number): string[] =>
  waitStates(state, nowMs).flatMap((one) => {
    const name = `${one.about.kind} ${one.about.id}`;
    if (one.state === 'stuck') return one.reasons.length === 0 ? [`${name} is stuck without a reason`] : [];
    return waitExists(state, one.wait, nowMs)
      ? []
      : [`${name} waits for ${one.wait.code} ${one.wait.of}, which is not there`];
  });

/** Drains whose service no executor changes, although nothing has been wrong for half an hour. */
const forgotten = (state: AggregateState, nowMs: number): string[] =>
  lateWaits(state, nowMs).flatMap(({ about, wait }) =>
    wait.code === 'service' ? [`nobody changes the service of ${about.id}, which a person asked for`] : [],
  );

/** The messages of one subject in the stream of checkpoints: the oldest one, their number, and the checkpoints that have a part there. */
interface Held {
  readonly oldest: number;
  messages: number;
  readonly checkpoints: Set<number>;
}

/** The checkpoints of this log by their sequences, each with the sequences of its parts on the stream. */
async function checkpointsOf(log: EventLog): Promise<Map<number, Set<number>>> {
  // Checkpoints outlive a log that is lost.
  const { installations } = await readIdentity(log);
  const ours = new Set<string | null>(installations.map(({ id }) => id));
  const found = new Map<number, Set<number>>();
  const bySubject = new Map<string, Held>();
  for await (const { message, problem, subject, sequence: part } of log.tail({
    families: ['ledger'],
    since: 'all',
    end: true,
  })) {
    const held = bySubject.get(subject) ?? { oldest: part, messages: 0, checkpoints: new Set() };
    bySubject.set(subject, held);
    held.messages += 1;
    if (problem !== undefined || message.type !== 'state.checkpointed') continue;
    const { foldVersion, installationId, sequence } = message.data;
    // A reader skips what another release has folded.
    if (!ours.has(installationId ?? null) || foldVersion !== FOLD_VERSION) continue;
    found.set(sequence, (found.get(sequence) ?? new Set()).add(part));
    held.checkpoints.add(sequence);
  }
  const subjects = [...bySubject.values()];
  for (const [sequence, parts] of found)
    if (isPushedOut(sequence, Math.min(...parts), subjects)) found.delete(sequence);
  return found;
}

/**
 * Whether the stream dropped a part of this checkpoint because later messages came to the same subject. A forged message comes to one
 * subject alone: the stream drops one part of the oldest checkpoint and keeps the others.
 *
 * @param first the sequence on the stream of the first part that is left
 */
const isPushedOut = (sequence: number, first: number, subjects: readonly Held[]): boolean =>
  subjects.some(
    ({ oldest, messages, checkpoints }) =>
      checkpoints.size > 0 && !checkpoints.has(sequence) && messages >= KEPT && oldest > first,
  );

/** Null: its object is gone. */
async function snapshotOf(log: EventLog, taken: SnapshotTaken): Promise<Snapshot | null> {
  try {
    return await log.getSnapshot(taken);
  } catch (error) {
    if (error instanceof MissingObject) return null;
    throw error;
  }
}

/** The difference when the decision is made again; null: none. For another planner version it only has to succeed. */
function decideAgain(
  snapshot: Snapshot,
  state: AggregateState,
  options: EngineOptions,
  { data }: CycleDecided,
): string | null {
  try {
    const { digests } = runCycle({ snapshot, state, options: optionsOfDecision(options, data) });
    if (data.plannerVersion !== plannerVersion) return null;
    const differing = Object.entries(digests).filter(([name, value]) => Reflect.get(data.digests, name) !== value);
    return differing.length === 0 ? null : `other ${differing.map(([name]) => name).join(', ')}`;
  } catch (error) {
    return `cannot be made again: ${canonicalJson(String(error))}`;
  }
}
