/** The sizes of hosts where a policy has no query for them. Pure. */
import type { HostObservation, Policy } from '@kronos/contracts';

/** Sizes by Placement's total of one resource class. */
export type DefaultSizes = {
  readonly resourceClass: string;
  /** The policy names the class; false: it is assumed. */
  readonly named: boolean;
  /** By host; hosts without a known total are left out. */
  readonly totals: ReadonlyMap<string, number>;
};

/** A policy that does not say may measure either class. The one in which hosts differ more is the less favourable one. */
const ASSUMED = ['VCPU', 'MEMORY_MB'] as const;
/** Hosts of one kind differ by less than this share: firmware and kernels keep some memory for themselves. */
const ALIKE = 0.05;

/** All CPUs of a host: pinned ones are another class of the same hardware. */
const totalOf = ({ inventory }: Pick<HostObservation, 'inventory'>, name: string): number =>
  name === 'VCPU' ? (inventory?.VCPU?.total ?? 0) + (inventory?.PCPU?.total ?? 0) : (inventory?.[name]?.total ?? 0);

/**
 * The sizes by which a policy of metrics scales the share of a host that a VM needs; null where hosts are alike, or Placement's
 * totals are not known (snapshots of Kronos 0.1 have none).
 */
export function defaultSizes(
  { hostSizeQuery, allocation, resourceClass }: Pick<Policy, 'hostSizeQuery' | 'allocation' | 'resourceClass'>,
  hosts: readonly Pick<HostObservation, 'name' | 'inventory'>[],
): DefaultSizes | null {
  if (hostSizeQuery !== null || allocation !== undefined) return null;
  const named = resourceClass !== undefined;
  const candidates = (named ? [resourceClass] : ASSUMED).map((name): DefaultSizes => {
    const totals = hosts.flatMap((host): [string, number][] => {
      const total = totalOf(host, name);
      return total > 0 ? [[host.name, total]] : [];
    });
    return { resourceClass: name, named, totals: new Map(totals) };
  });
  const [widest] = candidates.toSorted((a, b) => spreadOf(b) - spreadOf(a));
  return widest === undefined || spreadOf(widest) <= 1 + ALIKE ? null : widest;
}

/** The largest over the smallest; 1 where fewer than two are known. */
const spreadOf = ({ totals }: DefaultSizes): number =>
  totals.size < 2 ? 1 : Math.max(...totals.values()) / Math.min(...totals.values());
