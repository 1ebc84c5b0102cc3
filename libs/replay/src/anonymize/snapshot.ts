/**
 * A snapshot with made-up names: field by field. What names nobody stays as it is. What only a plan between cells depends on is left
 * out: such a plan of an anonymized recording is not replayed.
 */
import { type Policy, policyQueries, queriesOf, type Shape, type Snapshot, type VmReading } from '@kronos/contracts';
import { parseWindow } from '@kronos/rules';
import type { Names } from './names.ts';
import { anonymousProperties, anonymousSpecs } from './specs.ts';

const anonymousReadings = (names: Names, readings: readonly VmReading[]): VmReading[] =>
  readings.map((reading) => ({
    ...reading,
    query: names.as('query', reading.query),
    text: names.sentence(reading.text),
    values: names.keys('server', reading.values),
  }));

export const anonymousShape = (names: Names, shape: Shape): Shape => ({
  name: names.as('flavor', shape.name),
  resources: names.customKeys(shape.resources),
  requiredTraits: shape.requiredTraits.map((trait) => names.custom(trait)),
  forbiddenTraits: shape.forbiddenTraits.map((trait) => names.custom(trait)),
  ...(shape.cells === undefined ? {} : { cells: shape.cells }),
});

const anonymousQueries = (names: Names, policy: Policy): Partial<Policy> =>
  Object.fromEntries(queriesOf(policy).map(({ use, query }) => [policyQueries[use].field, names.as('query', query)]));

const anonymousMigrations = (
  names: Names,
  { migrations, endedMigrations }: Snapshot,
): Pick<Snapshot, 'migrations' | 'endedMigrations'> => ({
  migrations: migrations.map((migration) => ({
    ...migration,
    uuid: names.asOrNull('uuid', migration.uuid),
    serverId: names.as('server', migration.serverId),
    sourceHost: names.asOrNull('host', migration.sourceHost),
    destHost: names.asOrNull('host', migration.destHost),
  })),
  ...(endedMigrations === undefined
    ? {}
    : {
        endedMigrations:
          endedMigrations?.map((ended) => ({
            ...ended,
            serverId: names.as('server', ended.serverId),
            from: names.as('host', ended.from),
            to: names.as('host', ended.to),
          })) ?? null,
      }),
});

type Server = Snapshot['servers'][number];

const anonymousServer = (names: Names, server: Server): Server => ({
  ...server,
  id: names.as('server', server.id),
  name: names.as('serverName', server.name),
  internalName: names.asOrNull('value', server.internalName),
  projectId: names.asOrNull('project', server.projectId),
  host: names.as('host', server.host),
  alsoOn: names.each('host', server.alsoOn),
  resources: names.customKeys(server.resources),
  flavor: names.asOrNull('flavor', server.flavor),
  extraSpecs: anonymousSpecs(names, server.extraSpecs),
  ...(server.imageProperties === undefined
    ? {}
    : { imageProperties: anonymousProperties(names, server.imageProperties) }),
  availabilityZone: names.asOrNull('zone', server.availabilityZone),
  ...('pinnedAvailabilityZone' in server
    ? { pinnedAvailabilityZone: names.asOrNull('zone', server.pinnedAvailabilityZone) }
    : {}),
  optedOutBy: names.asOrNull('label', server.optedOutBy),
  // A window that cannot be read stays unreadable, and names nothing.
  ...(server.windows === undefined
    ? {}
    : { windows: server.windows.map((text) => (parseWindow(text).ok ? text : 'left out')) }),
});

export const anonymousSnapshot = (names: Names, { cells: _, ...snapshot }: Snapshot): Snapshot => ({
  ...snapshot,
  id: names.id(snapshot.id),
  aggregate: names.as('aggregate', snapshot.aggregate),
  policies: snapshot.policies.map((policy) => ({
    ...policy,
    ...anonymousQueries(names, policy),
    ...(policy.resourceClass === undefined ? {} : { resourceClass: names.custom(policy.resourceClass) }),
  })),
  hosts: snapshot.hosts.map((host) => ({
    ...host,
    name: names.as('host', host.name),
    hypervisorHostname: names.as('hypervisor', host.hypervisorHostname),
    hypervisorId: names.as('uuid', host.hypervisorId),
    availabilityZone: names.asOrNull('zone', host.availabilityZone),
    cell: names.asOrNull('cell', host.cell),
    service: { ...host.service, disabledReason: host.service.disabledReason === null ? null : 'left out' },
    inventory: host.inventory === null ? null : names.customKeys(host.inventory),
    traits: host.traits?.map((trait) => names.custom(trait)) ?? null,
    otherAggregates: names.each('aggregate', host.otherAggregates),
  })),
  servers: snapshot.servers.map((server) => anonymousServer(names, server)),
  serverGroups: snapshot.serverGroups.map((group) => ({
    ...group,
    id: names.as('group', group.id),
    name: names.as('groupName', group.name),
    members: names.each('server', group.members),
  })),
  ...anonymousMigrations(names, snapshot),
  hostReadings: snapshot.hostReadings.map((reading) => ({
    ...reading,
    query: names.as('query', reading.query),
    text: names.sentence(reading.text),
    values: names.keys('host', reading.values),
    missing: names.each('host', reading.missing),
    unmatchedLabels: names.each('label', reading.unmatchedLabels),
  })),
  vmReadings: anonymousReadings(names, snapshot.vmReadings),
  ...(snapshot.moveCostReadings === undefined
    ? {}
    : { moveCostReadings: anonymousReadings(names, snapshot.moveCostReadings) }),
  ...(snapshot.forecast === undefined
    ? {}
    : {
        forecast: {
          ...snapshot.forecast,
          readings: snapshot.forecast.readings.map((reading) => ({
            ...reading,
            query: names.as('query', reading.query),
            text: names.sentence(reading.text),
            days: reading.days.map(({ ago, servers }) => ({ ago, servers: names.keys('server', servers) })),
          })),
        },
      }),
  ...(snapshot.capacity === undefined
    ? {}
    : {
        capacity: {
          ...snapshot.capacity,
          asked: { ...snapshot.capacity.asked, shape: anonymousShape(names, snapshot.capacity.asked.shape) },
        },
      }),
  problems: names.deep(snapshot.problems),
  notes: names.deep(snapshot.notes),
  scores: {
    ...snapshot.scores,
    policies: snapshot.scores.policies.map((policy) => ({
      ...policy,
      reason: names.deep(policy.reason),
      hosts: names.keys('host', policy.hosts),
      ...(policy.sizes === undefined
        ? {}
        : { sizes: { ...policy.sizes, resourceClass: names.custom(policy.sizes.resourceClass) } }),
    })),
  },
  ...(snapshot.profileSums === undefined
    ? {}
    : { profileSums: snapshot.profileSums.map((one) => ({ ...one, host: names.as('host', one.host) })) }),
});
