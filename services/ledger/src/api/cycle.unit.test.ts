import { snapshotOf } from '@kronos/placement/testing';
import { expect, it } from 'vitest';
import { pictureAnswer, vmsAnswer } from './cycle.ts';

it('shows the weight of a VM by the kind of names that its policy has in the label', () => {
  const queries = { vmProfileQuery: 'used', vmProfileLabel: 'vm' };
  const snapshot = snapshotOf({
    policies: { byId: queries, byName: { ...queries, vmProfileLabelType: 'nova_display_name' } },
    hosts: { a: {} },
    vms: { v: { host: 'a', w: { byId: 0.25, byName: 0.5 } } },
  });
  const scores = snapshot.policies.map(({ name: policy, threshold, weight }) => ({
    policy,
    threshold,
    weight,
    participates: true,
    reason: null,
    imbalance: 0,
    detected: false,
    hosts: {},
  }));
  const scored = { ...snapshot, scores: { policies: scores, combined: 0 } };
  expect(vmsAnswer(scored, { host: null, id: null, limit: 10, after: null }).vms[0]?.values).toEqual([0.25, 0.5]);
  expect(pictureAnswer(scored).vms?.weights).toEqual([[0.25], [0.5]]);
});

it('a picture of more VMs than can be told apart has their numbers alone', () => {
  const of = (vms: number) =>
    pictureAnswer(
      snapshotOf({
        policies: { cpu: {} },
        hosts: { a: {}, b: {} },
        vms: Object.fromEntries(
          Array.from({ length: vms }, (_, n) => [`vm-${n}`, { host: n === 0 ? 'b' : 'a', w: { cpu: 0.0001 } }]),
        ),
      }),
    );
  expect([of(1500).vms?.ids.length, of(1501).vms]).toEqual([1500, null]);
  expect(of(1501).hosts.map(({ name, vms }) => [name, vms])).toEqual([
    ['a', 1500],
    ['b', 1],
  ]);
});
