/** The past moment of an aggregate: what happened then in one sentence, and the plan that belongs to it. */
import { html } from './lib/lit-html.js';
import { clockTime, ratioText, said } from './parts.js';
import { ratioAt } from './ratio.js';
import { momentAt, momentText, runEndMs, worstOf } from './times.js';

const ms = (time) => (time === null ? null : Date.parse(time));

/** The figures of each series, the same for every moment that a person looks at. */
const known = new WeakMap();

/** Whether moves of a released plan were left at that time: what was decided then counts them as done. */
const promisedAt = (runs, atMs) =>
  runs.some((run) => {
    if (run.releasedMs === null || run.releasedMs >= atMs) return false;
    const end = runEndMs(run);
    return end === null || end >= atMs;
  });

/** The times of the cycles, the plans with their moves, all times at which something happened, and at which cycles moves were left. */
export function timesOf(series) {
  const before = known.get(series);
  if (before !== undefined) return before;
  const runs = series.runs.map(({ decidedAt, releasedAt, started, completed, failed, skipped, ...run }) => ({
    ...run,
    decidedMs: ms(decidedAt),
    releasedMs: ms(releasedAt),
    started: started.map(ms),
    completed: completed.map(ms),
    failed: failed.map(ms),
    skipped: skipped.map(ms),
  }));
  const starts = series.times.map(ms);
  const happened = [
    ...starts.filter((_, i) => series.steps[i] > 0),
    ...runs.flatMap(({ started, completed, failed }) => [...started, ...completed, ...failed]),
  ].toSorted((a, b) => a - b);
  const found = { starts, runs, happened, promised: starts.map((start) => promisedAt(runs, start)) };
  known.set(series, found);
  return found;
}

/** The index of a snapshot; null: it is of now; -1: the series does not have it. */
export const indexOf = ({ snapshotIds }, snapshot) => (snapshot === null ? null : snapshotIds.indexOf(snapshot));

/** A moment and its plans; null: the cycle is not known. */
export function momentOf(series, index) {
  if (index < 0) return null;
  const { starts, runs } = timesOf(series);
  return momentAt(runs, { snapshotId: series.snapshotIds[index], timeMs: starts[index] });
}

/** The time of day; the day too, where it is another one than that of the moment. */
const clockAt = (atMs) => (other) => {
  const [day, time] = clockTime(other).split(' ');
  return clockTime(atMs).startsWith(day) ? time : `${day} ${time}`;
};

/** The policy's multiple of its threshold in the first cycle after the last move. */
function later(series, { endMs }, worst) {
  if (endMs === null || worst === null) return null;
  const { starts } = timesOf(series);
  const index = starts.findIndex((start) => start > endMs);
  const own = series.policies.find(({ policy }) => policy === worst.policy);
  const ratio = own === undefined ? null : ratioAt(own, index);
  return ratio === null ? null : { atMs: starts[index], ratio };
}

/**
 * Tells the moment in one to three short sentences.
 *
 * @param policies as measured then; none where that is not known
 */
function told(series, index, policies) {
  const moment = momentOf(series, index);
  if (moment === null) return '';
  const worst = worstOf(policies);
  const reason = series.steps[index] > 0 ? null : series.reasons[series.reason[index]];
  const wording = { clock: clockAt(moment.atMs), ratio: ratioText };
  return said(momentText(moment, { worst, later: later(series, moment, worst), reason }, wording));
}

/** The same at the head of a page; nothing now. @param seen what is known of the snapshot, with its policies; or why it is not */
export const pastStory = (series, index, seen) =>
  index === null || index < 0 ? '' : html`<p class="story">${told(series, index, seen.policies ?? [])}</p>`;

/** The plan of the moment: the one that ran, or the one that was made then; never one of its future. Null: there was none. */
export function planOfMoment(series, index) {
  const moment = momentOf(series, index);
  const run = moment?.running.at(-1) ?? moment?.made ?? null;
  if (run === null || run.sequence === null) return null;
  return { id: run.planId, sequence: run.sequence, atMs: run.releasedMs ?? run.decidedMs };
}
