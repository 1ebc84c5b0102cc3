/** NUMA cells in a cluster: which hosts have which, what VMs need of them, and what arrivals leave free. */
import type { HostCell } from '@kronos/contracts';
import {
  CELL_MEMORY,
  CELL_PINNED,
  CELL_SHARED,
  type CellNeed,
  type CellNeeds,
  type CellRatios,
  cellDemand,
  cellShortage,
  cellTotals,
  cellWidth,
  cellWords,
  matchCells,
  pageSizesOf,
} from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { codeNumber } from '../reasons.ts';

export type CellPart = {
  /** Null: unknown. */
  readonly cells?: readonly HostCell[] | null;
  readonly cellRatios?: CellRatios;
};

/** The cells of a host; by their positions. */
type HostCells = {
  readonly ids: readonly number[];
  readonly totals: readonly Float64Array[];
  readonly used: readonly Float64Array[];
  readonly ratios: CellRatios;
};

type VmCells = {
  readonly needs: readonly CellNeed[];
  readonly demands: readonly Float64Array[];
  /**
   * What it takes of any one cell, at most. Nova chooses the cells of an arrival, and no API shows how; so an arrival counts with this
   * on every cell of its host. What fits then, fits in every order and with every choice.
   */
  readonly most: Float64Array;
  /** Equal for VMs that need the same. */
  readonly kind: string;
};

/** The NUMA cells of a cluster of which some VM needs cells. */
export type CellModel = {
  /** Page sizes, KiB. */
  readonly sizes: readonly number[];
  /** Amounts of a cell. */
  readonly width: number;
  /** By host; null: unknown. */
  readonly hosts: readonly (HostCells | null)[];
  /** By VM; null: unknown, undefined: it needs no cells. */
  readonly vms: readonly (VmCells | null | undefined)[];
  /** VMs may go where the cells, or their needs, are unknown. */
  readonly allowUnknown: boolean;
};

const NO_OVERCOMMIT: CellRatios = { cpu: 1, memory: 1 };

/**
 * Null when no VM needs cells.
 *
 * @param vms with the host of each and the further hosts on which it counts, by their indexes
 */
export function cellModel(
  hosts: readonly CellPart[],
  vms: readonly { readonly cells?: CellNeeds }[],
  on: { readonly vmHost: Int32Array; readonly alsoOn: ReadonlyMap<number, readonly number[]> },
  allowUnknown: boolean,
): CellModel | null {
  if (vms.every(({ cells }) => cells === undefined || cells === null)) return null;
  const known = vms.flatMap(({ cells }) => (Array.isArray(cells) ? (cells as readonly CellNeed[]) : []));
  const sizes = pageSizesOf(
    hosts.flatMap(({ cells }) => cells ?? []),
    known,
  );
  const width = cellWidth(sizes);
  const ofVms = vms.map(({ cells }): VmCells | null | undefined => {
    if (cells === undefined || cells === null) return undefined;
    if (cells === 'unknown') return null;
    const demands = cells.map((need) => cellDemand(need, sizes));
    const most = mostOf(demands, width);
    const kind = cells.map(({ smallPages }, i) => `${item(demands, i).join()}${smallPages ? 's' : ''}`).join('|');
    return { needs: cells, demands, most, kind };
  });
  const ofHosts = hosts.map(({ cells, cellRatios }): HostCells | null => {
    if (cells === undefined || cells === null) return null;
    return {
      ids: cells.map(({ id }) => id),
      totals: cells.map((cell) => cellTotals(cell, sizes)),
      used: cells.map(() => new Float64Array(width)),
      ratios: cellRatios ?? NO_OVERCOMMIT,
    };
  });
  ofVms.forEach((cells, vm) => {
    if (cells === undefined) return;
    const home = int(on.vmHost, vm);
    for (const host of [home, ...(on.alsoOn.get(vm) ?? [])]) {
      const there = ofHosts[host];
      if (there === null || there === undefined) continue;
      // The cells of such a host are as unknown as what is on them.
      if (cells === null) ofHosts[host] = null;
      else occupy(there, cells, host === home ? placesOf(there, cells) : null, 1);
    }
  });
  return { sizes, width, hosts: ofHosts, vms: ofVms, allowUnknown };
}

const mostOf = (demands: readonly Float64Array[], width: number): Float64Array =>
  new Float64Array(width).map((_, d) => Math.max(0, ...demands.map((demand) => float(demand, d))));

/** The cells of a host on which a VM is, by their positions; null where not all are known. */
function placesOf(host: HostCells, vm: VmCells): number[] | null {
  const places = vm.needs.map(({ hostCell }) => (hostCell === null ? -1 : host.ids.indexOf(hostCell)));
  return places.includes(-1) ? null : places;
}

/** Counts a VM on the cells of a host. @param places its cells; null: it may be on any */
function occupy(host: HostCells, vm: VmCells, places: readonly number[] | null, sign: 1 | -1): void {
  const on = places ?? host.ids.map((_, i) => i);
  on.forEach((place, i) => {
    const used = item(host.used, place);
    const amounts = places === null ? vm.most : item(vm.demands, i);
    for (let d = 0; d < used.length; d++) used[d] = float(used, d) + sign * float(amounts, d);
  });
}

/**
 * May the host take the VM, by its cells? Returns 0, or the code number of the refusal.
 *
 * @param arrived what arrivals take of every cell, by host and amount
 */
export function cellRefusal(model: CellModel, vm: number, host: number, arrived: Float64Array): number {
  const cells = model.vms[vm];
  if (cells === undefined) return 0;
  const there = model.hosts[host] ?? null;
  if (cells === null || there === null) return model.allowUnknown ? 0 : codeNumber['numa-unknown'];
  return assign(model, cells, there, arrived.subarray(host * model.width, (host + 1) * model.width)) === null
    ? codeNumber['numa-fit']
    : 0;
}

/**
 * A cell for each cell of the VM, by positions; null: there is none. Without arrivals, the cells with the most free CPUs of its kind and
 * then the most free memory come first, as in Nova.
 */
function assign(model: CellModel, vm: VmCells, host: HostCells, arrived: Float64Array | null): number[] | null {
  const used = host.used.map((own) => (arrived === null ? own : own.map((x, d) => x + float(arrived, d))));
  const order = host.ids.map((_, i) => i);
  if (arrived === null) {
    const free = (cell: number, d: number): number => float(item(host.totals, cell), d) - float(item(used, cell), d);
    const cpus = float(vm.most, CELL_PINNED) > 0 ? CELL_PINNED : CELL_SHARED;
    order.sort((a, b) => free(b, cpus) - free(a, cpus) || free(b, CELL_MEMORY) - free(a, CELL_MEMORY) || a - b);
  }
  return matchCells(vm.needs.length, order, (need, cell) => {
    const of = { totals: item(host.totals, cell), used: item(used, cell) };
    const settings = { ratios: host.ratios, sizes: model.sizes };
    return cellShortage(of, item(vm.demands, need), item(vm.needs, need), settings) === null;
  });
}

/** Adds what a VM takes of any one cell to the amounts of arrivals on a host, or takes it away. */
export function shiftArrived(
  model: CellModel,
  vm: number,
  arrived: Float64Array,
  { host, sign }: { readonly host: number; readonly sign: 1 | -1 },
): void {
  const cells = model.vms[vm];
  if (cells === undefined || cells === null) return;
  const from = host * model.width;
  for (let d = 0; d < model.width; d++) arrived[from + d] = float(arrived, from + d) + sign * float(cells.most, d);
}

/** Why the cells of a host refuse a VM, in words; null where they do not. */
export function cellRefusalText(model: CellModel, vm: number, host: number, name: string): string | null {
  const cells = model.vms[vm];
  if (cells === undefined) return null;
  const there = model.hosts[host] ?? null;
  if (cells === null) return 'what the VM needs of NUMA cells is unknown';
  if (there === null) return `the NUMA cells of ${name} are unknown`;
  if (assign(model, cells, there, null) !== null) return `arrivals of this plan may take the NUMA cells of ${name}`;
  const alone = cells.needs.find((need, i) => {
    const one: VmCells = { ...cells, needs: [need], demands: [item(cells.demands, i)] };
    return assign(model, one, there, null) === null;
  });
  if (alone !== undefined) return `no NUMA cell of ${name} has ${cellWords(alone)} free`;
  return `${name} has no ${cells.needs.length} NUMA cells with ${cells.needs.map(cellWords).join('; ')} free`;
}

/** The cells after moves have ended: each VM on the first cells that fit it, as Nova's next answer may show it. */
export function cellsAt(model: CellModel, before: Int32Array, after: Int32Array): CellModel {
  const hosts = model.hosts.map((host) =>
    host === null ? null : { ...host, used: host.used.map((used) => Float64Array.from(used)) },
  );
  const vms = [...model.vms];
  const moved = [...after.keys()].filter((vm) => before[vm] !== after[vm]);
  for (const vm of moved) {
    const cells = vms[vm];
    const home = hosts[int(before, vm)];
    if (cells === undefined || cells === null || home === null || home === undefined) continue;
    occupy(home, cells, placesOf(home, cells), -1);
  }
  for (const vm of moved) {
    const cells = vms[vm];
    const there = hosts[int(after, vm)];
    if (cells === undefined || cells === null || there === null || there === undefined) continue;
    const places = assign(model, cells, there, null);
    occupy(there, cells, places, 1);
    const needs = cells.needs.map((need, i) => ({
      ...need,
      hostCell: places === null ? null : item(there.ids, item(places, i)),
    }));
    vms[vm] = { ...cells, needs };
  }
  return { ...model, hosts, vms };
}

/**
 * How many servers with these needs the cells of a host take besides those on them, by Nova's own choice of cells.
 *
 * @param arrived what arrivals take of every cell, by host and amount; null: there are none
 */
export function cellSlots(
  model: CellModel,
  needs: CellNeeds,
  { host, most, arrived }: { readonly host: number; readonly most: number; readonly arrived: Float64Array | null },
): number {
  if (needs === null) return most;
  const there = model.hosts[host] ?? null;
  if (needs === 'unknown' || there === null) return model.allowUnknown ? most : 0;
  const demands = needs.map((need) => cellDemand(need, model.sizes));
  const vm: VmCells = { needs, demands, most: mostOf(demands, model.width), kind: '' };
  const extra = arrived?.subarray(host * model.width, (host + 1) * model.width);
  const filled: HostCells = {
    ...there,
    used: there.used.map((used) => used.map((x, d) => x + (extra === undefined ? 0 : float(extra, d)))),
  };
  for (let count = 0; count < most; count++) {
    const places = assign(model, vm, filled, null);
    if (places === null) return count;
    occupy(filled, vm, places, 1);
  }
  return most;
}
