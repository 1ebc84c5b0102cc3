import type { LogEvent, StoredEvent } from '@kronos/contracts';

/** An event for people: what happened in one sentence, and the ids to look further with. */
export type HistoryEntry = {
  readonly sequence: number;
  readonly time: string | null;
  readonly aggregate: string;
  readonly type: string;
  /** `planner planner-1`, `operator ada`. */
  readonly by: string | null;
  readonly text: string;
  readonly planId: string | null;
  readonly taskId: string | null;
  readonly serverId: string | null;
};

export function historyEntry({ sequence, event }: StoredEvent): HistoryEntry {
  if (event.type === 'unreadable')
    return {
      sequence,
      time: null,
      aggregate: event.aggregate,
      type: event.claimedType,
      by: null,
      text: `cannot be read by this version: ${event.problem}`,
      planId: null,
      taskId: null,
      serverId: null,
    };
  const { data } = event;
  return {
    sequence,
    time: event.time,
    aggregate: event.aggregate,
    type: event.type,
    by: `${event.by.service} ${event.by.instance}`,
    text: describe(event),
    planId: 'planId' in data ? data.planId : 'plan' in data ? (data.plan?.id ?? null) : null,
    taskId: 'taskId' in data ? data.taskId : null,
    serverId: 'serverId' in data ? data.serverId : null,
  };
}

/** What happened, in one sentence. */
export function describe(event: LogEvent): string {
  switch (event.type) {
    case 'cycle.decided': {
      const { plan, release, reason, outcome } = event.data;
      if (plan === null) return `${outcome}: ${reason.text}`;
      const what = { released: 'released', proposed: 'waits for approval', dryRun: 'dry run', none: 'not released' }[
        release
      ];
      return `planned ${count(plan.steps.length, 'move')}, ${what}: ${reason.text}`;
    }
    case 'plan.dispatched':
      return `${count(event.data.tasks, 'task')} of ${event.data.planId} on the work queue`;
    case 'planner.configured':
      return `planner ${event.data.plannerVersion} decides from now on with options ${event.data.optionsDigest}`;
    case 'migration.started':
      return `attempt ${event.data.attempt}: ${move(event)} started${event.data.forced ? ', forced past the scheduler' : ''}`;
    case 'migration.observed':
      return `Nova calls it migration ${event.data.migrationId ?? '(unknown)'}, request ${event.data.requestId ?? '(unknown)'}`;
    case 'migration.completed':
      return event.data.outcome === 'alreadyThere'
        ? `${event.data.serverId} was on ${event.data.host} already`
        : `${move(event)} completed${took(event.data.nova?.totalMs)}`;
    case 'migration.failed':
      return `attempt ${event.data.attempt}: ${move(event)} failed, ${event.data.errorType}: ${event.data.reason.text}${
        event.data.next === null ? '' : `; next on ${event.data.next.destination}`
      }`;
    case 'migration.skipped':
      return `${move(event)} skipped: ${event.data.reason.text}`;
    case 'aggregate.paused':
      return `paused${comment(event)}`;
    case 'aggregate.resumed':
      return `resumed${comment(event)}`;
    case 'plan.approved':
      return `approved ${steps(event.data.steps)} of ${event.data.planId}${comment(event)}`;
    case 'plan.rejected':
      return `rejected ${steps(event.data.steps)} of ${event.data.planId}${comment(event)}`;
    case 'instance.quarantined':
      return `quarantined ${event.data.serverId} ${event.data.seconds < 0 ? 'until it is released' : `for ${event.data.seconds} s`}${comment(event)}`;
    case 'instance.unquarantined':
      return `released ${event.data.serverId} from quarantine${comment(event)}`;
    case 'migration.cancelled':
      return `asked to cancel ${event.data.taskId}${comment(event)}`;
    case 'migration.aborted':
      return `asked to abort ${event.data.taskId}${comment(event)}`;
    case 'evaluation.requested':
      return `asked for ${event.data.purpose === 'record' ? 'a recording' : 'an evaluation'} now${comment(event)}`;
  }
}

const move = ({ data }: { data: { serverId: string; from: string; destination: string } }): string =>
  `${data.serverId} from ${data.from} to ${data.destination}`;
const took = (ms: number | null | undefined): string =>
  ms === null || ms === undefined ? '' : ` after ${(ms / 1000).toFixed(1)} s`;
const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
const steps = (numbers: readonly number[] | null): string =>
  numbers === null ? 'all steps' : `step${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;
const comment = ({ data }: { data: { comment: string | null } }): string =>
  data.comment === null ? '' : ` (${data.comment})`;
