/** From the answers of Prometheus to what each aggregate may rely on. Pure. */
import {
  byText,
  type HostObservation,
  type HostReading,
  type Policy,
  type Reason,
  type ServerObservation,
  some,
  type VmReading,
} from '@kronos/contracts';
import {
  type AnswerHealth,
  type HostNames,
  judge,
  matchHosts,
  matchVms,
  type RangeSeries,
  type Sample,
  type VmNames,
} from '@kronos/prometheus';
import { type NoteCode, note } from './reasons.ts';

/** The purposes of a policy's queries. */
export type QueryUse = 'imbalance' | 'vm_profile' | 'capacity' | 'host_size' | 'move_cost';

/** One query of a cycle: asked once, whichever policies and aggregates it serves. */
export interface Question {
  readonly query: string;
  /** The policies that ask it, and for what. */
  readonly uses: readonly { readonly policy: string; readonly use: QueryUse }[];
}

/** The answer to one query, or why there is none. */
export interface Answer {
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
  readonly failure: { readonly kind: 'refused' | 'unreachable'; readonly text: string } | null;
  /** Prometheus' own warnings: the answer may be incomplete. */
  readonly warnings: readonly string[];
}

interface HostSpec {
  readonly query: string;
  readonly label: string;
}
interface VmSpec extends HostSpec {
  readonly labelType: Policy['vmProfileLabelType'];
}

const usesOf = (policy: Policy): { readonly use: QueryUse; readonly query: string }[] => {
  const uses: { use: QueryUse; query: string }[] = [
    { use: 'imbalance', query: policy.imbalanceQuery },
    { use: 'vm_profile', query: policy.vmProfileQuery },
  ];
  if (policy.capacityQuery !== null) uses.push({ use: 'capacity', query: policy.capacityQuery });
  if (policy.hostSizeQuery !== null) uses.push({ use: 'host_size', query: policy.hostSizeQuery });
  if (policy.moveCostQuery !== undefined) uses.push({ use: 'move_cost', query: policy.moveCostQuery });
  return uses;
};

/** The enabled policies that ask Prometheus. */
const asked = (policies: readonly Policy[]): Policy[] =>
  policies.filter(({ enabled, allocation }) => enabled && allocation === undefined);

/** The distinct queries of the enabled policies, in the order of the file. */
export function questionsOf(policies: readonly Policy[]): Question[] {
  const found = new Map<string, { policy: string; use: QueryUse }[]>();
  for (const policy of asked(policies)) {
    for (const { use, query } of usesOf(policy)) {
      const uses = found.get(query) ?? [];
      uses.push({ policy: policy.name, use });
      found.set(query, uses);
    }
  }
  return [...found].map(([query, uses]) => ({ query, uses }));
}

/** The series of one answer by what they are about, for the whole cloud. */
interface Matched {
  readonly answer: Answer;
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

/** All answers of a cycle, matched against the whole cloud; made once, used for every aggregate. */
export interface MatchedAnswers {
  readonly stalenessMs: number;
  readonly hosts: readonly (HostSpec & { readonly matched: Matched })[];
  readonly vms: readonly (VmSpec & { readonly matched: Matched })[];
  readonly moveCosts: readonly (VmSpec & { readonly matched: Matched })[];
}

/**
 * Matches the answers' labels against the hosts and VMs of the whole cloud, so that a series of another aggregate is not
 * taken for an unknown one.
 */
export function matchAnswers(input: {
  readonly policies: readonly Policy[];
  readonly answers: readonly Answer[];
  readonly stalenessMs: number;
  readonly hosts: readonly HostNames[];
  readonly vms: readonly VmNames[];
}): MatchedAnswers {
  const answers = new Map(input.answers.map((answer) => [answer.query, answer]));
  const hosts = new Map<string, HostSpec & { matched: Matched }>();
  const vms = new Map<string, VmSpec & { matched: Matched }>();
  const moveCosts = new Map<string, VmSpec & { matched: Matched }>();
  for (const policy of asked(input.policies)) {
    for (const { use, query } of usesOf(policy)) {
      const answer = answers.get(query);
      if (answer === undefined) throw new RangeError(`the query ${JSON.stringify(query)} was not asked`);
      if (use === 'vm_profile' || use === 'move_cost') {
        const found = use === 'vm_profile' ? vms : moveCosts;
        const spec = { query, label: policy.vmProfileLabel, labelType: policy.vmProfileLabelType };
        const key = JSON.stringify(spec);
        if (found.has(key)) continue;
        const matched = match(answer, spec.label, (labels) => matchVms(labels, input.vms, spec.labelType));
        found.set(key, { ...spec, matched });
      } else {
        const spec = { query, label: policy.hostLabel };
        const key = JSON.stringify(spec);
        if (hosts.has(key)) continue;
        const matched = match(answer, spec.label, (labels) => matchHosts(labels, input.hosts));
        hosts.set(key, { ...spec, matched });
      }
    }
  }
  return {
    stalenessMs: input.stalenessMs,
    hosts: [...hosts.values()],
    vms: [...vms.values()],
    moveCosts: [...moveCosts.values()],
  };
}

/** The answers that these policies ask for, of all that were asked for the cloud. */
export function answersOf(answers: MatchedAnswers, policies: readonly Policy[]): MatchedAnswers {
  const hosts = new Set<string>();
  const vms = new Set<string>();
  const moveCosts = new Set<string>();
  for (const policy of asked(policies)) {
    for (const { use, query } of usesOf(policy)) {
      const ofVms = JSON.stringify([query, policy.vmProfileLabel, policy.vmProfileLabelType]);
      if (use === 'vm_profile') vms.add(ofVms);
      else if (use === 'move_cost') moveCosts.add(ofVms);
      else hosts.add(JSON.stringify([query, policy.hostLabel]));
    }
  }
  const isIn = (set: ReadonlySet<string>, { query, label, labelType }: VmSpec): boolean =>
    set.has(JSON.stringify([query, label, labelType]));
  return {
    stalenessMs: answers.stalenessMs,
    hosts: answers.hosts.filter(({ query, label }) => hosts.has(JSON.stringify([query, label]))),
    vms: answers.vms.filter((one) => isIn(vms, one)),
    moveCosts: answers.moveCosts.filter((one) => isIn(moveCosts, one)),
  };
}

interface Labelled {
  readonly labels: Readonly<Record<string, string>>;
}

function match(
  answer: Answer,
  label: string,
  find: (labels: Iterable<string>) => {
    readonly byLabel: ReadonlyMap<string, string>;
    readonly unknown: readonly string[];
    readonly ambiguous: readonly { readonly label: string }[];
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
    ambiguous: ambiguous
      .map((one) => one.label)
      .filter((one) => inNow.has(one))
      .sort(byText),
    unlabelled: instant.filter((one) => labelOf(one) === '').length,
  };
}

export interface Readings {
  readonly hostReadings: readonly HostReading[];
  readonly vmReadings: readonly VmReading[];
  /** Bytes per second that VMs write. */
  readonly moveCostReadings: readonly VmReading[];
  readonly notes: readonly Reason[];
}

/** The readings of one aggregate from the answers. */
export function readingsFor(
  answers: MatchedAnswers,
  hosts: readonly Pick<HostObservation, 'name' | 'service'>[],
  servers: readonly Pick<ServerObservation, 'id' | 'status'>[],
): Readings {
  const notes: Reason[] = [];
  const hostNames = hosts.map((host) => host.name);
  // A host whose service is unknown may well be up: its value is expected too.
  const up = hosts.filter((host) => host.service.state !== 'down').map((host) => host.name);
  const hostReadings = answers.hosts.map(({ query, label, matched }): HostReading => {
    const judged = judgeFor('host', label, matched, hostNames, up, answers.stalenessMs);
    const unmatchedLabels = [...matched.ambiguous, ...matched.unknown].sort(byText);
    if (unmatchedLabels.length > 0) notes.push(unmatchedHosts(query, label, matched));
    const { health, text } = verdict('host', label, matched, judged);
    return { query, label, health, text, values: { ...judged.values }, missing: [...judged.missing], unmatchedLabels };
  });

  const ids = servers.map((server) => server.id);
  const running = servers.filter((server) => server.status === 'ACTIVE').map((server) => server.id);
  const vmReadingOf = (
    { query, label, labelType, matched }: MatchedAnswers['vms'][number],
    most: number,
    rule: { readonly code: NoteCode; readonly text: string },
  ): VmReading => {
    const judged = judgeFor('vm', label, matched, ids, running, answers.stalenessMs);
    const values: Record<string, number> = {};
    const outside: string[] = [];
    for (const [id, value] of Object.entries(judged.values)) {
      if (value >= 0 && value <= most) values[id] = value;
      else outside.push(`${id} (${value})`);
    }
    if (outside.length > 0) {
      const text = `${rule.text}, so they count as missing: ${some(outside)}`;
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
    const { health, text } = verdict('vm', label, matched, judged);
    return {
      query,
      label,
      labelType,
      health,
      text,
      values,
      unmatchedLabels: matched.unknown.length,
      ambiguousLabels: matched.ambiguous.length,
    };
  };
  const share = { code: 'vm-value-out-of-range', text: 'no share of a host, as they are outside [0,1]' } as const;
  const rate = { code: 'move-cost-out-of-range', text: 'no bytes per second, as they are below 0' } as const;
  const vmReadings = answers.vms.map((one) => vmReadingOf(one, 1, share));
  const moveCostReadings = answers.moveCosts.map((one) => vmReadingOf(one, Number.MAX_VALUE, rate));
  for (const { query, health, text } of moveCostReadings)
    if (health !== 'HEALTHY')
      notes.push(note('move-cost-unknown', `the cost of moves is not known in full: ${text}`, { query }));
  return { hostReadings, vmReadings, moveCostReadings, notes };
}

function judgeFor(
  kind: 'host' | 'vm',
  label: string,
  matched: Matched,
  subjects: readonly string[],
  expected: readonly string[],
  stalenessMs: number,
): AnswerHealth {
  const { answer } = matched;
  const of = <T>(by: ReadonlyMap<string, readonly T[]>): T[] => subjects.flatMap((subject) => by.get(subject) ?? []);
  return judge({
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

/** The judgement, with what is known about its cause. */
function verdict(
  kind: 'host' | 'vm',
  label: string,
  { answer, unlabelled }: Matched,
  judged: AnswerHealth,
): Pick<HostReading, 'health' | 'text'> {
  if (answer.failure !== null) {
    const health = answer.failure.kind === 'refused' ? 'ERROR' : 'UNREACHABLE';
    return { health, text: answer.failure.text };
  }
  const warned = answer.warnings.length > 0 ? [`Prometheus warns: ${some(answer.warnings, 3)}`] : [];
  if (judged.health === 'HEALTHY') {
    // An answer that may be incomplete may have left out a part of what a host's value is summed from.
    if (kind === 'host' && warned.length > 0) return { health: 'PARTIAL', text: warned.join('; ') };
    return { health: 'HEALTHY', text: '' };
  }
  const bare = unlabelled > 0 ? [`${unlabelled} series without the label ${JSON.stringify(label)}`] : [];
  return { health: judged.health, text: [judged.text, ...bare, ...warned].join('; ') };
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
