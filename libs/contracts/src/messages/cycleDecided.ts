import { z } from 'zod';
import { isoTimeSchema, objectRefSchema } from '../envelope.ts';
import { clause, decisionWords, releaseWords } from '../phrases.ts';
import { decisionSchema, hostLoadSchema } from '../plans.ts';
import { count } from '../words.ts';
import { defineEvent } from './define.ts';

/** Exactly one per decided snapshot, on `kronos.plans.<agg>`. */
export const cycleDecided = defineEvent({
  type: 'cycle.decided',
  writers: ['planner'],
  data: decisionSchema.extend({
    snapshotId: z.string(),
    snapshotTime: isoTimeSchema,
    cycle: z.int(),
    /** The log was folded up to this sequence; what comes after is no part of the decision. */
    basis: z.int().min(0),
    /** The plan is released with this event, waits for approval, or is a dry run's and never released. */
    release: z.enum(['released', 'proposed', 'dryRun', 'none']),
    plannerVersion: z.string(),
    digests: z.object({
      snapshot: z.string(),
      policies: z.string(),
      state: z.string(),
      options: z.string(),
      decision: z.string(),
    }),
    /**
     * Candidates that the search might evaluate, where it was given less than the options allow: the decisions before it took longer than
     * the interval. The digest of the options has it.
     */
    searchWorkLimit: z.int().positive().optional(),
    /**
     * Servers with a failed move that are in no host's list any more, or are there again. A failure is forgotten when its
     * server has been absent for 7 days.
     */
    absence: z.object({ gone: z.array(z.string()), back: z.array(z.string()) }).optional(),
    /**
     * Refusals of Nova that this decision saw first: the shape of the server, and the destination as it was (`shapeOf` and `markOf` of
     * libs/facts). A refusal counts while the destination is the same.
     */
    novaRefusals: z
      .array(z.object({ serverId: z.string(), host: z.string(), shape: z.string(), mark: z.string() }))
      .optional(),
    /**
     * Values of hosts by policy, in the snapshot: of the hosts that the plan moves VMs between, and of those whose moves wait, or ended and
     * were not compared yet; none while a VM leaves or enters it. What was predicted is compared with them.
     */
    loads: z.array(hostLoadSchema).optional(),
    /** The reference to the explanation when it is too large for the event. */
    details: objectRefSchema.nullable(),
  }),
  names: {
    outcome: 'kept',
    reason: 'nested',
    before: 'nested',
    plan: 'nested',
    refusals: 'nested',
    warnings: 'nested',
    stuck: 'nested',
    evacuations: 'nested',
    course: 'nested',
    failover: 'nested',
    foreign: 'nested',
    snapshotId: 'id',
    snapshotTime: 'kept',
    cycle: 'kept',
    basis: 'kept',
    release: 'kept',
    plannerVersion: 'kept',
    digests: 'nested',
    searchWorkLimit: 'kept',
    absence: 'nested',
    novaRefusals: 'nested',
    loads: 'nested',
    details: 'nested',
  },
  sentence: (event) => {
    const { plan, release, reason, outcome } = event.data;
    if (plan === null) return `${decisionWords[outcome]}: ${clause(reason.text)}`;
    return `planned ${count(plan.steps.length, 'move')}, ${releaseWords[release]}: ${clause(reason.text)}`;
  },
});
export type CycleDecided = z.infer<typeof cycleDecided.schema>;
