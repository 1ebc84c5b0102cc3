/** Which servers count on which hosts. Pure. */
import {
  byText,
  type GroupObservation,
  groupPolicySchema,
  type Reason,
  type RunningMigration,
  type ServerCell,
  type ServerObservation,
  some,
} from '@kronos/contracts';
import { claimsOf, type Migration, type Server, type ServerGroup } from '@kronos/openstack';
import {
  type BrokenGroup,
  brokenGroupOf,
  brokenGroupsText,
  isAbandoned,
  optedOutBy,
  placingProperties,
  serverWindows,
} from '@kronos/rules';
import type { CellsSeen, CloudLists, Fate, KnownServer, PortsSeen } from './cloud.ts';
import { note, type ProblemCode, problem, unread } from './reasons.ts';

/** A server and every host on which it counts; `host` is where it was seen last. */
interface PlacedServer {
  readonly server: Server;
  readonly host: string;
  /** Further hosts: of an earlier sight of it in the same list, and the other end of its running migration. */
  readonly alsoOn: readonly string[];
  /** All hosts on which the list showed it. */
  readonly seenOn: readonly string[];
}

/** The servers of the whole cloud, by id; made once per collect. */
export interface ServerIndex {
  readonly placed: ReadonlyMap<string, PlacedServer>;
  /** Every id in the list, those without a host too. */
  readonly listed: ReadonlySet<string>;
  /** Servers of a cell that is down: Nova does not say where they are. */
  readonly cellDown: ReadonlyMap<string, Server>;
  /** Those that somebody works on. */
  readonly migrations: readonly Migration[];
  /** Rows that Nova has abandoned: they count nowhere. */
  readonly abandoned: readonly Migration[];
}

/**
 * Reads are not atomic: a server that moves while the list is read may be in it twice. It then counts on both hosts, and
 * the sight that shows more going on (a task state) is kept.
 */
export function indexServers(
  servers: readonly Server[],
  rows: readonly Migration[],
  nowMs = Number.NEGATIVE_INFINITY,
): ServerIndex {
  const listed = new Set<string>();
  const cellDown = new Map<string, Server>();
  const sights = new Map<string, { server: Server; host: string; seenOn: string[] }>();
  for (const server of servers) {
    listed.add(server.id);
    if (server.cellDown) cellDown.set(server.id, server);
    if (server.host === null) continue;
    const earlier = sights.get(server.id);
    if (earlier === undefined) {
      sights.set(server.id, { server, host: server.host, seenOn: [server.host] });
      continue;
    }
    const busy = server.taskState === null && earlier.server.taskState !== null ? earlier.server : server;
    const seenOn = earlier.seenOn.includes(server.host) ? earlier.seenOn : [...earlier.seenOn, server.host];
    sights.set(server.id, { server: busy, host: server.host, seenOn });
  }

  const gone = new Set(rows.filter((row) => isAbandoned(row, sights.get(row.serverId)?.server, nowMs)));
  const migrations = rows.filter((row) => !gone.has(row));
  const ends = new Map<string, Set<string>>();
  for (const one of migrations) {
    const hosts = ends.get(one.serverId) ?? new Set<string>();
    for (const end of [one.sourceCompute, one.destCompute]) if (end !== null) hosts.add(end);
    ends.set(one.serverId, hosts);
  }

  const placed = new Map<string, PlacedServer>();
  for (const [id, { server, host, seenOn }] of sights) {
    const all = new Set([...seenOn, ...(ends.get(id) ?? [])]);
    all.delete(host);
    placed.set(id, { server, host, alsoOn: [...all].sort(byText), seenOn });
  }
  return { placed, listed, cellDown, migrations, abandoned: [...gone] };
}

/** The part of the cloud's servers that concerns one aggregate. */
export interface ServersSeen {
  readonly servers: readonly ServerObservation[];
  readonly migrations: readonly RunningMigration[];
  readonly serverGroups: readonly GroupObservation[];
  readonly problems: readonly Reason[];
  readonly notes: readonly Reason[];
}

export interface ServersInput {
  readonly lists: Pick<CloudLists, 'servers' | 'serverGroups' | 'migrations'>;
  readonly index: ServerIndex;
  /** Hosts of the aggregate that count; `unsure` where the service is unknown. */
  readonly hosts: readonly { readonly name: string; readonly unsure: boolean }[];
  /** Hosts of the aggregate that do not count because data are missing. */
  readonly unknownHosts: readonly string[];
  readonly optOut: readonly string[];
  /** The servers that counted on this aggregate in the snapshot before. */
  readonly known: readonly KnownServer[];
  /** The results of targeted reads of known servers that the list lacks. */
  readonly fates: ReadonlyMap<string, Fate>;
  /** NUMA cells by id, of the servers that need some. */
  readonly cells?: CellsSeen['servers'] | undefined;
  /** Absent: nobody reads ports. */
  readonly ports?: PortsSeen | undefined;
}

/** The servers, groups and running migrations of one aggregate, and what about them forbids planning. */
export function serversOf(input: ServersInput): ServersSeen {
  const { lists, index } = input;
  const problems: Reason[] = [];
  const notes: Reason[] = [];
  if (!lists.servers.ok) problems.push(unread('servers-unknown', "Nova's servers", lists.servers));
  if (!lists.serverGroups.ok)
    problems.push(unread('server-groups-unknown', "Nova's server groups", lists.serverGroups));
  if (!lists.migrations.ok)
    problems.push(unread('migrations-unknown', "Nova's unfinished migrations", lists.migrations));

  const hosts = new Set(input.hosts.map((one) => one.name));
  const unknown = new Set(input.unknownHosts);
  const here: PlacedServer[] = [];
  const onUnknown: PlacedServer[] = [];
  for (const one of index.placed.values()) {
    const on = [one.host, ...one.alsoOn];
    if (on.some((host) => hosts.has(host))) here.push(one);
    else if (on.some((host) => unknown.has(host))) onUnknown.push(one);
  }
  here.sort((a, b) => byText(a.server.id, b.server.id));

  if (onUnknown.length > 0) {
    const busy = [...new Set(onUnknown.flatMap((one) => [one.host, ...one.alsoOn]))].filter((host) =>
      unknown.has(host),
    );
    problems.push(
      problem(
        'servers-on-unknown-host',
        `servers run on hosts of the aggregate that cannot be counted: ${some(busy.sort(byText))}`,
        { hosts: busy, servers: onUnknown.length },
      ),
    );
  }
  const twice = here.filter((one) => one.seenOn.length > 1);
  if (twice.length > 0) {
    notes.push(
      note(
        'server-seen-twice',
        `seen on more than one host while the list was read, so they stay where they are: ${some(twice.map((one) => one.server.id))}`,
        { servers: twice.map((one) => one.server.id) },
      ),
    );
  }
  const withoutFlavor = here.filter((one) => one.server.flavor === null);
  if (withoutFlavor.length > 0) {
    problems.push(
      problem(
        'server-without-flavor',
        `Nova shows no flavor for ${some(withoutFlavor.map((one) => one.server.id))}, so what they need is unknown`,
        { servers: withoutFlavor.map((one) => one.server.id) },
      ),
    );
  }
  if (lists.servers.ok) problems.push(...vanished(input));

  const hereById = new Map(here.map((one) => [one.server.id, one]));
  const ids = new Set(hereById.keys());
  const abandoned = index.abandoned.filter(({ serverId }) => ids.has(serverId)).sort((a, b) => a.id - b.id);
  if (abandoned.length > 0) notes.push(abandonedNote(abandoned, index));
  const serverGroups = lists.serverGroups.ok ? groupsOf(lists.serverGroups.value, ids, problems) : [];
  const broken = serverGroups.flatMap((group) => brokenRule(group, hereById));
  if (broken.length > 0) notes.push(brokenNote(broken));
  return {
    servers: here.map((one) => observeServer(one, hosts, input)),
    migrations: index.migrations
      .filter((one) => ids.has(one.serverId))
      .map(observeMigration)
      .sort((a, b) => a.id - b.id),
    serverGroups,
    problems,
    notes,
  };
}

/** The rows that no longer count, one by one. */
function abandonedNote(rows: readonly Migration[], { placed }: ServerIndex): Reason {
  const name = ({ serverId }: Migration): string => placed.get(serverId)?.server.name ?? serverId;
  const text = `Nova no longer works on ${some(rows.map((row) => `migration ${row.id} of ${name(row)} (${row.status})`))}: not counted`;
  return note('migration-abandoned', text, {
    migrations: rows.map((row) => ({
      id: row.id,
      status: row.status,
      serverId: row.serverId,
      serverName: name(row),
      source: row.sourceCompute,
      changedAt: row.updatedAt ?? row.createdAt,
    })),
  });
}

/** A hard group whose placed members break its rule. */
interface BrokenRule extends BrokenGroup {
  readonly id: string;
}

function brokenRule(
  { id, policy, name, maxServerPerHost, members }: GroupObservation,
  here: ReadonlyMap<string, PlacedServer>,
): BrokenRule[] {
  const placed = [...new Set(members)].flatMap((member) => here.get(member) ?? []);
  const broken = brokenGroupOf(
    { policy, name, most: maxServerPerHost },
    placed.map(({ host, server }) => ({ host, name: server.name ?? server.id })),
  );
  return broken === null ? [] : [{ ...broken, id }];
}

/** Whether or not the planner repairs such groups. */
const brokenNote = (broken: readonly BrokenRule[]): Reason =>
  note('group-broken', brokenGroupsText(broken), { groups: broken.map(({ id }) => id) });

/** Servers that a problem carries on to the next snapshot; more would not fit into a message. */
const MOST_CARRIED = 2000;

/**
 * Known servers that the list lacks without having been deleted, and servers of a cell that is down: the aggregate's load
 * is then not known.
 */
function vanished({ index, hosts, known, fates }: ServersInput): Reason[] {
  const problems: Reason[] = [];
  const gone: { one: KnownServer; why: string }[] = [];
  const down: KnownServer[] = [];
  for (const one of known) {
    if (index.cellDown.has(one.id)) down.push(one);
    if (index.listed.has(one.id)) continue;
    const fate = fates.get(one.id);
    if (fate?.fate === 'deleted') continue;
    const why =
      fate === undefined
        ? 'not asked for yet'
        : fate.fate === 'exists'
          ? `Nova still has it on ${fate.host ?? 'no host'}`
          : fate.text;
    gone.push({ one, why });
  }
  if (gone.length > 0) {
    problems.push(
      problem(
        'server-vanished',
        `missing from Nova's list and not deleted: ${some(gone.map(({ one, why }) => `${one.id} of ${one.host} (${why})`))}`,
        { servers: gone.slice(0, MOST_CARRIED).map(({ one }) => ({ ...one })), missing: gone.length },
      ),
    );
  }
  const unsure = hosts.filter((one) => one.unsure).map((one) => one.name);
  if (down.length > 0 || (index.cellDown.size > 0 && unsure.length > 0)) {
    const servers = down.length > 0 ? down.map((one) => one.id) : [...index.cellDown.keys()];
    problems.push(
      problem(
        'servers-of-down-cell',
        `a cell is down: Nova does not say where ${some(servers)} ${servers.length === 1 ? 'is' : 'are'}`,
        { servers: down.slice(0, MOST_CARRIED).map((one) => ({ ...one })), missing: down.length, hosts: unsure },
      ),
    );
  }
  return problems;
}

/** Problems by which a snapshot lacks servers of its aggregate, because the hosts or the servers are not known. */
const LACKING: ReadonlySet<string> = new Set<ProblemCode>([
  'aggregates-unknown',
  'aggregate-not-found',
  'hypervisors-unknown',
  'servers-unknown',
  'servers-on-unknown-host',
]);

const staying = ({ problems }: { readonly problems: readonly Reason[] }, before: readonly KnownServer[]) =>
  problems.some(({ code }) => LACKING.has(code)) ? before : [];

/**
 * The servers that the next snapshot must find, or find deleted: those of this one, and those that this one missed. Taken
 * from the snapshot, so that any replica can go on from it; `before` was known before, and stays where the snapshot lacks servers.
 */
export function knownAfter(
  snapshot: {
    readonly servers: readonly Pick<ServerObservation, 'id' | 'name' | 'host'>[];
    readonly problems: readonly Reason[];
  },
  before: readonly KnownServer[] = [],
): KnownServer[] {
  const known = new Map(staying(snapshot, before).map((one) => [one.id, one]));
  for (const { code, detail } of snapshot.problems) {
    if (code !== 'server-vanished' && code !== 'servers-of-down-cell') continue;
    const servers = detail?.servers;
    if (!Array.isArray(servers)) continue;
    for (const one of servers) {
      if (typeof one !== 'object' || one === null || Array.isArray(one)) continue;
      const { id, name, host } = one;
      if (typeof id === 'string' && typeof name === 'string' && typeof host === 'string')
        known.set(id, { id, name, host });
    }
  }
  for (const { id, name, host } of snapshot.servers) known.set(id, { id, name, host });
  return [...known.values()];
}

/** {@link knownAfter}, and what this process knew before and has not seen to be gone. */
export function stillKnown(
  snapshot: Parameters<typeof knownAfter>[0],
  before: readonly KnownServer[],
  index: Pick<ServerIndex, 'listed'>,
  fates: ReadonlyMap<string, Fate>,
): KnownServer[] {
  const left = before.filter((one) => fates.get(one.id)?.fate !== 'deleted');
  const missed = left.filter((one) => !index.listed.has(one.id));
  const known = new Map([...missed, ...knownAfter(snapshot, left)].map((one) => [one.id, one]));
  return [...known.values()];
}

/** Where a server counts for an aggregate: one that comes from elsewhere, or was seen elsewhere last, counts on the host that is here. */
function countedOn(
  { host, alsoOn }: PlacedServer,
  hosts: ReadonlySet<string>,
): Pick<ServerObservation, 'host' | 'alsoOn' | 'listedOn'> {
  const here = hosts.has(host) ? undefined : alsoOn.find((one) => hosts.has(one));
  if (here === undefined) return { host, alsoOn: [...alsoOn] };
  return { host: here, alsoOn: [host, ...alsoOn].filter((one) => one !== here).sort(byText), listedOn: host };
}

function observeServer(
  placed: PlacedServer,
  hosts: ReadonlySet<string>,
  { optOut, cells, ports }: Pick<ServersInput, 'optOut' | 'cells' | 'ports'>,
): ServerObservation {
  const { server } = placed;
  const { flavor } = server;
  const windows = serverWindows(server);
  return {
    id: server.id,
    name: server.name ?? '',
    internalName: server.internalName,
    projectId: server.projectId,
    ...countedOn(placed, hosts),
    status: server.status,
    vmState: server.vmState,
    taskState: server.taskState,
    powerState: server.powerState,
    locked: server.locked,
    createdAt: server.createdAt,
    ...claimsOf(server),
    flavor: flavor?.name ?? null,
    ...hardwareOf(server, cells?.get(server.id)),
    ...(ports === undefined ? {} : vnicTypesOf(server, ports)),
    availabilityZone: server.availabilityZone,
    ...(server.pinnedAvailabilityZone === undefined ? {} : { pinnedAvailabilityZone: server.pinnedAvailabilityZone }),
    optedOutBy: optedOutBy(server, optOut),
    ...(windows.length === 0 ? {} : { windows }),
  };
}

function hardwareOf(
  { imageProperties }: Server,
  cells: readonly ServerCell[] | null | undefined,
): Pick<ServerObservation, 'topology' | 'imageProperties'> {
  const placing = placingProperties(imageProperties);
  return {
    ...(cells === undefined ? {} : { topology: cells === null ? null : { cells: [...cells] } }),
    ...(placing === undefined ? {} : { imageProperties: placing }),
  };
}

function vnicTypesOf({ id }: Server, { kinds }: PortsSeen): Pick<ServerObservation, 'vnicTypes'> {
  if (kinds === null) return {};
  const found = kinds.get(id);
  if (found === undefined || found === null) return { vnicTypes: null };
  return found.length === 0 ? {} : { vnicTypes: [...found] };
}

const observeMigration = (one: Migration): RunningMigration => ({
  id: one.id,
  uuid: one.uuid,
  serverId: one.serverId,
  type: one.type,
  status: one.status,
  sourceHost: one.sourceCompute,
  destHost: one.destCompute,
});

/** Groups with a member among the servers; a policy that Kronos does not know cannot be kept, so it forbids planning. */
function groupsOf(groups: readonly ServerGroup[], ids: ReadonlySet<string>, problems: Reason[]): GroupObservation[] {
  const seen: GroupObservation[] = [];
  for (const group of groups) {
    if (!group.memberIds.some((id) => ids.has(id)) || group.policy === null) continue;
    const policy = groupPolicySchema.safeParse(group.policy);
    if (!policy.success) {
      problems.push(
        problem(
          'server-group-policy-unknown',
          `the server group ${JSON.stringify(group.name)} (${group.id}) has the policy ${JSON.stringify(group.policy)}, which Kronos does not know`,
          { group: group.id },
        ),
      );
      continue;
    }
    seen.push({
      id: group.id,
      name: group.name,
      policy: policy.data,
      maxServerPerHost: group.maxServersPerHost,
      members: [...group.memberIds].sort(byText),
    });
  }
  return seen.sort((a, b) => byText(a.id, b.id));
}
