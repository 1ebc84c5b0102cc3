import {
  type CompleteEngineOptions,
  type Course,
  type Decision,
  iso,
  type Reason,
  type Snapshot,
  type Step,
} from '@kronos/contracts';
import { balance } from './balance.ts';
import { float, int } from './base/array.ts';
import type { Draft } from './draft/draft.ts';
import { FailureRoom, recorded } from './failover/failureRoom.ts';
import { effectOf } from './forecast.ts';
import type { Gate } from './gate.ts';
import { keepingRoom } from './guard.ts';
import { enforceAffinity } from './passes/affinity.ts';
import { evacuate, evacuationEnds } from './passes/evacuate.ts';
import type { Drain } from './passes/pack.ts';
import { restore } from './passes/restore.ts';
import { type Completed, completePlan, quality } from './plan/plan.ts';
import { planLoads } from './plan/steps.ts';
import { restoreRoom } from './restoreRoom.ts';
import { type CarryOut, inTurn } from './search/anneal/runs.ts';
import type { Memory } from './snapshot/memory.ts';
import type { Observed } from './snapshot/observe.ts';
import { begin, imbalanceOf, type Pass, type Passed, reasonOf, type State } from './state.ts';
import { plannedReason, withinWindows } from './windows.ts';

export type DecideInput = {
  readonly snapshot: Snapshot;
  readonly memory: Memory;
  readonly options: CompleteEngineOptions;
};

/**
 * The decision about one snapshot: a pure function of its input, the same bytes every time.
 *
 * @param carryOut how runs of the search are carried out, for example on several threads; it changes no decision.
 */
export const decide = (input: DecideInput, carryOut: CarryOut = inTurn): Decision =>
  deliberate(input, carryOut).decision;

/** A decision with all its inputs, for explanations. */
export type Deliberation = {
  readonly decision: Decision;
  readonly observed: Observed;
  readonly draft: Draft;
  readonly mode: State['mode'];
  readonly gates: readonly Gate[];
  readonly drains: readonly Drain[];
  readonly completed: Completed | null;
};

/** In the order in which they run. */
const passes: readonly Pass[] = [
  passGates,
  evacuation,
  keepingRoom(restoration),
  keepingRoom(repair),
  restoreRoom,
  keepingRoom(balance),
];

/** Runs the passes in their order until one ends the cycle, and keeps the facts behind the decision for {@link explain}. */
export function deliberate({ snapshot, memory, options }: DecideInput, carryOut: CarryOut = inTurn): Deliberation {
  const state = begin(snapshot, memory, options);
  let end: Reason | null = null;
  for (const pass of passes) {
    const passed = pass(state, carryOut);
    if (!('end' in passed)) continue;
    end = passed.end;
    break;
  }
  return finish(state, end ?? reasonOf(state.draft.held.size > 0 ? 'failover-room' : 'balanced'));
}

/** Ends at the first gate that blocks the cycle, unless it is the aggregate cooldown alone and evacuations ignore it. */
function passGates(state: State): Passed {
  const { gates, options, draft } = state;
  const { cluster } = draft;
  const [gate] = gates;
  const evacuates = cluster.leaving.includes(1);
  if (gate !== undefined && !(gate.passable && options.evacuationIgnoresCooldown && evacuates))
    return { end: gate.reason };
  state.evacuates = evacuates;
  for (let v = 0; v < cluster.V; v++) {
    const refusal = int(cluster.vmRefusal, v);
    if (refusal !== 0) draft.refusals.add(refusal);
    else if (cluster.evacuationOnly[v] !== 0 && cluster.leaving[int(cluster.vmHost, v)] !== 1)
      draft.refusals.add(int(cluster.evacuationOnly, v));
  }
  return { moves: 0 };
}

function evacuation({ gates, draft, window, options, evacuates }: State): Passed {
  if (evacuates) evacuate(draft, options);
  const [gate] = gates;
  if (gate !== undefined) return { end: gate.reason };
  // Evacuations that may be released now do not wait for other moves.
  const now = !window.open && options.evacuationIgnoresWindows && draft.moves.length > 0;
  return now ? { end: reasonOf('planned') } : { moves: draft.moves.length };
}

function restoration({ draft, options }: State): Passed {
  const before = draft.moves.length;
  restore(draft, options);
  return { moves: draft.moves.length - before };
}

function repair({ draft, options }: State): Passed {
  const before = draft.moves.length;
  enforceAffinity(draft, options);
  return { moves: draft.moves.length - before };
}

/** The decision from the moves of the draft. If there are none, `end` is its reason. */
function finish(state: State, end: Reason): Deliberation {
  const { observed, draft, mode, gates, drains, before, snapshot, options, window } = state;
  const evacuations = state.evacuates ? evacuationEnds(draft) : [];
  const completed = draft.moves.length === 0 ? null : completePlan(snapshot.id, draft, drains, options);
  const steps = completed === null ? [] : withinWindows(completed.steps, window, observed, options);
  const course = courseOf(state);
  const more = {
    ...(course === null ? {} : { course }),
    ...failoverOf(state),
    ...(state.foreign === null ? {} : { foreign: state.foreign }),
  };
  const decided = (outcome: Decision['outcome'], reason: Reason, plan: Decision['plan'] = null): Deliberation => {
    const { warnings, stuck } = draft;
    const refusals = draft.refusals.toRecord();
    const decision = { outcome, reason, before, plan, refusals, warnings, stuck, evacuations, ...more };
    return { decision, observed, draft, mode, gates, drains, completed };
  };
  if (completed === null) return decided(gates.length > 0 ? 'gated' : 'quiet', nothingElse(draft, evacuations, end));
  if (steps.length === 0) return decided('quiet', reasonOf('order-impossible'));
  return decided('planned', planReason(state, steps), planOf(state, completed, steps));
}

function failoverOf({ draft, options: { failoverHosts } }: State): Pick<Decision, 'failover'> {
  if (failoverHosts === 0) return {};
  const failures = new FailureRoom(draft.cluster, failoverHosts).all();
  return { failover: recorded(draft.cluster, failoverHosts, failures) };
}

/** The reason names the VMs that must move and stay: a decision without moves does not say that all is well. */
function nothingElse({ stuck }: Draft, evacuations: Decision['evacuations'], end: Reason): Reason {
  if (end.code !== 'balanced') return end;
  if (evacuations.some(({ state }) => state === 'running')) return reasonOf('evacuating');
  return stuck.length > 0 ? reasonOf('stuck') : end;
}

/** The course as the decision records it. The pace of later cycles is that of this one. */
function courseOf({ course, draft, fullBudget, budget, options, memory, snapshot }: State): Course | null {
  if (course === null) return null;
  const { moves, cost, combined, reaches, imbalance, needed } = course;
  const { policies } = draft.cluster;
  const cycles = Math.max(1, 1 + Math.ceil((moves - Math.min(budget, moves)) / Math.max(1, fullBudget)));
  const effect = effectOf(draft.cluster, draft.moves, memory);
  // The next plan waits for the cooldown after the release, for the end of the moves, and for the next snapshot.
  const apart = Math.max(options.cooldownSeconds, effect + options.settleSeconds, snapshot.intervalSeconds);
  return {
    reaches,
    moves,
    costGib: cost,
    cycles,
    seconds: Math.round((cycles - 1) * apart + effect),
    after: {
      combined,
      policies: policies.map(({ name, target }, p) => ({ policy: name, imbalance: float(imbalance, p), target })),
    },
    ...(needed > budget ? { neededBudget: needed } : {}),
  };
}

/** True when the window limits some step: evacuations may ignore it. */
const isLimited = ({ options }: State, steps: readonly Step[]): boolean =>
  steps.some((step) => step.phase !== 'evacuate' || !options.evacuationIgnoresWindows);

function planReason(state: State, steps: readonly Step[]): Reason {
  const moves = `${steps.length} of at most ${state.budget} moves`;
  return isLimited(state, steps) ? plannedReason(moves, state.window) : { code: 'planned', text: moves };
}

function planOf(state: State, { after }: Completed, steps: Step[]): NonNullable<Decision['plan']> {
  const { observed, memory, snapshot, options, budget, before, mode, draft, endedBy, window } = state;
  const reached = imbalanceOf(observed, memory, after);
  const { lowerBound, shareOfPossible } =
    mode === 'spread' && before.combined !== null && reached.combined !== null
      ? quality(observed.cluster, budget, before.combined, reached.combined)
      : { lowerBound: null, shareOfPossible: null };
  const until = window.untilMs === null ? null : iso(window.untilMs);
  const loads = planLoads(observed.cluster, steps);
  const windowed = isLimited(state, steps) && (!window.open || until !== null);
  return {
    id: snapshot.id,
    planner: options.planner,
    budget,
    steps,
    after: reached,
    lowerBound,
    shareOfPossible,
    candidatesEvaluated: draft.evaluated,
    ...(loads === null ? {} : { loads }),
    ...(endedBy === null ? {} : { endedBy }),
    ...(windowed ? { window: { open: window.open, until } } : {}),
  };
}
