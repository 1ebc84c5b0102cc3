/**
 * A snapshot with made-up names: field by field. What only a plan between cells depends on is left out: such a plan of an anonymized
 * recording is not replayed.
 */
import type { HostReading, Policy, PolicyScores, Shape, Snapshot, VmReading } from '@kronos/contracts';
import { parseWindow } from '@kronos/rules';
import { allNamed, by, byClass, custom, each, keyed, leftOut, named } from './fields.ts';
import type { Names } from './names.ts';
import { anonymousReason } from './reasons.ts';
import { anonymousProperties, anonymousSpecs } from './specs.ts';

type Part<K extends keyof Snapshot> = NonNullable<Snapshot[K]>;
type Each<K extends keyof Snapshot> = Part<K> extends readonly (infer One)[] ? One : never;

export const anonymousShape = by<Shape>({
  name: named('flavor'),
  resources: byClass,
  requiredTraits: each(custom),
  forbiddenTraits: each(custom),
  cells: 'kept',
});

const anonymousPolicy = by<Policy>({
  name: 'names nobody',
  mode: 'kept',
  weight: 'kept',
  imbalanceQuery: named('query'),
  hostLabel: 'names nobody',
  vmProfileQuery: named('query'),
  vmProfileLabel: 'names nobody',
  vmProfileLabelType: 'kept',
  vmProfileFallback: 'kept',
  threshold: 'kept',
  actAbove: 'kept',
  triggerQuery: named('query'),
  target: 'kept',
  capacityQuery: named('query'),
  capacityThreshold: 'kept',
  hostSizeQuery: named('query'),
  resourceClass: custom,
  moveCostQuery: named('query'),
  maxMigrationsPerCycle: 'kept',
  minSustainedCycles: 'kept',
  enabled: 'kept',
  allocation: custom,
});

const anonymousHost = by<Each<'hosts'>>({
  name: named('host'),
  hypervisorHostname: named('hypervisor'),
  hypervisorId: named('uuid'),
  hypervisorType: 'names nobody',
  hypervisorVersion: 'kept',
  availabilityZone: named('zone'),
  cell: named('cell'),
  service: by<Each<'hosts'>['service']>({
    status: 'kept',
    state: 'kept',
    forcedDown: 'kept',
    disabledReason: leftOut,
  }),
  inventory: byClass,
  traits: each(custom),
  topology: 'kept',
  otherAggregates: allNamed('aggregate'),
  listing: by<NonNullable<Each<'hosts'>['listing']>>({ from: 'kept', checkedAt: 'names nobody' }),
});

const anonymousServer = by<Each<'servers'>>({
  id: named('server'),
  name: named('serverName'),
  internalName: named('value'),
  projectId: named('project'),
  host: named('host'),
  alsoOn: allNamed('host'),
  listedOn: named('host'),
  status: 'names nobody',
  vmState: 'names nobody',
  taskState: 'names nobody',
  powerState: 'kept',
  locked: 'kept',
  createdAt: 'names nobody',
  vcpus: 'kept',
  ramMb: 'kept',
  diskGb: 'kept',
  resources: byClass,
  flavor: named('flavor'),
  extraSpecs: anonymousSpecs,
  topology: 'kept',
  imageAsksCpu: 'kept',
  imageProperties: anonymousProperties,
  vnicTypes: 'names nobody',
  bootFromVolume: 'kept',
  availabilityZone: named('zone'),
  pinnedAvailabilityZone: named('zone'),
  optedOutBy: named('label'),
  // A window that cannot be read stays unreadable, and names nothing.
  windows: each((_, text) => (parseWindow(text).ok ? text : 'left out')),
});

const anonymousGroup = by<Each<'serverGroups'>>({
  id: named('group'),
  name: named('groupName'),
  policy: 'kept',
  maxServerPerHost: 'kept',
  members: allNamed('server'),
});

const anonymousMigration = by<Each<'migrations'>>({
  id: 'kept',
  uuid: named('uuid'),
  serverId: named('server'),
  type: 'names nobody',
  status: 'names nobody',
  sourceHost: named('host'),
  destHost: named('host'),
});

const anonymousEnded = by<Each<'endedMigrations'>>({
  id: 'kept',
  serverId: named('server'),
  from: named('host'),
  to: named('host'),
  at: 'names nobody',
});

/** The sentence of an answer quotes Prometheus and labels of metrics. Empty: there is nothing to say. */
const emptyOrLeftOut = (_: Names, text: string): string => (text === '' ? '' : leftOut());

const anonymousHostReading = by<HostReading>({
  query: named('query'),
  label: 'names nobody',
  health: 'kept',
  text: emptyOrLeftOut,
  values: keyed('host'),
  missing: allNamed('host'),
  unmatchedLabels: allNamed('label'),
  cause: 'kept',
});

const anonymousVmReading = by<VmReading>({
  query: named('query'),
  label: 'names nobody',
  labelType: 'kept',
  health: 'kept',
  text: emptyOrLeftOut,
  values: keyed('server'),
  unmatchedLabels: 'kept',
  ambiguousLabels: 'kept',
  cause: 'kept',
  unused: 'kept',
});

type History = Part<'forecast'>['readings'][number];

const anonymousForecast = by<Part<'forecast'>>({
  stepSeconds: 'kept',
  points: 'kept',
  readings: each(
    by<History>({
      query: named('query'),
      label: 'names nobody',
      labelType: 'kept',
      text: emptyOrLeftOut,
      days: each(by<History['days'][number]>({ ago: 'kept', servers: keyed('server') })),
    }),
  ),
});

/** How Kronos calls a count. */
const COUNTED = /^[a-z][A-Za-z]*$/;

const anonymousReconstructed = by<Part<'reconstructed'>>({
  readAt: 'names nobody',
  sources: each(leftOut),
  unknown: (_, counts) => Object.fromEntries(Object.entries(counts).filter(([key]) => COUNTED.test(key))),
});

const anonymousScores = by<Part<'scores'>>({
  policies: each(
    by<PolicyScores>({
      policy: 'names nobody',
      participates: 'kept',
      reason: anonymousReason,
      threshold: 'kept',
      weight: 'kept',
      imbalance: 'kept',
      detected: 'kept',
      acts: 'kept',
      hosts: keyed('host'),
      sizes: by<NonNullable<PolicyScores['sizes']>>({
        resourceClass: custom,
        named: 'kept',
        smallest: 'kept',
        largest: 'kept',
      }),
    }),
  ),
  combined: 'kept',
});

const anonymousSum = by<Each<'profileSums'>>({
  policy: 'names nobody',
  ratio: 'kept',
  host: named('host'),
  sum: 'kept',
  value: 'kept',
  cause: 'kept',
  factor: 'kept',
});

const anonymousCapacity = by<Part<'capacity'>>({
  commandId: 'names nobody',
  asked: by<Part<'capacity'>['asked']>({ shape: anonymousShape, count: 'kept', maxMoves: 'kept' }),
});

export const anonymousSnapshot = by<Snapshot>({
  version: 'kept',
  id: (names, id) => names.id(id),
  aggregate: named('aggregate'),
  purpose: 'kept',
  cycle: 'kept',
  intervalSeconds: 'kept',
  observedFrom: 'names nobody',
  time: 'names nobody',
  vtpmMoves: 'kept',
  policies: each(anonymousPolicy),
  hosts: each(anonymousHost),
  servers: each(anonymousServer),
  serverGroups: each(anonymousGroup),
  migrations: each(anonymousMigration),
  endedMigrations: each(anonymousEnded),
  hostReadings: each(anonymousHostReading),
  vmReadings: each(anonymousVmReading),
  moveCostReadings: each(anonymousVmReading),
  forecast: anonymousForecast,
  reconstructed: anonymousReconstructed,
  problems: each(anonymousReason),
  notes: each(anonymousReason),
  scores: anonymousScores,
  profileSums: each(anonymousSum),
  cells: 'left out',
  capacity: anonymousCapacity,
});
