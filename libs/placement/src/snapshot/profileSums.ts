/** Whether the weights of VMs add up to the values of their hosts. Pure. */
import {
  byText,
  type HostObservation,
  type ProfileSum,
  type Snapshot,
  vmQueryOf,
  vmReadingOf,
} from '@kronos/contracts';
import { judgePolicies, type ScoreInput } from './scoring.ts';

/** Below this, a host's value is noise, and a ratio to it says nothing. */
const LEAST_VALUE = 0.02;
/** The sum of the weights over the values that may be: hosts have some load of their own. */
const LOW = 0.5;
const HIGH = 1.5;
/** A ratio that no load of a host's own explains: the unit is wrong. */
const FAR = 0.1;
/** How near a ratio must be to a factor to name it. */
const NEAR = 0.15;

/** Factors between units that people mix up: the weights are too small (or large) by one of them. */
const FACTORS = [100, 1000, 1024, 1e6, 2 ** 20, 1e9, 2 ** 30] as const;

type Input = ScoreInput & Pick<Snapshot, 'servers' | 'vmReadings'>;

/**
 * For each policy of metrics that takes part: the sum of its VMs' weights over the sum of its hosts' values, where that is far from 1.
 * Only hosts count of which every running VM has a value.
 */
export function profileSums(input: Input): ProfileSum[] {
  return judgePolicies(input).flatMap(({ policy, reason, values }): ProfileSum[] => {
    if (reason !== null || policy.allocation !== undefined) return [];
    const reading = vmReadingOf(input.vmReadings, vmQueryOf(policy, 'vm_profile'));
    if (reading === undefined) return [];
    const sums = hostSums(input.servers, reading.values);
    const compared = [...sums]
      .map(([host, sum]) => ({ host, sum, value: values.get(host) ?? 0 }))
      .filter(({ value }) => value >= LEAST_VALUE)
      .sort((a, b) => byText(a.host, b.host));
    if (compared.length === 0) return [];
    const total = (of: 'sum' | 'value'): number => compared.reduce((all, one) => all + one[of], 0);
    const ratio = total('sum') / total('value');
    if (ratio >= LOW && ratio <= HIGH) return [];
    const [worst] = compared.toSorted(
      (a, b) => Math.abs(Math.log(b.sum / b.value)) - Math.abs(Math.log(a.sum / a.value)),
    );
    if (worst === undefined) return [];
    return [{ policy: policy.name, ratio, ...worst, ...causeOf(ratio, compared, input.hosts) }];
  });
}

/** The sum of the weights by host, of the hosts of which every running VM has one. */
function hostSums(servers: Input['servers'], weights: Readonly<Record<string, number>>): Map<string, number> {
  const sums = new Map<string, number>();
  const unknown = new Set<string>();
  for (const { id, host, status } of servers) {
    const weight = Object.hasOwn(weights, id) ? weights[id] : undefined;
    if (weight !== undefined) sums.set(host, (sums.get(host) ?? 0) + weight);
    else if (status === 'ACTIVE') unknown.add(host);
  }
  for (const host of unknown) sums.delete(host);
  return sums;
}

const isNear = (a: number, b: number): boolean => Math.abs(a / b - 1) <= NEAR;

function causeOf(
  ratio: number,
  compared: readonly { readonly host: string; readonly sum: number; readonly value: number }[],
  hosts: readonly Pick<HostObservation, 'name' | 'inventory'>[],
): Pick<ProfileSum, 'cause' | 'factor'> {
  const cpus = new Map(
    hosts.map(({ name, inventory }) => [name, (inventory?.VCPU?.total ?? 0) + (inventory?.PCPU?.total ?? 0)]),
  );
  const bySize = (power: 1 | -1): boolean =>
    compared.every(({ host, sum, value }) => {
      const count = cpus.get(host) ?? 0;
      return count > 1 && isNear(sum / value, count ** power);
    });
  if (bySize(1)) return { cause: 'not-divided-by-size' };
  if (bySize(-1)) return { cause: 'divided-by-size-twice' };
  const factor = FACTORS.find((one) => isNear(ratio * one, 1) || isNear(ratio / one, 1));
  if (factor !== undefined) return { cause: 'unit', factor: ratio < 1 ? factor : 1 / factor };
  if (ratio > HIGH) return { cause: 'share-of-guest' };
  return { cause: ratio < FAR ? 'unit' : 'load-without-vm' };
}
