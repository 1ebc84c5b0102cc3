/** The rules of pre-flight: is the move still right, by facts of the cloud? Pure. */
import { count, type ErrorType, type MovableDevice, type Reason, UNASSIGNED } from '@kronos/contracts';
import {
  evacuationIsOver,
  groupIsWhole,
  groupVerdict,
  isUp,
  livePowerState,
  powerStateName,
  repairIsOver,
  serviceOf,
  type TaskReasonCode,
} from '@kronos/facts';
import type { Aggregate, ComputeService, Migration, Server, ServerGroup } from '@kronos/openstack';
import { optedOutBy, serverWindow, serverWindows, type TimeZoneRules } from '@kronos/rules';
import { cancelled, elsewhere, failureFor, type JudgedFailure } from './failure.ts';
import type { cellsRefusal } from './preflightCells.ts';
import type { PreflightVerdict, Task } from './taskFacts.ts';

/** The parts of the configuration and of the log on which a pre-flight depends. */
export interface CheckOptions {
  /** Aggregates in scope: a host in two of them is no destination. */
  readonly aggregates: readonly string[];
  readonly optOut: readonly string[];
  readonly restrictToAz: boolean;
  /** `penalty`: the planner weighed the breach of a soft rule, so it is no reason to refuse the move. */
  readonly softRules: 'veto' | 'penalty';
  readonly force: boolean;
  /** For the server's own windows as they are now. */
  readonly timezone: TimeZoneRules;
  readonly evacuationIgnoresWindows: boolean;
  /** Another step of the plan waits for this one: it may make room for it. */
  readonly awaited: boolean;
  /** VMs may go where NUMA cells are unknown. */
  readonly moveUnknownTopology: boolean;
  readonly movableDevices: readonly MovableDevice[];
  /** Refusals of the destination by Nova since the plan was made. `shape`: of the server; null: no decision has seen it yet. */
  readonly refusals: readonly NewRefusal[];
  /** ms since the epoch */
  readonly nowMs: number;
}

/** A destination that Nova refused for a server. */
export interface NewRefusal {
  readonly serverId: string;
  readonly shape: string | null;
  /** Nova's words. */
  readonly text: string;
}

export interface MoveFacts {
  readonly server: Server | 'gone';
  readonly services: readonly ComputeService[];
  readonly aggregates: readonly Aggregate[];
  /** Migrations of the server, the newest ones. */
  readonly migrations: readonly Pick<Migration, 'id'>[];
}

/** Another member of one of the server's groups. */
export interface MemberFacts {
  readonly id: string;
  /** Where it is, and where it is going. */
  readonly hosts: readonly string[];
}

export interface GroupFacts {
  readonly group: Pick<ServerGroup, 'id' | 'name' | 'policy' | 'maxServersPerHost'>;
  readonly others: readonly MemberFacts[];
}

export interface RoomFacts {
  readonly groups: readonly GroupFacts[];
  /** Whether Placement can put the server's resources on the destination. */
  readonly fits: boolean;
  readonly resources: Readonly<Record<string, number>>;
  /** Why the NUMA cells of the destination do not take the server; null: they do, or nothing is known of them. */
  readonly cells: ReturnType<typeof cellsRefusal>;
  /** Nova's words, where it refused the destination for a server of this shape; null: it did not. */
  readonly refusedBefore: string | null;
  /** The scheduler will not be asked: `[executor] force` on a cloud below 2.68. */
  readonly forced: boolean;
}

/** First half: the server, the services, the aggregate. Null: nothing stands against it so far. */
export function judgeHosts(task: Task, facts: MoveFacts, options: CheckOptions): PreflightVerdict | null {
  const { server } = facts;
  if (server === 'gone') return no(cancelled('server-gone', 'Nova does not know the server'));
  if (server.cellDown) return { kind: 'unreachable', text: "the server's cell is down" };
  if (server.host !== null && server.host !== task.from && reached(task).includes(server.host))
    return { kind: 'there', host: server.host };
  if (server.host !== task.from) return no(cancelled('moved-by-others', elsewhere(server.host)));
  const exempt = task.phase === 'evacuate' && options.evacuationIgnoresWindows;
  return (
    judgeServer(server, { states: ['active', 'paused'], stateCode: 'vm-status', exempt }, options) ??
    judgePower(server) ??
    judgeSource(task, facts) ??
    judgeEvacuation(task, facts, options) ??
    judgeDestination(task, facts) ??
    judgeMembership(task, facts.aggregates, options) ??
    judgePin(task, server, facts) ??
    judgeZone(task, server, facts, options)
  );
}

/** With `restrict_to_az`, a server stays in its availability zone. Call it after {@link judgeDestination}, as {@link judgePin}. */
function judgeZone(task: Task, server: Server, { services }: Services, options: CheckOptions): PreflightVerdict | null {
  const zone = serviceOf(services, task.destination)?.zone ?? null;
  if (!options.restrictToAz || server.availabilityZone === zone) return null;
  const text = `the server is in zone ${server.availabilityZone}; ${task.destination} is in ${zone}`;
  return destinationRefused(task, 'other-zone', text);
}

/** The destinations of a task up to the current one. */
export const reached = (task: Task): readonly string[] => {
  const tried = [task.to, ...task.alternates];
  return [...tried.slice(0, tried.indexOf(task.destination) + 1), task.destination];
};

/**
 * Checks the server itself: opted out, outside its window, locked, in a state that cannot move, or busy.
 *
 * @param how of the move: the `vm_state`s that it takes, the code for any other, and whether the server's windows do not count
 */
export function judgeServer(
  server: Server,
  how: {
    readonly states: readonly string[];
    readonly stateCode: 'vm-status' | 'cell-status';
    readonly exempt: boolean;
  },
  options: CheckOptions,
): PreflightVerdict | null {
  const optOut = optedOutBy(server, options.optOut);
  if (optOut !== null) return no(cancelled('vm-opted-out', `the server is opted out by ${optOut}`));
  const window = serverWindow(serverWindows(server), options.timezone, options.nowMs);
  if (window.kind === 'closed' && !how.exempt)
    return no(cancelled('vm-outside-window', "the server's own window is closed"));
  // Its text is the tenant's: Nova shows it, the log need not.
  if (window.kind === 'unreadable')
    return no(cancelled('vm-window-unreadable', "the server's own window (kronos:window) cannot be read"));
  if (server.locked) {
    const why = server.lockedReason === null ? '' : `: ${server.lockedReason}`;
    return refuseTask('PreFlightError', 'vm-locked', `the server is locked${why}`);
  }
  if (server.vmState === null || !how.states.includes(server.vmState))
    return refuseTask('PreFlightError', how.stateCode, `the server is ${server.vmState ?? server.status}`);
  if (server.taskState !== null)
    return refuseTask('PreFlightError', 'vm-busy', `the server is busy: ${server.taskState}`);
  return null;
}

/** Nova's conductor live-migrates only guests that run or are paused, whatever the server's vm_state. */
function judgePower({ powerState }: Server): PreflightVerdict | null {
  if (powerState === null || livePowerState(powerState)) return null;
  const text = `the power state is ${powerStateName(powerState)}: Nova live-migrates only guests that run or are paused`;
  return refuseTask('PreFlightError', 'vm-power-state', text);
}

type Services = Pick<MoveFacts, 'services'>;

/** A move between cells leaves a source that was disabled as well: its phase is no evacuation. */
export function judgeSource(task: Task, { services }: Services): PreflightVerdict | null {
  const source = serviceOf(services, task.from);
  if (source === null || !isUp(source))
    return refuseTask('NovaClientError', 'vm-source-down', `nova-compute on ${task.from} is not up`);
  if (source.status !== 'enabled' && task.phase !== 'evacuate' && task.phase !== 'cell')
    return no(cancelled('vm-source-disabled', `nova-compute on ${task.from} was disabled since`));
  return null;
}

/** A resident that makes room for an evacuation leaves an enabled host: the step that waits for it is judged by itself. */
function judgeEvacuation(
  task: Task,
  { services }: Services,
  { awaited }: Pick<CheckOptions, 'awaited'>,
): PreflightVerdict | null {
  const source = serviceOf(services, task.from);
  if (task.phase !== 'evacuate' || awaited || source === null || !evacuationIsOver(source)) return null;
  return no(cancelled('reason-gone', `nova-compute on ${task.from} is enabled again: its servers stay`));
}

export function judgeDestination(task: Task, { services }: Services): PreflightVerdict | null {
  const destination = serviceOf(services, task.destination);
  if (destination === null)
    return destinationRefused(task, 'destination-unknown', `Nova has no nova-compute on ${task.destination}`);
  if (!isUp(destination)) return destinationRefused(task, 'host-down', `nova-compute on ${task.destination} is not up`);
  if (destination.status !== 'enabled')
    return destinationRefused(task, 'host-disabled', `nova-compute on ${task.destination} is disabled`);
  return null;
}

/** Call it after {@link judgeDestination}: a destination without a service has no zone. */
export function judgePin(task: Task, server: Server, { services }: Services): PreflightVerdict | null {
  const zone = serviceOf(services, task.destination)?.zone ?? null;
  const pinned = server.pinnedAvailabilityZone ?? null;
  if (pinned === null || pinned === zone) return null;
  const text = `the server is pinned to zone ${pinned}; ${task.destination} is in ${zone}`;
  return destinationRefused(task, 'pinned-zone', text);
}

function judgeMembership(task: Task, aggregates: readonly Aggregate[], options: CheckOptions): PreflightVerdict | null {
  const { aggregate, from, destination } = task;
  const holding = (host: string) => aggregatesOf(host, aggregates);
  const ofDestination = holding(destination);
  if (aggregate === UNASSIGNED) {
    if (holding(from).length > 0)
      return no(cancelled('source-left', `${from} is in aggregate ${holding(from).join(', ')} since`));
    if (ofDestination.length === 0) return null;
    return destinationRefused(
      task,
      'destination-left',
      `${destination} is in aggregate ${ofDestination.join(', ')} since`,
    );
  }
  if (!holding(from).includes(aggregate)) return no(cancelled('source-left', `${from} left aggregate ${aggregate}`));
  if (!ofDestination.includes(aggregate))
    return destinationRefused(task, 'destination-left', `${destination} left aggregate ${aggregate}`);
  return judgeOthers(task, aggregate, ofDestination, options);
}

/** The names of the aggregates that a host is in. */
export const aggregatesOf = (host: string, aggregates: readonly Aggregate[]): string[] =>
  aggregates.filter(({ hosts }) => hosts.includes(host)).map(({ name }) => name);

/** A host that a second aggregate in scope has, too, is no destination. `names`: of all its aggregates. */
export function judgeOthers(
  task: Task,
  own: string,
  names: readonly string[],
  options: Pick<CheckOptions, 'aggregates'>,
): PreflightVerdict | null {
  const other = names.find((name) => name !== own && options.aggregates.includes(name));
  if (other === undefined) return null;
  const text = `${task.destination} is in ${own} and in ${other}, both in scope`;
  return destinationRefused(task, 'host-in-two-aggregates', text);
}

/** Second half: the groups' rules and the room on the destination. */
export function judgeRoom(
  task: Task,
  hosts: MoveFacts,
  room: RoomFacts,
  options: Pick<CheckOptions, 'softRules' | 'awaited'>,
): PreflightVerdict {
  if (repairsNothing(task, room.groups, options.awaited))
    return no(cancelled('reason-gone', 'the server groups of the server hold their rules again'));
  const inAggregate = new Set(hosts.aggregates.find((a) => a.name === task.aggregate)?.hosts ?? []);
  const visible = (member: MemberFacts) =>
    member.hosts.some((host) => task.aggregate === UNASSIGNED || inAggregate.has(host));
  for (const { group, others } of room.groups) {
    if (options.softRules === 'penalty' && group.policy?.startsWith('soft-') === true) continue;
    if (group.policy === null) continue;
    const placed = others.filter((member) => member.hosts.length > 0 && visible(member));
    const there = countOn(task.destination, others);
    const counts = { there, placed: placed.length, onSource: countOn(task.from, placed) };
    const rule = { policy: group.policy, most: group.maxServersPerHost };
    const refused = groupRefused(
      task,
      group,
      groupVerdict(rule, counts, { gathers: task.phase === 'affinity' }),
      there,
    );
    if (refused !== null) return refused;
  }
  if (room.refusedBefore !== null) {
    const text = `Nova refused ${task.destination} for a server of this shape since the plan was made: ${room.refusedBefore}`;
    return destinationRefused(task, 'refused-before', text);
  }
  if (!room.fits) {
    const text = `Placement has no room on ${task.destination}`;
    return destinationRefused(task, 'capacity', text, { ...room.resources });
  }
  if (room.cells !== null) return destinationRefused(task, room.cells.code, `${task.destination}: ${room.cells.text}`);
  return { kind: 'go', newestMigrationId: newestId(hosts.migrations), forced: room.forced };
}

const countOn = (host: string, members: readonly MemberFacts[]): number =>
  members.filter(({ hosts }) => hosts.includes(host)).length;

function groupRefused(
  task: Task,
  { name: named, policy }: GroupFacts['group'],
  verdict: ReturnType<typeof groupVerdict>,
  there: number,
): PreflightVerdict | null {
  const name = `server group ${named}`;
  switch (verdict) {
    case 'allowed':
      return null;
    case 'apart':
      return destinationRefused(
        task,
        'anti-affinity',
        `${count(there, 'member')} of ${name} ${there === 1 ? 'is' : 'are'} on ${task.destination}`,
      );
    case 'together':
      return destinationRefused(task, 'affinity', `not all members of ${name} are on ${task.destination}`);
    case 'immovable':
      return refuseTask(
        'PreFlightError',
        'affinity-gathered',
        `${name} (affinity) sits wholly on ${task.from}: Nova finds no valid host for a member of such a group`,
      );
    case 'unknown':
      return refuseTask('PreFlightError', 'server-group-policy-unknown', `${name} has the unknown policy ${policy}`);
  }
}

/** Whether a repair has nothing to repair any more. A member that makes room for another step repairs nothing itself. */
function repairsNothing(task: Task, groups: readonly GroupFacts[], awaited: boolean): boolean {
  if (task.phase !== 'affinity' || task.parking || awaited || groups.length === 0) return false;
  return groups.every(({ group: { policy, maxServersPerHost }, others }) => {
    if (policy === null) return false;
    const placed = others.filter(({ hosts }) => hosts.length > 0);
    return groupIsWhole({ policy, most: maxServersPerHost }, task.from, placed);
  });
}

/** The usage and the capacity of a host, by resource class. */
export type Claims = Parameters<typeof repairIsOver>[1];

/** @param claims on the source; null: unknown, or the move is for another reason */
export function judgeRepair(
  { from }: Pick<Task, 'from'>,
  { pinnedAvailabilityZone: pin }: Pick<Server, 'pinnedAvailabilityZone'>,
  { services }: Services,
  claims: Claims | null,
): PreflightVerdict | null {
  const zone = serviceOf(services, from)?.zone ?? null;
  if (claims === null || !repairIsOver({ pin, zone }, claims)) return null;
  const text = `the server is where it is pinned to, and ${from} has no more claimed than its capacity`;
  return no(cancelled('reason-gone', text));
}

export const newestId = (migrations: readonly Pick<Migration, 'id'>[]): number =>
  migrations.reduce((newest, { id }) => Math.max(newest, id), 0);

export const no = (failure: JudgedFailure): PreflightVerdict => ({ kind: 'no', failure });

export const refuseTask = (errorType: ErrorType, code: TaskReasonCode, text: string): PreflightVerdict =>
  no(failureFor(code, { errorType, text }));

export const destinationRefused = (
  { destination }: Task,
  code: TaskReasonCode,
  text: string,
  detail?: Reason['detail'],
): PreflightVerdict =>
  no(failureFor(code, { errorType: 'PreFlightError', text, destination, ...(detail === undefined ? {} : { detail }) }));
