import { clause, count, type decisionWords, type EngineOptions } from '@kronos/contracts';
import {
  brokenHosts,
  type CourseLeft,
  cooldownOf,
  courseLeft,
  inFlight,
  openCellPlans,
  optionsOf,
  pauseInForce,
  planTime,
  quarantineTable,
  remedyOf,
  type TaskFacts,
  waitingPlan,
} from '@kronos/projections';
import { cellStage } from './cells.ts';
import { type DrainStatus, drainStatus } from './drains.ts';
import type { AggregateInput } from './facts.ts';
import { worstRatio } from './ratio.ts';
import { span, when } from './times.ts';
import { lateWaits, type Wait, type Waiting, waitWords } from './waits.ts';

export type AggregateStatus = {
  readonly aggregate: string;
  /** Its current activity, in a few words. */
  readonly doing: string;
  /** The event for which it waits; null: only for the next cycle. */
  readonly waitsFor: string | null;
  readonly lastLook: { readonly timeMs: number; readonly hosts: number; readonly servers: number } | null;
  readonly lastDecision: {
    readonly atMs: number;
    readonly outcome: keyof typeof decisionWords;
    readonly text: string;
    readonly combined: number | null;
  } | null;
  readonly policies: readonly {
    readonly policy: string;
    readonly imbalance: number | null;
    readonly threshold: number;
    readonly detected: boolean;
    /** Absent: the policy has no act_above. */
    readonly acts?: boolean;
  }[];
  /** See `worstRatio`. */
  readonly ratio: number | null;
  /** The rest of the course to the targets; null: they are reached, or no course is known. */
  readonly course: CourseLeft | null;
  readonly moves: readonly MoveStatus[];
  /** Waits that are longer than expected. */
  readonly waits: readonly LateWait[];
  /** Hosts that are being emptied, or are empty and wait for their end. */
  readonly drains: readonly DrainStatus[];
  readonly quarantined: number;
  readonly brokenHosts: readonly { readonly host: string; readonly untilMs: number }[];
};

type LateWait = Pick<Wait, 'code' | 'of' | 'sinceMs'> & {
  /** The task, plan or drain that waits. */
  readonly about: Waiting;
  readonly text: string;
  readonly remedy: string;
};

type MoveStatus = {
  readonly taskId: string;
  readonly vm: string;
  readonly from: string;
  readonly to: string;
  readonly state: 'waiting' | 'migrating' | 'retrying';
  readonly attempt: number;
  readonly sinceMs: number;
  readonly note: string;
};

export const COOLING_DOWN = 'cooling down';

export function aggregateStatus(input: AggregateInput, nowMs: number): AggregateStatus {
  const { aggregate, state, newest } = input;
  const options = optionsOf(state);
  const moves = inFlight(state).map((task) => moveStatus(task, nowMs));
  const { decided } = state;
  return {
    aggregate,
    ...occupation(input, options, moves, nowMs),
    lastLook: newest === null ? null : { timeMs: newest.timeMs, hosts: newest.hosts, servers: newest.servers },
    lastDecision:
      decided === null
        ? null
        : {
            atMs: decided.snapshotMs,
            outcome: decided.outcome,
            text: decided.reason.text,
            combined: decided.before.combined,
          },
    policies: (decided?.before.policies ?? []).map(({ policy, imbalance, threshold, detected, acts }) => ({
      policy,
      imbalance,
      threshold,
      detected,
      ...(acts === undefined ? {} : { acts }),
    })),
    ratio: worstRatio(decided?.before.policies ?? []),
    course: courseLeft(state, nowMs),
    moves,
    waits: lateWaits(state, nowMs).map(({ about, wait: { code, of, sinceMs, ...wait } }) => ({
      about,
      code,
      of,
      sinceMs,
      ...waitWords(aggregate, about, { code, of, sinceMs, ...wait }),
    })),
    drains: [...state.drains.values()].map((drain) => drainStatus(state, drain)),
    quarantined: quarantineTable(state, nowMs, options).length,
    brokenHosts: brokenHosts(state, nowMs, options),
  };
}

const closeText = ({ force }: NonNullable<TaskFacts['closeAsked']>): string =>
  force === true ? 'ends within a minute, whatever Nova shows' : 'waits until Nova no longer works on the VM';

/** The commands of people for a task. */
function askedOf({ abortAsked, cancelAsked, closeAsked }: TaskFacts): string[] {
  const stop = abortAsked ?? cancelAsked;
  return [
    ...(stop === null ? [] : [`${stop.by} asked to stop it`]),
    ...(closeAsked === null ? [] : [`${closeAsked.by} closed it: it ${closeText(closeAsked)}`]),
  ];
}

function moveStatus(task: TaskFacts, nowMs: number): MoveStatus {
  const { step, slot } = task;
  const notes = [
    ...(slot?.cell === undefined ? [] : [cellStage(task).text]),
    ...askedOf(task),
    ...(task.lastFailure === null ? [] : [`attempt ${task.lastFailure.attempt}: ${task.lastFailure.reason.text}`]),
    ...(slot === null && task.notBeforeMs > nowMs ? [`not before ${when(task.notBeforeMs, nowMs)}`] : []),
    ...(slot?.migrationId === null || slot === null ? [] : [`Nova's migration ${slot.migrationId}`]),
  ];
  return {
    taskId: task.id,
    vm: step.serverName,
    from: step.from,
    to: task.destination,
    state: slot !== null ? 'migrating' : task.status === 'retryPending' ? 'retrying' : 'waiting',
    attempt: task.attempt,
    sinceMs: slot?.startedAtMs ?? task.notBeforeMs,
    note: notes.join('; '),
  };
}

/** About how long the moves of a plan take, by those of its aggregate. */
function aboutOf(state: AggregateInput['state'], steps: Parameters<typeof planTime>[1]): string {
  const time = planTime(state, steps, []);
  return time === null ? '' : ` (about ${span(time.expectedMs)})`;
}

/** Of quiet decisions, by the code of the reason; all others watch. */
const OCCUPATIONS: Readonly<Record<string, string>> = {
  'nothing-scored': 'not balancing',
  'partly-scored': 'balancing in part',
  stuck: 'stuck',
  evacuating: 'evacuating',
};

const stateWords = (outcome: string, code: string): string =>
  outcome === 'gated' ? 'blocked by' : (OCCUPATIONS[code] ?? 'watching');

/** The activity of an aggregate and the event for which it waits: the first that holds, the most telling one first. */
function occupation(
  { state, newest }: AggregateInput,
  options: EngineOptions,
  moves: readonly MoveStatus[],
  nowMs: number,
): Occupation {
  const migrating = moves.filter((move) => move.state === 'migrating').length;
  const stopped = paused(state, migrating, nowMs) ?? unreadable(state);
  if (stopped !== null) return stopped;
  const answer = awaited(state, nowMs);
  if (moves.length > 0) {
    const over = [...state.plans.values()].reduce((sum, p) => sum + p.completed + p.failed + p.skipped, 0);
    const doing = `moving: ${migrating} running, ${moves.length - migrating} waiting, ${over} ended`;
    if (answer !== null) return { doing: `${doing}; ${answer.doing}`, waitsFor: answer.waitsFor };
    const note = moves.find((move) => move.note !== '')?.note ?? 'an executor to start them';
    return { doing, waitsFor: migrating > 0 ? null : note };
  }
  if (answer !== null) return answer;
  if (newest === null) return { doing: 'no snapshot yet', waitsFor: 'the first snapshot of the scorer' };
  const cooldown = cooldownOf(state, nowMs, options);
  if (cooldown === null) return decidedLast(state);
  const cause = { released: 'a release', rejected: 'a rejection', expired: 'an expiry' }[cooldown.cause];
  return { doing: `${COOLING_DOWN} after ${cause}`, waitsFor: `${when(cooldown.untilMs, nowMs)}` };
}

type Occupation = Pick<AggregateStatus, 'doing' | 'waitsFor'>;
type State = AggregateInput['state'];

function paused({ aggregate, paused }: State, migrating: number, nowMs: number): Occupation | null {
  const pause = pauseInForce({ paused });
  if (pause === null) return null;
  const going =
    migrating > 0 ? `; ${count(migrating, 'running migration')} ${migrating === 1 ? 'continues' : 'continue'}` : '';
  const why = pause.comment === null ? '' : `: ${pause.comment}`;
  return {
    doing: `paused by ${pause.by} since ${when(pause.atMs, nowMs)}${why}${going}`,
    waitsFor: paused.here === null ? 'kronos resume --all' : `kronos resume -a ${aggregate}`,
  };
}

function unreadable({ unreadable: event }: State): Occupation | null {
  if (event === null) return null;
  return {
    doing: 'nothing is planned: the log holds an event that this version cannot read',
    waitsFor: `event ${event.sequence} (${event.claimedType} version ${event.claimedVersion ?? '?'}): ${event.problem}. ${remedyOf(event)}`,
  };
}

/** The plan that a person has to answer. */
function awaited(state: State, nowMs: number): Occupation | null {
  const waiting = waitingPlan(state, nowMs);
  if (waiting?.open === true) {
    const { plan, expiresAtMs } = waiting;
    const what = `a plan of ${count(plan.proposed.length, 'step')}${aboutOf(state, plan.proposed)}`;
    return asksFor(plan.id, what, when(expiresAtMs, nowMs));
  }
  const [between] = openCellPlans(state, nowMs);
  if (between === undefined) return null;
  const { plan, expiresAtMs } = between;
  const what = `a plan of ${count(plan.proposed.length, 'move')} to ${plan.cells?.to}`;
  return asksFor(plan.id, what, when(expiresAtMs, nowMs));
}

const asksFor = (planId: string, what: string, until: string): Occupation => ({
  doing: `${what} waits for approval until ${until}`,
  waitsFor: `kronos approve ${planId}, or kronos reject`,
});

/** The occupation that the last decision left. */
function decidedLast({ decided }: State): Occupation {
  if (decided === null) return { doing: 'no decision yet', waitsFor: 'the first decision of the planner' };
  const { outcome, release, reason } = decided;
  if (outcome === 'planned' && release === 'dryRun')
    return { doing: `dry run: ${clause(reason.text)}, recorded, not released`, waitsFor: '[engine] dry_run = false' };
  if (outcome === 'planned' && release === 'none')
    return {
      doing: `not released: ${clause(reason.text)}${reason.code === 'outside-window' ? '' : '; the window closed before the decision was made'}`,
      waitsFor: 'the next window',
    };
  return { doing: `${stateWords(outcome, reason.code)}: ${clause(reason.text)}`, waitsFor: null };
}
