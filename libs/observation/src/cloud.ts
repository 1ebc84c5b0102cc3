/** The result of one collect from Nova and Placement: the input of the pure part. */
import type { HostCell, Inventory, Reason, ServerCell } from '@kronos/contracts';
import type { Aggregate, ComputeService, Hypervisor, Migration, Server, ServerGroup } from '@kronos/openstack';

/** A part of the cloud, or why it could not be read. A part that could not be read is unknown, never empty. */
export type Fetched<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: string; readonly text: string };

/** The cloud-wide lists of one collect, as Nova gave them. */
export interface CloudLists {
  readonly aggregates: Fetched<readonly Aggregate[]>;
  readonly services: Fetched<readonly ComputeService[]>;
  readonly hypervisors: Fetched<readonly Hypervisor[]>;
  readonly servers: Fetched<readonly Server[]>;
  readonly serverGroups: Fetched<readonly ServerGroup[]>;
  /** Those that are not over, of any kind and of anyone. */
  readonly migrations: Fetched<readonly Migration[]>;
}

/** Placement's facts about one hypervisor's provider. */
export interface ProviderCapacity {
  readonly inventory: Readonly<Record<string, Inventory>>;
  /** Null when they could not be read. */
  readonly traits: readonly string[] | null;
}

/** Capacity by hypervisor id. A hypervisor that is not in it has unknown capacity. */
export interface Capacity {
  readonly providers: ReadonlyMap<string, ProviderCapacity>;
  /** Why, for those that could not be read. */
  readonly failures: ReadonlyMap<string, string>;
  /** Why Placement could not be read, in whole or in part; null: it was. */
  readonly failure: { readonly code: string; readonly text: string } | null;
}

/** The result of a targeted read of a server that a list no longer shows. */
export type Fate =
  | { readonly fate: 'deleted' }
  | { readonly fate: 'exists'; readonly host: string | null }
  | { readonly fate: 'unknown'; readonly text: string };

/** A server of an earlier snapshot. */
export interface KnownServer {
  readonly id: string;
  readonly name: string;
  readonly host: string;
}

/** The settings that the pure part reads. */
export interface ObserveOptions {
  /** Hypervisor types that count, compared without case. */
  readonly hypervisorTypes: readonly string[];
  /** Metadata keys and tags that opt a server out. */
  readonly optOut: readonly string[];
  /** Which cell each host is in; the first pattern that fits counts. */
  readonly cells: readonly { readonly cell: string; readonly hosts: string }[];
}

/** The settings that reading depends on, too. */
export interface ReadOptions extends ObserveOptions {
  readonly sriovPorts: 'auto' | 'read' | 'ignore';
}

/** The settings of reads, from the sections `[nova]` and `[engine]`. */
export const readOptions = ({
  nova: { hypervisorTypes, cells, sriovPorts },
  engine: { optOut },
}: {
  readonly nova: Pick<ReadOptions, 'hypervisorTypes' | 'cells' | 'sriovPorts'>;
  readonly engine: Pick<ReadOptions, 'optOut'>;
}): ReadOptions => ({ hypervisorTypes, optOut, cells, sriovPorts });

/** The ports of the cloud's servers, as far as Neutron has answered. */
export interface PortsSeen {
  /** By id of the server, the kinds of its ports that are not ordinary ones, sorted; null or missing: not known. Null: nobody reads ports. */
  readonly kinds: ReadonlyMap<string, readonly string[] | null> | null;
  readonly notes: readonly Reason[];
}

/** The NUMA cells of one aggregate, as far as they were read. */
export interface CellsSeen {
  /** By id, the servers that need cells; null: not known. */
  readonly servers: ReadonlyMap<string, readonly ServerCell[] | null>;
  /** By name; null: not known. Empty where no server needs cells. */
  readonly hosts: ReadonlyMap<string, readonly HostCell[] | null>;
  readonly notes: readonly Reason[];
}
