import type { Decision } from '@kronos/contracts';
import { EPSILON, isWorse } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { type Cluster, shareOn, staysBelow } from '../cluster/cluster.ts';
import { Checker, NO_REPAIR, Room } from '../cluster/constraints.ts';
import { Extremes } from '../cluster/extremes.ts';
import { cellRefusalText } from '../cluster/hostCells.ts';
import { combinedOf, imbalances, valuesAfter } from '../cluster/measure.ts';
import { type DecideInput, type Deliberation, deliberate } from '../decide.ts';
import { codeNumber, codeOfNumber, type ReasonCode } from '../reasons.ts';
import type { Ground } from '../snapshot/unmovable.ts';
import type {
  ByPolicy,
  Counts,
  CycleExplanation,
  DestinationVerdict,
  HostExplanation,
  HostValue,
  PlanExplanation,
  StepExplanation,
  VmExplanation,
} from './explanation.ts';

/** Reasons of a cycle that looked for moves and found none: each VM has a reason of its own to stay. */
const FOUND_NOTHING: ReadonlySet<string> = new Set<ReasonCode>(['no-improvement', 'search-limit', 'no-drain']);

/** Refusals by the rule of a group. */
const GROUP_RULES: ReadonlySet<number> = new Set(
  (['anti-affinity', 'affinity', 'affinity-gathered'] as const).map((code) => codeNumber[code]),
);

/**
 * Makes the decision again and answers questions about it, as data. Every answer follows from the input of the decision, so a recorded
 * decision is explained by making it again.
 */
export function explain(input: DecideInput): Explanation {
  return new Explanation(input);
}

/** Answers about one decision. {@link explain} makes it. */
export class Explanation {
  readonly decision: Decision;
  readonly #it: Deliberation;
  readonly #cluster: Cluster;
  readonly #end: Float64Array;

  constructor(input: DecideInput) {
    this.#it = deliberate(input);
    this.decision = this.#it.decision;
    this.#cluster = this.#it.observed.cluster;
    const { score, vmHost } = this.#cluster;
    this.#end = valuesAfter(this.#cluster, score, vmHost, this.#it.completed?.place ?? vmHost);
  }

  cycle(): CycleExplanation {
    const { decision, observed, gates, drains, mode } = this.#it;
    const cluster = this.#cluster;
    const extremes = new Extremes(cluster, cluster.score);
    const states = new Map(decision.before.policies.map((state) => [state.policy, state]));
    return {
      outcome: decision.outcome,
      reason: decision.reason,
      mode,
      gates: gates.map((gate) => gate.reason),
      policies: observed.judged.map(({ policy, reason, acts }) => {
        const p = cluster.policies.findIndex((model) => model.name === policy.name);
        const state = states.get(policy.name);
        return {
          policy: policy.name,
          participates: reason === null,
          reason,
          imbalance: state?.imbalance ?? null,
          threshold: policy.threshold,
          detected: state?.detected ?? false,
          acts,
          sustainedCycles: state?.sustainedCycles ?? 0,
          neededCycles: policy.minSustainedCycles,
          highest: reason === null ? this.#valueOf(extremes.highest(p), p) : null,
          lowest: reason === null ? this.#valueOf(extremes.lowest(p), p) : null,
        };
      }),
      hosts: { all: cluster.H, ...tally(cluster.hostRefusal, 'destinations') },
      vms: { all: cluster.V, ...tally(cluster.vmRefusal, 'movable'), evacuationOnly: this.#evacuationOnly() },
      assumed: observed.assumed.size,
      refusals: decision.refusals,
      drains: drains.map((drain) => ({
        host: item(cluster.hostNames, drain.host),
        vms: drain.vms,
        moves: drain.moves,
        refusal: drain.refusal,
      })),
      stuck: decision.stuck,
      warnings: decision.warnings,
      evacuations: decision.evacuations,
    };
  }

  #evacuationOnly(): Counts {
    const { evacuationOnly, vmRefusal, vmHost, leaving } = this.#cluster;
    const kept = evacuationOnly.filter((_, v) => vmRefusal[v] === 0 && leaving[int(vmHost, v)] !== 1);
    return tally(kept, 'others').refused;
  }

  plan(): PlanExplanation | null {
    const { decision, completed } = this.#it;
    const plan = decision.plan;
    if (plan === null || completed === null) return null;
    const cluster = this.#cluster;
    const place = Int32Array.from(cluster.vmHost);
    const course = completed.moves.map((move, i) => {
      place[move.vm] = move.to;
      const imbalance = imbalances(cluster, valuesAfter(cluster, cluster.score, cluster.vmHost, place));
      return {
        step: i + 1,
        combined: combinedOf(cluster, imbalance),
        policies: this.#byPolicy((p) => float(imbalance, p)),
      };
    });
    return {
      planner: plan.planner,
      budget: plan.budget,
      before: decision.before,
      after: plan.after,
      lowerBound: plan.lowerBound,
      shareOfPossible: plan.shareOfPossible,
      endedBy: plan.endedBy ?? null,
      candidatesEvaluated: plan.candidatesEvaluated,
      course,
    };
  }

  /** @param number the step's, from 1; null is returned for one that the plan does not have. */
  step(number: number): StepExplanation | null {
    const { decision, completed, draft } = this.#it;
    const step = decision.plan?.steps[number - 1];
    const move = completed?.moves[number - 1];
    if (step === undefined || move === undefined || completed === null) return null;
    const cluster = this.#cluster;
    const { vm, from, to } = move;
    const values = (score: Float64Array, host: number): ByPolicy =>
      this.#byPolicy((p) => float(score, host * cluster.P + p));
    const place = Int32Array.from(completed.place);
    const home = cluster.vmHost[vm] ?? from;
    place[vm] = home;
    const without = valuesAfter(cluster, cluster.score, cluster.vmHost, place);
    // The room that the other moves leave, with this VM still at home.
    const room = new Room(cluster, { departuresFree: false });
    for (const other of draft.moves) if (other.vm !== vm) room.move(other.vm, other.from, other.to);
    return {
      step,
      weights: this.#weightsOf(vm),
      source: { host: step.from, before: values(cluster.score, from), after: values(this.#end, from) },
      destination: { host: step.to, before: values(cluster.score, to), after: values(this.#end, to) },
      combined: {
        withStep: combinedOf(cluster, imbalances(cluster, this.#end)),
        withoutStep: combinedOf(cluster, imbalances(cluster, without)),
      },
      elsewhere: this.#destinations({ vm, from: home, repairs: move.repairs }, { place, score: without, room }).filter(
        (d) => d.host !== step.to,
      ),
    };
  }

  /** @returns null when the snapshot has no such server on a host of the aggregate */
  vm(serverId: string): VmExplanation | null {
    const cluster = this.#cluster;
    const vm = cluster.vmIndex.get(serverId);
    if (vm === undefined) return null;
    const { decision, observed } = this.#it;
    const host = int(cluster.vmHost, vm);
    const assumed = observed.assumed.get(serverId) ?? null;
    const steps = (decision.plan?.steps ?? []).filter((step) => step.serverId === serverId).map((step) => step.step);
    const room = new Room(cluster, { departuresFree: false });
    const destinations = this.#destinations({ vm, from: host }, { place: cluster.vmHost, score: cluster.score, room });
    return {
      serverId,
      serverName: item(cluster.vmNames, vm),
      host: assumed?.observed ?? item(cluster.hostNames, host),
      assumed,
      weights: this.#weightsOf(vm),
      groups: item(cluster.vmGroups, vm).map((g) => item(cluster.groups, g).name),
      steps,
      refusal: observed.vmGrounds.get(serverId)?.code ?? null,
      verdict: steps.length > 0 ? { code: 'planned', detail: {} } : this.#whyNot(vm, destinations),
      destinations,
    };
  }

  /** The reason that a VM stays: the VM itself, the cycle, its evacuation or drain, else its destinations. */
  #whyNot(vm: number, destinations: readonly DestinationVerdict[]): Ground {
    const { decision, observed, gates, drains, mode } = this.#it;
    const cluster = this.#cluster;
    const id = item(cluster.vmIds, vm);
    const is = (code: string): Ground => ({ code: code as ReasonCode, detail: {} });
    const own = observed.vmGrounds.get(id);
    if (own !== undefined) return own;
    const gate = gates[0];
    if (decision.outcome === 'gated' && gate !== undefined) return is(gate.reason.code);
    const waits = observed.evacuationOnlyGrounds.get(id);
    if (waits !== undefined && cluster.leaving[int(cluster.vmHost, vm)] !== 1) return waits;
    const stuck = decision.stuck.find((other) => other.serverId === id);
    if (stuck !== undefined) return is(stuck.reason.code);
    const { code } = decision.reason;
    if (decision.outcome === 'quiet' && !FOUND_NOTHING.has(code)) return is(code);
    if (mode === 'spread') return against(destinations);
    const drain = drains.find((other) => other.host === cluster.vmHost[vm]);
    return is(drain?.refusal ?? 'not-drained');
  }

  /** @returns null when the aggregate has no such host */
  host(name: string): HostExplanation | null {
    const cluster = this.#cluster;
    const host = cluster.hostIndex.get(name);
    if (host === undefined) return null;
    const { decision, observed, drains } = this.#it;
    const { P, R, H, counted, score } = cluster;
    const vms: HostExplanation['vms'][number][] = [];
    for (let v = 0; v < cluster.V; v++) {
      if (cluster.vmHost[v] !== host) continue;
      const refusal = int(cluster.vmRefusal, v);
      vms.push({
        serverId: item(cluster.vmIds, v),
        weights: this.#weightsOf(v),
        refusal: refusal === 0 ? null : codeOfNumber(refusal),
        assumed: observed.assumed.get(item(cluster.vmIds, v)) ?? null,
      });
    }
    const rank = this.#byPolicy((p) => {
      let above = 0;
      for (let h = 0; h < H; h++) if (counted[h] === 1 && float(score, h * P + p) > float(score, host * P + p)) above++;
      return above + 1;
    });
    const free: Record<string, number> = {};
    for (let r = 0; r < R; r++) free[item(cluster.resourceClasses, r)] = float(cluster.free, host * R + r);
    const steps = decision.plan?.steps ?? [];
    return {
      host: name,
      zone: cluster.hostZone[host] ?? null,
      counted: counted[host] === 1,
      refusal: observed.hostGrounds.get(name) ?? null,
      before: this.#byPolicy((p) => float(score, host * P + p)),
      after: this.#byPolicy((p) => float(this.#end, host * P + p)),
      rank: counted[host] === 1 ? rank : null,
      free,
      vms,
      assumedGone: [...observed.assumed].flatMap(([serverId, one]) =>
        one.observed === name ? [{ serverId, ...one }] : [],
      ),
      arrivals: steps.filter((step) => step.to === name).map((step) => step.step),
      departures: steps.filter((step) => step.from === name).map((step) => step.step),
      drainRefusal: drains.find((drain) => drain.host === host)?.refusal ?? null,
      evacuation: decision.evacuations.find((evacuation) => evacuation.host === name) ?? null,
    };
  }

  /** More about a refusal than its code: Nova's words, or what the NUMA cells lack. */
  #saidOf(vm: number, host: number, refusal: number): Pick<DestinationVerdict, 'novaSaid' | 'lacks'> {
    const { numa } = this.#cluster;
    if (numa !== null && (refusal === codeNumber['numa-fit'] || refusal === codeNumber['numa-unknown'])) {
      const lacks = cellRefusalText(numa, vm, host, item(this.#cluster.hostNames, host));
      return lacks === null ? {} : { lacks };
    }
    if (refusal !== codeNumber['refused-before']) return {};
    const { vmIds, hostNames } = this.#cluster;
    const said = this.#it.observed.refused.get(item(vmIds, vm))?.get(item(hostNames, host));
    return said === undefined ? {} : { novaSaid: said };
  }

  #destinations(
    { vm, from, repairs }: { readonly vm: number; readonly from: number; readonly repairs?: number },
    { place, score, room }: { readonly place: Int32Array; readonly score: Float64Array; readonly room: Room },
  ): DestinationVerdict[] {
    const cluster = this.#cluster;
    const { H, P, policies } = cluster;
    const extremes = new Extremes(cluster, score);
    const pack = this.#it.mode === 'pack';
    const fullness = valuesAfter(cluster, cluster.fullness, cluster.vmHost, place);
    const now = imbalances(cluster, score);
    const combined = combinedOf(cluster, now);
    const verdicts: DestinationVerdict[] = [];
    const checker = new Checker(place, room);
    for (let h = 0; h < H; h++) {
      if (h === from) continue;
      let refusal = checker.refusal(vm, h, repairs);
      if (refusal === 0 && pack && !staysBelow(cluster, fullness, vm, h)) refusal = codeNumber['capacity-threshold'];
      let after = 0;
      const worsens: string[] = [];
      for (let p = 0; p < P; p++) {
        const imbalance = extremes.after(vm, from, h, p);
        const { weight, threshold, name } = item(policies, p);
        after += weight * imbalance;
        if (isWorse(imbalance, float(now, p), threshold)) worsens.push(name);
      }
      verdicts.push({
        host: item(cluster.hostNames, h),
        refusal: refusal === 0 ? null : codeOfNumber(refusal),
        ...this.#saidOf(vm, h, refusal),
        ...(GROUP_RULES.has(refusal)
          ? { lacks: checker.text(refusal, { vm, host: h, repairs: repairs ?? NO_REPAIR }) }
          : {}),
        combined: P === 0 ? null : after,
        gain: P === 0 ? null : combined - after,
        worsens,
      });
    }
    const value = (d: DestinationVerdict): number => d.combined ?? 0;
    // Legal ones first, then by their result; hosts are in the order of their names already.
    return verdicts.sort((a, b) => Number(a.refusal !== null) - Number(b.refusal !== null) || value(a) - value(b));
  }

  #valueOf(host: number, p: number): HostValue | null {
    const { P, score, hostNames } = this.#cluster;
    return host < 0 ? null : { host: item(hostNames, host), value: float(score, host * P + p) };
  }

  #weightsOf(vm: number): ByPolicy {
    return this.#byPolicy((p) => shareOn(this.#cluster, vm, int(this.#cluster.vmHost, vm), p));
  }

  #byPolicy(value: (p: number) => number): ByPolicy {
    return Object.fromEntries(this.#cluster.policies.map((policy, p) => [policy.name, value(p)]));
  }
}

/** The reason that a movable VM stays: most hosts refuse it, or no legal destination gains, or other moves gain more. */
function against(destinations: readonly DestinationVerdict[]): Ground {
  const legal = destinations.filter((d) => d.refusal === null);
  if (legal.length > 0) {
    const allowed = legal.filter((d) => d.worsens.length === 0);
    if (allowed.length === 0) return { code: 'past-threshold', detail: {} };
    const best = Math.max(...allowed.map((d) => d.gain ?? 0));
    return { code: best > EPSILON ? 'not-better' : 'no-gain', detail: { bestGain: best } };
  }
  const counts: Record<string, number> = {};
  let code: ReasonCode = 'no-destination';
  for (const { refusal } of destinations) {
    if (refusal === null) continue;
    counts[refusal] = (counts[refusal] ?? 0) + 1;
    if (code === 'no-destination' || (counts[refusal] ?? 0) > (counts[code] ?? 0)) code = refusal;
  }
  return { code, detail: counts };
}

/** Counts of refusals, and under `free` the name and number of those without one. */
function tally<K extends string>(refusals: Int32Array, name: K): Record<K, number> & { refused: Counts } {
  const refused: Record<string, number> = {};
  let free = 0;
  for (const refusal of refusals) {
    if (refusal === 0) free++;
    else {
      const code = codeOfNumber(refusal);
      refused[code] = (refused[code] ?? 0) + 1;
    }
  }
  return { [name]: free, refused } as Record<K, number> & { refused: Counts };
}
