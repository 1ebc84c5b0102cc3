/** The course that the last decision found which looked for one, and what of it is left. */
import type { LogEventOf } from '@kronos/contracts';
import type { WritableFacts } from './draft.ts';
import type { AggregateState, CourseFacts } from './state.ts';

/** A gated decision looks for no course, nor does one whose budget is in flight: what was left before is left still. */
export function courseSeen(
  f: WritableFacts,
  { outcome, reason, course, plan }: LogEventOf<'cycle.decided'>['data'],
  snapshotMs: number,
): void {
  if (outcome === 'gated' || reason.code === 'no-budget') return;
  if (course === undefined) {
    f.course = null;
    return;
  }
  const { reaches, moves, cycles, seconds, neededBudget } = course;
  f.course = {
    planId: plan?.id ?? null,
    atMs: snapshotMs,
    reaches,
    moves,
    cycles,
    seconds,
    ...(neededBudget === undefined ? {} : { neededBudget }),
  };
}

/** The rest of a course. */
export type CourseLeft = Pick<CourseFacts, 'reaches' | 'moves' | 'cycles' | 'seconds' | 'neededBudget'>;

/** The course less the moves that its plan has made. Null: nothing is left, no course was found, or none is known. Pure. */
export function courseLeft(
  { course, plans, recentPlans }: Pick<AggregateState, 'course' | 'plans' | 'recentPlans'>,
  nowMs: number,
): CourseLeft | null {
  if (course === null) return null;
  const { planId, atMs: _, ...left } = course;
  const open = planId === null ? undefined : plans.get(planId);
  const over = recentPlans.findLast(({ id }) => id === planId);
  const releasedAtMs = open?.release?.atMs ?? over?.releasedAtMs ?? null;
  // Nothing of it has begun.
  if (releasedAtMs === null) return left;
  const moves = left.moves - (open?.completed ?? over?.completed ?? 0);
  if (moves <= 0) return null;
  return {
    ...left,
    moves,
    cycles: Math.max(1, left.cycles - (open === undefined ? 1 : 0)),
    seconds: Math.max(0, Math.round(left.seconds - (nowMs - releasedAtMs) / 1000)),
  };
}

/**
 * The moves of a course to the targets that are left after the part that was released: they are made below the thresholds too. Moves in flight
 * count as made. Null: no part was released, nothing is left, the targets are out of reach, or a move failed or was cancelled, so that the
 * thresholds decide again. Pure.
 */
export function movesToGo({
  course,
  plans,
  recentPlans,
}: Pick<AggregateState, 'course' | 'plans' | 'recentPlans'>): number | null {
  if (course === null || !course.reaches || course.planId === null) return null;
  const open = plans.get(course.planId);
  const over = recentPlans.findLast(({ id }) => id === course.planId);
  const part =
    open === undefined ? over : { ...open, tasks: open.tasks.length, releasedAtMs: open.release?.atMs ?? null };
  if (part === undefined || part.releasedAtMs === null || part.failed > 0 || part.skipped > 0) return null;
  const left = course.moves - part.tasks;
  return part.tasks > 0 && left > 0 ? left : null;
}
