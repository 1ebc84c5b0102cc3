import {
  type CompleteEngineOptions,
  completeEngineOptions,
  type EngineOptions,
  engineOptionsSchema,
  type StorageLimits,
} from '@kronos/contracts';
import { timeZoneRules } from '@kronos/timezone';
import { nearest } from './nearest.ts';
import { type Config, camel, type OptionPath, sections } from './options.ts';
import { aggregateConfig } from './scope.ts';

/** Which option each field of {@link EngineOptions} comes from. */
export const engineFields = {
  evaluationIntervalSeconds: 'engine.evaluation_interval',
  dryRun: 'engine.dry_run',
  approval: 'engine.approval',
  approvalTtlSeconds: 'engine.approval_ttl',
  planTtlSeconds: 'engine.plan_ttl',
  balance: 'engine.balance',
  planner: 'engine.planner',
  minGain: 'engine.min_gain',
  targetRatio: 'engine.target_ratio',
  moveOverheadGib: 'engine.move_overhead_gib',
  moveRateMib: 'engine.move_rate_mib',
  minInstanceAgeSeconds: 'engine.min_instance_age',
  softRules: 'engine.soft_rules',
  softPenalty: 'engine.soft_penalty',
  forecast: 'engine.forecast',
  forecastHorizonSeconds: 'engine.forecast_horizon',
  cooldownSeconds: 'engine.cooldown',
  instanceCooldownSeconds: 'engine.instance_cooldown',
  adaptiveCooldownFactor: 'engine.adaptive_cooldown_factor',
  instanceQuarantineSeconds: 'engine.instance_quarantine_seconds',
  settleSeconds: 'engine.settle_seconds',
  evacuateDisabledHosts: 'engine.evacuate_disabled_hosts',
  evacuationThresholds: 'engine.evacuation_thresholds',
  evacuationIgnoresCooldown: 'engine.evacuation_ignores_cooldown',
  enforceHardAffinity: 'engine.enforce_hard_affinity',
  enforceSoftAffinity: 'engine.enforce_soft_affinity',
  restrictToAz: 'engine.restrict_to_az',
  moveUnknownTopology: 'engine.move_unknown_topology',
  cpuCompatibility: 'nova.cpu_compatibility',
  movableDevices: 'nova.movable_devices',
  requireAllPolicies: 'engine.require_all_policies',
  failoverHosts: 'engine.failover_hosts',
  foreignMoves: 'engine.foreign_moves',
  foreignWaitSeconds: 'engine.foreign_wait',
  packHeadroomHosts: 'engine.pack_headroom_hosts',
  packReachCycles: 'engine.pack_reach_cycles',
  allowParking: 'engine.allow_parking',
  alternates: 'engine.alternates',
  staggerSeconds: 'engine.stagger_seconds',
  maxClockSkewSeconds: 'engine.max_clock_skew',
  windows: 'engine.windows',
  blackouts: 'engine.blackouts',
  timezone: 'engine.timezone',
  evacuationIgnoresWindows: 'engine.evacuation_ignores_windows',
  searchWorkLimit: 'engine.search_work_limit',
  breakerFailures: 'executor.breaker_failures',
  breakerWindowSeconds: 'executor.breaker_window',
  breakerDurationSeconds: 'executor.breaker_duration',
} as const satisfies Record<keyof EngineOptions, OptionPath>;

/** The options that the decisions about one aggregate depend on, as they go into `planner.configured` and into `decide`. */
export function engineOptions(common: Config, aggregate: string): CompleteEngineOptions {
  const config = aggregateConfig(common, aggregate);
  const fields = Object.entries(engineFields).map(([field, path]) => {
    const [section, option] = path.split('.') as ['engine' | 'executor' | 'nova', string];
    return [field, recorded(path, Reflect.get(config[section], camel(option)))];
  });
  return completeEngineOptions(engineOptionsSchema.parse(Object.fromEntries(fields)));
}

/** An option's value as the log has it: a time zone with its changes, so that no decision needs a database of them. */
const recorded = (path: OptionPath, value: unknown): unknown =>
  path === 'engine.timezone' && typeof value === 'string' ? timeZoneRules(value) : value;

type Refused = { readonly ok: false; readonly problem: string; readonly remedy: string };

/** Options that take the place of others, and only those. */
export type Overrides = { readonly ok: true; readonly options: Partial<CompleteEngineOptions> } | Refused;

/**
 * Reads the options of a what-if, each written as `engine.cooldown=0`, by its name in kronos.conf (`kronos replay --set`).
 * Only options that decisions read can be set.
 */
export function engineOverrides(texts: readonly string[]): Overrides {
  const fields: Record<string, unknown> = {};
  for (const text of texts) {
    const [, name, raw = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined)
      return {
        ok: false,
        problem: `${JSON.stringify(text)} is not OPTION=VALUE`,
        remedy: 'For example: engine.cooldown=0.',
      };
    const read = overrideOf(name, raw);
    if (!read.ok) return read;
    fields[read.field] = read.value;
  }
  return { ok: true, options: engineOptionsSchema.partial().parse(fields) as Partial<CompleteEngineOptions> };
}

function overrideOf(
  name: string,
  raw: string,
): { readonly ok: true; readonly field: string; readonly value: unknown } | Refused {
  const [field, path] = Object.entries(engineFields).find(([, path]) => path === name) ?? [];
  const [section = '', option = ''] = name.split('.');
  const spec = sections.get(section)?.get(option);
  if (field === undefined || path === undefined || spec === undefined) {
    const names: string[] = Object.values(engineFields);
    const near = names.find((known) => known.endsWith(`.${name}`)) ?? nearest(name, names);
    return {
      ok: false,
      problem: `${name} is not an option that decisions read`,
      remedy:
        near === null
          ? `Thresholds, weights and budgets are fields of policies.yaml. The options are ${names.join(', ')}.`
          : `Did you mean ${near}?`,
    };
  }
  const parsed = spec.parse(raw);
  if (!parsed.ok) return { ok: false, problem: `${name}: ${parsed.problem}`, remedy: parsed.remedy };
  return { ok: true, field, value: recorded(path, parsed.value) };
}

/** The limits of the streams, as `kronos provision` sets them and services compare them. */
export const storageLimits = (config: Config): StorageLimits => ({
  snapshotMaxAgeSeconds: config.nats.snapshotMaxAge,
  snapshotMaxBytes: config.nats.snapshotMaxBytes,
  logMaxBytes: config.nats.logMaxBytes,
});
