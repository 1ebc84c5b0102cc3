/**
 * A snapshot with made-up names: field by field. What only a plan between cells depends on is left out: such a plan of an anonymized
 * recording is not replayed.
 */
import {
  type HostReading,
  type Policy,
  type PolicyScores,
  type QueryField,
  queryFields,
  type Shape,
  type Snapshot,
  type VmReading,
  type VmReadingList,
  vmReadingLists,
} from '@kronos/contracts';
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

/** The same for each query of a policy. */
const queries = Object.fromEntries(queryFields.map((field) => [field, named('query')])) as Record<
  QueryField,
  (names: Names, query: string) => string
>;

const anonymousPolicy = by<Policy>({
  ...queries,
  name: 'names nobody',
  mode: 'kept',
  hostLabel: 'names nobody',
  vmProfileLabel: 'names nobody',
  vmProfileLabelType: 'kept',
  vmProfileFallback: 'kept',
  resourceClass: custom,
  allocation: custom,
});

const anonymousHost = by<Each<'hosts'>>({
  name: named('host'),
  hypervisorHostname: named('hypervisor'),
  hypervisorId: named('uuid'),
  hypervisorType: 'names nobody',
  availabilityZone: named('zone'),
  cell: named('cell'),
  service: by<Each<'hosts'>['service']>({
    status: 'kept',
    state: 'kept',
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
  createdAt: 'names nobody',
  resources: byClass,
  flavor: named('flavor'),
  extraSpecs: anonymousSpecs,
  topology: 'kept',
  imageProperties: anonymousProperties,
  vnicTypes: 'names nobody',
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
  members: allNamed('server'),
});

const anonymousMigration = by<Each<'migrations'>>({
  uuid: named('uuid'),
  serverId: named('server'),
  type: 'names nobody',
  status: 'names nobody',
  sourceHost: named('host'),
  destHost: named('host'),
});

const anonymousEnded = by<Each<'endedMigrations'>>({
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
  cause: 'kept',
  unused: 'kept',
});

const vmReadings = Object.fromEntries(vmReadingLists.map((list) => [list, each(anonymousVmReading)])) as Record<
  VmReadingList,
  (names: Names, readings: readonly VmReading[]) => VmReading[]
>;

type History = Part<'forecast'>['readings'][number];

const anonymousForecast = by<Part<'forecast'>>({
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
      reason: anonymousReason,
      hosts: keyed('host'),
      sizes: by<NonNullable<PolicyScores['sizes']>>({
        resourceClass: custom,
      }),
    }),
  ),
});

const anonymousSum = by<Each<'profileSums'>>({
  policy: 'names nobody',
  host: named('host'),
  cause: 'kept',
});

const anonymousCapacity = by<Part<'capacity'>>({
  commandId: 'names nobody',
  asked: by<Part<'capacity'>['asked']>({ shape: anonymousShape, count: 'kept', maxMoves: 'kept' }),
});

export const anonymousSnapshot = by<Snapshot>({
  id: (names, id) => names.id(id),
  aggregate: named('aggregate'),
  purpose: 'kept',
  observedFrom: 'names nobody',
  time: 'names nobody',
  policies: each(anonymousPolicy),
  hosts: each(anonymousHost),
  servers: each(anonymousServer),
  serverGroups: each(anonymousGroup),
  migrations: each(anonymousMigration),
  endedMigrations: each(anonymousEnded),
  hostReadings: each(anonymousHostReading),
  ...vmReadings,
  forecast: anonymousForecast,
  reconstructed: anonymousReconstructed,
  problems: each(anonymousReason),
  notes: each(anonymousReason),
  scores: anonymousScores,
  profileSums: each(anonymousSum),
  cells: 'left out',
  capacity: anonymousCapacity,
});
