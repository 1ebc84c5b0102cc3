import { ALL, type Control, count, type LogEventOf } from '@kronos/contracts';
import {
  type AggregateFacts,
  type Asked,
  aggregateState,
  approvalOf,
  type LogState,
  MAX_DRAINS,
  openDrain,
  type PlanFacts,
  slots,
  startable,
  type TaskFacts,
} from '@kronos/projections';
import { when } from '@kronos/status/times';

/**
 * The effect of a command, by the log: it took effect, nothing had to change, or the log refused it (too late, or too little
 * known). The text is for the author of the command.
 */
export type Outcome = { readonly effect: 'done' | 'unchanged' | 'refused'; readonly text: string };

const done = (text: string): Outcome => ({ effect: 'done', text });
const unchanged = (text: string): Outcome => ({ effect: 'unchanged', text });
const refused = (text: string): Outcome => ({ effect: 'refused', text });

type CommandStates = {
  readonly before: LogState;
  readonly after: LogState;
  /** The name of a server; null, or absent: its uuid alone is shown. */
  readonly nameOf?: ((serverId: string) => string | null) | undefined;
};

/** `web-1 (2c1f...)`. */
const named = (serverId: string, nameOf: CommandStates['nameOf']): string => {
  const name = nameOf?.(serverId) ?? null;
  return name === null ? serverId : `${name} (${serverId})`;
};

/**
 * The outcome of a command, from the states just before and just after it.
 *
 * @param at when it was given, as folds take it (`eventTimeMs`), ms since the epoch
 */
export function outcomeOf(event: Control, at: number, states: CommandStates): Outcome {
  const outcome = OUTCOMES[event.type] as (event: Control, at: number, states: CommandStates) => Outcome;
  return outcome(event, at, states);
}

type Outcomes = {
  readonly [Type in Control['type']]: (
    event: Extract<Control, { readonly type: Type }>,
    at: number,
    states: CommandStates,
  ) => Outcome;
};

const OUTCOMES: Outcomes = {
  'aggregate.paused': (event, at, { before, after }) => pauseOutcome(event, at, before, after),
  'aggregate.resumed': (event, at, { before, after }) => pauseOutcome(event, at, before, after),
  'plan.approved': (event, at, { before, after }) => approvalOutcome(event, at, before, after),
  'plan.rejected': (event, at, { before, after }) => rejectionOutcome(event, at, before, after),
  'instance.quarantined': (event, at, { nameOf }) => quarantineOutcome(event, at, nameOf),
  'instance.unquarantined': (event, _, { before, nameOf }) => releaseOutcome(event, before, nameOf),
  'migration.cancelled': (event, at, { before }) => taskOutcome(event, at, before),
  'migration.aborted': (event, at, { before }) => taskOutcome(event, at, before),
  'migration.closed': (event, at, { before }) => taskOutcome(event, at, before),
  'migration.confirmAsked': (event, at, { before }) => settleOutcome(event, at, before),
  'migration.revertAsked': (event, at, { before }) => settleOutcome(event, at, before),
  'cells.moveAsked': ({ data }) => done(`requested a plan between cells to ${data.to}`),
  'capacity.asked': ({ data }) => done(`requested a plan that makes room for ${data.count} of ${data.shape.name}`),
  'host.drainAsked': (event, at, { before, after }) => drainOutcome(event, at, before, after),
  'host.undrainAsked': (event, at, { before, after }) => drainOutcome(event, at, before, after),
  'host.released': (event, _, { before }) => hostOutcome(event, before),
  'event.skipped': (event, _, { before, after }) => skipOutcome(event, before, after),
  'evaluation.requested': ({ data }) =>
    done(data.purpose === 'record' ? 'requested a snapshot to record' : 'requested an evaluation'),
};

function pauseOutcome(
  event: LogEventOf<'aggregate.paused' | 'aggregate.resumed'>,
  at: number,
  before: LogState,
  after: LogState,
): Outcome {
  const all = event.aggregate === ALL;
  const was = all ? before.all.paused : aggregateState(before, event.aggregate).paused.here;
  const since = was === null ? '' : `by ${was.by} at ${when(was.atMs, at)}`;
  if (event.type === 'aggregate.paused') {
    if (was !== null) return unchanged(`already paused ${since}`);
    const running = [...after.aggregates.keys()]
      .filter((name) => all || name === event.aggregate)
      .reduce((sum, name) => sum + slots(aggregateState(after, name)).total, 0);
    return done(
      `paused: nothing is planned and no move is started${running > 0 ? `; ${count(running, 'running migration')} ${running === 1 ? 'continues' : 'continue'}` : ''}`,
    );
  }
  const everywhere = all ? null : after.all.paused;
  const still =
    everywhere === null
      ? ''
      : `; still paused for all aggregates by ${everywhere.by} at ${when(everywhere.atMs, at)}: kronos resume --all`;
  const own = all ? [...after.aggregates].filter(([, facts]) => facts.paused !== null).map(([name]) => name) : [];
  const others = own.length === 0 ? '' : `; paused separately: ${own.join(', ')}`;
  if (was === null) return unchanged(`it was not paused${all ? ' for all aggregates at once' : ''}${still}${others}`);
  return done(`resumed: was paused ${since}${still}${others}`);
}

/** A plan and the facts of the aggregate that it belongs to; null where no aggregate that was addressed has it. */
export function addressedPlan(
  state: LogState,
  address: string,
  planId: string,
): { readonly aggregate: string; readonly facts: AggregateFacts; readonly plan: PlanFacts | null } | null {
  for (const [aggregate, facts] of state.aggregates) {
    if (address !== ALL && address !== aggregate) continue;
    const plan = facts.plans.get(planId) ?? null;
    if (plan !== null || facts.recentPlans.some((p) => p.id === planId)) return { aggregate, facts, plan };
  }
  return null;
}

/** Why a plan could not be answered any more; null where it could. */
function tooLate(state: LogState, at: number, event: LogEventOf<'plan.approved' | 'plan.rejected'>): string | null {
  const { planId } = event.data;
  const found = addressedPlan(state, event.aggregate, planId);
  if (found === null) return `no plan ${planId} waits for approval`;
  const { facts, plan } = found;
  if (plan === null) {
    const finished = facts.recentPlans.findLast((p) => p.id === planId);
    if (finished === undefined) return `no plan ${planId} waits for approval`;
    const { outcome, endedAtMs, releasedAtMs } = finished;
    if (releasedAtMs !== null) return `too late: the plan was released at ${when(releasedAtMs, at)} and is done`;
    const words = {
      done: 'was done',
      rejected: 'was rejected',
      expired: 'expired',
      superseded: 'was replaced by a newer plan',
      withdrawn: 'was withdrawn, because its reason was gone,',
    };
    return `too late: the plan ${words[outcome]} at ${when(endedAtMs, at)}`;
  }
  if (plan.release !== null) {
    const { approval, atMs } = plan.release;
    const by = approval === null ? 'without an approval' : `by ${approval.by}`;
    return `too late: the plan was released ${by} at ${when(atMs, at)}`;
  }
  if (plan.approvalTtlSeconds === null)
    return 'the log holds no options for this plan, so its expiry is unknown: it cannot be approved or rejected';
  const { open, expiresAtMs } = approvalOf(plan, at);
  return open ? null : `too late: the plan expired at ${when(expiresAtMs, at)}`;
}

function approvalOutcome(event: LogEventOf<'plan.approved'>, at: number, before: LogState, after: LogState): Outcome {
  const late = tooLate(before, at, event);
  if (late !== null) return refused(late);
  const was = addressedPlan(before, event.aggregate, event.data.planId)?.plan ?? null;
  const is = addressedPlan(after, event.aggregate, event.data.planId)?.plan ?? null;
  const closed = was === null ? 0 : was.proposed.length - startable(was.proposed, at).length;
  if (was === null || is === null || is.release === null)
    return refused(
      closed > 0
        ? `too late: the window of ${count(closed, 'step')} has closed, and no other step was approved`
        : `none of the steps ${event.data.steps?.join(', ') ?? ''} can still be approved`,
    );
  return done(released(event, was, is, closed));
}

/** Says which steps an approval released, and which it did not. @param closed the steps whose window had closed */
function released({ data }: LogEventOf<'plan.approved'>, was: PlanFacts, is: PlanFacts, closed: number): string {
  const dropped = closed > 0 ? ` (the window of ${closed} has closed)` : '';
  const left = was.proposed.length - is.tasks.length;
  const added = data.steps === null ? 0 : is.tasks.length - data.steps.length;
  return [
    `approved: ${count(is.tasks.length, 'task')} released`,
    ...(added > 0 ? [`${added} of them because others depend on them`] : []),
    ...(left > 0 ? [`${count(left, 'step')} dropped${dropped}: the next cycle makes a new plan`] : []),
  ].join('; ');
}

function rejectionOutcome(event: LogEventOf<'plan.rejected'>, at: number, before: LogState, after: LogState): Outcome {
  const late = tooLate(before, at, event);
  if (late !== null) return refused(late);
  const was = addressedPlan(before, event.aggregate, event.data.planId)?.plan ?? null;
  const is = addressedPlan(after, event.aggregate, event.data.planId)?.plan ?? null;
  if (was === null) return refused(`no plan ${event.data.planId} waits for approval`);
  if (is === null) return done(`rejected: the plan is closed and the aggregate cooldown starts`);
  const gone = was.proposed.length - is.proposed.length;
  if (gone === 0) return refused(`none of the steps ${event.data.steps?.join(', ') ?? ''} still waits for approval`);
  const asked = event.data.steps?.length ?? gone;
  const dependents = gone > asked ? `, ${gone - asked} of them because they depend on others` : '';
  return done(`rejected: ${count(gone, 'step')}${dependents}; ${count(is.proposed.length, 'step')} still waiting`);
}

function quarantineOutcome(
  event: LogEventOf<'instance.quarantined'>,
  at: number,
  nameOf: CommandStates['nameOf'],
): Outcome {
  const { serverId, seconds } = event.data;
  return done(
    `${named(serverId, nameOf)} is quarantined ${seconds < 0 ? 'until it is released' : `until ${when(at + seconds * 1000, at)}`}`,
  );
}

function releaseOutcome(
  event: LogEventOf<'instance.unquarantined'>,
  before: LogState,
  nameOf: CommandStates['nameOf'],
): Outcome {
  const { serverId } = event.data;
  const was =
    before.all.operatorQuarantines.has(serverId) ||
    [...before.aggregates.values()].some((f) => f.operatorQuarantines.has(serverId) || f.vmFailures.has(serverId));
  const server = named(serverId, nameOf);
  return was ? done(`${server} is released from quarantine`) : unchanged(`${server} was not in quarantine`);
}

function drainOutcome(
  event: LogEventOf<'host.drainAsked' | 'host.undrainAsked'>,
  at: number,
  before: LogState,
  after: LogState,
): Outcome {
  const { host } = event.data;
  const was = openDrain(before, host);
  const is = openDrain(after, host);
  const since = (asked: Asked): string => `requested by ${asked.by} at ${when(asked.atMs, at)}`;
  const where = was === null || was.aggregate === event.aggregate ? '' : ` in ${was.aggregate}`;
  if (event.type === 'host.drainAsked') {
    if (was !== null && was.drain.undrainAsked !== null)
      return refused(
        `the previous drain of ${host}${where} is still ending (${since(was.drain.undrainAsked)}): try again when it has ended`,
      );
    if (was !== null) return unchanged(`${host} is being drained already${where}: ${since(was.drain.asked)}`);
    if (is === null) return refused(`${MAX_DRAINS} hosts are being drained already, which is the limit`);
    return done(`${host} will be drained: Kronos disables its service, then moves its VMs away`);
  }
  if (was === null) return unchanged(`Kronos is not draining ${host}: nothing changes`);
  const { undrainAsked, disabled } = was.drain;
  if (undrainAsked !== null) return unchanged(`the drain of ${host}${where} is already ending: ${since(undrainAsked)}`);
  if (is === null) return done(`the drain of ${host}${where} is withdrawn before it started`);
  if (disabled?.byKronos === false)
    return done(`the drain of ${host}${where} ends; the host stays disabled, because Kronos did not disable it`);
  return done(`the drain of ${host}${where} ends: Kronos enables its service, unless somebody changed it since`);
}

/** Whether a release of the host changes anything. Pure. */
export const hasFailures = ({ aggregates }: LogState, host: string): boolean =>
  [...aggregates.values()].some(
    ({ hostFailures, refusals }) => hostFailures.has(host) || [...refusals.values()].some((one) => one.host === host),
  );

function hostOutcome({ data: { host } }: LogEventOf<'host.released'>, before: LogState): Outcome {
  return hasFailures(before, host)
    ? done(`${host} is a destination again: its failures so far no longer count`)
    : unchanged(`no failures of ${host} are known: nothing changes`);
}

function skipOutcome(event: LogEventOf<'event.skipped'>, before: LogState, after: LogState): Outcome {
  const of = (state: LogState) => (event.aggregate === ALL ? state.all : state.aggregates.get(event.aggregate));
  const left = of(after)?.unreadables ?? [];
  const gone = (of(before)?.unreadables.length ?? 0) - left.length;
  if (gone === 0) return refused('nothing was skipped: these events are readable or already skipped');
  const [next] = left;
  return done(
    `skipped ${count(gone, 'unreadable event')}; status and explain show this permanently${next === undefined ? '' : `. Event ${next.sequence} cannot be read either: ${next.problem}`}`,
  );
}

/** A task that some aggregate's state holds. */
export function addressedTask(state: LogState, address: string, taskId: string): TaskFacts | null {
  for (const [aggregate, { tasks }] of state.aggregates) {
    if (address !== ALL && address !== aggregate) continue;
    const task = tasks.get(taskId);
    if (task !== undefined) return task;
  }
  return null;
}

function taskOutcome(
  event: LogEventOf<'migration.cancelled' | 'migration.aborted' | 'migration.closed'>,
  at: number,
  before: LogState,
): Outcome {
  const task = addressedTask(before, event.aggregate, event.data.taskId);
  if (task === null)
    return refused(`no task ${event.data.taskId} is in flight: it was never released, or it has ended`);
  const name = `${task.step.serverName} (${task.step.from} -> ${task.destination})`;
  if (task.end !== null) return refused(`too late: the move of ${name} ${task.status} at ${when(task.end.atMs, at)}`);
  const asked = {
    'migration.cancelled': task.cancelAsked,
    'migration.aborted': task.abortAsked,
    'migration.closed': task.closeAsked,
  }[event.type];
  const force = event.type === 'migration.closed' && event.data.force === true;
  const forcesNow = force && task.closeAsked?.force !== true;
  if (asked !== null && !forcesNow) return unchanged(`already requested by ${asked.by} at ${when(asked.atMs, at)}`);
  if (task.slot === null) return done(`the move of ${name} is cancelled before it started`);
  if (event.type === 'migration.closed') return done(closeText(name, task, force));
  return done(`the move of ${name} runs in Nova; the executor now asks Nova to abort it`);
}

/** Says what a close does, and whether the move still counts towards the limits. @param name of the move */
function closeText(name: string, { step, slot }: TaskFacts, force: boolean): string {
  const migrationId = slot?.migrationId ?? null;
  const which = migrationId === null ? 'its migration' : `migration ${migrationId}`;
  // Nova aborts no cold migration.
  const nova = step.cell === undefined ? `is asked to abort ${which} first, if it works on it` : `keeps ${which}`;
  return force
    ? `the move of ${name} is being closed, within a minute and whatever Nova shows; Nova ${nova}. If Nova moves the VM on, that counts towards no limit`
    : `the move of ${name} is being closed; Nova ${nova}. It counts towards the limits until Nova shows that it no longer works on the VM; --force ends it without that`;
}

function settleOutcome(
  event: LogEventOf<'migration.confirmAsked' | 'migration.revertAsked'>,
  at: number,
  before: LogState,
): Outcome {
  const { taskId } = event.data;
  const task = addressedTask(before, event.aggregate, taskId);
  if (task === null) return refused(`no task ${taskId} is in flight: it was never released, or it has ended`);
  const name = `${task.step.serverName} (${task.step.from} -> ${task.destination})`;
  if (task.end !== null) return refused(`too late: the move of ${name} ${task.status} at ${when(task.end.atMs, at)}`);
  if (task.step.cell === undefined)
    return refused(`${taskId} is a live migration: only a move between cells waits for this`);
  if (task.slot?.cell === undefined) return refused(`the move of ${name} has not started`);
  const { settleAsked } = task;
  const { settle } = task.slot.cell;
  if (settleAsked !== undefined)
    return unchanged(`${settleAsked.by} asked to ${settleAsked.act} it at ${when(settleAsked.atMs, at)} already`);
  if (settle !== null) return unchanged(`Kronos asked Nova to ${settle.act} it at ${when(settle.atMs, at)} already`);
  return done(
    event.type === 'migration.confirmAsked'
      ? `the move of ${name} is confirmed as soon as it is in VERIFY_RESIZE`
      : `the move of ${name} is reverted as soon as it is in VERIFY_RESIZE`,
  );
}
