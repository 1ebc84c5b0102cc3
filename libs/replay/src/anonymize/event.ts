/** An event with made-up names, by the meaning of its fields. */
import { type LogEvent, type Naming, namesOf, type Shape, type StoredEvent } from '@kronos/contracts';
import type { KindOfName, Names } from './names.ts';
import { anonymousReason, quotesSnapshot } from './reasons.ts';
import { anonymousShape } from './snapshot.ts';

const fieldKinds: Readonly<Record<string, KindOfName>> = {
  serverId: 'server',
  serverName: 'serverName',
  from: 'host',
  to: 'host',
  destination: 'host',
  host: 'host',
  hostAtFault: 'host',
  requestId: 'request',
  migrationUuid: 'uuid',
  target: 'aggregate',
  oldFlavor: 'flavor',
  newFlavor: 'flavor',
  fromCell: 'cell',
  toCell: 'cell',
  project: 'project',
};
const ids = new Set(['snapshotId', 'planId', 'taskId']);
/** Words of Kronos and of Nova, times, numbers of versions, digests: they name nobody. */
const KEPT = new Set([
  'code',
  'outcome',
  'release',
  'state',
  'phase',
  'policy',
  'planner',
  'plannerVersion',
  'snapshotTime',
  'snapshot',
  'policies',
  'options',
  'decision',
  'optionsDigest',
  'errorType',
  'cause',
  'status',
  'purpose',
  'approval',
  'notBefore',
  'notAfter',
  'commandId',
]);
/** Free text of people and of Nova. */
const FREE = new Set(['comment', 'reason', 'disabledReason']);

const leftOut = (_: Names, list: readonly string[]): string[] => list.map(() => 'left out');
/** Lists of names. */
const LISTS: Readonly<Record<string, (names: Names, list: readonly string[]) => string[]>> = {
  alternates: (names, list) => names.each('host', list),
  dependsOn: (names, list) => list.map((one) => names.id(one)),
  // Fields of a server that only an executor reads, by Nova's ids.
  addresses: leftOut,
  volumes: leftOut,
  knownMigrations: leftOut,
};

/** Fields whose keys are names. */
const RECORDS: Readonly<Record<string, (names: Names, record: Readonly<Record<string, number>>) => object>> = {
  resources: (names, record) => names.customKeys(record),
  hostCells: (names, record) => names.keys('host', record),
};

export function anonymousEvent<E extends StoredEvent['event']>(names: Names, event: E): E {
  if (event.type === 'unreadable')
    return { ...event, aggregate: names.as('aggregate', event.aggregate), problem: 'left out' };
  const head = {
    ...event,
    id: names.id(event.id),
    aggregate: names.as('aggregate', event.aggregate),
    by: { ...event.by, instance: names.as(event.by.service === 'operator' ? 'person' : 'process', event.by.instance) },
    correlationId: names.id(event.correlationId),
    causationId: event.causationId === null ? null : names.id(event.causationId),
  };
  return { ...head, data: dataOf(names, event) };
}

/** The data of an event without names, by what its definition says about each field. */
function dataOf(names: Names, { type, data }: LogEvent): object {
  const words = namesOf(type);
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, named(names, words[key], key, value)]));
}

function named(names: Names, naming: Naming | undefined, key: string, value: unknown): unknown {
  if (value === null || value === undefined) return value;
  switch (naming) {
    case undefined:
    case 'nested':
      return field(names, key, value);
    case 'kept':
      return value;
    case 'id':
      return names.id(value as string);
    case 'text':
      return 'left out';
    case 'sentence':
      return names.sentence(value as string);
    case 'anywhere':
      return names.deep(value);
    case 'flavors':
      return flavorsOf(names, value as Readonly<Record<string, string>>);
    case 'shape':
      return anonymousShape(names, value as Shape);
    default:
      return names.as(naming, value as string);
  }
}

const flavorsOf = (names: Names, map: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(map).map(([from, to]) => [names.as('flavor', from), names.as('flavor', to)]));

/** A field inside another one, by its name. */
function field(names: Names, key: string, value: unknown): unknown {
  if (typeof value === 'string') {
    const kind = fieldKinds[key];
    if (kind !== undefined) return names.as(kind, value);
    if (ids.has(key)) return names.id(value);
    return KEPT.has(key) ? value : FREE.has(key) ? 'left out' : names.sentence(value);
  }
  if (Array.isArray(value)) return listOf(names, key, value);
  const record = RECORDS[key];
  if (record !== undefined) return record(names, value as Record<string, number>);
  if (key === 'detail') return names.deep(value);
  if (typeof value !== 'object' || value === null) return value;
  if (quotesSnapshot(value)) return anonymousReason(names, value);
  const plan = 'steps' in value && 'budget' in value;
  return Object.fromEntries(
    Object.entries(value).map(([inner, innerValue]) => [
      inner,
      inner === 'id' && plan ? names.id(String(innerValue)) : field(names, inner, innerValue),
    ]),
  );
}

/** A list inside another field, by its name. */
function listOf(names: Names, key: string, list: readonly unknown[]): unknown[] {
  if (key === 'groups')
    return list.map((group) =>
      typeof group === 'string' ? names.as('group', group) : groupOf(names, group as { id: string }),
    );
  const rewrite = LISTS[key];
  return rewrite === undefined ? list.map((inner) => field(names, '', inner)) : rewrite(names, list as string[]);
}

function groupOf<G extends { id: string }>(names: Names, group: G): G {
  return { ...group, id: names.as('group', group.id) };
}
