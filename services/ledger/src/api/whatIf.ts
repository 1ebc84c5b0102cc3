import { type Clock, limit as timeLimit } from '@kronos/clock';
import { engineOverrides } from '@kronos/config';
import { defaultEngineOptions, iso } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import {
  allBreaks,
  type Change,
  extentOf,
  type History,
  liveHistory,
  NothingRecorded,
  WhatIfCount,
  whatIf,
} from '@kronos/replay';
import { ApiError } from './answer.ts';
import { MOST_SNAPSHOTS } from './endpoints.ts';
import type { ApiAnswer } from './schemas.ts';
import { inFourDecimals } from './series.ts';

/** A request that is not done then answers with its results so far. */
const LIMIT_MS = 20_000;
/** The length of a range without a beginning. */
export const USUAL_MS = 3_600_000;

export type WhatIfAsked = {
  readonly aggregate: string;
  readonly sinceMs: number;
  readonly untilMs: number;
  /** `engine.cooldown=0` */
  readonly sets: readonly string[];
};

/**
 * A recorded range with other options, beside the range as it was: `kronos replay --set`.
 *
 * @throws ApiError for an option that there is not, a range without snapshots, or one with too many
 */
export async function whatIfAnswer(
  log: EventLog,
  clock: Pick<Clock, 'after'>,
  asked: WhatIfAsked,
): Promise<ApiAnswer<'whatIf'>> {
  const { signal, clear } = timeLimit(clock, LIMIT_MS);
  try {
    return await answerWithin(log, signal, asked);
  } finally {
    clear();
  }
}

async function answerWithin(log: EventLog, limit: AbortSignal, asked: WhatIfAsked): Promise<ApiAnswer<'whatIf'>> {
  const { aggregate, sinceMs, untilMs, sets } = asked;
  const overrides = engineOverrides(sets);
  if (!overrides.ok) throw new ApiError(400, `${overrides.problem}. ${overrides.remedy}`);
  const history = within(liveHistory(log, 'the log'), limit);
  const range = { aggregates: [aggregate], sinceMs, untilMs };
  const extent = await extentOf(history, range).catch((error: unknown) => {
    throw error instanceof NothingRecorded
      ? new ApiError(404, `no snapshot of ${JSON.stringify(aggregate)} is kept of that range`)
      : error;
  });
  if (extent.snapshots > MOST_SNAPSHOTS)
    throw new ApiError(
      400,
      `the range has ${extent.snapshots} snapshots, and the limit of one request is ${MOST_SNAPSHOTS}: choose a shorter range, or use kronos replay`,
    );
  const count = new WhatIfCount();
  const times: string[] = [];
  const recorded = { combined: [] as (number | null)[], moves: [] as number[] };
  const simulated = { combined: [] as (number | null)[], moves: [] as number[] };
  const change: Change = {
    defaults: defaultEngineOptions,
    options: (recorded) => ({ ...recorded, ...overrides.options }),
  };
  try {
    for await (const cycle of whatIf(history, range, change, { threads: 1, aside: true, signal: limit, extent })) {
      count.add(cycle);
      times.push(iso(cycle.timeMs));
      recorded.combined.push(inFourDecimals(cycle.recorded.combined));
      recorded.moves.push(cycle.recorded.moves);
      simulated.combined.push(inFourDecimals(cycle.simulated.combined));
      simulated.moves.push(cycle.simulated.moves);
    }
  } catch (error) {
    if (!limit.aborted) throw error;
  }
  const [totals] = count.totals();
  if (totals === undefined)
    throw new ApiError(
      400,
      'the start of the range took too long to load: choose a shorter range, or use kronos replay',
    );
  return {
    aggregate,
    since: iso(totals.sinceMs),
    until: iso(totals.untilMs),
    sets,
    snapshots: totals.snapshots,
    complete: !limit.aborted,
    times,
    recorded: { ...recorded, totals: totalsOf(totals.recorded) },
    simulated: { ...simulated, totals: totalsOf(totals.simulated) },
  };
}

type Totals = ReturnType<WhatIfCount['totals']>[number]['recorded'];
const totalsOf = ({ ruleBreaks, ...totals }: Totals) => ({
  moves: totals.moves,
  meanImbalance: totals.meanImbalance,
  maxImbalance: totals.maxImbalance,
  lastImbalance: totals.lastImbalance,
  ruleBreaks: allBreaks(ruleBreaks),
});

/** The log has no end that one waits for: reading it ends with the limit. */
function within(history: History, limit: AbortSignal): History {
  return {
    ...history,
    async *events(to, from) {
      for await (const stored of history.events(to, from)) {
        limit.throwIfAborted();
        yield stored;
      }
    },
  };
}
