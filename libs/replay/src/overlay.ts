import { defaultEngineOptions, type HostReading, type Snapshot, timeMs } from '@kronos/contracts';
import { type Cluster, emptyMemory, observe, score } from '@kronos/placement';

/** The differences between the world of a what-if and a recorded snapshot. */
export type Overlay = {
  /** Server uuid -> the host that it is on in the what-if's world, where that is not the recorded one. */
  readonly hosts: ReadonlyMap<string, string>;
  /** Servers whose migration was Kronos's own, which the what-if did not ask for: they stand still. */
  readonly still: ReadonlySet<string>;
  /** Nova's ids of the ended migrations that were Kronos's own: in the what-if's world they never were. Absent: none. */
  readonly own?: ReadonlySet<number>;
};

/** Placement and load of a host, as moves change them. */
type Change = { readonly server: string; readonly from: string; readonly to: string };

/**
 * A recorded snapshot as it would have been with some VMs elsewhere: their hosts, what they claim, their share of each
 * host's readings (by their profiles), and the scores. Everything else stays as it was recorded.
 */
export function lay(overlay: Overlay, recorded: Snapshot): Snapshot {
  const snapshot = withoutOwn(overlay.own, recorded);
  const known = new Set(snapshot.hosts.map((host) => host.name));
  const changes = snapshot.servers.flatMap((server): Change[] => {
    const to = overlay.hosts.get(server.id);
    return to === undefined || to === server.host || !known.has(to)
      ? []
      : [{ server: server.id, from: server.host, to }];
  });
  if (changes.length === 0 && overlay.still.size === 0) return snapshot;
  const claims = claimChanges(snapshot, changes, overlay.still);
  const { cluster } = observe(snapshot, emptyMemory, { ...defaultEngineOptions, balance: true }, timeMs(snapshot.time));
  const moved = new Map(changes.map((change) => [change.server, change]));
  const laid: Snapshot = {
    ...snapshot,
    servers: snapshot.servers.map((server) => {
      const change = moved.get(server.id);
      const calm = overlay.still.has(server.id);
      if (change === undefined && !calm) return server;
      const { listedOn: _, ...here } = server;
      return {
        ...here,
        ...(change === undefined ? {} : { host: change.to }),
        ...(calm
          ? { alsoOn: [], taskState: null, status: server.status === 'MIGRATING' ? 'ACTIVE' : server.status }
          : {}),
      };
    }),
    migrations: snapshot.migrations.filter((migration) => !overlay.still.has(migration.serverId)),
    hosts: snapshot.hosts.map((host) => {
      const change = claims.get(host.name);
      if (change === undefined || host.inventory === null) return host;
      const inventory = Object.fromEntries(
        Object.entries(host.inventory).map(([name, item]) => [
          name,
          { ...item, used: Math.max(0, item.used + (change.get(name) ?? 0)) },
        ]),
      );
      return { ...host, inventory };
    }),
    hostReadings: shiftReadings(snapshot, cluster, changes),
    vmReadings: snapshot.vmReadings.map((reading) => {
      const p = cluster.policies.findIndex(({ name }) => {
        const policy = snapshot.policies.find((candidate) => candidate.name === name);
        return policy?.vmProfileQuery === reading.query && policy.vmProfileLabel === reading.label;
      });
      if (p < 0) return reading;
      const shares = new Map<string, number>();
      for (const { server, from, to } of changes) {
        const recorded = Object.hasOwn(reading.values, server) ? reading.values[server] : undefined;
        const value = shares.get(server) ?? recorded;
        if (value === undefined) continue;
        const share = Math.min(1, (value * sizeOf(cluster, from, p)) / sizeOf(cluster, to, p));
        if (share !== value) shares.set(server, share);
      }
      // Between hosts of one size nothing changes: the values of thousands of servers are not copied.
      return shares.size === 0 ? reading : { ...reading, values: { ...reading.values, ...Object.fromEntries(shares) } };
    }),
  };
  return { ...laid, scores: score({ ...laid, options: { balance: true } }) };
}

/** The migrations of the recorded Kronos would pass for somebody else's, which Kronos waits for. */
const withoutOwn = (own: Overlay['own'], snapshot: Snapshot): Snapshot =>
  own === undefined
    ? snapshot
    : { ...snapshot, endedMigrations: snapshot.endedMigrations?.filter(({ id }) => !own.has(id)) ?? null };

const sizeOf = (cluster: Cluster, host: string, policy: number): number =>
  cluster.size[(cluster.hostIndex.get(host) ?? 0) * cluster.P + policy] ?? 1;

/** The share of a VM in a host's value under one policy. */
function share(cluster: Cluster, server: string, host: string, policy: number): number {
  const vm = cluster.vmIndex.get(server);
  return vm === undefined ? 0 : (cluster.load[vm * cluster.P + policy] ?? 0) / sizeOf(cluster, host, policy);
}

/** The readings about hosts with every VM's share where the VM is. A reading that two policies use is changed once. */
function shiftReadings(snapshot: Snapshot, cluster: Cluster, changes: readonly Change[]): HostReading[] {
  return snapshot.hostReadings.map((reading) => {
    const p = cluster.policies.findIndex(({ name }) => {
      const policy = snapshot.policies.find((candidate) => candidate.name === name);
      if (policy === undefined || policy.hostLabel !== reading.label) return false;
      return policy.imbalanceQuery === reading.query || policy.capacityQuery === reading.query;
    });
    if (p < 0) return reading;
    const values = { ...reading.values };
    const add = (host: string, by: number): void => {
      const value = Object.hasOwn(values, host) ? values[host] : undefined;
      // A utilisation stays one: profiles are estimates, and their sum may miss what the host reports.
      if (value !== undefined) values[host] = Math.min(1, Math.max(0, value + by));
    };
    for (const { server, from, to } of changes) {
      add(from, -share(cluster, server, from, p));
      add(to, share(cluster, server, to, p));
    }
    return { ...reading, values };
  });
}

/** By host and resource class: what is claimed more or less. A migration that is taken back gives its second claim back. */
function claimChanges(
  snapshot: Snapshot,
  changes: readonly Change[],
  still: ReadonlySet<string>,
): Map<string, Map<string, number>> {
  const byHost = new Map<string, Map<string, number>>();
  const servers = new Map(snapshot.servers.map((server) => [server.id, server]));
  const claim = (host: string | null, server: string, sign: 1 | -1): void => {
    const resources = servers.get(server)?.resources;
    if (host === null || resources === undefined) return;
    const here = byHost.get(host) ?? new Map<string, number>();
    byHost.set(host, here);
    for (const [name, amount] of Object.entries(resources)) here.set(name, (here.get(name) ?? 0) + sign * amount);
  };
  for (const { serverId, destHost, sourceHost } of snapshot.migrations) {
    if (!still.has(serverId)) continue;
    const host = servers.get(serverId)?.host;
    claim(host === destHost ? sourceHost : destHost, serverId, -1);
  }
  for (const { server, from, to } of changes) {
    claim(from, server, -1);
    claim(to, server, 1);
  }
  return byHost;
}
