import { type AnswerCause, byText, some } from '@kronos/contracts';
import type { RangeSeries, Sample } from './client.ts';

/**
 * How far an answer can be trusted, worst first: UNREACHABLE (no answer, or its age could not be checked), ERROR (two series
 * claim one host), STALE (series were there within the staleness threshold and are gone, or samples are older), PARTIAL
 * (expected hosts have no value), HEALTHY.
 */
type Health = 'HEALTHY' | 'STALE' | 'PARTIAL' | 'UNREACHABLE' | 'ERROR';

/** Names in one problem. */
const SHOWN = 10;
/** Hosts or VMs whose series one problem names. */
const DUPLICATES_SHOWN = 2;

export interface AnswerInput {
  /** `host`: every expected subject must have a value. `vm`: missing ones are no fault of the answer. */
  readonly kind: 'host' | 'vm';
  /** The label that names the host or VM. */
  readonly label: string;
  /** The instant answer; null when the query failed. */
  readonly instant: readonly Sample[] | null;
  /** The same query over the last `stalenessMs`; null when the query failed, so the age is unknown. */
  readonly range: readonly RangeSeries[] | null;
  /** Answer to `timestamp(query)` where the query is a plain selector (`isPlainSelector`); the values are Unix seconds. */
  readonly timestamps?: readonly Sample[] | null;
  readonly nowMs: number;
  readonly stalenessMs: number;
  /** Hosts whose nova-compute is up, or VMs that run: in the words of `subjects`. */
  readonly expected: readonly string[];
  /** Label value to service host or server uuid, from `matchHosts` or `matchVms`; without it a label value stands for itself. */
  readonly subjects?: ReadonlyMap<string, string>;
}

export interface AnswerHealth {
  readonly health: Health;
  /** The problem as a sentence; empty when HEALTHY. */
  readonly text: string;
  /** Null when HEALTHY. */
  readonly cause: AnswerCause | null;
  /** Finite values by subject. 0 is a value. Stale and duplicate ones are not in it. */
  readonly values: Readonly<Record<string, number>>;
  /** Expected subjects without a value, whatever the cause. */
  readonly missing: readonly string[];
  /** Expected subjects that were there within the threshold and are gone, or whose sample is older than it. */
  readonly stale: readonly string[];
  /** Subjects whose value is NaN or infinite: missing. */
  readonly notFinite: readonly string[];
  /** Label values that stand for no subject. */
  readonly unknown: readonly string[];
  /** Subjects claimed by several series, which are named: no value for them. */
  readonly duplicates: readonly { readonly subject: string; readonly series: readonly string[] }[];
  /** Number of series without the label. */
  readonly unlabelled: number;
}

/** Judges an answer. Pure. */
export function judgeAnswer(input: AnswerInput): AnswerHealth {
  const subjectOf = (labels: Readonly<Record<string, string>>): string | undefined => {
    const value = labels[input.label] ?? '';
    if (value === '') return undefined;
    return input.subjects === undefined ? value : input.subjects.get(value);
  };
  const now = collect(input.instant ?? [], subjectOf);
  const tooOld = new Set<string>();
  for (const [subject, samples] of collect(input.timestamps ?? [], subjectOf)) {
    if (samples.some((sample) => !(input.nowMs - sample.value * 1000 <= input.stalenessMs))) tooOld.add(subject);
  }
  const recent = new Set<string>();
  for (const series of input.range ?? []) {
    const subject = subjectOf(series.labels);
    if (subject !== undefined && series.samples.length > 0) recent.add(subject);
  }

  const sorted = { ...sortedByUse(now, tooOld), ...unmatched(input, subjectOf) };
  const expected = [...new Set(input.expected)].sort();
  const missing = expected.filter((subject) => !Object.hasOwn(sorted.values, subject));
  const stale = expected.filter((subject) => tooOld.has(subject) || (recent.has(subject) && !now.has(subject)));
  const faults = {
    duplicates: sorted.duplicates,
    stale,
    bad: sorted.notFinite.filter((subject) => expected.includes(subject)),
    absent: missing.filter((subject) => !now.has(subject) && !stale.includes(subject)),
  };
  const [health, cause] = verdictOf(input, faults, missing.length > 0);
  const text = health === 'HEALTHY' ? '' : problemsOf(input, faults).join('; ');
  return { health, text, cause, missing, stale, ...sorted };
}

/** Faults of an answer, by subject. */
type Faults = Pick<AnswerHealth, 'duplicates' | 'stale'> & {
  /** Expected ones whose value is NaN or infinite. */
  readonly bad: readonly string[];
  /** Expected ones without a series, now and within the threshold. */
  readonly absent: readonly string[];
};

/** Usable values apart from those that are not finite, too old, or claimed by several series. */
function sortedByUse(
  now: ReadonlyMap<string, readonly Sample[]>,
  tooOld: ReadonlySet<string>,
): Pick<AnswerHealth, 'values' | 'notFinite' | 'duplicates'> {
  const values: Record<string, number> = {};
  const notFinite: string[] = [];
  const duplicates: { subject: string; series: string[] }[] = [];
  for (const [subject, samples] of now) {
    const [first, second] = samples;
    if (second !== undefined) duplicates.push({ subject, series: samples.map((s) => seriesName(s.labels)).sort() });
    else if (first !== undefined && !Number.isFinite(first.value)) notFinite.push(subject);
    else if (first !== undefined && !tooOld.has(subject)) values[subject] = first.value;
  }
  duplicates.sort((a, b) => byText(a.subject, b.subject));
  return { values, notFinite: notFinite.sort(), duplicates };
}

/** The series that stand for no subject. */
function unmatched(
  { instant, label }: AnswerInput,
  subjectOf: (labels: Readonly<Record<string, string>>) => string | undefined,
): Pick<AnswerHealth, 'unknown' | 'unlabelled'> {
  const unknown = new Set<string>();
  let unlabelled = 0;
  for (const { labels } of instant ?? []) {
    const value = labels[label] ?? '';
    if (value === '') unlabelled += 1;
    else if (subjectOf(labels) === undefined) unknown.add(value);
  }
  return { unknown: [...unknown].sort(), unlabelled };
}

const isAgeUnknown = ({ range, timestamps }: AnswerInput): boolean => range === null || timestamps === null;

function verdictOf(input: AnswerInput, faults: Faults, incomplete: boolean): [Health, AnswerCause | null] {
  const { duplicates, stale, bad, absent } = faults;
  if (input.instant === null || isAgeUnknown(input)) return ['UNREACHABLE', 'unreachable'];
  if (input.kind === 'host' && duplicates.length > 0) return ['ERROR', 'duplicate-series'];
  if (stale.length > 0) return ['STALE', 'stale'];
  if (input.kind === 'vm' || !incomplete) return ['HEALTHY', null];
  return ['PARTIAL', absent.length === 0 && bad.length > 0 ? 'not-finite' : 'missing'];
}

function problemsOf(input: AnswerInput, { duplicates, stale, bad, absent }: Faults): string[] {
  const what = input.kind === 'host' ? 'hosts' : 'VMs';
  const problems: string[] = [];
  if (input.instant === null) problems.push('no answer');
  else if (isAgeUnknown(input)) problems.push('the age of the answer could not be checked');
  for (const { subject, series } of duplicates.slice(0, DUPLICATES_SHOWN))
    problems.push(`${subject} has ${series.length} series: ${series.slice(0, 3).join(' and ')}`);
  if (duplicates.length > DUPLICATES_SHOWN)
    problems.push(`${duplicates.length - DUPLICATES_SHOWN} more ${what} have several series`);
  if (stale.length > 0) problems.push(`stale ${what}: ${some(stale, SHOWN)}`);
  if (bad.length > 0) problems.push(`${what} with NaN or Inf: ${some(bad, SHOWN)}`);
  if (input.instant !== null && input.kind === 'host' && absent.length > 0)
    problems.push(`missing ${what}: ${some(absent, SHOWN)}`);
  return problems;
}

/** The range query that `judge` needs: the last `stalenessMs`, in at most 20 steps of at least a second. */
export function stalenessRange(nowMs: number, stalenessMs: number): { startMs: number; endMs: number; stepMs: number } {
  return { startMs: nowMs - stalenessMs, endMs: nowMs, stepMs: Math.max(1000, Math.ceil(stalenessMs / 20)) };
}

/** A series as people write it: `name{label="value", ...}`, labels in order. */
export function seriesName(labels: Readonly<Record<string, string>>): string {
  const { __name__: name = '', ...rest } = labels;
  const inner = Object.keys(rest)
    .sort()
    .map((label) => `${label}=${JSON.stringify(rest[label])}`);
  return inner.length === 0 && name !== '' ? name : `${name}{${inner.join(', ')}}`;
}

function collect(
  samples: readonly Sample[],
  subjectOf: (labels: Readonly<Record<string, string>>) => string | undefined,
): Map<string, Sample[]> {
  const found = new Map<string, Sample[]>();
  for (const sample of samples) {
    const subject = subjectOf(sample.labels);
    if (subject === undefined) continue;
    const list = found.get(subject);
    if (list === undefined) found.set(subject, [sample]);
    else list.push(sample);
  }
  return found;
}
