import { parseMessage } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import { type StepInput, testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { goneReason, withdrawnEvent } from './withdraw.ts';

const cloud = (disabled: boolean, vms: Readonly<Record<string, string>> = {}) =>
  snapshotOf({
    policies: {},
    hosts: { h1: { disabled }, h2: {}, h3: {} },
    vms: Object.fromEntries(Object.entries({ vm1: 'h1', ...vms }).map(([id, host]) => [id, { host }])),
    groups: { g: { policy: 'anti-affinity', members: ['vm1', 'vm2'] } },
  });

function waiting(...steps: Partial<StepInput>[]) {
  const log = testLog();
  log.configured();
  const id = log.proposed(steps.map((step) => ({ serverId: 'vm1', from: 'h1', to: 'h2', ...step })));
  const plan = log.state().plans.get(id);
  if (plan === undefined) throw new Error('the plan does not wait');
  return plan;
}
const GROUPS = [{ id: 'g', policy: 'anti-affinity' as const }];

describe('a plan that waits for approval', () => {
  it('acts: an evacuation of a host that is enabled again is withdrawn', () => {
    const plan = waiting({ phase: 'evacuate' });
    const snapshot = cloud(false);
    const reason = goneReason(plan, snapshot);
    expect(reason).toMatchObject({ code: 'reason-gone', text: 'h1 is enabled again: its VMs stay' });
    if (reason === null) throw new Error('nothing is gone');
    const by = { service: 'planner', instance: 'p1', version: '1' } as const;
    expect(parseMessage(withdrawnEvent(plan, { snapshot, reason, by, nowMs: 0 }))).toMatchObject({ ok: true });
  });

  it('acts: a repair of a group that is whole again is withdrawn', () => {
    expect(goneReason(waiting({ phase: 'affinity', groups: GROUPS }), cloud(false, { vm2: 'h3' }))).toMatchObject({
      code: 'reason-gone',
    });
  });

  it('refuses: while the reason stands, or the snapshot does not show the host or the group', () => {
    expect(goneReason(waiting({ phase: 'evacuate' }), cloud(true))).toBeNull();
    expect(goneReason(waiting({ phase: 'evacuate', from: 'h9' }), cloud(false))).toBeNull();
    expect(goneReason(waiting({ phase: 'affinity', groups: GROUPS }), cloud(false, { vm2: 'h1' }))).toBeNull();
    const unknown = [{ id: 'unknown', policy: 'anti-affinity' as const }];
    expect(goneReason(waiting({ phase: 'affinity', groups: unknown }), cloud(false))).toBeNull();
  });

  it('refuses: while a resident makes room for the evacuation of another host', () => {
    const first = { serverId: 'vm2', from: 'h2', to: 'h3', phase: 'evacuate' } as const;
    const plan = waiting(first, { phase: 'evacuate', dependsOn: [1] });
    expect(goneReason(plan, cloud(true, { vm2: 'h2' }))).toBeNull();
    expect(goneReason(plan, cloud(false, { vm2: 'h2' }))).toMatchObject({ text: 'h1 is enabled again: its VMs stay' });
  });

  describe('of a repair of a host or a zone', () => {
    const at = (used: number | null, pin: string | null = null, host = 'h1') => {
      const snapshot = cloud(false);
      const memory = { capacity: 100, used: used ?? 0, minUnit: null, maxUnit: null, stepSize: null };
      const inventory = used === null ? null : { MEMORY_MB: memory };
      return {
        ...snapshot,
        hosts: snapshot.hosts.map((one) => ({ ...one, availabilityZone: 'z1', inventory })),
        servers: snapshot.servers.map((one) => ({ ...one, host, pinnedAvailabilityZone: pin })),
      };
    };
    const plan = waiting({ phase: 'repair' });

    it('acts: nothing is over its capacity any more, and the server is in its zone', () => {
      expect(goneReason(plan, at(100))).toMatchObject({ code: 'reason-gone' });
      expect(goneReason(plan, at(100, 'z1'))?.text).toContain('h1 has no more claimed than its capacity');
    });

    it('refuses: over its capacity, pinned elsewhere, or not known', () => {
      for (const snapshot of [at(101), at(100, 'z2'), at(null), at(100, null, 'h3')])
        expect(goneReason(plan, snapshot)).toBeNull();
      const known = at(100);
      const servers = known.servers.map(({ pinnedAvailabilityZone: _, ...server }) => server);
      expect(goneReason(plan, { ...known, servers })).toBeNull();
    });

    it('refuses: a step that makes room for another one is judged by that one', () => {
      const second = { serverId: 'vm2', from: 'h3', to: 'h1', phase: 'repair', dependsOn: [1] } as const;
      const both = waiting({ phase: 'repair' }, second);
      expect(goneReason(both, at(100))).toBeNull();
    });
  });

  it('does nothing: a plan of another phase rests on none of these facts', () => {
    expect(goneReason(waiting({ phase: 'spread', groups: GROUPS }), cloud(false, { vm2: 'h3' }))).toBeNull();
  });
});
