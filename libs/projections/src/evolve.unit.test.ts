import { ALL } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { TEST_START_MS, testLog } from '../testing/index.ts';
import { createFolder, evolve, fold } from './evolve.ts';
import { mayStart } from './slots.ts';
import { initialLogState, RECENT_COMMANDS, RECENT_DAMAGED, RECENT_PLANS } from './state.ts';

const move = (n: number, more: object = {}) => ({ serverId: `vm${n}`, from: 'h1', to: 'h2', ...more });
const START = TEST_START_MS;

describe('a decision', () => {
  it('that releases a plan makes a task of every step and begins the cooldowns', () => {
    const log = testLog();
    log.configured();
    const plan = log.at(60).released([move(1), move(2, { delaySeconds: 30 })]);
    const state = log.state();
    expect([...state.tasks.values()].map((t) => [t.id, t.status, t.notBeforeMs - START])).toEqual([
      [`${plan}-s1`, 'waiting', 60_000],
      [`${plan}-s2`, 'waiting', 90_000],
    ]);
    expect(state.lastRelease).toEqual({ planId: plan, atMs: START + 60_000 });
    expect(state.vmReleases.get('vm1')).toEqual([START + 60_000]);
    expect(state.plans.get(plan)).toMatchObject({ state: 'released', planTtlSeconds: 3600, dispatched: null });
  });

  it('keeps the explanation out of the state', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    expect(log.state().tasks.get(`${plan}-s1`)?.step).not.toHaveProperty('why');
  });

  it.each([
    '2026-02-28T23:59:59.999Z',
    '2024-02-29T00:00:00.001Z',
    '1999-12-31T12:34:56Z',
    '2026-01-05T00:00:00.123456Z',
  ])('at %s is taken to be at that time', (time) => {
    const log = testLog();
    log.decided();
    const [stored] = log.events;
    if (stored?.event.type !== 'cycle.decided') throw new Error('no decision');
    stored.event.data.snapshotTime = time;
    const storedAt = Date.parse(time) + 1000;
    expect(fold([{ ...stored, storedAt }]).aggregates.get('gpu')?.decided?.snapshotMs).toBe(Date.parse(time));
  });

  it('of a dry run begins nothing', () => {
    const log = testLog();
    log.decided('dryRun', [move(1)]);
    const state = log.state();
    expect(state.decided).toMatchObject({ outcome: 'planned', release: 'dryRun' });
    expect([state.plans.size, state.tasks.size, state.vmReleases.size, state.lastRelease]).toEqual([0, 0, 0, null]);
  });

  it('that proposes a plan waits: no task, no cooldown', () => {
    const log = testLog();
    log.configured({ approvalTtlSeconds: 300 });
    const plan = log.proposed([move(1)]);
    const state = log.state();
    expect(state.waiting).toBe(plan);
    expect(state.plans.get(plan)).toMatchObject({ state: 'proposed', approvalTtlSeconds: 300, release: null });
    expect([state.tasks.size, state.lastRelease]).toEqual([0, null]);
  });

  it('remembers how long each policy has been detected', () => {
    const log = testLog();
    const policy = { imbalance: 0.4, threshold: 0.2, participates: true, detected: true };
    log.decided('none', [], {
      policies: [
        { ...policy, policy: 'cpu', sustainedCycles: 3 },
        { ...policy, policy: 'memory', detected: false, sustainedCycles: 0 },
      ],
    });
    expect(log.state().sustained).toEqual({ cpu: 3 });
  });

  it('learns noise from cycles without a gate: after moves, rates follow slowly', () => {
    const log = testLog();
    const cpu = (imbalance: number) => ({
      policies: [{ policy: 'cpu', imbalance, threshold: 0.2, participates: true, detected: true, sustainedCycles: 1 }],
    });
    log.decided('released', [move(1)], cpu(0.3));
    log.at(60).decided('none', [], { ...cpu(0.5), outcome: 'gated' });
    expect(log.state().surprises).toEqual({ expected: { cpu: 0.3 }, known: {} });
    log.at(120).decided('none', [], cpu(0.31));
    expect(log.state().surprises).toEqual({ expected: { cpu: 0.31 }, known: { cpu: [0.01] } });
  });

  it('on a snapshot that is not later than the last decided one is ignored', () => {
    const log = testLog();
    log.at(60).decided('none');
    const before = log.state();
    log.at(61).decided('released', [move(1)], { snapshotMs: START + 60_000 });
    log.at(62).decided('released', [move(1)], { snapshotMs: START });
    expect(log.state()).toEqual(before);
  });

  it('on a snapshot that was decided and was taken again later is ignored', () => {
    const log = testLog();
    const snapshotId = log.at(60).decided('none');
    log.at(61).decided('none', [], { snapshotId: 'gpu-by-command' });
    const before = log.state();
    log.at(120).decided('released', [move(1)], { snapshotId });
    log.at(120).decided('released', [move(1)], { snapshotId: 'gpu-by-command' });
    expect(log.state()).toEqual(before);
    log.at(180).decided('none');
    expect(log.state().decided).toMatchObject({
      recent: [snapshotId, 'gpu-by-command', log.state().decided?.snapshotId],
    });
  });

  it('carries the planner version and the options in force', () => {
    const log = testLog();
    log.configured({ cooldownSeconds: 5 }, '1.2.0');
    log.configured({ cooldownSeconds: 7 }, '1.3.0');
    expect(log.state().configured).toMatchObject({ plannerVersion: '1.3.0', options: { cooldownSeconds: 7 } });
  });
});

describe('an attempt', () => {
  const released = (moves = [move(1)]) => {
    const log = testLog();
    log.configured();
    const plan = log.released(moves);
    return { log, plan, task: `${plan}-s1` };
  };

  it('holds a slot from its start to its result', () => {
    const { log, task } = released();
    log.at(10).started({ task, destination: 'h7' });
    expect(log.state().tasks.get(task)).toMatchObject({
      status: 'started',
      destination: 'h7',
      slot: { from: 'h1', destination: 'h7', attempt: 1, startedAtMs: START + 10_000, executor: 'executor-1' },
    });
    log.at(40).completed({ task, destination: 'h7' });
    expect(log.state().tasks.get(task)).toMatchObject({ status: 'completed', slot: null, end: { host: 'h7' } });
    expect(log.state().lastMoveEnd).toEqual({ taskId: task, atMs: START + 40_000 });
  });

  it('keeps the first names that Nova gave it', () => {
    const { log, task } = released();
    log.started({ task });
    log.observed({ task, migrationId: null, requestId: 'req-a' });
    log.observed({ task, migrationId: 17, requestId: 'req-b' });
    expect(log.state().tasks.get(task)?.slot).toMatchObject({ migrationId: 17, requestId: 'req-a' });
  });

  it('that fails with a retry to come frees its slot and says where and when the next one goes', () => {
    const { log, task } = released();
    log.started({ task });
    log.at(20).failed({ task, retry: { destination: 'h3', notBeforeSeconds: 15 }, hostAtFault: 'h2' });
    const state = log.state();
    expect(state.tasks.get(task)).toMatchObject({
      status: 'retryPending',
      attempt: 2,
      destination: 'h3',
      slot: null,
      notBeforeMs: START + 35_000,
      lastFailure: { attempt: 1, errorType: 'MigrationFailed', final: false },
    });
    expect(state.vmFailures.size).toBe(0);
    expect(state.hostFailures.get('h2')).toEqual([START + 20_000]);
  });

  it.each(['PreFlightError', 'MigrationFailed', 'MigrationTimeout', 'SolarFlare'])(
    'that ends with %s quarantines its VM',
    (errorType) => {
      const { log, task } = released();
      log.started({ task });
      log.at(5).failed({ task, errorType });
      expect(log.state().vmFailures.get('vm1')).toMatchObject({ errorType, atMs: START + 5000, taskId: task });
    },
  );

  it.each(['NovaClientError', 'Cancelled', 'DeadLetter'])(
    'that ends with %s does not quarantine its VM',
    (errorType) => {
      const { log, task } = released();
      log.started({ task });
      log.failed({ task, errorType });
      expect(log.state().tasks.get(task)?.status).toBe('failed');
      expect(log.state().vmFailures.size).toBe(0);
    },
  );

  it('that is skipped changes neither quarantine nor move end', () => {
    const { log, task } = released();
    log.skipped({ task });
    const state = log.state();
    expect(state.tasks.get(task)?.status).toBe('skipped');
    expect([state.vmFailures.size, state.lastMoveEnd]).toEqual([0, null]);
  });

  it('that never started ends no move', () => {
    const { log, task } = released();
    log.failed({ task, errorType: 'PreFlightError', started: false });
    expect(log.state().lastMoveEnd).toBeNull();
  });

  it('cannot start or end twice', () => {
    const { log, task } = released([move(1), move(2)]);
    const started = log.at(1).started({ task });
    log.at(2).started({ task }, 'executor-2');
    expect(log.state().tasks.get(task)?.slot).toMatchObject({ executor: 'executor-1', startedAtMs: START + 1000 });
    log.at(3).failed({ task });
    const after = log.state();
    log.at(9).completed({ task });
    log.at(9).failed({ task, errorType: 'MigrationTimeout' });
    log.again(started);
    expect(log.state()).toEqual(after);
  });

  it('that is over is not reopened by its own late result', () => {
    const { log, task } = released([move(1), move(2)]);
    log.started({ task });
    log.failed({ task, retry: { destination: 'h3' } });
    log.started({ task, attempt: 2, destination: 'h3' });
    const before = log.state();
    log.completed({ task, attempt: 1 });
    log.observed({ task, attempt: 1, migrationId: 99 });
    expect(log.state()).toEqual(before);
  });

  it('of a task that was never released means nothing', () => {
    const { log } = released();
    const before = log.state();
    log.started({ task: 'gpu-1-s1' });
    log.completed({ task: 'gpu-1-s1' });
    log.failed({ task: 'gpu-1-s1' });
    expect(log.state()).toEqual(before);
  });
});

describe('a released plan', () => {
  it('leaves the state when every task is over and its dispatch is on the log', () => {
    const log = testLog();
    const plan = log.released([move(1), move(2)]);
    for (const n of [1, 2]) {
      log.started({ task: `${plan}-s${n}` });
      log.completed({ task: `${plan}-s${n}` });
    }
    expect(log.state().plans.has(plan)).toBe(true);
    log.at(70).dispatched(plan, 2);
    const state = log.state();
    expect([state.plans.size, state.tasks.size]).toEqual([0, 0]);
    expect(state.recentPlans).toMatchObject([{ id: plan, outcome: 'done', tasks: 2, completed: 2 }]);
  });

  it('stays while a task of it is open', () => {
    const log = testLog();
    const plan = log.released([move(1), move(2)]);
    log.dispatched(plan, 2);
    log.completed({ task: `${plan}-s1` });
    expect(log.state().tasks.size).toBe(2);
  });

  it('is dispatched once', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    log.at(1).dispatched(plan);
    log.at(2).dispatched(plan);
    expect(log.state().plans.get(plan)?.dispatched?.atMs).toBe(START + 1000);
  });

  it('is remembered for people among the last ones only', () => {
    const log = testLog();
    for (let i = 1; i <= RECENT_PLANS + 3; i++) {
      const plan = log.at(i * 60).released([move(i)]);
      log.dispatched(plan);
      log.completed({ task: `${plan}-s1` });
    }
    expect(log.state().recentPlans).toHaveLength(RECENT_PLANS);
    expect(log.state().recentPlans.at(-1)?.endedAtMs).toBe(START + (RECENT_PLANS + 3) * 60_000);
  });
});

describe('a plan that waits for approval', () => {
  const proposed = (ttl = 300) => {
    const log = testLog();
    log.configured({ approvalTtlSeconds: ttl, approval: 'manual' });
    const plan = log.proposed([move(1), move(2, { dependsOn: [1] }), move(3)]);
    return { log, plan };
  };
  const tasksOf = (log: ReturnType<typeof testLog>) => [...log.state().tasks.values()].map((t) => t.step.step);

  it('is released by its approval, from then on', () => {
    const { log, plan } = proposed();
    log.at(100).approved(plan);
    const state = log.state();
    expect(tasksOf(log)).toEqual([1, 2, 3]);
    expect(state.lastRelease?.atMs).toBe(START + 100_000);
    expect(state.waiting).toBeNull();
    expect(state.plans.get(plan)?.release).toMatchObject({ atMs: START + 100_000, approval: { by: 'ada' } });
  });

  it('is released in part together with what that part depends on', () => {
    const { log, plan } = proposed();
    log.approved(plan, [2]);
    expect(tasksOf(log)).toEqual([1, 2]);
    expect(log.state().vmReleases.has('vm3')).toBe(false);
  });

  it('loses with a rejected step those that depend on it, and waits on', () => {
    const { log, plan } = proposed();
    log.rejected(plan, [1]);
    const state = log.state();
    expect(state.waiting).toBe(plan);
    expect(state.plans.get(plan)).toMatchObject({ rejected: [1, 2], state: 'proposed' });
    expect(state.lastRefusal).toBeNull();
    log.approved(plan);
    expect(tasksOf(log)).toEqual([3]);
  });

  it('does not come back with an approval of a rejected step', () => {
    const { log, plan } = proposed();
    log.rejected(plan, [1]);
    const before = log.state();
    log.approved(plan, [1, 2]);
    expect(log.state()).toEqual(before);
  });

  it('is refused by its rejection, which begins the aggregate cooldown and no other', () => {
    const { log, plan } = proposed();
    log.at(50).rejected(plan);
    const state = log.state();
    expect([state.plans.size, state.waiting, state.vmReleases.size, state.lastRelease]).toEqual([0, null, 0, null]);
    expect(state.lastRefusal).toEqual({ planId: plan, atMs: START + 50_000, how: 'rejected' });
  });

  it('is refused when its steps are rejected one after the other', () => {
    const { log, plan } = proposed();
    log.rejected(plan, [1]);
    log.at(9).rejected(plan, [3]);
    expect(log.state().lastRefusal).toMatchObject({ how: 'rejected', atMs: START + 9000 });
  });

  it('takes the first answer only', () => {
    const approved = proposed();
    approved.log.approved(approved.plan, [3]);
    const released = approved.log.state();
    approved.log.rejected(approved.plan);
    approved.log.approved(approved.plan);
    expect(approved.log.state()).toEqual(released);

    const rejected = proposed();
    rejected.log.rejected(rejected.plan);
    const refused = rejected.log.state();
    rejected.log.approved(rejected.plan);
    expect(rejected.log.state()).toEqual(refused);
  });

  it('cannot be answered after approval_ttl as it was in force when it was decided', () => {
    const { log, plan } = proposed(300);
    log.configured({ approvalTtlSeconds: 9000 });
    const before = log.state();
    log.at(301).approved(plan);
    log.at(301).rejected(plan);
    expect(log.state()).toEqual(before);
  });

  it('can be answered up to approval_ttl whatever came into force since', () => {
    const { log, plan } = proposed(300);
    log.configured({ approvalTtlSeconds: 1 });
    log.at(300).approved(plan);
    expect(log.state().tasks.size).toBe(3);
  });

  it('has expired once a later snapshot is decided, whatever time an answer after it shows', () => {
    const { log, plan } = proposed(300);
    log.at(360).decided('none', [], { outcome: 'gated' });
    expect(log.state().lastRefusal).toEqual({ planId: plan, atMs: START + 300_000, how: 'expired' });
    log.at(200).approved(plan);
    expect(log.state().tasks.size).toBe(0);
  });

  it('stays while decisions go by before its end', () => {
    const { log, plan } = proposed(300);
    log.at(240).decided('none', [], { outcome: 'gated' });
    expect(log.state().waiting).toBe(plan);
  });

  it('ends when its reason is gone, without a cooldown, and nothing of it can be approved', () => {
    const { log, plan } = proposed(300);
    log.at(60).withdrawn(plan);
    log.at(61).approved(plan);
    const state = log.state();
    expect(state).toMatchObject({ waiting: null, lastRefusal: null, lastRelease: null });
    expect(state.recentPlans).toMatchObject([{ id: plan, outcome: 'withdrawn' }]);
    expect([...state.tasks]).toEqual([]);
  });

  it('is not withdrawn once it is released', () => {
    const { log, plan } = proposed(300);
    log.at(60).approved(plan);
    log.at(61).withdrawn(plan);
    expect(log.state().plans.get(plan)).toMatchObject({ state: 'released' });
  });

  it('gives way to a later plan', () => {
    const { log, plan } = proposed(300);
    const next = log.at(120).proposed([move(9)]);
    const state = log.state();
    expect([...state.plans.keys()]).toEqual([next]);
    expect(state.recentPlans).toMatchObject([{ id: plan, outcome: 'superseded' }]);
  });

  it('cannot be approved when the log names no options', () => {
    const log = testLog();
    const plan = log.proposed([move(1)]);
    log.approved(plan);
    expect(log.state().tasks.size).toBe(0);
  });

  it('can be approved by a command to all aggregates', () => {
    const { log, plan } = proposed();
    log.about(ALL).approved(plan);
    expect(tasksOf(log)).toEqual([1, 2, 3]);
  });
});

describe('a command', () => {
  it('pauses and resumes one aggregate', () => {
    const log = testLog();
    log.decided();
    log.at(3).paused('grace');
    expect(log.state().paused.here).toMatchObject({ by: 'grace', atMs: START + 3000 });
    log.resumed();
    expect(log.state().paused).toEqual({ here: null, everywhere: null });
  });

  it('pauses all, also those that come later, until all are resumed', () => {
    const log = testLog();
    log.about(ALL).paused();
    log.about('gpu').resumed();
    expect(log.state('gpu').paused.everywhere).not.toBeNull();
    expect(log.state('never seen').paused.everywhere).not.toBeNull();
    log.about(ALL).resumed();
    expect(log.state('gpu').paused.everywhere).toBeNull();
  });

  it('to resume all leaves the pause of one', () => {
    const log = testLog();
    log.paused();
    log.about(ALL).resumed();
    expect(log.state().paused.here).not.toBeNull();
  });

  it('counts once, however late it comes again', () => {
    const log = testLog();
    const pause = log.paused();
    log.resumed();
    log.again(pause);
    expect(log.state().paused.here).toBeNull();
  });

  it('is remembered by its id as long as it is among the latest', () => {
    const log = testLog();
    for (let i = 0; i < RECENT_COMMANDS + 5; i++) log.quarantined(`vm${i}`);
    expect(log.fold().aggregates.get('gpu')?.seen.size).toBe(RECENT_COMMANDS);
  });

  it('sets and releases a quarantine', () => {
    const log = testLog();
    log.at(4).quarantined('vm1', 600, 'grace');
    expect(log.state().operatorQuarantines.get('vm1')).toMatchObject({ seconds: 600, by: 'grace', atMs: START + 4000 });
    log.unquarantined('vm1');
    expect(log.state().operatorQuarantines.size).toBe(0);
  });

  it('to release a VM lifts every quarantine of it, wherever it was set', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    log.failed({ task: `${plan}-s1` });
    log.quarantined('vm1');
    log.about(ALL).quarantined('vm1');
    expect(log.state().operatorQuarantines.has('vm1')).toBe(true);
    log.about('gpu').unquarantined('vm1');
    const state = log.state();
    expect([state.vmFailures.size, state.operatorQuarantines.size]).toEqual([0, 0]);
    expect(log.state('other').operatorQuarantines.size).toBe(0);
  });

  it('to release a VM everywhere lifts what one aggregate has', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    log.failed({ task: `${plan}-s1` });
    log.about(ALL).unquarantined('vm1');
    expect(log.state().vmFailures.size).toBe(0);
  });

  it('asks once for the cancellation and once for the abortion of a task', () => {
    const log = testLog();
    const task = `${log.released([move(1)])}-s1`;
    log.at(1).cancelled(task, 'ada');
    log.at(2).cancelled(task, 'grace');
    log.at(3).aborted(task, 'grace');
    expect(log.state().tasks.get(task)).toMatchObject({
      cancelAsked: { by: 'ada', atMs: START + 1000 },
      abortAsked: { by: 'grace', atMs: START + 3000 },
    });
  });

  it('asks once to close a task, which ends it before its start and leaves a started one to its holder', () => {
    const log = testLog();
    const plan = log.released([move(1), move(2)]);
    log.started({ task: `${plan}-s1` });
    log.at(1).closed(`${plan}-s1`, 'ada');
    log.at(2).closed(`${plan}-s1`, 'grace');
    log.closed(`${plan}-s2`);
    const state = log.state();
    expect(state.tasks.get(`${plan}-s1`)).toMatchObject({
      status: 'started',
      end: null,
      closeAsked: { by: 'ada', atMs: START + 1000 },
    });
    log.at(3).closed(`${plan}-s1`, 'grace', { force: true });
    log.at(4).closed(`${plan}-s1`, 'linus', { force: true });
    log.at(5).closed(`${plan}-s1`, 'linus');
    expect(log.state().tasks.get(`${plan}-s1`)?.closeAsked).toMatchObject({
      by: 'grace',
      atMs: START + 3000,
      force: true,
    });
    const caps = {
      maxConcurrentMigrations: 9,
      maxOutboundPerHost: 9,
      maxInboundPerHost: 9,
      maxConcurrentPerGroup: 9,
    };
    const attempt = { taskId: `${plan}-s2`, attempt: 1, destination: 'h2' };
    expect(mayStart(state, attempt, START, { caps })).toMatchObject({ verdict: 'end', reason: { code: 'cancelled' } });
  });

  it('about a task that is over or unknown means nothing', () => {
    const log = testLog();
    const task = `${log.released([move(1), move(2)])}-s1`;
    log.completed({ task });
    const before = log.state();
    log.cancelled(task);
    log.aborted('gpu-0-s9');
    log.closed(task);
    expect(log.state()).toEqual(before);
  });
});

describe('a move that is no plain success', () => {
  const inError = { code: 'server-in-error', text: 'the server is in ERROR' };
  const late = { code: 'no-migration-seen', text: 'no migration was seen' };

  it('keeps its warnings, and is counted as warned', () => {
    const log = testLog();
    const plan = log.released([move(1), move(2)]);
    log.dispatched(plan, 2);
    log.completed({ task: `${plan}-s1` }, 30, [late]);
    const { tasks, plans, damaged } = log.state();
    expect(tasks.get(`${plan}-s1`)).toMatchObject({ status: 'completed', end: { warnings: [late] } });
    expect([plans.get(plan)?.completed, plans.get(plan)?.warned, damaged.size]).toEqual([1, 1, 0]);
    log.completed({ task: `${plan}-s2` });
    expect(log.state().recentPlans.at(-1)).toMatchObject({ completed: 2, warned: 1 });
  });

  it.each(['completed', 'failed'] as const)('is kept while its server is in ERROR: %s', (how) => {
    const log = testLog();
    const plan = log.released([move(1)]);
    log.dispatched(plan, 1);
    if (how === 'completed') log.completed({ task: `${plan}-s1` }, 30, [inError]);
    else log.failed({ task: `${plan}-s1`, errorType: 'NovaClientError', reason: inError });
    expect(log.state().damaged.get('vm1')).toMatchObject({
      planId: plan,
      serverId: 'vm1',
      host: how === 'completed' ? log.fold().aggregates.get('gpu')?.damaged.get('vm1')?.destination : null,
      reasons: [inError],
    });
  });

  it('is known in the events of earlier versions', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    log.completed({ task: `${plan}-s1` }, 30, [{ code: 'server-not-up', text: 'x', detail: { status: 'ERROR' } }]);
    expect(log.state().damaged.has('vm1')).toBe(true);
  });

  it('is over with a later move of the server that ends well, or when an operator releases the server', () => {
    const log = testLog();
    const damage = () => {
      const plan = log.pass(60).released([move(1)]);
      log.completed({ task: `${plan}-s1` }, 30, [inError]);
      expect(log.state().damaged.size).toBe(1);
    };
    damage();
    log.completed({ task: `${log.pass(60).released([move(1)])}-s1` });
    expect(log.state().damaged.size).toBe(0);
    damage();
    log.unquarantined('vm1');
    expect(log.state().damaged.size).toBe(0);
  });

  it('does not quarantine its server', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    log.completed({ task: `${plan}-s1` }, 30, [inError]);
    expect(log.state().vmFailures.size).toBe(0);
  });

  it('is kept of a limited number of servers, the latest', () => {
    const log = testLog();
    const plan = log.released(Array.from({ length: RECENT_DAMAGED + 2 }, (_, i) => move(i + 1)));
    for (let i = 1; i <= RECENT_DAMAGED + 2; i++) log.completed({ task: `${plan}-s${i}` }, 30, [inError]);
    const { damaged } = log.state();
    expect([damaged.size, damaged.has('vm2'), damaged.has('vm3')]).toEqual([RECENT_DAMAGED, false, true]);
  });
});

describe('a started attempt that may be a poison message', () => {
  it('counts the tries without word of survival, and is none once its executor survived', () => {
    const log = testLog();
    const task = `${log.released([move(1)])}-s1`;
    const suspected = () => log.state().tasks.get(task)?.slot?.suspected;
    log.started({ task });
    expect(suspected()).toBeNull();
    log.at(5).suspected({ task }, 1);
    log.at(9).suspected({ task }, 2);
    expect(suspected()).toEqual({ tries: 2, atMs: START + 9000 });
    log.suspected({ task }, 0);
    expect(suspected()).toBeNull();
  });

  it('of another attempt, or of one that has not started, means nothing', () => {
    const log = testLog();
    const task = `${log.released([move(1), move(2)])}-s1`;
    log.suspected({ task }, 2);
    log.started({ task });
    log.suspected({ task, attempt: 2 }, 2);
    expect(log.state().tasks.get(task)?.slot?.suspected).toBeNull();
  });
});

describe('an abort that Nova refused', () => {
  it('stands beside the slot in the words of the first refusal, and goes with it', () => {
    const log = testLog();
    const task = `${log.released([move(1)])}-s1`;
    log.started({ task });
    log.at(5).abortRefused({ task }, 'while it is in task_state None');
    log.at(6).abortRefused({ task }, 'again');
    expect(log.state().tasks.get(task)?.slot?.abortRefused).toMatchObject({
      status: 409,
      text: 'while it is in task_state None',
      atMs: START + 5000,
    });
    log.failed({ task });
    expect(log.state().tasks.get(task)?.slot ?? null).toBeNull();
  });

  it('of another attempt, or of one that has not started, means nothing', () => {
    const log = testLog();
    const task = `${log.released([move(1), move(2)])}-s1`;
    log.abortRefused({ task });
    log.started({ task });
    log.abortRefused({ task, attempt: 2 });
    expect(log.state().tasks.get(task)?.slot?.abortRefused).toBeNull();
  });
});

describe('an event that cannot be read', () => {
  it('marks its aggregate and no other, and the fold goes on', () => {
    const log = testLog();
    log.unreadable('migration.teleported', 7);
    log.unreadable('migration.beamed', 8);
    log.released([move(1)]);
    expect(log.state().unreadable).toMatchObject({
      sequence: 1,
      claimedType: 'migration.teleported',
      claimedVersion: 7,
    });
    expect(log.state().tasks.size).toBe(1);
    expect(log.state('other').unreadable).toBeNull();
  });

  it('addressed to all marks every aggregate', () => {
    const log = testLog();
    log.about(ALL).unreadable();
    expect(log.state('gpu').unreadable).not.toBeNull();
    expect(log.state('other').unreadable).not.toBeNull();
  });

  it('is also a plan or a result that is addressed to all', () => {
    const log = testLog();
    log.about(ALL).decided();
    expect(log.state('gpu').unreadable?.problem).toMatch(/belongs to one aggregate/);
  });
});

describe('what mattered last long ago', () => {
  it('is forgotten, and what still matters is not', () => {
    const log = testLog();
    log.configured();
    const plan = log.released([move(1), move(2)]);
    log.failed({ task: `${plan}-s1`, hostAtFault: 'h2' });
    log.quarantined('vm8', 60);
    log.quarantined('vm9', -1);
    log.at(86_400 * 97).released([move(2)]);
    log.at(86_400 * 100).decided();
    const state = log.state();
    expect([...state.vmReleases.keys()]).toEqual(['vm2']);
    expect(state.hostFailures.size).toBe(0);
    expect([...state.operatorQuarantines.keys()]).toEqual(['vm9']);
    expect([...state.vmFailures.keys()]).toEqual(['vm1']);
  });
});

describe('a folder', () => {
  it('hands out states that later events do not change', () => {
    const log = testLog();
    const plan = log.released([move(1), move(2)]);
    log.started({ task: `${plan}-s1` });
    log.quarantined('vm5');
    const folder = createFolder();
    const snapshots = log.events.map((stored) => folder.apply(stored).snapshot());
    const texts = snapshots.map((s) => JSON.stringify([...s.aggregates].map(([, f]) => [...f.tasks, ...f.seen])));
    log.completed({ task: `${plan}-s1` });
    log.unquarantined('vm5');
    for (const stored of log.events) folder.apply(stored);
    expect(snapshots.map((s) => JSON.stringify([...s.aggregates].map(([, f]) => [...f.tasks, ...f.seen])))).toEqual(
      texts,
    );
    expect(folder.snapshot()).toEqual(log.fold());
  });

  it('gives the same as one event at a time', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    log.started({ task: `${plan}-s1` });
    log.completed({ task: `${plan}-s1` });
    log.dispatched(plan);
    expect(log.events.reduce(evolve, initialLogState())).toEqual(fold(log.events));
  });

  it('passes over events that it has folded already', () => {
    const log = testLog();
    log.paused();
    log.resumed();
    const state = log.fold();
    expect(fold(log.events, state)).toBe(state);
  });
});
