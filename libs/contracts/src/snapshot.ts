import { z } from 'zod';
import { isoTimeSchema, reasonSchema } from './envelope.ts';
import { MAX_FORECAST_POINTS } from './limits.ts';
import { policySchema, vmLabelTypeSchema } from './policy.ts';

/** One resource class of a host as Placement counts it. */
const inventorySchema = z.object({
  /** (total - reserved) x allocation_ratio */
  capacity: z.number(),
  /** The amount of the hardware, before reserved and allocation_ratio. Absent: not known, or of Kronos 0.1. */
  total: z.number().optional(),
  /** Claimed by every consumer, the doubled claim of a running migration included. */
  used: z.number(),
  minUnit: z.number().nullable(),
  maxUnit: z.number().nullable(),
  stepSize: z.number().nullable(),
});
export type Inventory = z.infer<typeof inventorySchema>;

/** The source of a host's list of servers. */
const serverListingSchema = z.object({
  /**
   * `api`: all of it was read for this snapshot. `changes`: it was kept, and what changed was read. `notifications`: it was kept, and
   * what notifications named was read.
   */
  from: z.enum(['api', 'changes', 'notifications']),
  /** When the whole list was last read from Nova, or compared with Nova's ids. */
  checkedAt: isoTimeSchema,
});
export type ServerListing = z.infer<typeof serverListingSchema>;

/** A NUMA cell of a host: what servers may use of it, used or not. */
export const hostCellSchema = z.object({
  /** Its number on the host. */
  id: z.int().min(0),
  /** CPUs that servers may pin (`[compute] cpu_dedicated_set`). */
  dedicatedCpus: z.int().min(0),
  /** CPUs that servers without pinned CPUs share (`[compute] cpu_shared_set`). */
  sharedCpus: z.int().min(0),
  /** All its memory, in MiB, the pages below included. */
  memoryMb: z.number().min(0),
  /** Pages of each size above the smallest: huge pages. */
  pages: z.array(z.object({ sizeKb: z.int().min(1), total: z.int().min(0) })),
});
export type HostCell = z.infer<typeof hostCellSchema>;

/** A NUMA cell of a server, as Nova placed it (`GET /servers/{id}/topology`, 2.78). */
const serverCellSchema = z.object({
  /** The cell of the host on which it is; null: unknown. */
  hostCell: z.int().min(0).nullable(),
  dedicatedCpus: z.int().min(0),
  sharedCpus: z.int().min(0),
  memoryMb: z.number().min(0),
  /** Size of its huge pages; null: ordinary memory. */
  pageSizeKb: z.int().min(1).nullable(),
});
export type ServerCell = z.infer<typeof serverCellSchema>;

const hostObservationSchema = z.object({
  /** Nova's service host: the identity of a host. */
  name: z.string(),
  hypervisorHostname: z.string(),
  /** Uuid of the hypervisor, which is its resource provider's too. */
  hypervisorId: z.string(),
  hypervisorType: z.string(),
  hypervisorVersion: z.int(),
  availabilityZone: z.string().nullable(),
  /** From `[nova] cells`; null where no cell is configured for the host. */
  cell: z.string().nullable(),
  service: z.object({
    status: z.enum(['enabled', 'disabled', 'unknown']),
    state: z.enum(['up', 'down', 'unknown']),
    forcedDown: z.boolean(),
    disabledReason: z.string().nullable(),
  }),
  /** By resource class; null when Placement gave none: unknown capacity takes nothing. */
  inventory: z.record(z.string(), inventorySchema).nullable(),
  /** Traits of the resource provider; null when unknown. */
  traits: z.array(z.string()).nullable(),
  /** Its NUMA cells; null: unknown. Absent: not read, because no server needs them, or written by Kronos 0.1. */
  topology: z
    .object({ cells: z.array(hostCellSchema) })
    .nullable()
    .optional(),
  /** Other aggregates of the configured scope that hold this host: it is unplannable while there are any. */
  otherAggregates: z.array(z.string()),
  /** Absent: written by Kronos 0.1, or the servers could not be read. */
  listing: serverListingSchema.optional(),
});
export type HostObservation = z.infer<typeof hostObservationSchema>;

const serverObservationSchema = z.object({
  /** The server's uuid: the identity of a VM. */
  id: z.string(),
  name: z.string(),
  internalName: z.string().nullable(),
  projectId: z.string().nullable(),
  host: z.string(),
  /** Hosts on which it counts too: seen there on another page, or the other end of its running migration. */
  alsoOn: z.array(z.string()),
  /**
   * The host on which Nova lists it. Absent: it is `host`, or written by Kronos 0.1. Otherwise this host is none of the aggregate's, and
   * `host` is where the server counts in the aggregate.
   */
  listedOn: z.string().optional(),
  /** Nova's `status`, e.g. ACTIVE, PAUSED, MIGRATING. */
  status: z.string(),
  vmState: z.string().nullable(),
  taskState: z.string().nullable(),
  /** Nova's number; null: Nova shows none. Absent: written by Kronos 0.1. */
  powerState: z.int().nullable().optional(),
  locked: z.boolean(),
  createdAt: isoTimeSchema.nullable(),
  vcpus: z.number(),
  ramMb: z.number(),
  /** Root, ephemeral and swap on local disk, in GiB. */
  diskGb: z.number(),
  /** Its claims in Placement, by resource class. */
  resources: z.record(z.string(), z.number()),
  flavor: z.string().nullable(),
  extraSpecs: z.record(z.string(), z.string()),
  /** Its NUMA cells; null: it has some, and they could not be read. Absent: it has none, or written by Kronos 0.1. */
  topology: z
    .object({ cells: z.array(serverCellSchema) })
    .nullable()
    .optional(),
  /** Its image asks for a CPU model or for traits of CPUs. Written by Kronos before `imageProperties`. */
  imageAsksCpu: z.boolean().optional(),
  /**
   * Properties of its image that Nova's scheduler or computes read (`hw_*`, `os_*`, `img_*`, `trait:*`). Absent: none; Nova shows none
   * (before 2.98, or the server boots from a volume); or written by Kronos 0.1.
   */
  imageProperties: z.record(z.string(), z.string()).optional(),
  /**
   * `binding:vnic_type` of its ports that are not ordinary ones, sorted. Null: its ports are not known. Absent: it has none, nobody
   * read ports, or written by Kronos 0.1.
   */
  vnicTypes: z.array(z.string()).nullable().optional(),
  bootFromVolume: z.boolean(),
  availabilityZone: z.string().nullable(),
  /** The AZ it asked for at boot (2.96); null when not pinned, undefined when the cloud cannot tell. */
  pinnedAvailabilityZone: z.string().nullable().optional(),
  /** The metadata key or the tag that opts it out; null when it takes part. */
  optedOutBy: z.string().nullable(),
  /** Windows of its own, from its metadata and tags, as text; undefined: none. They narrow those of the aggregate. */
  windows: z.array(z.string()).optional(),
});
export type ServerObservation = z.infer<typeof serverObservationSchema>;

export const groupPolicySchema = z.enum(['affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity']);
export type GroupPolicy = z.infer<typeof groupPolicySchema>;

const serverGroupSchema = z.object({
  id: z.string(),
  name: z.string(),
  policy: groupPolicySchema,
  /** `rules.max_server_per_host`; 1 unless an anti-affinity group says more. */
  maxServerPerHost: z.int().min(1),
  /** Server uuids, of other aggregates too. */
  members: z.array(z.string()),
});
export type GroupObservation = z.infer<typeof serverGroupSchema>;

/** A migration that Nova runs, from any requester. */
const runningMigrationSchema = z.object({
  id: z.int(),
  uuid: z.string().nullable(),
  serverId: z.string(),
  type: z.string(),
  status: z.string(),
  sourceHost: z.string().nullable(),
  /** Null until Nova's conductor has chosen. */
  destHost: z.string().nullable(),
});
export type RunningMigration = z.infer<typeof runningMigrationSchema>;

/** A migration that Nova completed within the last day, from any requester. */
const endedMigrationSchema = z.object({
  id: z.int(),
  serverId: z.string(),
  from: z.string(),
  to: z.string(),
  /** Its last change, by Nova's clock. */
  at: isoTimeSchema,
});
export type EndedMigration = z.infer<typeof endedMigrationSchema>;

/** The health of an answer of Prometheus. ERROR: the query was refused, or two series name the same host. */
const healthSchema = z.enum(['HEALTHY', 'STALE', 'PARTIAL', 'UNREACHABLE', 'ERROR']);
export type Health = z.infer<typeof healthSchema>;

/** Why an answer is not HEALTHY, or gives fewer values than it has series. */
const answerCauses = [
  /** Prometheus does not answer. */
  'unreachable',
  /** Prometheus refuses the credentials. */
  'unauthorized',
  /** Prometheus refuses the query. */
  'refused',
  /** Several series for one host or VM. */
  'duplicate-series',
  /** The answer has no series. */
  'no-series',
  /** It has series, and none names a host or VM of the cloud. */
  'no-label',
  /** Series that were there within staleness_threshold are gone or old. */
  'stale',
  /** Hosts that are up have no value. */
  'missing',
  /** Values are NaN or infinite. */
  'not-finite',
  /** Prometheus warns that the answer may be incomplete. */
  'warning',
] as const;
export const answerCauseSchema = z.enum(answerCauses);
export type AnswerCause = z.infer<typeof answerCauseSchema>;

/** VMs of the aggregate whose series give no value, and why. */
export const unusedVmsSchema = z.object({
  /** VMs whose value is outside [0,1], with the extremes of these values. */
  outside: z.int().min(0),
  lowest: z.number().optional(),
  highest: z.number().optional(),
  /** VMs with several series. */
  duplicates: z.int().min(0),
});

/** The answer to one query about hosts: values by Nova service host. NaN and Inf count as missing. */
const hostReadingSchema = z.object({
  query: z.string(),
  label: z.string(),
  health: healthSchema,
  /** The problem as a sentence; empty when HEALTHY. */
  text: z.string(),
  values: z.record(z.string(), z.number()),
  /** Expected hosts (nova-compute up) without a value. */
  missing: z.array(z.string()),
  /** Label values that match no host, or several. */
  unmatchedLabels: z.array(z.string()),
  /** Absent: none, or of Kronos 0.1. */
  cause: answerCauseSchema.optional(),
});
export type HostReading = z.infer<typeof hostReadingSchema>;

/** The answer to one query about VMs: values by server uuid. */
const vmReadingSchema = z.object({
  query: z.string(),
  label: z.string(),
  labelType: vmLabelTypeSchema,
  health: healthSchema,
  text: z.string(),
  values: z.record(z.string(), z.number()),
  /** Number of labels that match no VM of the cloud. */
  unmatchedLabels: z.int(),
  /** Number of labels that fit several VMs: these VMs have no value. */
  ambiguousLabels: z.int(),
  /** Absent: none, or of Kronos 0.1. */
  cause: answerCauseSchema.optional(),
  /** Absent: none, or of Kronos 0.1. */
  unused: unusedVmsSchema.optional(),
});
export type VmReading = z.infer<typeof vmReadingSchema>;

/** The VMs' values of one query on former days, at this time of day and after it. */
const vmHistorySchema = z.object({
  query: z.string(),
  label: z.string(),
  labelType: vmLabelTypeSchema,
  /** Why the history is missing or incomplete; else empty. */
  text: z.string(),
  /** Newest first. */
  days: z.array(
    z.object({
      /** Days of 24 h before the snapshot. */
      ago: z.int().min(1),
      /** By server uuid, one value for each point, 4 decimal places. Servers without all of them are left out. */
      servers: z.record(z.string(), z.array(z.number())),
    }),
  ),
});
export type VmHistory = z.infer<typeof vmHistorySchema>;

const forecastSchema = z.object({
  /** The first point is at this time less some days, rounded down to a step. */
  stepSeconds: z.number().positive(),
  /** Points of a day. */
  points: z.int().min(2).max(MAX_FORECAST_POINTS),
  readings: z.array(vmHistorySchema),
});
export type Forecast = z.infer<typeof forecastSchema>;

/** The weights of a policy's VMs do not add up to the values of their hosts. */
export const profileSumSchema = z.object({
  policy: z.string(),
  /** Sum of the weights over sum of the values, of the hosts of which every running VM has a weight. */
  ratio: z.number(),
  /** The host that differs most. */
  host: z.string(),
  sum: z.number(),
  value: z.number(),
  cause: z.enum(['unit', 'not-divided-by-size', 'divided-by-size-twice', 'share-of-guest', 'load-without-vm']),
  /** The weights add up when they are multiplied by this usual factor between units. Absent: no such factor fits. */
  factor: z.number().optional(),
});
export type ProfileSum = z.infer<typeof profileSumSchema>;

/** One policy's scores, for people; decisions compute their own from the readings. */
export const policyScoresSchema = z.object({
  policy: z.string(),
  participates: z.boolean(),
  /** Why the policy is not used; null when it is. */
  reason: reasonSchema.nullable(),
  threshold: z.number(),
  weight: z.number(),
  /** max - min of the raw values over possible destinations; null when it takes no part. */
  imbalance: z.number().nullable(),
  detected: z.boolean(),
  /** Whether a host is above the policy's `act_above`. Absent: it has none, or takes no part. */
  acts: z.boolean().optional(),
  /** By host: the raw value and the min-max normalised one (0..1 inside the aggregate). */
  hosts: z.record(z.string(), z.object({ raw: z.number(), normalised: z.number() })),
  /** The sizes of hosts, by Placement's total of a resource class, where no query gives them and they differ. */
  sizes: z
    .object({ resourceClass: z.string(), named: z.boolean(), smallest: z.number(), largest: z.number() })
    .optional(),
});
export type PolicyScores = z.infer<typeof policyScoresSchema>;

/** The sources of a snapshot that nobody took at its time: it was put together later, from the history that others keep. */
const reconstructedSchema = z.object({
  /** When Nova and Placement were read: hosts, capacities, aggregates, groups, names and tags are of that time. */
  readAt: isoTimeSchema,
  /** Each source in a few words. */
  sources: z.array(z.string()),
  /** How many of each are not known at this time; what is not named is 0. */
  unknown: z.record(z.string(), z.int().min(1)),
});
export type Reconstructed = z.infer<typeof reconstructedSchema>;

/** The observation of one aggregate. */
const observedSchema = z.object({
  version: z.literal(1),
  id: z.string(),
  aggregate: z.string(),
  /**
   * `cycle`: of the clock; `command`: asked for by an operator; `record`: kept and never planned; `cells`: of a request for moves
   * between cells; `capacity`: of a request for room.
   */
  purpose: z.enum(['cycle', 'command', 'record', 'cells', 'capacity']),
  /** floor(observation start / interval); what makes two scorers agree on the id. */
  cycle: z.int(),
  intervalSeconds: z.number(),
  /** When the first read of this snapshot began. */
  observedFrom: isoTimeSchema,
  /** When the last read ended: the decision's `now`. */
  time: isoTimeSchema,
  /** Nova live-migrates servers with a virtual TPM whose secret is the host's (2.103). Absent: not known, or written by Kronos 0.1. */
  vtpmMoves: z.boolean().optional(),
  policies: z.array(policySchema),
  hosts: z.array(hostObservationSchema),
  servers: z.array(serverObservationSchema),
  serverGroups: z.array(serverGroupSchema),
  migrations: z.array(runningMigrationSchema),
  /** Of servers of the aggregate, the newest first. Absent: none, or nobody asked. Null: Nova did not list them. */
  endedMigrations: z.array(endedMigrationSchema).nullable().optional(),
  hostReadings: z.array(hostReadingSchema),
  vmReadings: z.array(vmReadingSchema),
  /** Answers to the queries of what moves cost: bytes per second. Absent: no policy has one. */
  moveCostReadings: z.array(vmReadingSchema).optional(),
  /** Absent: nobody asked for a forecast. */
  forecast: forecastSchema.optional(),
  /** Absent: it was taken at its time. */
  reconstructed: reconstructedSchema.optional(),
  /** Problems. Each makes the aggregate unplannable for this cycle. */
  problems: z.array(reasonSchema),
  /** Remarks that do not prevent planning: hosts of other hypervisor types, unmatched labels. */
  notes: z.array(reasonSchema),
  scores: z.object({ policies: z.array(policyScoresSchema), combined: z.number().nullable() }),
  /** Policies whose VMs' weights are far from their hosts' values. Absent: none, or not known. */
  profileSums: z.array(profileSumSchema).optional(),
});

/** An operator's request for moves between cells. */
export const cellsAskedSchema = z.object({
  /** Aggregates and hosts whose servers leave: this aggregate, or hosts of it. */
  from: z.array(z.string()).min(1),
  /** The aggregate that they go to. */
  to: z.string(),
  /** Old flavor's name -> new flavor's name. A server whose flavor is not in it keeps its flavor. */
  flavorMap: z.record(z.string(), z.string()),
  /** Only these servers, by uuid or by name; null: all. */
  servers: z.array(z.string()).nullable(),
  /** Only servers of this project; null: of all. */
  project: z.string().nullable(),
  /** The maximum number of moves; null: as many as one plan holds. */
  limit: z.int().min(1).nullable(),
});
export type CellsAsked = z.infer<typeof cellsAskedSchema>;

/** A flavor that a flavor map leads to. */
const cellFlavorSchema = z.object({
  name: z.string(),
  vcpus: z.number(),
  ramMb: z.number(),
  /** Root, ephemeral and swap on local disk, GiB. */
  diskGb: z.number(),
  extraSpecs: z.record(z.string(), z.string()),
});
export type CellFlavor = z.infer<typeof cellFlavorSchema>;

/** Facts that are read about a server before it may leave its cell. */
const cellFactsSchema = z.object({
  volumes: z.int().min(0),
  ports: z.array(
    z.object({
      id: z.string(),
      /** Neutron's `resource_request` is set. */
      requestsResources: z.boolean(),
      /** Neutron's `binding:vnic_type`. */
      vnicType: z.string(),
    }),
  ),
});
export type CellFacts = z.infer<typeof cellFactsSchema>;

/** The input of a plan between cells, in addition to the aggregate itself. */
const cellsReadingSchema = z.object({
  commandId: z.string(),
  asked: cellsAskedSchema,
  /** Aggregate -> cell, from `[cells] aggregates`. */
  map: z.record(z.string(), z.string()),
  settings: z.object({
    volumesShared: z.boolean(),
    networksShared: z.boolean(),
    /** Null: no limit. */
    maxImageGib: z.number().nullable(),
    crossCellWeight: z.number().min(0),
    downtimeFixedSeconds: z.number().min(0),
    downtimeSecondsPerGib: z.number().min(0),
    confirm: z.enum(['auto', 'manual']),
    verifySeconds: z.number().min(0),
    approvalTtlSeconds: z.number().min(1),
    planTtlSeconds: z.number().min(1),
  }),
  /** The other aggregates in scope. */
  others: z.array(observedSchema),
  /** Host -> metadata of all Nova aggregates that it is in; the values of several with a comma between them. */
  metadata: z.record(z.string(), z.record(z.string(), z.string())),
  /** By name, those that the flavor map leads to and Nova has. */
  flavors: z.record(z.string(), cellFlavorSchema),
  /** By server; one that is missing could not be read and stays in its cell. */
  facts: z.record(z.string(), cellFactsSchema),
  /** Reads that failed, with reasons. */
  unread: z.array(reasonSchema),
});
export type CellsReading = z.infer<typeof cellsReadingSchema>;

/** The needs of a new VM. */
const shapeSchema = z.object({
  /** Name of the flavor, or what was asked for in words. */
  name: z.string(),
  /** Claims in Placement, by resource class. */
  resources: z.record(z.string(), z.number().min(0)),
  requiredTraits: z.array(z.string()),
  forbiddenTraits: z.array(z.string()),
  /** NUMA cells that it needs; null: some, and which is unknown. Absent: none. */
  cells: z.array(serverCellSchema).nullable().optional(),
});
export type Shape = z.infer<typeof shapeSchema>;

/** An operator's request for room for new VMs. */
export const capacityAskedSchema = z.object({
  shape: shapeSchema,
  /** The number of new VMs. */
  count: z.int().min(1),
  /** Moves of the plan, at most. Absent: as many as one plan can hold. */
  maxMoves: z.int().min(1).optional(),
});

/** The input of a plan that makes room, in addition to the aggregate itself. */
const capacityReadingSchema = z.object({ commandId: z.string(), asked: capacityAskedSchema });
export type CapacityReading = z.infer<typeof capacityReadingSchema>;

/** The complete input of a decision about one aggregate. Lives in the object store; `snapshot.taken` refers to it. */
export const snapshotSchema = observedSchema.extend({
  /** Exactly with the purpose `cells`. */
  cells: cellsReadingSchema.optional(),
  /** Exactly with the purpose `capacity`. */
  capacity: capacityReadingSchema.optional(),
});
export type Snapshot = z.infer<typeof snapshotSchema>;

/** Hosts that a summary names; the snapshot has all of them. */
export const NAMED_HOSTS = 20;
