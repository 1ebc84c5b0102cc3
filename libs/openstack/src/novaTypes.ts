/** Nova's data as plain objects. Times are ISO-8601 UTC; names include the unit. */

export interface Aggregate {
  readonly id: number;
  /** Since 2.41; also the id of the Placement aggregate that mirrors it. */
  readonly uuid: string;
  readonly name: string;
  readonly availabilityZone: string | null;
  /** Service hosts. */
  readonly hosts: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** A nova-compute service. One in a cell that is down has nothing but host and binary: status and state `unknown`. */
export interface ComputeService {
  readonly id: string | null;
  readonly host: string;
  readonly binary: string;
  readonly zone: string | null;
  readonly status: 'enabled' | 'disabled' | 'unknown';
  readonly state: 'up' | 'down' | 'unknown';
  /** `true` when Nova does not reach its cell: then only host and binary are known. */
  readonly cellDown: boolean;
  readonly forcedDown: boolean;
  readonly disabledReason: string | null;
  /** Last heartbeat or change. */
  readonly updatedAt: string | null;
}

/** A NUMA cell of a server. */
interface ServerNode {
  /** The cell of its host; null where the user may not see it. */
  readonly hostNode: number | null;
  readonly vcpus: number;
  /** How many of these are pinned; null where the user may not see it. */
  readonly pinned: number | null;
  readonly memoryMb: number;
}

/** The NUMA cells of a server, none where it has none. */
export interface ServerTopology {
  readonly nodes: readonly ServerNode[];
  /** Size of its pages in KiB; null: ordinary memory. */
  readonly pageSizeKb: number | null;
}

export interface Hypervisor {
  /** UUID; also the id of its Placement resource provider. */
  readonly id: string;
  readonly hypervisorHostname: string;
  /** `QEMU`, `KVM`, `ironic` ... */
  readonly hypervisorType: string;
  readonly hypervisorVersion: number;
  readonly state: 'up' | 'down' | 'unknown';
  readonly status: 'enabled' | 'disabled' | 'unknown';
  /** The nova-compute service that runs it; `host` is the service host. */
  readonly service: { readonly id: string; readonly host: string; readonly disabledReason: string | null };
}

/** The flavor as it was when the server was created or resized (inline since 2.47). */
export interface Flavor {
  readonly name: string;
  readonly vcpus: number;
  readonly ramMb: number;
  /** Root disk; claimed only when the server does not boot from a volume. */
  readonly rootGb: number;
  readonly ephemeralGb: number;
  readonly swapMb: number;
  readonly extraSpecs: Readonly<Record<string, string>>;
}

/** A flavor as it is now; its name is unique. */
export interface NamedFlavor extends Flavor {
  readonly id: string;
}

export interface Server {
  readonly id: string;
  /** Display name; null when its cell is down. */
  readonly name: string | null;
  /** `instance-0000002a`, the hypervisor's name for it. */
  readonly internalName: string | null;
  /** Nova's API status: `ACTIVE`, `MIGRATING`, `PAUSED`, `ERROR`, `DELETED`, `UNKNOWN` ... */
  readonly status: string;
  /** `true` when its cell is down: then only id, status, projectId and createdAt are known. */
  readonly cellDown: boolean;
  readonly vmState: string | null;
  readonly taskState: string | null;
  readonly powerState: number | null;
  /** Service host; null when it is on none (building, shelved offloaded, cell down). */
  readonly host: string | null;
  readonly hypervisorHostname: string | null;
  readonly projectId: string;
  readonly userId: string | null;
  /** null when its cell is down or Nova has lost the flavor. */
  readonly flavor: Flavor | null;
  /** Image properties as Nova keeps them (since 2.98); undefined below. */
  readonly imageProperties: Readonly<Record<string, string>> | undefined;
  readonly bootFromVolume: boolean;
  /** Ids of the attached Cinder volumes. */
  readonly volumeIds: readonly string[];
  /** Fixed and floating addresses on all its networks. */
  readonly addresses: readonly string[];
  /** The MAC addresses of its ports that have an address. */
  readonly macs: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly locked: boolean;
  readonly lockedReason: string | null;
  readonly availabilityZone: string | null;
  /** The zone the server was created for: null when none, undefined below 2.96 (not known). */
  readonly pinnedAvailabilityZone: string | null | undefined;
  /** Ids of its server groups: since 2.71, and only where one server is asked for; undefined elsewhere (not known). */
  readonly groupIds: readonly string[] | undefined;
  readonly createdAt: string;
  readonly updatedAt: string | null;
  /** Present only in status ERROR or DELETED. */
  readonly fault: { readonly code: number; readonly message: string; readonly createdAt: string } | null;
}

export interface ServerGroup {
  readonly id: string;
  readonly name: string;
  /** `affinity`, `anti-affinity`, `soft-affinity`, `soft-anti-affinity`, or a word that a later Nova adds; null when the group has none. */
  readonly policy: string | null;
  /** The most members that the policy allows on one host: `rules.max_server_per_host` of an anti-affinity group, else Nova's default of 1. */
  readonly maxServersPerHost: number;
  /** Ids of servers that are not deleted. */
  readonly memberIds: readonly string[];
  readonly projectId: string | null;
}

/** A row of `os-migrations`. */
export interface Migration {
  readonly id: number;
  readonly uuid: string;
  readonly serverId: string;
  /** `live-migration`, `migration`, `resize`, `evacuation`. */
  readonly type: string;
  /** A live migration: accepted, queued, preparing, running, running (post-copy), post-migrating; over with completed, failed, error or
   * cancelled. Treat an unknown one as in progress. */
  readonly status: string;
  readonly sourceCompute: string | null;
  /** null until the conductor has chosen. */
  readonly destCompute: string | null;
  /**
   * Numbers of the server's flavor before and after, as Nova's database counts flavors: no API names them. Both are the flavor of that
   * time where the migration did not change it. Null: not recorded. Undefined: not known.
   */
  readonly oldTypeId?: number | null;
  readonly newTypeId?: number | null;
  readonly createdAt: string;
  readonly updatedAt: string | null;
}

/** A live migration in progress with its byte counts, null until the hypervisor reports them. */
export interface ServerMigration {
  readonly id: number;
  readonly uuid: string;
  readonly serverId: string;
  readonly status: string;
  readonly sourceCompute: string | null;
  readonly destCompute: string | null;
  readonly memoryTotalBytes: number | null;
  readonly memoryProcessedBytes: number | null;
  readonly memoryRemainingBytes: number | null;
  readonly diskTotalBytes: number | null;
  readonly diskProcessedBytes: number | null;
  readonly diskRemainingBytes: number | null;
  readonly createdAt: string;
  readonly updatedAt: string | null;
}

export interface InstanceActionEvent {
  /** E.g. `compute_check_can_live_migrate_destination`. */
  readonly event: string;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  /** `Success` or `Error`; null while it runs. */
  readonly result: string | null;
  readonly traceback: string | null;
  readonly host: string | null;
  /** Short text of the fault, since 2.84. */
  readonly details: string | null;
}

export interface InstanceAction {
  readonly action: string;
  readonly serverId: string;
  readonly requestId: string;
  readonly startedAt: string;
  readonly updatedAt: string | null;
  /** `Error` when it failed. */
  readonly message: string | null;
  /** Newest first, as Nova gives them; empty in a list of actions. */
  readonly events: readonly InstanceActionEvent[];
}

/** Statuses of any migration that is not over, in the order of its life; cold migrations and evacuations pass through the others. */
export const UNFINISHED_MIGRATION_STATUSES = [
  'accepted',
  'queued',
  'preparing',
  'pre-migrating',
  'migrating',
  'running',
  'running (post-copy)',
  'post-migrating',
  'finished',
  'confirming',
  'reverting',
] as const;

/** The result of a request to act. `unknown`: it may have reached Nova; look before acting again. */
export type ActionOutcome =
  | { readonly outcome: 'accepted'; readonly requestId: string | undefined }
  | { readonly outcome: 'unknown'; readonly error: unknown };
