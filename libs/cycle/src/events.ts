import {
  type Actor,
  byText,
  type CycleDecided,
  type Decision,
  decisionSchema,
  type EngineOptions,
  iso,
  messageId,
  type ObjectRef,
  type PlanLoads,
  type PlannerConfigured,
  type Snapshot,
  type Step,
} from '@kronos/contracts';
import { startable } from '@kronos/projections';
import { digest } from './digest.ts';

/** A larger event keeps the reasons of its steps in the details bucket. */
export const MAX_EVENT_BYTES = 512 * 1024;

/**
 * The release of a decision's plan: released with its event, proposed, or recorded only (a dry run, or a closed window).
 *
 * @param atMs time of its event; the windows of all its moves may have closed since its snapshot
 */
export function releaseOf(
  { plan }: Decision,
  options: Pick<EngineOptions, 'dryRun' | 'approval'>,
  atMs: number,
): CycleDecided['data']['release'] {
  if (plan === null) return 'none';
  if (options.dryRun) return 'dryRun';
  // Its moves may not start now: it is made again when the window opens.
  if (plan.window?.open === false || startable(plan.steps, atMs).length === 0) return 'none';
  return options.approval === 'manual' ? 'proposed' : 'released';
}

/**
 * The decision for an event whose details are in the bucket: without reasons of steps, and with only those loads by which its moves are judged.
 */
export function withoutDetails(decision: Decision): Decision {
  const { plan } = decision;
  if (plan === null) return decision;
  const steps = plan.steps.map(({ why: _, ...step }) => step);
  const loads = plan.loads === undefined ? {} : { loads: decisiveLoads(plan.loads, steps) };
  return { ...decision, plan: { ...plan, steps, ...loads } };
}

/** Hosts without a move whose loads are kept for each policy: the highest and as many of the lowest. Moves of later plans may change some. */
const UNMOVED_KEPT = 20;

/** The loads of the hosts of the steps, and of those others that may be the highest or the lowest. In thousands of hosts they are few. */
function decisiveLoads({ policies, hosts }: PlanLoads, steps: readonly Step[]): PlanLoads {
  const kept = new Set(steps.flatMap(({ from, to, alternates }) => [from, to, ...alternates]));
  const others = hosts.filter(({ host }) => !kept.has(host));
  policies.forEach((_, p) => {
    const ranked = others.toSorted((a, b) => (a.values[p] ?? 0) - (b.values[p] ?? 0) || byText(a.host, b.host));
    for (const { host } of [...ranked.slice(0, UNMOVED_KEPT), ...ranked.slice(-UNMOVED_KEPT)]) kept.add(host);
  });
  return { policies, hosts: hosts.filter(({ host }) => kept.has(host)) };
}

/** The decision as its event holds it: without the reasons of its steps where those are kept in the bucket. */
export const decisionOf = (data: CycleDecided['data']): Decision => decisionSchema.parse(data);

/** The options that a recorded decision was made by: those in force, with the work that its planner had the time for. */
export const optionsOfDecision = (
  inForce: EngineOptions,
  { searchWorkLimit = inForce.searchWorkLimit }: Pick<CycleDecided['data'], 'searchWorkLimit'>,
): EngineOptions => ({ ...inForce, searchWorkLimit });

export type DecidedContext = {
  readonly snapshot: Snapshot;
  readonly basis: number;
  readonly plannerVersion: string;
  readonly options: EngineOptions;
  readonly digests: CycleDecided['data']['digests'];
  readonly searchWorkLimit?: CycleDecided['data']['searchWorkLimit'];
  readonly absence?: CycleDecided['data']['absence'] | undefined;
  readonly novaRefusals?: CycleDecided['data']['novaRefusals'] | undefined;
  readonly loads?: CycleDecided['data']['loads'] | undefined;
  readonly details: ObjectRef | null;
  readonly by: Actor;
  readonly nowMs: number;
};

/** The one event of a decided snapshot. */
export function decidedEvent(decision: Decision, context: DecidedContext): CycleDecided {
  const { snapshot, basis, plannerVersion, options, digests, details, by, nowMs } = context;
  const { searchWorkLimit, absence, novaRefusals, loads } = context;
  return {
    type: 'cycle.decided',
    version: 1,
    id: messageId.decided(snapshot.id),
    time: iso(nowMs),
    aggregate: snapshot.aggregate,
    by,
    correlationId: snapshot.id,
    causationId: messageId.snapshot(snapshot.id),
    data: {
      ...decision,
      snapshotId: snapshot.id,
      snapshotTime: snapshot.time,
      cycle: snapshot.cycle,
      basis,
      release: releaseOf(decision, options, nowMs),
      plannerVersion,
      digests,
      ...(searchWorkLimit === undefined ? {} : { searchWorkLimit }),
      ...(absence === undefined ? {} : { absence }),
      ...(novaRefusals === undefined ? {} : { novaRefusals }),
      ...(loads === undefined ? {} : { loads }),
      details,
    },
  };
}

/** The options of a planner, and who writes them. */
export type Configuration = {
  readonly aggregate: string;
  readonly options: EngineOptions;
  readonly plannerVersion: string;
  /** Sequence of the log after which they hold. */
  readonly basis: number;
  readonly by: Actor;
  readonly nowMs: number;
  readonly startedAfter?: number | undefined;
};

/** The event that puts the options on the log before the first decision that uses them. */
export function configuredEvent(configuration: Configuration): PlannerConfigured {
  const { aggregate, options, plannerVersion, basis, by, nowMs, startedAfter } = configuration;
  const optionsDigest = digest(options);
  return {
    type: 'planner.configured',
    version: 1,
    id: messageId.configured(aggregate, optionsDigest, basis),
    time: iso(nowMs),
    aggregate,
    by,
    correlationId: optionsDigest,
    causationId: null,
    data: { plannerVersion, optionsDigest, options, ...(startedAfter === undefined ? {} : { startedAfter }) },
  };
}
