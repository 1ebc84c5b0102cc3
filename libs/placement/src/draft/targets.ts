import { clause } from '@kronos/contracts';
import { EPSILON, isWorse } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { Checker, NO_REPAIR } from '../cluster/constraints.ts';
import { Extremes } from '../cluster/extremes.ts';
import { LoadOrder } from '../cluster/loadOrder.ts';
import { combinedOf } from '../cluster/measure.ts';
import { breachGrowth } from '../cluster/softRules.ts';
import { codeNumber, codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';
import type { Draft } from './draft.ts';

/** Outweighs every imbalance. */
const EXCESS = 1e6;

/** The best destination of a VM, and the imbalance after the move. */
export type Target = {
  readonly vm: number;
  readonly to: number;
  readonly combined: number;
  /** The lower one wins a tie: the load of the destination, or its used share when nothing is scored. */
  readonly rank: number;
};

/**
 * Finds destinations by the rule that evacuation and repair share: legal, no policy pushed past its threshold, the lowest combined
 * imbalance. The least loaded host wins a tie; by free capacity when nothing is scored.
 */
export class Targets {
  readonly #draft: Draft;
  readonly #checker: Checker;
  readonly #past: boolean;
  readonly #extremes: Extremes;
  readonly #imbalance: Float64Array;
  /** Destinations, least loaded first. */
  readonly #byLoad: LoadOrder;
  /** The sole lowest hosts of the policies: only an arrival there can gain more than the departure does. */
  #cold: number[] = [];

  /**
   * @param strict soft groups that may be broken at a penalty must not be.
   * @param past policies may be pushed past their thresholds, as little as possible.
   */
  constructor(
    draft: Draft,
    { strict = false, past = false }: { readonly strict?: boolean; readonly past?: boolean } = {},
  ) {
    const { cluster } = draft;
    this.#draft = draft;
    this.#past = past;
    this.#checker = new Checker(draft.place, draft.room, { strict });
    this.#extremes = new Extremes(cluster, draft.score);
    this.#imbalance = new Float64Array(cluster.P);
    this.#byLoad = new LoadOrder(cluster, draft.score);
    this.#refresh();
  }

  /** To be called after the draft has moved a VM between these hosts, and nothing else. */
  moved(from: number, to: number): void {
    this.#byLoad.update(from);
    this.#byLoad.update(to);
    this.#extremes.changed([from, to]);
    this.#refresh();
  }

  #refresh(): void {
    const { cluster } = this.#draft;
    for (let p = 0; p < cluster.P; p++) this.#imbalance[p] = this.#extremes.imbalance(p);
    this.#cold = cluster.policies.map((_, p) => this.#extremes.onlyLowest(p)).filter((h) => h >= 0);
  }

  /** No move of a VM from a host that takes no part in the imbalance leaves the combined imbalance lower than this. */
  get least(): number {
    const { cluster } = this.#draft;
    let most = 0;
    for (const host of this.#cold) {
      let gain = 0;
      for (let p = 0; p < cluster.P; p++)
        if (this.#extremes.onlyLowest(p) === host)
          gain += item(cluster.policies, p).weight * this.#extremes.gapAboveLowest(p);
      most = Math.max(most, gain);
    }
    return combinedOf(cluster, this.#imbalance) - most;
  }

  /** The best of the VM's destinations, or of those in `only`; null when there is none. */
  of(vm: number, repairs = NO_REPAIR, only?: readonly number[]): Target | null {
    const { cluster, place } = this.#draft;
    const from = int(place, vm);
    let enough = 0;
    for (let p = 0; p < cluster.P; p++)
      enough += item(cluster.policies, p).weight * this.#extremes.afterLeaving(vm, from, p);
    let best: Target | null = null;
    for (const to of only ?? this.#cold) best = this.#better(best, vm, to, repairs);
    if (only !== undefined) return best;
    for (const to of this.#byLoad.hosts) {
      best = this.#better(best, vm, to, repairs);
      // Hosts are sorted by load, the least first: a later host cannot be better.
      if (cluster.P > 0 && best?.to === to && best.combined <= enough + EPSILON) break;
    }
    return best;
  }

  /**
   * The reason that no destination takes the VM: of the hosts that take VMs at all, that of most; the first host that has it, and the number
   * of hosts by reason.
   */
  whyNot(vm: number, repairs = NO_REPAIR): { code: ReasonCode; host: number | null; counts: Record<string, number> } {
    const { cluster, place } = this.#draft;
    const counts: Record<string, number> = {};
    const first = new Map<ReasonCode, number>();
    for (let h = 0; h < cluster.H; h++) {
      if (h === place[vm]) continue;
      let refusal = this.#checker.refusal(vm, h, repairs);
      if (refusal === 0 && this.#combinedAfter(vm, h) === null) refusal = codeNumber['past-threshold'];
      if (refusal === 0) continue;
      const reason = codeOfNumber(refusal);
      counts[reason] = (counts[reason] ?? 0) + 1;
      if (!first.has(reason)) first.set(reason, h);
    }
    const all = [...first];
    const near = all.filter(([, host]) => int(cluster.hostRefusal, host) === 0);
    const [[code, host] = ['no-destination', null] as const] = (near.length > 0 ? near : all).toSorted(
      ([one], [other]) => (counts[other] ?? 0) - (counts[one] ?? 0),
    );
    return { code, host, counts };
  }

  /** {@link whyNot} as a clause that names the host and the group. */
  obstacle(vm: number): string {
    const { code, host } = this.whyNot(vm);
    return host === null ? clause(reasonMeanings[code]) : this.#checker.text(codeNumber[code], { vm, host });
  }

  #better(best: Target | null, vm: number, to: number, repairs: number): Target | null {
    const { cluster, place, room, refusals } = this.#draft;
    if (place[vm] === to) return best;
    this.#draft.evaluated++;
    const combined = this.#combinedAfter(vm, to);
    if (combined === null) {
      refusals.add(codeNumber['past-threshold']);
      return best;
    }
    const rank = cluster.P > 0 ? this.#byLoad.load(to) : usedShareAfter(cluster, room.free, vm, to);
    if (best !== null && !isLower(combined, rank, best)) return best;
    const refusal = this.#checker.refusal(vm, to, repairs);
    if (refusal === 0) return { vm, to, combined, rank };
    refusals.add(refusal);
    return best;
  }

  /**
   * Combined imbalance after the move, with the penalty for soft rules that it breaks. When it pushes a policy past its threshold: null, or
   * a value above all others that grows with the excess.
   */
  #combinedAfter(vm: number, to: number): number | null {
    const { cluster, place } = this.#draft;
    const from = int(place, vm);
    let combined = 0;
    for (let p = 0; p < cluster.P; p++) {
      const { weight, threshold } = item(cluster.policies, p);
      const after = this.#extremes.after(vm, from, to, p);
      if (isWorse(after, float(this.#imbalance, p), threshold)) {
        if (!this.#past) return null;
        combined += EXCESS * (after - threshold);
      }
      combined += weight * after;
    }
    return combined + Math.max(0, breachGrowth(cluster, place, vm, to)) * cluster.softPenalty;
  }
}

/** True when a result is lower than a target: by combined imbalance, then by rank. */
const isLower = (combined: number, rank: number, than: Target): boolean =>
  combined < than.combined - EPSILON || (combined <= than.combined + EPSILON && rank < than.rank - EPSILON);

/** The largest used share of a resource class on a host after the VM's arrival. */
function usedShareAfter(cluster: Cluster, free: Float64Array, vm: number, host: number): number {
  let most = 0;
  for (let r = 0; r < cluster.R; r++) {
    const amount = float(cluster.demand, vm * cluster.R + r);
    const capacity = float(cluster.capacity, host * cluster.R + r);
    if (amount <= 0 || !Number.isFinite(capacity)) continue;
    most = Math.max(most, 1 - (float(free, host * cluster.R + r) - amount) / Math.max(capacity, 1));
  }
  return most;
}
