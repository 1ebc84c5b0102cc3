// Imports nothing of Kronos: main.ts reads it before a bug is planted, and a module that is loaded already gets no bug.

export const inventoryModes = ['api', 'changes', 'notifications'] as const;
export type InventoryMode = (typeof inventoryModes)[number];

/** Whether the hosts have NUMA cells, and whether Kronos knows them. */
export const numaModes = ['none', 'known', 'unknown'] as const;
export type NumaMode = (typeof numaModes)[number];

/** The arguments of a run. The seed draws everything else. */
export interface Asked {
  readonly seed: number;
  readonly days: number;
  readonly aggregates: number;
  readonly hosts: number;
  readonly vms: number;
  /** Of each service. */
  readonly replicas: number;
  /** `[engine] evaluation_interval`, seconds; null: the seed draws it. */
  readonly interval: number | null;
  /** How often faults come, relative to their usual rates; null: the seed draws it. */
  readonly trouble: number | null;
  /** `[inventory] mode`; null: the seed draws it. */
  readonly inventory: InventoryMode | null;
  /** Null: the seed draws it. */
  readonly numa: NumaMode | null;
  /** Commit of another release, whose services run beside those of this one; null: none does. */
  readonly beside: string | null;
  /** Only faults with these numbers; null: all. */
  readonly only: ReadonlySet<number> | null;
  readonly verbose: boolean;
}

export const defaultAsked: Asked = {
  seed: 1,
  days: 1,
  aggregates: 1,
  hosts: 10,
  vms: 60,
  replicas: 2,
  interval: null,
  trouble: null,
  inventory: 'api',
  numa: 'none',
  beside: null,
  only: null,
  verbose: false,
};
