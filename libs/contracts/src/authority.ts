import type { Actor } from './envelope.ts';
import type { LogEventType, Message, MessageOf, MessageType } from './messages.ts';

/** The authors of messages: services, and the `kronos` command under one of its NATS users. */
export type Service = Actor['service'];

/**
 * Which services may write each type. Together with the family of the type (`messagesByFamily`) this is the one table of
 * authority: appending, reading, the permissions of NATS users and the tests use it.
 */
export const authors: Readonly<Record<MessageType, readonly Service[]>> = {
  'snapshot.taken': ['scorer'],
  'inventory.reported': ['scorer'],
  'cycle.decided': ['planner'],
  'plan.proposed': ['planner'],
  'plan.dispatched': ['planner'],
  'plan.withdrawn': ['planner'],
  'planner.configured': ['planner'],
  // The executor for retries; the restorer for tasks whose work queue was lost.
  'migration.requested': ['planner', 'executor', 'restorer'],
  'migration.started': ['executor'],
  'migration.observed': ['executor'],
  'migration.suspected': ['executor'],
  'migration.abortRequested': ['executor'],
  'migration.abortRefused': ['executor'],
  'migration.verifying': ['executor'],
  'migration.verified': ['executor'],
  'migration.confirmRequested': ['executor'],
  'migration.revertRequested': ['executor'],
  'migration.completed': ['executor'],
  // The planner only for tasks that no executor ended, see `wrongAuthor`.
  'migration.failed': ['executor', 'planner'],
  'migration.skipped': ['executor'],
  'host.claimed': ['executor'],
  'host.disabled': ['executor'],
  'host.drained': ['executor'],
  'host.enabled': ['executor'],
  'host.leftDisabled': ['executor'],
  'host.actFailed': ['executor'],
  'aggregate.paused': ['operator'],
  'aggregate.resumed': ['operator'],
  'plan.approved': ['operator'],
  'plan.rejected': ['operator'],
  'instance.quarantined': ['operator'],
  'instance.unquarantined': ['operator'],
  'migration.cancelled': ['operator'],
  'migration.aborted': ['operator'],
  'migration.closed': ['operator'],
  'evaluation.requested': ['operator'],
  'cells.moveAsked': ['operator'],
  'capacity.asked': ['operator'],
  'migration.confirmAsked': ['operator'],
  'migration.revertAsked': ['operator'],
  'host.drainAsked': ['operator'],
  'host.undrainAsked': ['operator'],
  'host.released': ['operator'],
  'event.skipped': ['custodian'],
  'state.checkpointed': ['ledger'],
  'log.seen': ['ledger'],
  'installation.created': ['provisioner'],
  'alarm.raised': ['ledger'],
  'alarm.resolved': ['ledger'],
  'service.reported': ['scorer', 'planner', 'executor', 'ledger'],
};

/** The types that travel on other streams than the log. */
const offTheLog: Readonly<Record<Exclude<MessageType, LogEventType>, true>> = {
  'snapshot.taken': true,
  'inventory.reported': true,
  'migration.requested': true,
  'state.checkpointed': true,
  'log.seen': true,
  'alarm.raised': true,
  'alarm.resolved': true,
  'service.reported': true,
};

/** Every type of event that the log may hold; known without loading the schemas. */
export const logEventTypes: readonly string[] = Object.keys(authors).filter((type) => !Object.hasOwn(offTheLog, type));

/** Why the author may not write the message; null when it may. */
export function wrongAuthor(message: Message): string | null {
  const { service } = message.by;
  const allowed = authors[message.type];
  if (!allowed.includes(service))
    return `${message.type} is written by the ${allowed.join(' or the ')}, and this one names the ${service} as its author`;
  if (service === 'planner' && message.type === 'migration.failed' && !plannerMayEnd(message))
    return 'the planner may only end tasks that were never started or that an operator closed, as Cancelled, and this result says something else';
  return null;
}

/** The code of the reason with which a task ends that an operator closed. */
export const CLOSED = 'closed';

/** Whether the operator's `migration.closed` is on the log is for the fold to judge. */
const plannerMayEnd = ({ data }: Extract<MessageOf<'results'>, { type: 'migration.failed' }>): boolean =>
  (!data.started || data.reason.code === CLOSED) &&
  !data.retryPending &&
  data.errorType === 'Cancelled' &&
  data.hostAtFault === null;
