/** The cloud at a time of the past, in the words of Nova, from the lives of its servers. Pure. */
import { byText, type Reconstructed } from '@kronos/contracts';
import type { Capacity, CloudLists } from '@kronos/observation';
import {
  type Aggregate,
  type ComputeService,
  flavorResources,
  type Hypervisor,
  type Migration,
  type Server,
  type ServerGroup,
} from '@kronos/openstack';
import {
  flavorNumbers,
  isDeleted,
  type Life,
  type PastMove,
  rebuildLife,
  type ServerRecord,
  segmentAt,
} from './lives.ts';

/** What Nova and Placement have, as it was read. */
export type NovaHistory = {
  /** Ms since the epoch. */
  readonly readMs: number;
  /** Changes of servers are known from this time on; ms since the epoch. */
  readonly sinceMs: number;
  readonly aggregates: readonly Aggregate[];
  readonly services: readonly ComputeService[];
  readonly hypervisors: readonly Hypervisor[];
  readonly serverGroups: readonly ServerGroup[];
  readonly records: readonly Omit<ServerRecord, 'readMs'>[];
  /** Providers by hypervisor id: capacity as of the reading. */
  readonly capacity: readonly (readonly [string, NonNullable<ReturnType<Capacity['providers']['get']>>])[];
  /** Reads that failed, one sentence each. */
  readonly failures: readonly string[];
};

/** What is not known at a time: how many of each. */
type Unknown = Reconstructed['unknown'];

/** The cloud at one time. */
export type CloudThen = {
  readonly lists: CloudLists;
  readonly capacity: Capacity;
  /** Servers whose flavor then is not known: they show today's. */
  readonly flavorUnknown: ReadonlySet<string>;
  readonly unknown: Unknown;
};

export type Past = {
  readonly lives: readonly Life[];
  readonly moves: readonly PastMove[];
  /** As of the reading: Nova keeps no history of them. */
  readonly aggregates: readonly Aggregate[];
  /** The services of hosts are as they are today: see {@link withDown}. */
  readonly at: (atMs: number) => CloudThen;
};

const list = <T>(value: T) => ({ ok: true, value }) as const;

/** The past that a reading of Nova tells of. */
export function pastOf(history: NovaHistory): Past {
  const flavors = flavorNumbers(history.records);
  const lives = history.records.map((record) => rebuildLife({ ...record, readMs: history.readMs }, flavors));
  lives.sort((a, b) => byText(a.server.id, b.server.id));
  const moves = lives
    .flatMap((life) => life.moves)
    .filter(({ endedMs }) => endedMs >= history.sinceMs)
    .sort((a, b) => a.endedMs - b.endedMs);
  const others = claimsOfOthers(history);
  return {
    lives,
    moves,
    aggregates: history.aggregates,
    at(atMs) {
      const seen = serversAt(lives, atMs);
      return {
        lists: {
          aggregates: list(history.aggregates),
          services: list(history.services),
          hypervisors: list(history.hypervisors),
          servers: list(seen.servers),
          serverGroups: list(history.serverGroups),
          migrations: list(seen.migrations),
        },
        capacity: capacityThen(history, others, seen),
        flavorUnknown: seen.flavorUnknown,
        unknown: seen.unknown,
      };
    },
  };
}

/** The lists with the services of these hosts down and all others up. */
export function withDown(lists: CloudLists, downHosts: ReadonlySet<string>): CloudLists {
  if (!lists.services.ok) return lists;
  const services = lists.services.value.map((service): ComputeService => {
    const state = downHosts.has(service.host) ? 'down' : 'up';
    return service.state === state ? service : { ...service, state };
  });
  return { ...lists, services: list(services) };
}

type Seen = {
  readonly servers: readonly Server[];
  readonly migrations: readonly Migration[];
  readonly flavorUnknown: ReadonlySet<string>;
  readonly unknown: Unknown;
};

const VM_STATES: Readonly<Record<string, string>> = {
  ACTIVE: 'active',
  SHUTOFF: 'stopped',
  PAUSED: 'paused',
  SUSPENDED: 'suspended',
  RESCUE: 'rescued',
  SHELVED_OFFLOADED: 'shelved_offloaded',
  ERROR: 'error',
};
const POWER: Readonly<Record<string, number>> = { ACTIVE: 1, PAUSED: 3, SHUTOFF: 4 };

function serversAt(lives: readonly Life[], atMs: number): Seen {
  const servers: Server[] = [];
  const migrations: Migration[] = [];
  const flavorUnknown = new Set<string>();
  let hostUnknown = 0;
  let actionsUnread = 0;
  for (const life of lives) {
    const segment = segmentAt(life, atMs);
    if (segment === null) continue;
    if (life.actionsUnread) actionsUnread += 1;
    if (segment.unknown.host) {
      hostUnknown += 1;
      continue;
    }
    if (segment.unknown.flavor) flavorUnknown.add(life.server.id);
    const moving = life.underWay.find(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs);
    if (moving !== undefined) migrations.push({ ...moving.migration, status: statusThen(moving, atMs) });
    servers.push(serverThen(life.server, segment, moving?.migration ?? null));
  }
  const unknown = Object.fromEntries(
    Object.entries({
      serversWithoutHost: hostUnknown,
      serversWithoutActions: actionsUnread,
      flavors: flavorUnknown.size,
    }).filter(([, n]) => n > 0),
  );
  return { servers, migrations, flavorUnknown, unknown };
}

const statusThen = ({ movedMs, migration }: Life['underWay'][number], atMs: number): string =>
  migration.type !== 'live-migration' && atMs >= movedMs ? 'finished' : 'running';

function serverThen(
  server: Server,
  { host, status, flavor }: Life['segments'][number],
  moving: Migration | null,
): Server {
  const live = moving?.type === 'live-migration';
  const taskState = moving === null ? null : live ? 'migrating' : 'resize_migrating';
  const shown = moving === null ? status : live ? 'MIGRATING' : 'RESIZE';
  if (
    !isDeleted(server) &&
    server.host === host &&
    server.flavor === flavor &&
    server.status === shown &&
    server.taskState === taskState
  )
    return server;
  return {
    ...server,
    host,
    hypervisorHostname: server.host === host ? server.hypervisorHostname : null,
    flavor,
    status: shown,
    vmState: VM_STATES[status] ?? server.vmState,
    powerState: POWER[status] ?? server.powerState,
    taskState,
    fault: null,
  };
}

/** The claims of servers, by the hypervisor's id and resource class. */
type Claims = Map<string, Map<string, number>>;

function claimsOf(
  servers: readonly Server[],
  migrations: readonly Migration[],
  idOf: ReadonlyMap<string, string>,
): Claims {
  const claims: Claims = new Map();
  const ends = Map.groupBy(migrations, ({ serverId }) => serverId);
  for (const server of servers) {
    if (server.flavor === null) continue;
    const hosts = new Set(server.host === null ? [] : [server.host]);
    for (const { sourceCompute, destCompute } of ends.get(server.id) ?? [])
      for (const end of [sourceCompute, destCompute]) if (end !== null) hosts.add(end);
    const resources = Object.entries(
      flavorResources(server.flavor, {
        bootFromVolume: server.bootFromVolume,
        imageProperties: server.imageProperties,
      }),
    );
    for (const host of hosts) {
      const id = idOf.get(host);
      if (id === undefined) continue;
      const own = claims.get(id) ?? new Map<string, number>();
      claims.set(id, own);
      for (const [name, amount] of resources) own.set(name, (own.get(name) ?? 0) + amount);
    }
  }
  return claims;
}

const hypervisorIds = ({ hypervisors }: NovaHistory): Map<string, string> =>
  new Map(hypervisors.map((one) => [one.service.host, one.id]));

/** What Placement counts today beyond the servers that Nova shows: it is taken to have been the same all along. */
function claimsOfOthers(history: NovaHistory): Claims {
  const alive = history.records.flatMap(({ server }) => (isDeleted(server) ? [] : [server]));
  const open = history.records.flatMap(({ migrations }) =>
    migrations.filter(({ status }) => ['queued', 'preparing', 'running', 'finished'].includes(status)),
  );
  const today = claimsOf(alive, open, hypervisorIds(history));
  return new Map(
    history.capacity.map(([id, { inventory }]) => [
      id,
      new Map(
        Object.entries(inventory).map(([name, { used }]) => [
          name,
          Math.max(0, used - (today.get(id)?.get(name) ?? 0)),
        ]),
      ),
    ]),
  );
}

function capacityThen(history: NovaHistory, others: Claims, { servers, migrations }: Seen): Capacity {
  const claims = claimsOf(servers, migrations, hypervisorIds(history));
  const providers = new Map(
    history.capacity.map(([id, { inventory, traits }]) => [
      id,
      {
        traits,
        inventory: Object.fromEntries(
          Object.entries(inventory).map(([name, item]) => [
            name,
            { ...item, used: (claims.get(id)?.get(name) ?? 0) + (others.get(id)?.get(name) ?? 0) },
          ]),
        ),
      },
    ]),
  );
  return { providers, failures: new Map(), failure: null };
}
