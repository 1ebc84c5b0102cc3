import { describe, expect, it } from 'vitest';
import { type Policy, policySchema } from './policy.ts';
import { hostQueryOf, hostReadingOf, policyQueries, queriesOf, readingOf, vmQueryOf, vmReadingOf } from './queries.ts';

const policy: Policy = {
  name: 'cpu',
  mode: 'spread',
  weight: 1,
  imbalanceQuery: 'used',
  hostLabel: 'host',
  vmProfileQuery: 'of_vms',
  vmProfileLabel: 'vm',
  vmProfileLabelType: 'nova_instance_uuid',
  vmProfileFallback: 'skip',
  threshold: 0.1,
  capacityQuery: null,
  capacityThreshold: null,
  hostSizeQuery: null,
  maxMigrationsPerCycle: 1,
  minSustainedCycles: 0,
  enabled: true,
};
const answer = { health: 'HEALTHY', text: '', values: {} } as const;
const snapshot = {
  hostReadings: [{ ...answer, query: 'used', label: 'host', missing: [], unmatchedLabels: [] }],
  vmReadings: [
    {
      ...answer,
      query: 'of_vms',
      label: 'vm',
      labelType: 'nova_instance_uuid' as const,
      unmatchedLabels: 0,
      ambiguousLabels: 0,
    },
  ],
};

describe('the queries of a policy', () => {
  it('are those of the table that the policy has, in its order', () => {
    const queries = Object.values(policyQueries).map(({ field }) => [field, `the ${field}`] as const);
    const packing: Policy = { ...policy, ...Object.fromEntries(queries) };
    expect(queriesOf(policy).map(({ use }) => use)).toEqual(['imbalance', 'vm_profile']);
    expect(queriesOf(packing).map(({ use }) => use)).toEqual(Object.keys(policyQueries));
    expect(queriesOf(packing).map(({ of, label }) => [of, label])).toEqual(
      Object.values(policyQueries).map(({ of }) => [of, of === 'host' ? policy.hostLabel : policy.vmProfileLabel]),
    );
  });

  it('are all the fields of policies that end with Query', () => {
    const fields = Object.keys(policySchema.shape).filter((field) => field.endsWith('Query'));
    expect(fields.toSorted()).toEqual(
      Object.values(policyQueries)
        .map(({ field }) => field)
        .toSorted(),
    );
  });
});

describe('the reading of a query', () => {
  it('is found by the query and its labels', () => {
    expect(readingOf(snapshot, policy, 'imbalance')).toBe(snapshot.hostReadings[0]);
    expect(readingOf(snapshot, policy, 'vm_profile')).toBe(snapshot.vmReadings[0]);
  });

  it('is not that of another label, nor of another kind of names in it', () => {
    const [ofHosts, ofVms] = [hostQueryOf(policy, 'imbalance'), vmQueryOf(policy, 'vm_profile')];
    expect(hostReadingOf(snapshot.hostReadings, { ...ofHosts, label: 'node' })).toBeUndefined();
    expect(vmReadingOf(snapshot.vmReadings, { ...ofVms, label: 'node' })).toBeUndefined();
    expect(vmReadingOf(snapshot.vmReadings, { ...ofVms, labelType: 'nova_display_name' })).toBeUndefined();
  });

  it('is none where the policy has no such query', () => {
    expect(readingOf(snapshot, policy, 'capacity')).toBeUndefined();
    expect(readingOf(snapshot, policy, 'move_cost')).toBeUndefined();
  });
});
