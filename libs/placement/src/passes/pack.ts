import type { EngineOptions } from '@kronos/contracts';
import { type Cluster, shareOn } from '../cluster.ts';
import { check, NO_REPAIR } from '../constraints.ts';
import type { Draft } from '../draft.ts';
import { codeNumber, type ReasonCode } from '../reasons.ts';

/** What became of a host in the drain order. */
export type Drain = {
  readonly host: number;
  readonly vms: number;
  /** Moves of this plan off the host. */
  readonly moves: number;
  /** Null when it is drained, in this cycle or in those to come. */
  readonly refusal: ReasonCode | null;
};

/**
 * Imbalance planner in pack mode (First Fit Decreasing). Hosts in ascending order of combined score are emptied one after
 * the other: their VMs, largest first, each go to the fullest host that is not drained and not empty and where every
 * policy's capacity value stays below its threshold. A drain is begun only if all the VMs can leave within the
 * remaining budget and `packReachCycles - 1` further ones, and if `packHeadroomHosts` of the largest hosts could fail
 * afterwards and their VMs would still fit elsewhere; it is finished before another begins.
 */
export function pack(
  draft: Draft,
  fullBudget: number,
  options: Pick<EngineOptions, 'packHeadroomHosts' | 'packReachCycles'>,
): Drain[] {
  const { cluster } = draft;
  const { H, V, counted } = cluster;
  const drains: Drain[] = [];
  const onHost = new Int32Array(H);
  for (let v = 0; v < V; v++) {
    for (const h of [draft.place[v] ?? 0, ...(cluster.alsoOn.get(v) ?? [])]) onHost[h] = (onHost[h] ?? 0) + 1;
  }
  const order: number[] = [];
  for (let h = 0; h < H; h++) if (counted[h] === 1 && (onHost[h] ?? 0) > 0) order.push(h);
  const scores = Float64Array.from({ length: H }, (_, h) => combinedValue(cluster, draft.score, h));
  order.sort((a, b) => (scores[a] ?? 0) - (scores[b] ?? 0) || a - b);
  /** 1 for hosts that take VMs: neither drained nor empty. */
  const open = Uint8Array.from({ length: H }, (_, h) => (cluster.hostRefusal[h] === 0 && (onHost[h] ?? 0) > 0 ? 1 : 0));

  const byHost: number[][] = Array.from({ length: H }, () => []);
  for (let v = 0; v < V; v++) byHost[draft.place[v] ?? 0]?.push(v);
  const received = new Uint8Array(H);
  for (const move of draft.moves) received[move.to] = 1;

  for (const host of order) {
    if (draft.budget === 0) break;
    // No VM moves twice: who received VMs in this plan is not drained by it.
    if (received[host] === 1) continue;
    const vms = largestFirst(cluster, byHost[host] ?? []);
    const refuse = (refusal: ReasonCode): void => {
      drains.push({ host, vms: vms.length, moves: 0, refusal });
      draft.refusals.add(codeNumber[refusal]);
    };
    if (vms.length !== onHost[host] || vms.some((vm) => !draft.movable(vm))) {
      refuse('drain-unmovable');
      continue;
    }
    if (vms.length > draft.budget + (options.packReachCycles - 1) * fullBudget) {
      refuse('drain-out-of-reach');
      continue;
    }
    open[host] = 0;
    const mark = draft.moves.length;
    const left = draft.budget;
    const obstacle = drain(draft, vms, open) ?? headroomObstacle(draft, open, options.packHeadroomHosts);
    if (obstacle !== null) {
      draft.rollback(mark);
      open[host] = 1;
      refuse(obstacle);
      continue;
    }
    draft.rollback(mark + Math.min(left, vms.length));
    for (const move of draft.moves.slice(mark)) received[move.to] = 1;
    drains.push({ host, vms: vms.length, moves: draft.moves.length - mark, refusal: null });
    if (draft.moves.length - mark < vms.length) break;
  }
  return drains;
}

/** VMs by combined weight, largest first. */
function largestFirst(cluster: Cluster, vms: readonly number[]): number[] {
  const weights = new Map(vms.map((v) => [v, combinedWeight(cluster, v)]));
  return [...vms].sort((a, b) => (weights.get(b) ?? 0) - (weights.get(a) ?? 0) || a - b);
}

/** Moves all the VMs, whatever the budget; returns why not when one finds no host. */
function drain(draft: Draft, vms: readonly number[], open: Uint8Array): ReasonCode | null {
  for (const vm of vms) {
    const to = fullestFor(draft, vm, open, NO_REPAIR);
    if (to < 0) return 'no-destination';
    draft.apply(vm, to, 'pack', 'drains-host');
  }
  return null;
}

/** The fullest open host that takes the VM; -1 when none does. */
function fullestFor(draft: Draft, vm: number, open: Uint8Array, repairs: number): number {
  const { cluster, fullness, place, room, refusals } = draft;
  let best = -1;
  let bestValue = Number.NEGATIVE_INFINITY;
  for (let h = 0; h < cluster.H; h++) {
    if (open[h] !== 1 || place[vm] === h) continue;
    const value = combinedValue(cluster, fullness, h);
    if (value <= bestValue) continue;
    draft.evaluated++;
    if (!staysBelow(cluster, fullness, vm, h)) {
      refusals.add(codeNumber['capacity-threshold']);
      continue;
    }
    const refusal = check(cluster, place, room, vm, h, repairs);
    if (refusal !== 0) {
      refusals.add(refusal);
      continue;
    }
    best = h;
    bestValue = value;
  }
  return best;
}

/** True when every policy's capacity value of the host stays below its threshold with the VM on it. */
export function staysBelow(cluster: Cluster, fullness: Float64Array, vm: number, host: number): boolean {
  for (let p = 0; p < cluster.P; p++) {
    const threshold = cluster.policies[p]?.capacityThreshold ?? 0;
    if (!((fullness[host * cluster.P + p] ?? 0) + shareOn(cluster, vm, host, p) < threshold)) return false;
  }
  return true;
}

/** Could the largest hosts fail, and would their VMs (also those that cannot be moved) still fit on the other open ones? */
function headroomObstacle(draft: Draft, open: Uint8Array, hosts: number): ReasonCode | null {
  if (hosts === 0) return null;
  const { cluster, fullness } = draft;
  const rest: number[] = [];
  for (let h = 0; h < cluster.H; h++) if (open[h] === 1) rest.push(h);
  rest.sort((a, b) => combinedValue(cluster, fullness, b) - combinedValue(cluster, fullness, a) || a - b);
  const failing = rest.slice(0, hosts);
  const standing = Uint8Array.from(open);
  for (const h of failing) standing[h] = 0;
  const mark = draft.moves.length;
  let fits = true;
  for (const host of failing) {
    const vms: number[] = [];
    for (let v = 0; v < cluster.V; v++) if (draft.place[v] === host) vms.push(v);
    for (const vm of largestFirst(cluster, vms)) {
      const affine = (cluster.vmGroups[vm] ?? []).find((g) => cluster.groups[g]?.affine) ?? NO_REPAIR;
      const to = fullestFor(draft, vm, standing, affine);
      if (to < 0) {
        fits = false;
        break;
      }
      draft.apply(vm, to, 'pack', 'drains-host');
    }
    if (!fits) break;
  }
  draft.rollback(mark);
  return fits ? null : 'drain-headroom';
}

function combinedValue(cluster: Cluster, values: Float64Array, host: number): number {
  let sum = 0;
  for (let p = 0; p < cluster.P; p++) sum += (cluster.policies[p]?.weight ?? 0) * (values[host * cluster.P + p] ?? 0);
  return sum;
}

function combinedWeight(cluster: Cluster, vm: number): number {
  let sum = 0;
  for (let p = 0; p < cluster.P; p++)
    sum += (cluster.policies[p]?.weight ?? 0) * (cluster.weight[vm * cluster.P + p] ?? 0);
  return sum;
}
