import { defaultEngineOptions, type EngineOptions, type Reason, type Stuck } from '@kronos/contracts';
import {
  type AggregateState,
  aggregateCooldown,
  brokenHosts,
  inFlight,
  notAfterMs,
  quarantineTable,
  type TaskFacts,
  undispatched,
  waitingPlan,
} from '@kronos/projections';
import { count, figure } from '../terminal.ts';
import { span, when } from '../times.ts';

/** Something that somebody has to look at. */
export type Alarm = { readonly about: string; readonly text: string };

/** What is known about one aggregate beside its folded state. */
export type AggregateInput = {
  readonly aggregate: string;
  readonly state: AggregateState;
  /** The newest snapshot on the stream; null when there is none. */
  readonly newest: {
    readonly timeMs: number;
    readonly hosts: number;
    readonly servers: number;
    readonly problems: readonly Reason[];
  } | null;
  /** Of the last decision: what could not be done. */
  readonly lastDecision: { readonly stuck: readonly Stuck[]; readonly warnings: readonly Reason[] } | null;
};

export type AggregateStatus = {
  readonly aggregate: string;
  /** What it is doing, in a few words. */
  readonly doing: string;
  /** What has to happen before it does more; null when it waits for nothing but the next cycle. */
  readonly waitsFor: string | null;
  readonly lastLook: AggregateInput['newest'];
  readonly lastDecision: {
    readonly atMs: number;
    readonly outcome: string;
    readonly text: string;
    readonly combined: number | null;
  } | null;
  readonly policies: readonly {
    readonly policy: string;
    readonly imbalance: number | null;
    readonly threshold: number;
    readonly detected: boolean;
  }[];
  readonly moves: readonly MoveStatus[];
  readonly quarantined: number;
  readonly brokenHosts: readonly { readonly host: string; readonly untilMs: number }[];
  readonly alarms: readonly Alarm[];
};

export type MoveStatus = {
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

/** A move that nobody started this long after it could be is a sign that no executor works. */
const UNSTARTED_MS = 120_000;
/** An attempt that runs for longer is looked at by nobody, or Nova is stuck. */
const LONG_RUNNING_MS = 4 * 3_600_000;
/** An abort that has had no effect for so long was refused by Nova, or nobody follows the move. */
const ABORT_MS = 120_000;
/** Released tasks reach the queue at once. */
const DISPATCH_MS = 60_000;
/** A snapshot is decided within seconds. */
const DECIDE_MS = 30_000;

export function aggregateStatus(input: AggregateInput, nowMs: number): AggregateStatus {
  const { aggregate, state, newest } = input;
  const options = state.configured?.options ?? defaultEngineOptions;
  const moves = inFlight(state).map((task) => moveStatus(task, nowMs));
  const { decided } = state;
  return {
    aggregate,
    ...occupation(input, options, moves, nowMs),
    lastLook: newest,
    lastDecision:
      decided === null
        ? null
        : {
            atMs: decided.snapshotMs,
            outcome: decided.outcome,
            text: decided.reason.text,
            combined: decided.before.combined,
          },
    policies: (decided?.before.policies ?? []).map(({ policy, imbalance, threshold, detected }) => ({
      policy,
      imbalance,
      threshold,
      detected,
    })),
    moves,
    quarantined: quarantineTable(state, nowMs, options).length,
    brokenHosts: brokenHosts(state, nowMs, options),
    alarms: alarmsOf(input, options, nowMs),
  };
}

function moveStatus(task: TaskFacts, nowMs: number): MoveStatus {
  const { step, slot } = task;
  const asked = task.abortAsked ?? task.cancelAsked;
  const notes = [
    ...(asked === null ? [] : [`${asked.by} asked to stop it`]),
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

/** What an aggregate is doing and what it waits for: the first that holds, the most telling one first. */
function occupation(
  { state, newest }: AggregateInput,
  options: EngineOptions,
  moves: readonly MoveStatus[],
  nowMs: number,
): Pick<AggregateStatus, 'doing' | 'waitsFor'> {
  const paused = state.paused.here ?? state.paused.everywhere;
  const resume = state.paused.here === null ? 'kronos resume --all' : `kronos resume ${state.aggregate}`;
  const migrating = moves.filter((move) => move.state === 'migrating').length;
  if (paused !== null) {
    const going =
      migrating > 0 ? `; ${count(migrating, 'move')} that Nova runs ${migrating === 1 ? 'goes' : 'go'} on` : '';
    const why = paused.comment === null ? '' : `: ${paused.comment}`;
    return { doing: `paused by ${paused.by} since ${when(paused.atMs, nowMs)}${why}${going}`, waitsFor: resume };
  }
  if (state.unreadable !== null)
    return {
      doing: 'nothing is planned: the log holds an event that this version cannot read',
      waitsFor: `a newer version of Kronos (event ${state.unreadable.sequence}: ${state.unreadable.claimedType} version ${state.unreadable.claimedVersion ?? '?'})`,
    };
  const waiting = waitingPlan(state, nowMs);
  const answer =
    waiting?.open === true
      ? {
          doing: `a plan of ${count(waiting.plan.proposed.length, 'step')} waits for approval until ${when(waiting.expiresAtMs, nowMs)}`,
          waitsFor: `kronos approve ${waiting.plan.id}, or kronos reject`,
        }
      : null;
  if (moves.length > 0) {
    const over = [...state.plans.values()].reduce((sum, p) => sum + p.completed + p.failed + p.skipped, 0);
    const rest = moves.length - migrating;
    const doing = `moving: ${migrating} under way, ${rest} to come, ${over} over`;
    if (answer !== null) return { doing: `${doing}; ${answer.doing}`, waitsFor: answer.waitsFor };
    return {
      doing,
      waitsFor: migrating > 0 ? null : (moves.find((move) => move.note !== '')?.note ?? 'an executor to start them'),
    };
  }
  if (answer !== null) return answer;
  if (newest === null) return { doing: 'nothing has been seen yet', waitsFor: 'the first snapshot of the scorer' };
  const cooldown = aggregateCooldown(state, nowMs, options);
  if (cooldown !== null) {
    const cause = { released: 'a release', rejected: 'a rejection', expired: 'an expiry' }[cooldown.cause];
    return { doing: `${COOLING_DOWN} after ${cause}`, waitsFor: `${when(cooldown.untilMs, nowMs)}` };
  }
  if (state.decided === null)
    return { doing: 'nothing has been decided yet', waitsFor: 'the first decision of the planner' };
  const { outcome, release, reason } = state.decided;
  if (outcome === 'planned' && release === 'dryRun')
    return { doing: `dry run: ${reason.text}, recorded and not carried out`, waitsFor: '[engine] dry_run = false' };
  return { doing: `${outcome === 'gated' ? 'held back' : 'watching'}: ${reason.text}`, waitsFor: null };
}

function alarmsOf(
  { aggregate, state, newest, lastDecision }: AggregateInput,
  options: EngineOptions,
  nowMs: number,
): Alarm[] {
  const alarms: Alarm[] = [];
  const alarm = (text: string): void => void alarms.push({ about: aggregate, text });
  const intervalMs = options.evaluationIntervalSeconds * 1000;
  if (newest === null) alarm('no snapshot is on the stream: is the scorer running?');
  else {
    const ageMs = nowMs - newest.timeMs;
    if (ageMs > 2 * intervalMs + 10_000) alarm(`the newest snapshot is ${span(ageMs)} old: is the scorer running?`);
    const decidedMs = state.decided?.snapshotMs ?? Number.NEGATIVE_INFINITY;
    if (decidedMs < newest.timeMs - intervalMs - DECIDE_MS && ageMs > DECIDE_MS)
      alarm(
        state.decided === null
          ? 'snapshots come and none is decided: is the planner running?'
          : `the last decision is of ${when(decidedMs, nowMs)}, snapshots are newer: is the planner running?`,
      );
    for (const problem of newest.problems) alarm(problem.text);
  }
  if (state.unreadable !== null)
    alarm(
      `event ${state.unreadable.sequence} (${state.unreadable.claimedType} version ${state.unreadable.claimedVersion ?? '?'}) cannot be read: nothing is planned until a newer version is installed`,
    );
  for (const plan of undispatched(state))
    if (plan.release !== null && nowMs - plan.release.atMs > DISPATCH_MS)
      alarm(
        `the tasks of ${plan.id} are not on the queue ${span(nowMs - plan.release.atMs)} after the release: is the planner running?`,
      );
  for (const plan of state.plans.values()) {
    const lastMs = notAfterMs(plan);
    if (lastMs !== null && nowMs > lastMs && plan.tasks.some((id) => state.tasks.get(id)?.end === null))
      alarm(`${plan.id} has expired and not all of its moves have ended: is an executor running?`);
  }
  for (const task of inFlight(state)) {
    const name = `${task.step.serverName} (${task.id})`;
    const { slot } = task;
    const asked = task.abortAsked ?? task.cancelAsked;
    if (slot !== null && asked !== null && nowMs - asked.atMs > ABORT_MS)
      alarm(
        `${name} still migrates ${span(nowMs - asked.atMs)} after the abort was asked for: Nova may have refused it`,
      );
    else if (slot !== null && nowMs - slot.startedAtMs > LONG_RUNNING_MS)
      alarm(`${name} migrates since ${when(slot.startedAtMs, nowMs)}`);
    if (slot?.forced === true) alarm(`${name} was forced past the scheduler`);
  }
  const paused = state.paused.here ?? state.paused.everywhere;
  const open = inFlight(state);
  const idle = open.length > 0 && open.every((task) => task.slot === null && nowMs - task.notBeforeMs > UNSTARTED_MS);
  if (idle && paused === null)
    alarm(`no move has been started ${span(UNSTARTED_MS)} after it could be: is an executor running?`);
  for (const { host, untilMs } of brokenHosts(state, nowMs, options))
    alarm(`${host} takes no VM until ${when(untilMs, nowMs)}: too many moves to it failed`);
  for (const stuck of lastDecision?.stuck ?? [])
    alarm(`${stuck.serverName} cannot leave ${stuck.host}: ${stuck.reason.text}`);
  for (const warning of lastDecision?.warnings ?? []) alarm(warning.text);
  return alarms;
}

/** One service, as its own readiness says. */
export type ServiceStatus = {
  readonly service: string;
  readonly url: string;
  /** Unreachable from here says nothing about the service: it may run elsewhere. */
  readonly state: 'ready' | 'notReady' | 'unreachable';
  /** Checks that are not passed. */
  readonly reasons: readonly string[];
};

export type StreamStatus = {
  readonly stream: string;
  readonly messages: number;
  readonly bytes: number;
  /** -1: no limit. */
  readonly maxBytes: number;
};

export type Status = {
  readonly timeMs: number;
  readonly server: string;
  readonly servers: readonly string[];
  readonly well: boolean;
  readonly aggregates: readonly AggregateStatus[];
  readonly streams: readonly StreamStatus[];
  readonly services: readonly ServiceStatus[];
  /** Of everything, the aggregates' own included. */
  readonly alarms: readonly Alarm[];
};

/** At this share of its bytes the log warns; when it is full nothing is planned. */
const FULL_WARNING = 0.8;

/** Everything together. All is well when nobody has to look at anything. */
export function judge(parts: Omit<Status, 'well' | 'alarms'> & { readonly logStream: string }): Status {
  const { logStream, ...status } = parts;
  const alarms = [
    ...status.streams.flatMap(({ stream, bytes, maxBytes }): Alarm[] =>
      stream === logStream && maxBytes > 0 && bytes > FULL_WARNING * maxBytes
        ? [
            {
              about: stream,
              text: `the event log is ${Math.floor((bytes / maxBytes) * 100)} % full; when it is full nothing is planned: raise [nats] log_max_bytes and run kronos provision`,
            },
          ]
        : [],
    ),
    ...status.services.flatMap(({ service, state, reasons }): Alarm[] =>
      state === 'notReady' ? [{ about: service, text: `is not ready: ${reasons.join('; ')}` }] : [],
    ),
    ...status.aggregates.flatMap((aggregate) => aggregate.alarms),
  ];
  return { ...status, well: alarms.length === 0, alarms };
}

/** `cpu 0.31 > 0.2`, `memory 0.1 <= 0.25`, `disk takes no part`. */
export const policyText = ({ policy, imbalance, threshold }: AggregateStatus['policies'][number]): string =>
  imbalance === null
    ? `${policy} takes no part`
    : `${policy} ${figure(imbalance)} ${imbalance > threshold ? '>' : '<='} ${figure(threshold)}`;
