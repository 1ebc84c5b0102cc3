/** The marks of the time bar: plans, moves, pauses and drains, each with its text and a link to the reason. Pure except for the links. */
import { timesOf } from './moment.js';
import { clockTime, link, ratioText, said } from './parts.js';
import { ratioAt } from './ratio.js';
import { count } from './words.js';

const KINDS = {
  'aggregate.paused': 'pause',
  'aggregate.resumed': 'pause',
  'host.drainAsked': 'drain',
  'host.drained': 'drain',
  'host.undrainAsked': 'drain',
  'plan.approved': 'person',
  'plan.rejected': 'person',
};

const momentBefore = ({ times, snapshotIds }, time) => snapshotIds[times.findLastIndex((at) => at <= time)];

/** The address of the moment of an event: the newest cycle before it. */
export const momentOfEvent = (name, series, time) => link.aggregate(name, momentBefore(series, time));

/** The highest multiple of a threshold that a decision saw. */
function worstAt({ policies }, i) {
  const ratios = policies.flatMap((policy) => ratioAt(policy, i) ?? []);
  return ratios.length === 0 ? null : Math.max(...ratios);
}

/** The plans of the series: each at the time when it was made. */
function plans(series) {
  const { starts, runs } = timesOf(series);
  return series.steps.flatMap((steps, i) => {
    if (steps === 0) return [];
    const run = runs.find(({ planId }) => planId === series.snapshotIds[i]);
    const done = run === undefined || run.releasedMs === null ? '' : `, ${run.completed.length} of ${run.steps} done`;
    const ratio = worstAt(series, i);
    return {
      ms: run?.decidedMs ?? starts[i],
      kind: 'plan',
      text: `Plan of ${count(steps, 'move')}${ratio === null ? '' : `: ${ratioText(ratio)}`}${done}`,
      href: link.plan(series.snapshotIds[i], series.sequences[i]),
    };
  });
}

/**
 * Marks of an aggregate, the oldest first.
 *
 * @param history events in words; @param moves the newest moves, with the names of their VMs: older ones are marked by their plans
 */
export function marksOf(name, series, { history = [], moves = [] } = {}) {
  const named = moves
    .filter(({ startedAt }) => startedAt !== null)
    .map((m) => ({
      ms: Date.parse(m.startedAt),
      kind: m.outcome === 'failed' || m.outcome === 'damaged' ? 'failed' : 'moved',
      text: `${m.serverName ?? m.serverId}: ${m.from} to ${m.to}`,
      href: link.vm(name, m.serverId, momentBefore(series, m.startedAt)),
    }));
  const since = Math.min(Number.POSITIVE_INFINITY, ...named.map(({ ms }) => ms));
  const older = timesOf(series).runs.flatMap(({ planId, sequence, decidedMs, started }) =>
    started
      .filter((ms) => ms < since)
      .map((ms) => ({
        ms,
        kind: 'moved',
        text: `A move of the plan${decidedMs === null ? '' : ` of ${clockTime(decidedMs)}`}`,
        href: link.plan(planId, sequence ?? undefined),
      })),
  );
  const acts = history
    .filter(({ type, time }) => KINDS[type] !== undefined && time !== null)
    .map((e) => ({
      ms: Date.parse(e.time),
      kind: KINDS[e.type],
      text: said(e.text),
      href: momentOfEvent(name, series, e.time),
    }));
  return [...older, ...named, ...acts, ...plans(series)].toSorted((a, b) => a.ms - b.ms);
}

const bare = new WeakMap();
/** The same without what the log says in words: the same ones for every moment that is looked at. */
export function planMarks(name, series) {
  const known = bare.get(series) ?? marksOf(name, series);
  bare.set(series, known);
  return known;
}
