/** The NUMA cells of one host with the servers on them: what is taken, and which cells a further server may get. */
import type { HostCell } from '@kronos/contracts';
import {
  CELL_MEMORY,
  CELL_PINNED,
  CELL_SHARED,
  type CellAmounts,
  type CellNeed,
  type CellRatios,
  cellDemand,
  cellShortage,
  cellTotals,
  cellWidth,
  matchCells,
} from './hostCells.ts';

/** The cells of a host; by their positions. */
export interface CellGround {
  readonly ids: readonly number[];
  readonly totals: readonly CellAmounts[];
  readonly used: readonly CellAmounts[];
  readonly ratios: CellRatios;
}

/** The claim of a server on NUMA cells. */
export interface CellClaim {
  readonly needs: readonly CellNeed[];
  readonly demands: readonly CellAmounts[];
  /**
   * The most that it takes of any one cell. Nova chooses the cells of an arrival, and no API shows how; so an arrival counts with this on
   * every cell of its host. Moves that fit then fit in every order and with every choice.
   */
  readonly most: CellAmounts;
}

/** A host without servers. @param sizes page sizes that count, KiB */
export const cellGround = (cells: readonly HostCell[], ratios: CellRatios, sizes: readonly number[]): CellGround => ({
  ids: cells.map(({ id }) => id),
  totals: cells.map((cell) => cellTotals(cell, sizes)),
  used: cells.map(() => new Float64Array(cellWidth(sizes))),
  ratios,
});

/** The claim of a server with these needs. @param sizes of pages in KiB, as {@link cellWidth} orders the amounts */
export function cellClaim(needs: readonly CellNeed[], sizes: readonly number[]): CellClaim {
  const demands = needs.map((need) => cellDemand(need, sizes));
  const most = new Float64Array(cellWidth(sizes)).map((_, d) => Math.max(0, ...demands.map((demand) => at(demand, d))));
  return { needs, demands, most };
}

const NONE = new Float64Array();
const at = (amounts: CellAmounts, i: number): number => amounts[i] ?? 0;
const of = (list: readonly CellAmounts[], i: number): CellAmounts => list[i] ?? NONE;

/** The cells of a host on which a server is, by their positions; null where not all are known. */
export function placesOn({ ids }: CellGround, { needs }: CellClaim): number[] | null {
  const places = needs.map(({ hostCell }) => (hostCell === null ? -1 : ids.indexOf(hostCell)));
  return places.includes(-1) ? null : places;
}

/** Counts a server on the cells of a host. @param places its cells; null: it may be on any */
export function occupyCells(
  ground: CellGround,
  { demands, most }: CellClaim,
  places: readonly number[] | null,
  sign: 1 | -1,
): void {
  const on = places ?? ground.ids.map((_, i) => i);
  on.forEach((place, i) => {
    const used = of(ground.used, place);
    const amounts = places === null ? most : of(demands, i);
    for (let d = 0; d < used.length; d++) used[d] = at(used, d) + sign * at(amounts, d);
  });
}

/**
 * A cell for each cell of the server, by positions; null: there is none. Without arrivals, the cells with the most free CPUs of its kind
 * and then the most free memory come first, as in Nova.
 *
 * @param arrived what arrivals take of every cell
 */
export function assignCells(
  { ids, totals, used: own, ratios }: CellGround,
  { needs, demands, most }: CellClaim,
  arrived: CellAmounts | null,
  sizes: readonly number[],
): number[] | null {
  const used = arrived === null ? own : own.map((amounts) => amounts.map((x, d) => x + at(arrived, d)));
  const order = ids.map((_, i) => i);
  if (arrived === null) {
    const free = (cell: number, d: number): number => at(of(totals, cell), d) - at(of(used, cell), d);
    const cpus = at(most, CELL_PINNED) > 0 ? CELL_PINNED : CELL_SHARED;
    order.sort((a, b) => free(b, cpus) - free(a, cpus) || free(b, CELL_MEMORY) - free(a, CELL_MEMORY) || a - b);
  }
  return matchCells(needs.length, order, (need, cell) => {
    const wanted = needs[need];
    if (wanted === undefined) return false;
    const there = { totals: of(totals, cell), used: of(used, cell) };
    return cellShortage(there, of(demands, need), wanted, { ratios, sizes }) === null;
  });
}
