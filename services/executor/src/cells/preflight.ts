/** Pre-flight of a move between cells: does the present state of the cloud still allow it? The decisions are pure. */
import type { Aggregate, NamedFlavor, Server } from '@kronos/openstack';
import { cancelled, elsewhere } from '../failure.ts';
import { type CheckedCloud, hasRoom, readGroups, readHosts } from '../preflight.ts';
import { cellPortRefusal } from '../preflightPorts.ts';
import {
  aggregatesOf,
  type CheckOptions,
  destinationRefused,
  judgeDestination,
  judgeOthers,
  judgePin,
  judgeRoom,
  judgeServer,
  judgeSource,
  type MoveFacts,
  no,
  reached,
  refuseTask,
} from '../preflightRules.ts';
import type { CheckedCell, PreflightVerdict, Task } from '../taskFacts.ts';

/** First half: the server, the services, the aggregates, the flavor. Null: nothing stands against it so far. */
export function judgeCell(
  task: Task,
  facts: MoveFacts,
  flavors: readonly NamedFlavor[] | null,
  options: CheckOptions,
): PreflightVerdict | null {
  const { server } = facts;
  if (server === 'gone') return no(cancelled('server-gone', 'Nova does not know the server'));
  if (server.cellDown) return { kind: 'unreachable', text: "the server's cell is down" };
  const { cell } = task;
  if (cell === undefined) return no(cancelled('no-method', 'the task does not say how its server moves between cells'));
  const settled = server.vmState === 'active' || server.vmState === 'stopped';
  const host = server.host ?? '';
  if (host !== task.from && settled && reached(task).includes(host)) return { kind: 'there', host };
  if (server.host !== task.from) return no(cancelled('moved-by-others', elsewhere(server.host)));
  return (
    judgeGuest(server, options) ??
    judgeFlavor(task, server, flavors) ??
    judgeSource(task, facts) ??
    judgeDestination(task, facts) ??
    judgeMembers(task, facts.aggregates, options) ??
    judgePin(task, server, facts)
  );
}

/** A guest that is paused cannot be moved cold. */
function judgeGuest(server: Server, options: CheckOptions): PreflightVerdict | null {
  const how = { states: ['active', 'stopped'], stateCode: 'cell-status', exempt: false } as const;
  const refused = judgeServer(server, how, options);
  if (refused !== null) return refused;
  // Nova would leave it in its present state, and the right state is unknown.
  if (server.powerState === null)
    return refuseTask('PreFlightError', 'power-unknown', 'Nova does not say whether the guest runs');
  return null;
}

function judgeFlavor(
  { cell }: Task,
  { flavor }: Server,
  flavors: readonly NamedFlavor[] | null,
): PreflightVerdict | null {
  if (cell === undefined) return null;
  if (cell.oldFlavor !== null && flavor !== null && flavor.name !== cell.oldFlavor)
    return no(cancelled('flavor-changed', `the server has flavor ${flavor.name}, and the plan says ${cell.oldFlavor}`));
  if (cell.method === 'migrate' || flavors?.some(({ name }) => name === cell.newFlavor) === true) return null;
  return refuseTask('PreFlightError', 'flavor-unknown', `Nova has no flavor ${cell.newFlavor ?? '(none named)'}`);
}

function judgeMembers(task: Task, aggregates: readonly Aggregate[], options: CheckOptions): PreflightVerdict | null {
  const { aggregate, from, destination, cell } = task;
  const target = cell?.target ?? '';
  if (!aggregatesOf(from, aggregates).includes(aggregate))
    return no(cancelled('source-left', `${from} left aggregate ${aggregate}`));
  const there = aggregatesOf(destination, aggregates);
  if (!there.includes(target))
    return destinationRefused(task, 'destination-left', `${destination} is not in aggregate ${target}`);
  return judgeOthers(task, target, there, options);
}

/** The facts that the start puts on the log. */
export function startOf(
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

/** Reads the cloud and judges. @throws the errors of the clients */
export async function cellPreflight(
  task: Task,
  cloud: CheckedCloud,
  options: CheckOptions,
  signal: AbortSignal,
): Promise<PreflightVerdict> {
  const { nova } = cloud;
  // Refused as `not-allowed` where Nova would ignore the named host.
  if (task.cell?.method === 'migrate') await nova.versionFor('coldMigrate', { signal });
  const [hosts, flavors] = await Promise.all([
    readHosts(task, nova, signal),
    task.cell?.method === 'resize' ? nova.listFlavors({ signal }) : null,
  ]);
  const { server } = hosts;
  const first = judgeCell(task, hosts, flavors, options);
  if (first !== null || server === 'gone')
    return first ?? no(cancelled('server-gone', 'Nova does not know the server'));
  const known = hosts.migrations.map(({ uuid }) => uuid);
  const cell = startOf(task, server, flavors, known);
  if (cell === null) return no(cancelled('no-method', 'the task does not say how its server moves between cells'));
  const flavor = flavors?.find(({ id }) => id === cell.flavorId) ?? server.flavor;
  const { resources } = task;
  const [groups, fits, ports] = await Promise.all([
    readGroups(task, server, nova, signal),
    hasRoom(task.destination, { flavor, resources }, cloud, signal),
    cloud.portKindsOf(server.id, signal),
  ]);
  const stays = cellPortRefusal(ports);
  if (stays !== null) return refuseTask('PreFlightError', stays.code, stays.text);
  const verdict = judgeRoom(
    task,
    hosts,
    { groups, fits, resources, cells: null, refusedBefore: null, forced: false },
    options,
  );
  return verdict.kind === 'go' ? { ...verdict, cell } : verdict;
}
