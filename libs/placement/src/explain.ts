import type { Decision, Reason, Step } from '@kronos/contracts';
import { type Cluster, shareOn } from './cluster.ts';
import { check, Room } from './constraints.ts';
import { type DecideInput, type Deliberation, deliberate } from './decide.ts';
import type { Ground } from './filter.ts';
import { combinedOf, EPSILON, Extremes, imbalances, valuesAfter } from './measure.ts';
import { codeOfNumber, type ReasonCode } from './reasons.ts';

/** Values by policy name. */
export type ByPolicy = Readonly<Record<string, number>>;

/** The cycle as a whole: why there is a plan, or why there is none. */
export type CycleExplanation = {
  readonly outcome: Decision['outcome'];
  readonly reason: Reason;
  readonly mode: 'spread' | 'pack';
  /** Every gate that is shut, not only the first. */
  readonly gates: readonly Reason[];
  readonly policies: readonly {
    readonly policy: string;
    readonly participates: boolean;
    /** Why it takes no part. */
    readonly reason: Reason | null;
    readonly imbalance: number | null;
    readonly threshold: number;
    readonly detected: boolean;
    readonly sustainedCycles: number;
    readonly neededCycles: number;
    /** The hosts that make the imbalance. */
    readonly highest: HostValue | null;
    readonly lowest: HostValue | null;
  }[];
  readonly hosts: { readonly all: number; readonly destinations: number; readonly refused: Counts };
  readonly vms: { readonly all: number; readonly movable: number; readonly refused: Counts };
  /** Candidates of the passes that were refused. */
  readonly refusals: Counts;
  /** Pack mode: what became of each host in the drain order. */
  readonly drains: readonly {
    readonly host: string;
    readonly vms: number;
    readonly moves: number;
    readonly refusal: ReasonCode | null;
  }[];
  readonly stuck: Decision['stuck'];
  readonly warnings: Decision['warnings'];
  readonly evacuations: Decision['evacuations'];
};

export type HostValue = { readonly host: string; readonly value: number };
export type Counts = Readonly<Record<string, number>>;

/** The plan as a whole: what it starts from, what each step leads to, how good it is. */
export type PlanExplanation = {
  readonly planner: 'search' | 'greedy';
  readonly budget: number;
  readonly before: Decision['before'];
  readonly after: Decision['before'];
  readonly lowerBound: number | null;
  readonly shareOfPossible: number | null;
  readonly endedBy: 'done' | 'budget' | 'work' | null;
  readonly candidatesEvaluated: number;
  /** Combined imbalance after each step, were they done one after the other. */
  readonly course: readonly { readonly step: number; readonly combined: number; readonly policies: ByPolicy }[];
};

/** One step: why this VM, why there, why not elsewhere. */
export type StepExplanation = {
  readonly step: Step;
  /** What the VM weighs on its source. */
  readonly weights: ByPolicy;
  readonly source: { readonly host: string; readonly before: ByPolicy; readonly after: ByPolicy };
  readonly destination: { readonly host: string; readonly before: ByPolicy; readonly after: ByPolicy };
  /** Combined imbalance with the whole plan, and with all of it but this step. */
  readonly combined: { readonly withStep: number; readonly withoutStep: number };
  /** Every other host in the VM's place: refused, or what the combined imbalance would be. Best first. */
  readonly elsewhere: readonly DestinationVerdict[];
};

/** What a host would mean for a VM. */
export type DestinationVerdict = {
  readonly host: string;
  readonly refusal: ReasonCode | null;
  /** Combined imbalance if it went there; null where nothing is scored. */
  readonly combined: number | null;
  /** Lowering of the combined imbalance; below 0 it would rise. */
  readonly gain: number | null;
  /** Policies that would get worse and end above their thresholds. */
  readonly worsens: readonly string[];
};

/** Why a VM stays where it is, or which steps move it. */
export type VmExplanation = {
  readonly serverId: string;
  readonly serverName: string;
  readonly host: string;
  readonly weights: ByPolicy;
  readonly groups: readonly string[];
  /** Steps of the plan that move it. */
  readonly steps: readonly number[];
  /** The verdict: a gate, its own refusal, or what speaks against every destination; `planned` when it moves. */
  readonly verdict: Ground;
  /** All hosts as destinations in the start state, best first. */
  readonly destinations: readonly DestinationVerdict[];
};

/** What a host holds, and why it takes or loses VMs or does not. */
export type HostExplanation = {
  readonly host: string;
  readonly zone: string | null;
  /** Takes part in the imbalance: up, enabled, not forced down. */
  readonly counted: boolean;
  /** Why it is no destination; null when it is one. */
  readonly refusal: Ground | null;
  readonly before: ByPolicy;
  readonly after: ByPolicy;
  /** Place among the counted hosts by policy: 1 is the highest value; null when it is not counted. */
  readonly rank: Readonly<Record<string, number>> | null;
  /** By resource class. */
  readonly free: ByPolicy;
  readonly vms: readonly {
    readonly serverId: string;
    readonly weights: ByPolicy;
    readonly refusal: ReasonCode | null;
  }[];
  readonly arrivals: readonly number[];
  readonly departures: readonly number[];
  /** Pack mode: why it is not drained; null when it is, or was not considered. */
  readonly drainRefusal: ReasonCode | null;
  readonly evacuation: Decision['evacuations'][number] | null;
};

/**
 * Makes the decision again and answers questions about it, as data. Every answer follows from the same input as the
 * decision: recorded ones are explained by running them again.
 */
export function explain(input: DecideInput): Explanation {
  return new Explanation(input);
}

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
    const states = new Map(decision.before.policies.map((state) => [state.policy, state]));
    return {
      outcome: decision.outcome,
      reason: decision.reason,
      mode,
      gates: gates.map((gate) => gate.reason),
      policies: observed.judged.map(({ policy, reason }) => {
        const p = cluster.policies.findIndex((model) => model.name === policy.name);
        const state = states.get(policy.name);
        return {
          policy: policy.name,
          participates: reason === null,
          reason,
          imbalance: state?.imbalance ?? null,
          threshold: policy.threshold,
          detected: state?.detected ?? false,
          sustainedCycles: state?.sustainedCycles ?? 0,
          neededCycles: policy.minSustainedCycles,
          highest: reason === null ? this.#extreme(p, 1) : null,
          lowest: reason === null ? this.#extreme(p, -1) : null,
        };
      }),
      hosts: { all: cluster.H, ...tally(cluster.hostRefusal, 'destinations') },
      vms: { all: cluster.V, ...tally(cluster.vmRefusal, 'movable') },
      refusals: decision.refusals,
      drains: drains.map((drain) => ({
        host: cluster.hostNames[drain.host] ?? '',
        vms: drain.vms,
        moves: drain.moves,
        refusal: drain.refusal,
      })),
      stuck: decision.stuck,
      warnings: decision.warnings,
      evacuations: decision.evacuations,
    };
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
        policies: this.#byPolicy((p) => imbalance[p] ?? 0),
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
      this.#byPolicy((p) => score[host * cluster.P + p] ?? 0);
    const place = Int32Array.from(completed.place);
    const home = cluster.vmHost[vm] ?? from;
    place[vm] = home;
    const without = valuesAfter(cluster, cluster.score, cluster.vmHost, place);
    // As if the VM alone were still to move: the room that the other moves leave.
    const room = new Room(cluster, false);
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
      elsewhere: this.#destinations(vm, home, place, without, room, move.repairs).filter((d) => d.host !== step.to),
    };
  }

  /** @returns null when the snapshot has no such server on a host of the aggregate */
  vm(serverId: string): VmExplanation | null {
    const cluster = this.#cluster;
    const vm = cluster.vmIndex.get(serverId);
    if (vm === undefined) return null;
    const { decision, observed, gates } = this.#it;
    const host = cluster.vmHost[vm] ?? 0;
    const steps = (decision.plan?.steps ?? []).filter((step) => step.serverId === serverId).map((step) => step.step);
    const room = new Room(cluster, false);
    const destinations = this.#destinations(vm, host, cluster.vmHost, cluster.score, room);
    const gate = gates[0];
    let verdict: Ground;
    const own = observed.vmGrounds.get(serverId);
    if (steps.length > 0) verdict = { code: 'planned', detail: {} };
    else if (decision.outcome === 'gated' && gate !== undefined)
      verdict = { code: gate.reason.code as ReasonCode, detail: {} };
    else if (own !== undefined) verdict = own;
    else verdict = against(destinations);
    return {
      serverId,
      serverName: cluster.vmNames[vm] ?? '',
      host: cluster.hostNames[host] ?? '',
      weights: this.#weightsOf(vm),
      groups: (cluster.vmGroups[vm] ?? []).map((g) => cluster.groups[g]?.id ?? ''),
      steps,
      verdict,
      destinations,
    };
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
      const refusal = cluster.vmRefusal[v] ?? 0;
      vms.push({
        serverId: cluster.vmIds[v] ?? '',
        weights: this.#weightsOf(v),
        refusal: refusal === 0 ? null : codeOfNumber(refusal),
      });
    }
    const rank = this.#byPolicy((p) => {
      let above = 0;
      for (let h = 0; h < H; h++) if (counted[h] === 1 && (score[h * P + p] ?? 0) > (score[host * P + p] ?? 0)) above++;
      return above + 1;
    });
    const free: Record<string, number> = {};
    for (let r = 0; r < R; r++) free[cluster.resourceClasses[r] ?? ''] = cluster.free[host * R + r] ?? 0;
    const steps = decision.plan?.steps ?? [];
    return {
      host: name,
      zone: cluster.hostZone[host] ?? null,
      counted: counted[host] === 1,
      refusal: observed.hostGrounds.get(name) ?? null,
      before: this.#byPolicy((p) => score[host * P + p] ?? 0),
      after: this.#byPolicy((p) => this.#end[host * P + p] ?? 0),
      rank: counted[host] === 1 ? rank : null,
      free,
      vms,
      arrivals: steps.filter((step) => step.to === name).map((step) => step.step),
      departures: steps.filter((step) => step.from === name).map((step) => step.step),
      drainRefusal: drains.find((drain) => drain.host === host)?.refusal ?? null,
      evacuation: decision.evacuations.find((evacuation) => evacuation.host === name) ?? null,
    };
  }

  #destinations(
    vm: number,
    from: number,
    place: Int32Array,
    score: Float64Array,
    room: Room,
    repairs?: number,
  ): DestinationVerdict[] {
    const cluster = this.#cluster;
    const { H, P, policies } = cluster;
    const extremes = new Extremes(cluster);
    extremes.update(score);
    const now = imbalances(cluster, score);
    const combined = combinedOf(cluster, now);
    const verdicts: DestinationVerdict[] = [];
    for (let h = 0; h < H; h++) {
      if (h === from) continue;
      const refusal = check(cluster, place, room, vm, h, repairs);
      let after = 0;
      const worsens: string[] = [];
      for (let p = 0; p < P; p++) {
        const imbalance = extremes.after(score, vm, from, h, p);
        after += (policies[p]?.weight ?? 0) * imbalance;
        if (imbalance > (policies[p]?.threshold ?? 0) + EPSILON && imbalance > (now[p] ?? 0) + EPSILON)
          worsens.push(policies[p]?.name ?? '');
      }
      verdicts.push({
        host: cluster.hostNames[h] ?? '',
        refusal: refusal === 0 ? null : codeOfNumber(refusal),
        combined: P === 0 ? null : after,
        gain: P === 0 ? null : combined - after,
        worsens,
      });
    }
    const value = (d: DestinationVerdict): number => d.combined ?? 0;
    // Legal ones first, then by what they lead to; hosts are in the order of their names already.
    return verdicts.sort((a, b) => Number(a.refusal !== null) - Number(b.refusal !== null) || value(a) - value(b));
  }

  #extreme(p: number, sign: 1 | -1): HostValue | null {
    const { H, P, counted, score, hostNames } = this.#cluster;
    let best = -1;
    for (let h = 0; h < H; h++) {
      if (counted[h] !== 1) continue;
      if (best < 0 || sign * (score[h * P + p] ?? 0) > sign * (score[best * P + p] ?? 0)) best = h;
    }
    return best < 0 ? null : { host: hostNames[best] ?? '', value: score[best * P + p] ?? 0 };
  }

  #weightsOf(vm: number): ByPolicy {
    return this.#byPolicy((p) => shareOn(this.#cluster, vm, this.#cluster.vmHost[vm] ?? 0, p));
  }

  #byPolicy(value: (p: number) => number): ByPolicy {
    return Object.fromEntries(this.#cluster.policies.map((policy, p) => [policy.name, value(p)]));
  }
}

/** What speaks against moving a VM that may move: what most hosts say, or that no legal destination gains, or that others do more. */
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
