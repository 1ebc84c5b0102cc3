import type { Decision, Reason, Step } from '@kronos/contracts';
import { meaningOf, type ReasonCode } from '../reasons.ts';
import type { Assumed } from '../snapshot/observe.ts';
import type { Ground } from '../snapshot/unmovable.ts';

/** Values by policy name. */
export type ByPolicy = Readonly<Record<string, number>>;

/** The cycle as a whole: the reason that there is a plan, or that there is none. */
export type CycleExplanation = {
  readonly outcome: Decision['outcome'];
  readonly reason: Reason;
  readonly mode: 'spread' | 'pack';
  /** Every gate that blocks the cycle, not only the first. */
  readonly gates: readonly Reason[];
  readonly policies: readonly {
    readonly policy: string;
    readonly participates: boolean;
    /** The reason that it takes no part. */
    readonly reason: Reason | null;
    readonly imbalance: number | null;
    readonly threshold: number;
    readonly detected: boolean;
    /** Whether a host is above act_above; null: the policy has none. */
    readonly acts: boolean | null;
    readonly sustainedCycles: number;
    readonly neededCycles: number;
    /** The highest and the lowest host: their difference is the imbalance. */
    readonly highest: HostValue | null;
    readonly lowest: HostValue | null;
  }[];
  readonly hosts: { readonly all: number; readonly destinations: number; readonly refused: Counts };
  readonly vms: {
    readonly all: number;
    readonly movable: number;
    readonly refused: Counts;
    /** Those of the movable ones that only an evacuation may move, by reason. */
    readonly evacuationOnly: Counts;
  };
  /** VMs with a released, unfinished move: all figures assume that it is done. */
  readonly assumed: number;
  /** Candidates of the passes that were refused. */
  readonly refusals: Counts;
  /** Pack mode: the result for each host in the drain order. */
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

/** The plan as a whole: the imbalance before it and after each step, and its quality. */
export type PlanExplanation = {
  readonly planner: 'search' | 'greedy';
  readonly budget: number;
  readonly before: Decision['before'];
  readonly after: Decision['before'];
  readonly lowerBound: number | null;
  readonly shareOfPossible: number | null;
  readonly endedBy: 'done' | 'budget' | 'work' | null;
  readonly candidatesEvaluated: number;
  /** Combined imbalance after each step, if the steps ran one after the other. */
  readonly course: readonly { readonly step: number; readonly combined: number; readonly policies: ByPolicy }[];
};

/** One step: the reasons for the VM, for its destination, and against the other hosts. */
export type StepExplanation = {
  readonly step: Step;
  /** The VM's share of its source. */
  readonly weights: ByPolicy;
  readonly source: { readonly host: string; readonly before: ByPolicy; readonly after: ByPolicy };
  readonly destination: { readonly host: string; readonly before: ByPolicy; readonly after: ByPolicy };
  /** Combined imbalance with the whole plan, and with all of it but this step. */
  readonly combined: { readonly withStep: number; readonly withoutStep: number };
  /** Every other host as destination: refused, or with the combined imbalance after the move. Best first. */
  readonly elsewhere: readonly DestinationVerdict[];
};

/** A host as the destination of a VM. */
export type DestinationVerdict = {
  readonly host: string;
  readonly refusal: ReasonCode | null;
  /** Nova's words, with the refusal `refused-before`. */
  readonly novaSaid?: string;
  /** The lack of the host's NUMA cells, with the refusals `numa-fit` and `numa-unknown`; the name of the group whose rule refuses it. */
  readonly lacks?: string;
  /** Combined imbalance with the VM on that host; null when nothing is scored. */
  readonly combined: number | null;
  /** Lowering of the combined imbalance; below 0 it would rise. */
  readonly gain: number | null;
  /** Policies that would get worse and end above their thresholds. */
  readonly worsens: readonly string[];
};

/** Why the host does not take the VM, for people; null: it does. */
export const refusalText = ({ refusal, lacks, novaSaid }: DestinationVerdict): string | null =>
  refusal === null ? null : (lacks ?? (novaSaid === undefined ? meaningOf(refusal) : `Nova refused it: ${novaSaid}`));

/** The reason that a VM stays, or the steps that move it. */
export type VmExplanation = {
  readonly serverId: string;
  readonly serverName: string;
  /** Its host in the snapshot. */
  readonly host: string;
  /** Its released, unfinished move, which the decision assumes to be done; null when it has none. */
  readonly assumed: Assumed | null;
  /** Its share of the host that it is on, or is assumed to be on. */
  readonly weights: ByPolicy;
  /** Names of its server groups. */
  readonly groups: readonly string[];
  /** Steps of the plan that move it. */
  readonly steps: readonly number[];
  /** The reason that the VM does not move wherever it went; null: it may move. */
  readonly refusal: ReasonCode | null;
  /** A reason of the VM itself, a gate, or the reason against its destinations; `planned` when it moves. */
  readonly verdict: Ground;
  /** All hosts as destinations in the start state, best first. */
  readonly destinations: readonly DestinationVerdict[];
};

/** The contents of a host, and the reasons that it takes or loses VMs or does not. */
export type HostExplanation = {
  readonly host: string;
  readonly zone: string | null;
  /** Takes part in the imbalance: up, enabled, not forced down. */
  readonly counted: boolean;
  /** The reason that it is no destination; null when it is one. */
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
    /** Set for a VM that is assumed to be here and was seen elsewhere. */
    readonly assumed: Assumed | null;
  }[];
  /** VMs that were seen here and are assumed to be elsewhere. */
  readonly assumedGone: readonly ({ readonly serverId: string } & Assumed)[];
  readonly arrivals: readonly number[];
  readonly departures: readonly number[];
  /** Pack mode: the reason that it is not drained; null when it is drained, or was not considered. */
  readonly drainRefusal: ReasonCode | null;
  readonly evacuation: Decision['evacuations'][number] | null;
};
