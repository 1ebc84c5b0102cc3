import { didYouMean } from '@kronos/config/nearest';
import { ALL, count } from '@kronos/contracts';
import {
  aggregateState,
  approvalOf,
  type LogState,
  openDrain,
  type PlanFacts,
  proposedCellPlans,
  remedyOf,
  type UnreadableFact,
  waitingPlan,
} from '@kronos/projections';
import { when } from '@kronos/status/times';
import { CommandRefused } from './errors.ts';
import { addressedPlan, addressedTask } from './outcome.ts';

/** Plans of these aggregates that wait for an answer, expired ones too while no decision has closed them. */
function waitingPlans(
  state: LogState,
  scope: readonly string[],
  nowMs: number,
): { aggregate: string; plan: PlanFacts; expiresAtMs: number; open: boolean }[] {
  return scope.flatMap((aggregate) => {
    const own = aggregateState(state, aggregate);
    const waiting = waitingPlan(own, nowMs);
    const cells = proposedCellPlans(own).map((plan) => ({ plan, ...approvalOf(plan, nowMs) }));
    return [...(waiting === null ? [] : [waiting]), ...cells].map((one) => ({ aggregate, ...one }));
  });
}

/**
 * The plan that an answer is about: the one that was named, or the only one that waits.
 *
 * @throws CommandRefused that lists the plans that wait, or the steps that the plan has
 */
export function choosePlan(
  state: LogState,
  scope: readonly string[],
  nowMs: number,
  wanted: { readonly planId: string | undefined; readonly steps: readonly number[] | null },
): { readonly aggregate: string; readonly planId: string } {
  const waiting = waitingPlans(state, scope, nowMs);
  const list = (): string =>
    waiting.length === 0
      ? 'kronos plans lists the recent ones.'
      : `Waiting: ${waiting.map(({ plan, aggregate, expiresAtMs }) => `${plan.id} (${aggregate}, ${count(plan.proposed.length, 'step')}, until ${when(expiresAtMs, nowMs)})`).join('; ')}`;
  const { planId } = wanted;
  let aggregate: string;
  let plan: PlanFacts | null;
  if (planId === undefined) {
    const [only, ...others] = waiting;
    if (only === undefined) throw new CommandRefused('no plan waits for approval', list());
    if (others.length > 0) throw new CommandRefused('several plans wait for approval: name one', list());
    ({ aggregate, plan } = only);
  } else {
    const found = addressedPlan(state, ALL, planId);
    if (found === null) throw new CommandRefused(`no plan ${JSON.stringify(planId)} waits for approval`, list());
    ({ aggregate, plan } = found);
  }
  const known = new Set(plan?.proposed.map((s) => s.step));
  const strange = (wanted.steps ?? []).filter((step) => plan !== null && plan.release === null && !known.has(step));
  if (strange.length > 0)
    throw new CommandRefused(
      `step ${strange.join(', ')} of the plan does not wait for approval`,
      `These wait: ${[...known].join(', ')}. kronos plan show ${plan?.id ?? planId} shows them.`,
    );
  return { aggregate, planId: plan?.id ?? planId ?? '' };
}

/** The aggregate of a task in flight. @throws CommandRefused that lists the tasks in flight */
export function aggregateOfTask(state: LogState, scope: readonly string[], taskId: string): string {
  for (const aggregate of scope) if (addressedTask(state, aggregate, taskId) !== null) return aggregate;
  const tasks = scope.flatMap((aggregate) => [...aggregateState(state, aggregate).tasks.values()]);
  const open = tasks.filter((task) => task.end === null);
  throw new CommandRefused(
    `no task ${JSON.stringify(taskId)} is in flight`,
    open.length === 0
      ? 'Nothing is in flight.'
      : `In flight: ${open.map((t) => `${t.id} (${t.step.serverName}, ${t.step.from} -> ${t.destination}, ${t.status})`).join('; ')}`,
  );
}

/** The person insists (`--force`). */
type Forced = { readonly force: boolean };

/**
 * A task can be closed once it is started and an abort was asked for: before that there are gentler ways.
 *
 * @throws CommandRefused that names the gentler way
 */
export function requireClosable(state: LogState, aggregate: string, taskId: string, { force }: Forced): void {
  const task = addressedTask(state, aggregate, taskId);
  if (task === null || task.end !== null) return;
  if (task.slot === null) throw new CommandRefused(`${taskId} has not started`, `Cancel it: kronos cancel ${taskId}`);
  if (force || task.abortAsked !== null || task.cancelAsked !== null || task.slot.abortRefused !== null) return;
  throw new CommandRefused(
    `no abort of ${taskId} was requested`,
    `Run kronos abort ${taskId} first. If Nova cannot end it, close it then, or add --force.`,
  );
}

/** A drain is requested only where it can begin. @throws CommandRefused that names the obstacle */
export function requireUnblocked(drain: { readonly host: string; readonly blockedBy: string | null }): void {
  if (drain.blockedBy === null) return;
  throw new CommandRefused(
    `the drain of ${drain.host} is blocked by: ${drain.blockedBy}`,
    'Nothing was requested. kronos status shows the state of the aggregate and its services.',
  );
}

/**
 * The aggregate in which Kronos drains a host.
 *
 * @throws CommandRefused that lists the hosts that it drains, or names another aggregate in which it drains this one
 */
export function aggregateOfDrain(state: LogState, scope: readonly string[], host: string): string {
  const found = openDrain(state, host)?.aggregate;
  if (found !== undefined && scope.includes(found)) return found;
  if (found !== undefined) throw new CommandRefused(`${host} is being drained in ${found}`, howToEndIn(found, host));
  const draining = scope.flatMap((name) => [...aggregateState(state, name).drains.keys()]);
  throw new CommandRefused(
    `${JSON.stringify(host)} is not being drained by Kronos`,
    draining.length === 0
      ? 'Kronos is draining no host. If somebody else disabled it, enable it in Nova.'
      : `${didYouMean(host, draining)}Hosts being drained: ${draining.join(', ')}.`,
  );
}

/** The executors of an aggregate end its drains, and none has one that is no longer in scope. */
const howToEndIn = (aggregate: string, host: string): string =>
  `Run kronos undrain ${host} without -a. If ${aggregate} is no longer in [engine] aggregates, add it until the drain has ended.`;

/** Every unreadable event that nobody skipped, with the aggregate that it addresses. */
const unreadables = (state: LogState): readonly UnreadableFact[] =>
  [...state.all.unreadables, ...[...state.aggregates.values()].flatMap((facts) => facts.unreadables)].sort(
    (a, b) => a.sequence - b.sequence,
  );

const sequences = ({ sequence, through }: UnreadableFact): string =>
  through === sequence ? `${sequence}` : `${sequence}-${through}`;

/**
 * The unreadable events of a range, and the aggregate that they address.
 *
 * @param force also events that a newer version may read
 * @throws CommandRefused when there is none, when they are of several aggregates, or when a newer version may read one
 */
export function eventsToSkip(
  state: LogState,
  range: { readonly sequence: number; readonly through: number },
  { force }: Forced,
): { readonly aggregate: string; readonly events: readonly UnreadableFact[] } {
  const all = unreadables(state);
  const events = all.filter(({ sequence, through }) => sequence >= range.sequence && through <= range.through);
  const [first] = events;
  const list =
    all.length === 0
      ? 'Every event of the log can be read.'
      : `Unreadable: ${all.map((fact) => `${sequences(fact)} (${fact.aggregate === ALL ? 'all aggregates' : fact.aggregate}: ${fact.problem})`).join('; ')}`;
  if (first === undefined) throw new CommandRefused('there is no unreadable event to skip at this sequence', list);
  if (events.some(({ aggregate }) => aggregate !== first.aggregate))
    throw new CommandRefused('these events belong to several aggregates', `Skip them one by one. ${list}`);
  const newer = events.find(({ remedy }) => remedy === 'upgrade');
  if (newer !== undefined && !force)
    throw new CommandRefused(
      `a newer version of Kronos may read event ${newer.sequence}: ${newer.problem}`,
      `${remedyOf(newer)}. If you know that no version wrote it, force the skip: --force on the command line.`,
    );
  return { aggregate: first.aggregate, events };
}
