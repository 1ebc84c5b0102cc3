/** Puts the tasks of released plans on the work queue, and ends tasks that were left behind. */

import type { AggregateFold } from '@kronos/checkpoints';
import { type Actor, iso, messageId, type PlanDispatched, subject } from '@kronos/contracts';
import { taskRequests } from '@kronos/cycle';
import { AppendConflict } from '@kronos/eventlog';
import { causeOf, type PlanFacts, undispatched } from '@kronos/projections';
import { attributes, spans, withSpan } from '@kronos/telemetry';
import type { PlannerDeps } from './deps.ts';
import { overdueResults } from './overdue.ts';

/** Tasks published at once. */
const PUBLISH_WINDOW = 64;

/**
 * @param stopped nothing more is ended once it is true
 * @returns finishes what the log says was released; to be called again after each decision and each approval
 */
export function dispatcher(
  deps: Pick<PlannerDeps, 'log' | 'by' | 'logger' | 'tracer' | 'meters' | 'clockProblem' | 'clock'>,
  { refresh }: AggregateFold,
  stopped: () => boolean,
): (aggregate: string) => Promise<void> {
  const { log, by, logger, tracer, meters } = deps;
  const clock = (): number => deps.clock.now();

  async function finishReleased(aggregate: string): Promise<void> {
    const { state } = await refresh(aggregate);
    for (const plan of undispatched(state)) {
      const tasks = taskRequests(state, plan, by, clock());
      const about = {
        [attributes.aggregate]: aggregate,
        [attributes.planId]: plan.id,
        [attributes.steps]: tasks.length,
      };
      await withSpan(tracer, spans.dispatch, { attributes: about }, async () => {
        for (let i = 0; i < tasks.length; i += PUBLISH_WINDOW)
          await Promise.all(tasks.slice(i, i + PUBLISH_WINDOW).map((task) => log.append(task)));
        await log.append(dispatchedEvent(aggregate, plan, by, clock()));
      });
      meters.dispatched(aggregate, tasks.length);
      logger.info({ aggregate, planId: plan.id, tasks: tasks.length }, 'dispatched');
    }
    await endOverdue(aggregate);
  }

  /** Ends the tasks that no executor ended, each by the log as it stands after the one before it. */
  async function endOverdue(aggregate: string): Promise<void> {
    // A clock that is ahead would end tasks before their time.
    while (!stopped() && deps.clockProblem() === null) {
      const at = await refresh(aggregate);
      const [result] = overdueResults(at.state, by, clock());
      if (result === undefined) return;
      try {
        await log.append(result, { expectedLastSequence: at.expectedOn(subject('results', aggregate)) });
        logger.warn({ aggregate, taskId: result.data.taskId }, 'the planner ended a task that no executor ended');
      } catch (error) {
        // Another result came first: the log now says whether this task still has to be ended.
        if (!(error instanceof AppendConflict)) throw error;
      }
    }
  }

  return finishReleased;
}

/** The event that says a plan's tasks are all on the work queue. */
const dispatchedEvent = (aggregate: string, plan: PlanFacts, by: Actor, nowMs: number): PlanDispatched => ({
  type: 'plan.dispatched',
  version: 1,
  id: messageId.dispatched(plan.id),
  time: iso(nowMs),
  aggregate,
  by,
  correlationId: plan.id,
  causationId: causeOf(plan),
  data: { planId: plan.id, tasks: plan.tasks.length },
});
