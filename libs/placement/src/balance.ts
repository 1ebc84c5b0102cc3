import { count, foreignText, type Reason } from '@kronos/contracts';
import { isAbove, noWaits, waitLimit } from '@kronos/rules';
import { allWithin, imbalances, worsened } from './cluster/measure.ts';
import { type Ahead, againstPlan, effectOf, pastOf, verdictOf } from './forecast.ts';
import { pack } from './passes/pack.ts';
import { type NoiseKnown, type Spread, spread } from './passes/spread.ts';
import { type ReasonCode, reasonMeanings } from './reasons.ts';
import type { CarryOut } from './search/anneal/runs.ts';
import { own } from './snapshot/unmovable.ts';
import { type Passed, reasonOf, type State } from './state.ts';

/** The imbalance planner: spreads or packs with what the other passes left of the budget. */
export function balance(state: State, carryOut: CarryOut): Passed {
  const { draft, fullBudget, options, mode } = state;
  // Moves in flight use it up, whatever there is to do.
  if (state.budget === 0) return { end: reasonOf('no-budget') };
  const quiet = quietReason(state);
  if (quiet === 'balanced' && goesOn(state)) return goOn(state, carryOut);
  if (quiet !== null) return { end: reasonOf(quiet) };
  const others = othersMove(state);
  if (others !== null) return { end: others };
  const kept = draft.moves.length;
  if (draft.budget === 0) return { moves: 0 };
  if (mode === 'pack') {
    state.drains = pack(draft, fullBudget, options);
    return added(kept, 'no-drain');
  }
  const base = { score: Float64Array.from(draft.score), place: Int32Array.from(draft.place) };
  const found = spread(draft, fullBudget, { ...options, noise: noiseKnown(state) }, carryOut);
  const { end, course } = found;
  state.endedBy = end;
  state.course = course;
  draft.warnings.push(...found.unreachable);
  const against = options.forecast && draft.moves.length > kept ? foresee(state, kept, base) : null;
  if (against !== null) return { end: against };
  if (draft.moves.length > kept) return { moves: draft.moves.length - kept };
  return { end: nothingFound(found) };

  function added(before: number, nothing: ReasonCode): Passed {
    const moves = draft.moves.length - before;
    return moves === 0 ? { end: reasonOf(nothing) } : { moves };
  }
}

/** Below the thresholds a course goes on that began above one, unless anything else is to be done in this cycle. */
const goesOn = (state: State): boolean =>
  state.memory.courseMoves !== undefined &&
  state.options.planner === 'search' &&
  state.draft.moves.length === 0 &&
  othersMove(state) === null;

/** The next part of a course that goes on below the thresholds. The forecast has no say: it counts the time above them. */
function goOn(state: State, carryOut: CarryOut): Passed {
  const { draft, fullBudget, options, memory } = state;
  const noise = noiseKnown(state);
  const found = spread(draft, fullBudget, { ...options, noise, courseMoves: memory.courseMoves ?? 0 }, carryOut);
  if (found.withheld !== null) return { end: nothingFound(found) };
  if (draft.moves.length === 0) return { end: reasonOf('balanced') };
  state.endedBy = found.end;
  state.course = found.course;
  return { moves: draft.moves.length };
}

/** The reason that moves of others leave nothing to balance; null when there is none. Unknown moves may be any. */
function othersMove({ snapshot: { endedMigrations }, options, foreign }: State): Reason | null {
  if (endedMigrations === null && options.foreignMoves === 'wait') return reasonOf('foreign-unknown');
  if (foreign?.waitUntil === undefined) return null;
  return { code: 'foreign-moves', text: foreignText(foreign), detail: { until: foreign.waitUntil } };
}

/** The reason that a search found no moves for this cycle. */
function nothingFound({ end, course, proven, withheld }: Spread): Reason {
  if (withheld !== null) {
    const [gain, least] = [figure(withheld.gain), figure(withheld.least)];
    const text = `${count(withheld.moves, 'move')} would lower the combined imbalance by ${gain}; the noise of the last cycles explains up to ${least}`;
    return {
      code: 'within-noise',
      text,
      detail: { moves: withheld.moves, gain: withheld.gain, least: withheld.least },
    };
  }
  if (course !== null) {
    const text = `the smallest part of the course has ${course.needed} moves: set max_migrations_per_cycle to ${course.needed} or more`;
    return { code: 'budget-too-small', text, detail: { needed: course.needed } };
  }
  if (end === 'work') return reasonOf('search-limit');
  const { code, text } = reasonOf('no-improvement');
  const why = proven
    ? 'The bound proves it for any number of moves.'
    : 'The search ended without one; that is no proof.';
  return { code, text: `${text} ${why}`, detail: { proven: proven ? 1 : 0 } };
}

const figure = (value: number): string => String(Number(value.toFixed(4)));

function noiseKnown({ observed, memory, before, snapshot, now }: State): NoiseKnown {
  let variance = 0;
  for (const { name, weight } of observed.cluster.policies)
    variance += (weight * (own(memory.noise ?? {}, name) ?? 0)) ** 2;
  const { lastRelease } = memory;
  const sinceRelease =
    lastRelease === null ? Number.POSITIVE_INFINITY : (now - lastRelease.atMs) / (1000 * snapshot.intervalSeconds);
  const above = before.policies.flatMap(({ detected, sustainedCycles }) => (detected ? [sustainedCycles] : []));
  const cycles = Math.floor(Math.min(sinceRelease, ...above));
  return { combined: Math.sqrt(variance), cycles };
}

/** The reason that there is nothing to balance; null when there is something. */
function quietReason({ observed, mode, draft, before, options }: State): ReasonCode | null {
  if (!options.balance) return 'rules-only';
  const { cluster, judged } = observed;
  if (cluster.P === 0) return 'nothing-scored';
  if (mode === 'pack') return null;
  // A skipped policy may be far above its threshold.
  if (allWithin(cluster, imbalances(cluster, draft.score))) return calm(judged, before);
  const due = before.policies.some((state) => {
    const policy = judged.find((j) => j.policy.name === state.policy)?.policy;
    return state.detected && state.sustainedCycles >= (policy?.minSustainedCycles ?? 0);
  });
  // Moves that had to come first caused the imbalance: there is no noise to wait out.
  const caused =
    draft.moves.length > 0 && worsened(cluster, imbalances(cluster, cluster.score), imbalances(cluster, draft.score));
  return due || caused ? null : 'not-sustained';
}

/** Why nothing is to balance, with every policy that acts within its threshold. */
function calm(judged: State['observed']['judged'], before: State['before']): ReasonCode {
  if (judged.some(({ reason }) => reason !== null)) return 'partly-scored';
  const idle = before.policies.some(
    ({ acts, imbalance, threshold }) => acts === false && isAbove(imbalance ?? 0, threshold),
  );
  return idle ? 'no-contention' : 'balanced';
}

/** Undoes the moves of the draft after the first `kept` when the forecast speaks against them. Returns the reason. */
function foresee({ snapshot, observed, draft, options, memory, now }: State, kept: number, base: Ahead): Reason | null {
  const { cluster, judged } = observed;
  const past = pastOf({ snapshot, judged, cluster, options });
  if (!past.known) {
    draft.warnings.push({ code: 'no-forecast', text: past.text });
    return null;
  }
  const moves = draft.moves.slice(kept);
  const verdict = verdictOf(
    past,
    cluster,
    { base, planned: draft },
    {
      effectSeconds: effectOf(cluster, moves, memory),
      cooldownSeconds: options.cooldownSeconds,
    },
  );
  const waits = memory.waits ?? noWaits;
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
