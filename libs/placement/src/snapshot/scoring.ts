import {
  byText,
  type CompleteEngineOptions,
  type Health,
  type HostObservation,
  type HostQuery,
  type HostReading,
  hostReadingOf,
  type Policy,
  type PolicyScores,
  type Reason,
  type Snapshot,
} from '@kronos/contracts';
import { isServing } from '@kronos/facts';
import { isAbove } from '@kronos/rules';
import { LARGEST } from '../cluster/grid.ts';
import type { ReasonCode } from '../reasons.ts';
import { type DefaultSizes, defaultSizes } from './sizes.ts';

/** The input of the scores of an aggregate. */
export type ScoreInput = Pick<Snapshot, 'policies' | 'hosts' | 'hostReadings'> & {
  readonly options: Pick<CompleteEngineOptions, 'balance'>;
};

/** True when the host's service allows it to be a destination. Only such hosts take part in an imbalance. */
export const isCounted = ({ service }: { readonly service: Parameters<typeof isServing>[0] }): boolean =>
  isServing(service);

/** One enabled policy with the host values that it judges by. */
export type JudgedPolicy = {
  readonly policy: Policy;
  /** The reason that it takes no part; null when it does. */
  readonly reason: Reason | null;
  /** Raw value by host; empty when it takes no part. */
  readonly values: ReadonlyMap<string, number>;
  /** Size by host, as a share of the largest; empty when hosts are alike. */
  readonly sizes: ReadonlyMap<string, number>;
  /** The totals in Placement that the sizes are of; null: of a query, or hosts are alike. */
  readonly assumed: DefaultSizes | null;
  /** Whether a host is above `actAbove`; null: the policy has none, or takes no part. */
  readonly acts: boolean | null;
  /** Fill level by host (pack mode); empty in spread mode. */
  readonly capacities: ReadonlyMap<string, number>;
};

const unhealthy: Record<Exclude<Health, 'HEALTHY'>, ReasonCode> = {
  STALE: 'policy-stale',
  PARTIAL: 'policy-partial',
  UNREACHABLE: 'policy-unreachable',
  ERROR: 'policy-error',
};

type Answer = { readonly values: ReadonlyMap<string, number> } | { readonly reason: Reason };

function answerOf(asked: HostQuery, hosts: readonly HostObservation[], readings: readonly HostReading[]): Answer {
  const { query } = asked;
  const reading = hostReadingOf(readings, asked);
  if (reading === undefined)
    return { reason: { code: 'policy-not-read', text: `the snapshot holds no answer to ${query}`, detail: { query } } };
  if (reading.health !== 'HEALTHY') {
    const { health, text, cause } = reading;
    const detail = { query, health, ...(cause === undefined ? {} : { cause }) };
    return { reason: { code: unhealthy[health], text, detail } };
  }
  const values = new Map<string, number>();
  const missing: string[] = [];
  for (const host of hosts) {
    const value = Object.hasOwn(reading.values, host.name) ? reading.values[host.name] : undefined;
    if (value !== undefined && Number.isFinite(value)) values.set(host.name, value);
    else if (host.service.state !== 'down') missing.push(host.name);
  }
  if (missing.length > 0) {
    missing.sort(byText);
    const text = `no value for ${missing.length} of ${hosts.length} hosts, ${missing[0]} among them`;
    return { reason: { code: 'policy-partial', text, detail: { query, hosts: missing.slice(0, 20) } } };
  }
  return { values };
}

function outOfRange(values: ReadonlyMap<string, number>, query: string): Reason | null {
  for (const host of [...values.keys()].sort(byText)) {
    const value = values.get(host) ?? 0;
    if (value < 0 || value > 1)
      return {
        code: 'policy-out-of-range',
        text: `${host} has the value ${value}, outside [0,1]`,
        detail: { query, host, value },
      };
  }
  return null;
}

/** Sizes as shares of the largest, or why they cannot be used. `query`: where they are from. */
function relativeSizes(given: ReadonlyMap<string, number>, query: string): Answer {
  const bad = (text: string, detail: NonNullable<Reason['detail']>): Answer => ({
    reason: { code: 'policy-bad-size', text, detail: { query, ...detail } },
  });
  for (const [host, size] of given) if (size <= 0) return bad(`${host} has the size ${size}`, { host, size });
  // Only the ratios count. Beyond this ratio, loads could not be calculated without rounding.
  const largest = Math.max(...given.values());
  for (const [host, size] of given)
    if (largest > size * LARGEST)
      return bad(`${host} has the size ${size}, more than ${LARGEST} times smaller than the largest, ${largest}`, {
        host,
        size,
        largest,
      });
  return { values: new Map([...given].map(([host, size]) => [host, size / largest])) };
}

/** Decides for each enabled policy whether it takes part, and with which values. Sorted by name. */
export function judgePolicies(input: ScoreInput): JudgedPolicy[] {
  if (!input.options.balance) return [];
  const hosts = [...input.hosts].sort((a, b) => byText(a.name, b.name));
  const anyCounted = hosts.some(isCounted);
  const none = new Map<string, number>();
  return input.policies
    .filter((policy) => policy.enabled)
    .sort((a, b) => byText(a.name, b.name))
    .map((policy) => {
      const skipped = (reason: Reason): JudgedPolicy => ({
        policy,
        reason,
        values: none,
        sizes: none,
        assumed: null,
        acts: null,
        capacities: none,
      });
      const ask = (query: string): Answer => answerOf({ query, label: policy.hostLabel }, hosts, input.hostReadings);
      const scores = ask(policy.imbalanceQuery);
      if ('reason' in scores) return skipped(scores.reason);
      const range = outOfRange(scores.values, policy.imbalanceQuery);
      if (range !== null) return skipped(range);
      const acting = actsOn(policy, hosts, scores.values, ask);
      if (acting !== null && typeof acting !== 'boolean') return skipped(acting);
      const assumed = defaultSizes(policy, hosts);
      const sizes = sizesOf(policy, assumed, ask);
      if ('reason' in sizes) return skipped(sizes.reason);
      const capacity = policy.mode === 'pack' ? capacitiesOf(policy, ask) : { values: none };
      if ('reason' in capacity) return skipped(capacity.reason);
      if (!anyCounted) return skipped({ code: 'policy-no-destination', text: 'no host is up and enabled', detail: {} });
      const judged = { policy, reason: null, assumed, acts: acting };
      return { ...judged, values: scores.values, sizes: sizes.values, capacities: capacity.values };
    });
}

/** The relative sizes of the hosts, of the policy's query or as assumed; empty: all are alike. */
function sizesOf(
  { hostSizeQuery }: Policy,
  assumed: ReturnType<typeof defaultSizes>,
  ask: (query: string) => Answer,
): Answer {
  const answer = hostSizeQuery === null ? null : ask(hostSizeQuery);
  if (answer !== null && 'reason' in answer) return answer;
  const given = answer?.values ?? assumed?.totals ?? new Map<string, number>();
  return given.size === 0
    ? { values: given }
    : relativeSizes(given, hostSizeQuery ?? `total ${assumed?.resourceClass}`);
}

/** The fill levels of a policy in pack mode. */
function capacitiesOf({ capacityQuery, capacityThreshold }: Policy, ask: (query: string) => Answer): Answer {
  if (capacityQuery === null || capacityThreshold === null)
    return { reason: { code: 'policy-not-read', text: 'a policy in pack mode needs capacity_query', detail: {} } };
  const answer = ask(capacityQuery);
  if ('reason' in answer) return answer;
  const range = outOfRange(answer.values, capacityQuery);
  return range === null ? answer : { reason: range };
}

/** Whether a possible destination is above `actAbove`; null: the policy has none. A reason when that is not known. */
function actsOn(
  { actAbove, triggerQuery }: Policy,
  hosts: readonly HostObservation[],
  own: ReadonlyMap<string, number>,
  ask: (query: string) => Answer,
): boolean | null | Reason {
  if (actAbove === undefined) return null;
  const answer = triggerQuery === undefined ? { values: own } : ask(triggerQuery);
  if ('reason' in answer) return answer.reason;
  const range = triggerQuery === undefined ? null : outOfRange(answer.values, triggerQuery);
  if (range !== null) return range;
  return hosts.some((host) => isCounted(host) && (answer.values.get(host.name) ?? 0) > actAbove);
}

function lowAndRange(values: readonly number[]): [low: number, range: number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return values.length === 0 ? [0, 0] : [low, high - low];
}

/**
 * The scores of an aggregate for people: raw and min-max normalised values by host, imbalance by policy, and
 * `sum(weight x imbalance)` over the policies that take part (null when none does). Weights are not rescaled.
 */
export function score(input: ScoreInput): { policies: PolicyScores[]; combined: number | null } {
  const counted = new Set(input.hosts.filter(isCounted).map((host) => host.name));
  let combined: number | null = null;
  const policies = judgePolicies(input).map(({ policy, reason, values, assumed, acts }): PolicyScores => {
    const head = { policy: policy.name, threshold: policy.threshold, weight: policy.weight };
    if (reason !== null) return { ...head, participates: false, reason, imbalance: null, detected: false, hosts: {} };
    const raws = [...values].sort(([a], [b]) => byText(a, b));
    const [low, range] = lowAndRange(raws.map(([, value]) => value));
    const [, imbalance] = lowAndRange(raws.filter(([host]) => counted.has(host)).map(([, value]) => value));
    combined = (combined ?? 0) + policy.weight * imbalance;
    return {
      ...head,
      participates: true,
      reason: null,
      imbalance,
      detected: acts !== false && isAbove(imbalance, policy.threshold),
      ...(acts === null ? {} : { acts }),
      hosts: Object.fromEntries(
        raws.map(([host, raw]) => [host, { raw, normalised: range > 0 ? (raw - low) / range : 0 }]),
      ),
      ...(assumed === null
        ? {}
        : {
            sizes: {
              resourceClass: assumed.resourceClass,
              named: assumed.named,
              smallest: Math.min(...assumed.totals.values()),
              largest: Math.max(...assumed.totals.values()),
            },
          }),
    };
  });
  return { policies, combined };
}
