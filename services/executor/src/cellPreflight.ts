/** Pre-flight of a move between cells: is it still right, by what the cloud itself says now? The decisions are pure. */
import type { Aggregate, NamedFlavor, Server } from '@kronos/openstack';
import { optedOutBy, serverWindow, serverWindows } from '@kronos/rules';
import { cancelled } from './failure.ts';
import {
  type CheckedCloud,
  type CheckOptions,
  destinationRefused,
  type HostFacts,
  hasRoom,
  judgeRoom,
  NEWEST,
  no,
  readGroups,
  refuse,
  serverOrGone,
  serviceOf,
} from './preflight.ts';
import type { CheckedCell, Task, Verdict } from './taskStages.ts';

/** First half: the server, the services, the aggregates, the flavor. Null: nothing stands against it so far. */
function judgeCell(
  task: Task,
  facts: HostFacts,
  flavors: readonly NamedFlavor[] | null,
  options: CheckOptions,
): Verdict | null {
  const { server } = facts;
  if (server === 'gone') return no(cancelled('server-gone', 'Nova does not know the server'));
  if (server.cellDown) return { kind: 'unreachable', text: "the server's cell is down" };
  const { cell } = task;
  if (cell === undefined) return no(cancelled('no-method', 'the task does not say how its server moves between cells'));
  const settled = server.vmState === 'active' || server.vmState === 'stopped';
  if (server.host !== task.from && settled && reached(task).includes(server.host ?? ''))
    return { kind: 'there', host: server.host ?? '' };
  if (server.host !== task.from)
    return no(cancelled('moved-by-others', `the server is on ${server.host ?? 'no host'}: somebody else moved it`));
  return (
    judgeServer(server, options) ?? judgeFlavor(task, server, flavors) ?? judgePlaces(task, server, facts, options)
  );
}

/** The destinations up to the current one. */
const reached = (task: Task): readonly string[] => {
  const tried = [task.to, ...task.alternates];
  return [...tried.slice(0, tried.indexOf(task.destination) + 1), task.destination];
};

function judgeServer(server: Server, options: CheckOptions): Verdict | null {
  const optOut = optedOutBy(server, options.optOut);
  if (optOut !== null) return no(cancelled('excluded', `the server is opted out by ${optOut}`));
  const window = serverWindow(serverWindows(server), options.timezone, options.nowMs);
  if (window.kind === 'closed') return no(cancelled('window-closed', "the server's own window is closed"));
  if (window.kind === 'unreadable')
    return no(cancelled('window-unreadable', "the server's own window (kronos:window) cannot be read"));
  if (server.locked) {
    const why = server.lockedReason === null ? '' : `: ${server.lockedReason}`;
    return refuse('PreFlightError', 'none', 'server-locked', `the server is locked${why}`);
  }
  if (server.vmState !== 'active' && server.vmState !== 'stopped')
    return refuse('PreFlightError', 'none', 'server-state', `the server is ${server.vmState ?? server.status}`);
  if (server.taskState !== null)
    return refuse('PreFlightError', 'infrastructure', 'server-busy', `the server is busy: ${server.taskState}`);
  // Nova would leave it as it is now, and what it should be nobody knows.
  if (server.powerState === null)
    return refuse('PreFlightError', 'infrastructure', 'power-unknown', 'Nova does not say whether the guest runs');
  return null;
}

function judgeFlavor({ cell }: Task, { flavor }: Server, flavors: readonly NamedFlavor[] | null): Verdict | null {
  if (cell === undefined) return null;
  if (cell.oldFlavor !== null && flavor !== null && flavor.name !== cell.oldFlavor)
    return no(cancelled('flavor-changed', `the server has flavor ${flavor.name}, and the plan says ${cell.oldFlavor}`));
  if (cell.method === 'migrate' || flavors?.some(({ name }) => name === cell.newFlavor) === true) return null;
  return refuse('PreFlightError', 'none', 'flavor-unknown', `Nova has no flavor ${cell.newFlavor ?? '(none named)'}`);
}

function judgePlaces(task: Task, server: Server, facts: HostFacts, options: CheckOptions): Verdict | null {
  const source = serviceOf(facts.services, task.from);
  if (source === null || source.state !== 'up' || source.forcedDown)
    return refuse('NovaClientError', 'infrastructure', 'source-down', `nova-compute on ${task.from} is not up`);
  const destination = serviceOf(facts.services, task.destination);
  if (destination === null)
    return destinationRefused(task, 'destination-unknown', `Nova has no nova-compute on ${task.destination}`);
  if (destination.state !== 'up' || destination.forcedDown)
    return destinationRefused(task, 'destination-down', `nova-compute on ${task.destination} is not up`);
  if (destination.status !== 'enabled')
    return destinationRefused(task, 'destination-disabled', `nova-compute on ${task.destination} is disabled`);
  const member = judgeMembers(task, facts.aggregates, options);
  if (member !== null) return member;
  const pinned = server.pinnedAvailabilityZone ?? null;
  if (pinned === null || pinned === destination.zone) return null;
  const text = `the server is pinned to zone ${pinned}; ${task.destination} is in ${destination.zone}`;
  return destinationRefused(task, 'zone-pinned', text);
}

function judgeMembers(task: Task, aggregates: readonly Aggregate[], options: CheckOptions): Verdict | null {
  const { aggregate, from, destination, cell } = task;
  const target = cell?.target ?? '';
  const holding = (host: string) => aggregates.filter((a) => a.hosts.includes(host)).map((a) => a.name);
  if (!holding(from).includes(aggregate)) return no(cancelled('source-left', `${from} left aggregate ${aggregate}`));
  const there = holding(destination);
  if (!there.includes(target))
    return destinationRefused(task, 'destination-left', `${destination} is not in aggregate ${target}`);
  const other = there.find((name) => name !== target && options.aggregates.includes(name));
  if (other === undefined) return null;
  return destinationRefused(task, 'two-aggregates', `${destination} is in ${target} and in ${other}, both in scope`);
}

/** What goes onto the log with the start. */
function startOf(
  { cell }: Task,
  server: Server,
  flavors: readonly NamedFlavor[] | null,
  known: readonly string[],
): CheckedCell | null {
  if (cell === undefined) return null;
  const { method, newFlavor } = cell;
  const oldFlavor = server.flavor?.name ?? cell.oldFlavor;
  const flavorId = method === 'migrate' ? null : (flavors?.find(({ name }) => name === newFlavor)?.id ?? null);
  return {
    method,
    oldFlavor,
    newFlavor: method === 'migrate' ? oldFlavor : newFlavor,
    flavorId,
    before: {
      vmState: server.vmState ?? '',
      powerState: server.powerState,
      addresses: [...server.addresses].sort(),
      volumes: [...server.volumeIds].sort(),
    },
    knownMigrations: [...new Set(known)],
  };
}

/** Reads the cloud and judges. Throws what the clients throw. */
export async function cellPreflight(
  task: Task,
  cloud: CheckedCloud,
  options: CheckOptions,
  signal: AbortSignal,
): Promise<Verdict> {
  const { nova } = cloud;
  // Refused as `not-allowed` where Nova would ignore the named host.
  if (task.cell?.method === 'migrate') await nova.versionFor('coldMigrate', { signal });
  const [server, services, aggregates, migrations, flavors] = await Promise.all([
    serverOrGone(nova, task.serverId, signal),
    nova.listServices({ signal }),
    nova.listAggregates({ signal }),
    nova.listMigrations({ serverId: task.serverId, limit: NEWEST }, { signal }),
    task.cell?.method === 'resize' ? nova.listFlavors({ signal }) : null,
  ]);
  const hosts: HostFacts = { server, services, aggregates, migrations };
  const first = judgeCell(task, hosts, flavors, options);
  if (first !== null || server === 'gone')
    return first ?? no(cancelled('server-gone', 'Nova does not know the server'));
  const known = migrations.map(({ uuid }) => uuid);
  const cell = startOf(task, server, flavors, known);
  if (cell === null) return no(cancelled('no-method', 'the task does not say how its server moves between cells'));
  const flavor = flavors?.find(({ id }) => id === cell.flavorId) ?? server.flavor;
  const { resources } = task;
  const [groups, fits] = await Promise.all([
    readGroups(task, server, nova, signal),
    hasRoom(task, { ...server, flavor }, resources, cloud, signal),
  ]);
  const verdict = judgeRoom(task, hosts, { groups, fits, resources, forced: false }, options);
  return verdict.kind === 'go' ? { ...verdict, cell } : verdict;
}
