/** From the answers of Prometheus to what each aggregate may rely on. Pure. */
import {
  type AnswerCause,
  byText,
  type HostObservation,
  type HostQuery,
  type HostReading,
  hostReadingOf,
  type Policy,
  policyQueries,
  type QueryUse,
  queriesOf,
  type Reason,
  type ServerObservation,
  some,
  type VmQuery,
  type VmQueryUse,
  type VmReading,
  type VmReadingList,
  vmQueryUses,
  vmReadingLists,
  vmReadingOf,
} from '@kronos/contracts';
import {
  type AnswerHealth,
  type HostNames,
  judgeAnswer,
  matchHosts,
  matchVms,
  type RangeSeries,
  type Sample,
  type VmNames,
} from '@kronos/prometheus';
import { type NoteCode, note } from './reasons.ts';

/** One query of a cycle: asked once, whichever policies and aggregates it serves. */
export interface Question {
  readonly query: string;
  /** The policies that ask it, and for what. */
  readonly uses: readonly { readonly policy: string; readonly use: QueryUse }[];
}

/** The answer to one query, or why there is none. */
export interface QueryAnswer {
  readonly query: string;
  /** The time it was asked for, ms since the epoch. */
  readonly timeMs: number;
  /** Null when it could not be had; then `failure` says why. */
  readonly instant: readonly Sample[] | null;
  /** The last `staleness_threshold`; null when it could not be had. */
  readonly range: readonly RangeSeries[] | null;
  /** Of `timestamp(query)`; undefined where the query is no plain selector, null when it could not be had. */
  readonly timestamps: readonly Sample[] | null | undefined;
  /** `refused`: the query itself is wrong. */
  readonly failure: { readonly kind: 'refused' | 'unreachable'; readonly code: string; readonly text: string } | null;
  /** Prometheus' own warnings: the answer may be incomplete. */
  readonly warnings: readonly string[];
}

/** The enabled policies that ask Prometheus. */
const asked = (policies: readonly Policy[]): Policy[] =>
  policies.filter(({ enabled, allocation }) => enabled && allocation === undefined);

/** The distinct queries of the enabled policies, in the order of the file. */
export function questionsOf(policies: readonly Policy[]): Question[] {
  const found = new Map<string, { policy: string; use: QueryUse }[]>();
  for (const policy of asked(policies)) {
    for (const { use, query } of queriesOf(policy)) {
      const uses = found.get(query) ?? [];
      uses.push({ policy: policy.name, use });
      found.set(query, uses);
    }
  }
  return [...found].map(([query, uses]) => ({ query, uses }));
}

/** The series of one answer by what they are about, for the whole cloud. */
interface Matched {
  readonly answer: QueryAnswer;
  readonly byLabel: ReadonlyMap<string, string>;
  readonly instant: ReadonlyMap<string, readonly Sample[]>;
  readonly range: ReadonlyMap<string, readonly RangeSeries[]>;
  readonly timestamps: ReadonlyMap<string, readonly Sample[]>;
  /** Label values of the instant answer that fit nothing, or several. */
  readonly unknown: readonly string[];
  readonly ambiguous: readonly string[];
  /** Series of the instant answer without the label. */
  readonly unlabelled: number;
}

/** An answer about VMs. */
type MatchedVms = VmQuery & { readonly matched: Matched };

/** A value for each query about VMs. */
const eachVmQuery = <T>(of: (use: VmQueryUse) => T): Record<VmQueryUse, T> =>
  Object.fromEntries(vmQueryUses.map((use) => [use, of(use)])) as Record<VmQueryUse, T>;

/** All answers of a cycle, matched against the whole cloud; made once, used for every aggregate. */
export interface MatchedAnswers {
  readonly stalenessMs: number;
  /** Every host of the cloud. */
  readonly cloud: readonly HostNames[];
  readonly hosts: readonly (HostQuery & { readonly matched: Matched })[];
  readonly vms: Readonly<Record<VmQueryUse, readonly MatchedVms[]>>;
}

/**
 * Matches the answers' labels against the hosts and VMs of the whole cloud, so that a series of another aggregate is not
 * taken for an unknown one.
 */
export function matchAnswers(input: {
  readonly policies: readonly Policy[];
  readonly answers: readonly QueryAnswer[];
  readonly stalenessMs: number;
  readonly hosts: readonly HostNames[];
  readonly vms: readonly VmNames[];
}): MatchedAnswers {
  const answers = new Map(input.answers.map((answer) => [answer.query, answer]));
  const hosts: (HostQuery & { matched: Matched })[] = [];
  const vms = eachVmQuery((): MatchedVms[] => []);
  for (const policy of asked(input.policies)) {
    for (const one of queriesOf(policy)) {
      const { query, label } = one;
      const answer = answers.get(query);
      if (answer === undefined) throw new RangeError(`the query ${JSON.stringify(query)} was not asked`);
      if (one.of === 'host') {
        if (hostReadingOf(hosts, one) !== undefined) continue;
        hosts.push({ query, label, matched: match(answer, label, (labels) => matchHosts(labels, input.hosts)) });
      } else {
        const { use, labelType } = one;
        if (vmReadingOf(vms[use], one) !== undefined) continue;
        const matched = match(answer, label, (labels) => matchVms(labels, input.vms, labelType));
        vms[use].push({ query, label, labelType, matched });
      }
    }
  }
  return { stalenessMs: input.stalenessMs, cloud: input.hosts, hosts, vms };
}

/** The answers that these policies ask for, of all that were asked for the cloud. */
export function answersOf(answers: MatchedAnswers, policies: readonly Policy[]): MatchedAnswers {
  const wanted = asked(policies).flatMap(queriesOf);
  const ofHosts = wanted.flatMap((one) => (one.of === 'host' ? [one] : []));
  const ofVms = (use: VmQueryUse) => wanted.flatMap((one) => (one.of === 'vm' && one.use === use ? [one] : []));
  return {
    stalenessMs: answers.stalenessMs,
    cloud: answers.cloud,
    hosts: answers.hosts.filter((one) => hostReadingOf(ofHosts, one) !== undefined),
    vms: eachVmQuery((use) => {
      const those = ofVms(use);
      return answers.vms[use].filter((one) => vmReadingOf(those, one) !== undefined);
    }),
  };
}

interface Labelled {
  readonly labels: Readonly<Record<string, string>>;
}

function match(
  answer: QueryAnswer,
  label: string,
  find: (labels: Iterable<string>) => {
    readonly byLabel: ReadonlyMap<string, string>;
    readonly unknown: readonly string[];
    readonly ambiguous: readonly string[];
  },
): Matched {
  const labelOf = ({ labels }: Labelled): string => (Object.hasOwn(labels, label) ? (labels[label] ?? '') : '');
  const instant = answer.instant ?? [];
  const inNow = new Set(instant.map(labelOf));
  const all = new Set([...inNow, ...(answer.range ?? []).map(labelOf), ...(answer.timestamps ?? []).map(labelOf)]);
  all.delete('');
  const { byLabel, unknown, ambiguous } = find(all);
  const bySubject = <T extends Labelled>(series: readonly T[]): Map<string, T[]> => {
    const found = new Map<string, T[]>();
    for (const one of series) {
      const subject = byLabel.get(labelOf(one));
      if (subject === undefined) continue;
      const list = found.get(subject);
      if (list === undefined) found.set(subject, [one]);
      else list.push(one);
    }
    return found;
  };
  return {
    answer,
    byLabel,
    instant: bySubject(instant),
    range: bySubject(answer.range ?? []),
    timestamps: bySubject(answer.timestamps ?? []),
    unknown: unknown.filter((one) => inNow.has(one)).sort(byText),
    ambiguous: ambiguous.filter((one) => inNow.has(one)).sort(byText),
    unlabelled: instant.filter((one) => labelOf(one) === '').length,
  };
}

export interface Readings extends Readonly<Record<VmReadingList, readonly VmReading[]>> {
  readonly hostReadings: readonly HostReading[];
  readonly notes: readonly Reason[];
}

/** The readings of one aggregate from the answers. */
export function readingsFor(
  answers: MatchedAnswers,
  hosts: readonly Pick<HostObservation, 'name' | 'service'>[],
  servers: readonly Pick<ServerObservation, 'id' | 'status' | 'host'>[],
): Readings {
  const notes: Reason[] = [];
  const hostNames = hosts.map((host) => host.name);
  // A host whose service is unknown may well be up: its value is expected too.
  const up = hosts.filter((host) => host.service.state !== 'down').map((host) => host.name);
  const hostReadings = answers.hosts.map(({ query, label, matched }): HostReading => {
    const judged = judgeFor(answers, { kind: 'host', label, matched, subjects: hostNames, expected: up });
    const unmatchedLabels = [...matched.ambiguous, ...matched.unknown].sort(byText);
    if (unmatchedLabels.length > 0) notes.push(unmatchedHosts(query, label, matched));
    const verdict = verdictOf('host', label, matched, judged);
    return { query, label, ...verdict, values: { ...judged.values }, missing: [...judged.missing], unmatchedLabels };
  });
  const read = (list: VmReadingList): VmReading[] => {
    const asked = vmQueryUses.filter((use) => policyQueries[use].readings === list);
    const rule = vmRules[list];
    return asked
      .flatMap((use) => answers.vms[use])
      .map((spec) => {
        const { reading, notes: found } = judgedVmReading(answers, spec, rule, servers);
        notes.push(...found);
        const { query, health, text } = reading;
        if (health !== 'HEALTHY' && rule.unhealthy !== null)
          notes.push(note(rule.unhealthy.code, `${rule.unhealthy.text}: ${text}`, { query }));
        return reading;
      });
  };
  const lists = Object.fromEntries(vmReadingLists.map((list) => [list, read(list)]));
  return { hostReadings, ...(lists as Record<VmReadingList, VmReading[]>), notes };
}

/** Which values of VMs a query may give. */
interface VmRule {
  readonly most: number;
  readonly code: NoteCode;
  readonly text: string;
  /** The note about an answer that is not healthy; null: the decision says it. */
  readonly unhealthy: { readonly code: NoteCode; readonly text: string } | null;
}

const vmRules: Readonly<Record<VmReadingList, VmRule>> = {
  vmReadings: {
    most: 1,
    code: 'vm-value-out-of-range',
    text: 'no share of a host, as they are outside [0,1]',
    unhealthy: null,
  },
  moveCostReadings: {
    most: Number.MAX_VALUE,
    code: 'move-cost-out-of-range',
    text: 'no bytes per second, as they are below 0',
    unhealthy: { code: 'move-cost-unknown', text: 'the cost of moves is not known in full' },
  },
};

/** The reading of one query about VMs, and what about it hinders nothing. */
function judgedVmReading(
  answers: MatchedAnswers,
  { query, label, labelType, matched }: MatchedVms,
  rule: VmRule,
  servers: readonly Pick<ServerObservation, 'id' | 'status' | 'host'>[],
): { readonly reading: VmReading; readonly notes: readonly Reason[] } {
  const notes: Reason[] = [];
  const judged = judgeFor(answers, {
    kind: 'vm',
    label,
    matched: {
      ...matched,
      instant: seriesByNova(matched.instant, answers.cloud, servers),
      timestamps: seriesByNova(matched.timestamps, answers.cloud, servers),
    },
    subjects: servers.map((server) => server.id),
    expected: servers.filter((server) => server.status === 'ACTIVE').map((server) => server.id),
  });
  const values: Record<string, number> = {};
  const outside: { readonly id: string; readonly value: number }[] = [];
  for (const [id, value] of Object.entries(judged.values)) {
    if (value >= 0 && value <= rule.most) values[id] = value;
    else outside.push({ id, value });
  }
  if (outside.length > 0) {
    const text = `${rule.text}, so they count as missing: ${some(outside.map(({ id, value }) => `${id} (${value})`))}`;
    notes.push(note(rule.code, text, { query, servers: outside.length }));
  }
  if (judged.duplicates.length > 0) {
    const named = judged.duplicates.map(({ subject, series }) => `${subject} has ${series.join(' and ')}`);
    const text = `several series for one VM, so none counts: ${some(named, 3)}`;
    notes.push(note('vm-series-duplicate', text, { query, servers: judged.duplicates.length }));
  }
  if (matched.ambiguous.length > 0) {
    const text = `values of the label ${JSON.stringify(label)} that fit several VMs, so none counts: ${some(matched.ambiguous)}`;
    notes.push(note('vm-label-ambiguous', text, { query, labels: matched.ambiguous.length }));
  }
  const found = outside.map(({ value }) => value);
  const reading = {
    query,
    label,
    labelType,
    ...verdictOf('vm', label, matched, judged),
    values,
    unmatchedLabels: matched.unknown.length,
    ambiguousLabels: matched.ambiguous.length,
    ...(outside.length + judged.duplicates.length === 0
      ? {}
      : {
          unused: {
            outside: outside.length,
            ...(found.length === 0 ? {} : { lowest: Math.min(...found), highest: Math.max(...found) }),
            duplicates: judged.duplicates.length,
          },
        }),
  };
  return { reading, notes };
}

/**
 * The series by VM. A VM that was migrated has series of its old host and of its new one for as long as a range of the query
 * covers both: the one counts that names the host that Nova has the VM on.
 */
function seriesByNova(
  series: Matched['instant'],
  cloud: readonly HostNames[],
  servers: readonly Pick<ServerObservation, 'id' | 'host'>[],
): ReadonlyMap<string, readonly Sample[]> {
  const several = servers.filter(({ id }) => (series.get(id)?.length ?? 0) > 1);
  if (several.length === 0) return series;
  const labels = several.flatMap(({ id }) => (series.get(id) ?? []).flatMap((one) => Object.values(one.labels)));
  const { byLabel } = matchHosts(labels, cloud);
  const hostOf = (sample: Sample): string | null => {
    const named = new Set(Object.values(sample.labels).flatMap((value) => byLabel.get(value) ?? []));
    const [host = null] = named;
    return named.size === 1 ? host : null;
  };
  const chosen = new Map(series);
  for (const { id, host } of several) {
    const samples = series.get(id) ?? [];
    const here = samples.filter((sample) => hostOf(sample) === host);
    // Two series of one host are two exporters, and a series that names no host may be either.
    if (here.length === 1 && samples.every((sample) => hostOf(sample) !== null)) chosen.set(id, here);
  }
  return chosen;
}

function judgeFor(
  { stalenessMs }: Pick<MatchedAnswers, 'stalenessMs'>,
  asked: {
    readonly kind: 'host' | 'vm';
    readonly label: string;
    readonly matched: Matched;
    readonly subjects: readonly string[];
    readonly expected: readonly string[];
  },
): AnswerHealth {
  const { kind, label, matched, subjects, expected } = asked;
  const { answer } = matched;
  const of = <T>(by: ReadonlyMap<string, readonly T[]>): T[] => subjects.flatMap((subject) => by.get(subject) ?? []);
  return judgeAnswer({
    kind,
    label,
    instant: answer.instant === null ? null : of(matched.instant),
    range: answer.range === null ? null : of(matched.range),
    ...(answer.timestamps === undefined
      ? {}
      : { timestamps: answer.timestamps === null ? null : of(matched.timestamps) }),
    nowMs: answer.timeMs,
    stalenessMs,
    expected,
    subjects: matched.byLabel,
  });
}

type Verdict = Pick<HostReading, 'health' | 'text'> & { readonly cause?: AnswerCause };

/** The judgement, with what is known about its cause. */
function verdictOf(kind: 'host' | 'vm', label: string, matched: Matched, judged: AnswerHealth): Verdict {
  const { answer, unlabelled } = matched;
  if (answer.failure !== null) return failureOf(answer.failure);
  const warned = answer.warnings.length > 0 ? [`Prometheus warns: ${some(answer.warnings, 3)}`] : [];
  const nothing = nothingOf(label, matched);
  if (judged.health === 'HEALTHY') return healthyOf(kind === 'vm' ? nothing : null, warned);
  const bare = unlabelled > 0 ? [`${unlabelled} series without the label ${JSON.stringify(label)}`] : [];
  // Without a series that could be used, the names of all hosts say nothing.
  const lost = judged.cause === 'missing' ? nothing : null;
  const cause = lost?.cause ?? (judged.cause === 'missing' && warned.length > 0 ? 'warning' : judged.cause);
  const text = [lost?.text ?? judged.text, ...(lost === null ? bare : []), ...warned].join('; ');
  return { health: judged.health, text, ...(cause === null ? {} : { cause }) };
}

function healthyOf(nothing: ReturnType<typeof nothingOf>, warned: readonly string[]): Verdict {
  // An answer that may be incomplete may have left out a part of what a value is summed from.
  if (warned.length > 0) return { health: 'PARTIAL', text: warned.join('; '), cause: 'warning' };
  return { health: 'HEALTHY', text: '', ...(nothing === null ? {} : { cause: nothing.cause }) };
}

function failureOf({ kind, code, text }: NonNullable<QueryAnswer['failure']>): Verdict {
  if (kind === 'refused') return { health: 'ERROR', text, cause: 'refused' };
  const cause = code === 'KRONOS_PROMETHEUS_UNAUTHORIZED' ? 'unauthorized' : 'unreachable';
  return { health: 'UNREACHABLE', text, cause };
}

/** Why an answer has nothing for any aggregate; null where it has. */
function nothingOf(label: string, matched: Matched): { readonly cause: AnswerCause; readonly text: string } | null {
  const { answer, byLabel, unknown, unlabelled } = matched;
  if (answer.instant === null || byLabel.size > 0) return null;
  if (answer.instant.length === 0) return { cause: 'no-series', text: 'the answer has no series' };
  const others = unknown.length === 0 ? '' : `; its values: ${some(unknown, 3)}`;
  const bare = unlabelled === 0 ? '' : `; ${unlabelled} of ${answer.instant.length} series lack it`;
  return { cause: 'no-label', text: `no value of the label ${JSON.stringify(label)} is known to Nova${others}${bare}` };
}

function unmatchedHosts(query: string, label: string, { unknown, ambiguous }: Matched): Reason {
  const parts: string[] = [];
  if (ambiguous.length > 0) parts.push(`fit several hosts: ${some(ambiguous)}`);
  if (unknown.length > 0) parts.push(`fit no host: ${some(unknown)}`);
  return note('host-label-unmatched', `values of the label ${JSON.stringify(label)} that ${parts.join('; that ')}`, {
    query,
    unknown: unknown.length,
    ambiguous: ambiguous.length,
  });
}
