/** Forecasts the hosts' values within the horizon, from the values of their VMs at this time of former days. */
import { type CompleteEngineOptions, iso, type Reason, type Snapshot, vmQueryOf, vmReadingOf } from '@kronos/contracts';
import { ASSUMED_MS_PER_GIB, durationOf, isAbove } from '@kronos/rules';
import { byte, float, int, item } from './base/array.ts';
import type { Cluster } from './cluster/cluster.ts';
import { imbalances } from './cluster/measure.ts';
import type { Move } from './draft/draft.ts';
import type { Memory } from './snapshot/memory.ts';
import type { JudgedPolicy } from './snapshot/scoring.ts';
import { own } from './snapshot/unmovable.ts';

/** A forecast needs this many days that resemble today: a weekly pattern has two in 14 days. */
const LEAST_DAYS = 2;
/** Share of these days that must speak against a plan before it waits. */
const AGREEING = 0.75;
/** A day resembles today if the VMs of each extreme host together differ by at most this share of the threshold. */
const ALIKE = 0.5;
/** VMs with this share of the load of the aggregate, and of each of these hosts, must have values of a day. */
const COVERED = 0.6;

/** The change of the VMs' shares of a host on one former day, from this time of the day on. */
type Day = {
  /** Days before the snapshot. */
  readonly ago: number;
  /** `change[k][vm * P + p]`: the value k steps ahead minus the one at this time of the day; 0 for VMs without values. */
  readonly change: readonly Float64Array[];
};

/** Former days, or the reason that there is no forecast. */
export type Past =
  | { readonly known: true; readonly stepSeconds: number; readonly steps: number; readonly days: readonly Day[] }
  | { readonly known: false; readonly text: string };

type PastInput = {
  readonly snapshot: Snapshot;
  readonly judged: readonly JudgedPolicy[];
  readonly cluster: Cluster;
  readonly options: Pick<CompleteEngineOptions, 'forecastHorizonSeconds'>;
};

/**
 * The former days that resemble today. Values are of VMs and not of hosts: the value of a host on a former day says little after VMs
 * have moved.
 */
export function pastOf({ snapshot, judged, cluster, options }: PastInput): Past {
  const none = (text: string): Past => ({ known: false, text });
  const { forecast } = snapshot;
  if (forecast === undefined) return none('the snapshot holds no history');
  const steps = Math.min(forecast.points - 1, Math.ceil(options.forecastHorizonSeconds / forecast.stepSeconds));
  const { P, V, policies } = cluster;
  const asked = policies.map(({ name }) => historyOf(forecast, judged, name));
  const missing = asked.find((reading) => reading !== null && reading.days.length === 0);
  if (missing !== undefined && missing !== null) return none(missing.text === '' ? 'no former days' : missing.text);
  const agos = [...new Set(asked.flatMap((reading) => reading?.days.map(({ ago }) => ago) ?? []))].sort(
    (a, b) => a - b,
  );
  const days: Day[] = [];
  const unlike = { incomplete: 0, different: 0 };
  for (const ago of agos) {
    const change = Array.from({ length: steps + 1 }, () => new Float64Array(V * P));
    const judgement = judgeDay(cluster, asked, ago, change);
    if (judgement === 'alike') days.push({ ago, change });
    else unlike[judgement]++;
  }
  const { incomplete, different } = unlike;
  if (days.length >= LEAST_DAYS) return { known: true, stepSeconds: forecast.stepSeconds, steps, days };
  const why = [
    incomplete === 0 ? null : `${incomplete} without enough values`,
    different === 0 ? null : `${different} with other values`,
  ].filter((part) => part !== null);
  const rest = why.length === 0 ? '' : ` (${why.join(', ')})`;
  return none(`${days.length} of ${agos.length} former days resemble this one, and ${LEAST_DAYS} are needed${rest}`);
}

type Forecast = NonNullable<Snapshot['forecast']>;
type DaysOfPolicy = Pick<Forecast['readings'][number], 'text' | 'days'>;

/** The former days of a policy; null: it has allocations, which do not depend on the time of the day. */
function historyOf(forecast: Forecast, judged: readonly JudgedPolicy[], name: string): DaysOfPolicy | null {
  const policy = judged.find((one) => one.policy.name === name)?.policy;
  if (policy === undefined || policy.allocation !== undefined) return null;
  const reading = vmReadingOf(forecast.readings, vmQueryOf(policy, 'vm_profile'));
  return reading ?? { text: `the snapshot holds no history of the VMs for policy ${name}`, days: [] };
}

/** Fills in the changes of all policies on one day, as far as the day resembles today. */
function judgeDay(
  cluster: Cluster,
  asked: readonly (DaysOfPolicy | null)[],
  ago: number,
  change: readonly Float64Array[],
): 'alike' | 'incomplete' | 'different' {
  for (const [p, reading] of asked.entries()) {
    if (reading === null) continue;
    const servers = reading.days.find((day) => day.ago === ago)?.servers;
    const judgement = servers === undefined ? 'incomplete' : fill(cluster, p, servers, change);
    if (judgement !== 'alike') return judgement;
  }
  return 'alike';
}

/** Fills in the changes of one policy on one day, unless the day has no values for it. */
function fill(
  cluster: Cluster,
  p: number,
  servers: Readonly<Record<string, readonly number[]>>,
  change: readonly Float64Array[],
): 'alike' | 'incomplete' | 'different' {
  const { H, V, P, vmIds, vmHost, weight, counted, policies } = cluster;
  const all = new Float64Array(H);
  const covered = new Float64Array(H);
  const difference = new Float64Array(H);
  for (let v = 0; v < V; v++) {
    const host = int(vmHost, v);
    const now = float(weight, v * P + p);
    all[host] = float(all, host) + now;
    const values = own(servers, item(vmIds, v));
    const start = values?.[0];
    if (values === undefined || start === undefined || values.length < change.length) continue;
    covered[host] = float(covered, host) + now;
    difference[host] = float(difference, host) + start - now;
    for (const [k, row] of change.entries()) row[v * P + p] = (values[k] ?? start) - start;
  }
  const tolerance = ALIKE * item(policies, p).threshold;
  let [total, known] = [0, 0];
  for (let h = 0; h < H; h++) {
    if (byte(counted, h) !== 1) continue;
    total += float(all, h);
    known += float(covered, h);
  }
  if (known < COVERED * total) return 'incomplete';
  for (const h of extremes(cluster, p)) {
    if (float(covered, h) < COVERED * float(all, h)) return 'incomplete';
    if (Math.abs(float(difference, h)) > tolerance) return 'different';
  }
  return 'alike';
}

/** The extreme hosts: the highest and the lowest of those that take part. */
function extremes({ H, P, counted, score }: Cluster, p: number): number[] {
  let [high, low] = [-1, -1];
  for (let h = 0; h < H; h++) {
    if (byte(counted, h) !== 1) continue;
    const value = float(score, h * P + p);
    if (high < 0 || value > float(score, high * P + p)) high = h;
    if (low < 0 || value < float(score, low * P + p)) low = h;
  }
  return high < 0 ? [] : [high, low];
}

/** A placement of the VMs, with the values of the hosts. */
export type Ahead = { readonly score: Float64Array; readonly place: Int32Array };

/** The verdict of the former days on a plan. */
export type ForecastVerdict = {
  readonly days: number;
  /** Days on which the imbalance would have passed by itself within the horizon. */
  readonly passes: number;
  /** Days on which the plan would not have shortened the time above a threshold. */
  readonly useless: number;
  /** Mean seconds above a threshold within the horizon, without the plan and with it. */
  readonly without: number;
  readonly with: number;
  /** End of the plan's moves, seconds from now. */
  readonly effectSeconds: number;
  /** The latest end of the imbalance on the days on which it ends by itself, seconds from now; null when there is no such day. */
  readonly passesAfterSeconds: number | null;
};

/**
 * Applies the changes of each day to the present values, without the plan and with it.
 *
 * @param base hosts and VMs without the plan; planned: with it
 * @param effectSeconds until the moves are done. If the imbalance comes back, the next plan takes as long, after the cooldown.
 */
export function verdictOf(
  past: Past & { readonly known: true },
  cluster: Cluster,
  { base, planned }: { readonly base: Ahead; readonly planned: Ahead },
  { effectSeconds, cooldownSeconds }: { readonly effectSeconds: number; readonly cooldownSeconds: number },
): ForecastVerdict {
  const { stepSeconds, steps, days } = past;
  const above = ({ score, place }: Ahead, change: Float64Array): boolean => {
    const then = valuesThen(cluster, score, place, change);
    return imbalances(cluster, then).some((imbalance, p) => isAbove(imbalance, item(cluster.policies, p).threshold));
  };
  let [passes, useless, without, withPlan] = [0, 0, 0, 0];
  let passesAfterSeconds: number | null = null;
  for (const { change } of days) {
    let [waiting, acting] = [0, 0];
    let last = -1;
    /** Seconds until the next plan takes effect after the imbalance came back; null: it has not come back. */
    let reaction: number | null = null;
    for (let k = 0; k <= steps; k++) {
      const seconds = k === steps ? 0 : stepSeconds;
      const waits = above(base, item(change, k));
      if (waits) {
        waiting += seconds;
        last = k;
      }
      // The plan has no effect before its moves are done.
      const share = Math.min(1, Math.max(0, (effectSeconds - k * stepSeconds) / stepSeconds));
      acting += waits ? seconds * share : 0;
      if (share < 1 && above(planned, item(change, k))) {
        reaction ??= effectSeconds + Math.max(0, cooldownSeconds - k * stepSeconds);
        const back = Math.min(reaction, seconds * (1 - share));
        reaction -= back;
        acting += back;
      }
    }
    without += waiting / days.length;
    withPlan += acting / days.length;
    if (waiting <= acting) useless++;
    if (last < steps) {
      passes++;
      passesAfterSeconds = Math.max(passesAfterSeconds ?? 0, (last + 1) * stepSeconds);
    }
  }
  return { days: days.length, passes, useless, without, with: withPlan, effectSeconds, passesAfterSeconds };
}

/** The values of the hosts after these changes of the VMs in this placement. */
function valuesThen(cluster: Cluster, score: Float64Array, place: Int32Array, change: Float64Array): Float64Array {
  const { V, P, vmHost, size, alike } = cluster;
  const values = Float64Array.from(score);
  for (let v = 0; v < V; v++) {
    const [home, host] = [int(vmHost, v), int(place, v)];
    for (let p = 0; p < P; p++) {
      const by = float(change, v * P + p);
      if (by === 0) continue;
      const at = host * P + p;
      values[at] = float(values, at) + (alike ? by : (by * float(size, home * P + p)) / float(size, at));
    }
  }
  return values;
}

/** Duration of the moves by the pace of former moves, in seconds. Moves off one host run one after the other. */
export function effectOf({ hostNames, copyGib }: Cluster, moves: readonly Move[], { movePaces }: Memory): number {
  const bySource = new Map<number, number>();
  for (const { vm, from, to } of moves) {
    const pair = own(own(movePaces?.pairs ?? {}, item(hostNames, from)) ?? {}, item(hostNames, to));
    const median = pair ?? movePaces?.others ?? ASSUMED_MS_PER_GIB;
    const { expectedMs } = durationOf({ median, interval: null }, float(copyGib, vm));
    bySource.set(from, (bySource.get(from) ?? 0) + expectedMs / 1000);
  }
  return Math.max(0, ...bySource.values());
}

/** The reason that the plan waits, and the end of the wait; null: it does not wait. `now` and `limitMs` (the latest end of the wait) are in ms since the epoch. */
export function againstPlan(verdict: ForecastVerdict, now: number, limitMs: number, moves: number): Reason | null {
  const { days, passes, useless, passesAfterSeconds } = verdict;
  if (useless < AGREEING * days) return null;
  // By then the imbalance has ended on all of these days, or the plan would have helped: there is no reason to wait longer.
  const seconds = Math.max(Math.ceil(verdict.with), passesAfterSeconds ?? 0);
  const until = iso(Math.min(limitMs, now + 1000 * seconds));
  const figures = `the time above a threshold within the horizon would be ${minutes(verdict.with)} with the plan (${moves} moves in ${minutes(verdict.effectSeconds)}) and ${minutes(verdict.without)} without`;
  const detail = {
    days,
    passes,
    useless,
    moves,
    secondsWithPlan: Math.round(verdict.with),
    secondsWithoutPlan: Math.round(verdict.without),
    effectSeconds: Math.round(verdict.effectSeconds),
    until,
  };
  if (passesAfterSeconds !== null && passes >= AGREEING * days) {
    const last = iso(now + passesAfterSeconds * 1000);
    const text = `on ${passes} of ${days} former days like this one the imbalance passed by itself, at the latest by ${last}; ${figures}; Kronos waits until ${until}`;
    return { code: 'expected-to-pass', text, detail: { ...detail, passesBy: last } };
  }
  const text = `by ${useless} of ${days} former days like this one the plan would be undone: ${figures}; Kronos waits until ${until}`;
  return { code: 'expected-to-return', text, detail };
}

const minutes = (seconds: number): string => `${Math.round(seconds / 6) / 10} min`;
