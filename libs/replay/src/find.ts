import {
  DAY_MS,
  type Decision,
  type EngineOptions,
  iso,
  maybeAskedPlan,
  type ProposalDecision,
} from '@kronos/contracts';
import { optionsOfDecision } from '@kronos/cycle';
import { type AggregateState, aggregateState, createFolder, pacesOfAll } from '@kronos/projections';
import { isUnusable, recordedDecision, recordedProposal, type VerifiedCycle } from './compare.ts';
import { NotOnTheLog } from './errors.ts';
import {
  detailsOf,
  type History,
  type LoadedSnapshot,
  loadRecordedSnapshot,
  type StoredDecision,
  type StoredProposal,
} from './history.ts';
import { verify } from './verify.ts';

/** A recorded decision with everything that it was made of, as far as that is kept. */
export type FoundDecision = StoredDecision & {
  readonly decision: Decision;
  /** The log folded to its basis. */
  readonly state: AggregateState;
  /** Paces of the moves in any aggregate until then. */
  readonly paces: readonly number[];
  /** By which it was made; null where the log names none. */
  readonly options: EngineOptions | null;
  /** Null: `missing` says why. */
  readonly snapshot: LoadedSnapshot['snapshot'] | null;
  readonly missing: string | null;
};

export type WantedDecision = {
  readonly aggregates: readonly string[];
  /** The last decision about a snapshot of this time or earlier. Default: the newest. */
  readonly atMs?: number;
  /** The decision that made this plan; null: the last one that made any. */
  readonly planId?: string | null;
};

/** A recorded plan that a person asked for. */
export type FoundProposal = StoredProposal & {
  readonly decision: ProposalDecision;
  /** The result of running it again. */
  readonly verdict: VerifiedCycle;
};

/** The plan of that id that a person asked for; null: the log has none. */
export async function findProposal(
  history: History,
  aggregates: readonly string[],
  planId: string,
): Promise<FoundProposal | null> {
  if (!maybeAskedPlan(planId)) return null;
  for await (const stored of history.proposals({ aggregates })) {
    const { event, sequence, snapshotMs } = stored;
    if (event.data.planId !== planId) continue;
    const range = { aggregates: [event.aggregate], sinceMs: snapshotMs, untilMs: snapshotMs };
    for await (const verdict of verify(history, range, { threads: 1 }))
      if (verdict.sequence === sequence)
        return { ...stored, decision: recordedProposal(event.data, await detailsOf(history, event.data)), verdict };
  }
  return null;
}

/** The last decision of one of the aggregates, or the one of a plan. @throws NotOnTheLog */
export async function findDecision(history: History, wanted: WantedDecision): Promise<FoundDecision> {
  const found = await lastDecision(history, wanted);
  if (found === null) {
    if (typeof wanted.planId === 'string')
      throw new NotOnTheLog(
        `the log has no plan ${JSON.stringify(wanted.planId)}`,
        'kronos plans --since all lists every plan.',
      );
    const when = wanted.atMs === undefined ? 'yet' : `up to ${iso(wanted.atMs)}`;
    throw new NotOnTheLog(
      `the log has no ${wanted.planId === null ? 'plan for' : 'decision about'} ${wanted.aggregates.join(', ')} ${when}`,
      wanted.atMs === undefined
        ? 'kronos status shows whether the scorer and the planner run.'
        : 'Give a later time (--at): kronos tap plans --since all --end lists the decisions.',
      { named: false },
    );
  }
  return loadDecision(history, found);
}

/** A recorded decision with the state, the options and the snapshot that it was made of. */
export async function loadDecision(history: History, stored: StoredDecision): Promise<FoundDecision> {
  const { event } = stored;
  const { basis } = event.data;
  const folder = createFolder((await history.checkpoint(basis)) ?? undefined);
  for await (const one of history.events(basis, folder.sequence + 1)) folder.apply(one);
  const whole = folder.snapshot();
  const state = aggregateState(whole, event.aggregate);
  const loaded = await snapshotOf(history, stored);
  return {
    ...stored,
    decision: recordedDecision(event.data, await detailsOf(history, event.data)),
    state,
    paces: pacesOfAll(whole),
    options: state.configured && optionsOfDecision(state.configured.options, event.data),
    ...loaded,
  };
}

/** A decision is searched for in these times before the whole log is read: most are recent, and a log can hold years. */
const REACHES_MS = [DAY_MS, 30 * DAY_MS];

async function lastDecision(
  history: History,
  { aggregates, atMs, planId }: WantedDecision,
): Promise<StoredDecision | null> {
  const endMs = atMs ?? (await history.newestMs());
  const starts = endMs === null ? [] : REACHES_MS.map((reachMs) => ({ sinceMs: endMs - reachMs }));
  const until = atMs === undefined ? {} : { untilMs: atMs };
  for (const start of [...starts, {}]) {
    let last: StoredDecision | null = null;
    for await (const stored of history.decisions({ aggregates, ...start, ...until }))
      if (planId === undefined || isPlan(stored, planId)) last = stored;
    if (last !== null) return last;
  }
  return null;
}

const isPlan = ({ event: { data } }: StoredDecision, id: string | null): boolean =>
  data.plan !== null && (id === null || data.plan.id === id);

async function snapshotOf(
  history: History,
  { event, snapshotMs }: StoredDecision,
): Promise<Pick<FoundDecision, 'snapshot' | 'missing'>> {
  const range = { aggregates: [event.aggregate], sinceMs: snapshotMs, untilMs: snapshotMs };
  for await (const entry of history.snapshots(range))
    if (entry.id === event.data.snapshotId)
      try {
        return { snapshot: (await loadRecordedSnapshot(entry)).snapshot, missing: null };
      } catch (error) {
        if (isUnusable(error)) return { snapshot: null, missing: error.message };
        throw error;
      }
  return { snapshot: null, missing: `the snapshot ${event.data.snapshotId} is not kept (any more)` };
}
