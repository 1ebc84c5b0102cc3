/** Whether Placement grants an amount of a resource: nova/objects and placement's `_check_capacity_exceeded`. */

interface Inventory {
  readonly capacity: number;
  readonly minUnit: number;
  readonly maxUnit: number;
  readonly stepSize: number;
}

/** Whether an allocation may have this amount at once, by `min_unit`, `max_unit` and `step_size`. */
export const isGrantable = (amount: number, minUnit: number, maxUnit: number, stepSize: number): boolean =>
  amount >= minUnit && amount <= maxUnit && amount % stepSize === 0;

/** Whether resources fit into a provider, as Placement itself judges it. */
export function providerFits(
  resources: Readonly<Record<string, number>>,
  inventories: Readonly<Record<string, Inventory>>,
  usages: Readonly<Record<string, number>>,
): boolean {
  return Object.entries(resources).every(([name, amount]) => {
    if (amount === 0) return true;
    const inventory = inventories[name];
    if (inventory === undefined) return false;
    const { capacity, minUnit, maxUnit, stepSize } = inventory;
    return isGrantable(amount, minUnit, maxUnit, stepSize) && amount + (usages[name] ?? 0) <= capacity;
  });
}
