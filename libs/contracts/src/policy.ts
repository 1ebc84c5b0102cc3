import { z } from 'zod';

/** The kinds of names in a VM's metric label. */
export const vmLabelTypeSchema = z.enum(['nova_instance_uuid', 'nova_internal_name', 'nova_display_name']);

const vmProfileFallbackSchema = z.enum(['skip', 'flavor_vcpu_ratio', 'host_average']);

/** One policy as it was loaded, every default filled in: the form that snapshots carry. */
export const policySchema = z.object({
  name: z.string().regex(/^[a-z0-9][a-z0-9_-]*$/),
  mode: z.enum(['spread', 'pack']),
  /** Share of this policy in the combined imbalance, 0..1. */
  weight: z.number().min(0).max(1),
  /** PromQL: one value per host, a utilisation in [0,1]. */
  imbalanceQuery: z.string(),
  hostLabel: z.string(),
  /** PromQL: one value per VM, its share of its host's utilisation. */
  vmProfileQuery: z.string(),
  vmProfileLabel: z.string(),
  vmProfileLabelType: vmLabelTypeSchema,
  vmProfileFallback: vmProfileFallbackSchema,
  /** The imbalance (max - min of the host values) above which this policy asks for moves. */
  threshold: z.number().min(0),
  /**
   * The policy acts only while a possible destination has a value above this: of `triggerQuery`, else of `imbalanceQuery`. Absent: it acts
   * at any value.
   */
  actAbove: z.number().min(0).max(1).optional(),
  /** PromQL: one value per host from 0 to 1, such as CPU pressure, which is compared with `actAbove`. */
  triggerQuery: z.string().optional(),
  /** The imbalance that a plan aims at, at most the threshold; `targetRatio` x threshold where it is not given. */
  target: z.number().min(0).optional(),
  /** PromQL: one value per host, how full it is, 0..1; required in pack mode. */
  capacityQuery: z.string().nullable(),
  /** A host is filled in pack mode only while its capacity value stays below this. */
  capacityThreshold: z.number().nullable(),
  /** PromQL: the relative size of each host; null: by Placement's totals, where hosts differ. */
  hostSizeQuery: z.string().nullable(),
  /** The resource class that a policy of metrics measures: without a query for sizes, its total in Placement is the size of a host. */
  resourceClass: z.string().optional(),
  /** PromQL: bytes per second of memory that each VM writes, which a live migration copies again. Absent: memory counts once. */
  moveCostQuery: z.string().optional(),
  maxMigrationsPerCycle: z.int().min(0),
  /** Number of consecutive evaluations in which the imbalance must have been detected. */
  minSustainedCycles: z.int().min(0),
  enabled: z.boolean(),
  /**
   * The subject of an allocation policy: a resource class of Placement, or `instances`, the number of VMs. Its readings come
   * from the snapshot's inventories and servers, and its queries only name them. Absent: the queries are PromQL.
   */
  allocation: z.string().optional(),
});
export type Policy = z.infer<typeof policySchema>;

/** The number of VMs, as an allocation policy names it. Resource classes are upper-case. */
export const INSTANCES = 'instances';

/** The name of an allocation's readings; no PromQL. */
export const allocationQuery = (allocation: string): string => `allocated ${allocation}`;
/** The name of the readings of the hosts' sizes. */
export const totalQuery = (resourceClass: string): string => `total ${resourceClass}`;
/** Labels of readings that come from no series. */
export const allocationLabels = { host: 'host', vm: 'uuid' } as const;
