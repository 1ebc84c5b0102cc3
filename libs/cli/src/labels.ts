/** Which label of a series names a host or a VM: found by trying every label against Nova's names. Pure. */
import { type HostNames, matchHosts, matchVms, type Sample, type VmLabelType, type VmNames } from '@kronos/prometheus';

/** A label whose values are names of hosts or VMs. */
export type LabelChoice = {
  readonly label: string;
  /** Hosts or VMs that its values name. */
  readonly matched: number;
};
export type VmLabelChoice = LabelChoice & { readonly type: VmLabelType };

/** The names of all labels that the series have, sorted; without the metric's own name. */
export function labelNames(samples: readonly Sample[]): string[] {
  const names = new Set(samples.flatMap((sample) => Object.keys(sample.labels)));
  names.delete('__name__');
  return [...names].sort();
}

const valuesOf = (samples: readonly Sample[], label: string): string[] =>
  samples.flatMap(({ labels }) => {
    const value = Object.hasOwn(labels, label) ? labels[label] : undefined;
    return value === undefined || value === '' ? [] : [value];
  });

/** Labels that name hosts, the one that names most first. */
export const hostLabels = (samples: readonly Sample[], hosts: readonly HostNames[]): LabelChoice[] =>
  labelNames(samples)
    .map((label) => ({ label, matched: new Set(matchHosts(valuesOf(samples, label), hosts).byLabel.values()).size }))
    .filter(({ matched }) => matched > 0)
    .sort((a, b) => b.matched - a.matched);

const VM_LABEL_TYPES: readonly VmLabelType[] = ['nova_instance_uuid', 'nova_internal_name', 'nova_display_name'];

/** Labels that name VMs, and as what, the one that names most first; of equal ones a uuid before a name. */
export const vmLabels = (samples: readonly Sample[], vms: readonly VmNames[]): VmLabelChoice[] =>
  labelNames(samples)
    .flatMap((label) => {
      const values = valuesOf(samples, label);
      return VM_LABEL_TYPES.map((type) => ({
        label,
        type,
        matched: new Set(matchVms(values, vms, type).byLabel.values()).size,
      }));
    })
    .filter(({ matched }) => matched > 0)
    .sort((a, b) => b.matched - a.matched || VM_LABEL_TYPES.indexOf(a.type) - VM_LABEL_TYPES.indexOf(b.type));

/** Values of a query: the highest, the lowest, and whether they only grow. */
export type ValueRange = { readonly highest: number; readonly lowest: number; readonly grows: boolean };

/** The likely unit of values outside [0,1], and the change of the query that makes shares of them. */
export function rangeRemedy({ highest, lowest, grows }: ValueRange): string {
  if (lowest < 0) return 'A share is never negative. Correct the query.';
  if (grows)
    return 'The values only grow, as those of a counter do. Take their rate(), and divide it by the total of the host.';
  // A low percentage and a number of cores look alike.
  if (highest <= 20)
    return 'The values are no shares: divide percentages by 100, and amounts such as cores by the total of the host.';
  if (highest <= 100) return 'The values look like percentages. Divide the query by 100.';
  if (highest >= 1e6) return 'The values look like amounts, such as bytes. Divide the query by the total of the host.';
  return 'Divide the query by the total of the host, so that its values are shares from 0 to 1.';
}

/** The labels in which series of one host differ: a selector on one of them picks one exporter. */
export function differingLabels(samples: readonly Sample[]): string[] {
  return labelNames(samples).filter((label) => new Set(samples.map(({ labels }) => labels[label] ?? '')).size > 1);
}
