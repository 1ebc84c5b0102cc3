/** Judges the answers of Prometheus as the scorer does. Pure. */
import {
  count,
  type HostReading,
  hostQueryOf,
  hostReadingOf,
  type Policy,
  type PolicyQuery,
  policyQueries,
  type QueryUse,
  queriesOf,
  type Reason,
  readingOf,
  type Snapshot,
  some,
  type VmQueryUse,
  type VmReading,
  type VmReadingList,
  vmQueryOf,
  vmReadingOf,
} from '@kronos/contracts';
import type { MatchedAnswers } from '@kronos/observation';
import type { HostNames, Sample, VmNames } from '@kronos/prometheus';
import { differingLabels, hostLabels, labelNames, rangeRemedy, type ValueRange, vmLabels } from '../labels.ts';
import { figure } from '../numbers.ts';
import { type CheckFinding, finding } from './finding.ts';
import { grows, type MetricTypes, typesNeeded, wrongType } from './metricType.ts';

const rangeOf = (values: readonly number[], growing: boolean): ValueRange => ({
  highest: Math.max(...values),
  lowest: Math.min(...values),
  grows: growing,
});

export type QueryCheckInput = {
  readonly policies: readonly Policy[];
  /** Added to the name of each finding; names the aggregates where not all have the same policies. */
  readonly suffix?: string;
  readonly answers: MatchedAnswers;
  readonly types: MetricTypes;
  /** One per aggregate; empty when Nova could not be read. */
  readonly snapshots: readonly Snapshot[];
  /** Of the whole cloud. */
  readonly hosts: readonly HostNames[];
  readonly vms: readonly VmNames[];
};

/** The name of a query in the policy file. */
const fieldOf = (use: QueryUse): string => `${use}_query`;

type OfKind<Kind> = Extract<PolicyQuery, { readonly of: Kind }>;

/** The metrics whose types `judgeQueries` asks for. */
export const metricsToType = (answers: MatchedAnswers): string[] => [
  ...new Set(
    [...answers.hosts, ...Object.values(answers.vms).flat()].flatMap(({ matched }) =>
      typesNeeded(matched.answer.instant ?? []),
    ),
  ),
];

/** One finding per query of an enabled policy. */
export function judgeQueries(input: QueryCheckInput): CheckFinding[] {
  const { suffix = '' } = input;
  return input.policies
    .filter((policy) => policy.enabled)
    .flatMap((policy) => {
      if (policy.allocation !== undefined) return [allocation(input, policy)];
      const asked = queriesOf(policy);
      return [
        ...asked.flatMap((one) => (one.of === 'host' ? [hostQuery(input, policy, one)] : [])),
        ...asked.flatMap((one) => (one.of === 'vm' ? [vmQuery(input, policy, one)] : [])),
      ];
    })
    .map((one) => ({ ...one, what: `${one.what}${suffix}` }));
}

/** One finding for an allocation policy: what Placement and the servers say, as the scorer reads it. */
function allocation(input: QueryCheckInput, policy: Policy): CheckFinding {
  const what = `policy ${policy.name} allocation`;
  if (input.snapshots.length === 0)
    return finding('skipped', 'allocation', what, { text: 'needs Nova, which could not be read' });
  const readings = input.snapshots.flatMap((snapshot) =>
    (['imbalance', 'host_size'] as const).flatMap((use) => {
      const asked = hostQueryOf(policy, use);
      return asked === null
        ? []
        : [{ use, aggregate: snapshot.aggregate, reading: given(hostReadingOf(snapshot.hostReadings, asked)) }];
    }),
  );
  const values = readings.flatMap(({ use, reading }) => (use === 'imbalance' ? Object.values(reading.values) : []));
  const servers = input.snapshots.flatMap((snapshot) => snapshot.servers);
  const weighed = servers.filter(({ id }) =>
    input.snapshots.some(({ vmReadings }) => {
      const reading = vmReadingOf(vmReadings, vmQueryOf(policy, 'vm_profile'));
      return (reading?.values[id] ?? 0) > 0;
    }),
  ).length;
  const detail = { hosts: values.length, vmsInScope: servers.length, vmsWithValue: weighed, ...rangeDetail(values) };
  const range = values.length === 0 ? '' : `, from ${figure(Math.min(...values))} to ${figure(Math.max(...values))}`;
  const lines = [
    `${policy.allocation}: ${values.length} hosts${range}; ${weighed} of ${servers.length} VMs have an allocation`,
  ];
  const end = ending(what, lines, detail);
  const unhealthy = readings.filter(({ reading }) => reading.health !== 'HEALTHY');
  for (const { aggregate, reading } of unhealthy) lines.push(`aggregate ${aggregate}: ${reading.text}`);
  if (unhealthy.length > 0)
    return end(
      'failed',
      'allocation-unknown',
      `Name a resource class that every host has in Placement (openstack resource provider inventory list), such as VCPU or MEMORY_MB.`,
    );
  if (servers.length > 0 && weighed === 0)
    return end('failed', 'allocation-none', 'Name a resource class that the flavors ask for, such as VCPU or PCPU.');
  return end('ok', 'allocation');
}

/** Makes the finding of a query out of the lines that were written about it. */
const ending =
  (what: string, lines: readonly string[], detail: CheckFinding['detail']) =>
  (state: CheckFinding['state'], code: string, remedy?: string): CheckFinding =>
    finding(state, code, what, { text: lines.join('\n'), remedy, detail });

function hostQuery(input: QueryCheckInput, policy: Policy, asked: OfKind<'host'>): CheckFinding {
  const { query, use } = asked;
  const what = `policy ${policy.name} ${fieldOf(use)}`;
  const { matched } = given(hostReadingOf(input.answers.hosts, asked));
  const { samples, range } = seriesOf(matched);
  const readings = input.snapshots.map((snapshot) => ({
    aggregate: snapshot.aggregate,
    reading: given(hostReadingOf(snapshot.hostReadings, asked)),
  }));
  const named = new Set(matched.byLabel.values());
  const values = samples.map((sample) => sample.value).filter(Number.isFinite);
  const detail = { series: samples.length, hostsMatched: named.size, ...rangeDetail(values) };
  const lines = [summary(samples, `${named.size} hosts`)];
  const end = ending(what, lines, detail);

  const failure = unanswered(matched.answer.failure, samples, query);
  if (failure !== null) {
    lines[0] = failure.text;
    return end('failed', failure.code, failure.remedy);
  }
  const type = wrongType(query, { samples, range }, input.types);
  if (type !== null) {
    lines.push(type.text);
    return end('failed', 'host-type', type.remedy);
  }
  if (input.hosts.length === 0) {
    lines[0] = `${samples.length} series; the cloud was not read, so which hosts they name is not known`;
    return end('skipped', 'cloud-unread');
  }
  if (named.size === 0) {
    const { text, remedy } = wrongHostLabel(policy, samples, input.hosts);
    lines.push(text);
    return end('failed', 'host-label', remedy);
  }
  if (matched.unlabelled === samples.length) {
    lines.push(`no series has the label ${policy.hostLabel}; the series have: ${list(labelNames(samples))}`);
    return end('failed', 'host-label', 'Set host_label to the label that names the host.');
  }
  const duplicates = duplicateSeries(matched, policy.hostLabel, 'host');
  if (duplicates !== null) {
    lines.push(duplicates.text);
    return end('failed', 'host-series-duplicate', duplicates.remedy);
  }
  const outside = [...new Set(values.filter((value) => value < 0 || value > 1))];
  if (use !== 'host_size' && outside.length > 0) {
    lines.push(`${outside.length} values are outside [0,1]: the scorer skips the policy`);
    return end('failed', 'host-range', rangeRemedy(rangeOf(values, grows(range))));
  }
  const unhealthy = readings.filter(({ reading }) => reading.health !== 'HEALTHY');
  for (const { aggregate, reading } of unhealthy) lines.push(`aggregate ${aggregate}: ${health(reading)}`);
  if (unhealthy.length > 0) return end('failed', 'host-health', healthRemedy(unhealthy.map((one) => one.reading)));
  if (matched.unknown.length > 0) lines.push(`label values that name no host of the cloud: ${list(matched.unknown)}`);
  if (matched.ambiguous.length > 0) {
    lines.push(`label values that name several hosts: ${list(matched.ambiguous)}`);
    return end('warning', 'host-label-ambiguous', 'Use a label whose values name one host each.');
  }
  return end('ok', 'host-query');
}

/** The demands on the values of a query about VMs: the range, and what to do about others. */
type VmRange = {
  readonly wanted: 'share' | 'rate';
  readonly most: number;
  readonly range: string;
  readonly rangeRemedy: typeof rangeRemedy;
};

const vmRanges: Readonly<Record<VmReadingList, VmRange>> = {
  vmReadings: { wanted: 'share', most: 1, range: 'outside [0,1]', rangeRemedy },
  moveCostReadings: {
    wanted: 'rate',
    most: Number.MAX_VALUE,
    range: 'below 0',
    rangeRemedy: () => 'Give bytes per second: for a counter of bytes, its rate().',
  },
};

/** The consequence for a VM without a value, and the severity when no VM has one. */
type WithoutValue = { readonly without: string; readonly bad: 'failed' | 'warning' };

const withoutValue: Readonly<Record<VmQueryUse, (policy: Policy) => WithoutValue>> = {
  vm_profile: ({ vmProfileFallback }) => {
    const skips = vmProfileFallback === 'skip';
    return {
      without: skips
        ? 'vm_profile_fallback is skip, so a VM without a value never moves'
        : `VMs without a value use the fallback ${vmProfileFallback}`,
      // Without data the fallback applies; with `skip` no VM can move.
      bad: skips ? 'failed' : 'warning',
    };
  },
  move_cost: () => ({
    without:
      'a VM without a value counts as the VM that writes most; without any value the memory of each VM counts once',
    bad: 'warning',
  }),
};

function vmQuery(input: QueryCheckInput, policy: Policy, asked: OfKind<'vm'>): CheckFinding {
  const { query, use } = asked;
  const rule = vmRanges[policyQueries[use].readings];
  const { bad, without: fallback } = withoutValue[use](policy);
  const what = `policy ${policy.name} ${fieldOf(use)}`;
  const { matched } = given(vmReadingOf(input.answers.vms[use], asked));
  const { samples, range } = seriesOf(matched);
  const named = new Set(matched.byLabel.values());
  const values = samples.map((sample) => sample.value).filter(Number.isFinite);
  const servers = new Set(input.snapshots.flatMap((snapshot) => snapshot.servers.map((server) => server.id)));
  const usable = new Set(
    input.snapshots.flatMap((snapshot) => Object.keys(given(readingOf(snapshot, policy, use)).values)),
  );
  const detail = {
    series: samples.length,
    vmsMatched: named.size,
    vmsInScope: servers.size,
    vmsWithValue: usable.size,
    ...rangeDetail(values),
  };
  const lines = [summary(samples, `${named.size} VMs`)];
  const end = ending(what, lines, detail);

  const failure = unanswered(matched.answer.failure, samples, query);
  if (failure !== null) {
    lines[0] = failure.text;
    lines.push(fallback);
    // A refused query is a mistake under any fallback.
    return end(failure.code === 'query-refused' ? 'failed' : bad, failure.code, failure.remedy);
  }
  const type = wrongType(query, { samples, range }, input.types, rule.wanted);
  if (type !== null) {
    lines.push(type.text);
    return end('failed', 'vm-type', type.remedy);
  }
  if (input.vms.length === 0 && input.hosts.length === 0) {
    lines[0] = `${samples.length} series; the cloud was not read, so which VMs they name is not known`;
    return end('skipped', 'cloud-unread');
  }
  if (input.vms.length > 0 && named.size === 0) {
    const { text, remedy } = wrongVmLabel(policy, samples, input.vms);
    lines.push(text, fallback);
    return end('failed', 'vm-label', remedy);
  }
  // Values that do not count are a failure when no VM in scope has another.
  const partly = usable.size === 0 ? 'failed' : 'warning';
  const outside = values.filter((value) => value < 0 || value > rule.most).length;
  if (outside > 0) {
    lines.push(`${outside} of ${samples.length} values are ${rule.range} and count as missing`, fallback);
    return end(partly, 'vm-range', rule.rangeRemedy(rangeOf(values, grows(range))));
  }
  const duplicates = duplicateSeries(matched, policy.vmProfileLabel, 'VM');
  if (duplicates !== null) {
    lines.push(duplicates.text, fallback);
    // A few are VMs on their way from host to host; all of them are two exporters.
    return end(partly, 'vm-series-duplicate', duplicates.remedy);
  }
  if (servers.size > 0 && usable.size === 0) {
    lines.push(`no VM in scope has a value (${servers.size} VMs); ${fallback}`);
    return end(bad, 'vm-unmatched', 'Check that the exporter runs on the hosts in scope.');
  }
  if (servers.size > 0) lines.push(`${usable.size} of ${servers.size} VMs in scope have a value; ${fallback}`);
  if (matched.ambiguous.length > 0)
    lines.push(`${matched.ambiguous.length} label values name several VMs: no data for any of them`);
  return end('ok', 'vm-query');
}

const seriesOf = ({ answer }: MatchedAnswers['hosts'][number]['matched']) => ({
  samples: answer.instant ?? [],
  range: answer.range ?? [],
});

/** Hosts or VMs with several series: only one of the series can be theirs. */
function duplicateSeries(
  { instant }: Pick<MatchedAnswers['hosts'][number]['matched'], 'instant'>,
  label: string,
  kind: 'host' | 'VM',
): { readonly text: string; readonly remedy: string } | null {
  const duplicates = [...instant].filter(([, series]) => series.length > 1);
  const [first] = duplicates;
  if (first === undefined) return null;
  const [name, series] = first;
  const without = kind === 'VM' ? 'so none of them counts, ' : '';
  return {
    text: `${count(duplicates.length, `${kind} has`, `${kind}s have`)} several series, ${without}${name} among them; they differ in ${list(differingLabels(series))}`,
    remedy: duplicatesRemedy(series, label, kind),
  };
}

/** An answer that could not be had, or is empty. */
function unanswered(
  failure: { readonly kind: 'refused' | 'unreachable'; readonly text: string } | null,
  samples: readonly Sample[],
  query: string,
): { readonly code: string; readonly text: string; readonly remedy: string } | null {
  if (failure?.kind === 'refused')
    return { code: 'query-refused', text: failure.text, remedy: `Correct the query: ${query}` };
  if (failure !== null)
    return { code: 'query-unanswered', text: failure.text, remedy: 'Check [prometheus] and its timeout.' };
  if (samples.length > 0) return null;
  return {
    code: 'query-empty',
    text: 'no series',
    remedy: `Prometheus has no series for the query. Check that the exporter is scraped and that the metric exists: ${query}`,
  };
}

function wrongVmLabel(
  { vmProfileLabel, vmProfileLabelType }: Policy,
  samples: readonly Sample[],
  vms: readonly VmNames[],
): { readonly text: string; readonly remedy: string } {
  const [best] = vmLabels(samples, vms);
  return {
    text: `no value of the label ${vmProfileLabel} is a ${vmProfileLabelType} of a VM; the series have: ${list(labelNames(samples))}`,
    remedy:
      best === undefined
        ? 'No label names a VM of this cloud. Use an exporter or a recording rule whose series carry the uuid, the libvirt domain (instance-...) or the display name.'
        : `Set vm_profile_label: ${best.label} and vm_profile_label_type: ${best.type} (${best.matched} VMs match).`,
  };
}

function wrongHostLabel(
  policy: Policy,
  samples: readonly Sample[],
  hosts: readonly HostNames[],
): Omit<Reason, 'code'> & {
  readonly remedy: string;
} {
  const [best] = hostLabels(samples, hosts);
  const text = `no value of the label ${policy.hostLabel} is a host; the series have: ${list(labelNames(samples))}`;
  if (best !== undefined) return { text, remedy: `Set host_label: ${best.label} (${best.matched} hosts match).` };
  const example = hosts[0]?.serviceHost ?? '';
  return {
    text,
    remedy: `No label names a host of Nova (such as ${example}). Give the scrape targets names that Nova knows, or add a label with relabel_configs.`,
  };
}

/** One exporter is selected by a label in which the series of one host or VM differ. */
function duplicatesRemedy(series: readonly Sample[], label: string, kind: 'host' | 'VM'): string {
  const [name = 'job'] = differingLabels(series);
  const value = series[0]?.labels[name] ?? '';
  return `Two exporters report the same ${kind}. Select one of them, for instance with {${name}=${JSON.stringify(value)}}, or aggregate with max by (${label}).`;
}

const health = ({ health: state, text }: Pick<HostReading | VmReading, 'health' | 'text'>): string =>
  text === '' ? state : `${state}: ${text}`;

function healthRemedy(readings: readonly Pick<HostReading, 'health'>[]): string {
  const states = new Set(readings.map((reading) => reading.health));
  if (states.has('STALE'))
    return 'An exporter stopped reporting. Check the scrape targets of the hosts that are named.';
  if (states.has('PARTIAL'))
    return 'Run the exporter on every host of the aggregate, and check that Prometheus scrapes it.';
  return 'Check Prometheus and the query.';
}

const summary = (samples: readonly Sample[], matched: string): string => {
  const values = samples.map((sample) => sample.value).filter(Number.isFinite);
  const range =
    values.length === 0 ? 'no value' : `from ${short(Math.min(...values))} to ${short(Math.max(...values))}`;
  return `${samples.length} series, ${matched} matched, ${range}`;
};

const rangeDetail = (values: readonly number[]): Record<string, number> =>
  values.length === 0 ? {} : { lowest: Math.min(...values), highest: Math.max(...values) };

const short = (value: number): string => String(Number(value.toPrecision(4)));

const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : some(names, 8));

/** Every query of an enabled policy was asked and is in every snapshot. */
function given<T>(answer: T | undefined): T {
  if (answer === undefined) throw new RangeError('a query of a policy was not run');
  return answer;
}
