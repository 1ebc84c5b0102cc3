import { abandoned, killHost, loseMigrations, startHost } from './crash.ts';
import { ActError } from './errors.ts';
import {
  addAggregate,
  addFlavor,
  addGroup,
  addHost,
  addUser,
  removeAggregate,
  removeGroup,
  setAggregate,
  setHost,
  setMembership,
} from './estate.ts';
import type { SeriesFault } from './faults.ts';
import {
  abortMigration,
  carryOutAbort,
  conduct,
  forceComplete,
  goOn,
  liveMigrate,
  liveStep,
  type NamedMigration,
} from './liveMigration.ts';
import { progress } from './migrations.ts';
import {
  type Aggregate,
  ENDED,
  type Flavor,
  type Group,
  type HeldCell,
  type Host,
  type Migration,
  type Resources,
  type Server,
} from './model.ts';
import { placeCells } from './numa.ts';
import { dropAllocation, hostHasRoom } from './placement.ts';
import { coldMigrate, conductResize, endResize, resize, resizeStep, survivor } from './resize.ts';
import type { AggregateScenario, FlavorInput, GroupInput, HostInput, Scenario, ServerInput } from './scenario.ts';
import { bootServer, createServer, deleteServer, hardReboot, placeServer, setServer } from './servers.ts';
import { clearSeries, faultSeries } from './settings.ts';
import { beginStateAction, isStateStep, stateStep } from './shelve.ts';
import {
  type ActionStep,
  type Caller,
  type CloudOptions,
  CloudState,
  type LiveMigrationRequest,
  type StateAction,
  type StateStep,
  type StepKind,
} from './state.ts';

export { capacity } from './placement.ts';
export type { Caller, CloudOptions, LiveMigrationRequest } from './state.ts';

/** Steps of a cold migration. */
const COLD: ReadonlySet<StepKind> = new Set([
  'cold-schedule',
  'cold-claim',
  'cold-move',
  'cold-moved',
  'cold-finish',
  'cold-verify',
  'confirm-window',
  'confirm',
  'confirm-source',
  'confirm-end',
  'revert',
  'revert-source',
  'revert-allocation',
  'revert-end',
]);

/**
 * A cloud as a discrete-event simulation: what it is after a sequence of calls depends on their times and the seed
 * alone. It has no clock and no timer: every method that depends on time begins with `advance(nowMs)`, which carries
 * out what was due until then, in order. What it does stands in the rooms that it calls.
 */
export class Cloud extends CloudState {
  constructor(scenario: Scenario, options: CloudOptions) {
    super(scenario, options);
    this.project('admin');
    this.project('service');
    const roles = ['admin', 'manager', 'member', 'reader'];
    addUser(this, { name: 'admin', password: 'secret', roles, project: 'admin' });
    for (const user of scenario.users) addUser(this, user);
    for (const credential of scenario.applicationCredentials) {
      const user = this.userNamed(credential.user);
      this.applicationCredentials.set(credential.id, {
        id: credential.id,
        name: credential.name,
        secret: credential.secret,
        userId: user.id,
      });
    }
    for (const flavor of scenario.flavors) addFlavor(this, flavor);
    for (const host of scenario.hosts) addHost(this, host);
    for (const aggregate of scenario.aggregates) addAggregate(this, aggregate);
    for (const group of scenario.groups) addGroup(this, group);
    // Boot times lie before the start, oldest first, so that a listing has an order.
    const first = options.startMs - 86_400_000 - scenario.servers.length * 1000;
    for (const [index, server] of scenario.servers.entries()) placeServer(this, server, first + index * 1000);
  }

  /** Carries out everything that was due until `nowMs`. A time before the last one changes nothing. */
  advance(nowMs: number): void {
    for (let step = this.agenda.peek(); step !== undefined && step.atMs <= nowMs; step = this.agenda.peek()) {
      this.agenda.pop();
      if (step.atMs > this.nowMs) this.nowMs = step.atMs;
      this.#perform(step);
    }
    if (nowMs > this.nowMs) this.nowMs = nowMs;
  }

  /** From now on Nova's steps go at this pace; those under way keep the share they have done. */
  setSpeed(nowMs: number, speed: number): void {
    this.advance(nowMs);
    this.setPace(speed);
  }

  /** A step that concerns the server alone. */
  #performOf(server: Server, kind: 'build' | 'trip' | StateStep): void {
    if (kind === 'build') {
      if (server.vmState !== 'building') return;
      Object.assign(server, { vmState: 'active', taskState: null, powerState: 1, launchedMs: this.nowMs });
    } else if (kind === 'trip') {
      server.vmState = 'error';
      server.fault = { code: 500, message: 'Unexpected error after switch-over', createdMs: this.nowMs };
    } else stateStep(this, server, kind);
    this.touch(server);
  }

  #perform(step: ActionStep): void {
    if (step.request !== undefined) {
      const begin = step.kind === 'cold-conduct' ? conductResize : conduct;
      begin(this, step.server, step.request);
      return;
    }
    if (step.kind === 'build' || step.kind === 'trip' || isStateStep(step.kind)) {
      const server = this.servers.get(step.server);
      if (server !== undefined) this.#performOf(server, step.kind);
      return;
    }
    const migration = this.migrations[step.migration - 1];
    if (migration === undefined || ENDED.has(migration.status)) return;
    if (step.kind === 'abort') {
      carryOutAbort(this, migration);
      return;
    }
    // A step that was superseded (by an abort, say) is void.
    if (this.next.get(migration.id) !== step.seq) return;
    const server = this.servers.get(migration.serverUuid) ?? survivor(this, migration);
    if (server === undefined) return;
    if (COLD.has(step.kind)) resizeStep(this, migration, server, step.kind);
    else liveStep(step.kind, { s: this, migration, server, status: step.status });
  }

  addFlavor(input: FlavorInput): Flavor {
    return addFlavor(this, input);
  }

  addHost(input: HostInput): Host {
    return addHost(this, input);
  }

  addAggregate(input: AggregateScenario): Aggregate {
    return addAggregate(this, input);
  }

  removeAggregate(idOrName: string): void {
    removeAggregate(this, idOrName);
  }

  setAggregate(idOrName: string, change: Parameters<typeof setAggregate>[2]): void {
    setAggregate(this, idOrName, change);
  }

  addGroup(input: GroupInput): Group {
    return addGroup(this, input);
  }

  removeGroup(idOrName: string): void {
    removeGroup(this, idOrName);
  }

  /** Nova itself never changes a group's members after boot; people do, in its database or by re-creating VMs. */
  setMembership(serverIdOrName: string, groupIdOrName: string | null): void {
    setMembership(this, serverIdOrName, groupIdOrName);
  }

  createServer(nowMs: number, input: ServerInput): Server {
    this.advance(nowMs);
    return createServer(this, input);
  }

  /** POST /servers: placed at once, `BUILD` for a moment. Throws NovaRefusal when nothing can take it. */
  bootServer(nowMs: number, caller: Caller, wanted: Parameters<typeof bootServer>[2]): Server {
    this.advance(nowMs);
    return bootServer(this, caller, wanted);
  }

  /** Nova aborts a live migration of a server that is deleted meanwhile. */
  deleteServer(nowMs: number, idOrName: string): void {
    this.advance(nowMs);
    deleteServer(this, idOrName);
  }

  setServer(nowMs: number, idOrName: string, change: Parameters<typeof setServer>[2]): void {
    this.advance(nowMs);
    setServer(this, idOrName, change);
  }

  /** `full`: a filler takes all that is left, so that nothing fits any more. */
  setHost(nowMs: number, name: string, change: Parameters<typeof setHost>[2]): void {
    this.advance(nowMs);
    setHost(this, name, change);
  }

  /** See {@link CloudState.unreachable}. */
  setCell(nowMs: number, cell: string, { reachable }: { readonly reachable: boolean }): void {
    this.advance(nowMs);
    if (![...this.hosts.values()].some((host) => host.cell === cell)) throw new ActError(`there is no cell ${cell}`);
    if (reachable) this.unreachable.delete(cell);
    else this.unreachable.add(cell);
  }

  /** Nothing goes wrong with the server any more; copying that hangs comes to its end. */
  mendServer(nowMs: number, uuid: string): void {
    this.advance(nowMs);
    this.serverFaults.delete(uuid);
    goOn(this, uuid);
  }

  /** Its nova-compute dies; see crash.ts. */
  killHost(nowMs: number, name: string): void {
    this.advance(nowMs);
    killHost(this, name);
  }

  startHost(nowMs: number, name: string): void {
    this.advance(nowMs);
    startHost(this, name);
  }

  /** Whether Nova shows a live migration that no compute works on any more. */
  abandoned(migration: Migration): boolean {
    return abandoned(this, migration);
  }

  /** The rows of a server's migrations are gone, as after a restore of an older database. */
  loseMigrations(nowMs: number, idOrName: string): void {
    this.advance(nowMs);
    loseMigrations(this, this.server(idOrName));
  }

  faultSeries(nowMs: number, fault: SeriesFault): number {
    this.advance(nowMs);
    return faultSeries(this, fault);
  }

  clearSeries(nowMs: number, id?: number): void {
    this.advance(nowMs);
    clearSeries(this, id);
  }

  /** DELETE /allocations/{consumer}: false when it holds nothing. */
  dropAllocation(nowMs: number, consumer: string): boolean {
    this.advance(nowMs);
    return dropAllocation(this, consumer);
  }

  /** Whether the host's resource provider could take this much more. */
  fits(host: Host, wanted: Resources): boolean {
    return hostHasRoom(host, wanted);
  }

  /** The NUMA cells of the host that Nova would give a server of this flavor; null: it does not fit. */
  cellsFor(host: string, flavor: Flavor): HeldCell[] | null {
    return placeCells(this, this.host(host), flavor);
  }

  /** POST /servers/{id}/action os-migrateLive. Throws NovaRefusal as Nova would. */
  liveMigrate(nowMs: number, caller: Caller, uuid: string, request: LiveMigrationRequest): void {
    this.advance(nowMs);
    liveMigrate(this, caller, uuid, request);
  }

  /** DELETE /servers/{id}/migrations/{mid}. `queuedToo`: from 2.65 on. Throws NovaRefusal as Nova would. */
  abort(nowMs: number, caller: Caller, named: NamedMigration, rule: { readonly queuedToo: boolean }): void {
    this.advance(nowMs);
    abortMigration(this, caller, named, rule);
  }

  /** POST /servers/{id}/migrations/{mid}/action force_complete: the copying ends at once. */
  forceComplete(nowMs: number, caller: Caller, named: NamedMigration): void {
    this.advance(nowMs);
    forceComplete(this, caller, named);
  }

  /** POST /servers/{id}/action migrate: to another host, of another cell too. Throws NovaRefusal as Nova would. */
  coldMigrate(nowMs: number, caller: Caller, uuid: string, requestedHost: string | null): void {
    this.advance(nowMs);
    coldMigrate(this, caller, uuid, requestedHost);
  }

  /** POST /servers/{id}/action resize: to a flavor, on a host that the scheduler chooses. Throws NovaRefusal as Nova would. */
  resize(nowMs: number, caller: Caller, uuid: string, flavorId: string): void {
    this.advance(nowMs);
    resize(this, caller, uuid, flavorId);
  }

  /** POST /servers/{id}/action rescue, unrescue, shelve, unshelve. Throws NovaRefusal as Nova would. */
  beginStateAction(nowMs: number, caller: Caller, uuid: string, action: StateAction): void {
    this.advance(nowMs);
    beginStateAction(this, caller, uuid, action);
  }

  /** Starts a guest that is powered off or broken. Throws NovaRefusal as Nova would. */
  hardReboot(nowMs: number, uuid: string): void {
    this.advance(nowMs);
    hardReboot(this, uuid);
  }

  /** Ends a move that waits in VERIFY_RESIZE, one way or the other. Throws NovaRefusal as Nova would. */
  endResize(nowMs: number, caller: Caller, uuid: string, action: 'confirmResize' | 'revertResize'): void {
    this.advance(nowMs);
    endResize(this, caller, uuid, action);
  }

  /** Bytes of the guest's memory: all, copied, left; null before the copying began. */
  progress(migration: Migration): { total: number; processed: number; remaining: number } | null {
    return progress(this, migration);
  }
}
