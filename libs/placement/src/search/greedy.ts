import { EPSILON, isWorse } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { destinationsOf } from '../cluster/cluster.ts';
import { Checker } from '../cluster/constraints.ts';
import { Extremes } from '../cluster/extremes.ts';
import { allWithin } from '../cluster/measure.ts';
import type { Draft } from '../draft/draft.ts';
import { codeNumber } from '../reasons.ts';

/** A VM and its destination. */
export type Pick = { readonly vm: number; readonly to: number };

/**
 * `planner=greedy`: each round takes the legal move with the largest combined improvement (then least memory, then
 * lowest VM and host) that worsens no policy which is above its threshold afterwards, until every policy is within its
 * threshold, the budget is used or no move gains `minGain`. Soft group rules are as strict as hard ones.
 *
 * It considers every pair of VM and destination, but most pairs need no evaluation. Only a move off a policy's sole highest host, or to
 * its sole lowest host, can lower an imbalance. For a VM on such a highest host all destinations gain the same, unless the destination
 * becomes the highest host or was the sole lowest one.
 */
export function greedy(draft: Draft, minGain: number): Pick[] {
  const rounds = new Rounds(draft, Math.max(minGain, EPSILON));
  const picks: Pick[] = [];
  while (picks.length < draft.budget) {
    const pick = rounds.next();
    if (pick === null) break;
    picks.push(pick);
  }
  return picks;
}

class Rounds {
  readonly #draft: Draft;
  readonly #floor: number;
  readonly #place: Int32Array;
  readonly #score: Float64Array;
  readonly #room: Draft['room'];
  readonly #checker: Checker;
  readonly #extremes: Extremes;
  readonly #destinations: Int32Array;
  /** Movable VMs, least memory first: the first of equal gains wins. */
  readonly #byRam: number[] = [];
  readonly #moved: Uint8Array;
  readonly #hot: Uint8Array;
  readonly #now: Float64Array;
  #best: Pick | null = null;
  #bestGain = 0;
  #bestRam = 0;
  #coldHosts: number[] = [];

  constructor(draft: Draft, floor: number) {
    const { cluster } = draft;
    this.#draft = draft;
    this.#floor = floor;
    this.#place = Int32Array.from(draft.place);
    this.#score = Float64Array.from(draft.score);
    this.#room = draft.room.copy();
    this.#checker = new Checker(this.#place, this.#room, { strict: true });
    this.#moved = Uint8Array.from(draft.moved);
    this.#extremes = new Extremes(cluster, this.#score);
    this.#now = new Float64Array(cluster.P);
    this.#hot = new Uint8Array(cluster.H);
    this.#destinations = destinationsOf(cluster);
    for (let v = 0; v < cluster.V; v++) if (draft.movable(v)) this.#byRam.push(v);
    const ram = (v: number): number => float(cluster.ramMb, v);
    this.#byRam.sort((a, b) => ram(a) - ram(b) || a - b);
  }

  /** Finds the best move and makes it. */
  next(): Pick | null {
    const { cluster } = this.#draft;
    const { P } = cluster;
    const place = this.#place;
    for (let p = 0; p < P; p++) this.#now[p] = this.#extremes.imbalance(p);
    if (allWithin(cluster, this.#now)) return null;
    this.#best = null;
    this.#bestGain = this.#floor;
    this.#bestRam = Number.POSITIVE_INFINITY;
    const hot = new Set<number>();
    const cold = new Set<number>();
    for (let p = 0; p < P; p++) {
      const a = this.#extremes.onlyHighest(p);
      const b = this.#extremes.onlyLowest(p);
      if (a >= 0) hot.add(a);
      if (b >= 0 && cluster.hostRefusal[b] === 0) cold.add(b);
    }
    this.#coldHosts = [...cold].sort((a, b) => a - b);
    const isHot = this.#hot;
    isHot.fill(0);
    for (const a of hot) isHot[a] = 1;
    for (const vm of this.#byRam) if (isHot[int(place, vm)] === 1 && this.#moved[vm] === 0) this.#fromHot(vm);
    for (const b of this.#coldHosts) this.#toCold(b);
    const best = this.#best as Pick | null;
    if (best === null) return null;
    const from = int(place, best.vm);
    this.#room.move(best.vm, from, best.to);
    this.#extremes.shift(best.vm, from, best.to);
    place[best.vm] = best.to;
    this.#moved[best.vm] = 1;
    return best;
  }

  #fromHot(vm: number): void {
    const { cluster } = this.#draft;
    const a = int(this.#place, vm);
    // If a destination reaches this gain, only a sole lowest host can be better.
    let most = 0;
    for (let p = 0; p < cluster.P; p++)
      most += item(cluster.policies, p).weight * (float(this.#now, p) - this.#extremes.afterLeaving(vm, a, p));
    for (const b of this.#coldHosts) this.#consider(vm, a, b);
    if (most < this.#bestGain - EPSILON) return;
    for (const b of this.#destinations) {
      if (this.#consider(vm, a, b) >= most - EPSILON) return;
    }
  }

  #toCold(b: number): void {
    const { cluster } = this.#draft;
    // A move raises the minimum of a policy at most to the second lowest host.
    let most = 0;
    for (let p = 0; p < cluster.P; p++)
      if (this.#extremes.onlyLowest(p) === b)
        most += item(cluster.policies, p).weight * this.#extremes.gapAboveLowest(p);
    for (const vm of this.#byRam) {
      if (most < this.#bestGain - EPSILON) return;
      const ram = float(cluster.ramMb, vm);
      if (most <= this.#bestGain + EPSILON && ram > this.#bestRam) return;
      const a = int(this.#place, vm);
      if (this.#moved[vm] === 1 || this.#hot[a] === 1) continue;
      this.#consider(vm, a, b);
    }
  }

  /** Keeps the move if it is the best so far. Returns its gain if it is legal, else minus infinity. */
  #consider(vm: number, a: number, b: number): number {
    if (a === b) return Number.NEGATIVE_INFINITY;
    const { cluster, refusals } = this.#draft;
    const { P, policies } = cluster;
    this.#draft.evaluated++;
    let gain = 0;
    let worsens = false;
    for (let p = 0; p < P; p++) {
      const after = this.#extremes.after(vm, a, b, p);
      const before = float(this.#now, p);
      const { weight, threshold } = item(policies, p);
      gain += weight * (before - after);
      if (isWorse(after, before, threshold)) worsens = true;
    }
    if (gain < this.#floor || gain < this.#bestGain - EPSILON) return gain;
    const ram = float(cluster.ramMb, vm);
    if (gain <= this.#bestGain + EPSILON && !this.#comesFirst(ram, vm, b)) return gain;
    if (worsens) {
      refusals.add(codeNumber['past-threshold']);
      return Number.NEGATIVE_INFINITY;
    }
    const refusal = this.#checker.refusal(vm, b);
    if (refusal !== 0) {
      refusals.add(refusal);
      return Number.NEGATIVE_INFINITY;
    }
    this.#best = { vm, to: b };
    this.#bestGain = Math.max(gain, this.#bestGain);
    this.#bestRam = ram;
    return gain;
  }

  /** Order among equal gains: least memory, then lowest VM, then lowest host. */
  #comesFirst(ram: number, vm: number, to: number): boolean {
    const best = this.#best;
    if (best === null || ram !== this.#bestRam) return ram < this.#bestRam;
    return vm !== best.vm ? vm < best.vm : to < best.to;
  }
}
