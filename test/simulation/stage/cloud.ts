import type { ActInput, InProcessSim, Scenario } from '@kronos/simcloud';
import type { CloudRecord } from '../checker/checker.ts';
import { actIfPossible, asPerson } from '../simulatedCloud.ts';

export interface CloudActs {
  /** Null: it cannot be done to the cloud now, and is not done. */
  act(act: ActInput): Readonly<Record<string, unknown>> | null;
  /** A person opts a server out by a tag or a metadata key, or in again. Its other tags and keys stay, such as those with its windows. */
  exclude(server: string, by: 'tag' | 'metadata', yes: boolean): void;
  /** A person stops the live migration of a server in Nova, if one runs. */
  stopMigration(server: string): void;
  /** A person migrates a server cold: Nova leaves it in VERIFY_RESIZE. */
  migrateCold(server: string): void;
  endResize(server: string, how: 'confirmResize' | 'revertResize'): void;
  /** A user rescues or shelves a server, or takes that back. */
  changeState(server: string, action: 'rescue' | 'unrescue' | 'shelve' | 'unshelve'): void;
  /** A user creates another server like this one in its group, if it has one: on this host if the rule of the group lets Nova do that. */
  bootMember(server: string, name: string, host: string): void;
  /** A host is in its aggregate, or not. */
  setMember(host: string, yes: boolean): void;
  /** A host is in a second aggregate, or not: in one of Kronos where there is another, else in one that Kronos does not know. */
  setSecondAggregate(host: string, yes: boolean): void;
  /** Nova's API reaches the cells, or none. */
  reachCells(yes: boolean): void;
  /** A newer hypervisor than that of any host. */
  nextHypervisor(): number;
  hosts(): readonly string[];
  /** Hosts that a live migration leaves, or goes to, now. */
  movingHosts(): readonly string[];
  /** Servers in VERIFY_RESIZE. */
  resizedServers(): readonly string[];
  /** Those that are on a host. */
  servers(): readonly { readonly id: string; readonly name: string; readonly host: string }[];
  aggregateOf(host: string): string;
}

const EXCLUDE = 'kronos:exclude';

export function cloudActs(sim: InProcessSim, record: CloudRecord, { aggregates }: Scenario): CloudActs {
  const { cloud } = sim;
  const setMemberOf = (name: string, host: string, yes: boolean): void => {
    const others = cloud.aggregate(name).hosts.filter((each) => each !== host);
    actIfPossible(sim, { act: 'setAggregate', aggregate: name, hosts: yes ? [...others, host] : others });
  };
  return {
    act: (act) => actIfPossible(sim, act),
    exclude(server, by, yes) {
      const found = cloud.servers.get(server);
      if (found === undefined) return;
      const tags = found.tags.filter((tag) => tag !== EXCLUDE);
      const { [EXCLUDE]: _, ...metadata } = found.metadata;
      const change =
        by === 'tag'
          ? { tags: yes ? [...tags, EXCLUDE] : tags }
          : { metadata: yes ? { ...metadata, [EXCLUDE]: 'yes' } : metadata };
      actIfPossible(sim, { act: 'setServer', server, ...change });
    },
    stopMigration: (server) =>
      asPerson(sim, (nowMs, caller) => {
        const running = cloud.migrationsByServer.get(server)?.findLast(({ status }) => status === 'running');
        if (running !== undefined)
          cloud.abort(nowMs, caller, { server, migration: String(running.id) }, { queuedToo: true });
      }),
    migrateCold: (server) => asPerson(sim, (nowMs, caller) => cloud.coldMigrate(nowMs, caller, server, null)),
    endResize: (server, how) => asPerson(sim, (nowMs, caller) => cloud.endResize(nowMs, caller, server, how)),
    changeState: (server, action) =>
      asPerson(sim, (nowMs, caller) => cloud.beginStateAction(nowMs, caller, server, action)),
    bootMember(like, name, host) {
      const server = cloud.servers.get(like);
      const others = record.companions(like, host);
      if (server === undefined || others === null) return;
      const apart = others.policy.endsWith('anti-affinity');
      if (apart && (server.host === host || others.members.length > 0)) return;
      const wanted = { name, flavor: server.flavor.name, host: apart ? host : server.host, pinnedZone: null };
      const group = cloud.groupOf.get(like)?.name ?? null;
      asPerson(sim, (nowMs, caller) => cloud.bootServer(nowMs, caller, { ...wanted, group, metadata: {}, tags: [] }));
    },
    setMember(host, yes) {
      const name = aggregates.find((each) => each.hosts.includes(host))?.name;
      if (name !== undefined) setMemberOf(name, host, yes);
    },
    setSecondAggregate(host, yes) {
      const name = aggregates.find((each) => !each.hosts.includes(host))?.name ?? 'unknown-to-kronos';
      actIfPossible(sim, { act: 'createAggregate', aggregate: { name } });
      setMemberOf(name, host, yes);
    },
    reachCells(yes) {
      for (const cell of new Set([...cloud.hosts.values()].map((host) => host.cell)))
        actIfPossible(sim, { act: 'setCell', cell, reachable: yes });
    },
    nextHypervisor: () => Math.max(...[...cloud.hosts.values()].map((host) => host.hypervisorVersion)) + 1,
    hosts: () => [...cloud.hosts.keys()],
    movingHosts: () => record.running().flatMap(({ source, dest }) => (dest === null ? [source] : [source, dest])),
    resizedServers: () =>
      [...cloud.servers.values()].flatMap(({ uuid, vmState }) => (vmState === 'resized' ? [uuid] : [])),
    servers: () =>
      [...cloud.servers.values()].flatMap(({ uuid, name, host }) => (host === '' ? [] : [{ id: uuid, name, host }])),
    aggregateOf: (host) => aggregates.find((each) => each.hosts.includes(host))?.name ?? aggregates[0]?.name ?? '',
  };
}
