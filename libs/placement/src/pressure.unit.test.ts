import type { Policy } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, type SketchHost } from '../testing/index.ts';
import { decide } from './decide.ts';
import { score } from './snapshot/scoring.ts';

const quiet: Partial<Policy> = { threshold: 0.1, actAbove: 0.1, triggerQuery: 'cpu_pressure' };
const vms = {
  a: { host: 'h1', w: { cpu: 0.3 } },
  b: { host: 'h1', w: { cpu: 0.2 } },
  c: { host: 'h2', w: { cpu: 0.1 } },
};
const inputOf = (set: Partial<Policy>, trigger: number | null, h2: SketchHost = {}) =>
  decideInput({
    policies: { cpu: set },
    hosts: { h1: trigger === null ? {} : { trigger: { cpu: trigger } }, h2 },
    vms,
  });

describe('a policy that is triggered by one measure and weighed by another', () => {
  it('acts once a host is above act_above: the moves are those of the weights', () => {
    const { outcome, plan, before } = decide(inputOf(quiet, 0.11));
    expect(outcome).toBe('planned');
    expect(plan?.steps).toMatchObject([{ serverId: 'b', from: 'h1', to: 'h2' }]);
    expect(before.policies).toMatchObject([{ detected: true, acts: true, sustainedCycles: 1 }]);
  });

  it('asks for nothing while no host is above it, however unlike the hosts are, and says so', () => {
    const input = inputOf(quiet, 0.1);
    const decision = decide(input);
    expect(decision).toMatchObject({ outcome: 'quiet', reason: { code: 'no-contention' }, plan: null });
    expect(decision.before.policies).toMatchObject([
      { imbalance: expect.closeTo(0.4), detected: false, acts: false, sustainedCycles: 0 },
    ]);
    expect(score({ ...input.snapshot, options: input.options }).policies).toMatchObject([
      { detected: false, acts: false },
    ]);
  });

  it('without a trigger_query compares its own values', () => {
    const own = (actAbove: number): string => decide(inputOf({ threshold: 0.1, actAbove }, null)).reason.code;
    expect(own(0.5)).toBe('no-contention');
    expect(own(0.49)).toBe('planned');
  });

  it('is not triggered by a host that can be no destination', () => {
    const input = inputOf(quiet, 0, { disabled: true, trigger: { cpu: 0.9 } });
    expect(decide(input).before.policies).toMatchObject([{ acts: false }]);
  });

  it('takes no part where the trigger is not known: unknown pressure is no calm', () => {
    const input = inputOf(quiet, 0.11);
    const readings = input.snapshot.hostReadings.map((one) =>
      one.query === 'cpu_pressure' ? { ...one, health: 'PARTIAL' as const, text: 'a store is gone' } : one,
    );
    const decision = decide({ ...input, snapshot: { ...input.snapshot, hostReadings: readings } });
    expect(decision.before.policies).toMatchObject([{ participates: false }]);
    expect(decision.reason.code).toBe('nothing-scored');
    const above = input.snapshot.hostReadings.map((one) =>
      one.query === 'cpu_pressure' ? { ...one, values: { h1: 11, h2: 0 } } : one,
    );
    expect(decide({ ...input, snapshot: { ...input.snapshot, hostReadings: above } }).reason.code).toBe(
      'nothing-scored',
    );
  });

  it('beside a policy that acts leaves the moves to that one', () => {
    const input = decideInput({
      policies: { cpu: { ...quiet, weight: 0.1 }, memory: { threshold: 0.1, weight: 0.9 } },
      hosts: { h1: {}, h2: {} },
      vms: { a: { host: 'h1', w: { cpu: 0, memory: 0.3 } }, b: { host: 'h1', w: { cpu: 0.3, memory: 0.3 } } },
    });
    const { reason, plan } = decide(input);
    expect(reason.code).toBe('planned');
    expect(plan?.after.policies.find(({ policy }) => policy === 'memory')?.imbalance).toBeCloseTo(0);
  });

  it('does nothing to policies without act_above', () => {
    const decision = decide(inputOf({ threshold: 0.1 }, 0));
    expect(decision.reason.code).toBe('planned');
    expect(decision.before.policies[0]).not.toHaveProperty('acts');
  });
});
