import {
  type CompleteEngineOptions,
  defaultEngineOptions,
  proposalDecisionSchema,
  type Snapshot,
} from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { type Sketch, snapshotOf } from '../../testing/index.ts';
import { emptyMemory, type Memory } from '../snapshot/memory.ts';
import { decideCapacity } from './decideCapacity.ts';

type World = Partial<Omit<Sketch, 'memory' | 'options'>> & {
  readonly options?: Partial<CompleteEngineOptions>;
  readonly memory?: Partial<Memory>;
};

const GIB = 1024;
/** Three hosts with 64 GiB: 20, 20 and 8 GiB are free, and a VM of 12 GiB can go from a or b to c or to each other. */
const HOSTS = {
  a: { free: { MEMORY_MB: 20 * GIB } },
  b: { free: { MEMORY_MB: 20 * GIB } },
  c: { free: { MEMORY_MB: 12 * GIB } },
};
const VMS: Sketch['vms'] = {
  a1: { host: 'a', ramMb: 12 * GIB, w: { cpu: 0.1 } },
  b1: { host: 'b', ramMb: 32 * GIB, w: { cpu: 0.1 } },
  c1: { host: 'c', ramMb: 40 * GIB, w: { cpu: 0.1 } },
};

/** A request for VMs of 32 GiB. */
function decide(count = 1, { options, memory, ...world }: World = {}) {
  const snapshot: Snapshot = snapshotOf({ policies: {}, hosts: HOSTS, vms: VMS, ...world });
  const shape = { name: 'big', resources: { MEMORY_MB: 32 * GIB }, requiredTraits: [], forbiddenTraits: [] };
  const decision = decideCapacity({
    planId: 'p',
    snapshot: { ...snapshot, purpose: 'capacity', capacity: { commandId: 'c1', asked: { shape, count } } },
    memory: { ...emptyMemory, ...memory },
    options: { ...defaultEngineOptions, ...options },
  });
  return proposalDecisionSchema.parse(decision);
}

describe('the decision about a request for room', () => {
  it('acts: proposes the fewest moves, as live migrations without alternates', () => {
    const decision = decide();
    expect(decision).toMatchObject({
      outcome: 'planned',
      reason: { code: 'planned', text: '1 moves make room for 1 new VMs' },
      capacity: { wanted: 1, now: 0, after: 1, proven: true },
      warnings: [],
    });
    expect(decision.steps).toMatchObject([
      {
        step: 1,
        taskId: 'p-s1',
        phase: 'capacity',
        serverId: 'a1',
        from: 'a',
        alternates: [],
        dependsOn: [],
        why: { code: 'makes-capacity' },
      },
    ]);
  });

  it('acts within the aggregate cooldown and beyond the budget of a cycle: a person asked, and approves', () => {
    const lastRelease = { planId: 'p0', atMs: Date.parse('2026-01-01T11:59:00.000Z') };
    expect(decide(1, { memory: { lastRelease } }).outcome).toBe('planned');
  });

  it('acts: names policies that the moves would bring above their thresholds', () => {
    const decision = decide(1, {
      policies: { cpu: { threshold: 0.05 } },
      hosts: {
        a: { ...HOSTS.a, score: { cpu: 0.3 } },
        b: { ...HOSTS.b, score: { cpu: 0.3 } },
        c: { ...HOSTS.c, score: { cpu: 0.3 } },
      },
    });
    expect(decision.outcome).toBe('planned');
    expect(decision.warnings).toMatchObject([{ code: 'past-threshold', detail: { policy: 'cpu', threshold: 0.05 } }]);
    expect(decision.warnings[0]?.text).toContain('above its threshold of 0.05');
  });

  it('acts: the end of a window is the last start of each step; outside, the reason names the next opening', () => {
    const [step] = decide(1, { options: { windows: ['11:00-14:00'] } }).steps;
    expect(step?.startBefore).toBe('2026-01-01T14:00:00.000Z');
    const closed = decide(1, { options: { windows: ['20:00-22:00'] } });
    expect(closed).toMatchObject({ outcome: 'planned', reason: { code: 'outside-window' } });
  });

  it('refuses: no moves make room for all, with figures and with the VMs that may not move', () => {
    const vms = { ...VMS, a1: { host: 'a', ramMb: 12 * GIB, w: { cpu: 0.1 }, set: { locked: true } } };
    expect(decide(1, { vms })).toMatchObject({
      outcome: 'quiet',
      reason: { code: 'no-room', detail: { wanted: 1, now: 0, after: 0 } },
      steps: [],
      refusals: { 'vm-locked': 1 },
    });
    expect(decide(5)).toMatchObject({ outcome: 'quiet', reason: { code: 'no-room' }, steps: [] });
  });

  it('refuses while the aggregate is paused, has a plan that waits, or settles after a move', () => {
    const cases: [Partial<Memory>, string][] = [
      [{ paused: { atMs: Date.parse('2026-01-01T11:00:00.000Z'), by: 'ada' } }, 'paused'],
      [
        {
          waitingPlan: { planId: 'p0', proposedAtMs: Date.parse('2026-01-01T11:59:00.000Z'), approvalTtlSeconds: 900 },
        },
        'awaiting-approval',
      ],
      [{ lastMoveEndMs: Date.parse('2026-01-01T11:59:59.000Z') }, 'settling'],
    ];
    for (const [memory, code] of cases)
      expect(decide(1, { memory, options: { settleSeconds: 60 } })).toMatchObject({
        outcome: 'gated',
        reason: { code },
        steps: [],
      });
  });

  it('does nothing where the VMs fit already', () => {
    const hosts = { ...HOSTS, a: { free: { MEMORY_MB: 40 * GIB } } };
    expect(decide(1, { hosts })).toMatchObject({
      outcome: 'quiet',
      reason: { code: 'fits-already' },
      capacity: { now: 1, after: 1 },
      steps: [],
    });
  });

  it('says the same to the byte about the same request', () => {
    expect(JSON.stringify(decide())).toBe(JSON.stringify(decide()));
  });
});
