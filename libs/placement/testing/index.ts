import {
  type CellsReading,
  type CompleteEngineOptions,
  defaultEngineOptions,
  type GroupObservation,
  type HostObservation,
  type HostReading,
  type Policy,
  type RunningMigration,
  type ServerObservation,
  type Snapshot,
  type VmReading,
} from '@kronos/contracts';
import { emptyMemory, type Memory } from '../src/snapshot/memory.ts';

export { greedyPhase, guidePhase, imbalanceOfFile, lowerBound, searchPhase } from './phases.ts';

/**
 * A cluster in few words, for tests: everything that is not said has a harmless default. Host values and VM weights are
 * given by policy name; a VM without a weight has no sample.
 */
export type Sketch = {
  readonly time?: string;
  readonly policies: Readonly<Record<string, Partial<Omit<Policy, 'name'>>>>;
  readonly hosts: Readonly<Record<string, SketchHost>>;
  readonly vms: Readonly<Record<string, SketchVm>>;
  readonly groups?: Readonly<
    Record<string, { policy: GroupObservation['policy']; maxServerPerHost?: number; members: readonly string[] }>
  >;
  readonly migrations?: readonly Partial<RunningMigration>[];
  readonly snapshot?: Partial<Snapshot>;
  readonly memory?: Partial<Memory>;
  readonly options?: Partial<CompleteEngineOptions>;
};

export type SketchHost = {
  /** Raw value by policy; computed as the sum of the VMs' weights where it is not given. */
  readonly score?: Readonly<Record<string, number>>;
  /** Value of `triggerQuery` by policy; 0 where it is not given. */
  readonly trigger?: Readonly<Record<string, number>>;
  readonly capacityValue?: Readonly<Record<string, number>>;
  readonly size?: number;
  readonly zone?: string | null;
  readonly disabled?: boolean;
  readonly down?: boolean;
  /** By resource class: [capacity, used]; 1000 GiB and 1000 vCPUs, used as the VMs claim, where it is not given. */
  readonly free?: Readonly<Record<string, number>>;
  readonly set?: Partial<HostObservation>;
};

export type SketchVm = {
  readonly host: string;
  readonly w?: Readonly<Record<string, number>>;
  readonly vcpus?: number;
  readonly ramMb?: number;
  readonly set?: Partial<ServerObservation>;
};

export const SKETCH_TIME = '2026-01-01T12:00:00.000Z';

const WRITTEN: Readonly<Record<string, string>> = {
  at: 'atMs',
  proposedAt: 'proposedAtMs',
  startedAt: 'startedAtMs',
  since: 'sinceMs',
  until: 'untilMs',
  lastDecidedTime: 'lastDecidedMs',
  lastMoveEndAt: 'lastMoveEndMs',
};

/** A memory as `memoryText` writes it, with some of its facts, as files of tests have it. */
export function memoryOf(text: unknown): Partial<Memory> {
  const read = (value: unknown, times: boolean): unknown => {
    if (typeof value === 'string') return times ? Date.parse(value) : value;
    if (Array.isArray(value)) return value.map((one) => read(one, times));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => {
        const name = WRITTEN[key];
        return [name ?? key, read(one, times || name !== undefined || key === 'releases' || key === 'hostFailures')];
      }),
    );
  };
  return read(text, false) as Partial<Memory>;
}

/** The snapshot, memory and options of a sketch: what `decide` takes. */
export function decideInput(sketch: Sketch): {
  snapshot: Snapshot;
  memory: Memory;
  options: CompleteEngineOptions;
} {
  return {
    snapshot: snapshotOf(sketch),
    memory: { ...emptyMemory, ...sketch.memory },
    options: { ...defaultEngineOptions, ...sketch.options },
  };
}

/** Settings of plans between cells, as a sketch has them. */
export const cellsSettings: CellsReading['settings'] = {
  volumesShared: false,
  networksShared: false,
  maxImageGib: null,
  crossCellWeight: 1,
  downtimeFixedSeconds: 60,
  downtimeSecondsPerGib: 20,
  confirm: 'auto',
  verifySeconds: 60,
  approvalTtlSeconds: 3600,
  planTtlSeconds: 86400,
};

/** The readings of a policy about hosts. Where a sketch names no score, a host has the sum of its VMs. */
function hostReadingsOf(policy: Policy, sketch: Sketch): HostReading[] {
  const hosts = Object.entries(sketch.hosts);
  const reading = (query: string, value: (name: string, host: SketchHost) => number): HostReading => ({
    query,
    label: policy.hostLabel,
    health: 'HEALTHY',
    text: '',
    values: Object.fromEntries(
      hosts.filter(([, host]) => host.down !== true).map(([name, host]) => [name, value(name, host)]),
    ),
    missing: [],
    unmatchedLabels: [],
  });
  const sum = (host: string): number => {
    let total = 0;
    for (const vm of Object.values(sketch.vms)) if (vm.host === host) total += vm.w?.[policy.name] ?? 0;
    return total;
  };
  const readings = [reading(policy.imbalanceQuery, (name, host) => host.score?.[policy.name] ?? sum(name))];
  if (policy.capacityQuery !== null)
    readings.push(
      reading(
        policy.capacityQuery,
        (name, host) => host.capacityValue?.[policy.name] ?? host.score?.[policy.name] ?? sum(name),
      ),
    );
  return [...readings, ...givenReadings(policy, reading)];
}

const vmReadingOf = (policy: Policy, { vms }: Sketch): VmReading => ({
  query: policy.vmProfileQuery,
  label: policy.vmProfileLabel,
  labelType: policy.vmProfileLabelType,
  health: 'HEALTHY',
  text: '',
  values: Object.fromEntries(
    Object.entries(vms).flatMap(([id, vm]) => {
      const weight = vm.w?.[policy.name];
      return weight === undefined ? [] : [[id, weight] as const];
    }),
  ),
  unmatchedLabels: 0,
  ambiguousLabels: 0,
});

export function snapshotOf(sketch: Sketch): Snapshot {
  const time = sketch.time ?? SKETCH_TIME;
  const policies = Object.entries(sketch.policies).map(([name, set]): Policy => policyOf(name, set, sketch));
  const cycle = Math.floor(Date.parse(time) / 60_000);
  return {
    version: 1,
    id: `agg-${cycle}`,
    aggregate: 'agg',
    purpose: 'cycle',
    cycle,
    intervalSeconds: 60,
    observedFrom: time,
    time,
    policies,
    hosts: Object.entries(sketch.hosts).map(([name, host]) => hostOf(name, host, sketch)),
    servers: Object.entries(sketch.vms).map(([id, vm]) => serverOf(id, vm)),
    serverGroups: Object.entries(sketch.groups ?? {}).map(([id, group]) => ({
      id,
      name: id,
      policy: group.policy,
      maxServerPerHost: group.maxServerPerHost ?? 1,
      members: [...group.members],
    })),
    migrations: (sketch.migrations ?? []).map((set, i) => ({
      id: i + 1,
      uuid: null,
      serverId: '',
      type: 'live-migration',
      status: 'running',
      sourceHost: null,
      destHost: null,
      ...set,
    })),
    hostReadings: policies.flatMap((policy) => hostReadingsOf(policy, sketch)),
    vmReadings: policies.map((policy) => vmReadingOf(policy, sketch)),
    problems: [],
    notes: [],
    scores: { policies: [], combined: null },
    ...sketch.snapshot,
  };
}

/** The readings whose values a sketch gives host by host. */
function givenReadings(
  { name, triggerQuery, hostSizeQuery }: Policy,
  reading: (query: string, value: (name: string, host: SketchHost) => number) => HostReading,
): HostReading[] {
  return [
    ...(triggerQuery === undefined ? [] : [reading(triggerQuery, (_, host) => host.trigger?.[name] ?? 0)]),
    ...(hostSizeQuery === null ? [] : [reading(hostSizeQuery, (_, host) => host.size ?? 1)]),
  ];
}

function policyOf(name: string, set: Partial<Omit<Policy, 'name'>>, sketch: Sketch): Policy {
  const mode = set.mode ?? 'spread';
  return {
    name,
    mode,
    weight: 1 / Object.keys(sketch.policies).length,
    imbalanceQuery: `${name}_used`,
    hostLabel: 'host',
    vmProfileQuery: `${name}_vm`,
    vmProfileLabel: 'vm',
    vmProfileLabelType: 'nova_instance_uuid',
    vmProfileFallback: 'skip',
    threshold: 0,
    capacityQuery: mode === 'pack' ? `${name}_full` : null,
    capacityThreshold: mode === 'pack' ? 0.8 : null,
    hostSizeQuery: Object.values(sketch.hosts).some((host) => host.size !== undefined) ? `${name}_size` : null,
    maxMigrationsPerCycle: 10,
    minSustainedCycles: 0,
    enabled: true,
    ...set,
  };
}

function hostOf(name: string, host: SketchHost, sketch: Sketch): HostObservation {
  const claimed: Record<string, number> = { VCPU: 0, MEMORY_MB: 0 };
  for (const vm of Object.values(sketch.vms))
    if (vm.host === name) {
      const { resources } = serverOf('', vm);
      for (const [resource, amount] of Object.entries(resources)) claimed[resource] = (claimed[resource] ?? 0) + amount;
    }
  const inventory: NonNullable<HostObservation['inventory']> = {};
  for (const resource of new Set([...Object.keys(claimed), ...Object.keys(host.free ?? {})])) {
    const used = claimed[resource] ?? 0;
    const capacity = used + (host.free?.[resource] ?? 1_000_000);
    inventory[resource] = { capacity, used, minUnit: 1, maxUnit: null, stepSize: 1 };
  }
  return {
    name,
    hypervisorHostname: name,
    hypervisorId: `rp-${name}`,
    hypervisorType: 'QEMU',
    hypervisorVersion: 8_002_000,
    availabilityZone: host.zone ?? null,
    cell: null,
    service: {
      status: host.disabled === true ? 'disabled' : 'enabled',
      state: host.down === true ? 'down' : 'up',
      forcedDown: false,
      disabledReason: null,
    },
    inventory,
    traits: [],
    otherAggregates: [],
    ...host.set,
  };
}

function serverOf(id: string, vm: SketchVm): ServerObservation {
  const vcpus = vm.vcpus ?? 1;
  const ramMb = vm.ramMb ?? 1024;
  return {
    id,
    name: id,
    internalName: null,
    projectId: null,
    host: vm.host,
    alsoOn: [],
    status: 'ACTIVE',
    vmState: 'active',
    taskState: null,
    locked: false,
    createdAt: null,
    vcpus,
    ramMb,
    diskGb: 0,
    resources: { VCPU: vcpus, MEMORY_MB: ramMb },
    flavor: null,
    extraSpecs: {},
    bootFromVolume: true,
    availabilityZone: null,
    pinnedAvailabilityZone: null,
    optedOutBy: null,
    ...vm.set,
  };
}
