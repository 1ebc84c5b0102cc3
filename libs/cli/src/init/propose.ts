/** Composes policies from the exporters that were found. Pure. */
import type { VmLabelType } from '@kronos/prometheus';
import type { HostExporter, VmExporter } from './exporters.ts';

/** The exporters of a cloud, and how their labels name hosts and VMs. */
export type ProposalSources = {
  readonly host: { readonly exporter: HostExporter; readonly label: string };
  readonly vm: {
    readonly exporter: VmExporter;
    readonly label: string;
    readonly type: VmLabelType;
    /** The label that names the VM's host; null where the series do not tell it. */
    readonly hostLabel: string | null;
    /** The metrics that Prometheus has: decides which memory metric is used. */
    readonly names: ReadonlySet<string>;
  } | null;
};

/** A policy acts only where this query, with one value per host, is above the level. */
export type Trigger = { readonly query: string; readonly actAbove: number; readonly comment: string };

export type ProposedPolicy = {
  readonly name: string;
  readonly weight: number;
  readonly imbalanceQuery: string;
  readonly hostLabel: string;
  readonly vmProfileQuery: string;
  readonly vmProfileLabel: string;
  readonly vmProfileLabelType: VmLabelType;
  /** The resource class whose total in Placement is the size of a host, where hosts differ; null: all hosts have the same size. */
  readonly resourceClass: string | null;
  readonly threshold: number;
  readonly actAbove?: number;
  readonly triggerQuery?: string;
  /** Shown above the policy in the file. */
  readonly comments: readonly string[];
};

const DEFAULT_THRESHOLD = 0.2;
const LEAST_THRESHOLD = 0.1;
const MOST_THRESHOLD = 0.4;

/** The capacity of a host: the sum of the series, or their number. */
type Total = { readonly query: string; readonly add: 'sum' | 'count' };

type Resource = {
  readonly name: 'cpu' | 'memory';
  readonly weight: number;
  readonly imbalanceQuery: string;
  /** The usage of each VM; null: no exporter has it. */
  readonly usage: string | null;
  readonly total: Total;
};

/** CPU and memory, even out, weights 0.6 and 0.4. `imbalanceOf`: max - min now, null where it is not known. */
export function proposePolicies(
  { host, vm }: ProposalSources,
  imbalanceOf: (query: string) => number | null,
): readonly ProposedPolicy[] {
  const policy = ({ name, weight, imbalanceQuery, usage, total }: Resource): ProposedPolicy => {
    const imbalance = imbalanceOf(imbalanceQuery);
    const named = vm === null || usage === null ? null : vm;
    return {
      name,
      weight,
      imbalanceQuery,
      hostLabel: host.label,
      vmProfileQuery: named === null || usage === null ? NO_SERIES : share(usage, total, named, host.label),
      vmProfileLabel: named?.label ?? 'uuid',
      vmProfileLabelType: named?.type ?? 'nova_instance_uuid',
      resourceClass: name === 'cpu' ? 'VCPU' : 'MEMORY_MB',
      threshold: thresholdFor(imbalance),
      comments: [
        `Hosts from ${host.exporter.title}, label ${host.label}.`,
        named === null
          ? 'No exporter of VMs was found: each VM gets its share of the host by vCPUs.'
          : `VMs from ${named.exporter.title}, label ${named.label}.`,
        ...(named?.hostLabel === null
          ? ['The series of VMs do not name the host, so shares are of an average host.']
          : []),
        imbalance === null ? 'The imbalance could not be measured.' : `Imbalance now: ${imbalance.toFixed(2)}.`,
      ],
    };
  };
  const memory = vm?.exporter.memory.find(({ metric }) => vm.names.has(metric))?.query ?? null;
  return [
    policy({
      name: 'cpu',
      weight: 0.6,
      imbalanceQuery: host.exporter.cpu(host.label),
      usage: vm?.exporter.cores ?? null,
      total: { query: host.exporter.cores, add: 'count' },
    }),
    policy({
      name: 'memory',
      weight: 0.4,
      imbalanceQuery: host.exporter.memory(host.label),
      usage: memory,
      total: { query: host.exporter.memoryBytes, add: 'sum' },
    }),
  ];
}

/** A valid query without series: every VM takes the fallback. */
const NO_SERIES = 'absent(vector(0))';

/** The series with the name of the host without its port, as `kronos_host`. */
export const bare = (query: string, label: string): string =>
  `label_replace(${query}, "kronos_host", "$1", ${JSON.stringify(label)}, "(.+?)(:[0-9]+)?")`;

/**
 * The share of its host that a VM uses. The two exporters name one host alike except for the port, so both names are compared
 * without it.
 */
function share(
  usage: string,
  { query: total, add }: Total,
  vm: NonNullable<ProposalSources['vm']>,
  hostLabel: string,
): string {
  if (vm.hostLabel === null) {
    return `sum by (${vm.label}) (${usage}) / scalar(avg(${add} by (${hostLabel}) (${total})))`;
  }
  const perHost = `${add} by (kronos_host) (${bare(total, hostLabel)})`;
  return `sum by (${vm.label}, kronos_host) (${bare(usage, vm.hostLabel)}) / on (kronos_host) group_left ${perHost}`;
}

/**
 * Half of the imbalance that the metrics show now, in steps of 0.05, from 0.1 to 0.4: the first dry run then shows a plan where
 * there is something to even out, and none where the cloud is balanced.
 */
export function thresholdFor(imbalance: number | null): number {
  if (imbalance === null) return DEFAULT_THRESHOLD;
  const half = Math.round(imbalance / 2 / 0.05) * 0.05;
  return Number(Math.min(MOST_THRESHOLD, Math.max(LEAST_THRESHOLD, half)).toFixed(2));
}

/** policies.yaml that needs no metrics: balanced by what is allocated. */
export function allocationPolicies(header: readonly string[]): string {
  const policies = [
    ['vcpu', 'VCPU'],
    ['ram', 'MEMORY_MB'],
  ].flatMap(([name, resourceClass]) => [
    `  - name: ${name}`,
    '    mode: spread',
    '    weight: 0.5',
    '    source: allocation',
    `    resource_class: ${resourceClass}`,
    `    threshold: ${DEFAULT_THRESHOLD}`,
    '    max_migrations_per_cycle: 5',
    '',
  ]);
  return `${[...header.map((line) => `# ${line}`), 'policies:', ...policies].join('\n').trimEnd()}\n`;
}

/** policies.yaml. */
export function policiesText(policies: readonly ProposedPolicy[], header: readonly string[]): string {
  const body = policies.flatMap((policy) => [
    ...policy.comments.map((comment) => `  # ${comment}`),
    `  - name: ${policy.name}`,
    '    mode: spread',
    `    weight: ${policy.weight}`,
    `    imbalance_query: ${JSON.stringify(policy.imbalanceQuery)}`,
    `    host_label: ${policy.hostLabel}`,
    `    vm_profile_query: ${JSON.stringify(policy.vmProfileQuery)}`,
    `    vm_profile_label: ${policy.vmProfileLabel}`,
    `    vm_profile_label_type: ${policy.vmProfileLabelType}`,
    '    vm_profile_fallback: flavor_vcpu_ratio',
    ...(policy.resourceClass === null ? [] : [`    resource_class: ${policy.resourceClass}`]),
    `    threshold: ${policy.threshold}`,
    ...(policy.triggerQuery === undefined ? [] : [`    trigger_query: ${JSON.stringify(policy.triggerQuery)}`]),
    ...(policy.actAbove === undefined ? [] : [`    act_above: ${policy.actAbove}`]),
    '    max_migrations_per_cycle: 5',
    '    min_sustained_cycles: 2',
    '',
  ]);
  return `${[...header.map((line) => `# ${line}`), 'policies:', ...body].join('\n').trimEnd()}\n`;
}
