import { ActError, NovaRefusal } from './errors.ts';
import type { ActiveSeriesFault, HostFaultSetting, SeriesFault, ServerFaultSetting } from './faults.ts';
import { Agenda } from './heap.ts';
import {
  type Action,
  type ActionEvent,
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
import { type Random, random } from './random.ts';
import type { AggregateInput, FlavorInput, GroupInput, HostInput, Scenario, ServerInput } from './scenario.ts';
import { aggregateSchema, demandSchema, flavorSchema, groupSchema, hostSchema, serverSchema } from './scenario.ts';

/** Who calls. */
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

type StepKind =
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
  | 'cold-move'
  | 'cold-moved'
  | 'cold-finish'
  | 'cold-verify'
  | 'confirm'
  | 'revert'
  | 'reverted';

interface Step {
  atMs: number;
  readonly seq: number;
  readonly kind: StepKind;
  /** The migration, or for `conduct` and `build` the place in #requests and the server's uuid. */
  readonly migration: number;
  readonly server: string;
  readonly request?: Pending;
  readonly status?: MigrationStatus;
}

interface Pending {
  readonly caller: Caller;
  readonly requestedHost: string | null;
  readonly forced: boolean;
  /** See LiveMigrationRequest. */
  readonly async: boolean;
}

/** What the scheduler says when its filters left no host, and when Placement already had none. */
const NO_HOST = 'No valid host was found. There are not enough hosts available.';
const NO_ROOM = 'No valid host was found. ';
/** Where the conductor says it runs, in events. */
const CONDUCTOR = 'controller';

const COMMON_TRAITS = [
  'COMPUTE_NODE',
  'COMPUTE_DEVICE_TAGGING',
  'COMPUTE_NET_ATTACH_INTERFACE',
  'COMPUTE_VOLUME_EXTEND',
  'COMPUTE_VOLUME_MULTI_ATTACH',
  'COMPUTE_TRUSTED_CERTS',
  'COMPUTE_IMAGE_TYPE_QCOW2',
  'COMPUTE_IMAGE_TYPE_RAW',
  'HW_CPU_X86_SSE42',
  'HW_CPU_X86_AVX2',
];

export interface CloudOptions {
  readonly startMs: number;
  /** Default: the scenario's. */
  readonly seed?: number;
  /** How many times faster than Nova its steps go; 1 is Nova's own pace. */
  readonly speed?: number;
}

/**
 * A cloud as a discrete-event simulation: what it is after a sequence of calls depends on their times and the seed
 * alone. It has no clock and no timer: every method that depends on time begins with `advance(nowMs)`, which carries
 * out what was due until then, in order.
 */
export class Cloud {
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

  readonly #agenda = new Agenda<Step>();
  readonly #random: Random;
  readonly #next = new Map<number, number>();
  #nowMs: number;
  #speed: number;
  /** Cloud milliseconds passed until #speedFromMs. */
  #cloudMs = 0;
  #speedFromMs: number;
  #seq = 0;
  #ids = { server: 0, host: 0, group: 0, aggregate: 0, migration: 0, fault: 0 };
  #order: Server[] | null = null;
  #position = new Map<string, number>();

  constructor(scenario: Scenario, options: CloudOptions) {
    this.scenario = scenario;
    this.timing = { ...NOVA_TIMING, ...(scenario.timing as Partial<Timing>) };
    this.startMs = options.startMs;
    this.#nowMs = options.startMs;
    this.#speedFromMs = options.startMs;
    this.#speed = options.speed ?? 1;
    this.#random = random(options.seed ?? scenario.seed);
    this.imageId = this.#random.uuid();
    this.project('admin');
    this.project('service');
    this.#user('admin', 'secret', ['admin', 'manager', 'member', 'reader'], 'admin');
    for (const user of scenario.users) this.#user(user.name, user.password, user.roles, user.project);
    for (const credential of scenario.applicationCredentials) {
      const user = this.#userNamed(credential.user);
      this.applicationCredentials.set(credential.id, {
        id: credential.id,
        name: credential.name,
        secret: credential.secret,
        userId: user.id,
      });
    }
    for (const flavor of scenario.flavors) this.addFlavor(flavor);
    for (const host of scenario.hosts) this.addHost(host);
    for (const aggregate of scenario.aggregates) this.addAggregate(aggregate);
    for (const group of scenario.groups) this.addGroup(group);
    // Boot times lie before the start, oldest first, so that a listing has an order.
    const first = options.startMs - 86_400_000 - scenario.servers.length * 1000;
    for (const [index, server] of scenario.servers.entries()) this.#place(server, first + index * 1000);
  }

  // ---------------------------------------------------------------- time

  get nowMs(): number {
    return this.#nowMs;
  }

  get speed(): number {
    return this.#speed;
  }

  /** Seconds of cloud time since the start, at `atMs`; runs `speed` times as fast as the clock. */
  cloudSeconds(atMs: number): number {
    return (this.#cloudMs + (atMs - this.#speedFromMs) * this.#speed) / 1000;
  }

  /** From now on Nova's steps go at this pace; those under way keep the share they have done. */
  setSpeed(nowMs: number, speed: number): void {
    if (!(speed > 0)) throw new ActError(`speed must be above 0, not ${speed}`);
    this.advance(nowMs);
    const factor = this.#speed / speed;
    this.#cloudMs += (nowMs - this.#speedFromMs) * this.#speed;
    this.#speedFromMs = nowMs;
    this.#speed = speed;
    this.#agenda.retime((atMs) => nowMs + (atMs - nowMs) * factor);
    for (const migration of this.migrations) {
      if (migration.copyFromMs === null || ENDED.has(migration.status)) continue;
      migration.copyFromMs = nowMs - (nowMs - migration.copyFromMs) * factor;
      migration.copyMs *= factor;
    }
  }

  /** Carries out everything that was due until `nowMs`. A time before the last one changes nothing. */
  advance(nowMs: number): void {
    for (let step = this.#agenda.peek(); step !== undefined && step.atMs <= nowMs; step = this.#agenda.peek()) {
      this.#agenda.pop();
      if (step.atMs > this.#nowMs) this.#nowMs = step.atMs;
      this.#perform(step);
    }
    if (nowMs > this.#nowMs) this.#nowMs = nowMs;
  }

  /** When the next thing happens by itself; null when nothing is under way. */
  nextAtMs(): number | null {
    return this.#agenda.peek()?.atMs ?? null;
  }

  #wait(novaMs: number): number {
    const { jitter } = this.timing;
    const factor = 1 + jitter * (2 * this.#random.next() - 1);
    return (novaMs * factor) / this.#speed;
  }

  #schedule(kind: StepKind, migration: number, afterMs: number, status?: MigrationStatus): void {
    const seq = ++this.#seq;
    if (kind !== 'abort') this.#next.set(migration, seq);
    const base = { atMs: this.#nowMs + afterMs, seq, kind, migration, server: '' };
    this.#agenda.push(status === undefined ? base : { ...base, status });
  }

  #later(kind: 'build' | 'trip' | 'reverted', server: string, afterMs: number): void {
    this.#agenda.push({ atMs: this.#nowMs + afterMs, seq: ++this.#seq, kind, migration: 0, server });
  }

  // ---------------------------------------------------------------- people and things

  project(name: string): Project {
    const found = this.projects.get(name);
    if (found !== undefined) return found;
    const project = { id: this.#random.uuid().replaceAll('-', ''), name };
    this.projects.set(name, project);
    return project;
  }

  #user(name: string, password: string, roles: readonly string[], project: string): void {
    const id = this.#random.uuid().replaceAll('-', '');
    this.users.set(id, { id, name, password, roles, projectId: this.project(project).id });
  }

  #userNamed(name: string): User {
    for (const user of this.users.values()) if (user.name === name) return user;
    throw new ActError(`there is no user ${name}`);
  }

  get admin(): User {
    return this.#userNamed('admin');
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

  addFlavor(input: FlavorInput): Flavor {
    const parsed = flavorSchema.parse(input);
    if (this.flavors.has(parsed.name)) throw new ActError(`there is already a flavor ${parsed.name}`);
    const flavor = { id: String(this.flavors.size + 1), ...parsed };
    this.flavors.set(flavor.name, flavor);
    return flavor;
  }

  addHost(input: HostInput): Host {
    const parsed = hostSchema.parse(input);
    if (this.hosts.has(parsed.name)) throw new ActError(`there is already a host ${parsed.name}`);
    const id = ++this.#ids.host;
    const host: Host = {
      name: parsed.name,
      hypervisorHostname: parsed.hypervisorHostname ?? parsed.name,
      nodeUuid: this.#random.uuid(),
      nodeId: id,
      serviceUuid: this.#random.uuid(),
      serviceId: id + 3,
      cell: parsed.cell,
      hypervisorType: parsed.hypervisorType,
      hypervisorVersion: parsed.hypervisorVersion,
      ip: `10.0.${id >> 8}.${id & 255}`,
      total: { vcpus: parsed.vcpus, memoryMb: parsed.memoryMb, diskGb: parsed.diskGb },
      reserved: { vcpus: parsed.reservedVcpus, memoryMb: parsed.reservedMemoryMb, diskGb: parsed.reservedDiskGb },
      ratio: { vcpus: parsed.cpuRatio, memoryMb: parsed.memoryRatio, diskGb: parsed.diskRatio },
      traits: [...COMMON_TRAITS, ...parsed.traits],
      disabled: parsed.disabled,
      disabledReason: parsed.disabledReason,
      up: parsed.up,
      forcedDown: parsed.forcedDown,
      lastSeenMs: this.#nowMs - 60_000,
      consumers: new Map(),
      used: { vcpus: 0, memoryMb: 0, diskGb: 0 },
      generation: 2,
      running: new Set(),
      waiting: [],
    };
    this.hosts.set(host.name, host);
    this.hostsByNode.set(host.nodeUuid, host);
    return host;
  }

  addAggregate(input: AggregateInput): Aggregate {
    const parsed = aggregateSchema.parse(input);
    for (const each of this.aggregates.values())
      if (each.name === parsed.name) throw new ActError(`there is already an aggregate ${parsed.name}`);
    for (const host of parsed.hosts) this.host(host);
    const id = ++this.#ids.aggregate;
    const metadata = { ...parsed.metadata };
    if (parsed.availabilityZone !== null) metadata.availability_zone = parsed.availabilityZone;
    const aggregate: Aggregate = {
      uuid: this.#random.uuid(),
      id,
      name: parsed.name,
      availabilityZone: parsed.availabilityZone,
      hosts: [...parsed.hosts],
      metadata,
      createdMs: this.#nowMs,
      updatedMs: null,
    };
    this.aggregates.set(id, aggregate);
    for (const host of aggregate.hosts) this.#forgetViews(host);
    return aggregate;
  }

  removeAggregate(idOrName: string): void {
    const aggregate = this.aggregate(idOrName);
    this.aggregates.delete(aggregate.id);
    for (const host of aggregate.hosts) this.#forgetViews(host);
  }

  setAggregate(
    idOrName: string,
    change: {
      name?: string | undefined;
      hosts?: readonly string[] | undefined;
      metadata?: Record<string, string> | undefined;
    },
  ): void {
    const aggregate = this.aggregate(idOrName);
    for (const host of change.hosts ?? []) this.host(host);
    for (const host of aggregate.hosts) this.#forgetViews(host);
    if (change.name !== undefined) aggregate.name = change.name;
    if (change.hosts !== undefined) aggregate.hosts = [...change.hosts];
    if (change.metadata !== undefined) {
      aggregate.metadata = { ...change.metadata };
      aggregate.availabilityZone = change.metadata.availability_zone ?? null;
    }
    aggregate.updatedMs = this.#nowMs;
    for (const host of aggregate.hosts) this.#forgetViews(host);
  }

  addGroup(input: GroupInput): Group {
    const parsed = groupSchema.parse(input);
    const group: Group = {
      uuid: this.#random.uuid(),
      id: ++this.#ids.group,
      name: parsed.name,
      policy: parsed.policy,
      maxServerPerHost: parsed.maxServerPerHost,
      projectId: this.project(parsed.project).id,
      userId: this.admin.id,
      members: [],
    };
    this.groups.set(group.uuid, group);
    return group;
  }

  removeGroup(idOrName: string): void {
    const group = this.group(idOrName);
    this.groups.delete(group.uuid);
    for (const member of group.members) this.groupOf.delete(member);
  }

  /** Nova itself never changes a group's members after boot; people do, in its database or by re-creating VMs. */
  setMembership(serverIdOrName: string, groupIdOrName: string | null): void {
    const server = this.server(serverIdOrName);
    const old = this.groupOf.get(server.uuid);
    if (old !== undefined) old.members.splice(old.members.indexOf(server.uuid), 1);
    this.groupOf.delete(server.uuid);
    if (groupIdOrName !== null) {
      const group = this.group(groupIdOrName);
      group.members.push(server.uuid);
      this.groupOf.set(server.uuid, group);
    }
    this.#touch(server);
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

  #place(input: ServerInput, createdMs: number): Server {
    const parsed = serverSchema.parse(input);
    const flavor = this.flavors.get(parsed.flavor);
    if (flavor === undefined) throw new ActError(`there is no flavor ${parsed.flavor}`);
    const host = this.host(parsed.host);
    const uuid = parsed.id ?? this.#random.uuid();
    if (this.servers.has(uuid) || this.deleted.has(uuid)) throw new ActError(`there is already a server ${uuid}`);
    const states = {
      ACTIVE: ['active', 1],
      PAUSED: ['paused', 3],
      SHUTOFF: ['stopped', 4],
      ERROR: ['error', 1],
    } as const;
    const [vmState, powerState] = states[parsed.status];
    const disk = parsed.bootFromVolume ? { ...flavor, diskGb: 0 } : flavor;
    const server: Server = {
      uuid,
      id: ++this.#ids.server,
      name: parsed.name,
      projectId: this.project(parsed.project).id,
      userId: this.admin.id,
      flavor,
      imageId: parsed.bootFromVolume ? null : this.imageId,
      reservationId: `r-${this.#random.word(8)}`,
      metadata: parsed.metadata,
      tags: parsed.tags,
      pinnedZone: parsed.pinnedZone,
      configDrive: parsed.configDrive,
      host: host.name,
      guestHost: host.name,
      vmState,
      taskState: null,
      powerState,
      locked: parsed.locked,
      lockedReason: parsed.lockedReason,
      fault:
        vmState === 'error' ? { code: 500, message: 'Unexpected hypervisor error', createdMs: createdMs + 8000 } : null,
      demand: demandSchema.parse(
        parsed.demand ?? { cpuCores: 0.3 * flavor.vcpus, memoryMb: 0.5 * flavor.memoryMb },
      ) as Server['demand'],
      createdMs,
      updatedMs: createdMs + 8000,
      launchedMs: createdMs + 8000,
      deletedMs: null,
      placements: [{ fromMs: createdMs, host: host.name }],
      views: new Map(),
    };
    this.servers.set(uuid, server);
    this.#order = null;
    this.#allocate(uuid, host, { vcpus: disk.vcpus, memoryMb: disk.memoryMb, diskGb: disk.diskGb });
    this.#action(server, 'create', null, createdMs);
    if (parsed.group !== undefined) this.setMembership(uuid, parsed.group);
    server.updatedMs = createdMs + 8000;
    return server;
  }

  createServer(nowMs: number, input: ServerInput): Server {
    this.advance(nowMs);
    const server = this.#place(input, this.#nowMs);
    server.updatedMs = this.#nowMs;
    server.launchedMs = this.#nowMs;
    return server;
  }

  /** POST /servers: placed at once, `BUILD` for a moment. Throws NovaRefusal when nothing can take it. */
  bootServer(
    nowMs: number,
    caller: Caller,
    wanted: {
      name: string;
      flavor: string;
      host: string | null;
      pinnedZone: string | null;
      group: string | null;
      metadata: Record<string, string>;
      tags: readonly string[];
    },
  ): Server {
    this.advance(nowMs);
    const flavor = this.flavors.get(wanted.flavor);
    if (flavor === undefined) throw new NovaRefusal(400, `Flavor ${wanted.flavor} could not be found.`);
    const fitting = [...this.hosts.values()].filter(
      (host) =>
        (wanted.host === null || host.name === wanted.host) &&
        (wanted.pinnedZone === null || this.zoneOf(host.name) === wanted.pinnedZone) &&
        this.isUp(host) &&
        !host.disabled &&
        this.fits(host, flavor),
    );
    fitting.sort((a, b) => capacity(b, 'memoryMb') - b.used.memoryMb - (capacity(a, 'memoryMb') - a.used.memoryMb));
    const host = fitting[0];
    if (host === undefined) throw new NovaRefusal(400, NO_HOST);
    const cores = Number(wanted.metadata.cpu ?? 0.3 * flavor.vcpus);
    const memoryMb = Number(wanted.metadata.mem ?? 0.5 * flavor.memoryMb);
    const project = [...this.projects.values()].find((each) => each.id === caller.projectId);
    const server = this.#place(
      {
        name: wanted.name,
        host: host.name,
        flavor: flavor.name,
        metadata: wanted.metadata,
        tags: [...wanted.tags],
        pinnedZone: wanted.pinnedZone,
        demand: { cpuCores: cores, memoryMb },
        ...(wanted.group === null ? {} : { group: wanted.group }),
        ...(project === undefined ? {} : { project: project.name }),
      },
      this.#nowMs,
    );
    server.vmState = 'building';
    server.taskState = 'spawning';
    server.powerState = 0;
    server.updatedMs = this.#nowMs;
    this.#later('build', server.uuid, this.#wait(this.timing.buildMs));
    return server;
  }

  /** Nova aborts a live migration of a server that is deleted meanwhile. */
  deleteServer(nowMs: number, idOrName: string): void {
    this.advance(nowMs);
    const server = this.server(idOrName);
    const migration = this.#current(server.uuid);
    if (migration !== undefined) {
      const held = this.allocations.get(migration.uuid);
      const arrived = migration.switched || migration.status === 'finished';
      this.#end(migration, arrived ? 'completed' : 'cancelled');
      // Nova forgets what the migration holds on the source: it stays taken until somebody deletes the allocation.
      if (!arrived && held !== undefined) this.#allocate(migration.uuid, this.host(held.host), held.resources);
    }
    this.#release(server.uuid);
    this.setMembership(server.uuid, null);
    server.deletedMs = this.#nowMs;
    server.placements.push({ fromMs: this.#nowMs, host: null });
    this.#action(server, 'delete', null, this.#nowMs);
    this.servers.delete(server.uuid);
    this.deleted.set(server.uuid, server);
    this.#order = null;
  }

  setServer(
    nowMs: number,
    idOrName: string,
    change: {
      name?: string | undefined;
      metadata?: Record<string, string> | undefined;
      tags?: readonly string[] | undefined;
      locked?: boolean | undefined;
      lockedReason?: string | null | undefined;
      pinnedZone?: string | null | undefined;
      vmState?: 'active' | 'paused' | 'stopped' | 'error' | undefined;
      taskState?: string | null | undefined;
      demand?: Server['demand'] | undefined;
    },
  ): void {
    this.advance(nowMs);
    const server = this.server(idOrName);
    if (change.name !== undefined) server.name = change.name;
    if (change.metadata !== undefined) server.metadata = change.metadata;
    if (change.tags !== undefined) server.tags = change.tags;
    if (change.locked !== undefined) {
      server.locked = change.locked;
      if (!change.locked) server.lockedReason = null;
    }
    if (change.lockedReason !== undefined) server.lockedReason = change.lockedReason;
    if (change.pinnedZone !== undefined) server.pinnedZone = change.pinnedZone;
    if (change.vmState !== undefined) {
      server.vmState = change.vmState;
      server.powerState = { active: 1, paused: 3, stopped: 4, error: 1 }[change.vmState];
    }
    if (change.taskState !== undefined) server.taskState = change.taskState;
    if (change.demand !== undefined) server.demand = change.demand;
    this.#touch(server);
  }

  /** `full`: a filler takes all that is left, so that nothing fits any more. */
  setHost(
    nowMs: number,
    name: string,
    change: {
      disabled?: boolean | undefined;
      disabledReason?: string | null | undefined;
      up?: boolean | undefined;
      forcedDown?: boolean | undefined;
      full?: boolean | undefined;
    },
  ): void {
    this.advance(nowMs);
    const host = this.host(name);
    if (change.disabled !== undefined) {
      host.disabled = change.disabled;
      if (!change.disabled) host.disabledReason = null;
    }
    if (change.disabledReason !== undefined) host.disabledReason = change.disabledReason;
    if (change.up !== undefined && change.up !== host.up) {
      host.up = change.up;
      host.lastSeenMs = this.#nowMs;
    }
    if (change.forcedDown !== undefined) host.forcedDown = change.forcedDown;
    if (change.full !== undefined) {
      const filler = `00000000-0000-4000-8000-${String(host.nodeId).padStart(12, '0')}`;
      this.#release(filler);
      if (change.full) {
        const left = (key: keyof Resources): number => Math.max(0, capacity(host, key) - host.used[key]);
        this.#allocate(filler, host, { vcpus: left('vcpus'), memoryMb: left('memoryMb'), diskGb: left('diskGb') });
      }
    }
    this.#forgetViews(name);
  }

  faultSeries(nowMs: number, fault: SeriesFault): number {
    this.advance(nowMs);
    const id = ++this.#ids.fault;
    this.seriesFaults.push({ ...fault, id, fromMs: this.#nowMs, untilMs: null });
    return id;
  }

  clearSeries(nowMs: number, id?: number): void {
    this.advance(nowMs);
    for (const fault of this.seriesFaults)
      if ((id === undefined || fault.id === id) && fault.untilMs === null) fault.untilMs = this.#nowMs;
  }

  /** Every server that is not deleted, newest first: the order of Nova's listings. */
  listing(): readonly Server[] {
    if (this.#order === null) {
      this.#order = [...this.servers.values()].sort((a, b) => b.createdMs - a.createdMs || b.id - a.id);
      this.#position = new Map(this.#order.map((server, index) => [server.uuid, index]));
    }
    return this.#order;
  }

  /** The place of a server in `listing()`; undefined when it is not there. */
  position(uuid: string): number | undefined {
    this.listing();
    return this.#position.get(uuid);
  }

  // ---------------------------------------------------------------- Placement

  #allocate(consumer: string, host: Host, resources: Resources): void {
    this.#release(consumer);
    this.allocations.set(consumer, { host: host.name, resources });
    host.consumers.set(consumer, resources);
    host.used = plus(host.used, resources, 1);
    host.generation++;
  }

  #release(consumer: string): void {
    const allocation = this.allocations.get(consumer);
    if (allocation === undefined) return;
    this.allocations.delete(consumer);
    const host = this.hosts.get(allocation.host);
    if (host === undefined) return;
    host.consumers.delete(consumer);
    host.used = plus(host.used, allocation.resources, -1);
    host.generation++;
  }

  /** DELETE /allocations/{consumer}: false when it holds nothing. */
  dropAllocation(nowMs: number, consumer: string): boolean {
    this.advance(nowMs);
    const held = this.allocations.has(consumer);
    this.#release(consumer);
    return held;
  }

  /** Whether the host's resource provider could take this much more. */
  fits(host: Host, wanted: Resources): boolean {
    return (['vcpus', 'memoryMb', 'diskGb'] as const).every(
      (key) =>
        wanted[key] === 0 || (wanted[key] <= host.total[key] && host.used[key] + wanted[key] <= capacity(host, key)),
    );
  }

  // ---------------------------------------------------------------- live migration

  /** The migration of this server that is under way. */
  #current(uuid: string): Migration | undefined {
    const last = this.migrationsByServer.get(uuid)?.at(-1);
    return last !== undefined && !ENDED.has(last.status) ? last : undefined;
  }

  /** POST /servers/{id}/action os-migrateLive. Throws NovaRefusal as Nova would. */
  liveMigrate(nowMs: number, caller: Caller, uuid: string, request: LiveMigrationRequest): void {
    this.advance(nowMs);
    const server = this.servers.get(uuid);
    if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
    const specs = server.flavor.extraSpecs;
    if (specs['hw:tpm_version'] !== undefined)
      throw new NovaRefusal(400, `Operation 'live-migration' not supported for vTPM-enabled instance (${uuid}).`);
    if (specs['hw:mem_encryption'] === 'true')
      throw new NovaRefusal(400, `Operation 'live-migration' not supported for SEV-enabled instance (${uuid}).`);
    if (server.vmState !== 'active' && server.vmState !== 'paused')
      throw conflict('os-migrateLive', uuid, 'vm_state', server.vmState);
    if (server.taskState !== null) throw conflict('os-migrateLive', uuid, 'task_state', server.taskState);
    if (request.host !== null) {
      const host = this.hosts.get(request.host);
      // Nova looks in the server's own cell: a host of another cell is as unknown as one that does not exist.
      if (host === undefined || host.cell !== this.host(server.host).cell)
        throw new NovaRefusal(400, `Compute host ${request.host} could not be found.`);
    }
    server.taskState = 'migrating';
    this.#touch(server);
    this.#action(server, 'live-migration', caller, this.#nowMs);
    const pending = { caller, requestedHost: request.host, forced: request.force, async: request.async };
    const fault = this.#serverFault(uuid, 'lost', 'conductor-delay');
    if (fault?.kind === 'lost') return;
    if (!request.async) {
      this.#conductAtOnce(server, pending);
      return;
    }
    const extra = fault?.kind === 'conductor-delay' ? (fault.seconds * 1000) / this.#speed : 0;
    this.#agenda.push({
      atMs: this.#nowMs + this.#wait(this.timing.conductorMs) + extra,
      seq: ++this.#seq,
      kind: 'conduct',
      migration: 0,
      server: uuid,
      request: pending,
    });
  }

  /** Before 2.34 the API waits for the conductor, and its refusal is the answer. */
  #conductAtOnce(server: Server, pending: Pending): void {
    this.#conduct(server.uuid, pending);
    const migration = this.#current(server.uuid);
    for (const kind of ['schedule', 'check'] as const) {
      const seq = migration === undefined ? undefined : this.#next.get(migration.id);
      if (migration === undefined || seq === undefined) break;
      this.#perform({ atMs: this.#nowMs, seq, kind, migration: migration.id, server: '' });
    }
    const last = this.migrationsByServer.get(server.uuid)?.at(-1);
    if (last?.status !== 'error') return;
    if (server.vmState === 'error')
      throw new NovaRefusal(
        500,
        'Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if ' +
          "possible.\n<class 'nova.exception_Remote.MigrationError_Remote'>",
      );
    const event = this.#actionOf(last)?.events.find((each) => each.event === conductorEvent(last));
    throw new NovaRefusal(400, event?.details ?? NO_HOST);
  }

  /** DELETE /servers/{id}/migrations/{mid}. `queuedToo`: from 2.65 on. Throws NovaRefusal as Nova would. */
  abort(nowMs: number, caller: Caller, uuid: string, migrationId: string, queuedToo: boolean): void {
    this.advance(nowMs);
    const server = this.servers.get(uuid);
    if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
    if (server.taskState === null)
      throw new NovaRefusal(409, `Instance ${uuid} is in an invalid state for 'abort live migration'`);
    if (server.taskState !== 'migrating') throw conflict('abort live migration', uuid, 'task_state', server.taskState);
    const migration = this.migrationsByServer.get(uuid)?.find((each) => String(each.id) === migrationId);
    if (migration === undefined) throw new NovaRefusal(404, `Migration ${migrationId} not found for instance ${uuid}`);
    const allowed = queuedToo ? ['running', 'queued', 'preparing'] : ['running'];
    if (!allowed.includes(migration.status))
      throw new NovaRefusal(
        400,
        `Migration ${migrationId} state of instance ${uuid} is ${migration.status}. ` +
          'Cannot abort live migration while the migration is in this state.',
      );
    this.#action(server, 'live_migration_cancel', caller, this.#nowMs);
    if (this.#serverFault(uuid, 'abort-ignored') !== undefined) return;
    this.#schedule('abort', migration.id, this.#wait(this.timing.abortMs));
  }

  /** POST /servers/{id}/migrations/{mid}/action force_complete: the copying ends at once. */
  forceComplete(nowMs: number, caller: Caller, uuid: string, migrationId: string): void {
    this.advance(nowMs);
    const server = this.servers.get(uuid);
    if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
    if (server.taskState === null)
      throw new NovaRefusal(409, `Instance ${uuid} is in an invalid state for 'force_complete'`);
    const migration = this.migrationsByServer.get(uuid)?.find((each) => String(each.id) === migrationId);
    if (migration === undefined) throw new NovaRefusal(400, `Migration ${migrationId} not found for instance ${uuid}`);
    if (migration.status !== 'running')
      throw new NovaRefusal(
        400,
        `Migration ${migrationId} state of instance ${uuid} is ${migration.status}. ` +
          'Cannot force complete while the migration is in this state.',
      );
    this.#action(server, 'live_migration_force_complete', caller, this.#nowMs);
    if (!migration.switched) this.#schedule('switchover', migration.id, 100 / this.#speed);
  }

  // ---------------------------------------------------------------- cold migration

  /** POST /servers/{id}/action migrate: to another host, of another cell too. Throws NovaRefusal as Nova would. */
  coldMigrate(nowMs: number, caller: Caller, uuid: string, requestedHost: string | null): void {
    this.advance(nowMs);
    const server = this.servers.get(uuid);
    if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
    if (server.vmState !== 'active' && server.vmState !== 'stopped')
      throw conflict('migrate', uuid, 'vm_state', server.vmState);
    if (server.taskState !== null) throw conflict('migrate', uuid, 'task_state', server.taskState);
    if (requestedHost !== null && !this.hosts.has(requestedHost))
      throw new NovaRefusal(400, `Compute host ${requestedHost} could not be found.`);
    if (requestedHost === server.host)
      throw new NovaRefusal(400, 'Cannot migrate to the host where the server exists.');
    server.taskState = 'resize_prep';
    this.#touch(server);
    this.#action(server, 'migrate', caller, this.#nowMs);
    this.#agenda.push({
      atMs: this.#nowMs + this.#wait(this.timing.conductorMs),
      seq: ++this.#seq,
      kind: 'cold-conduct',
      migration: 0,
      server: uuid,
      request: { caller, requestedHost, forced: false, async: true },
    });
  }

  /** Ends a cold migration that waits in VERIFY_RESIZE, one way or the other. Throws NovaRefusal as Nova would. */
  finishCold(nowMs: number, caller: Caller, uuid: string, action: 'confirmResize' | 'revertResize'): void {
    this.advance(nowMs);
    const server = this.servers.get(uuid);
    if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
    if (server.vmState !== 'resized') throw conflict(action, uuid, 'vm_state', server.vmState);
    if (server.taskState !== null) throw conflict(action, uuid, 'task_state', server.taskState);
    const migration = this.#current(uuid);
    if (migration === undefined) throw new NovaRefusal(400, 'Instance has not been resized.');
    this.#action(server, action, caller, this.#nowMs);
    if (action === 'revertResize') {
      server.taskState = 'resize_reverting';
      this.#touch(server);
    }
    this.#status(migration, action === 'confirmResize' ? 'confirming' : 'reverting');
    this.#schedule(action === 'confirmResize' ? 'confirm' : 'revert', migration.id, this.#wait(this.timing.coldMs));
  }

  #coldConduct(uuid: string, request: Pending): void {
    const server = this.servers.get(uuid);
    if (server === undefined) return;
    const migration = this.#record(server, request, 'migration', 'pre-migrating');
    this.#event(migration, 'conductor_migrate_server', CONDUCTOR);
    this.#event(migration, 'cold_migrate', CONDUCTOR);
    const held = this.allocations.get(uuid)?.resources ?? this.#held(server);
    this.#release(uuid);
    this.#allocate(migration.uuid, this.host(server.host), held);
    this.#schedule('cold-schedule', migration.id, this.#wait(this.timing.schedulerMs));
  }

  #cold(migration: Migration, server: Server, kind: StepKind): void {
    const { timing } = this;
    const next = (then: StepKind): void => this.#schedule(then, migration.id, this.#wait(timing.coldMs));
    const source = this.host(migration.source);
    switch (kind) {
      case 'cold-schedule': {
        const verdict = this.#verdict(server, migration.requestedHost, false, true);
        if (typeof verdict === 'string') {
          this.#finish(migration, 'cold_migrate', 'No valid host was found. No valid host found for cold migrate');
          this.#refuse(migration, server, 'No valid host was found. No valid host found for cold migrate');
          return;
        }
        this.#allocate(server.uuid, verdict, this.#held(server));
        migration.chosen = verdict.name;
        migration.dest = verdict.name;
        migration.destNode = verdict.hypervisorHostname;
        this.#event(migration, 'compute_prep_resize', verdict.name);
        next('cold-move');
        return;
      }
      case 'cold-move':
        this.#finish(migration, 'compute_prep_resize');
        this.#event(migration, 'compute_resize_instance', source.name);
        server.taskState = 'resize_migrating';
        this.#status(migration, 'migrating');
        this.#touch(server);
        next('cold-moved');
        return;
      case 'cold-moved':
        this.#finish(migration, 'compute_resize_instance');
        server.taskState = 'resize_migrated';
        this.#status(migration, 'post-migrating');
        // Within a cell the host changes here; across cells only with the last step.
        if (this.host(migration.dest ?? '').cell === source.cell) server.host = migration.dest ?? server.host;
        this.#event(migration, 'compute_finish_resize', migration.dest ?? '');
        this.#touch(server);
        next('cold-finish');
        return;
      case 'cold-finish':
        server.taskState = 'resize_finish';
        // Across cells each cell has its row, and Nova lists either: the source's stays at post-migrating.
        if (this.host(migration.dest ?? '').cell === source.cell || this.#random.next() < 0.5)
          this.#status(migration, 'finished');
        this.#touch(server);
        next('cold-verify');
        return;
      case 'cold-verify':
        this.#finish(migration, 'compute_finish_resize');
        this.#finish(migration, 'cold_migrate');
        this.#finish(migration, 'conductor_migrate_server');
        this.#settleOn(server, migration.dest ?? server.host);
        server.vmState = 'resized';
        server.taskState = null;
        this.#touch(server);
        return;
      case 'confirm':
        server.vmState = 'active';
        this.#touch(server);
        this.#end(migration, 'confirmed');
        return;
      case 'revert':
        this.#giveBack(migration, server);
        this.#settleOn(server, migration.source);
        this.#end(migration, 'reverted');
        this.#later('reverted', server.uuid, this.#wait(timing.coldMs));
        return;
    }
  }

  #settleOn(server: Server, host: string): void {
    server.host = host;
    if (server.guestHost !== host) server.placements.push({ fromMs: this.#nowMs, host });
    server.guestHost = host;
  }

  /** The setting for this server if it is one of these kinds; one of `times` is used up. */
  #serverFault<K extends ServerFaultSetting['kind']>(
    uuid: string,
    ...kinds: K[]
  ): Extract<ServerFaultSetting, { kind: K }> | undefined {
    const fault = this.serverFaults.get(uuid);
    if (fault === undefined || !(kinds as string[]).includes(fault.kind)) return undefined;
    if (fault.times !== undefined) {
      if (fault.times <= 1) this.serverFaults.delete(uuid);
      else this.serverFaults.set(uuid, { ...fault, times: fault.times - 1 });
    }
    return fault as Extract<ServerFaultSetting, { kind: K }>;
  }

  #hostFault<K extends HostFaultSetting['kind']>(
    host: string,
    ...kinds: K[]
  ): Extract<HostFaultSetting, { kind: K }> | undefined {
    const fault = this.hostFaults.get(host);
    if (fault === undefined || !(kinds as string[]).includes(fault.kind)) return undefined;
    if (fault.times !== undefined) {
      if (fault.times <= 1) this.hostFaults.delete(host);
      else this.hostFaults.set(host, { ...fault, times: fault.times - 1 });
    }
    return fault as Extract<HostFaultSetting, { kind: K }>;
  }

  #held(server: Server): Resources {
    const disk = server.imageId === null ? 0 : server.flavor.diskGb;
    return { vcpus: server.flavor.vcpus, memoryMb: server.flavor.memoryMb, diskGb: disk };
  }

  /** The scheduler's answer: the host it chose, or the sentence with which it gives up. */
  #verdict(server: Server, requested: string | null, forced: boolean, crossCell = false): Host | string {
    const source = this.host(server.host);
    if (!this.isUp(source)) return `Compute service of ${source.name} is unavailable at this time.`;
    const wanted = this.#held(server);
    if (forced && requested !== null) {
      const dest = this.host(requested);
      if (dest === source) return `Unable to migrate instance (${server.uuid}) to current host (${source.name}).`;
      if (!this.isUp(dest)) return `Compute service of ${dest.name} is unavailable at this time.`;
      if (!this.fits(dest, wanted))
        return (
          `No valid host was found. Unable to move instance ${server.uuid} to host ${dest.name}. ` +
          'There is not enough capacity on the host for the instance.'
        );
      return dest;
    }
    const candidates: Host[] = [];
    let room = false;
    for (const host of requested === null ? this.hosts.values() : [this.host(requested)]) {
      if (!crossCell && host.cell !== source.cell) continue;
      // Placement's part: capacity, disabled services and availability zones.
      if (host.disabled || !this.fits(host, wanted)) continue;
      if (server.pinnedZone !== null && this.zoneOf(host.name) !== server.pinnedZone) continue;
      room = true;
      // The filters' part.
      if (host === source || !this.isUp(host) || !this.#groupAllows(server, host, this.scenario.schedulers === 1))
        continue;
      // The conductor's own comparison: a host that fails it is skipped, and with it the last one may be gone.
      if (host.hypervisorType !== source.hypervisorType || host.hypervisorVersion < source.hypervisorVersion) continue;
      candidates.push(host);
    }
    // Nova's RAM weigher: most free memory first.
    candidates.sort((a, b) => capacity(b, 'memoryMb') - b.used.memoryMb - (capacity(a, 'memoryMb') - a.used.memoryMb));
    return candidates[0] ?? (room ? NO_HOST : NO_ROOM);
  }

  /**
   * The scheduler's group filters. `arrivals`: it also knows of the moves under way, because it chose them itself; of
   * several schedulers none knows what the others chose.
   */
  #groupAllows(server: Server, dest: Host, arrivals: boolean): boolean {
    const group = this.groupOf.get(server.uuid);
    if (group === undefined) return true;
    const others = group.members.filter((member) => member !== server.uuid);
    if (group.policy === 'affinity') return others.some((member) => this.servers.get(member)?.host === dest.name);
    if (group.policy !== 'anti-affinity') return true;
    const there = others.filter((member) => {
      if (this.servers.get(member)?.host === dest.name) return true;
      return arrivals && this.#current(member)?.chosen === dest.name;
    });
    return there.length < (group.maxServerPerHost ?? 1);
  }

  /** The compute's own look at the group, which counts every move to or from it (nova/compute/manager.py). */
  #groupViolated(server: Server, dest: Host): string | null {
    const group = this.groupOf.get(server.uuid);
    const others = group?.members.filter((member) => member !== server.uuid) ?? [];
    if (group?.policy === 'affinity') {
      const hosts = others.flatMap((member) => this.servers.get(member)?.host ?? []);
      return hosts.length > 0 && !hosts.includes(dest.name) ? 'Affinity' : null;
    }
    if (group?.policy !== 'anti-affinity') return null;
    const there = others.filter((member) => {
      const move = this.#current(member);
      return (
        this.servers.get(member)?.host === dest.name ||
        (move !== undefined && (move.dest === dest.name || move.source === dest.name))
      );
    });
    return there.length < (group.maxServerPerHost ?? 1) ? null : 'Anti-affinity';
  }

  /** Whether the destination's hypervisor refuses, so that the conductor looks for another host. */
  #refuses(server: Server, dest: Host): boolean {
    return (
      this.#serverFault(server.uuid, 'pre-check') !== undefined ||
      this.#hostFault(dest.name, 'refuse') !== undefined ||
      !this.isUp(dest)
    );
  }

  #perform(step: Step): void {
    if (step.kind === 'conduct') {
      if (step.request !== undefined) this.#conduct(step.server, step.request);
      return;
    }
    if (step.kind === 'cold-conduct') {
      if (step.request !== undefined) this.#coldConduct(step.server, step.request);
      return;
    }
    if (step.kind === 'reverted') {
      const server = this.servers.get(step.server);
      if (server === undefined) return;
      server.vmState = 'active';
      server.taskState = null;
      this.#touch(server);
      return;
    }
    if (step.kind === 'build') {
      const server = this.servers.get(step.server);
      if (server?.vmState !== 'building') return;
      server.vmState = 'active';
      server.taskState = null;
      server.powerState = 1;
      server.launchedMs = this.#nowMs;
      this.#touch(server);
      return;
    }
    if (step.kind === 'trip') {
      const server = this.servers.get(step.server);
      if (server === undefined) return;
      server.vmState = 'error';
      server.fault = { code: 500, message: 'Unexpected error after switch-over', createdMs: this.#nowMs };
      this.#touch(server);
      return;
    }
    const migration = this.migrations[step.migration - 1];
    if (migration === undefined || ENDED.has(migration.status)) return;
    if (step.kind === 'abort') {
      this.#carryOutAbort(migration);
      return;
    }
    // A step that was superseded (by an abort, say) is void.
    if (this.#next.get(migration.id) !== step.seq) return;
    const server = this.servers.get(migration.serverUuid);
    if (server === undefined) return;
    const { timing } = this;
    switch (step.kind) {
      case 'schedule': {
        const verdict = this.#verdict(server, migration.requestedHost, migration.forced);
        if (typeof verdict === 'string') {
          this.#refuse(migration, server, verdict);
          return;
        }
        this.#allocate(server.uuid, verdict, this.#held(server));
        migration.chosen = verdict.name;
        const sign = this.#event(migration, 'compute_check_can_live_migrate_destination', verdict.name);
        if (sign !== undefined) this.#event(migration, 'compute_check_can_live_migrate_source', migration.source);
        this.#schedule('check', migration.id, this.#wait(timing.checkMs));
        return;
      }
      case 'check': {
        const dest = this.host(migration.chosen ?? migration.source);
        const violated = this.#groupViolated(server, dest);
        if (violated !== null) {
          this.#explode(migration, server, `${violated} instance group policy was violated`);
          return;
        }
        const refused = this.#refuses(server, dest);
        this.#finish(migration, 'compute_check_can_live_migrate_source');
        if (refused) {
          this.#finish(migration, 'compute_check_can_live_migrate_destination', 'Migration pre-check error');
          this.#refuse(migration, server, NO_HOST);
          return;
        }
        this.#finish(migration, 'compute_check_can_live_migrate_destination');
        migration.dest = dest.name;
        migration.destNode = dest.hypervisorHostname;
        migration.updatedMs = this.#nowMs;
        this.#finish(migration, conductorEvent(migration));
        this.#event(migration, 'compute_live_migration', migration.source);
        this.#schedule('queue', migration.id, this.#wait(timing.queuedMs));
        return;
      }
      case 'queue': {
        this.#status(migration, 'queued');
        this.#finish(migration, 'compute_live_migration');
        this.host(migration.source).waiting.push(migration.id);
        this.#admit(migration.source);
        return;
      }
      case 'prepare': {
        this.#status(migration, 'preparing');
        this.#event(migration, 'compute_pre_live_migration', migration.dest ?? '');
        this.#schedule('run', migration.id, this.#wait(timing.preLiveMigrationMs));
        return;
      }
      case 'run': {
        const dest = this.host(migration.dest ?? migration.source);
        if (!this.isUp(dest)) {
          this.#finish(migration, 'compute_pre_live_migration', 'Timed out waiting for a reply to message ID');
          this.#rollBack(migration, 'error');
          return;
        }
        this.#finish(migration, 'compute_pre_live_migration');
        if (migration.abortRequested) {
          this.#rollBack(migration, 'cancelled');
          return;
        }
        this.#status(migration, 'running');
        this.#copy(migration, server, dest);
        return;
      }
      case 'break': {
        this.#rollBack(migration, step.status ?? 'failed');
        return;
      }
      case 'switchover': {
        migration.switched = true;
        server.guestHost = migration.dest ?? server.host;
        server.placements.push({ fromMs: this.#nowMs, host: server.guestHost });
        this.#event(migration, 'compute_post_live_migration_at_destination', server.guestHost);
        this.#schedule('arrive', migration.id, this.#wait(timing.postMs));
        return;
      }
      case 'arrive': {
        const fault = this.#serverFault(server.uuid, 'error-after-switchover');
        server.host = server.guestHost;
        server.taskState = null;
        if (fault !== undefined) {
          this.#finish(migration, 'compute_post_live_migration_at_destination', 'Unexpected error after switch-over');
          this.#touch(server);
          this.#end(migration, 'error');
          if (fault.vmError) this.#later('trip', server.uuid, this.#wait(timing.failedMs));
          return;
        }
        this.#touch(server);
        this.#finish(migration, 'compute_post_live_migration_at_destination');
        this.#schedule('complete', migration.id, this.#wait(timing.completedMs));
        return;
      }
      case 'complete': {
        this.#end(migration, 'completed');
        return;
      }
      case 'rollback': {
        this.#giveBack(migration, server);
        server.taskState = null;
        this.#touch(server);
        this.#schedule('settle', migration.id, this.#wait(timing.failedMs), step.status ?? 'failed');
        return;
      }
      case 'settle': {
        this.#end(migration, step.status ?? 'failed');
        return;
      }
      default:
        this.#cold(migration, server, step.kind);
        return;
    }
  }

  #record(server: Server, request: Pending, type: Migration['type'], status: MigrationStatus): Migration {
    const source = this.host(server.host);
    const id = ++this.#ids.migration;
    const migration: Migration = {
      id,
      uuid: this.#random.uuid(),
      serverUuid: server.uuid,
      type,
      source: source.name,
      sourceNode: source.hypervisorHostname,
      dest: request.forced ? request.requestedHost : null,
      destNode: null,
      chosen: null,
      status,
      requestedHost: request.requestedHost,
      forced: request.forced,
      synchronous: !request.async,
      requestId: request.caller.requestId,
      userId: request.caller.userId,
      projectId: request.caller.projectId,
      createdMs: this.#nowMs,
      updatedMs: null,
      history: [{ status, atMs: this.#nowMs }],
      copyFromMs: null,
      copyMs: 0,
      abortRequested: false,
      switched: false,
    };
    this.migrations.push(migration);
    const list = this.migrationsByServer.get(server.uuid);
    if (list === undefined) this.migrationsByServer.set(server.uuid, [migration]);
    else list.push(migration);
    return migration;
  }

  #conduct(uuid: string, request: Pending): void {
    const server = this.servers.get(uuid);
    if (server === undefined) return;
    const source = this.host(server.host);
    const migration = this.#record(server, request, 'live-migration', 'accepted');
    this.#event(migration, conductorEvent(migration), CONDUCTOR);
    if (!this.isUp(source)) {
      this.#refuse(migration, server, `Compute service of ${source.name} is unavailable at this time.`);
      return;
    }
    // From here on the source's share is held by the migration, and the server's own name is free for the destination.
    const held = this.allocations.get(uuid)?.resources ?? this.#held(server);
    this.#release(uuid);
    this.#allocate(migration.uuid, source, held);
    this.#schedule('schedule', migration.id, this.#wait(this.timing.schedulerMs));
  }

  /** Starts the next of a source's waiting migrations if there is room. */
  #admit(source: string): void {
    const host = this.host(source);
    while (host.running.size < this.scenario.maxConcurrentLiveMigrations) {
      const id = host.waiting.shift();
      if (id === undefined) return;
      host.running.add(id);
      this.#schedule('prepare', id, this.#wait(this.timing.preparingMs));
    }
  }

  #copy(migration: Migration, server: Server, dest: Host): void {
    const { timing } = this;
    const fault = this.#serverFault(server.uuid, 'fail', 'error', 'hang', 'slow');
    const inbound = this.#hostFault(dest.name, 'fail-inbound', 'slow-inbound');
    const copied = Math.max(timing.copyFloorMs, (server.flavor.memoryMb / timing.copyMbPerSecond) * 1000);
    let afterMs = fault?.kind === 'slow' ? (fault.seconds * 1000) / this.#speed : this.#wait(copied);
    if (inbound?.kind === 'slow-inbound') afterMs *= inbound.factor;
    migration.copyFromMs = this.#nowMs;
    migration.copyMs = fault?.kind === 'hang' ? Number.POSITIVE_INFINITY : afterMs;
    if (fault?.kind === 'hang') {
      this.#next.delete(migration.id);
      return;
    }
    if (fault?.kind === 'fail' || fault?.kind === 'error' || inbound?.kind === 'fail-inbound') {
      this.#schedule('break', migration.id, afterMs / 2, fault?.kind === 'error' ? 'error' : 'failed');
      return;
    }
    this.#schedule('switchover', migration.id, afterMs);
  }

  #carryOutAbort(migration: Migration): void {
    const server = this.servers.get(migration.serverUuid);
    // Too late: the guest already runs on the destination, or a roll-back is under way.
    if (server === undefined || migration.switched || migration.abortRequested) return;
    if (migration.status === 'queued') {
      const host = this.host(migration.source);
      const place = host.waiting.indexOf(migration.id);
      if (place >= 0) {
        host.waiting.splice(place, 1);
        this.#giveBack(migration, server);
        server.taskState = null;
        this.#touch(server);
        this.#end(migration, 'cancelled');
        return;
      }
    }
    migration.abortRequested = true;
    if (migration.status === 'running') this.#rollBack(migration, 'cancelled');
  }

  #rollBack(migration: Migration, status: MigrationStatus): void {
    migration.abortRequested = true;
    this.#schedule('rollback', migration.id, this.#wait(this.timing.rollbackMs), status);
  }

  /** The conductor gives up: the server is free again and stays, the migration ends in `error`. */
  #refuse(migration: Migration, server: Server, details: string): void {
    this.#giveBack(migration, server);
    server.taskState = null;
    this.#touch(server);
    this.#finish(migration, conductorEvent(migration), details);
    const action = this.#actionOf(migration);
    if (action !== undefined) action.message = 'Error';
    this.#end(migration, 'error');
  }

  /** What the conductor did not expect: the server itself goes to ERROR, though its guest runs on (its own Nova bug). */
  #explode(migration: Migration, server: Server, details: string): void {
    this.#finish(migration, 'compute_check_can_live_migrate_destination', details);
    this.#refuse(migration, server, `Migration error: ${details}`);
    server.vmState = 'error';
    server.fault = { code: 500, message: details, createdMs: this.#nowMs };
    this.#touch(server);
  }

  /** The destination's claim goes, and the source is held by the server itself again. */
  #giveBack(migration: Migration, server: Server): void {
    const held = this.allocations.get(migration.uuid);
    if (held === undefined) return;
    this.#release(migration.uuid);
    this.#release(server.uuid);
    this.#allocate(server.uuid, this.host(migration.source), held.resources);
  }

  #end(migration: Migration, status: MigrationStatus): void {
    this.#release(migration.uuid);
    this.#next.delete(migration.id);
    this.#status(migration, status);
    const host = this.host(migration.source);
    host.running.delete(migration.id);
    const place = host.waiting.indexOf(migration.id);
    if (place >= 0) host.waiting.splice(place, 1);
    this.#admit(migration.source);
  }

  #status(migration: Migration, status: MigrationStatus): void {
    migration.status = status;
    migration.updatedMs = this.#nowMs;
    migration.history.push({ status, atMs: this.#nowMs });
  }

  /** Bytes of the guest's memory: all, copied, left; null before the copying began. */
  progress(migration: Migration): { total: number; processed: number; remaining: number } | null {
    if (migration.copyFromMs === null) return null;
    const server = this.servers.get(migration.serverUuid) ?? this.deleted.get(migration.serverUuid);
    const total = (server?.flavor.memoryMb ?? 0) * 1024 * 1024;
    const hangs = migration.copyMs === Number.POSITIVE_INFINITY;
    const share = hangs ? 0.5 : Math.min(1, Math.max(0, (this.#nowMs - migration.copyFromMs) / migration.copyMs));
    const processed = Math.round(total * share);
    return { total, processed, remaining: total - processed };
  }

  // ---------------------------------------------------------------- actions

  #action(server: Server, action: string, caller: Caller | null, atMs: number): void {
    const entry: Action = {
      requestId: caller?.requestId ?? `req-${this.#random.uuid()}`,
      serverUuid: server.uuid,
      action,
      userId: caller?.userId ?? this.admin.id,
      projectId: caller?.projectId ?? server.projectId,
      startMs: atMs,
      updatedMs: atMs,
      message: null,
      events: [],
    };
    const list = this.actions.get(server.uuid);
    if (list === undefined) this.actions.set(server.uuid, [entry]);
    else list.push(entry);
  }

  #actionOf(migration: Migration): Action | undefined {
    return this.actions.get(migration.serverUuid)?.findLast((action) => action.requestId === migration.requestId);
  }

  #event(migration: Migration, event: string, host: string): ActionEvent | undefined {
    const action = this.#actionOf(migration);
    if (action === undefined) return undefined;
    const entry: ActionEvent = {
      event,
      host,
      startMs: this.#nowMs,
      finishMs: null,
      result: null,
      details: null,
      traceback: null,
    };
    action.events.push(entry);
    action.updatedMs = this.#nowMs;
    return entry;
  }

  #finish(migration: Migration, event: string, error?: string): void {
    const action = this.#actionOf(migration);
    const entry = action?.events.findLast((each) => each.event === event && each.finishMs === null);
    if (action === undefined || entry === undefined) return;
    entry.finishMs = this.#nowMs;
    entry.result = error === undefined ? 'Success' : 'Error';
    if (error !== undefined) {
      entry.details = error;
      entry.traceback = `  File "/usr/lib/python3/dist-packages/nova/conductor/manager.py"\n\n    ${error}\n`;
    }
    action.updatedMs = this.#nowMs;
  }

  #touch(server: Server): void {
    server.updatedMs = this.#nowMs;
    server.views.clear();
  }

  #forgetViews(host: string): void {
    for (const server of this.servers.values()) if (server.host === host) server.views.clear();
  }
}

function conductorEvent(migration: Migration): string {
  return migration.synchronous || migration.type === 'migration'
    ? 'conductor_migrate_server'
    : 'conductor_live_migrate_instance';
}

function conflict(action: string, uuid: string, attribute: string, state: string): NovaRefusal {
  return new NovaRefusal(409, `Cannot '${action}' instance ${uuid} while it is in ${attribute} ${state}`);
}

function plus(a: Resources, b: Resources, sign: 1 | -1): Resources {
  return {
    vcpus: a.vcpus + sign * b.vcpus,
    memoryMb: a.memoryMb + sign * b.memoryMb,
    diskGb: a.diskGb + sign * b.diskGb,
  };
}

/** (total - reserved) x allocation_ratio, as Placement computes it. */
export function capacity(host: Host, key: keyof Resources): number {
  return Math.floor((host.total[key] - host.reserved[key]) * host.ratio[key]);
}
