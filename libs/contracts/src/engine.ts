import { z } from 'zod';

/**
 * Everything but snapshot, log and planner version that a decision depends on: the `[engine]` section (and the few
 * `[executor]` and `[nova]` settings that decisions read) as the planner writes it to the log in `planner.configured`.
 * Durations are seconds.
 */
export const engineOptionsSchema = z.object({
  evaluationIntervalSeconds: z.number().positive(),
  dryRun: z.boolean(),
  approval: z.enum(['auto', 'manual']),
  approvalTtlSeconds: z.number().positive(),
  planTtlSeconds: z.number().positive(),
  balance: z.boolean(),
  planner: z.enum(['search', 'greedy']),
  /** A spread move must lower the combined imbalance by at least this. */
  minGain: z.number().min(0),
  cooldownSeconds: z.number().min(0),
  instanceCooldownSeconds: z.number().min(0),
  adaptiveCooldownFactor: z.number().min(1),
  /** -1: until released by an operator. */
  instanceQuarantineSeconds: z.number().min(-1),
  /** A snapshot must have been observed at least this long after the aggregate's last move ended. */
  settleSeconds: z.number().min(0),
  evacuateDisabledHosts: z.boolean(),
  evacuationIgnoresCooldown: z.boolean(),
  enforceHardAffinity: z.boolean(),
  enforceSoftAffinity: z.boolean(),
  restrictToAz: z.boolean(),
  requireAllPolicies: z.boolean(),
  packHeadroomHosts: z.int().min(0),
  packReachCycles: z.int().min(1),
  allowParking: z.boolean(),
  alternates: z.int().min(0),
  /** Gap between the `notBefore` of one step and the next. */
  staggerSeconds: z.number().min(0),
  maxClockSkewSeconds: z.number().positive(),
  /** Candidates that the search may evaluate: its only limit, counted and not timed. */
  searchWorkLimit: z.int().positive(),
  /** Host breaker: so many failures on one destination within the window take it out for the duration. */
  breakerFailures: z.int().min(1),
  breakerWindowSeconds: z.number().positive(),
  breakerDurationSeconds: z.number().positive(),
});
export type EngineOptions = z.infer<typeof engineOptionsSchema>;

/** The defaults of the option table; libs/config holds them to these. */
export const defaultEngineOptions: EngineOptions = {
  evaluationIntervalSeconds: 60,
  dryRun: true,
  approval: 'auto',
  approvalTtlSeconds: 900,
  planTtlSeconds: 3600,
  balance: true,
  planner: 'search',
  minGain: 0.001,
  cooldownSeconds: 600,
  instanceCooldownSeconds: 1800,
  adaptiveCooldownFactor: 1,
  instanceQuarantineSeconds: 3600,
  settleSeconds: 120,
  evacuateDisabledHosts: false,
  evacuationIgnoresCooldown: false,
  enforceHardAffinity: false,
  enforceSoftAffinity: false,
  restrictToAz: false,
  requireAllPolicies: false,
  packHeadroomHosts: 0,
  packReachCycles: 3,
  allowParking: false,
  alternates: 2,
  staggerSeconds: 0,
  maxClockSkewSeconds: 5,
  searchWorkLimit: 20_000_000,
  breakerFailures: 3,
  breakerWindowSeconds: 1800,
  breakerDurationSeconds: 1800,
};
