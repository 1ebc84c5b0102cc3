import {
  completeEngineOptions,
  type Decision,
  type EngineOptions,
  type Policy,
  type PolicyImbalance,
  type Reason,
  type Snapshot,
} from '@kronos/contracts';
import { isAbove, migrationWindow, noWaits, type Waits, waitLimit } from '@kronos/rules';
import { float, int } from './base/array.ts';
import { allWithin, combinedOf, imbalances } from './cluster/measure.ts';
import { type Ahead, againstPlan, effectOf, pastOf, verdictOf } from './forecast.ts';
import { type Gate, gatesShut } from './gate.ts';
import { enforceAffinity } from './passes/affinity.ts';
import { Draft } from './passes/draft.ts';
import { evacuate, evacuationEnds } from './passes/evacuate.ts';
import { type Drain, pack } from './passes/pack.ts';
import { type CarryOut, inTurn } from './passes/search/runs.ts';
import type { SearchEnd } from './passes/search/search.ts';
import { spread } from './passes/spread.ts';
import { type Completed, complete, quality } from './plan/plan.ts';
import { type ReasonCode, reasonMeanings } from './reasons.ts';
import { own } from './snapshot/filter.ts';
import { decisionMs, type Memory } from './snapshot/memory.ts';
import { type Observed, observe } from './snapshot/observe.ts';
import { plannedReason, withinWindows } from './windows.ts';

export type DecideInput = {
  readonly snapshot: Snapshot;
  readonly memory: Memory;
  readonly options: EngineOptions;
};

/** The budget of a cycle when no enabled policy names one (rules-only mode without policies). */
const RULES_ONLY_BUDGET = 10;

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
  readonly mode: Policy['mode'];
  readonly gates: readonly Gate[];
  readonly drains: readonly Drain[];
  readonly completed: Completed | null;
};

export function deliberate(
  { snapshot, memory, options: given }: DecideInput,
  carryOut: CarryOut = inTurn,
): Deliberation {
  const options = completeEngineOptions(given);
  const now = decisionMs(snapshot, memory);
  const observed = observe(snapshot, memory, options, now);
  const { cluster, judged } = observed;
  const imbalance = imbalances(cluster, cluster.score);
  const sustained = (policy: string, detected: boolean): number =>
    detected ? (own(memory.sustained, policy) ?? 0) + 1 : 0;
  const before = states(observed, imbalance, sustained);
  const mode = judged[0]?.policy.mode ?? 'spread';
  const fullBudget = cycleBudget(snapshot);
  const budget = Math.max(0, fullBudget - memory.inFlight.filter(({ cell }) => cell !== true).length);
  const draft = new Draft(cluster, budget);

  const gates = gatesShut(snapshot, memory, options, judged, now);
  const shut = gates[0] ?? null;
  let drains: readonly Drain[] = [];
  let completed: Completed | null = null;
  const end = (
    outcome: Decision['outcome'],
    reason: Reason,
    plan: Decision['plan'] = null,
    evacuations: Decision['evacuations'] = [],
  ): Deliberation => ({
    decision: {
      outcome,
      reason,
      before,
      plan,
      refusals: draft.refusals.toRecord(),
      warnings: draft.warnings,
      stuck: draft.stuck,
      evacuations,
    },
    observed,
    draft,
    mode,
    gates,
    drains,
    completed,
  });

  /** Undoes the moves of the draft after the first `kept` when the forecast speaks against them. Returns the reason. */
  function foresee(kept: number, base: Ahead): Reason | null {
    const past = pastOf({ snapshot, judged, cluster, options });
    if (!past.known) {
      draft.warnings.push({ code: 'no-forecast', text: past.text });
      return null;
    }
    const moves = draft.moves.slice(kept);
    const verdict = verdictOf(past, cluster, base, draft, {
      effectSeconds: effectOf(cluster, moves, memory),
      cooldownSeconds: options.cooldownSeconds,
    });
    const waits = waitsOf(memory);
    const limitMs = waitLimit(waits, now);
    const against = againstPlan(verdict, now, limitMs, moves.length);
    if (against === null) return null;
    if (limitMs <= now) {
      const code: ReasonCode = waits.open === null ? 'forecast-unearned' : 'forecast-late';
      draft.warnings.push({ code, text: reasonMeanings[code] });
      return null;
    }
    draft.rollback(kept);
    if (kept > 0) draft.warnings.push(against);
    return against;
  }

  const window = migrationWindow(options, now);
  const evacuates = cluster.leaving.includes(1);
  const onlyEvacuation = shut?.passable === true && evacuates && options.evacuationIgnoresCooldown;
  if (shut !== null && !onlyEvacuation) return end('gated', shut.reason);

  for (let v = 0; v < cluster.V; v++) {
    const refusal = int(cluster.vmRefusal, v);
    if (refusal !== 0) draft.refusals.add(refusal);
    else if (cluster.evacuationOnly[v] !== 0 && cluster.leaving[int(cluster.vmHost, v)] !== 1)
      draft.refusals.add(int(cluster.evacuationOnly, v));
  }
  if (evacuates) evacuate(draft);
  let nothing: ReasonCode = 'balanced';
  let endedBy: SearchEnd | null = null;
  let expected: Reason | null = null;
  // Evacuations that may be released now do not wait for other moves.
  const evacuatesNow = !window.open && options.evacuationIgnoresWindows && draft.moves.length > 0;
  if (!onlyEvacuation && !evacuatesNow) {
    enforceAffinity(draft, options);
    const quiet = quietReason(observed, mode, imbalances(cluster, draft.score), before.policies, options);
    nothing = quiet ?? (mode === 'pack' ? 'no-drain' : 'no-improvement');
    if (quiet === null && draft.budget > 0)
      if (mode === 'pack') drains = pack(draft, fullBudget, options);
      else {
        const kept = draft.moves.length;
        const base = { score: Float64Array.from(draft.score), place: Int32Array.from(draft.place) };
        endedBy = spread(draft, fullBudget, options, carryOut);
        if (endedBy === 'work') nothing = 'search-limit';
        if (options.forecast && draft.moves.length > kept) expected = foresee(kept, base);
      }
  }
  const evacuations = evacuates ? evacuationEnds(draft) : [];

  if (draft.moves.length === 0) {
    if (shut !== null) return end('gated', shut.reason, null, evacuations);
    if (expected !== null) return end('quiet', expected, null, evacuations);
    const code: ReasonCode = budget === 0 ? 'no-budget' : nothing;
    return end('quiet', { code, text: reasonMeanings[code] }, null, evacuations);
  }

  completed = complete(snapshot.id, draft, drains, options);
  const { after } = completed;
  const steps = withinWindows(completed.steps, window, observed, options);
  if (steps.length === 0)
    return end('quiet', { code: 'order-impossible', text: reasonMeanings['order-impossible'] }, null, evacuations);
  const reached = states(observed, after, sustained);
  const { lowerBound, shareOfPossible } =
    mode === 'spread' && before.combined !== null && reached.combined !== null
      ? quality(cluster, budget, before.combined, reached.combined)
      : { lowerBound: null, shareOfPossible: null };
  const limited = steps.some((step) => step.phase !== 'evacuate' || !options.evacuationIgnoresWindows);
  const until = window.untilMs === null ? null : new Date(window.untilMs).toISOString();
  const moves = `${steps.length} of at most ${budget} moves`;
  const reason: Reason = limited ? plannedReason(moves, window) : { code: 'planned', text: moves };
  return end(
    'planned',
    reason,
    {
      id: snapshot.id,
      planner: options.planner,
      budget,
      steps,
      after: reached,
      lowerBound,
      shareOfPossible,
      candidatesEvaluated: draft.evaluated,
      ...(endedBy === null ? {} : { endedBy }),
      ...(limited && (!window.open || until !== null) ? { window: { open: window.open, until } } : {}),
    },
    evacuations,
  );
}

const waitsOf = ({ waits }: Memory): Waits =>
  waits === undefined
    ? noWaits
    : {
        open:
          waits.open === null
            ? null
            : {
                sinceMs: Date.parse(waits.open.since),
                untilMs: Date.parse(waits.open.until),
                plannedMs: waits.open.plannedMs,
              },
        days: waits.days,
      };

/** The largest `maxMigrationsPerCycle` of the enabled policies. */
export function cycleBudget(snapshot: Pick<Snapshot, 'policies'>): number {
  const enabled = snapshot.policies.filter((policy) => policy.enabled);
  if (enabled.length === 0) return RULES_ONLY_BUDGET;
  return Math.max(...enabled.map((policy) => policy.maxMigrationsPerCycle));
}

/** The reason that there is nothing to balance; null when there is something. */
function quietReason(
  observed: Observed,
  mode: Policy['mode'],
  imbalance: Float64Array,
  policies: readonly PolicyImbalance[],
  options: EngineOptions,
): ReasonCode | null {
  if (!options.balance) return 'rules-only';
  const { cluster, judged } = observed;
  if (cluster.P === 0) return 'nothing-scored';
  if (mode === 'pack') return null;
  // A skipped policy may be far above its threshold.
  if (allWithin(cluster, imbalance))
    return judged.every(({ reason }) => reason === null) ? 'balanced' : 'partly-scored';
  const due = policies.some((state) => {
    const policy = judged.find((j) => j.policy.name === state.policy)?.policy;
    return state.detected && state.sustainedCycles >= (policy?.minSustainedCycles ?? 0);
  });
  return due ? null : 'not-sustained';
}

/** The state of every enabled policy, from the imbalances of the policies that take part. */
function states(
  observed: Observed,
  imbalance: Float64Array,
  sustained: (policy: string, detected: boolean) => number,
): Decision['before'] {
  const { cluster, judged } = observed;
  const policies = judged.map(({ policy, reason }): PolicyImbalance => {
    const p = cluster.policies.findIndex((model) => model.name === policy.name);
    const value = reason === null ? float(imbalance, p) : null;
    const detected = value !== null && isAbove(value, policy.threshold);
    return {
      policy: policy.name,
      imbalance: value,
      threshold: policy.threshold,
      participates: reason === null,
      detected,
      sustainedCycles: sustained(policy.name, detected),
    };
  });
  return { combined: cluster.P === 0 ? null : combinedOf(cluster, imbalance), policies };
}
