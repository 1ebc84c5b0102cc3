/** Pre-flight of NUMA cells: have the cells of the destination room for the server, by what is on them now? The judgement is pure. */
import type { HostCell } from '@kronos/contracts';
import {
  Forbidden,
  MicroversionUnsupported,
  type Migration,
  NotFound,
  type Nova,
  type Server,
} from '@kronos/openstack';
import {
  assignCells,
  type CellNeeds,
  type CellRatios,
  cellClaim,
  cellGround,
  cellNeedsOf,
  cellsOf,
  cellWords,
  isAbandoned,
  needsCells,
  occupyCells,
  pageSizesOf,
  placesOn,
} from '@kronos/rules';
import { serverOrGone } from './serverOrGone.ts';

/** The cells of a destination as the plan saw them. */
export interface PlannedCells {
  readonly cells: readonly HostCell[];
  readonly ratios: CellRatios;
}

/** The NUMA needs of servers that are on a destination, on their way there, or not confirmed to have left it. */
export interface CellsNow {
  readonly own: CellNeeds;
  /** Needs of servers on it name their cells, where Nova shows them. Needs of servers that move to it or away from it name none. */
  readonly others: readonly CellNeeds[];
}

/** The reason for which the cells of a destination do not take a server; null: they do, or nobody needs to know. */
export function cellsRefusal(
  { cells, ratios }: PlannedCells,
  { own, others }: CellsNow,
  { moveUnknownTopology }: { readonly moveUnknownTopology: boolean },
): { readonly code: 'numa-unknown' | 'numa-fit'; readonly text: string } | null {
  if (own === null) return null;
  const known = others.flatMap((needs) => (needs === null || needs === 'unknown' ? [] : [needs]));
  if (own === 'unknown' || others.includes('unknown')) {
    const text =
      own === 'unknown' ? 'what the server needs of NUMA cells is unknown' : 'what its NUMA cells hold is unknown';
    return moveUnknownTopology ? null : { code: 'numa-unknown', text };
  }
  const sizes = pageSizesOf(cells, [own, ...known].flat());
  const ground = cellGround(cells, ratios, sizes);
  for (const needs of known) {
    const claim = cellClaim(needs, sizes);
    occupyCells(ground, claim, placesOn(ground, claim), 1);
  }
  if (assignCells(ground, cellClaim(own, sizes), null, sizes) !== null) return null;
  return { code: 'numa-fit', text: `no room for ${own.map(cellWords).join('; ')} in its NUMA cells` };
}

/**
 * Reads the servers that the cells of a destination hold now.
 *
 * A server whose migration starts or ends there counts on it while Nova works on the migration or waits for its confirmation: until then,
 * the source of a cold migration keeps the cells too. Nova does not show which cells those are.
 *
 * @param nowMs ms since the epoch
 * @throws the errors of the client
 */
export async function readHostCells(
  server: Server,
  destination: string,
  nova: CellsNova,
  { nowMs, signal }: { readonly nowMs: number; readonly signal: AbortSignal },
): Promise<CellsNow> {
  // In this order: a server that arrives meanwhile shows in the first list or in the second.
  const migrations = await nova.listUnfinishedMigrations({ signal });
  const residents = await nova.listServers({ host: destination }, { signal });
  const there = new Set([server.id, ...residents.map(({ id }) => id)]);
  const rows = migrations.filter(
    ({ serverId, sourceCompute, destCompute }) =>
      (sourceCompute === destination || destCompute === destination) && !there.has(serverId),
  );
  const needs = residents.filter(({ id }) => id !== server.id).map((one) => needsOf(one, nova, signal));
  const moving = [...Map.groupBy(rows, ({ serverId }) => serverId)].map(([id, ofServer]) =>
    needsOfMoving(id, ofServer, nova, { nowMs, signal }),
  );
  const [own, others] = await Promise.all([needsOf(server, nova, signal), Promise.all([...needs, ...moving])]);
  return { own, others };
}

/** The calls of Nova's client that read the cells. */
type CellsNova = Pick<Nova, 'listServers' | 'listUnfinishedMigrations' | 'getServer' | 'getServerTopology'>;

/** Nova shows the cells that a server has on one of the two hosts of its migration: which it has on the other is not known. */
async function needsOfMoving(
  id: string,
  rows: readonly Migration[],
  nova: CellsNova,
  { nowMs, signal }: { readonly nowMs: number; readonly signal: AbortSignal },
): Promise<CellNeeds> {
  const server = await serverOrGone(nova, id, signal);
  if (server === 'gone' || rows.every((row) => isAbandoned(row, server, nowMs))) return null;
  const needs = await needsOf(server, nova, signal);
  return Array.isArray(needs) ? needs.map((need) => ({ ...need, hostCell: null })) : needs;
}

async function needsOf(server: Server, nova: CellsNova, signal: AbortSignal): Promise<CellNeeds> {
  const { flavor } = server;
  if (!needsCells(server) || flavor === null) return null;
  const cells = await topologyOf(server.id, nova, signal);
  const { vcpus, ramMb, extraSpecs } = flavor;
  return cellNeedsOf({ vcpus, ramMb, extraSpecs, topology: cells === null ? null : { cells: [...cells] } });
}

/** Null: Nova does not show the cells, and what the flavor says is all that is known. */
async function topologyOf(id: string, nova: CellsNova, signal: AbortSignal): Promise<ReturnType<typeof cellsOf>> {
  try {
    return cellsOf(await nova.getServerTopology(id, { signal }));
  } catch (error) {
    if (error instanceof NotFound || error instanceof Forbidden || error instanceof MicroversionUnsupported)
      return null;
    throw error;
  }
}
