import type { ProfileSum } from './snapshot.ts';

/** A sentence about weights that do not add up, with its remedy. */
export type ProfileWords = { readonly text: string; readonly remedy: string };

const short = (value: number): string => String(Number(value.toPrecision(2)));

/** `its VMs on cmp1 add up to 0.0008, and the host's value is 0.8 (0.001 times): the unit is wrong` */
export function profileWords({ ratio, host, sum, value, cause, factor }: ProfileSum): ProfileWords {
  const figures = `the values of the VMs on ${host} add up to ${short(sum)}, and the host's value is ${short(value)} (over all hosts ${short(ratio)} times)`;
  switch (cause) {
    case 'not-divided-by-size':
      return {
        text: `${figures}: the VMs' values are amounts, as they are not divided by the size of their host`,
        remedy: 'Divide vm_profile_query by the CPUs (or the memory) of the host.',
      };
    case 'divided-by-size-twice':
      return {
        text: `${figures}: the VMs' values are divided by the size of their host twice`,
        remedy: 'Remove one division from vm_profile_query.',
      };
    case 'unit':
      return {
        text: `${figures}: the unit of the VMs' values is wrong`,
        remedy:
          factor === undefined
            ? 'Bring vm_profile_query to a share of the host, from 0 to 1.'
            : `Multiply vm_profile_query by ${short(factor)}, or compare its unit with that of imbalance_query.`,
      };
    case 'share-of-guest':
      return {
        text: `${figures}: the VMs' values are shares of the guests, not of their host`,
        remedy: 'Multiply vm_profile_query by the vCPUs (or the memory) of the VM, and divide by those of the host.',
      };
    case 'load-without-vm':
      return {
        text: `${figures}: most of the load is of no VM`,
        remedy: 'Look at what else runs on these hosts; Kronos can move only the load of VMs.',
      };
  }
}

/** `hosts differ in VCPU from 8 to 64, and policy cpu names no size` */
export const sizesText = (sizes: {
  readonly resourceClass: string;
  readonly smallest: number;
  readonly largest: number;
}) =>
  `hosts differ in ${sizes.resourceClass} from ${sizes.smallest} to ${sizes.largest}: the values of VMs are scaled by it`;
export const SIZES_REMEDY = 'Name what the policy measures: resource_class: VCPU or MEMORY_MB, or host_size_query.';
