import {
  ALL,
  byText,
  type Decision,
  type EngineOptions,
  holdInWhatIf,
  iso,
  type LogEvent,
  MAX_TIME_DIFFERENCE_MS,
  type Policy,
  type StoredEvent,
  timeOf,
} from '@kronos/contracts';
import { aggregateState, type Cooldowns, createFolder, type LogState } from '@kronos/projections';
import { NothingRecorded } from './errors.ts';
import { firstStoredMs, type History, isOfCycle, type Range, type SnapshotEntry } from './history.ts';
import { AHEAD, AHEAD_OF_THREAD, createPool, defaultThreads, FEW, inOrder } from './pool.ts';
import type { RuleBreaks } from './rules.ts';
import { type Running, shareOf } from './verify.ts';
import { MOVES, type RunStart, type RunStep, type WhatIfCycle, type WorldCycle } from './whatIfRun.ts';

/** A change from the recorded configuration. */
export type Change = {
  /** Policies in place of the recorded ones. */
  readonly policies?: readonly Policy[];
  /** Applied to the options that were in force at the start; throws where they do not fit. */
  readonly options?: (recorded: EngineOptions) => EngineOptions;
  /** The options where the recording names none. */
  readonly defaults: EngineOptions;
  /** Cooldowns and quarantines at the start, in seconds remaining. */
  readonly cooldowns?: Cooldowns;
};

export type WhatIfRunning = {
  /** Decide on other threads than that of the caller, however few the snapshots are. */
  readonly aside?: boolean;
  /** The decision on a snapshot where an earlier run of the same what-if made it; undefined: it is made. */
  readonly known?: (snapshotId: string) => Decision | undefined;
  /** The extent of the range where it is known already. */
  readonly extent?: Extent | undefined;
};

/** The range of a what-if, found before it begins. */
export type Extent = {
  readonly snapshots: number;
  /** Times of the first and the last snapshot, in ms since the epoch. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** The first snapshot of each aggregate, by the names of the aggregates. */
  readonly firsts: ReadonlyMap<string, SnapshotEntry>;
  /** Snapshots that were only kept stand beside the cycles and are left out. Where there are no cycles, they are all there is. */
  readonly cyclesOnly: boolean;
};

/** @throws NothingRecorded */
export async function extentOf(history: History, range: Range): Promise<Extent> {
  const cyclesOnly = await hasDecisions(history, range);
  const firsts = new Map<string, SnapshotEntry>();
  let snapshots = 0;
  let sinceMs = Number.POSITIVE_INFINITY;
  let untilMs = Number.NEGATIVE_INFINITY;
  for await (const entry of history.snapshots(range)) {
    if (!firsts.has(entry.aggregate)) {
      if (cyclesOnly && !isOfCycle(await entry.purpose())) continue;
      firsts.set(entry.aggregate, entry);
    }
    snapshots += 1;
    sinceMs = Math.min(sinceMs, entry.timeMs);
    untilMs = Math.max(untilMs, entry.timeMs);
  }
  if (snapshots === 0)
    throw new NothingRecorded(
      `${history.name} holds no snapshot in that range`,
      'Give another range, or record one: kronos record.',
    );
  const names = [...firsts].sort(([a], [b]) => byText(a, b));
  return { snapshots, sinceMs, untilMs, firsts: new Map(names), cyclesOnly };
}

/**
 * Runs the snapshots of a range again with other options or policies. Each aggregate has a log of its own, which begins with the facts that
 * were remembered at its first snapshot. Every plan is released and its moves are made at once; the snapshots that follow are changed
 * accordingly. Commands of people (pauses, quarantines) apply here too.
 *
 * Cycles come in the order of the snapshots. Aggregates are decided concurrently, the snapshots of one aggregate one after the other.
 * Memory does not grow with the range.
 *
 * @throws PolicyNotRecorded, NothingRecorded
 */
export async function* whatIf(
  history: History,
  range: Range,
  change: Change,
  {
    threads = defaultThreads(),
    signal,
    onProgress = () => {},
    aside = false,
    known = () => undefined,
    extent,
  }: Running & WhatIfRunning = {},
): AsyncGenerator<WhatIfCycle, void, undefined> {
  const { snapshots, sinceMs, untilMs, firsts, cyclesOnly } = extent ?? (await extentOf(history, range));
  const here = !aside && (snapshots <= FEW || threads <= 1);
  const pool = createPool(here ? 0 : Math.min(threads, firsts.size));
  const workers = new Map([...firsts.keys()].map((aggregate, i) => [aggregate, i % pool.size]));
  const past = new Past(history, firsts, await basesOf(history, firsts));
  const begun = new Set<string>();

  async function* jobs(): AsyncGenerator<Job, void, undefined> {
    for await (const entry of history.snapshots(range)) {
      const { id, aggregate, timeMs } = entry;
      const first = firsts.get(aggregate);
      if (first === undefined || (!begun.has(aggregate) && first.id !== id)) continue;
      const { before, events } = await past.until(aggregate, timeMs);
      const job = { entry, events };
      if (begun.has(aggregate)) {
        yield { ...job, start: null };
        continue;
      }
      begun.add(aggregate);
      yield { ...job, start: startOf({ aggregate, startMs: timeMs, cyclesOnly }, before, change) };
    }
  }

  async function run({ entry, events, start }: Job): Promise<WhatIfCycle | null> {
    const { id, aggregate, timeMs } = entry;
    const worker = workers.get(aggregate) ?? 0;
    const begin = start === null ? null : pool.run(worker, async () => ({ kind: 'begin', ...start }));
    const next = pool.run(worker, async () => ({
      kind: 'next',
      aggregate,
      id,
      timeMs,
      events,
      body: await entry.read(),
      known: known(id),
    }));
    const [cycle] = await Promise.all([next, begin]);
    return cycle as WhatIfCycle | null;
  }

  try {
    onProgress(0, 0);
    let done = 0;
    const limits = { busy: () => pool.size * AHEAD_OF_THREAD, ahead: AHEAD, signal };
    for await (const cycle of inOrder(jobs(), run, limits)) {
      if (cycle === null) continue;
      done += 1;
      onProgress(done, shareOf(cycle.timeMs, sinceMs, untilMs));
      yield cycle;
    }
    if (signal?.aborted !== true) onProgress(done, 1);
  } finally {
    await Promise.all([pool.close(), past.close()]);
  }
}

type Job = {
  readonly entry: SnapshotEntry;
  readonly events: RunStep['events'];
  /** With the first snapshot of an aggregate. */
  readonly start: RunStart | null;
};

async function hasDecisions(history: History, range: Range): Promise<boolean> {
  for await (const _ of history.decisions(range)) return true;
  return false;
}

function startOf(
  run: Pick<RunStart, 'aggregate' | 'startMs' | 'cyclesOnly'>,
  before: LogState,
  change: Change,
): RunStart {
  const { aggregate } = run;
  const recorded = aggregateState(before, aggregate).configured?.options ?? change.defaults;
  const own = before.aggregates.get(aggregate);
  return {
    ...run,
    before: { ...before, aggregates: new Map(own === undefined ? [] : [[aggregate, own]]) },
    // Whether people answer, and whether it was a dry run, is of the recording: here every plan is carried out.
    options: { ...(change.options?.(recorded) ?? recorded), dryRun: false, approval: 'auto' },
    policies: change.policies ?? null,
    cooldowns: change.cooldowns ?? null,
  };
}

/** The basis of the decisions about these snapshots, by aggregate; nothing for one that was not decided. */
async function basesOf(history: History, firsts: ReadonlyMap<string, SnapshotEntry>): Promise<Map<string, number>> {
  const times = [...firsts.values()].map(({ timeMs }) => timeMs);
  const range = {
    aggregates: [...firsts.keys()],
    sinceMs: times.reduce((a, b) => Math.min(a, b)),
    untilMs: times.reduce((a, b) => Math.max(a, b)),
  };
  const bases = new Map<string, number>();
  for await (const { event } of history.decisions(range)) {
    if (event.data.snapshotId === firsts.get(event.aggregate)?.id) bases.set(event.aggregate, event.data.basis);
    if (bases.size === firsts.size) break;
  }
  return bases;
}

/** The facts of the recorded log about one aggregate beside its what-if. */
type Beside = {
  /** Up to what its first snapshot was decided on; where it was not decided, up to the snapshot's time. Null until then. */
  before: LogState | null;
  /** Since then and not taken yet. */
  events: { readonly atMs: number; readonly event: LogEvent }[];
};

/** The recorded log, read once and along with the snapshots. */
class Past {
  readonly #firsts: ReadonlyMap<string, SnapshotEntry>;
  readonly #bases: ReadonlyMap<string, number>;
  readonly #source: AsyncIterator<StoredEvent>;
  readonly #folder = createFolder();
  readonly #aggregates: ReadonlyMap<string, Beside>;
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(history: History, firsts: ReadonlyMap<string, SnapshotEntry>, bases: ReadonlyMap<string, number>) {
    this.#firsts = firsts;
    this.#bases = bases;
    this.#source = history.events()[Symbol.asyncIterator]();
    this.#aggregates = new Map([...firsts.keys()].map((aggregate) => [aggregate, { before: null, events: [] }]));
  }

  /** The start of an aggregate's what-if, and the events since the last call, up to a time. */
  async until(
    aggregate: string,
    nowMs: number,
  ): Promise<{ readonly before: LogState; readonly events: readonly LogEvent[] }> {
    const own = this.#aggregates.get(aggregate);
    if (own === undefined) throw new Error(`the what-if has no aggregate ${aggregate}`);
    // An event is stored at most this long after the time that counts for it.
    while (own.before === null || this.#readMs <= nowMs + MAX_TIME_DIFFERENCE_MS) {
      const next = await this.#source.next();
      if (next.done === true) {
        this.#readMs = Number.POSITIVE_INFINITY;
        for (const beside of this.#aggregates.values()) beside.before ??= this.#folder.snapshot();
      } else this.#take(next.value);
    }
    const due = own.events.filter(({ atMs }) => atMs <= nowMs);
    own.events = own.events.filter(({ atMs }) => atMs > nowMs);
    return { before: own.before, events: due.map(({ event }) => event) };
  }

  #take(stored: StoredEvent): void {
    const { sequence, event } = stored;
    this.#readMs = firstStoredMs(stored);
    let folded = true;
    for (const [aggregate, beside] of this.#aggregates) {
      if (beside.before === null) {
        const basis = this.#bases.get(aggregate);
        const first = this.#firsts.get(aggregate);
        const isBefore = basis === undefined ? this.#readMs <= (first?.timeMs ?? 0) : sequence <= basis;
        if (isBefore) {
          folded = false;
          continue;
        }
        beside.before = this.#folder.snapshot();
      }
      if (event.aggregate !== aggregate && event.aggregate !== ALL) continue;
      if (event.type !== 'unreadable' && (holdInWhatIf.has(event.type) || MOVES.has(event.type))) {
        const atMs = timeOf(stored);
        // The what-if's own log has no stamps of a server: it takes the time that counts.
        beside.events.push({ atMs, event: { ...event, time: iso(atMs) } });
      }
    }
    // Once every what-if has begun nothing asks for the state any more.
    if (!folded) this.#folder.apply(stored);
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

type WorldTotals = {
  readonly moves: number;
  /** Mean over the snapshots at which a policy took part; null when none did. */
  readonly meanImbalance: number | null;
  readonly maxImbalance: number | null;
  readonly lastImbalance: number | null;
  /** At the last snapshot. */
  readonly ruleBreaks: RuleBreaks;
};

export type WhatIfTotals = {
  readonly aggregate: string;
  readonly snapshots: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly recorded: WorldTotals;
  readonly simulated: WorldTotals;
};

/** Counts one world, cycle by cycle. */
class WorldCount {
  #moves = 0;
  #sum = 0;
  #values = 0;
  #max: number | null = null;
  #last: number | null = null;
  #ruleBreaks = NO_BREAKS;

  add({ moves, combined, ruleBreaks }: WorldCycle): void {
    this.#moves += moves;
    this.#ruleBreaks = ruleBreaks;
    if (combined === null) return;
    this.#sum += combined;
    this.#values += 1;
    this.#max = Math.max(this.#max ?? combined, combined);
    this.#last = combined;
  }

  totals(): WorldTotals {
    return {
      moves: this.#moves,
      meanImbalance: this.#values === 0 ? null : this.#sum / this.#values,
      maxImbalance: this.#max,
      lastImbalance: this.#last,
      ruleBreaks: this.#ruleBreaks,
    };
  }
}

/** Counts the cycles of a what-if one by one. */
export class WhatIfCount {
  readonly #aggregates = new Map<
    string,
    { snapshots: number; sinceMs: number; untilMs: number; recorded: WorldCount; simulated: WorldCount }
  >();

  cycles = 0;

  add({ aggregate, timeMs, recorded, simulated }: WhatIfCycle): void {
    this.cycles += 1;
    let own = this.#aggregates.get(aggregate);
    if (own === undefined) {
      own = { snapshots: 0, sinceMs: timeMs, untilMs: timeMs, recorded: new WorldCount(), simulated: new WorldCount() };
      this.#aggregates.set(aggregate, own);
    }
    own.snapshots += 1;
    own.untilMs = timeMs;
    own.recorded.add(recorded);
    own.simulated.add(simulated);
  }

  /** By the names of the aggregates. */
  totals(): WhatIfTotals[] {
    return [...this.#aggregates]
      .sort(([a], [b]) => byText(a, b))
      .map(([aggregate, { recorded, simulated, ...own }]) => ({
        aggregate,
        ...own,
        recorded: recorded.totals(),
        simulated: simulated.totals(),
      }));
  }
}

const NO_BREAKS: RuleBreaks = { affinity: 0, 'anti-affinity': 0, 'soft-affinity': 0, 'soft-anti-affinity': 0 };
