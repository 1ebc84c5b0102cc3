import type { Message, MessageType } from './messages.ts';
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

type NameOf = (serverId: string) => string;
type Sentences = { readonly [T in MessageType]: (event: Extract<Message, { type: T }>, nameOf: NameOf) => string };

/** The sentence of each type: the compiler asks for that of a new one. */
const sentences: Sentences = {
  'snapshot.taken': (event) => {
    const { hosts, servers, policies, combined, purpose, problems } = event.data;
    const above = policies.filter((p) => p.detected).map((p) => p.policy);
    const state =
      problems[0]?.text ?? (above.length === 0 ? 'within thresholds' : `above threshold: ${above.join(', ')}`);
    const kept = purpose === 'record' ? ', recorded' : purpose === 'command' ? ', requested' : '';
    return `saw ${count(hosts, 'host')} and ${count(servers, 'VM')}${kept}: ${state}${combined === null ? '' : `, combined imbalance ${combined.toFixed(3)}`}`;
  },
  'migration.requested': (event) =>
    `task ${event.data.taskId}, attempt ${event.data.attempt}: ${event.data.serverName} from ${event.data.from} to ${event.data.destination}`,
  'log.seen': (event) =>
    `the ledger has seen event ${event.data.sequence} of ${event.data.installationId ?? 'a log without an installation id'}${event.data.where === 'archive' ? ' in its archive' : ''}`,
  'state.checkpointed': (event) => `checkpoint of the log up to ${event.data.sequence}`,
  'inventory.reported': (event) =>
    `${event.data.host} has ${event.data.instances === null ? 'servers that were not read yet' : count(event.data.instances.length, 'instance')} (${event.data.cause})`,
  'service.reported': (event) => {
    const { state, failing } = event.data;
    const text = state === 'running' ? (failing.length === 0 ? 'is ready' : 'is not ready') : `is ${state}`;
    const why = failing.map(({ check, reason }) => `${check}: ${reason}`).join('; ');
    return `${event.by.service} ${event.by.instance} ${text}${why === '' ? '' : `: ${why}`}`;
  },
  'alarm.raised': (event) => `${event.data.about}: ${event.data.text}`,
  'alarm.resolved': (event) => `resolved: ${event.data.about}: ${event.data.text}`,
  'cycle.decided': (event) => {
    const { plan, release, reason, outcome } = event.data;
    if (plan === null) return `${decisionWords[outcome]}: ${clause(reason.text)}`;
    return `planned ${count(plan.steps.length, 'move')}, ${releaseWords[release]}: ${clause(reason.text)}`;
  },
  'plan.proposed': (event) => {
    const { steps: moves, to, refused, refusals, release, reason } = event.data;
    const stay = Object.values(refusals).reduce((sum, n) => sum + n, 0) || refused.length;
    const what = releaseWords[release];
    if (makesRoom(event))
      return moves.length === 0
        ? `no plan that makes room: ${clause(reason.text)}`
        : `planned ${count(moves.length, 'move')} that make room for ${event.data.capacity?.after ?? '?'} new VMs, ${what}`;
    if (moves.length === 0) return `no plan between cells to ${to}: ${clause(reason.text)}`;
    return `planned ${count(moves.length, 'move')} between cells to ${to}, ${what}; ${count(stay, 'VM')} cannot move`;
  },
  'plan.dispatched': (event) => `${count(event.data.tasks, 'task')} of ${event.data.planId} on the work queue`,
  'plan.withdrawn': (event) => `withdrew ${event.data.planId}: ${clause(event.data.reason.text)}`,
  'planner.configured': (event) =>
    `planner ${event.data.plannerVersion} decides from now on with options ${event.data.optionsDigest}`,
  'migration.started': (event, nameOf) =>
    `attempt ${event.data.attempt}: ${move(event, nameOf)} started${event.data.forced ? ', forced past the scheduler' : ''}`,
  'migration.observed': (event) =>
    `Nova calls it migration ${event.data.migrationId ?? '(unknown)'}, request ${event.data.requestId ?? '(unknown)'}`,
  'migration.completed': (event, nameOf) => {
    const { outcome, host, serverId, nova, warnings } = event.data;
    if (outcome === 'alreadyThere') return `${nameOf(serverId)} was already on ${host}`;
    const end = moveEnd(event);
    if (end === 'plain') return `${move(event, nameOf)} completed${took(nova?.totalMs)}`;
    const how = end === 'damaged' ? 'ended with its server in ERROR' : 'ended with warnings';
    return `${move(event, nameOf)} ${how}${took(nova?.totalMs)}: ${warnings.map(({ text }) => text).join('; ')}`;
  },
  'migration.failed': (event, nameOf) =>
    `attempt ${event.data.attempt}: ${move(event, nameOf)} failed, ${event.data.errorType}: ${event.data.reason.text}${
      event.data.next === null ? '' : `; next on ${event.data.next.destination}`
    }`,
  'migration.skipped': (event, nameOf) => `${move(event, nameOf)} skipped: ${event.data.reason.text}`,
  'migration.abortRequested': (event, nameOf) => `asked Nova to abort ${move(event, nameOf)}: ${event.data.text}`,
  'migration.abortRefused': (event, nameOf) =>
    `Nova refused to abort ${move(event, nameOf)} with ${event.data.status}: ${event.data.text}`,
  'migration.verifying': (event, nameOf) =>
    `${nameOf(event.data.serverId)} has arrived on ${event.data.host} and waits in VERIFY_RESIZE`,
  'migration.verified': (event, nameOf) =>
    `${nameOf(event.data.serverId)} on ${event.data.host} has passed its checks for ${event.data.verifySeconds} s`,
  'migration.confirmRequested': (event, nameOf) =>
    `asked Nova to confirm ${move(event, nameOf)}: ${event.data.reason.text}`,
  'migration.revertRequested': (event, nameOf) =>
    `asked Nova to revert ${move(event, nameOf)}: ${event.data.reason.text}`,
  'migration.suspected': (event, nameOf) =>
    event.data.tries === 0
      ? `${move(event, nameOf)} did not crash its executor`
      : `${move(event, nameOf)} was delivered ${event.data.deliveries} times: isolation, try ${event.data.tries}`,
  'host.claimed': (event) => `attempt ${event.data.attempt} to ${event.data.act} ${event.data.host}`,
  'host.disabled': (event) =>
    event.data.byKronos
      ? `disabled ${event.data.host}: its VMs leave`
      : `${event.data.host} was disabled already (${event.data.disabledReason ?? 'no reason given'}): its VMs leave`,
  'host.drained': (event) => `${event.data.host} is drained: no VM is left on it`,
  'host.enabled': (event) =>
    event.data.byKronos
      ? `enabled ${event.data.host}: its drain has ended`
      : `somebody else enabled ${event.data.host}: its drain has ended`,
  'host.leftDisabled': (event) =>
    `the drain of ${event.data.host} has ended; the host stays disabled: ${event.data.reason.text}`,
  'host.actFailed': (event) =>
    `attempt ${event.data.attempt} to ${event.data.act} ${event.data.host} failed${event.data.status === null ? '' : ` with ${event.data.status}`}: ${event.data.text}`,
  'host.drainAsked': (event) => `asked to drain ${event.data.host}${comment(event)}`,
  'host.undrainAsked': (event) => `asked to end the drain of ${event.data.host}${comment(event)}`,
  'cells.moveAsked': (event) =>
    `asked for a plan between cells from ${event.data.from.join(', ')} to ${event.data.to}${comment(event)}`,
  'capacity.asked': (event) => `asked for room for ${event.data.count} of ${event.data.shape.name}${comment(event)}`,
  'migration.confirmAsked': (event) => `asked to confirm ${event.data.taskId}${comment(event)}`,
  'migration.revertAsked': (event) => `asked to revert ${event.data.taskId}${comment(event)}`,
  'aggregate.paused': (event) => `paused${comment(event)}`,
  'aggregate.resumed': (event) => `resumed${comment(event)}`,
  'plan.approved': (event) => `approved ${steps(event.data.steps)} of ${event.data.planId}${comment(event)}`,
  'plan.rejected': (event) => `rejected ${steps(event.data.steps)} of ${event.data.planId}${comment(event)}`,
  'instance.quarantined': (event, nameOf) =>
    `quarantined ${nameOf(event.data.serverId)} ${event.data.seconds < 0 ? 'until it is released' : `for ${event.data.seconds} s`}${comment(event)}`,
  'instance.unquarantined': (event, nameOf) =>
    `released ${nameOf(event.data.serverId)} from quarantine${comment(event)}`,
  'host.released': (event) => `closed the breaker of ${event.data.host}${comment(event)}`,
  'migration.cancelled': (event) => `asked to cancel ${event.data.taskId}${comment(event)}`,
  'migration.aborted': (event) => `asked to abort ${event.data.taskId}${comment(event)}`,
  'event.skipped': (event) => {
    const { sequence, through } = event.data;
    return `skipped the unreadable ${sequence === through ? `event ${sequence}` : `events ${sequence} to ${through}`}${comment(event)}`;
  },
  'migration.closed': (event) => `asked to close ${event.data.taskId}${comment(event)}`,
  'evaluation.requested': (event) =>
    `requested ${event.data.purpose === 'record' ? 'a recording' : 'an evaluation'} now${comment(event)}`,
  'installation.created': (event) =>
    `${statements[event.data.statement]} ${event.data.installationId}${comment(event)}`,
};

/**
 * A message in one sentence.
 *
 * @param nameOf gives the name of a server for its uuid, where it is known
 */
export const sentence = (event: Message, nameOf: NameOf = (id) => id): string =>
  (sentences[event.type] as (event: Message, nameOf: NameOf) => string)(event, nameOf);
