import { z } from 'zod';

/** Devices with which servers can be live-migrated, depending on their hosts. */
export const movableDevices = ['vtpm', 'pci-device', 'vgpu', 'sriov-port'] as const;
export type MovableDevice = (typeof movableDevices)[number];

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
  /** A plan aims at this times the threshold of each policy that has no target of its own. */
  targetRatio: z.number().gt(0).max(1).optional(),
  /** Cost of a move beside what it copies, in GiB. */
  moveOverheadGib: z.number().min(0).optional(),
  /** Rate of the links until enough moves are known, in MiB per second: the writes of a server are compared with it. */
  moveRateMib: z.number().positive().optional(),
  /** Younger servers are not moved, except by evacuation; so are those of unknown age where it is not 0. */
  minInstanceAgeSeconds: z.number().min(0).optional(),
  /** veto: soft group rules are as strict as hard ones. penalty: a broken one adds `softPenalty` to the combined imbalance. */
  softRules: z.enum(['veto', 'penalty']).optional(),
  softPenalty: z.number().min(0).max(1).optional(),
  /** Use former days to predict whether an imbalance ends by itself and whether a plan would be undone. */
  forecast: z.boolean().optional(),
  /** The horizon of the forecast. */
  forecastHorizonSeconds: z.number().positive().optional(),
  cooldownSeconds: z.number().min(0),
  instanceCooldownSeconds: z.number().min(0),
  adaptiveCooldownFactor: z.number().min(1),
  /** -1: until released by an operator. */
  instanceQuarantineSeconds: z.number().min(-1),
  /** A snapshot must have been observed at least this long after the aggregate's last move ended. */
  settleSeconds: z.number().min(0),
  evacuateDisabledHosts: z.boolean(),
  /** prefer: an evacuation or repair may push a policy past its threshold where nothing else helps. require: it may not. */
  evacuationThresholds: z.enum(['prefer', 'require']).optional(),
  evacuationIgnoresCooldown: z.boolean(),
  enforceHardAffinity: z.boolean(),
  enforceSoftAffinity: z.boolean(),
  restrictToAz: z.boolean(),
  /** Servers that need NUMA cells may go where the cells, or their needs, are unknown. */
  moveUnknownTopology: z.boolean().optional(),
  /** traits: a host takes a server only if its `HW_CPU_*` traits include those of the server's host. ignore: they do not matter. */
  cpuCompatibility: z.enum(['traits', 'ignore']).optional(),
  /** Devices with which hosts can live-migrate servers, though no API shows it. */
  movableDevices: z.array(z.enum(movableDevices)).optional(),
  /** The servers of this many hosts that fail must have room on the others, by capacity and hard rules. */
  failoverHosts: z.int().min(0).optional(),
  /** wait: nothing is balanced for `foreignWaitSeconds` after a move of others that undoes or repeats one of Kronos. */
  foreignMoves: z.enum(['wait', 'ignore']).optional(),
  foreignWaitSeconds: z.number().min(0).optional(),
  requireAllPolicies: z.boolean(),
  packHeadroomHosts: z.int().min(0),
  packReachCycles: z.int().min(1),
  allowParking: z.boolean(),
  alternates: z.int().min(0),
  /** Gap between the `notBefore` of one step and the next. */
  staggerSeconds: z.number().min(0),
  maxClockSkewSeconds: z.number().positive(),
  /** When moves may start, in the zone's local time, e.g. `Mon-Fri 22:00-06:00`. Empty: at all times. */
  windows: z.array(z.string()).optional(),
  /** Dates and ranges in which no move starts, e.g. `2026-12-24/2027-01-02`. */
  blackouts: z.array(z.string()).optional(),
  /** The zone with its changes as data; without any it is UTC. */
  timezone: z
    .object({
      name: z.string(),
      /** When each change took effect, seconds since the epoch, ascending. */
      since: z.array(z.int()),
      /** Offset of local time from UTC after each change, in seconds. */
      offsetSeconds: z.array(z.int()),
    })
    .optional(),
  /** Evacuations start at any time, even for servers that have their own windows. */
  evacuationIgnoresWindows: z.boolean().optional(),
  /** Candidates that the search may evaluate: its only limit, counted and not timed. */
  searchWorkLimit: z.int().positive(),
  /** Host breaker: this many failures on one destination within the window exclude it for the duration. */
  breakerFailures: z.int().min(1),
  breakerWindowSeconds: z.number().positive(),
  breakerDurationSeconds: z.number().positive(),
});
export type EngineOptions = z.infer<typeof engineOptionsSchema>;

/** The options of a decision; options that earlier versions did not write have their defaults. */
export const completeEngineOptions = (options: EngineOptions): CompleteEngineOptions => {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...defaultEngineOptions, ...(Object.fromEntries(given) as Partial<CompleteEngineOptions>) };
};

/** All options are present. */
export type CompleteEngineOptions = { [K in keyof EngineOptions]-?: NonNullable<EngineOptions[K]> };

/** The defaults of the option table; libs/config holds them to these. */
export const defaultEngineOptions: CompleteEngineOptions = {
  evaluationIntervalSeconds: 60,
  dryRun: true,
  approval: 'auto',
  approvalTtlSeconds: 900,
  planTtlSeconds: 3600,
  balance: true,
  planner: 'search',
  minGain: 0.001,
  targetRatio: 0.85,
  moveOverheadGib: 8,
  moveRateMib: 100,
  minInstanceAgeSeconds: 0,
  softRules: 'veto',
  softPenalty: 0.05,
  forecast: false,
  forecastHorizonSeconds: 3600,
  cooldownSeconds: 600,
  instanceCooldownSeconds: 1800,
  adaptiveCooldownFactor: 1,
  instanceQuarantineSeconds: 3600,
  settleSeconds: 120,
  evacuateDisabledHosts: false,
  evacuationThresholds: 'prefer',
  evacuationIgnoresCooldown: false,
  enforceHardAffinity: false,
  enforceSoftAffinity: false,
  restrictToAz: false,
  moveUnknownTopology: false,
  cpuCompatibility: 'traits',
  movableDevices: [],
  failoverHosts: 0,
  foreignMoves: 'wait',
  foreignWaitSeconds: 3600,
  requireAllPolicies: false,
  packHeadroomHosts: 0,
  packReachCycles: 3,
  allowParking: false,
  alternates: 2,
  staggerSeconds: 0,
  maxClockSkewSeconds: 5,
  windows: [],
  blackouts: [],
  timezone: { name: 'UTC', since: [], offsetSeconds: [] },
  evacuationIgnoresWindows: false,
  searchWorkLimit: 20_000_000,
  breakerFailures: 3,
  breakerWindowSeconds: 1800,
  breakerDurationSeconds: 1800,
};
