/** Pre-flight of NUMA cells: have the cells of the destination room for the server, by what is on them now? The judgement is pure. */
import type { HostCell } from '@kronos/contracts';
import { Forbidden, MicroversionUnsupported, NotFound, type Nova, type Server } from '@kronos/openstack';
import {
  assignCells,
  type CellNeeds,
  type CellRatios,
  cellClaim,
  cellGround,
  cellNeedsOf,
  cellsOf,
  cellWords,
  needsCells,
  occupyCells,
  pageSizesOf,
  placesOn,
} from '@kronos/rules';

/** The cells of a destination as the plan saw them. */
export interface PlannedCells {
  readonly cells: readonly HostCell[];
  readonly ratios: CellRatios;
}

/** What is on a destination, or on its way there. */
export interface CellsNow {
  readonly own: CellNeeds;
  /** Of the servers on it, with the cells that they are on where Nova shows them. Of those on their way there, without. */
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

/** What the cells of a destination hold now. @throws the errors of the client */
export async function readCells(
  server: Server,
  destination: string,
  nova: Nova,
  signal: AbortSignal,
): Promise<CellsNow> {
  const [own, residents, migrations] = await Promise.all([
    needsOf(server, nova, signal),
    nova.listServers({ host: destination }, { signal }),
    nova.listUnfinishedMigrations({ signal }),
  ]);
  const there = new Set([server.id, ...residents.map(({ id }) => id)]);
  const ids = migrations.flatMap(({ serverId, destCompute }) =>
    destCompute === destination && !there.has(serverId) ? [serverId] : [],
  );
  const needs = residents.filter(({ id }) => id !== server.id).map((one) => needsOf(one, nova, signal));
  const coming = [...new Set(ids)].map((id) => needsOfArrival(id, nova, signal));
  return { own, others: await Promise.all([...needs, ...coming]) };
}

/** The cells of a server on its way are those of its source: which it gets is not known. */
async function needsOfArrival(id: string, nova: Nova, signal: AbortSignal): Promise<CellNeeds> {
  try {
    const needs = await needsOf(await nova.getServer(id, { signal }), nova, signal);
    return Array.isArray(needs) ? needs.map((need) => ({ ...need, hostCell: null })) : needs;
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}

async function needsOf(server: Server, nova: Nova, signal: AbortSignal): Promise<CellNeeds> {
  const { flavor } = server;
  if (!needsCells(server) || flavor === null) return null;
  const cells = await topologyOf(server.id, nova, signal);
  const { vcpus, ramMb, extraSpecs } = flavor;
  return cellNeedsOf({ vcpus, ramMb, extraSpecs, topology: cells === null ? null : { cells: [...cells] } });
}

/** Null: Nova does not show the cells, and what the flavor says is all that is known. */
async function topologyOf(id: string, nova: Nova, signal: AbortSignal): Promise<ReturnType<typeof cellsOf>> {
  try {
    return cellsOf(await nova.getServerTopology(id, { signal }));
  } catch (error) {
    if (error instanceof NotFound || error instanceof Forbidden || error instanceof MicroversionUnsupported)
      return null;
    throw error;
  }
}
