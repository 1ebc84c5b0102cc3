/** From what Placement says in two places to one inventory. Pure. */
import type { ProviderInventory } from '@kronos/openstack';
import type { ProviderCapacity } from './cloud.ts';

/** A provider's own inventories, by resource class. */
export type ProviderLimits = Readonly<Record<string, ProviderInventory>>;

type Amounts = Readonly<Record<string, { readonly capacity: number; readonly used: number }>>;

/** Capacity and use of each class with the limits of one allocation, null where none are known. */
export function inventoryOf(limits: ProviderLimits, amounts: Amounts): ProviderCapacity['inventory'] {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, { capacity, used }]) => {
      const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
      return [
        name,
        {
          capacity,
          ...(limit === undefined ? {} : { total: limit.total }),
          used,
          minUnit: limit?.minUnit ?? null,
          maxUnit: limit?.maxUnit ?? null,
          stepSize: limit?.stepSize ?? null,
        },
      ];
    }),
  );
}

/** Whether limits that were read earlier are of the inventory that these amounts show: the same classes and capacities. */
export function limitsHold(limits: ProviderLimits, summary: { readonly resources: Amounts }): boolean {
  const names = Object.keys(summary.resources);
  return (
    names.length === Object.keys(limits).length &&
    names.every((name) => Object.hasOwn(limits, name) && limits[name]?.capacity === summary.resources[name]?.capacity)
  );
}
