import { iso, parseMessage, type Reason, type Snapshot, timeMs, UNASSIGNED } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import { type StepInput, testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { goneReason, lostPlan, withdrawnEvent } from './withdraw.ts';

const cloud = (disabled: boolean, vms: Readonly<Record<string, string>> = {}) =>
  snapshotOf({
    policies: {},
    hosts: { h1: { disabled }, h2: {}, h3: {} },
    vms: Object.fromEntries(Object.entries({ vm1: 'h1', ...vms }).map(([id, host]) => [id, { host }])),
    groups: { g: { policy: 'anti-affinity', members: ['vm1', 'vm2'] } },
  });

/** Of plans from before the snapshot. */
const logOf = () => testLog('gpu', timeMs(cloud(false).observedFrom) - 60_000);

function waiting(...steps: Partial<StepInput>[]) {
  const log = logOf();
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

  it('refuses: while the reason stands, or the snapshot does not show the group', () => {
    expect(goneReason(waiting({ phase: 'evacuate' }), cloud(true))).toBeNull();
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
    const at = (used: number | null, pin: string | null = null) => {
      const snapshot = cloud(false);
      const memory = { capacity: 100, used: used ?? 0, minUnit: null, maxUnit: null, stepSize: null };
      const inventory = used === null ? null : { MEMORY_MB: memory };
      return {
        ...snapshot,
        hosts: snapshot.hosts.map((one) => ({ ...one, availabilityZone: 'z1', inventory })),
        servers: snapshot.servers.map((one) => ({ ...one, pinnedAvailabilityZone: pin })),
      };
    };
    const plan = waiting({ phase: 'repair' });

    it('acts: nothing is over its capacity any more, and the server is in its zone', () => {
      expect(goneReason(plan, at(100))).toMatchObject({ code: 'reason-gone' });
      expect(goneReason(plan, at(100, 'z1'))?.text).toContain('h1 has no more claimed than its capacity');
    });

    it('refuses: over its capacity, pinned elsewhere, or not known', () => {
      for (const snapshot of [at(101), at(100, 'z2'), at(null)]) expect(goneReason(plan, snapshot)).toBeNull();
      const known = at(100);
      const servers = known.servers.map(({ pinnedAvailabilityZone: _, ...server }) => server);
      expect(goneReason(plan, { ...known, servers })).toBeNull();
    });

    it('refuses: a step that makes room for another one is judged by that one', () => {
      const second = { serverId: 'vm2', from: 'h3', to: 'h1', phase: 'repair', dependsOn: [1] } as const;
      const both = waiting({ phase: 'repair' }, second);
      const vm2 = at(100).servers.map((one) => ({ ...one, id: 'vm2', host: 'h3', pinnedAvailabilityZone: 'z2' }));
      expect(goneReason(both, { ...at(100), servers: [...at(100).servers, ...vm2] })).toBeNull();
    });
  });

  describe('whose hosts or VMs are no longer in its aggregate', () => {
    const plan = waiting({ phase: 'spread' }, { serverId: 'vm2', from: 'h1', to: 'h3', phase: 'spread' });
    const whole = cloud(false, { vm2: 'h1' });
    const without = (host: string, more: Partial<Snapshot> = {}): Snapshot => ({
      ...whole,
      hosts: whole.hosts.filter(({ name }) => name !== host),
      ...more,
    });
    const withVm2 = (change: Partial<Snapshot['servers'][number]>): Snapshot => ({
      ...whole,
      servers: whole.servers.map((one) => (one.id === 'vm2' ? { ...one, ...change } : one)),
    });
    const reason = (code: string, detail: NonNullable<Reason['detail']> = {}) => ({ code, text: code, detail });

    it('acts: it is withdrawn, in words that name the host or the VM', () => {
      expect(goneReason(plan, whole)).toBeNull();
      const text = (snapshot: Snapshot) => goneReason(plan, snapshot)?.text;
      expect(text(without('h1'))).toBe('h1 is no longer in agg');
      expect(text(without('h3'))).toBe('h3 is no longer in agg');
      expect(text(withVm2({ host: 'h2' }))).toBe('name-of-vm2 is no longer on h1');
      expect(text({ ...whole, servers: whole.servers.filter(({ id }) => id !== 'vm2') })).toBe(
        'name-of-vm2 is no longer on h1',
      );
      expect(text({ ...whole, hosts: [], problems: [reason('aggregate-not-found')] })).toBe('h1 is no longer in agg');
      expect(text(without('h2', { aggregate: UNASSIGNED }))).toBe('h2 is no longer in the pool of unassigned hosts');
    });

    it('acts: so does a host that is drained, and a request for room', () => {
      const drain = waiting({ phase: 'evacuate', from: 'h2', to: 'h3', serverId: 'vm3' });
      expect(goneReason(drain, without('h2'))).toMatchObject({
        code: 'reason-gone',
        detail: { step: 1, server: 'vm3', host: 'h2' },
      });
      const log = logOf();
      log.configured();
      const id = log.cellsProposed([{ serverId: 'vm1', from: 'h1', to: 'h2' }], { capacity: true });
      expect(lostPlan(log.state(), without('h2'), log.nowMs)?.plan.id).toBe(id);
    });

    it('refuses: the snapshot does not show it', () => {
      const named = { hosts: ['h3', 'h4'] };
      for (const unsure of [
        without('h3', { hosts: [], problems: [reason('aggregates-unknown')] }),
        without('h3', { hosts: [], problems: [reason('hypervisors-unknown')] }),
        without('h3', { problems: [reason('host-with-several-hypervisors', { host: 'h3' })] }),
        without('h3', { notes: [reason('host-without-hypervisor', named)] }),
        without('h3', { notes: [reason('hypervisor-type-ignored', named)] }),
        without('h3', { aggregate: UNASSIGNED, notes: [reason('services-unknown')] }),
        withVm2({ host: 'h2', alsoOn: ['h1'] }),
        { ...whole, servers: [], problems: [reason('servers-unknown')] },
      ])
        expect(goneReason(plan, unsure)).toBeNull();
      expect(
        goneReason(plan, without('h3', { notes: [reason('host-without-hypervisor', { hosts: ['h4'] })] })),
      ).not.toBeNull();
    });

    it('refuses: the snapshot was observed before the plan was made', () => {
      const old = without('h1', { observedFrom: iso(plan.decidedAtMs - 1) });
      expect(goneReason(plan, old)).toBeNull();
      expect(goneReason(plan, { ...old, observedFrom: iso(plan.decidedAtMs) })).not.toBeNull();
    });

    it('refuses: a VM that is parked first is elsewhere when its second step begins', () => {
      const parked = waiting({ to: 'h2' }, { from: 'h2', to: 'h3', dependsOn: [1] });
      expect(goneReason(parked, whole)).toBeNull();
    });

    it('acts, between cells: only once none of its steps can start, wherever its VMs go', () => {
      const log = logOf();
      log.configured();
      const moves = ['vm1', 'vm2'].map((serverId) => ({ serverId, from: 'h1', to: 'n1' }));
      log.cellsProposed(moves);
      const found = (snapshot: Snapshot) => lostPlan(log.state(), snapshot, log.nowMs);
      expect(found(whole)).toBeNull();
      expect(found(withVm2({ host: 'h2' }))).toBeNull();
      expect(found(without('h1'))?.reason.text).toBe('h1 is no longer in agg');
      expect(lostPlan(log.state(), without('h1'), log.nowMs + 7_200_000)).toBeNull();
    });
  });

  it('does nothing: a plan of another phase rests on none of these facts', () => {
    expect(goneReason(waiting({ phase: 'spread', groups: GROUPS }), cloud(false, { vm2: 'h3' }))).toBeNull();
  });
});
