import type { LogEvent, Snapshot, StoredEvent } from '@kronos/contracts';
import { ALL, aggregateToken, UNASSIGNED } from '@kronos/contracts';
import { parseWindow } from '@kronos/rules';

/** What a name names. Names of one kind keep their order, so that a decision which sorts by them stays the same. */
const kinds = {
  aggregate: (n: string) => `aggregate-${n}`,
  host: (n: string) => `host-${n}`,
  hypervisor: (n: string) => `hypervisor-${n}`,
  server: (n: string) => `00000000-0000-4000-8000-${n.padStart(12, '0')}`,
  serverName: (n: string) => `vm-${n}`,
  uuid: (n: string) => `11111111-0000-4000-8000-${n.padStart(12, '0')}`,
  project: (n: string) => `project-${n}`,
  zone: (n: string) => `zone-${n}`,
  cell: (n: string) => `cell-${n}`,
  group: (n: string) => `22222222-0000-4000-8000-${n.padStart(12, '0')}`,
  groupName: (n: string) => `group-${n}`,
  flavor: (n: string) => `flavor-${n}`,
  query: (n: string) => `query_${n}`,
  label: (n: string) => `label-${n}`,
  person: (n: string) => `person-${n}`,
  process: (n: string) => `process-${n}`,
  request: (n: string) => `req-${n}`,
  custom: (n: string) => `CUSTOM_${n}`,
  value: (n: string) => `value-${n}`,
} as const;
type Kind = keyof typeof kinds;

/** Names of Kronos's own, which name nobody. */
const OWN = new Set<string>([UNASSIGNED, ALL, '']);
const CUSTOM = /CUSTOM_[A-Z0-9_]+/g;
/** Extra specs of Nova's that decisions and people read; others may say anything. */
const KNOWN_SPEC = /^(hw|hw_video|os|quota|trait\d*|resources\d*|accel|pci_passthrough):/;
const PLAIN_VALUE =
  /^(true|false|yes|no|on|off|\d+(\.\d+)?|required|forbidden|shared|dedicated|isolate|prefer|require|any|large|small|\d\.\d)$/i;

/** Replaces names and ids by made-up ones, the same everywhere. First it learns all names, then it is settled, then it rewrites. */
export type Anonymizer = {
  learnSnapshot(snapshot: Snapshot): void;
  learnEvent(event: StoredEvent['event']): void;
  settle(): void;
  snapshot(snapshot: Snapshot): Snapshot;
  event<E extends StoredEvent['event']>(event: E): E;
  aggregate(name: string): string;
  /** Every name that it replaces, for a check that none is left. */
  names(): readonly string[];
};

export function anonymizer(): Anonymizer {
  const learnt = new Map<Kind, Set<string>>();
  const maps = new Map<Kind, Map<string, string>>();
  /** Every name, for sentences; the longest come first. */
  let anywhere = new Map<string, string>();
  let lengths: readonly number[] = [];

  function learn(kind: Kind, name: string | null | undefined): void {
    if (name === null || name === undefined || OWN.has(name)) return;
    const names = learnt.get(kind) ?? new Set();
    learnt.set(kind, names);
    names.add(name);
  }

  const as = (kind: Kind, name: string): string =>
    OWN.has(name) ? name : (maps.get(kind)?.get(name) ?? kinds[kind]('0'));
  const asOrNull = <T extends string | null | undefined>(kind: Kind, name: T): T =>
    (typeof name === 'string' ? as(kind, name) : name) as T;
  const each = (kind: Kind, names: readonly string[]): string[] => names.map((name) => as(kind, name));
  const custom = (text: string): string => text.replaceAll(CUSTOM, (name) => as('custom', name));
  const keys = <V>(kind: Kind, record: Readonly<Record<string, V>>): Record<string, V> =>
    Object.fromEntries(Object.entries(record).map(([key, value]) => [as(kind, key), value]));
  const customKeys = <V>(record: Readonly<Record<string, V>>): Record<string, V> =>
    Object.fromEntries(Object.entries(record).map(([key, value]) => [custom(key), value]));

  /** Learns every name of a snapshot; what it rewrites is thrown away. */
  const specs = (
    record: Readonly<Record<string, string>>,
    onValue: (value: string) => string,
  ): Record<string, string> =>
    Object.fromEntries(
      Object.entries(record).flatMap(([key, value]) =>
        KNOWN_SPEC.test(key) ? [[custom(key), PLAIN_VALUE.test(value) ? value : onValue(value)]] : [],
      ),
    );

  /** A sentence or a name of unknown kind: every name in it that stands as a word of its own is replaced. */
  function sentence(text: string): string {
    const whole = anywhere.get(text);
    if (whole !== undefined) return whole;
    let out = '';
    for (let i = 0; i < text.length; ) {
      const startsWord = i === 0 || !/[\p{L}\p{N}_]/u.test(text.charAt(i - 1));
      const length = startsWord
        ? lengths.find(
            (n) =>
              i + n <= text.length && anywhere.has(text.slice(i, i + n)) && !/[\p{L}\p{N}_]/u.test(text.charAt(i + n)),
          )
        : undefined;
      if (length === undefined) {
        out += text.charAt(i);
        i += 1;
      } else {
        out += anywhere.get(text.slice(i, i + length)) ?? '';
        i += length;
      }
    }
    return custom(out);
  }

  /** Any JSON value of which nothing is known but that it holds names somewhere. */
  function deep<T>(value: T): T {
    if (typeof value === 'string') return sentence(value) as T;
    if (Array.isArray(value)) return value.map(deep) as T;
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [anywhere.get(key) ?? key, deep(inner)]),
    ) as T;
  }

  /** Ids of snapshots, plans, tasks and messages: they begin with, or hold, the token of an aggregate. */
  function id(text: string): string {
    for (const [name, other] of maps.get('aggregate') ?? []) {
      const token = aggregateToken(name);
      const at = text.startsWith(`${token}-`) || text === token ? 0 : text.indexOf(`:${token}`) + 1;
      const before = at > 0 || text.startsWith(token);
      const end = at + token.length;
      if (before && text.startsWith(token, at) && (end === text.length || '-:'.includes(text.charAt(end))))
        return text.slice(0, at) + aggregateToken(other) + text.slice(end);
    }
    return text;
  }

  const forEachName = (snapshot: Snapshot): void => {
    learn('aggregate', snapshot.aggregate);
    for (const policy of snapshot.policies)
      for (const query of [policy.imbalanceQuery, policy.vmProfileQuery, policy.capacityQuery, policy.hostSizeQuery])
        learn('query', query);
    for (const host of snapshot.hosts) {
      learn('host', host.name);
      learn('hypervisor', host.hypervisorHostname);
      learn('uuid', host.hypervisorId);
      learn('zone', host.availabilityZone);
      learn('cell', host.cell);
      for (const name of host.otherAggregates) learn('aggregate', name);
      for (const name of [...(host.traits ?? []), ...Object.keys(host.inventory ?? {})]) learnCustom(name);
    }
    for (const server of snapshot.servers) {
      learn('server', server.id);
      learn('serverName', server.name);
      learn('value', server.internalName);
      learn('project', server.projectId);
      for (const host of [server.host, ...server.alsoOn]) learn('host', host);
      learn('flavor', server.flavor);
      learn('zone', server.availabilityZone);
      learn('zone', server.pinnedAvailabilityZone);
      learn('label', server.optedOutBy);
      for (const key of [...Object.keys(server.extraSpecs), ...Object.keys(server.resources)]) learnCustom(key);
      specs(server.extraSpecs, (value) => {
        learn('value', value);
        return value;
      });
    }
    for (const group of snapshot.serverGroups) {
      learn('group', group.id);
      learn('groupName', group.name);
      for (const member of group.members) learn('server', member);
    }
    for (const migration of snapshot.migrations) {
      learn('uuid', migration.uuid);
      learn('server', migration.serverId);
      learn('host', migration.sourceHost);
      learn('host', migration.destHost);
    }
    for (const reading of snapshot.hostReadings) {
      learn('query', reading.query);
      for (const host of [...Object.keys(reading.values), ...reading.missing]) learn('host', host);
      for (const label of reading.unmatchedLabels) learn('label', label);
    }
    for (const reading of snapshot.vmReadings) {
      learn('query', reading.query);
      for (const server of Object.keys(reading.values)) learn('server', server);
    }
  };

  const learnCustom = (text: string): void => {
    for (const name of text.match(CUSTOM) ?? []) learn('custom', name);
  };

  function learnEvent(event: StoredEvent['event']): void {
    learn('aggregate', event.aggregate);
    if (event.type === 'unreadable') return;
    learn(event.by.service === 'operator' ? 'person' : 'process', event.by.instance);
    if (event.type === 'cycle.decided') {
      for (const step of event.data.plan?.steps ?? []) {
        learn('server', step.serverId);
        learn('serverName', step.serverName);
        for (const host of [step.from, step.to, ...step.alternates]) learn('host', host);
        for (const group of step.groups) learn('group', group.id);
        for (const name of Object.keys(step.resources)) learnCustom(name);
      }
      for (const stuck of event.data.stuck) {
        learn('server', stuck.serverId);
        learn('serverName', stuck.serverName);
        learn('host', stuck.host);
      }
      for (const { host } of event.data.evacuations) learn('host', host);
      return;
    }
    const { data } = event;
    if ('serverId' in data) learn('server', data.serverId);
    if ('from' in data) learn('host', data.from);
    if ('destination' in data) learn('host', data.destination);
    if ('host' in data) learn('host', data.host);
    if ('hostAtFault' in data) learn('host', data.hostAtFault);
    if ('next' in data) learn('host', data.next?.destination);
    if ('requestId' in data) learn('request', data.requestId);
    if ('nova' in data) learn('request', data.nova?.requestId);
    if (event.type === 'migration.started') for (const group of event.data.groups) learn('group', group);
  }

  return {
    learnSnapshot: forEachName,
    learnEvent,
    settle() {
      for (const [kind, names] of learnt) {
        const sorted = [...names].sort((a, b) => (a < b ? -1 : 1));
        const digits = String(sorted.length).length;
        maps.set(kind, new Map(sorted.map((name, i) => [name, kinds[kind](String(i + 1).padStart(digits, '0'))])));
      }
      anywhere = new Map([...maps.values()].flatMap((map) => [...map]));
      lengths = [...new Set([...anywhere.keys()].map((name) => name.length))].sort((a, b) => b - a);
    },
    aggregate: (name) => as('aggregate', name),
    names: () => [...anywhere.keys()],
    snapshot: (snapshot) => ({
      ...snapshot,
      id: id(snapshot.id),
      aggregate: as('aggregate', snapshot.aggregate),
      policies: snapshot.policies.map((policy) => ({
        ...policy,
        imbalanceQuery: as('query', policy.imbalanceQuery),
        vmProfileQuery: as('query', policy.vmProfileQuery),
        capacityQuery: asOrNull('query', policy.capacityQuery),
        hostSizeQuery: asOrNull('query', policy.hostSizeQuery),
      })),
      hosts: snapshot.hosts.map((host) => ({
        ...host,
        name: as('host', host.name),
        hypervisorHostname: as('hypervisor', host.hypervisorHostname),
        hypervisorId: as('uuid', host.hypervisorId),
        availabilityZone: asOrNull('zone', host.availabilityZone),
        cell: asOrNull('cell', host.cell),
        service: { ...host.service, disabledReason: host.service.disabledReason === null ? null : 'left out' },
        inventory: host.inventory === null ? null : customKeys(host.inventory),
        traits: host.traits?.map(custom) ?? null,
        otherAggregates: each('aggregate', host.otherAggregates),
      })),
      servers: snapshot.servers.map((server) => ({
        ...server,
        id: as('server', server.id),
        name: as('serverName', server.name),
        internalName: asOrNull('value', server.internalName),
        projectId: asOrNull('project', server.projectId),
        host: as('host', server.host),
        alsoOn: each('host', server.alsoOn),
        resources: customKeys(server.resources),
        flavor: asOrNull('flavor', server.flavor),
        extraSpecs: specs(server.extraSpecs, (value) => as('value', value)),
        availabilityZone: asOrNull('zone', server.availabilityZone),
        ...('pinnedAvailabilityZone' in server
          ? { pinnedAvailabilityZone: asOrNull('zone', server.pinnedAvailabilityZone) }
          : {}),
        optedOutBy: asOrNull('label', server.optedOutBy),
        // What cannot be read still cannot, and says nothing.
        ...(server.windows === undefined
          ? {}
          : { windows: server.windows.map((text) => (parseWindow(text).ok ? text : 'left out')) }),
      })),
      serverGroups: snapshot.serverGroups.map((group) => ({
        ...group,
        id: as('group', group.id),
        name: as('groupName', group.name),
        members: each('server', group.members),
      })),
      migrations: snapshot.migrations.map((migration) => ({
        ...migration,
        uuid: asOrNull('uuid', migration.uuid),
        serverId: as('server', migration.serverId),
        sourceHost: asOrNull('host', migration.sourceHost),
        destHost: asOrNull('host', migration.destHost),
      })),
      hostReadings: snapshot.hostReadings.map((reading) => ({
        ...reading,
        query: as('query', reading.query),
        text: sentence(reading.text),
        values: keys('host', reading.values),
        missing: each('host', reading.missing),
        unmatchedLabels: each('label', reading.unmatchedLabels),
      })),
      vmReadings: snapshot.vmReadings.map((reading) => ({
        ...reading,
        query: as('query', reading.query),
        text: sentence(reading.text),
        values: keys('server', reading.values),
      })),
      problems: deep(snapshot.problems),
      notes: deep(snapshot.notes),
      scores: {
        ...snapshot.scores,
        policies: snapshot.scores.policies.map((policy) => ({
          ...policy,
          reason: deep(policy.reason),
          hosts: keys('host', policy.hosts),
        })),
      },
    }),
    event(event) {
      if (event.type === 'unreadable')
        return { ...event, aggregate: as('aggregate', event.aggregate), problem: 'left out' };
      const head = {
        ...event,
        id: id(event.id),
        aggregate: as('aggregate', event.aggregate),
        by: { ...event.by, instance: as(event.by.service === 'operator' ? 'person' : 'process', event.by.instance) },
        correlationId: id(event.correlationId),
        causationId: event.causationId === null ? null : id(event.causationId),
      };
      return { ...head, data: dataOf(event) };
    },
  };

  /** What an event says, by the meaning of its fields; every type has some of them. */
  function dataOf(event: LogEvent): object {
    if (event.type === 'planner.configured') return event.data;
    return Object.fromEntries(Object.entries(event.data).map(([key, value]) => [key, field(key, value)]));
  }

  function field(key: string, value: unknown): unknown {
    if (typeof value === 'string') {
      const kind = fieldKinds[key];
      if (kind !== undefined) return as(kind, value);
      if (ids.has(key)) return id(value);
      return KEPT.has(key) ? value : FREE.has(key) ? 'left out' : sentence(value);
    }
    if (key === 'groups' && Array.isArray(value))
      return value.map((group: unknown) =>
        typeof group === 'string' ? as('group', group) : groupOf(group as { id: string }),
      );
    if (key === 'alternates') return each('host', value as string[]);
    if (key === 'dependsOn') return (value as string[]).map(id);
    if (key === 'resources') return customKeys(value as Record<string, number>);
    if (key === 'detail') return deep(value);
    if (Array.isArray(value)) return value.map((inner: unknown) => field('', inner));
    if (typeof value !== 'object' || value === null) return value;
    const plan = 'steps' in value && 'budget' in value;
    return Object.fromEntries(
      Object.entries(value).map(([inner, innerValue]) => [
        inner,
        inner === 'id' && plan ? id(String(innerValue)) : field(inner, innerValue),
      ]),
    );
  }

  function groupOf<G extends { id: string }>(group: G): G {
    return { ...group, id: as('group', group.id) };
  }
}

const fieldKinds: Readonly<Record<string, Kind>> = {
  serverId: 'server',
  serverName: 'serverName',
  from: 'host',
  to: 'host',
  destination: 'host',
  host: 'host',
  hostAtFault: 'host',
  requestId: 'request',
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
  'status',
  'purpose',
  'approval',
  'notBefore',
  'notAfter',
  'commandId',
]);
/** What people and Nova wrote freely. */
const FREE = new Set(['comment', 'reason']);
