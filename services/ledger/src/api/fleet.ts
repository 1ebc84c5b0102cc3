import { iso } from '@kronos/contracts';
import { type AggregateState, inFlight, type PlanRun, planTime, runEndMs, type StepFacts } from '@kronos/projections';
import { evenly } from '../aside/evenly.ts';
import type { Orders } from '../aside/work.ts';
import type { DecisionPoint } from '../memory/history.ts';
import type { ApiAnswer } from './schemas.ts';
import { inFourDecimals } from './series.ts';
import { aggregateSummary } from './stateJson.ts';

/** The range of the trend, and its points. */
const TREND_MS = 6 * 3_600_000;
const TREND_POINTS = 60;

type Line = ApiAnswer<'fleet'>['aggregates'][number];

export type FleetInput = {
  readonly state: AggregateState;
  /** The decisions about the aggregate, oldest first. */
  readonly decisions: readonly DecisionPoint[];
  readonly runs: readonly PlanRun[];
  readonly seen: Orders['skylines']['answer'][number] | undefined;
  readonly inScope: boolean;
  /** Paces of moves in any aggregate. */
  readonly paces: readonly number[];
};

/** One row of the fleet: the state of the aggregate, its hosts by value, its past and the plan that it waits with. Pure. */
export function fleetLine({ state, decisions, runs, seen, inScope, paces }: FleetInput, nowMs: number): Line {
  const summary = aggregateSummary(state, nowMs);
  // The newest are at the end: two days of them are not parsed for each request.
  const since = iso(nowMs - TREND_MS);
  const recent = decisions.slice(decisions.findLastIndex(({ time }) => time < since) + 1);
  const shown = evenly(recent, TREND_POINTS);
  // While a released plan is not over, decisions count its moves as done.
  const open = runs.flatMap((run) => (run.releasedMs !== null && runEndMs(run) === null ? [run.releasedMs] : []));
  const openSince = open.length === 0 ? null : iso(Math.min(...open));
  return {
    ...summary,
    inScope,
    hosts: seen?.hosts ?? null,
    vms: seen?.vms ?? null,
    skylines: [...(seen?.skylines ?? [])],
    trend: shown.map(({ ratio }) => inFourDecimals(ratio)),
    promised: shown.length - 1 - shown.findLastIndex(({ time }) => openSince === null || time <= openSince),
    plan: planOf({ state, decisions, paces }, summary),
    movesTime: planTime(state, moving(state), paces),
  };
}

/** The steps in flight, without those that wait for a person in their new cell: how long that takes is up to the person. */
const moving = (state: AggregateState): StepFacts[] =>
  inFlight(state).flatMap(({ slot, step }) => (slot?.cell?.verifying == null ? [step] : []));

type Summary = ReturnType<typeof aggregateSummary>;

/** The plan that waits for approval, or that a dry run would have released. */
const shownPlan = ({ waitingPlan, standing, lastDecision }: Summary): string | undefined =>
  waitingPlan?.planId ?? (standing === 'dryRun' ? lastDecision?.snapshotId : undefined);

const UNKNOWN_DECISION: Partial<FleetInput['decisions'][number]> = {};

function planOf(
  { state, decisions, paces }: Pick<FleetInput, 'state' | 'decisions' | 'paces'>,
  summary: Summary,
): Line['plan'] {
  const { waitingPlan, lastDecision } = summary;
  const planId = shownPlan(summary);
  if (planId === undefined) return null;
  const decision = decisions.findLast(({ snapshotId }) => snapshotId === planId) ?? UNKNOWN_DECISION;
  const plan = state.plans.get(planId);
  const sequence = decision.sequence ?? plan?.sequence ?? lastDecision?.sequence;
  if (sequence === undefined) return null;
  return {
    planId,
    sequence,
    moves: waitingPlan?.steps ?? decision.steps ?? 0,
    ratioAfter: inFourDecimals(decision.ratioAfter ?? null),
    ...copied(plan?.proposed, state, paces),
  };
}

/** The memory that the moves copy, and the time that it takes. */
function copied(steps: readonly StepFacts[] | undefined, state: AggregateState, paces: readonly number[]) {
  if (steps === undefined) return { ramMb: null, time: null };
  return { ramMb: steps.reduce((sum, { ramMb }) => sum + ramMb, 0), time: planTime(state, steps, paces) };
}
