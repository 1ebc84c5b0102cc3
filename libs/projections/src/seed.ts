import { type EngineOptions, isRecord } from '@kronos/contracts';
import { CooldownsInvalid } from './errors.ts';
import {
  type AggregateFacts,
  initialAggregateFacts,
  type LogState,
  type OperatorQuarantine,
  RECENT_RELEASES,
} from './state.ts';

/** The content of `cooldowns.json`: remaining seconds. */
export type Cooldowns = {
  /** By aggregate. */
  readonly aggregate_cooldowns: Readonly<Record<string, number>>;
  /** By server uuid. */
  readonly instance_cooldowns: Readonly<Record<string, number>>;
  /** By server uuid; -1: for ever. */
  readonly instance_quarantines: Readonly<Record<string, number>>;
};

/** The template that a recording comes with. */
export const emptyCooldowns: Cooldowns = {
  aggregate_cooldowns: {},
  instance_cooldowns: {},
  instance_quarantines: {},
};

/**
 * Checks a parsed `cooldowns.json`. Every section is optional.
 *
 * @throws CooldownsInvalid naming every section and entry that is wrong
 */
export function readCooldowns(json: unknown): Cooldowns {
  const sections = Object.keys(emptyCooldowns) as (keyof Cooldowns)[];
  if (!isRecord(json)) throw new CooldownsInvalid([`it must be an object with the sections ${sections.join(', ')}`]);
  const problems: string[] = [];
  for (const key of Object.keys(json))
    if (!sections.some((s) => s === key)) problems.push(`${key}: no such section; there are ${sections.join(', ')}`);
  const read = (section: keyof Cooldowns, forEver: boolean): Record<string, number> => {
    const value = json[section];
    const out: Record<string, number> = {};
    if (value === undefined) return out;
    if (!isRecord(value)) {
      problems.push(`${section}: must be an object of names and seconds`);
      return out;
    }
    for (const [name, seconds] of Object.entries(value)) {
      const fits =
        typeof seconds === 'number' && Number.isFinite(seconds) && (seconds >= 0 || (forEver && seconds === -1));
      if (fits) out[name] = seconds;
      else
        problems.push(
          `${section}.${name}: ${JSON.stringify(seconds)} is not a number of seconds, 0 or more${forEver ? ', or -1 without end' : ''}`,
        );
    }
    return out;
  };
  const cooldowns = {
    aggregate_cooldowns: read('aggregate_cooldowns', false),
    instance_cooldowns: read('instance_cooldowns', false),
    instance_quarantines: read('instance_quarantines', true),
  };
  if (problems.length > 0) throw new CooldownsInvalid(problems);
  return cooldowns;
}

/**
 * The state with these cooldowns, started so early that, by the given options, they end after the seconds they have
 * left. Aggregate and instance cooldowns are clamped to the configured durations. VMs are not told by aggregate, so
 * theirs are stated for every one of `aggregates`.
 */
export function seed(
  state: LogState,
  cooldowns: Cooldowns,
  given: {
    readonly nowMs: number;
    readonly aggregates: readonly string[];
    readonly options: Pick<EngineOptions, 'cooldownSeconds' | 'instanceCooldownSeconds'>;
  },
): LogState {
  const { nowMs, options } = given;
  const begunMs = (remaining: number, duration: number) => nowMs - (duration - Math.min(remaining, duration)) * 1000;
  const aggregates = new Map(state.aggregates);
  for (const aggregate of given.aggregates) {
    const facts = aggregates.get(aggregate) ?? initialAggregateFacts;
    const cooldown = cooldowns.aggregate_cooldowns[aggregate] ?? 0;
    const vmReleases = new Map(facts.vmReleases);
    for (const [serverId, remaining] of positive(cooldowns.instance_cooldowns)) {
      const atMs = begunMs(remaining, options.instanceCooldownSeconds);
      const times = [...(vmReleases.get(serverId) ?? []), atMs].sort((a, b) => a - b);
      vmReleases.set(serverId, times.slice(-RECENT_RELEASES));
    }
    const operatorQuarantines = new Map(facts.operatorQuarantines);
    for (const [serverId, seconds] of Object.entries(cooldowns.instance_quarantines)) {
      if (seconds === 0) continue;
      const quarantine: OperatorQuarantine = {
        sequence: state.sequence,
        atMs: nowMs,
        commandId: SEED,
        by: SEED,
        comment: null,
        seconds,
      };
      operatorQuarantines.set(serverId, quarantine);
    }
    const begun = begunMs(cooldown, options.cooldownSeconds);
    const later = facts.lastRelease === null || facts.lastRelease.atMs < begun;
    const seeded: AggregateFacts = {
      ...facts,
      lastRelease: cooldown > 0 && later ? { planId: SEED, atMs: begun } : facts.lastRelease,
      vmReleases,
      operatorQuarantines,
    };
    aggregates.set(aggregate, seeded);
  }
  return { ...state, aggregates };
}

const SEED = 'cooldowns.json';

const positive = (record: Readonly<Record<string, number>>): [string, number][] =>
  Object.entries(record).filter(([, seconds]) => seconds > 0);
