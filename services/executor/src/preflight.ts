/** Pre-flight: reads the cloud, and judges by its rules whether the move is still right. */
import { providerFits, shapeOf, traitsOf } from '@kronos/facts';
import {
  atLeastMicroversion,
  claimsOf,
  MicroversionUnsupported,
  type Nova,
  type Placement,
  type Server,
} from '@kronos/openstack';
import { placingProperties } from '@kronos/rules';
import { cancelled } from './failure.ts';
import { cellsRefusal, readHostCells } from './preflightCells.ts';
import { type PortKindsOf, portRefusal } from './preflightPorts.ts';
import {
  type CheckOptions,
  type Claims,
  type GroupFacts,
  judgeHosts,
  judgeRepair,
  judgeRoom,
  type MemberFacts,
  type NewRefusal,
  no,
  type RoomFacts,
  refuseTask,
} from './preflightRules.ts';
import { serverOrGone } from './serverOrGone.ts';
import type { PreflightVerdict, Task } from './taskFacts.ts';

/** @throws the errors of the client */
export async function readHosts({ serverId }: Task, nova: Nova, signal: AbortSignal) {
  const [server, services, aggregates, migrations] = await Promise.all([
    serverOrGone(nova, serverId, signal),
    nova.listServices({ signal }),
    nova.listAggregates({ signal }),
    nova.listMigrations({ serverId, limit: NEWEST }, { signal }),
  ]);
  return { server, services, aggregates, migrations };
}

/** Reads the cloud and judges. @throws the errors of the clients */
export async function preflight(
  task: Task,
  cloud: CheckedCloud,
  options: CheckOptions,
  signal: AbortSignal,
): Promise<PreflightVerdict> {
  const { nova } = cloud;
  const hosts = await readHosts(task, nova, signal);
  const { server } = hosts;
  const first = judgeHosts(task, hosts, options);
  if (first !== null || server === 'gone')
    return first ?? no(cancelled('server-gone', 'Nova does not know the server'));
  const resources = resourcesOf(task, server);
  const planned = task.hostCells?.[task.destination];
  const repairs = task.phase === 'repair' && !task.parking && !options.awaited;
  const [groups, fits, cells, refusedBefore, forced, claims, ports] = await Promise.all([
    readGroups(task, server, nova, signal),
    hasRoom(task.destination, { flavor: server.flavor, resources }, cloud, signal),
    planned === undefined ? null : readHostCells(server, task.destination, nova, { nowMs: options.nowMs, signal }),
    wordsForShape(server, options.refusals, nova, signal),
    options.force ? knowsForce(nova, signal) : false,
    repairs ? readClaims(task.from, cloud, signal) : null,
    cloud.portKindsOf(server.id, signal),
  ]);
  const stays = portRefusal(ports, options);
  if (stays !== null) return refuseTask('PreFlightError', stays.code, stays.text);
  const idle = judgeRepair(task, server, hosts, claims);
  if (idle !== null) return idle;
  const refused = planned === undefined || cells === null ? null : cellsRefusal(planned, cells, options);
  return judgeRoom(task, hosts, { groups, fits, resources, cells: refused, refusedBefore, forced }, options);
}

/**
 * Nova's words about a server of the same shape. Until a decision has seen a refusal, only the refused server says what its shape is;
 * of one that is gone nothing is known any more.
 */
async function wordsForShape(
  server: Server,
  refusals: readonly NewRefusal[],
  nova: Nova,
  signal: AbortSignal,
): Promise<string | null> {
  if (server.flavor === null) return null;
  const own = shapeOfNow(server);
  for (const { serverId, shape, text } of refusals) {
    const of = shape ?? (await shapeOfServer(serverId, nova, signal));
    if (of === own) return text;
  }
  return null;
}

const shapeOfNow = (server: Server): string =>
  shapeOf({ ...claimsOf(server), imageProperties: placingProperties(server.imageProperties) });

async function shapeOfServer(id: string, nova: Nova, signal: AbortSignal): Promise<string | null> {
  const server = await serverOrGone(nova, id, signal);
  return server === 'gone' || server.flavor === null ? null : shapeOfNow(server);
}

/** The newest migrations of a server that are looked at. */
export const NEWEST = 20;

export interface CheckedCloud {
  readonly nova: Nova;
  readonly placement: Placement;
  readonly portKindsOf: PortKindsOf;
  /** Uuid of the resource provider of a service host; null when there is not exactly one. */
  readonly providerOf: (host: string, signal: AbortSignal) => Promise<string | null>;
}

const resourcesOf = (task: Task, server: Server): Readonly<Record<string, number>> =>
  server.flavor === null ? task.resources : claimsOf(server).resources;

/** Whether the cloud is older than the scheduler check that cannot be bypassed (2.68): only there force is obeyed. */
const knowsForce = async (nova: Nova, signal: AbortSignal): Promise<boolean> =>
  !atLeastMicroversion((await nova.versions({ signal })).max, '2.68');

/** Whether Placement has room for a claim on a host, with the traits of its flavor. */
export async function hasRoom(
  host: string,
  { flavor, resources }: Pick<Server, 'flavor'> & Pick<RoomFacts, 'resources'>,
  { placement, providerOf }: CheckedCloud,
  signal: AbortSignal,
): Promise<boolean> {
  const provider = await providerOf(host, signal);
  if (provider === null) return false;
  const traits = (wanted: 'required' | 'forbidden') => (flavor === null ? [] : traitsOf(flavor, wanted));
  try {
    const found = await placement.allocationCandidates(
      { resources, inTree: provider, required: traits('required'), forbidden: traits('forbidden'), limit: 1 },
      { signal },
    );
    return found.allocationRequestCount > 0;
  } catch (error) {
    if (!(error instanceof MicroversionUnsupported)) throw error;
  }
  const { inventories, usages } = await readProvider(provider, placement, signal);
  return providerFits(resources, inventories, usages);
}

async function readProvider(provider: string, placement: CheckedCloud['placement'], signal: AbortSignal) {
  const [inventories, usages] = await Promise.all([
    placement.getInventories(provider, { signal }),
    placement.getUsages(provider, { signal }),
  ]);
  return { inventories, usages };
}

async function readClaims(
  host: string,
  { placement, providerOf }: CheckedCloud,
  signal: AbortSignal,
): Promise<Claims | null> {
  const provider = await providerOf(host, signal);
  if (provider === null) return null;
  const { inventories, usages } = await readProvider(provider, placement, signal);
  return Object.entries(usages).map(([name, used]) => ({ used, capacity: inventories[name]?.capacity ?? 0 }));
}

/** The groups that the plan knew and those that Nova names (from 2.71 on; below, the plan's are all that is known). */
export async function readGroups(task: Task, server: Server, nova: Nova, signal: AbortSignal): Promise<GroupFacts[]> {
  const wanted = new Set([...task.groups.map((group) => group.id), ...(server.groupIds ?? [])]);
  if (wanted.size === 0) return [];
  const groups = (await nova.listServerGroups({ signal })).filter((group) => wanted.has(group.id));
  return Promise.all(
    groups.map(async (group) => {
      const ids = group.memberIds.filter((id) => id !== task.serverId);
      const others = await Promise.all(ids.map((id) => readMember(id, nova, signal)));
      return { group, others };
    }),
  );
}

async function readMember(id: string, nova: Nova, signal: AbortSignal): Promise<MemberFacts> {
  const server = await serverOrGone(nova, id, signal);
  if (server === 'gone' || server.host === null) return { id, hosts: [] };
  if (server.taskState === null) return { id, hosts: [server.host] };
  const [newest] = await nova.listMigrations({ serverId: id, limit: 1 }, { signal });
  const hosts = [server.host, newest?.sourceCompute ?? null, newest?.destCompute ?? null];
  return { id, hosts: [...new Set(hosts.filter((host) => host !== null))] };
}
