/** The queries of a policy and the readings that answer them: one row for each. */
import type { Policy } from './policy.ts';
import type { Snapshot } from './snapshot.ts';

/** By their names in metrics. Questions, readings, checks, metrics and anonymous recordings are derived from this table. */
export const policyQueries = {
  imbalance: { of: 'host', field: 'imbalanceQuery', readings: 'hostReadings' },
  vm_profile: { of: 'vm', field: 'vmProfileQuery', readings: 'vmReadings' },
  capacity: { of: 'host', field: 'capacityQuery', readings: 'hostReadings' },
  host_size: { of: 'host', field: 'hostSizeQuery', readings: 'hostReadings' },
  trigger: { of: 'host', field: 'triggerQuery', readings: 'hostReadings' },
  move_cost: { of: 'vm', field: 'moveCostQuery', readings: 'moveCostReadings' },
} as const satisfies Record<string, { of: 'host' | 'vm'; field: keyof Policy; readings: keyof Snapshot }>;

type Table = typeof policyQueries;
export type QueryUse = keyof Table;
type UseOf<Subject> = { [Use in QueryUse]: Table[Use]['of'] extends Subject ? Use : never }[QueryUse];
type HostQueryUse = UseOf<'host'>;
export type VmQueryUse = UseOf<'vm'>;

export const queryUses = Object.keys(policyQueries) as QueryUse[];
const isOfHosts = (use: QueryUse): use is HostQueryUse => policyQueries[use].of === 'host';
export const hostQueryUses = queryUses.filter(isOfHosts);
const isOfVms = (use: QueryUse): use is VmQueryUse => policyQueries[use].of === 'vm';
export const vmQueryUses = queryUses.filter(isOfVms);

/** The fields of a policy that hold a query. */
export type QueryField = Table[QueryUse]['field'];
export const queryFields: readonly QueryField[] = queryUses.map((use) => policyQueries[use].field);

/** The lists of a snapshot that hold answers about VMs. */
export type VmReadingList = Table[VmQueryUse]['readings'];
export const vmReadingLists: readonly VmReadingList[] = [
  ...new Set(vmQueryUses.map((use) => policyQueries[use].readings)),
];

/** An answer about hosts: what it is of. */
export type HostQuery = { readonly query: string; readonly label: string };
/** An answer about VMs: what it is of. One query may be matched by several kinds of names. */
export type VmQuery = HostQuery & { readonly labelType: Policy['vmProfileLabelType'] };
export type PolicyQuery =
  | ({ readonly of: 'host'; readonly use: HostQueryUse } & HostQuery)
  | ({ readonly of: 'vm'; readonly use: VmQueryUse } & VmQuery);

/** A query of a policy about hosts; null: the policy has none. */
export function hostQueryOf(policy: Policy, use: 'imbalance'): HostQuery;
export function hostQueryOf(policy: Policy, use: HostQueryUse): HostQuery | null;
export function hostQueryOf(policy: Policy, use: HostQueryUse): HostQuery | null {
  const query = policy[policyQueries[use].field] ?? null;
  return query === null ? null : { query, label: policy.hostLabel };
}

/** A query of a policy about VMs; null: the policy has none. */
export function vmQueryOf(policy: Policy, use: 'vm_profile'): VmQuery;
export function vmQueryOf(policy: Policy, use: VmQueryUse): VmQuery | null;
export function vmQueryOf(policy: Policy, use: VmQueryUse): VmQuery | null {
  const query = policy[policyQueries[use].field];
  return query === undefined ? null : { query, label: policy.vmProfileLabel, labelType: policy.vmProfileLabelType };
}

/** All queries of a policy, in the order of the table. */
export const queriesOf = (policy: Policy): PolicyQuery[] =>
  queryUses.flatMap((use): PolicyQuery[] => {
    if (isOfHosts(use)) {
      const asked = hostQueryOf(policy, use);
      return asked === null ? [] : [{ of: 'host', use, ...asked }];
    }
    const asked = vmQueryOf(policy, use);
    return asked === null ? [] : [{ of: 'vm', use, ...asked }];
  });

/** The reading of a query about hosts, of readings of any form; undefined: there is none. */
export const hostReadingOf = <R extends HostQuery>(readings: readonly R[], asked: HostQuery | null): R | undefined =>
  asked === null ? undefined : readings.find(({ query, label }) => query === asked.query && label === asked.label);

/** The reading of a query about VMs, of readings of any form; undefined: there is none. */
export const vmReadingOf = <R extends VmQuery>(readings: readonly R[], asked: VmQuery | null): R | undefined =>
  asked === null
    ? undefined
    : readings.find(
        ({ query, label, labelType }) =>
          query === asked.query && label === asked.label && labelType === asked.labelType,
      );

/** The reading of a snapshot for a query of one of its policies; undefined: there is none. */
export const readingOf = (snapshot: Pick<Snapshot, 'hostReadings' | VmReadingList>, policy: Policy, use: QueryUse) =>
  isOfHosts(use)
    ? hostReadingOf(snapshot.hostReadings, hostQueryOf(policy, use))
    : vmReadingOf(snapshot[policyQueries[use].readings] ?? [], vmQueryOf(policy, use));
