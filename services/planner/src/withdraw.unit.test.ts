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

function waiting(step: Partial<StepInput>) {
  const log = testLog();
  log.configured();
  const id = log.proposed([{ serverId: 'vm1', from: 'h1', to: 'h2', ...step }]);
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
    const log = testLog();
    log.configured();
    const id = log.proposed([
      { serverId: 'vm2', from: 'h2', to: 'h3', phase: 'evacuate' },
      { serverId: 'vm1', from: 'h1', to: 'h2', phase: 'evacuate', dependsOn: [1] },
    ]);
    const plan = log.state().plans.get(id);
    if (plan === undefined) throw new Error('the plan does not wait');
    expect(goneReason(plan, cloud(true, { vm2: 'h2' }))).toBeNull();
    expect(goneReason(plan, cloud(false, { vm2: 'h2' }))).toMatchObject({ text: 'h1 is enabled again: its VMs stay' });
  });

  it('does nothing: a plan of another phase rests on none of these facts', () => {
    expect(goneReason(waiting({ phase: 'spread', groups: GROUPS }), cloud(false, { vm2: 'h3' }))).toBeNull();
  });
});
