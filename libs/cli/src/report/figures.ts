/** The figures of a report: the acts of Kronos, or those that a dry run left out. Pure. */
import type { Course, ProfileSum } from '@kronos/contracts';
import type { Generation } from '@kronos/placement';
import type { PredictionFigures } from './predictions.ts';

/** One policy over the time that was observed. */
type PolicyOverTime = {
  readonly policy: string;
  /** The last one that was in force. */
  readonly threshold: number;
  /** Mean over time; null where it took part in no decision. */
  readonly mean: number | null;
  readonly highest: number | null;
  readonly aboveMs: number;
  /** The same, with each plan carried out in full when it was made. */
  readonly meanAfterPlans: number | null;
  readonly aboveAfterPlansMs: number;
};

export type AggregateFigures = {
  readonly aggregate: string;
  /** Times of the first and of the last decision, ms since the epoch. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Time that decisions stand for: each until the next one, at most two intervals. */
  readonly observedMs: number;
  readonly decisions: { readonly planned: number; readonly quiet: number; readonly gated: number };
  /** Gated decisions by the code of their reason. */
  readonly gates: Readonly<Record<string, number>>;
  readonly combined: { readonly mean: number | null; readonly meanAfterPlans: number | null };
  readonly policies: readonly PolicyOverTime[];
  /** `approved` counts those of `proposed` that a person approved. */
  readonly plans: {
    readonly released: number;
    readonly proposed: number;
    readonly approved: number;
    readonly dryRun: number;
  };
  /** The most that plans in dry run would have moved; null where there was no such plan. */
  readonly dryRun: { readonly plans: number; readonly moves: number; readonly memoryMb: number } | null;
  readonly moves: {
    readonly completed: number;
    /** Of the completed ones: with a warning; and, of all, with their server in ERROR afterwards. */
    readonly warned: number;
    readonly damaged: number;
    /** Final failures by error type. */
    readonly failed: Readonly<Record<string, number>>;
    readonly skipped: number;
    readonly retries: number;
  };
  /** Over the completed moves that state it. */
  readonly copying: { readonly runningMs: number; readonly memoryBytes: number; readonly moves: number };
  /** Combined imbalance around the released plans whose moves have all ended; null where there is none. */
  readonly effect: {
    readonly plans: number;
    readonly before: number;
    readonly expected: number;
    readonly measured: number;
  } | null;
  readonly predictions: PredictionFigures;
  /** The rest of the course at the last decision that looked for one, and the time of that decision; null: no rest, or it found no course. */
  readonly course:
    | (Pick<Course, 'reaches' | 'moves' | 'costGib' | 'cycles' | 'seconds'> & { readonly atMs: number })
    | null;
  /** VMs that broke the rule of a server group, of those rules that Kronos repairs. */
  readonly breaches: { readonly servers: number; readonly repairable: number };
  /** Moves of others that undo or repeat those of Kronos, and the time in which it waited for that reason. */
  readonly foreign: { readonly moves: number; readonly undone: number; readonly waitMs: number };
  readonly evacuations: { readonly servers: number; readonly stuck: number };
  /** Policies whose VMs do not add up to their hosts, by the newest snapshot; of a recording none. */
  readonly profileSums: readonly ProfileSum[];
  /** Generations of CPUs whose VMs may not move to all other hosts, by the newest snapshot; of a recording none. */
  readonly generations: readonly Generation[];
  /** Broken server groups that Kronos does not repair, by the newest snapshot, in a sentence; absent: none, or a recording. */
  readonly brokenGroups?: string;
  /** VMs that plans move to hosts of a newer generation, from which they may not return. */
  readonly oneWay: number;
  /** Refused candidates by the code of their reason, over all decisions. */
  readonly refusals: Readonly<Record<string, number>>;
};

/** The figures of the newest snapshot of an aggregate. */
export type NewestFacts = Pick<AggregateFigures, 'profileSums' | 'generations' | 'brokenGroups'>;

/** A decision as the chart draws it. */
export type ReportCycle = {
  readonly aggregate: string;
  readonly timeMs: number;
  /** As it was, and the moves that were released. */
  readonly recorded: { readonly combined: number | null; readonly moves: number };
  /** With the plan carried out, and the moves that were released or would have been at most. */
  readonly planned: { readonly combined: number | null; readonly moves: number };
};
