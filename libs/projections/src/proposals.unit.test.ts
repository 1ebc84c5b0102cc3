import { describe, expect, it } from 'vitest';
import { testLog } from '../testing/index.ts';
import { causeOf } from './approvals.ts';

const moves = [
  { serverId: 'vm1', from: 'h1', to: 'h2' },
  { serverId: 'vm2', from: 'h1', to: 'h3', dependsOn: [1] },
];
type Change = NonNullable<NonNullable<Parameters<ReturnType<typeof testLog>['cellsProposed']>[1]>['change']>;
type Data = Parameters<Change>[0];

function proposed(change: Change = (data) => data) {
  const log = testLog();
  log.configured();
  return { log, plan: log.cellsProposed(moves, { capacity: true, change }) };
}

describe('a plan that makes room', () => {
  it('acts: it waits as the plan of the aggregate, and its event is named as its cause', () => {
    const { log, plan } = proposed();
    const state = log.state();
    expect(state.waiting).toBe(plan);
    const facts = state.plans.get(plan) ?? expect.fail('no plan');
    expect(facts).toMatchObject({ state: 'proposed', capacity: { commandId: expect.any(String) } });
    expect(causeOf(facts)).toBe(`plan.proposed:${plan}`);
  });

  it('acts: approved, its tasks are released with what they depend on, and the cooldowns begin', () => {
    const { log, plan } = proposed();
    log.approved(plan, [2]);
    const state = log.state();
    expect([...state.tasks.keys()]).toEqual([`${plan}-s1`, `${plan}-s2`]);
    expect(state.lastRelease?.planId).toBe(plan);
    expect(state.waiting).toBeNull();
  });

  it('acts: rejected or expired, it is closed, and the aggregate cooldown begins', () => {
    const { log, plan } = proposed();
    log.rejected(plan);
    expect(log.state()).toMatchObject({ waiting: null, lastRefusal: { planId: plan, how: 'rejected' } });
    const late = log.cellsProposed(moves, { capacity: true, approvalTtlSeconds: 60 });
    log.pass(61);
    const next = log.cellsProposed(moves, { capacity: true });
    expect(log.state()).toMatchObject({ waiting: next, lastRefusal: { planId: late, how: 'expired' } });
  });

  it('refuses a second plan while one waits', () => {
    const { log, plan } = proposed();
    const second = log.cellsProposed(moves, { capacity: true });
    expect([...log.state().plans.keys()]).toEqual([plan]);
    log.approved(second);
    expect(log.state().tasks.size).toBe(0);
  });

  it.each([
    ['another plan id', (d: Data) => ({ ...d, planId: 'gpu-7' })],
    [
      'a step of another phase',
      (d: Data) => ({ ...d, steps: d.steps.map((s) => ({ ...s, phase: 'spread' as const })) }),
    ],
    ['another aggregate as the target', (d: Data) => ({ ...d, to: 'other' })],
    [
      'a dependency on another plan',
      (d: Data) => ({ ...d, steps: d.steps.map((s) => ({ ...s, dependsOn: ['x-s1'] })) }),
    ],
    ['one server twice', (d: Data) => ({ ...d, steps: d.steps.map((s) => ({ ...s, serverId: 'vm1' })) })],
    ['a dry run', (d: Data) => ({ ...d, release: 'dryRun' as const })],
  ])('does nothing with %s', (_, change) => {
    const { log } = proposed(change);
    expect(log.state()).toMatchObject({ waiting: null });
    expect(log.state().plans.size).toBe(0);
  });

  it('is refused in the decision of a cycle', () => {
    const log = testLog();
    log.configured();
    log.released([{ serverId: 'vm1', from: 'h1', to: 'h2', phase: 'capacity' }]);
    expect(log.state().unreadable?.problem).toMatch(/moves that make room, which no cycle may plan/);
  });
});
