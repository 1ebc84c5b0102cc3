/** NUMA cells in a cluster: which hosts have which, what VMs need of them, and what arrivals leave free. */
import type { HostCell } from '@kronos/contracts';
import {
  assignCells,
  type CellClaim,
  type CellGround,
  type CellNeed,
  type CellNeeds,
  type CellRatios,
  cellClaim,
  cellGround,
  cellWidth,
  cellWords,
  occupyCells,
  pageSizesOf,
  placesOn,
} from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { codeNumber } from '../reasons.ts';

export type CellPart = {
  /** Null: unknown. */
  readonly cells?: readonly HostCell[] | null;
  readonly cellRatios?: CellRatios;
};

type HostCells = CellGround & { readonly cells: readonly HostCell[] };

/** `kind`: equal for VMs that need the same. */
type VmCells = CellClaim & { readonly kind: string };

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
  { allowUnknown }: Pick<CellModel, 'allowUnknown'>,
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
    const claim = cellClaim(cells, sizes);
    const kind = cells.map(({ smallPages }, i) => `${item(claim.demands, i).join()}${smallPages ? 's' : ''}`).join('|');
    return { ...claim, kind };
  });
  const ofHosts = hosts.map(({ cells, cellRatios }): HostCells | null => {
    if (cells === undefined || cells === null) return null;
    return { ...cellGround(cells, cellRatios ?? NO_OVERCOMMIT, sizes), cells };
  });
  ofVms.forEach((cells, vm) => {
    if (cells === undefined) return;
    const home = int(on.vmHost, vm);
    for (const host of [home, ...(on.alsoOn.get(vm) ?? [])]) {
      const there = ofHosts[host];
      if (there === null || there === undefined) continue;
      // The cells of such a host are as unknown as what is on them.
      if (cells === null) ofHosts[host] = null;
      else occupyCells(there, cells, host === home ? placesOn(there, cells) : null, 1);
    }
  });
  return { sizes, width, hosts: ofHosts, vms: ofVms, allowUnknown };
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
  const amounts = arrived.subarray(host * model.width, (host + 1) * model.width);
  return assignCells(there, cells, amounts, model.sizes) === null ? codeNumber['numa-fit'] : 0;
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
  if (assignCells(there, cells, null, model.sizes) !== null)
    return `arrivals of this plan may take the NUMA cells of ${name}`;
  const alone = cells.needs.find((need, i) => {
    const one = { ...cells, needs: [need], demands: [item(cells.demands, i)] };
    return assignCells(there, one, null, model.sizes) === null;
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
    occupyCells(home, cells, placesOn(home, cells), -1);
  }
  for (const vm of moved) {
    const cells = vms[vm];
    const there = hosts[int(after, vm)];
    if (cells === undefined || cells === null || there === null || there === undefined) continue;
    const places = assignCells(there, cells, null, model.sizes);
    occupyCells(there, cells, places, 1);
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
  const vm = cellClaim(needs, model.sizes);
  const extra = arrived?.subarray(host * model.width, (host + 1) * model.width);
  const filled: HostCells = {
    ...there,
    used: there.used.map((used) => used.map((x, d) => x + (extra === undefined ? 0 : float(extra, d)))),
  };
  for (let count = 0; count < most; count++) {
    const places = assignCells(filled, vm, null, model.sizes);
    if (places === null) return count;
    occupyCells(filled, vm, places, 1);
  }
  return most;
}

/** The cells of a host as they were observed, with Nova's ratios; null: no VM needs cells there, or they are unknown. */
export function observedCells(
  model: CellModel | null,
  vm: number,
  host: number,
): { readonly cells: readonly HostCell[]; readonly ratios: CellRatios } | null {
  const there = model?.vms[vm] === undefined ? null : (model.hosts[host] ?? null);
  return there === null ? null : { cells: there.cells, ratios: there.ratios };
}
