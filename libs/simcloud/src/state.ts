/** The state of a simulated cloud: its users and resources, its clock, and the pending events. */

import { Agenda } from './agenda.ts';
import { ActError, NovaRefusal } from './errors.ts';
import type { ActiveSeriesFault, HostFaultSetting, ServerFaultSetting } from './faults.ts';
import {
  type Action,
  type Aggregate,
  type ApplicationCredential,
  ENDED,
  type Flavor,
  type Group,
  type Host,
  type Migration,
  type MigrationStatus,
  NOVA_TIMING,
  type Project,
  type Resources,
  type Server,
  type Timing,
  type User,
} from './model.ts';
import { random, type SeededRandom } from './random.ts';
import type { Scenario } from './scenario.ts';

/** The caller. */
export interface Caller {
  readonly userId: string;
  readonly projectId: string;
  readonly requestId: string;
}

export interface LiveMigrationRequest {
  readonly host: string | null;
  readonly force: boolean;
  /** From 2.34 on the pre-checks run after the answer; before, a refusal comes back as 400. */
  readonly async: boolean;
}

/** Actions of users on the state of a server that Nova carries out after its answer. */
export type StateAction = 'rescue' | 'unrescue' | 'shelve' | 'unshelve';
/** Their ends, and the steps that bring a shelved server from its host, and back to one. */
export type StateStep = StateAction | 'offload' | 'leave-host' | 'spawned';

export type StepKind =
  | StateStep
  | 'conduct'
  | 'schedule'
  | 'check'
  | 'queue'
  | 'prepare'
  | 'run'
  | 'break'
  | 'switchover'
  | 'arrive'
  | 'complete'
  | 'rollback'
  | 'settle'
  | 'abort'
  | 'build'
  | 'trip'
  | 'cold-conduct'
  | 'cold-schedule'
  | 'cold-claim'
  | 'cold-move'
  | 'cold-moved'
  | 'cold-finish'
  | 'cold-verify'
  | 'confirm-window'
  | 'confirm'
  | 'confirm-source'
  | 'confirm-end'
  | 'revert'
  | 'revert-source'
  | 'revert-allocation'
  | 'revert-end';

export interface ActionStep {
  atMs: number;
  readonly seq: number;
  readonly kind: StepKind;
  /** The migration's id; 0 in steps that come before it or concern the server alone. */
  readonly migration: number;
  readonly server: string;
  readonly request?: Pending;
  readonly status?: MigrationStatus;
}

export interface Pending {
  readonly caller: Caller;
  readonly requestedHost: string | null;
  /** Of a resize: the flavor wanted. */
  readonly flavor?: Flavor;
  readonly forced: boolean;
  /** See LiveMigrationRequest. */
  readonly async: boolean;
}

export interface CloudOptions {
  readonly startMs: number;
  /** Default: the scenario's. */
  readonly seed?: number;
  /** The pace of its steps; 1 is Nova's own. */
  readonly speed?: number;
}

/** The state, what can be asked of it, and the primitives with which the rooms beside this one change it. */
export class CloudState {
  readonly scenario: Scenario;
  readonly hosts = new Map<string, Host>();
  readonly hostsByNode = new Map<string, Host>();
  readonly servers = new Map<string, Server>();
  /** Deleted servers, still needed for their load series and their actions. */
  readonly deleted = new Map<string, Server>();
  readonly groups = new Map<string, Group>();
  readonly aggregates = new Map<number, Aggregate>();
  readonly migrations: Migration[] = [];
  readonly migrationsByServer = new Map<string, Migration[]>();
  readonly actions = new Map<string, Action[]>();
  readonly flavors = new Map<string, Flavor>();
  readonly projects = new Map<string, Project>();
  readonly users = new Map<string, User>();
  readonly applicationCredentials = new Map<string, ApplicationCredential>();
  readonly serverFaults = new Map<string, ServerFaultSetting>();
  readonly hostFaults = new Map<string, HostFaultSetting>();
  readonly seriesFaults: ActiveSeriesFault[] = [];
  /** consumer uuid -> its allocation: an instance, a migration, or a filler. */
  readonly allocations = new Map<string, { readonly host: string; readonly resources: Resources }>();
  readonly groupOf = new Map<string, Group>();
  readonly imageId: string;
  readonly startMs: number;
  readonly timing: Timing;

  readonly agenda = new Agenda<ActionStep>();
  readonly random: SeededRandom;
  /** Migration -> the step that comes next; any other that the agenda has for it is void. */
  readonly next = new Map<number, number>();
  nowMs: number;
  /** Whether Nova's policy lets an administrator's resize or cold migration leave its cell. */
  crossCell: boolean;
  /** Cells whose database Nova's API does not reach: https://docs.openstack.org/api-guide/compute/down_cells.html. */
  readonly unreachable = new Set<string>();
  /** nova-scheduler stands still: no host is chosen for a move. */
  schedulerHeld = false;
  /** The pace; 1 is Nova's own. */
  speed: number;
  /** Cloud milliseconds passed until `speedFromMs`. */
  cloudMs = 0;
  speedFromMs: number;
  seq = 0;
  /** The last id that each cell gave to a migration. */
  readonly rowIds = new Map<string, number>();
  /** The last number given out, by kind. */
  ids = { server: 0, host: 0, group: 0, aggregate: 0, migration: 0, fault: 0 };
  /** The last result of `listing`; null when it no longer fits. */
  order: Server[] | null = null;
  positions = new Map<string, number>();
  /** Told of each server that was made, changed or deleted after the start, at `nowMs`. */
  onServer: (server: Server) => void = () => undefined;

  constructor(scenario: Scenario, options: CloudOptions) {
    this.scenario = scenario;
    this.timing = { ...NOVA_TIMING, ...(scenario.timing as Partial<Timing>) };
    this.startMs = options.startMs;
    this.nowMs = options.startMs;
    this.speedFromMs = options.startMs;
    this.speed = options.speed ?? 1;
    this.random = random(options.seed ?? scenario.seed);
    this.crossCell = scenario.crossCellResize;
    this.imageId = this.random.uuid();
  }

  /** Seconds of cloud time since the start, at `atMs`; runs `speed` times as fast as the clock. */
  cloudSeconds(atMs: number): number {
    return (this.cloudMs + (atMs - this.speedFromMs) * this.speed) / 1000;
  }

  /** When the next thing happens by itself; null when nothing is under way. */
  nextAtMs(): number | null {
    return this.agenda.peek()?.atMs ?? null;
  }

  wait(novaMs: number): number {
    const { jitter } = this.timing;
    const factor = 1 + jitter * (2 * this.random.next() - 1);
    return (novaMs * factor) / this.speed;
  }

  schedule(kind: StepKind, migration: number, afterMs: number, status?: MigrationStatus): void {
    const seq = ++this.seq;
    if (kind !== 'abort') this.next.set(migration, seq);
    const base = { atMs: this.nowMs + afterMs, seq, kind, migration, server: '' };
    this.agenda.push(status === undefined ? base : { ...base, status });
  }

  /** Whether the choice of a host has to wait: then it comes again later. */
  holds(kind: 'schedule' | 'cold-schedule', migration: number): boolean {
    if (this.schedulerHeld) this.schedule(kind, migration, Math.max(1, this.wait(this.timing.schedulerMs)));
    return this.schedulerHeld;
  }

  /** The cell whose database has the server: that of the last host on which it was. */
  cellOf({ host, placements }: Server): string {
    const last = host === '' ? placements.findLast((each) => each.host !== null)?.host : host;
    return this.host(last ?? host).cell;
  }

  isUnreachable(server: Server): boolean {
    return this.unreachable.size > 0 && this.unreachable.has(this.cellOf(server));
  }

  later(kind: 'build' | 'trip' | StateStep, server: string, afterMs: number): void {
    this.agenda.push({ atMs: this.nowMs + afterMs, seq: ++this.seq, kind, migration: 0, server });
  }

  project(name: string): Project {
    const found = this.projects.get(name);
    if (found !== undefined) return found;
    const project = { id: this.random.uuid().replaceAll('-', ''), name };
    this.projects.set(name, project);
    return project;
  }

  userNamed(name: string): User {
    for (const user of this.users.values()) if (user.name === name) return user;
    throw new ActError(`there is no user ${name}`);
  }

  get admin(): User {
    return this.userNamed('admin');
  }

  host(name: string): Host {
    const host = this.hosts.get(name);
    if (host === undefined) throw new ActError(`there is no host ${name}`);
    return host;
  }

  /** By uuid, else by name if only one server has it. */
  server(idOrName: string): Server {
    const byId = this.servers.get(idOrName);
    if (byId !== undefined) return byId;
    const named = [...this.servers.values()].filter((server) => server.name === idOrName);
    const only = named[0];
    if (only === undefined) throw new ActError(`there is no server ${idOrName}`);
    if (named.length > 1) throw new ActError(`${named.length} servers are called ${idOrName}; use the uuid`);
    return only;
  }

  group(idOrName: string): Group {
    const byId = this.groups.get(idOrName);
    if (byId !== undefined) return byId;
    for (const group of this.groups.values()) if (group.name === idOrName) return group;
    throw new ActError(`there is no server group ${idOrName}`);
  }

  aggregate(idOrName: string): Aggregate {
    for (const aggregate of this.aggregates.values())
      if (aggregate.name === idOrName || String(aggregate.id) === idOrName) return aggregate;
    throw new ActError(`there is no aggregate ${idOrName}`);
  }

  /** A host's availability zone: that of the first of its aggregates that has one, else Nova's default. */
  zoneOf(host: string): string {
    for (const aggregate of this.aggregates.values())
      if (aggregate.availabilityZone !== null && aggregate.hosts.includes(host)) return aggregate.availabilityZone;
    return 'nova';
  }

  traitsOf(host: Host): readonly string[] {
    return host.disabled ? [...host.traits, 'COMPUTE_STATUS_DISABLED'] : host.traits;
  }

  isUp(host: Host): boolean {
    return host.up && !host.forcedDown;
  }

  /** Every server that is not deleted, newest first: the order of Nova's listings. */
  listing(): readonly Server[] {
    if (this.order === null) {
      this.order = [...this.servers.values()].sort((a, b) => b.createdMs - a.createdMs || b.id - a.id);
      this.positions = new Map(this.order.map((server, index) => [server.uuid, index]));
    }
    return this.order;
  }

  /** The place of a server in `listing()`; undefined when it is not there. */
  position(uuid: string): number | undefined {
    this.listing();
    return this.positions.get(uuid);
  }

  touch(server: Server): void {
    server.updatedMs = this.nowMs;
    this.changed(server);
  }

  /** A change that Nova's `updated` does not show. */
  changed(server: Server): void {
    server.views.clear();
    this.onServer(server);
  }

  forgetViews(host: string): void {
    for (const server of this.servers.values()) if (server.host === host) server.views.clear();
  }

  /** From now on Nova's steps go at this pace; those under way keep the share they have done. */
  setPace(speed: number): void {
    const { nowMs } = this;
    if (!(speed > 0)) throw new ActError(`speed must be above 0, not ${speed}`);
    const factor = this.speed / speed;
    this.cloudMs += (nowMs - this.speedFromMs) * this.speed;
    this.speedFromMs = nowMs;
    this.speed = speed;
    this.agenda.retime((atMs) => nowMs + (atMs - nowMs) * factor);
    for (const migration of this.migrations) {
      if (migration.copyFromMs === null || ENDED.has(migration.status)) continue;
      migration.copyFromMs = nowMs - (nowMs - migration.copyFromMs) * factor;
      migration.copyMs *= factor;
    }
  }
}

/** The server of a call. Throws NovaRefusal as Nova would. */
export function findServer({ servers }: Pick<CloudState, 'servers'>, uuid: string): Server {
  const server = servers.get(uuid);
  if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
  return server;
}
