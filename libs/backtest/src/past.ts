/** The cloud at a time of the past, in the words of Nova, from the lives of its servers. Pure. */
import { byText, type Reconstructed } from '@kronos/contracts';
import type { Capacity, CloudLists } from '@kronos/observation';
import {
  type Aggregate,
  type ComputeService,
  type Flavor,
  flavorResources,
  type Hypervisor,
  type Migration,
  type Server,
  type ServerGroup,
} from '@kronos/openstack';
import {
  type FormerMove,
  flavorNumbers,
  isCold,
  isDeleted,
  rebuildLife,
  type Segment,
  type ServerLife,
  type ServerRecord,
  segmentAt,
  type UnderWay,
} from './lives.ts';

/** The answers of Nova and Placement at one reading. */
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

/** Numbers of servers and flavors that are not known at a time. */
type Unknown = Reconstructed['unknown'];

/** The cloud at one time. */
export type CloudThen = {
  readonly lists: CloudLists;
  readonly capacity: Capacity;
  /** Servers whose flavor then is not known: they show today's. */
  readonly flavorUnknown: ReadonlySet<string>;
  readonly unknown: Unknown;
};

export type CloudPast = {
  readonly moves: readonly FormerMove[];
  /** As of the reading: Nova keeps no history of them. */
  readonly aggregates: readonly Aggregate[];
  /** The services of hosts are as they are today: see {@link withDown}. */
  readonly at: (atMs: number) => CloudThen;
};

const list = <T>(value: T) => ({ ok: true, value }) as const;

/** The past that a reading of Nova tells of. */
export function pastOfCloud(history: NovaHistory): CloudPast {
  const flavors = flavorNumbers(history.records);
  const lives = history.records.map((record) => rebuildLife({ ...record, readMs: history.readMs }, flavors));
  lives.sort((a, b) => byText(a.server.id, b.server.id));
  const moves = lives
    .flatMap((life) => life.moves)
    .filter(({ endedMs }) => endedMs >= history.sinceMs)
    .sort((a, b) => a.endedMs - b.endedMs);
  const others = claimsOfOthers(history, lives);
  return {
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
  readonly claims: readonly Claim[];
  readonly flavorUnknown: ReadonlySet<string>;
  readonly unknown: Unknown;
};

/** The claim of a server on one host. */
type Claim = { readonly host: string; readonly server: Server; readonly flavor: Flavor };

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

function serversAt(lives: readonly ServerLife[], atMs: number): Seen {
  const servers: Server[] = [];
  const migrations: Migration[] = [];
  const claims: Claim[] = [];
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
    const moving = life.underWay.find(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs) ?? null;
    if (moving !== null) migrations.push({ ...moving.migration, status: statusThen(moving, atMs) });
    const server = serverThen(life.server, segment, moving === null ? null : stageOf(moving, atMs));
    servers.push(server);
    for (const [host, flavor] of endsOf(life, segment, moving, atMs))
      if (host !== null && flavor !== null) claims.push({ host, server, flavor });
  }
  const unknown = Object.fromEntries(
    Object.entries({
      serversWithoutHost: hostUnknown,
      serversWithoutActions: actionsUnread,
      flavors: flavorUnknown.size,
    }).filter(([, n]) => n > 0),
  );
  return { servers, migrations, claims, flavorUnknown, unknown };
}

/** Where a migration is. A cold one that has arrived waits for somebody to confirm it. */
type Stage = 'copied' | 'moved cold' | 'unconfirmed';

const stageOf = ({ movedMs, migration }: UnderWay, atMs: number): Stage =>
  !isCold(migration) ? 'copied' : atMs >= movedMs ? 'unconfirmed' : 'moved cold';

const statusThen = (moving: UnderWay, atMs: number): string =>
  stageOf(moving, atMs) === 'unconfirmed' ? 'finished' : 'running';

/** Status and task state that Nova shows of a server at each stage of a migration. */
const SHOWN: Readonly<Record<Stage, { readonly status: string; readonly taskState: string | null }>> = {
  copied: { status: 'MIGRATING', taskState: 'migrating' },
  'moved cold': { status: 'RESIZE', taskState: 'resize_migrating' },
  unconfirmed: { status: 'VERIFY_RESIZE', taskState: null },
};

/** Host and flavor of each claim. A migration claims on both hosts until it ends, on each with the flavor of its side. */
function endsOf(
  life: ServerLife,
  now: Segment,
  moving: UnderWay | null,
  atMs: number,
): (readonly [host: string | null, flavor: Flavor | null])[] {
  const own = [now.host, now.flavor] as const;
  if (moving === null) return [own];
  const { fromMs, movedMs, migration } = moving;
  const arrived = atMs >= movedMs;
  const other = segmentAt(life, arrived ? fromMs : movedMs);
  return [own, [arrived ? migration.sourceCompute : migration.destCompute, other?.flavor ?? now.flavor]];
}

function serverThen(server: Server, { host, status, flavor }: Segment, stage: Stage | null): Server {
  const { status: shown, taskState } = stage === null ? { status, taskState: null } : SHOWN[stage];
  // The last power state that a compute reported says nothing about former days.
  const powerState = POWER[status] ?? server.powerState;
  if (
    !isDeleted(server) &&
    server.host === host &&
    server.flavor === flavor &&
    server.status === shown &&
    server.taskState === taskState &&
    server.powerState === powerState
  )
    return server;
  return {
    ...server,
    host,
    hypervisorHostname: server.host === host ? server.hypervisorHostname : null,
    flavor,
    status: shown,
    vmState: stage === 'unconfirmed' ? 'resized' : (VM_STATES[status] ?? server.vmState),
    powerState,
    taskState,
    fault: null,
  };
}

/** The claims of servers, by the hypervisor's id and resource class. */
type Claims = Map<string, Map<string, number>>;

function claimsOf(claims: readonly Claim[], idOf: ReadonlyMap<string, string>): Claims {
  const found: Claims = new Map();
  for (const { host, server, flavor } of claims) {
    const id = idOf.get(host);
    if (id === undefined) continue;
    const own = found.get(id) ?? new Map<string, number>();
    found.set(id, own);
    const { bootFromVolume, imageProperties } = server;
    for (const [name, amount] of Object.entries(flavorResources(flavor, { bootFromVolume, imageProperties })))
      own.set(name, (own.get(name) ?? 0) + amount);
  }
  return found;
}

const hypervisorIds = ({ hypervisors }: NovaHistory): Map<string, string> =>
  new Map(hypervisors.map((one) => [one.service.host, one.id]));

/** The claims in Placement today beyond those of the servers that Nova shows. A backtest assumes that they never changed. */
function claimsOfOthers(history: NovaHistory, lives: readonly ServerLife[]): Claims {
  // A move that is under way at the reading lasts until then.
  const today = claimsOf(serversAt(lives, history.readMs - 1).claims, hypervisorIds(history));
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

function capacityThen(history: NovaHistory, others: Claims, seen: Seen): Capacity {
  const claims = claimsOf(seen.claims, hypervisorIds(history));
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
