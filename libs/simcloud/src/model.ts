/** The state of the simulated cloud. Times are milliseconds since 1970; sizes say their unit. */

import type { FixedFacts } from './fixedFacts.ts';

export interface Resources {
  readonly vcpus: number;
  readonly memoryMb: number;
  readonly diskGb: number;
  /** CPUs of its own: PCPU. Absent: none. */
  readonly pcpus?: number;
  /** NUMA cells that a consumer holds. Absent: none. */
  readonly cells?: readonly HeldCell[];
}

/** A NUMA cell of a host: `[compute] cpu_dedicated_set` and `cpu_shared_set` in it, and huge pages by their size in KiB. */
interface HostCell {
  readonly id: number;
  readonly dedicatedCpus: number;
  readonly sharedCpus: number;
  readonly memoryMb: number;
  readonly pages: Readonly<Record<string, number>>;
}

/** The amounts that a NUMA cell of a server holds of the host's cell `id`. */
export interface HeldCell {
  readonly id: number;
  readonly pinned: number;
  readonly shared: number;
  readonly memoryMb: number;
  /** Null: memory in ordinary pages. */
  readonly pageKb: number | null;
}

export interface Flavor extends Resources {
  readonly id: string;
  readonly name: string;
  readonly extraSpecs: Readonly<Record<string, string>>;
}

export interface Host {
  /** The Nova service host: what os-migrateLive takes. */
  readonly name: string;
  readonly hypervisorHostname: string;
  /** Compute node uuid: hypervisor id from 2.53, and the resource provider's uuid. */
  readonly nodeUuid: string;
  readonly nodeId: number;
  readonly serviceUuid: string;
  readonly serviceId: number;
  readonly cell: string;
  readonly hypervisorType: string;
  hypervisorVersion: number;
  readonly ip: string;
  readonly total: Resources;
  readonly reserved: Resources;
  readonly ratio: { readonly vcpus: number; readonly memoryMb: number; readonly diskGb: number };
  readonly traits: readonly string[];
  readonly cells: readonly HostCell[];
  disabled: boolean;
  disabledReason: string | null;
  /** False when nova-compute stopped reporting. */
  up: boolean;
  /** Its nova-compute died and has not been started again. */
  crashed: boolean;
  forcedDown: boolean;
  /** When nova-compute last reported, while it is down. */
  lastSeenMs: number;
  /** The times in which it was down: nothing on it was scraped. The last one has no end while it is down. */
  readonly outages: { readonly fromMs: number; untilMs: number | null }[];
  /** Consumers of this host's resource provider: instance uuids and migration uuids. */
  readonly consumers: Map<string, Resources>;
  used: Resources;
  generation: number;
  /** Live migrations that leave this host: one runs, the others wait in order. */
  running: Set<number>;
  readonly waiting: number[];
}

/** The load of a VM on its host, in cores and MB; `curve` makes it vary. */
interface Demand {
  readonly cpuCores: number;
  readonly memoryMb: number;
  readonly curve?: DemandCurve;
}

/** cores(t) = cpuCores x (1 + amplitude x sin(2 pi (t / periodSeconds + phase))), never below 0. Cloud seconds. */
interface DemandCurve {
  readonly amplitude: number;
  readonly periodSeconds: number;
  readonly phase: number;
}

interface Placement {
  readonly fromMs: number;
  readonly host: string | null;
}

interface ServerFault {
  readonly code: number;
  readonly message: string;
  readonly createdMs: number;
}

/** A port of Neutron's. */
export interface Port {
  readonly id: string;
  readonly mac: string;
  readonly vnicType: string;
  /** Guaranteed outbound bandwidth, which the port requests of Placement; null: none. */
  readonly minKbps: number | null;
  readonly address: string | null;
}

export interface Server {
  readonly uuid: string;
  readonly id: number;
  name: string;
  readonly projectId: string;
  readonly userId: string;
  flavor: Flavor;
  readonly imageId: string | null;
  readonly reservationId: string;
  metadata: Readonly<Record<string, string>>;
  tags: readonly string[];
  pinnedZone: string | null;
  readonly fixed: FixedFacts;
  readonly ports: readonly Port[];
  /** Nova's opinion of where the server is; empty once it is shelved and offloaded. */
  host: string;
  /** Traits of the CPUs that the guest has seen since it was started. */
  readonly cpuTraits: readonly string[];
  /** The host on which the guest really runs: changes at switch-over, a moment before `host`. */
  guestHost: string;
  vmState:
    | 'active'
    | 'paused'
    | 'stopped'
    | 'error'
    | 'rescued'
    | 'shelved'
    | 'shelved_offloaded'
    | 'resized'
    | 'building';
  /** Its vmState before the cold migration or resize that is under way. */
  oldVmState: 'active' | 'stopped';
  taskState: string | null;
  powerState: number;
  locked: boolean;
  lockedReason: string | null;
  fault: ServerFault | null;
  demand: Demand;
  readonly createdMs: number;
  updatedMs: number;
  launchedMs: number;
  deletedMs: number | null;
  /** The former hosts of the guest, oldest first: the load series are computed from them. */
  readonly placements: Placement[];
  /** Its loads before each change, oldest first. */
  readonly formerLoads: { readonly untilMs: number; readonly demand: Demand; readonly running: boolean }[];
  readonly views: Map<string, string>;
}

export interface Group {
  readonly uuid: string;
  readonly id: number;
  name: string;
  policy: 'affinity' | 'anti-affinity' | 'soft-affinity' | 'soft-anti-affinity';
  maxServerPerHost: number | null;
  readonly projectId: string;
  readonly userId: string;
  readonly members: string[];
}

export interface Aggregate {
  readonly uuid: string;
  readonly id: number;
  name: string;
  availabilityZone: string | null;
  hosts: string[];
  metadata: Record<string, string>;
  readonly createdMs: number;
  updatedMs: number | null;
}

export type MigrationStatus =
  | 'accepted'
  | 'queued'
  | 'preparing'
  | 'running'
  | 'completed'
  | 'failed'
  | 'error'
  | 'cancelled'
  | 'pre-migrating'
  | 'migrating'
  | 'post-migrating'
  | 'finished'
  | 'confirming'
  | 'confirmed'
  | 'reverting'
  | 'reverted';

/** Statuses that `GET /servers/{id}/migrations` shows (nova/api/openstack/compute/server_migrations.py). */
export const IN_PROGRESS: ReadonlySet<string> = new Set(['queued', 'preparing', 'running', 'post-migrating']);
/** Statuses after which nothing more happens to a migration. */
export const ENDED: ReadonlySet<string> = new Set([
  'completed',
  'failed',
  'error',
  'cancelled',
  'confirmed',
  'reverted',
]);

/** A migration as the database of one cell has it. Nova gives ids per cell; the uuid is the same in all of them. */
interface MigrationRow {
  readonly cell: string;
  readonly id: number;
  status: MigrationStatus;
  updatedMs: number | null;
}

export interface Migration {
  /** The simulation's own number. What Nova shows is the id of a row. */
  readonly id: number;
  readonly uuid: string;
  readonly serverUuid: string;
  readonly type: 'live-migration' | 'migration' | 'resize';
  /** One, or between cells one in each. */
  rows: MigrationRow[];
  /** The server's flavor before and after. */
  readonly oldFlavor: Flavor;
  readonly newFlavor: Flavor;
  readonly source: string;
  readonly sourceNode: string;
  dest: string | null;
  destNode: string | null;
  /** The host that the scheduler chose and claimed; `dest` follows once the computes have agreed. */
  chosen: string | null;
  status: MigrationStatus;
  /** The host named in the request, if any; `forced` when the scheduler is by-passed. */
  readonly requestedHost: string | null;
  readonly forced: boolean;
  /** Asked for before 2.34: the API waited for the pre-checks. */
  readonly synchronous: boolean;
  readonly requestId: string;
  readonly userId: string;
  readonly projectId: string;
  readonly createdMs: number;
  /** Every status with the moment it was set: the cloud's own record. */
  readonly history: { readonly status: MigrationStatus; readonly atMs: number }[];
  /** When the copying began and how long it takes; null before `running`, Infinity while it hangs. */
  copyFromMs: number | null;
  copyMs: number;
  /** Its row is gone from Nova's database. */
  lost: boolean;
  abortRequested: boolean;
  /** The guest runs on the destination: no way back. */
  switched: boolean;
  /** The request that confirms or reverts it. */
  endRequestId: string | null;
  /** When its server was deleted while it changed cells; null: it was not. */
  orphanedMs: number | null;
}

export interface ActionEvent {
  readonly event: string;
  readonly host: string;
  readonly startMs: number;
  finishMs: number | null;
  result: 'Success' | 'Error' | null;
  details: string | null;
  /** Between cells each cell has its own record of an action; null: an event that both have. */
  cell: string | null;
  traceback: string | null;
}

export interface Action {
  readonly requestId: string;
  readonly serverUuid: string;
  readonly action: string;
  readonly userId: string | null;
  readonly projectId: string | null;
  readonly startMs: number;
  updatedMs: number;
  message: string | null;
  readonly events: ActionEvent[];
}

export interface Project {
  readonly id: string;
  readonly name: string;
}

export interface User {
  readonly id: string;
  readonly name: string;
  readonly password: string;
  /** `admin` may do everything, `kronos_reader` may read everything, others see nothing of all projects. */
  readonly roles: readonly string[];
  readonly projectId: string;
}

export interface ApplicationCredential {
  readonly id: string;
  readonly name: string;
  readonly secret: string;
  readonly userId: string;
}

/**
 * Durations of Nova's own steps, in cloud milliseconds (divided by the speed). The order and the proportions were
 * measured on Nova 31. `jitter` 0.2 means each step takes 80 to 120 % of its time.
 */
export interface Timing {
  /** POST answered -> the row appears in os-migrations (`accepted`). */
  readonly conductorMs: number;
  /** accepted -> the scheduler has answered and the claim is made (dest_compute still null). */
  readonly schedulerMs: number;
  /** -> both computes have checked the move (dest_compute set). */
  readonly checkMs: number;
  /** dest_compute set -> `queued`. */
  readonly queuedMs: number;
  /** `queued` -> `preparing`, once the source is free. */
  readonly preparingMs: number;
  /** `preparing` -> `running`. */
  readonly preLiveMigrationMs: number;
  /** The least time of copying; the rest is memory / bandwidth. */
  readonly copyFloorMs: number;
  /** MB of guest memory copied per cloud second. */
  readonly copyMbPerSecond: number;
  /** Switch-over -> host = destination and task_state = null. */
  readonly postMs: number;
  /** host set -> `completed`. */
  readonly completedMs: number;
  /** Copying broken off -> task_state = null. */
  readonly rollbackMs: number;
  /** task_state = null -> `failed`. */
  readonly failedMs: number;
  /** DELETE answered -> the compute acts on it. */
  readonly abortMs: number;
  /** Each step of a cold migration: prepare, copy, finish, confirm, revert. */
  readonly coldMs: number;
  /** POST /servers -> ACTIVE. */
  readonly buildMs: number;
  readonly jitter: number;
}

export const NOVA_TIMING: Timing = {
  conductorMs: 1000,
  schedulerMs: 1200,
  checkMs: 2500,
  queuedMs: 300,
  preparingMs: 300,
  preLiveMigrationMs: 2500,
  copyFloorMs: 2000,
  copyMbPerSecond: 1024,
  postMs: 1500,
  completedMs: 1500,
  rollbackMs: 1000,
  failedMs: 500,
  abortMs: 300,
  coldMs: 2000,
  buildMs: 4000,
  jitter: 0.2,
};
