import type { Message } from './messages.ts';
import { moveEnd } from './moveEnd.ts';
import { makesRoom } from './plans.ts';
import { count } from './words.ts';

/** The start of a plan, for people. */
export const releaseWords = {
  released: 'released',
  proposed: 'waits for approval',
  dryRun: 'dry run',
  none: 'not released',
} as const;
/** The outcome of a decision, for people. */
export const decisionWords = { planned: 'planned', quiet: 'no plan', gated: 'blocked' } as const;

/** Words with which a sentence may begin and that keep their capital letter within one. */
const NAMES = new Set(['Nova', 'Placement', 'Prometheus', 'Kronos', 'Keystone', 'Cinder', 'Neutron', 'Python']);

/** A sentence as part of another one: without its full stop, and with a small letter unless it begins with a name. */
export function clause(text: string): string {
  const first = /^[A-Z][a-z]*\b/.exec(text)?.[0];
  const begin = first === undefined || NAMES.has(first) ? text : text.charAt(0).toLowerCase() + text.slice(1);
  return begin.replace(/\.$/, '');
}

/**
 * A message in one sentence.
 *
 * @param nameOf gives the name of a server for its uuid, where it is known
 */
export function sentence(event: Message, nameOf: (serverId: string) => string = (id) => id): string {
  switch (event.type) {
    case 'snapshot.taken': {
      const { hosts, servers, policies, combined, purpose, problems } = event.data;
      const above = policies.filter((p) => p.detected).map((p) => p.policy);
      const state =
        problems[0]?.text ?? (above.length === 0 ? 'within thresholds' : `above threshold: ${above.join(', ')}`);
      const kept = purpose === 'record' ? ', recorded' : purpose === 'command' ? ', requested' : '';
      return `saw ${count(hosts, 'host')} and ${count(servers, 'VM')}${kept}: ${state}${combined === null ? '' : `, combined imbalance ${combined.toFixed(3)}`}`;
    }
    case 'migration.requested':
      return `task ${event.data.taskId}, attempt ${event.data.attempt}: ${event.data.serverName} from ${event.data.from} to ${event.data.destination}`;
    case 'log.seen':
      return `the ledger has seen event ${event.data.sequence} of ${event.data.installationId ?? 'a log without an installation id'}${event.data.where === 'archive' ? ' in its archive' : ''}`;
    case 'state.checkpointed':
      return `checkpoint of the log up to ${event.data.sequence}`;
    case 'inventory.reported':
      return `${event.data.host} has ${event.data.instances === null ? 'servers that were not read yet' : count(event.data.instances.length, 'instance')} (${event.data.cause})`;
    case 'service.reported': {
      const { state, failing } = event.data;
      const text = state === 'running' ? (failing.length === 0 ? 'is ready' : 'is not ready') : `is ${state}`;
      const why = failing.map(({ check, reason }) => `${check}: ${reason}`).join('; ');
      return `${event.by.service} ${event.by.instance} ${text}${why === '' ? '' : `: ${why}`}`;
    }
    case 'alarm.raised':
      return `${event.data.about}: ${event.data.text}`;
    case 'alarm.resolved':
      return `resolved: ${event.data.about}: ${event.data.text}`;
    case 'cycle.decided': {
      const { plan, release, reason, outcome } = event.data;
      if (plan === null) return `${decisionWords[outcome]}: ${clause(reason.text)}`;
      return `planned ${count(plan.steps.length, 'move')}, ${releaseWords[release]}: ${clause(reason.text)}`;
    }
    case 'plan.proposed': {
      const { steps: moves, to, refused, refusals, release, reason } = event.data;
      const stay = Object.values(refusals).reduce((sum, n) => sum + n, 0) || refused.length;
      const what = releaseWords[release];
      if (makesRoom(event))
        return moves.length === 0
          ? `no plan that makes room: ${clause(reason.text)}`
          : `planned ${count(moves.length, 'move')} that make room for ${event.data.capacity?.after ?? '?'} new VMs, ${what}`;
      if (moves.length === 0) return `no plan between cells to ${to}: ${clause(reason.text)}`;
      return `planned ${count(moves.length, 'move')} between cells to ${to}, ${what}; ${count(stay, 'VM')} cannot move`;
    }
    case 'plan.dispatched':
      return `${count(event.data.tasks, 'task')} of ${event.data.planId} on the work queue`;
    case 'plan.withdrawn':
      return `withdrew ${event.data.planId}: ${clause(event.data.reason.text)}`;
    case 'planner.configured':
      return `planner ${event.data.plannerVersion} decides from now on with options ${event.data.optionsDigest}`;
    case 'migration.started':
      return `attempt ${event.data.attempt}: ${move(event, nameOf)} started${event.data.forced ? ', forced past the scheduler' : ''}`;
    case 'migration.observed':
      return `Nova calls it migration ${event.data.migrationId ?? '(unknown)'}, request ${event.data.requestId ?? '(unknown)'}`;
    case 'migration.completed': {
      const { outcome, host, serverId, nova, warnings } = event.data;
      if (outcome === 'alreadyThere') return `${nameOf(serverId)} was already on ${host}`;
      const end = moveEnd(event);
      if (end === 'plain') return `${move(event, nameOf)} completed${took(nova?.totalMs)}`;
      const how = end === 'damaged' ? 'ended with its server in ERROR' : 'ended with warnings';
      return `${move(event, nameOf)} ${how}${took(nova?.totalMs)}: ${warnings.map(({ text }) => text).join('; ')}`;
    }
    case 'migration.failed':
      return `attempt ${event.data.attempt}: ${move(event, nameOf)} failed, ${event.data.errorType}: ${event.data.reason.text}${
        event.data.next === null ? '' : `; next on ${event.data.next.destination}`
      }`;
    case 'migration.skipped':
      return `${move(event, nameOf)} skipped: ${event.data.reason.text}`;
    case 'migration.abortRequested':
      return `asked Nova to abort ${move(event, nameOf)}: ${event.data.text}`;
    case 'migration.abortRefused':
      return `Nova refused to abort ${move(event, nameOf)} with ${event.data.status}: ${event.data.text}`;
    case 'migration.verifying':
      return `${nameOf(event.data.serverId)} has arrived on ${event.data.host} and waits in VERIFY_RESIZE`;
    case 'migration.verified':
      return `${nameOf(event.data.serverId)} on ${event.data.host} has passed its checks for ${event.data.verifySeconds} s`;
    case 'migration.confirmRequested':
      return `asked Nova to confirm ${move(event, nameOf)}: ${event.data.reason.text}`;
    case 'migration.revertRequested':
      return `asked Nova to revert ${move(event, nameOf)}: ${event.data.reason.text}`;
    case 'migration.suspected':
      return event.data.tries === 0
        ? `${move(event, nameOf)} did not crash its executor`
        : `${move(event, nameOf)} was delivered ${event.data.deliveries} times: isolation, try ${event.data.tries}`;
    case 'host.claimed':
      return `attempt ${event.data.attempt} to ${event.data.act} ${event.data.host}`;
    case 'host.disabled':
      return event.data.byKronos
        ? `disabled ${event.data.host}: its VMs leave`
        : `${event.data.host} was disabled already (${event.data.disabledReason ?? 'no reason given'}): its VMs leave`;
    case 'host.drained':
      return `${event.data.host} is drained: no VM is left on it`;
    case 'host.enabled':
      return event.data.byKronos
        ? `enabled ${event.data.host}: its drain has ended`
        : `somebody else enabled ${event.data.host}: its drain has ended`;
    case 'host.leftDisabled':
      return `the drain of ${event.data.host} has ended; the host stays disabled: ${event.data.reason.text}`;
    case 'host.actFailed':
      return `attempt ${event.data.attempt} to ${event.data.act} ${event.data.host} failed${event.data.status === null ? '' : ` with ${event.data.status}`}: ${event.data.text}`;
    case 'host.drainAsked':
      return `asked to drain ${event.data.host}${comment(event)}`;
    case 'host.undrainAsked':
      return `asked to end the drain of ${event.data.host}${comment(event)}`;
    case 'cells.moveAsked':
      return `asked for a plan between cells from ${event.data.from.join(', ')} to ${event.data.to}${comment(event)}`;
    case 'capacity.asked':
      return `asked for room for ${event.data.count} of ${event.data.shape.name}${comment(event)}`;
    case 'migration.confirmAsked':
      return `asked to confirm ${event.data.taskId}${comment(event)}`;
    case 'migration.revertAsked':
      return `asked to revert ${event.data.taskId}${comment(event)}`;
    case 'aggregate.paused':
      return `paused${comment(event)}`;
    case 'aggregate.resumed':
      return `resumed${comment(event)}`;
    case 'plan.approved':
      return `approved ${steps(event.data.steps)} of ${event.data.planId}${comment(event)}`;
    case 'plan.rejected':
      return `rejected ${steps(event.data.steps)} of ${event.data.planId}${comment(event)}`;
    case 'instance.quarantined':
      return `quarantined ${nameOf(event.data.serverId)} ${event.data.seconds < 0 ? 'until it is released' : `for ${event.data.seconds} s`}${comment(event)}`;
    case 'instance.unquarantined':
      return `released ${nameOf(event.data.serverId)} from quarantine${comment(event)}`;
    case 'host.released':
      return `closed the breaker of ${event.data.host}${comment(event)}`;
    case 'migration.cancelled':
      return `asked to cancel ${event.data.taskId}${comment(event)}`;
    case 'migration.aborted':
      return `asked to abort ${event.data.taskId}${comment(event)}`;
    case 'event.skipped': {
      const { sequence, through } = event.data;
      return `skipped the unreadable ${sequence === through ? `event ${sequence}` : `events ${sequence} to ${through}`}${comment(event)}`;
    }
    case 'migration.closed':
      return `asked to close ${event.data.taskId}${comment(event)}`;
    case 'evaluation.requested':
      return `requested ${event.data.purpose === 'record' ? 'a recording' : 'an evaluation'} now${comment(event)}`;
    case 'installation.created':
      return `${statements[event.data.statement]} ${event.data.installationId}${comment(event)}`;
  }
}

const statements = {
  provisioned: 'provisioned the log of installation',
  newLog: 'accepted the log as it is, as installation',
  restored: 'restored an archive up to here; the log continues as installation',
} as const;

type Moved = { readonly serverId: string; readonly from: string; readonly destination: string };
const move = ({ data }: { readonly data: Moved }, nameOf: (serverId: string) => string): string =>
  `${nameOf(data.serverId)} from ${data.from} to ${data.destination}`;
/** ` after 3.1 s`; nothing where the duration is not known. */
export const took = (ms: number | null | undefined): string =>
  ms === null || ms === undefined ? '' : ` after ${(ms / 1000).toFixed(1)} s`;
const steps = (numbers: readonly number[] | null): string =>
  numbers === null ? 'all steps' : `step${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;
const comment = ({ data }: { data: { comment: string | null } }): string =>
  data.comment === null ? '' : ` (${data.comment})`;
