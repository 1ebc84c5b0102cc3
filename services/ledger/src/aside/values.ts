import type { Snapshot } from '@kronos/contracts';

/** Values of hosts in a snapshot, by policy. Pure. */
export type SnapshotValues = {
  readonly policies: readonly string[];
  /** By host, in the order of the policies; null: no value. */
  readonly hosts: ReadonlyMap<string, readonly (number | null)[]>;
};

export function valuesIn({ scores, hosts }: Pick<Snapshot, 'scores' | 'hosts'>): SnapshotValues {
  return {
    policies: scores.policies.map(({ policy }) => policy),
    hosts: new Map(hosts.map(({ name }) => [name, scores.policies.map((policy) => policy.hosts[name]?.raw ?? null)])),
  };
}

/** The values of one host, by policy; null: the snapshot has no such host. */
export function valuesOf({ policies, hosts }: SnapshotValues, host: string): Record<string, number | null> | null {
  const values = hosts.get(host);
  return values === undefined ? null : Object.fromEntries(policies.map((policy, i) => [policy, values[i] ?? null]));
}
