import type { StoredEvent } from '@kronos/contracts';
import { type AggregateState, aggregateState, createFolder, initialLogState, type LogState } from '@kronos/projections';
import { isUnusable, type ReplayVerdict, type VerifiedCycle, type VerifyOrder, verifyProposal } from './compare.ts';
import {
  decisionIn,
  detailsOf,
  type History,
  proposalIn,
  type Range,
  type SnapshotEntry,
  type SnapshotFinder,
  type StoredDecision,
  type StoredProposal,
} from './history.ts';
import { changesOf } from './logChanges.ts';
import { AHEAD, AHEAD_OF_THREAD, createPool, defaultThreads, FEW, inOrder, type Pool } from './pool.ts';

/**
 * The progress of a run.
 *
 * @param done number of decisions that are done
 * @param share of the whole range, 0 to 1; null when nobody knows
 */
type Progress = (done: number, share: number | null) => void;

/** Settings of a replay. None of them changes the result. */
export type Running = {
  /** Threads that run decisions; 1: that of the caller. Default: as many as the machine has cores. */
  readonly threads?: number;
  /** An abort ends the replay: it yields nothing more, and does not throw. */
  readonly signal?: AbortSignal;
  readonly onProgress?: Progress;
};

/** Number of recent log states to keep. A planner appends its decision before this many events follow its basis. */
const STATES = 1024;

/**
 * Runs every recorded decision of the range again, each with the log folded up to its own basis, and compares the bytes.
 * The log is read from its first event to its end, once; decisions come in the order of the log. What is held in memory
 * does not grow with the range.
 *
 * @param onEvent called with every event of the log
 */
export async function* verify(
  history: History,
  range: Range,
  {
    threads = defaultThreads(),
    signal,
    onProgress = () => {},
    onEvent = () => {},
  }: Running & {
    readonly onEvent?: (stored: StoredEvent) => void;
  } = {},
): AsyncGenerator<VerifiedCycle, void, undefined> {
  const newestMs = await history.newestMs();
  const untilMs = Math.min(range.untilMs ?? Number.POSITIVE_INFINITY, newestMs ?? Number.POSITIVE_INFINITY);
  const finder = history.finder(range);
  const pools = [createPool(0)];
  let seats = seatsOf(pools);
  let ordered = 0;

  /** Runs the decision of a cycle in the thread with the shortest queue. One about a request for a plan is rare and can need several states: it runs here. */
  async function run(job: Job): Promise<VerifiedCycle> {
    if ('proposal' in job) {
      const { proposal, log, entry } = job;
      const stateOf = (aggregate: string): AggregateState => aggregateState(log, aggregate);
      const stored = await storedOf(history, entry, proposal, stateOf(proposal.event.aggregate));
      return verifyProposal({ ...proposal, anonymized: history.anonymized, stored }, stateOf);
    }
    const { decision, log, entry } = job;
    if (ordered === FEW && threads > 1) {
      pools.push(createPool(threads));
      seats = seatsOf(pools.slice(1));
    }
    ordered += 1;
    const seat = seats.reduce((a, b) => (b.open < a.open ? b : a));
    const { known } = seat;
    seat.known = log;
    const make = async (): Promise<VerifyOrder> => ({
      kind: 'verify',
      ...decision,
      anonymized: history.anonymized,
      log: changesOf(known, log),
      stored: await storedOf(history, entry, decision, aggregateState(log, decision.event.aggregate)),
    });
    seat.open += 1;
    const outcome = seat.pool.run(seat.worker, make).finally(() => {
      seat.open -= 1;
    });
    return (await outcome) as VerifiedCycle;
  }

  try {
    onProgress(0, 0);
    let done = 0;
    let sinceMs = range.sinceMs ?? Number.POSITIVE_INFINITY;
    const limits = { busy: () => seats.length * AHEAD_OF_THREAD, ahead: AHEAD, signal };
    for await (const cycle of inOrder(jobsOf(history, range, finder, onEvent), run, limits)) {
      done += 1;
      sinceMs = Math.min(sinceMs, cycle.snapshotTimeMs);
      onProgress(done, shareOf(cycle.snapshotTimeMs, sinceMs, untilMs));
      yield cycle;
    }
    if (signal?.aborted !== true) onProgress(done, 1);
  } finally {
    await Promise.all([...pools.map((pool) => pool.close()), finder.close()]);
  }
}

/** A worker of a pool, and what was sent to it. */
type Seat = {
  readonly pool: Pool;
  readonly worker: number;
  /** Orders without outcome. */
  open: number;
  /** The log in the last order. */
  known: LogState;
};

const seatsOf = (pools: readonly Pool[]): Seat[] =>
  pools.flatMap((pool) =>
    Array.from({ length: pool.size }, (_, worker) => ({ pool, worker, open: 0, known: initialLogState() })),
  );

/** The position of a time in a range, 0 to 1; null where its end is not known. */
export function shareOf(atMs: number, sinceMs: number, untilMs: number): number | null {
  if (!Number.isFinite(untilMs)) return null;
  return untilMs <= sinceMs ? 1 : Math.min(1, Math.max(0, (atMs - sinceMs) / (untilMs - sinceMs)));
}

type Job = {
  /** Null: the snapshot is not kept. */
  readonly entry: SnapshotEntry | null;
  /** At its basis. */
  readonly log: LogState;
} & ({ readonly decision: StoredDecision } | { readonly proposal: StoredProposal });

/** The decisions of a range, each with the state of the log that it was made on. */
async function* jobsOf(
  history: History,
  range: Range,
  finder: SnapshotFinder,
  onEvent: (stored: StoredEvent) => void,
): AsyncGenerator<Job, void, undefined> {
  const folder = createFolder();
  /** The states after the last events, oldest first. They share what did not change between them. */
  const states: LogState[] = [folder.snapshot()];
  for await (const stored of history.events()) {
    onEvent(stored);
    const decision = decisionIn(range, stored);
    if (decision !== null)
      yield { decision, log: await stateAt(decision.event.data.basis), entry: await finder.find(decision) };
    const proposal = proposalIn(range, stored);
    if (proposal !== null)
      yield { proposal, log: await stateAt(proposal.event.data.basis), entry: await finder.find(proposal) };
    states.push(folder.apply(stored).snapshot());
    if (states.length === 2 * STATES) states.splice(0, STATES);
  }

  async function stateAt(basis: number): Promise<LogState> {
    return states.findLast(({ sequence }) => sequence <= basis) ?? foldTo(history, basis);
  }
}

/** The log from its first event up to a sequence. */
async function foldTo(history: History, sequence: number): Promise<LogState> {
  const folder = createFolder();
  for await (const stored of history.events(sequence)) folder.apply(stored);
  return folder.snapshot();
}

async function storedOf(
  history: History,
  entry: SnapshotEntry | null,
  { event: { data } }: StoredDecision | StoredProposal,
  { configured }: AggregateState,
): Promise<VerifyOrder['stored']> {
  if (entry === null) return { missing: `the snapshot ${data.snapshotId} is not kept (any more)` };
  if (configured === null) return { missing: 'the log names no options before this decision' };
  try {
    const [body, details] = await Promise.all([entry.read(), detailsOf(history, data)]);
    return { body, details };
  } catch (error) {
    if (isUnusable(error)) return { missing: error.message };
    throw error;
  }
}

export type VerifyTotals = Readonly<Record<ReplayVerdict['verdict'], number>> & {
  readonly decisions: number;
  /** Share of the decisions that were run again and are identical; 1 when there is none. */
  readonly identicalShare: number;
  /** False when a decision differs or could not be run again; strict: also when another version decided otherwise. */
  readonly ok: boolean;
};

/** Counts verdicts one by one. */
export class VerifyCount {
  readonly #counts = { identical: 0, different: 0, otherVersion: 0, notReplayed: 0 };

  add({ verdict }: Pick<ReplayVerdict, 'verdict'>): void {
    this.#counts[verdict] += 1;
  }

  totals({ strict = false } = {}): VerifyTotals {
    const { identical, different, otherVersion, notReplayed } = this.#counts;
    const run = identical + different + otherVersion;
    const decisions = run + notReplayed;
    const ok = strict ? identical === decisions : different + notReplayed === 0;
    return { ...this.#counts, decisions, identicalShare: run === 0 ? 1 : identical / run, ok };
  }
}
