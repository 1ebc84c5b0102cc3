/** How fast moves went: of each source and destination, of the aggregate, and of all aggregates. */
import type { LogEventOf, Step } from '@kronos/contracts';
import {
  type Duration,
  durationOf,
  type Estimate,
  estimateOf,
  gibOfMove,
  inSequence,
  PACES_KEPT,
  PACES_OF_PAIR,
  type Pace,
  paceOf,
  paceOfMove,
} from '@kronos/rules';
import { appended, type StateDraft, type WritableFacts } from './draft.ts';
import { type AggregateState, type LogState, PAIRS_KEPT, type TaskFacts } from './state.ts';

type Result = LogEventOf<'migration.completed' | 'migration.failed' | 'migration.skipped'>;
type Paces = Pick<AggregateState, 'paces' | 'pairPaces'>;

/** Fewer copying rates say nothing about the links. */
const LEAST_RATES = 3;

/** Host names hold no tab. */
const pairKey = (from: string, destination: string): string => `${from}\t${destination}`;

/**
 * A live migration ended that shows how fast moves are: it completed without a warning, or it ran into its deadline, which makes it one of
 * the slowest. Without the latter, an earlier deadline would make moves look faster, and the next deadline earlier still.
 */
export function moveTimed(draft: StateDraft, f: WritableFacts, { slot }: TaskFacts, result: Result): void {
  if (slot === null || slot.attempt !== result.data.attempt || slot.cell !== undefined || !showsPace(result)) return;
  const pace = paceOfMove({ ms: draft.atMs - slot.startedAtMs, gib: gibOfMove(slot) });
  if (pace === null) return;
  f.paces = appended(f.paces, pace, PACES_KEPT);
  const key = pairKey(slot.from, slot.destination);
  const ofPair = { sequence: draft.sequence, paces: appended(f.pairPaces.get(key)?.paces, pace, PACES_OF_PAIR) };
  f.pairPaces = draft.putNewest(f.pairPaces, key, ofPair, PAIRS_KEPT);
  const rate = copyRateOf(result.data.nova);
  if (rate !== null) f.copyRates = appended(f.copyRates, rate, PACES_KEPT);
}

type Ended = Exclude<Result, { readonly type: 'migration.skipped' }>;

function showsPace(result: Result): result is Ended {
  switch (result.type) {
    case 'migration.completed':
      return result.data.outcome === 'migrated' && result.data.warnings.length === 0;
    case 'migration.failed':
      return result.data.errorType === 'MigrationTimeout' && (result.data.nova?.runningMs ?? null) !== null;
    case 'migration.skipped':
      return false;
  }
}

/** Bytes per second that a move copied; null: Nova did not count them. */
function copyRateOf(nova: Ended['data']['nova']): number | null {
  const bytes = (nova?.memoryBytes ?? 0) + (nova?.diskBytes ?? 0);
  const runningMs = nova?.runningMs ?? 0;
  return bytes > 0 && runningMs > 0 ? Math.round((1000 * bytes) / runningMs) : null;
}

/** Paces of the latest moves of every aggregate. */
export const pacesOfAll = (state: LogState): readonly number[] =>
  [...state.aggregates.values()].flatMap(({ paces }) => paces);

/**
 * How fast the next move from one host to another will be; null: too few moves are known.
 *
 * @param all paces of moves in any aggregate
 */
export const pace = (
  { paces, pairPaces }: Paces,
  { from, destination }: { readonly from: string; readonly destination: string },
  all: readonly number[],
): Pace | null => paceOf({ pair: pairPaces.get(pairKey(from, destination))?.paces ?? [], aggregate: paces, all });

/**
 * The paces that a decision needs, ms per GiB: of each pair of these hosts of which enough moves are known, and of the aggregate. Null: nothing
 * is known.
 */
export function movePaces(
  { paces, pairPaces }: Paces,
  hosts: readonly { readonly name: string }[],
): { readonly others: number | null; readonly pairs: Record<string, Record<string, number>> } | null {
  const here = new Set(hosts.map(({ name }) => name));
  const pairs: Record<string, Record<string, number>> = {};
  for (const [key, { paces: pair }] of pairPaces) {
    const [from = '', to = ''] = key.split('\t');
    const learnt = paceOf({ pair, aggregate: [], all: [] });
    if (learnt === null || !here.has(from) || !here.has(to)) continue;
    pairs[from] = { ...pairs[from], [to]: learnt.median };
  }
  const others = paceOf({ pair: [], aggregate: paces, all: [] })?.median ?? null;
  return others === null && Object.keys(pairs).length === 0 ? null : { others, pairs };
}

/** Expected duration of a move; null: too few moves are known. `gib`: RAM and local disk. `all` as for {@link pace}. */
export function expectedDuration(
  state: Paces,
  move: { readonly from: string; readonly destination: string; readonly gib: number },
  all: readonly number[],
): Duration | null {
  const learnt = pace(state, move, all);
  return learnt === null ? null : durationOf(learnt, move.gib);
}

/** The same by an assumed pace where too few moves are known: for people, who want to know about how long. */
export const estimatedDuration = (
  state: Paces,
  move: { readonly from: string; readonly destination: string; readonly gib: number },
  all: readonly number[],
): Estimate => estimateOf(expectedDuration(state, move, all), move.gib);

type PlannedMove = Pick<Step, 'from' | 'to'> & Parameters<typeof gibOfMove>[0];

/** The duration of one move of a plan. `all` as for {@link pace}. */
export const stepTime = (state: Paces, step: PlannedMove, all: readonly number[]): Estimate =>
  estimatedDuration(state, { from: step.from, destination: step.to, gib: gibOfMove(step) }, all);

/** The duration of moves together: those off one host run one after the other, those off different hosts at the same time. Null: no move. */
export function timeTogether<Move extends { readonly from: string }>(
  moves: readonly Move[],
  timeOf: (move: Move) => Estimate,
): Estimate | null {
  const byHost = Map.groupBy(moves, ({ from }) => from);
  const times = [...byHost.values()].map((own) => inSequence(own.map(timeOf)));
  let longest: Estimate | null = null;
  for (const time of times) if (longest === null || time.expectedMs > longest.expectedMs) longest = time;
  return longest;
}

/** The duration of a plan's moves together; null: it has none. `all` as for {@link pace}. */
export const planTime = (state: Paces, steps: readonly PlannedMove[], all: readonly number[]): Estimate | null =>
  timeTogether(steps, (step) => stepTime(state, step, all));

/** Bytes per second that the aggregate's links carried in the past, the median; null: too few moves are known. */
export function copyRate({ copyRates }: Pick<AggregateState, 'copyRates'>): number | null {
  if (copyRates.length < LEAST_RATES) return null;
  const sorted = copyRates.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
