import { describe, expect, it } from 'vitest';
import { testLog } from '../testing/index.ts';
import { openCellPlans } from './cells.ts';
import { mayStart, slots } from './slots.ts';
import { MAX_CELL_PLANS } from './state.ts';

const move = (n: number) => ({ serverId: `vm${n}`, from: 'h1', to: 'n1' });
const live = {
  maxConcurrentMigrations: 9,
  maxOutboundPerHost: 9,
  maxInboundPerHost: 9,
  maxConcurrentPerGroup: 9,
};
const caps = { ...live, cells: { ...live, maxConcurrentMigrations: 1 } };

function proposed(moves = [move(1), move(2)]) {
  const log = testLog();
  log.configured();
  return { log, plan: log.cellsProposed(moves) };
}

describe('a plan between cells', () => {
  it('acts: it waits for approval beside the plan of a cycle, and neither supersedes the other', () => {
    const { log, plan } = proposed();
    const cycle = log.proposed([{ serverId: 'vm9', from: 'h1', to: 'h2' }]);
    const state = log.state();
    expect(state.waiting).toBe(cycle);
    expect(state.plans.get(plan)).toMatchObject({ state: 'proposed', cells: { to: 'new' } });
    expect([...state.plans.keys()]).toEqual([plan, cycle]);
    expect(openCellPlans(state, log.nowMs).map((open) => open.plan.id)).toEqual([plan]);
  });

  it('acts: approved, its tasks may start, and no aggregate cooldown begins', () => {
    const { log, plan } = proposed();
    log.approved(plan, [2]);
    const state = log.state();
    expect(openCellPlans(state, log.nowMs)).toEqual([]);
    expect([...state.tasks.keys()]).toEqual([`${plan}-s2`]);
    expect(state.tasks.get(`${plan}-s2`)?.step.cell?.method).toBe('migrate');
    expect(state.lastRelease).toBeNull();
    expect([...state.vmReleases.keys()]).toEqual(['vm2']);
    const attempt = { taskId: `${plan}-s2`, attempt: 1, destination: 'n1' };
    expect(mayStart(state, attempt, log.nowMs, { caps })).toEqual({ verdict: 'start' });
    expect(mayStart(state, attempt, log.nowMs + 7_200_001, { caps })).toMatchObject({ reason: { code: 'expired' } });
  });

  it('acts: the limits of each kind count moves of that kind alone, and one server moves once', () => {
    const { log, plan } = proposed([move(1), move(2)]);
    log.approved(plan);
    const other = log.released([
      { serverId: 'vm9', from: 'h1', to: 'h2' },
      { serverId: 'vm2', from: 'h1', to: 'h2' },
    ]);
    const verdict = (taskId: string, limits = caps) =>
      mayStart(log.state(), { taskId, attempt: 1, destination: 'n1' }, log.nowMs, { caps: limits });
    log.started({ task: `${plan}-s1` });
    expect(verdict(`${plan}-s2`)).toMatchObject({ reason: { code: 'max_concurrent_migrations' } });
    const tight = { ...caps, maxConcurrentMigrations: 1 };
    expect(verdict(`${other}-s1`, tight)).toEqual({ verdict: 'start' });
    log.started({ task: `${other}-s2` });
    const wide = { ...live, cells: live };
    expect(verdict(`${plan}-s2`, wide)).toMatchObject({ reason: { code: 'server-moving' } });
    expect(slots(log.state())).toMatchObject({ total: 2, live: { total: 1 }, cells: { total: 1 } });
  });

  it('refuses to start while no limits are set for moves between cells', () => {
    const { log, plan } = proposed([move(1)]);
    log.approved(plan);
    const attempt = { taskId: `${plan}-s1`, attempt: 1, destination: 'n1' };
    expect(mayStart(log.state(), attempt, log.nowMs, { caps: live })).toMatchObject({ reason: { code: 'cells-off' } });
  });

  it('acts: rejected or expired, it is closed and starts no cooldown', () => {
    const { log, plan } = proposed();
    log.rejected(plan);
    const late = log.cellsProposed([move(3)], { approvalTtlSeconds: 60 });
    log.pass(61).decided();
    const state = log.state();
    expect(state.plans.size).toBe(0);
    expect(state.recentPlans.map(({ id, outcome }) => [id, outcome])).toEqual([
      [plan, 'rejected'],
      [late, 'expired'],
    ]);
    expect(state.lastRefusal).toBeNull();
  });

  it('refuses: approval while dry_run is on', () => {
    const { log, plan } = proposed();
    log.configured({ dryRun: true });
    log.approved(plan);
    expect(log.state().tasks.size).toBe(0);
  });

  it.each([
    ['another plan id', (d: Data) => ({ ...d, planId: 'gpu-7' })],
    ['a step of another phase', (d: Data) => each(d, (s) => ({ ...s, phase: 'spread' as const }))],
    ['a step without a method', (d: Data) => each(d, ({ cell: _, ...s }) => s)],
    ['another target', (d: Data) => ({ ...d, to: 'other' })],
    ['a task id of another plan', (d: Data) => each(d, (s) => ({ ...s, taskId: 'gpu-7-s1' }))],
    ['a dependency', (d: Data) => each(d, (s) => ({ ...s, dependsOn: ['gpu-7-s1'] }))],
    ['a dry run', (d: Data) => ({ ...d, release: 'dryRun' as const })],
    ['one server twice', (d: Data) => each(d, (s) => ({ ...s, serverId: 'vm1' }))],
  ])('refuses: %s', (_, change) => {
    const log = testLog();
    log.configured();
    log.cellsProposed([move(1), move(2)], { change });
    expect(log.state().plans.size).toBe(0);
    expect(log.state().unreadable).toBeNull();
  });

  it('refuses: more open plans than the limit', () => {
    const log = testLog();
    log.configured();
    for (let n = 0; n <= MAX_CELL_PLANS; n++) log.cellsProposed([move(n)]);
    expect(log.state().plans.size).toBe(MAX_CELL_PLANS);
  });

  it('refuses: a planner that releases moves between cells by itself', () => {
    const log = testLog();
    log.configured();
    log.released([{ ...move(1), phase: 'cell' }]);
    expect(log.state().unreadable?.problem).toMatch(/no cycle may plan/);
  });

  it('does nothing: the same command twice', () => {
    const { log, plan } = proposed();
    log.approved(plan);
    for (const { event } of [...log.events]) if (event.type === 'plan.proposed') log.again(event);
    expect(log.state().plans.get(plan)?.state).toBe('released');
  });
});

type Data = Parameters<
  NonNullable<NonNullable<Parameters<ReturnType<typeof testLog>['cellsProposed']>[1]>['change']>
>[0];
const each = (data: Data, change: (step: Data['steps'][number]) => Data['steps'][number]): Data => ({
  ...data,
  steps: data.steps.map(change),
});

describe('a task between cells', () => {
  function started() {
    const { log, plan } = proposed([move(1)]);
    log.approved(plan);
    const task = `${plan}-s1`;
    log.started({ task });
    const slot = () => log.state().tasks.get(task)?.slot?.cell;
    return { log, task, slot };
  }

  it('acts: the slot says how far it is, each fact the first time', () => {
    const { log, task, slot } = started();
    expect(slot()).toMatchObject({ method: 'migrate', before: { vmState: 'active' }, verifying: null, settle: null });
    log.verifying({ task }, 'n2');
    log.verifying({ task }, 'n3');
    log.verified({ task });
    log.settleRequested('revert', { task }, 'verification');
    log.settleRequested('confirm', { task });
    expect(slot()).toMatchObject({ verifying: { host: 'n2' }, settle: { act: 'revert', cause: 'verification' } });
    expect(slot()?.verified).not.toBeNull();
  });

  it('acts: the first of confirm and revert that a person asked for counts', () => {
    const { log, task } = started();
    log.settleAsked('revert', task, 'grace');
    log.settleAsked('confirm', task);
    expect(log.state().tasks.get(task)?.settleAsked).toMatchObject({ act: 'revert', by: 'grace' });
  });

  it('refuses: facts of another attempt, and of a live migration', () => {
    const { log, task, slot } = started();
    log.verifying({ task, attempt: 2 });
    expect(slot()?.verifying).toBeNull();
    const live = `${log.released([{ serverId: 'vm9', from: 'h1', to: 'h2' }])}-s1`;
    log.started({ task: live });
    log.verifying({ task: live });
    log.settleAsked('confirm', live);
    expect(log.state().tasks.get(live)).not.toHaveProperty('settleAsked');
    expect(log.state().tasks.get(live)?.slot).not.toHaveProperty('cell');
  });

  it('does nothing: a person confirms a task that has not started', () => {
    const { log, plan } = proposed([move(1)]);
    log.approved(plan);
    log.settleAsked('confirm', `${plan}-s1`);
    expect(log.state().tasks.get(`${plan}-s1`)).not.toHaveProperty('settleAsked');
  });
});
