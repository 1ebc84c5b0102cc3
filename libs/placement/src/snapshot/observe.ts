import {
  type CompleteEngineOptions,
  type HostObservation,
  iso,
  isoOrNull,
  type Reason,
  type ServerObservation,
  type Snapshot,
  timeMs,
} from '@kronos/contracts';
import { isUp, traitsOf } from '@kronos/facts';
import { asksForCpu, cellNeedsOf, hostBreaker, type ServerWindow, serverWindow } from '@kronos/rules';
import { sortedBy } from '../base/sort.ts';
import { buildCluster, type HostPart, type VmPart } from '../cluster/build.ts';
import { type Cluster, idleAims, type PolicyModel } from '../cluster/cluster.ts';
import type { ReasonCode } from '../reasons.ts';
import { foreignHolds } from './foreign.ts';
import type { InFlightTask, Memory } from './memory.ts';
import { costsOf } from './moveCost.ts';
import { profile } from './profiles.ts';
import { type NovaWords, refusedServers } from './refused.ts';
import { isCounted, type JudgedPolicy, judgePolicies } from './scoring.ts';
import { type Ground, own, remembered, unmovable } from './unmovable.ts';

/** A snapshot with the past applied to it: the start state of a plan. */
export type Observed = {
  /** Enabled policies, by name. `cluster.policies` has those that take part, in this order. */
  readonly judged: readonly JudgedPolicy[];
  readonly cluster: Cluster;
  /** The reasons that VMs may not move, with the facts; by server uuid. */
  readonly vmGrounds: ReadonlyMap<string, Ground>;
  /** VMs that only an evacuation may move (on a disabled host, too young, moved by others, or outside their own windows); by server uuid. */
  readonly evacuationOnlyGrounds: ReadonlyMap<string, Ground>;
  /** End of the open window of each VM with its own windows, ms since the epoch; by server uuid. */
  readonly vmWindowEnds: ReadonlyMap<string, number>;
  /** The reasons that hosts are no destinations, with the facts; by host name. */
  readonly hostGrounds: ReadonlyMap<string, Ground>;
  /** Server uuid -> host that Nova refused for servers of its shape -> Nova's words. */
  readonly refused: NovaWords;
  readonly notes: readonly Reason[];
  /** Servers whose host in the start state differs from the snapshot; by server uuid. */
  readonly assumed: ReadonlyMap<string, Assumed>;
};

/** A released move that has not ended is assumed to be done. */
export type Assumed = {
  /** Host of the server in the snapshot. */
  readonly observed: string;
  /** Host of the server in the start state. */
  readonly host: string;
  /** The moves that lead to it, in their order. */
  readonly tasks: readonly {
    readonly taskId: string;
    /** Time of the current attempt's start; null while it waits for its start. */
    readonly startedAt: string | null;
  }[];
};

function modelsOf(taking: readonly JudgedPolicy[], options: CompleteEngineOptions): PolicyModel[] {
  const pack = taking.some(({ policy }) => policy.mode === 'pack');
  return taking.map((one) => modelOf(one, options, pack));
}

/** @param pack some policy that takes part is in pack mode */
function modelOf({ policy, acts }: JudgedPolicy, options: CompleteEngineOptions, pack: boolean): PolicyModel {
  const { name, weight, threshold, target, capacityThreshold } = policy;
  return {
    name,
    weight,
    ...(acts === false
      ? idleAims(threshold)
      : { threshold, target: Math.min(threshold, target ?? options.targetRatio * threshold) }),
    capacityThreshold: pack ? (capacityThreshold ?? 0) : Number.POSITIVE_INFINITY,
  };
}

/**
 * Makes the cluster of a snapshot. It judges the readings, fills in the profiles, and applies every released, unfinished move to
 * placements, groups and scores. The capacity of such a move counts on both hosts.
 *
 * @param now ms since the epoch: the snapshot's time, never less than the last decided one's.
 */
export function observe(snapshot: Snapshot, memory: Memory, options: CompleteEngineOptions, now: number): Observed {
  const judged = judgePolicies({ ...snapshot, options });
  const refused = refusedServers(snapshot, memory, now);
  const taking = judged.filter((j) => j.reason === null);
  const hosts = new Map(snapshot.hosts.map((host) => [host.name, host]));
  const servers = mergeServers(snapshot.servers, hosts);
  const migrations = endsOfMigrations(snapshot);
  const profiles = taking.map((j) => profile(j, servers, snapshot.vmReadings));
  const given = { snapshot, memory, options, now, taking, hosts, servers, migrations };
  const { vmGrounds, evacuationOnlyGrounds, vmWindowEnds } = groundsOf(given, profiles);
  const costs = costsOf(snapshot, memory, options, now);
  const assumed = new Map<string, Assumed>();
  const ahead: Ahead = { shifts: [], claims: claimsFromElsewhere(given) };
  const afterMoves = movesAhead(given, ahead);
  const vms = servers.map((server, i): VmPart => {
    const weight = profiles.map((of) => of[i] ?? 0);
    const { at, way, ...after } = afterMoves(server, weight);
    if (at !== server.host) assumed.set(server.id, { observed: server.host, host: at, tasks: way });
    return {
      id: server.id,
      name: server.name,
      host: at,
      ...after,
      resources: resourcesOf(server),
      refusal: vmGrounds.get(server.id)?.code ?? null,
      pin: server.pinnedAvailabilityZone,
      requiredTraits: traitsOf(server, 'required'),
      forbiddenTraits: traitsOf(server, 'forbidden'),
      ...refusedBy(refused, server),
      ...hardwareOf(server, at),
      ramMb: server.ramMb,
      diskGb: server.diskGb,
      vcpus: server.vcpus,
      ...costs(server),
      evacuationOnly: evacuationOnlyGrounds.get(server.id)?.code ?? null,
    };
  });

  const { hostGrounds, parts } = hostPartsOf(given, ahead);
  const cluster = buildCluster({
    policies: modelsOf(taking, options),
    hosts: parts,
    vms,
    groups: snapshot.serverGroups,
    restrictToAz: options.restrictToAz,
    softPenalty: options.softRules === 'penalty' ? options.softPenalty : null,
    allowUnknownCells: options.moveUnknownTopology,
    anyCpu: options.cpuCompatibility === 'ignore',
  });
  return {
    judged,
    cluster,
    vmGrounds,
    evacuationOnlyGrounds,
    vmWindowEnds,
    hostGrounds,
    refused,
    notes: snapshot.notes,
    assumed,
  };
}

/** The input of {@link observe}, and what its parts read of the snapshot. */
type Given = {
  readonly snapshot: Snapshot;
  readonly memory: Memory;
  readonly options: CompleteEngineOptions;
  readonly now: number;
  /** The policies that take part. */
  readonly taking: readonly JudgedPolicy[];
  readonly hosts: ReadonlyMap<string, HostObservation>;
  readonly servers: readonly ServerObservation[];
  /** By server uuid: the hosts at the ends of its running migrations. */
  readonly migrations: ReadonlyMap<string, readonly string[]>;
};

/** Why servers do not move, or move only with an evacuation, and how long their own windows are open. */
function groundsOf(
  { snapshot, memory, options, now, taking, hosts, servers, migrations }: Given,
  profiles: readonly (readonly (number | null)[])[],
): Pick<Observed, 'vmGrounds' | 'evacuationOnlyGrounds' | 'vmWindowEnds'> {
  const vmGrounds = new Map<string, Ground>();
  const evacuationOnlyGrounds = new Map<string, Ground>();
  const vmWindowEnds = new Map<string, number>();
  const movable = { devices: options.movableDevices, vtpmMoves: snapshot.vtpmMoves };
  const windowOf = vmWindows(options, now);
  const waits = waiting({ snapshot, memory, options, now });
  for (const [i, server] of servers.entries()) {
    const host = hosts.get(server.host);
    const window = windowOf(server);
    if (window.endMs !== null) vmWindowEnds.set(server.id, window.endMs);
    const ground =
      (host === undefined ? null : remembered(server.id, memory, options, now)) ??
      (host === undefined ? null : unmovable(server, host, { migrating: migrations.has(server.id) }, movable)) ??
      window.hard ??
      missingProfile(taking, profiles, i);
    if (ground !== null) vmGrounds.set(server.id, ground);
    const evacuationOnly = waits(server, host) ?? window.soft;
    if (evacuationOnly !== null) evacuationOnlyGrounds.set(server.id, evacuationOnly);
  }
  return { vmGrounds, evacuationOnlyGrounds, vmWindowEnds };
}

/** The changes of unfinished moves on hosts, in the order of servers and moves. */
type Ahead = {
  readonly shifts: { readonly host: string; readonly policy: number; readonly by: number }[];
  /** The claims that Nova had not made yet. */
  readonly claims: { readonly host: string; readonly task: InFlightTask }[];
};

/** Applies the unfinished moves of a server: gives its place and its shares after them, and adds to `ahead` what changes on the hosts. */
function movesAhead(
  { snapshot, memory, taking, hosts, migrations }: Given,
  ahead: Ahead,
): (
  server: ServerObservation,
  weight: readonly number[],
) => Pick<VmPart, 'alsoOn' | 'weight'> & { readonly at: string; readonly way: Assumed['tasks'] } {
  const tasks = Map.groupBy(
    sortedBy(memory.inFlight, (task) => task.taskId),
    ({ serverId }) => serverId,
  );
  return (server, observed) => {
    let at = server.host;
    let alsoOn: readonly string[] = [...server.alsoOn, ...(migrations.get(server.id) ?? [])];
    let weight = observed;
    const way: Assumed['tasks'][number][] = [];
    for (const task of wayOf(server, tasks.get(server.id) ?? [])) {
      alsoOn = [...alsoOn, task.from, task.destination];
      if (at !== task.from || !hosts.has(task.destination)) continue;
      at = task.destination;
      way.push({ taskId: task.taskId, startedAt: isoOrNull(task.startedAtMs) });
      const ofTask = taking.map((j) => own(task.weights, j.policy.name) ?? { source: 0, destination: 0 });
      for (const [policy, { source, destination }] of ofTask.entries())
        ahead.shifts.push({ host: task.from, policy, by: -source }, { host: at, policy, by: destination });
      weight = ofTask.map((w) => w.destination);
      if (!claimSeen(task, snapshot)) ahead.claims.push({ host: at, task });
    }
    return { at, alsoOn, weight, way };
  };
}

/** The claims of servers that come from hosts of other aggregates. */
function claimsFromElsewhere({ snapshot, memory, servers }: Given): Ahead['claims'] {
  const tasks = memory.inFlight.filter(({ aggregate }) => aggregate !== undefined);
  if (tasks.length === 0) return [];
  const own = new Set(servers.map(({ id }) => id));
  return tasks
    .filter((task) => !own.has(task.serverId) && !claimSeen(task, snapshot))
    .map((task) => ({ host: task.destination, task }));
}

/** The hosts after the unfinished moves, and the reasons that some are no destinations. */
function hostPartsOf(
  { memory, options, now, taking, hosts }: Given,
  { shifts, claims }: Ahead,
): Pick<Observed, 'hostGrounds'> & { readonly parts: HostPart[] } {
  const hostGrounds = new Map<string, Ground>();
  const shifted = (value: number, host: string, policy: number): number => {
    let sum = value;
    for (const shift of shifts) if (shift.host === host && shift.policy === policy) sum += shift.by;
    return sum;
  };
  const parts = [...hosts.values()].map((host): HostPart => {
    const ground = hostGround(host, memory, options, now);
    if (ground !== null) hostGrounds.set(host.name, ground);
    return {
      name: host.name,
      zone: host.availabilityZone,
      cell: host.cell,
      hypervisorType: host.hypervisorType,
      hypervisorVersion: host.hypervisorVersion,
      traits: host.traits,
      score: taking.map((j, p) => shifted(j.values.get(host.name) ?? 0, host.name, p)),
      size: taking.map((j) => j.sizes.get(host.name) ?? 1),
      fullness: taking.map((j, p) => shifted(j.capacities.get(host.name) ?? 0, host.name, p)),
      counted: isCounted(host),
      refusal: ground?.code ?? null,
      leaving:
        isUp(host.service) &&
        host.service.status === 'disabled' &&
        (options.evacuateDisabledHosts || memory.draining?.includes(host.name) === true),
      inventory: claimed(host, claims),
      ...hostCellsOf(host),
    };
  });
  return { parts, hostGrounds };
}

/** The inventory of a host with the claims that will come. */
function claimed({ name, inventory }: HostObservation, claims: Ahead['claims']): HostPart['inventory'] {
  const here = claims.filter(({ host }) => host === name);
  if (inventory === null || here.length === 0) return inventory;
  return Object.fromEntries(
    Object.entries(inventory).map(([resourceClass, item]) => {
      let used = item.used;
      for (const { task } of here) used += own(task.resources, resourceClass) ?? 0;
      return [resourceClass, { ...item, used }];
    }),
  );
}

/** Server uuid -> hosts at the ends of its running migrations. */
function endsOfMigrations({ migrations }: Pick<Snapshot, 'migrations'>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { serverId, sourceHost, destHost } of migrations) {
    const ends = found.get(serverId) ?? [];
    for (const host of [sourceHost, destHost]) if (host !== null) ends.push(host);
    found.set(serverId, ends);
  }
  return found;
}

function refusedBy(refused: NovaWords, { id }: ServerObservation): Pick<VmPart, 'refusedBy'> {
  const hosts = [...(refused.get(id)?.keys() ?? [])];
  return hosts.length === 0 ? {} : { refusedBy: hosts.sort() };
}

/** The needs of a server in NUMA cells and CPUs. On a host to which it is still moving, its cells are not known. */
function hardwareOf(server: ServerObservation, at: string): Pick<VmPart, 'cells' | 'anyCpu'> {
  const { imageAsksCpu = false, imageProperties = {}, extraSpecs } = server;
  const cpu = imageAsksCpu || asksForCpu(imageProperties) || asksForCpu(extraSpecs) ? { anyCpu: true } : {};
  const needs = cellNeedsOf(server);
  if (needs === null) return cpu;
  if (needs === 'unknown' || at === server.host) return { ...cpu, cells: needs };
  return { ...cpu, cells: needs.map((need) => ({ ...need, hostCell: null })) };
}

/** The cells of a host, with Nova's ratios at most: Placement's amounts without what is reserved. */
function hostCellsOf({ topology, inventory }: HostObservation): Pick<HostPart, 'cells' | 'cellRatios'> {
  if (topology === undefined) return {};
  const ratio = (name: string): number => {
    const item = inventory === null ? undefined : own(inventory, name);
    return item?.total === undefined || item.total <= 0 ? 1 : item.capacity / item.total;
  };
  return { cells: topology?.cells ?? null, cellRatios: { cpu: ratio('VCPU'), memory: ratio('MEMORY_MB') } };
}

/** Whether Nova had made the claim of an unfinished move when the snapshot was observed. */
export const claimSeen = (task: InFlightTask, snapshot: Snapshot): boolean =>
  task.startedAtMs !== null &&
  task.startedAtMs <= timeMs(snapshot.observedFrom) &&
  snapshot.migrations.some((m) => m.serverId === task.serverId && m.destHost === task.destination);

/** The unfinished moves of a server, in their order: a parked server has two. */
function wayOf(server: ServerObservation, tasks: readonly InFlightTask[]): readonly InFlightTask[] {
  const way: InFlightTask[] = [];
  let rest = [...tasks];
  for (let at = server.host; rest.length > 0; ) {
    const next = rest.find((task) => task.from === at) ?? rest[0];
    if (next === undefined) break;
    way.push(next);
    rest = rest.filter((task) => task !== next);
    at = next.destination;
  }
  return way;
}

/** One entry per server, by uuid. A server that was seen on two hosts is on the first and also counts on the other. */
function mergeServers(
  servers: readonly ServerObservation[],
  hosts: ReadonlyMap<string, HostObservation>,
): ServerObservation[] {
  const merged = new Map<string, ServerObservation>();
  const known = servers.filter((server) => hosts.has(server.host));
  for (const server of sortedBy(known, (s) => `${s.id} ${s.host}`)) {
    const first = merged.get(server.id);
    if (first === undefined) merged.set(server.id, server);
    else merged.set(server.id, { ...first, alsoOn: [...first.alsoOn, ...server.alsoOn, server.host] });
  }
  return [...merged.values()];
}

function missingProfile(
  taking: readonly JudgedPolicy[],
  profiles: readonly (readonly (number | null)[])[],
  i: number,
): Ground | null {
  for (const [p, j] of taking.entries())
    if (profiles[p]?.[i] === null) return { code: 'vm-no-profile', detail: { policy: j.policy.name } };
  return null;
}

/** The reason that only an evacuation may move a server: the executor cancels any other move off a disabled host. */
function sourceDisabled(host: HostObservation | undefined): Ground | null {
  return host?.service.status === 'disabled' ? { code: 'vm-source-disabled', detail: { host: host.name } } : null;
}

/** The reason that a server is too young to be moved; null when it is old enough. A server of unknown age is too young. */
function tooYoung(
  server: ServerObservation,
  { minInstanceAgeSeconds }: CompleteEngineOptions,
  now: number,
): Ground | null {
  if (minInstanceAgeSeconds === 0) return null;
  if (server.createdAt === null) return { code: 'vm-too-young', detail: { minAgeSeconds: minInstanceAgeSeconds } };
  const end = timeMs(server.createdAt) + 1000 * minInstanceAgeSeconds;
  return now < end ? { code: 'vm-too-young', detail: { until: iso(end) } } : null;
}

/** The reason that only an evacuation moves a server, except for its own windows: its host, its age, or moves of others. */
function waiting(
  input: Parameters<typeof foreignHolds>[0] & { readonly options: CompleteEngineOptions },
): (server: ServerObservation, host: HostObservation | undefined) => Ground | null {
  const holds = foreignHolds(input);
  const held = (id: string): Ground | null => {
    const untilMs = holds.get(id);
    return untilMs === undefined ? null : { code: 'vm-moved-by-others', detail: { until: iso(untilMs) } };
  };
  return (server, host) => sourceDisabled(host) ?? tooYoung(server, input.options, input.now) ?? held(server.id);
}

/** The effect of a VM's own windows. */
type VmWindow = {
  /** The reason that it does not move at all. */
  readonly hard: Ground | null;
  /** The reason that only an evacuation moves it. */
  readonly soft: Ground | null;
  /** End of its open window, ms since the epoch; null: it has no windows of its own. */
  readonly endMs: number | null;
};
const NO_WINDOW: VmWindow = { hard: null, soft: null, endMs: null };

/** Many VMs have the same windows: each text is parsed once. */
export function vmWindows(options: CompleteEngineOptions, now: number): (server: ServerObservation) => VmWindow {
  const { timezone, evacuationIgnoresWindows } = options;
  const known = new Map<string, VmWindow>();
  const judged = (window: ServerWindow, text: string): VmWindow => {
    if (window.kind === 'open') return { ...NO_WINDOW, endMs: window.endMs };
    if (window.kind === 'unreadable')
      return {
        ...NO_WINDOW,
        hard: { code: 'vm-window-unreadable', detail: { windows: text, problem: window.problem } },
      };
    const until = window.untilMs === null ? {} : { until: iso(window.untilMs) };
    const closed: Ground = { code: 'vm-outside-window', detail: { windows: text, ...until } };
    return { ...NO_WINDOW, [evacuationIgnoresWindows ? 'soft' : 'hard']: closed };
  };
  return ({ windows }) => {
    if (windows === undefined || windows.length === 0) return NO_WINDOW;
    const text = windows.join(', ');
    const before = known.get(text);
    if (before !== undefined) return before;
    const found = judged(serverWindow(windows, timezone, now), text);
    known.set(text, found);
    return found;
  };
}

/** The reason that a host is no destination; null when it is one. */
export function hostGround(
  host: HostObservation,
  memory: Memory,
  options: CompleteEngineOptions,
  now: number,
): Ground | null {
  const { state, status, forcedDown, disabledReason } = host.service;
  const is = (code: ReasonCode, detail: Ground['detail'] = {}): Ground => ({ code, detail });
  if (state === 'unknown' || status === 'unknown') return is('host-unknown', { state, status });
  if (state !== 'up') return is('host-down');
  if (forcedDown) return is('host-forced-down');
  if (status !== 'enabled') return is('host-disabled', disabledReason === null ? {} : { reason: disabledReason });
  if (memory.draining?.includes(host.name) === true) return is('host-draining');
  const brokenUntil = hostBreaker(own(memory.hostFailures, host.name) ?? [], now, options);
  if (brokenUntil !== null) return is('host-broken', { until: iso(brokenUntil) });
  if (host.inventory === null) return is('host-capacity-unknown');
  return null;
}

/** The claim of a server; from its flavor when the snapshot has no claim of Placement. */
export function resourcesOf(server: ServerObservation): Readonly<Record<string, number>> {
  if (Object.keys(server.resources).length > 0) return server.resources;
  const claim: Record<string, number> = { VCPU: server.vcpus, MEMORY_MB: server.ramMb };
  if (server.diskGb > 0 && !server.bootFromVolume) claim.DISK_GB = server.diskGb;
  return claim;
}
