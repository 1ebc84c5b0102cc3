/** Which names snapshots and events hold, and what each of them names. */
import {
  type CycleDecided,
  type LogEvent,
  type LogEventOf,
  type Naming,
  namesOf,
  type PlanProposed,
  queriesOf,
  type Snapshot,
  type Step,
  type StoredEvent,
  vmReadingLists,
} from '@kronos/contracts';
import type { KindOfName, Names } from './names.ts';
import { learnReason, UUID } from './reasons.ts';
import { replacedProperties, replacedSpecs } from './specs.ts';

function learnServer(names: Names, server: Snapshot['servers'][number]): void {
  names.learn('server', server.id);
  names.learn('serverName', server.name);
  names.learn('value', server.internalName);
  names.learn('project', server.projectId);
  for (const host of [server.host, ...server.alsoOn]) names.learn('host', host);
  names.learn('flavor', server.flavor);
  names.learn('zone', server.availabilityZone);
  names.learn('zone', server.pinnedAvailabilityZone);
  names.learn('label', server.optedOutBy);
  const { extraSpecs, resources, imageProperties = {} } = server;
  for (const key of [extraSpecs, resources, imageProperties].flatMap(Object.keys)) names.learnCustom(key);
  for (const text of [...replacedSpecs(extraSpecs), ...replacedProperties(imageProperties)]) names.learn('value', text);
}

export function learnSnapshot(names: Names, snapshot: Snapshot): void {
  names.learn('aggregate', snapshot.aggregate);
  for (const policy of snapshot.policies) {
    for (const { query } of queriesOf(policy)) names.learn('query', query);
    for (const name of [policy.allocation, policy.resourceClass]) names.learnCustom(name ?? '');
  }
  for (const host of snapshot.hosts) learnHost(names, host);
  for (const server of snapshot.servers) learnServer(names, server);
  for (const group of snapshot.serverGroups) {
    names.learn('group', group.id);
    names.learn('groupName', group.name);
    for (const member of group.members) names.learn('server', member);
  }
  for (const migration of snapshot.migrations) {
    names.learn('uuid', migration.uuid);
    names.learn('server', migration.serverId);
    names.learn('host', migration.sourceHost);
    names.learn('host', migration.destHost);
  }
  learnEnded(names, snapshot);
  learnReadings(names, snapshot);
  for (const reason of [...snapshot.problems, ...snapshot.notes]) learnReason(names, reason);
}

function learnHost(names: Names, host: Snapshot['hosts'][number]): void {
  names.learn('host', host.name);
  names.learn('hypervisor', host.hypervisorHostname);
  names.learn('uuid', host.hypervisorId);
  names.learn('zone', host.availabilityZone);
  names.learn('cell', host.cell);
  for (const name of host.otherAggregates) names.learn('aggregate', name);
  for (const name of [...(host.traits ?? []), ...Object.keys(host.inventory ?? {})]) names.learnCustom(name);
}

function learnReadings(names: Names, snapshot: Snapshot): void {
  for (const reading of snapshot.hostReadings) {
    names.learn('query', reading.query);
    for (const host of [...Object.keys(reading.values), ...reading.missing]) names.learn('host', host);
    for (const label of reading.unmatchedLabels) names.learn('label', label);
  }
  for (const reading of vmReadingLists.flatMap((list) => snapshot[list] ?? [])) {
    names.learn('query', reading.query);
    for (const server of Object.keys(reading.values)) names.learn('server', server);
  }
}

function learnEnded(names: Names, { endedMigrations }: Snapshot): void {
  for (const { serverId, from, to } of endedMigrations ?? []) {
    names.learn('server', serverId);
    for (const host of [from, to]) names.learn('host', host);
  }
}

/** Learns the names in a decision beside its steps: its snapshot may no longer be kept. */
function learnDecided(names: Names, data: CycleDecided['data']): void {
  const { evacuations, plan, loads = [], novaRefusals = [] } = data;
  for (const { host } of [...evacuations, ...loads, ...(plan?.loads?.hosts ?? []), ...novaRefusals])
    names.learn('host', host);
  for (const { waits = [] } of evacuations) for (const { serverName } of waits) names.learn('serverName', serverName);
  for (const { serverId } of novaRefusals) names.learn('server', serverId);
  for (const id of Object.values(data.absence ?? {}).flat()) names.learn('server', id);
  for (const reason of [data.reason, ...data.warnings, ...data.stuck.map((one) => one.reason)])
    learnReason(names, reason);
  learnOthers(names, data);
}

/** Learns the names in the failures and the moves of others of a decision. */
function learnOthers(names: Names, { failover, foreign }: CycleDecided['data']): void {
  for (const failure of failover?.failures ?? []) {
    for (const host of failure.hosts) names.learn('host', host);
    for (const name of failure.names) names.learn('serverName', name);
  }
  for (const { serverId, serverName, from, to } of foreign?.moves ?? []) {
    names.learn('server', serverId);
    names.learn('serverName', serverName);
    for (const host of [from, to]) names.learn('host', host);
  }
}

function learnCellsAsked(names: Names, { aggregate, data }: LogEventOf<'cells.moveAsked'>): void {
  names.learn('aggregate', data.to);
  names.learn('project', data.project);
  for (const flavor of Object.entries(data.flavorMap).flat()) names.learn('flavor', flavor);
  for (const one of data.from) if (one !== aggregate) names.learn('host', one);
  for (const one of data.servers ?? []) names.learn(UUID.test(one) ? 'server' : 'serverName', one);
}

/** Fields that hold one name. */
const KINDS: ReadonlySet<Naming> = new Set<Naming & KindOfName>([
  'aggregate',
  'flavor',
  'host',
  'project',
  'request',
  'server',
  'serverName',
  'uuid',
]);

/** @param stays the servers that the plan could not move */
function learnPlan(names: Names, steps: readonly Step[], stays: PlanProposed['data']['refused']): void {
  for (const step of steps) {
    names.learn('aggregate', step.cell?.target);
    for (const flavor of [step.cell?.oldFlavor, step.cell?.newFlavor]) names.learn('flavor', flavor);
    for (const cell of [step.cell?.fromCell, step.cell?.toCell]) names.learn('cell', cell);
    names.learn('server', step.serverId);
    names.learn('serverName', step.serverName);
    for (const host of [step.from, step.to, ...step.alternates]) names.learn('host', host);
    for (const group of step.groups) names.learn('group', group.id);
    for (const name of Object.keys(step.resources)) names.learnCustom(name);
  }
  for (const stuck of stays) {
    names.learn('server', stuck.serverId);
    names.learn('serverName', stuck.serverName);
    names.learn('host', stuck.host);
  }
}

export function learnEvent(names: Names, event: StoredEvent['event']): void {
  names.learn('aggregate', event.aggregate);
  if (event.type === 'unreadable') return;
  names.learn(event.by.service === 'operator' ? 'person' : 'process', event.by.instance);
  switch (event.type) {
    case 'cells.moveAsked':
      learnCellsAsked(names, event);
      break;
    case 'capacity.asked':
      names.learn('flavor', event.data.shape.name);
      for (const name of Object.keys(event.data.shape.resources)) names.learnCustom(name);
      break;
    case 'cycle.decided':
      learnPlan(names, event.data.plan?.steps ?? [], event.data.stuck);
      learnDecided(names, event.data);
      break;
    case 'plan.proposed':
      names.learn('aggregate', event.data.to);
      learnPlan(names, event.data.steps, event.data.refused);
      break;
    default:
      learnFields(names, event);
  }
}

/** The fields of an event that hold one name each. */
function learnFields(names: Names, event: LogEvent): void {
  for (const [key, naming] of Object.entries(namesOf(event.type))) {
    const name = (event.data as Readonly<Record<string, unknown>>)[key];
    if (KINDS.has(naming) && typeof name === 'string') names.learn(naming as KindOfName, name);
  }
  const { data } = event;
  if ('next' in data) names.learn('host', data.next?.destination);
  if ('nova' in data) names.learn('request', data.nova?.requestId);
  if (event.type === 'migration.started') for (const group of event.data.groups) names.learn('group', group);
}
