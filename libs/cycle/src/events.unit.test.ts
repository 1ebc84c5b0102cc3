import { decide } from '@kronos/placement';
import { decideInput } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { releaseOf, withoutDetails } from './events.ts';
import { taskRequests } from './requests.ts';

const planned = (windows: string[]) =>
  decide(
    decideInput({
      policies: { cpu: { threshold: 0.2 } },
      hosts: { a: {}, b: {} },
      vms: { v1: { host: 'a', w: { cpu: 0.3 } }, v2: { host: 'a', w: { cpu: 0.3 } } },
      options: { windows },
    }),
  );

describe('how a plan begins', () => {
  const auto = { dryRun: false, approval: 'auto' } as const;
  const NOON = Date.parse('2026-01-01T12:00:00Z');

  it('acts: released or proposed while the window is open', () => {
    expect(releaseOf(planned(['10:00-14:00']), auto, NOON)).toBe('released');
    expect(releaseOf(planned(['10:00-14:00']), { ...auto, approval: 'manual' }, NOON)).toBe('proposed');
  });

  it('refuses: neither while it is closed', () => {
    expect(releaseOf(planned(['22:00-06:00']), auto, NOON)).toBe('none');
    expect(releaseOf(planned(['22:00-06:00']), { ...auto, approval: 'manual' }, NOON)).toBe('none');
    expect(releaseOf(planned(['22:00-06:00']), { ...auto, dryRun: true }, NOON)).toBe('dryRun');
  });

  it('refuses: neither when it closed while the plan was decided', () => {
    const closes = NOON + 2 * 3_600_000;
    expect(releaseOf(planned(['10:00-14:00']), auto, closes - 1)).toBe('released');
    expect(releaseOf(planned(['10:00-14:00']), auto, closes)).toBe('none');
    expect(releaseOf(planned(['10:00-14:00']), { ...auto, approval: 'manual' }, closes)).toBe('none');
    expect(releaseOf(planned(['10:00-14:00']), { ...auto, dryRun: true }, closes)).toBe('dryRun');
  });
});

describe('a decision that is too large for its event', () => {
  it('keeps the loads of the hosts of its steps, and of the highest and lowest of the others', () => {
    const decision = planned([]);
    const [step] = decision.plan?.steps ?? [];
    if (decision.plan === null || step === undefined) throw new Error('there is no plan');
    const others = Array.from({ length: 100 }, (_, h) => ({ host: `h${h}`, values: [h / 1000] }));
    const loads = {
      policies: [{ policy: 'cpu', weight: 1, threshold: 0.2 }],
      hosts: [{ host: step.from, values: [0.05] }, { host: step.to, values: [0.05] }, ...others],
    };
    const { plan } = withoutDetails({ ...decision, plan: { ...decision.plan, loads } });
    const ends = [...others.slice(0, 20), ...others.slice(-20)].map(({ host }) => host);
    expect(plan?.loads?.hosts.map(({ host }) => host)).toEqual([step.from, step.to, ...ends]);
    expect(plan?.steps.every(({ why }) => why === undefined)).toBe(true);
    expect(withoutDetails(decision).plan).not.toHaveProperty('loads');
  });
});

describe('a task', () => {
  it('is not started after the closing of its window, or after plan_ttl, whichever comes first', () => {
    const log = testLog();
    log.configured({ planTtlSeconds: 1000 });
    const move = (serverId: string, seconds: number) => ({
      serverId,
      from: 'h1',
      to: 'h2',
      startBefore: new Date(log.nowMs + seconds * 1000).toISOString(),
    });
    const startMs = log.nowMs;
    const id = log.released([move('vm1', 500), move('vm2', 5000)]);
    const state = log.state();
    const plan = state.plans.get(id);
    if (plan === undefined) throw new Error('there is no plan');
    const by = { service: 'planner', instance: 'p', version: '0' } as const;
    const after = taskRequests(state, plan, by, startMs).map(
      ({ data }) => (Date.parse(data.notAfter) - startMs) / 1000,
    );
    expect(after).toEqual([500, 1000]);
  });
});
