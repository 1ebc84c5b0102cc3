import type { HostObservation, Shape } from '@kronos/contracts';
import { isGrantable, traitsFit } from '@kronos/facts';
import type { CellNeeds } from '@kronos/rules';
import { float, int } from '../base/array.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { Room } from '../cluster/constraints.ts';
import { cellSlots } from '../cluster/hostCells.ts';

/** The number of new VMs of a shape that fit on each host. */
export class ShapeSlots {
  readonly #cluster: Cluster;
  readonly #cells: CellNeeds;
  /** Class of the cluster, or -1 and the amount that each host has free, which no move changes. */
  readonly #claims: readonly { readonly amount: number; readonly r: number; readonly free: Float64Array }[];
  /** 1 for hosts that may take the shape at all. */
  readonly legal: Uint8Array;
  /** The claim of a new VM, by resource class of the cluster. */
  readonly amounts: Float64Array;

  constructor(cluster: Cluster, hosts: ReadonlyMap<string, HostObservation>, shape: Shape) {
    this.#cluster = cluster;
    const { cells } = shape;
    if (cells === undefined) this.#cells = null;
    else this.#cells = cells?.map((need) => ({ ...need, smallPages: false })) ?? 'unknown';
    const claims = Object.entries(shape.resources).filter(([, amount]) => amount > 0);
    const seen = cluster.hostNames.map((name) => hosts.get(name));
    this.legal = Uint8Array.from(seen, (host, h) => {
      if (host?.inventory == null || int(cluster.hostRefusal, h) !== 0) return 0;
      if (traitsFit(host.traits, shape) !== true) return 0;
      return claims.every(([name, amount]) => {
        const found = host.inventory?.[name];
        if (found === undefined) return false;
        const { minUnit, maxUnit, stepSize } = found;
        return isGrantable(amount, minUnit ?? 0, maxUnit ?? amount, stepSize ?? 1);
      })
        ? 1
        : 0;
    });
    this.amounts = Float64Array.from(cluster.resourceClasses, (name) => shape.resources[name] ?? 0);
    this.#claims = claims.map(([name, amount]) => ({
      amount,
      r: cluster.resourceClasses.indexOf(name),
      free: Float64Array.from(seen, (host) => {
        const found = host?.inventory?.[name];
        return found === undefined ? 0 : found.capacity - found.used;
      }),
    }));
  }

  on(host: number, room: Room): number {
    if (this.legal[host] !== 1 || this.#claims.length === 0) return 0;
    let slots = Number.POSITIVE_INFINITY;
    for (const { amount, r, free } of this.#claims) {
      const left = r < 0 ? float(free, host) : float(room.free, host * this.#cluster.R + r);
      slots = Math.min(slots, Math.floor(left / amount));
    }
    const fitting = Math.max(0, Number.isFinite(slots) ? slots : 0);
    if (this.#cells === null || fitting === 0) return fitting;
    const { numa } = this.#cluster;
    return numa === null ? 0 : cellSlots(numa, this.#cells, { host, most: fitting, arrived: room.arrived });
  }

  all(room: Room): number {
    let total = 0;
    for (let h = 0; h < this.#cluster.H; h++) total += this.on(h, room);
    return total;
  }

  /** Slots that the host can have at most, whatever leaves it: by what no VM of the cluster claims. */
  most(host: number): number {
    if (this.legal[host] !== 1 || this.#claims.length === 0) return 0;
    return this.#claims.reduce(
      (most, { amount, r, free }) => (r < 0 ? Math.min(most, Math.floor(float(free, host) / amount)) : most),
      Number.POSITIVE_INFINITY,
    );
  }
}
