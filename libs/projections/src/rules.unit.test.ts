import type { Caps } from '@kronos/rules';
import { describe, expect, it } from 'vitest';
import { type StepInput, TEST_START_MS, type TestLog, testLog } from '../testing/index.ts';
import { notAfterMs, undispatched, waitingPlan } from './approvals.ts';
import { brokenHosts, hostBroken } from './breaker.ts';
import { cooldownOf, coolingDown } from './cooldown.ts';
import { inFlight, taskStatus } from './inFlight.ts';
import { quarantined, quarantineTable } from './quarantine.ts';
import { type AllCaps, exceeded, mayStart, slots } from './slots.ts';

const move = (n: number, more: object = {}) => ({ serverId: `vm${n}`, from: 'h1', to: 'h2', ...more });
const at = (seconds: number) => TEST_START_MS + seconds * 1000;

const closesAt = (seconds: number) => ({ startBefore: new Date(at(seconds)).toISOString() });

describe('the aggregate cooldown', () => {
  const cooldown = { cooldownSeconds: 600 };

  it('lasts from a release for as long as the given options say', () => {
    const log = testLog();
    const plan = log.at(10).released([move(1)]);
    expect(cooldownOf(log.state(), at(609), cooldown)).toEqual({
      cause: 'released',
      planId: plan,
      sinceMs: at(10),
      untilMs: at(610),
    });
    expect(cooldownOf(log.state(), at(610), cooldown)).toBeNull();
    expect(cooldownOf(log.state(), at(11), { cooldownSeconds: 0 })).toBeNull();
  });

  it('lasts from a rejection', () => {
    const log = testLog();
    log.configured();
    const plan = log.proposed([move(1)]);
    expect(cooldownOf(log.state(), at(5), cooldown)).toBeNull();
    log.at(30).rejected(plan);
    expect(cooldownOf(log.state(), at(31), cooldown)).toMatchObject({ cause: 'rejected', untilMs: at(630) });
  });

  it('lasts from an expiry, the same before and after a decision has noticed it', () => {
    const log = testLog();
    log.configured({ approvalTtlSeconds: 300 });
    log.proposed([move(1)]);
    expect(cooldownOf(log.state(), at(300), cooldown)).toBeNull();
    const unnoticed = cooldownOf(log.state(), at(360), cooldown);
    log.at(360).decided('none', [], { outcome: 'gated' });
    expect(unnoticed).toMatchObject({ cause: 'expired', sinceMs: at(300), untilMs: at(900) });
    expect(cooldownOf(log.state(), at(360), cooldown)).toEqual(unnoticed);
  });

  it('never began for an aggregate of which the log knows nothing', () => {
    expect(cooldownOf(testLog().state('other'), at(0), cooldown)).toBeNull();
  });
});

describe('the instance cooldown', () => {
  const cooldown = { instanceCooldownSeconds: 100, adaptiveCooldownFactor: 1 };

  it('leaves a released VM alone and no other', () => {
    const log = testLog();
    log.at(10).released([move(1)]);
    expect(coolingDown(log.state(), 'vm1', at(109), cooldown)).toBe(at(110));
    expect(coolingDown(log.state(), 'vm1', at(110), cooldown)).toBeNull();
    expect(coolingDown(log.state(), 'vm2', at(11), cooldown)).toBeNull();
  });
});

describe('the quarantine', () => {
  it('refuses: a failure at the fault of the destination, the scheduler or an operator quarantines no VM', () => {
    const ends = (cause?: string) => {
      const log = testLog();
      const task = `${log.released([move(1)])}-s1`;
      log.started({ task });
      log.at(10).failed({ task, errorType: 'PreFlightError', ...(cause === undefined ? {} : { cause }) });
      return quarantined(log.state(), 'vm1', at(11), { instanceQuarantineSeconds: 3600 }) !== null;
    };
    expect(['destination', 'scheduler', 'operator'].map(ends)).toEqual([false, false, false]);
    // An event of Kronos 0.1 names no cause, and folds as before.
    expect([ends('server'), ends('unknown'), ends()]).toEqual([true, true, true]);
  });

  const until = { instanceQuarantineSeconds: 3600 };
  const failed = () => {
    const log = testLog();
    const task = `${log.released([move(1)])}-s1`;
    log.started({ task });
    log.at(10).failed({ task });
    return log;
  };

  it('by a failure lasts as long as the given options say', () => {
    const state = failed().state();
    expect(quarantined(state, 'vm1', at(3609), until)).toMatchObject({ cause: 'failure', untilMs: at(3610) });
    expect(quarantined(state, 'vm1', at(3610), until)).toBeNull();
    expect(quarantined(state, 'vm1', at(9e6), { instanceQuarantineSeconds: -1 })).toMatchObject({ untilMs: null });
    expect(quarantined(state, 'vm2', at(11), until)).toBeNull();
  });

  it('by an operator lasts as long as asked', () => {
    const log = testLog();
    log.quarantined('vm1', 60, 'grace');
    expect(quarantined(log.state(), 'vm1', at(59), until)).toMatchObject({ cause: 'operator', by: 'grace' });
    expect(quarantined(log.state(), 'vm1', at(60), until)).toBeNull();
  });

  it('by both lasts as long as the longer', () => {
    const log = failed();
    log.at(20).quarantined('vm1', 60);
    expect(quarantined(log.state(), 'vm1', at(21), until)?.cause).toBe('failure');
    log.at(30).quarantined('vm1', -1);
    expect(quarantined(log.state(), 'vm1', at(31), until)).toMatchObject({ cause: 'operator', untilMs: null });
  });

  it('is a table for people', () => {
    const log = failed();
    log.quarantined('vm0', -1);
    log.quarantined('vm7', 5);
    expect(quarantineTable(log.state(), at(100), until).map((q) => q.serverId)).toEqual(['vm0', 'vm1']);
  });
});

describe('the host breaker', () => {
  const breaker = { breakerFailures: 2, breakerWindowSeconds: 100, breakerDurationSeconds: 500 };
  const failures = (...times: number[]) => {
    const log = testLog();
    const plan = log.released(times.map((_, i) => move(i + 1)));
    times.forEach((time, i) => {
      log.at(time).failed({ task: `${plan}-s${i + 1}`, hostAtFault: 'h2' });
    });
    return log.state();
  };

  it('takes a host out after enough failures within the window', () => {
    const state = failures(10, 100);
    expect(hostBroken(state, 'h2', at(101), breaker)).toBe(at(600));
    expect(hostBroken(state, 'h2', at(600), breaker)).toBeNull();
    expect(brokenHosts(state, at(101), breaker)).toEqual([{ host: 'h2', untilMs: at(600) }]);
  });

  it('is closed by a person, for the failures so far: later ones count anew', () => {
    const log = testLog();
    const plan = log.released([1, 2, 3, 4].map((i) => move(i)));
    const fails = (time: number, step: number) => log.at(time).failed({ task: `${plan}-s${step}`, hostAtFault: 'h2' });
    fails(10, 1);
    fails(20, 2);
    log.at(30).hostReleased('h3');
    expect(hostBroken(log.state(), 'h2', at(31), breaker)).toBe(at(520));
    log.at(40).hostReleased('h2');
    expect(hostBroken(log.state(), 'h2', at(41), breaker)).toBeNull();
    fails(50, 3);
    expect(hostBroken(log.state(), 'h2', at(51), breaker)).toBeNull();
    fails(60, 4);
    expect(hostBroken(log.state(), 'h2', at(61), breaker)).toBe(at(560));
  });
});

describe('approvals', () => {
  it('name the plan that waits and until when', () => {
    const log = testLog();
    log.configured({ approvalTtlSeconds: 300 });
    const plan = log.proposed([move(1)]);
    expect(waitingPlan(log.state(), at(300))).toMatchObject({ plan: { id: plan }, expiresAtMs: at(300), open: true });
    expect(waitingPlan(log.state(), at(301))).toMatchObject({ open: false });
    log.approved(plan);
    expect(waitingPlan(log.state(), at(1))).toBeNull();
  });

  it('wait no longer than the last window of the steps is open', () => {
    const log = testLog();
    log.configured({ approvalTtlSeconds: 300 });
    const steps = [move(1, closesAt(150)), move(2, closesAt(200))];
    const plan = log.at(100).decided('proposed', steps);
    expect(waitingPlan(log.state(), at(200))).toMatchObject({ open: true, expiresAtMs: at(200) });
    log.at(201).approved(plan);
    expect(log.state().plans.get(plan)?.state).toBe('proposed');
    expect(waitingPlan(log.state(), at(201))).toMatchObject({ open: false });
    log.at(250).proposed([move(3, closesAt(260)), move(4)]);
    expect(waitingPlan(log.state(), at(251))).toMatchObject({ expiresAtMs: at(550) });
  });

  it('release no step whose window has closed, nor what depends on it, and charge nothing for them', () => {
    const log = testLog();
    log.configured({ approvalTtlSeconds: 300 });
    const steps = [move(1, closesAt(100)), move(2, { dependsOn: [1] }), move(3)];
    const plan = log.proposed(steps);
    log.at(100).approved(plan, [2]);
    expect(log.state()).toMatchObject({ waiting: plan, lastRelease: null });
    log.at(101).approved(plan);
    const { tasks, vmReleases, lastRelease } = log.state();
    expect([...tasks.keys()]).toEqual([`${plan}-s3`]);
    expect([...vmReleases.keys()]).toEqual(['vm3']);
    expect(lastRelease?.atMs).toBe(at(101));
  });

  it('charge both cooldowns at the release, whatever ends a move that never starts', () => {
    const ends: readonly ((log: TestLog, task: string) => void)[] = [
      ...['window-closed', 'expired', 'cancelled', 'dependency-failed', 'vm-locked'].map(
        (code) => (log: TestLog, task: string) =>
          void log.failed({ task, errorType: 'Cancelled', started: false, reason: { code, text: code } }),
      ),
      (log, task) => void log.skipped({ task }),
    ];
    for (const end of ends) {
      const log = testLog();
      log.configured();
      const plan = log.at(10).released([move(1, closesAt(100))]);
      const { vmReleases, lastRelease } = log.state();
      end(log.at(100), `${plan}-s1`);
      expect(log.state().tasks.get(`${plan}-s1`)?.end).toMatchObject({ atMs: at(100) });
      expect([log.state().vmReleases, log.state().lastRelease]).toEqual([vmReleases, lastRelease]);
      expect([vmReleases.get('vm1'), lastRelease?.atMs]).toEqual([[at(10)], at(10)]);
      // It makes the next cooldown longer, too: a VM whose moves end before they start is left alone for longer each time.
      log.at(200).released([move(1)]);
      const grows = { instanceCooldownSeconds: 100, adaptiveCooldownFactor: 3 };
      expect(coolingDown(log.state(), 'vm1', at(201), grows)).toBe(at(500));
    }
  });

  it('of a decision that is late release only what can still start', () => {
    const log = testLog();
    log.configured();
    const late = log.at(100).released([move(1, closesAt(100)), move(2, { dependsOn: [1] })]);
    expect(log.state()).toMatchObject({ lastRelease: null, unreadable: null });
    expect([log.state().plans.has(late), log.state().tasks.size, log.state().vmReleases.size]).toEqual([false, 0, 0]);
    const plan = log.at(160).released([move(1, closesAt(150)), move(2, closesAt(161))]);
    expect([...log.state().tasks.keys()]).toEqual([`${plan}-s2`]);
    expect([...log.state().vmReleases.keys()]).toEqual(['vm2']);
    log.at(220).proposed([move(5, closesAt(200))]);
    expect(log.state().waiting).toBeNull();
  });

  it('is of no use where the window was closed: such a plan is not released by its own event either', () => {
    for (const how of ['released', 'proposed'] as const) {
      const log = testLog();
      log.configured();
      log.decided(how, [move(1)], { window: { open: false, until: null } });
      expect(log.state().unreadable?.problem).toBe(`the plan is ${how}, and its window is closed`);
      expect(log.state().plans.size).toBe(0);
    }
  });

  it('name released plans without a dispatch, oldest first', () => {
    const log = testLog();
    log.configured({ planTtlSeconds: 50 });
    const first = log.at(1).released([move(1)]);
    const second = log.at(2).released([move(2)]);
    expect(undispatched(log.state()).map((p) => [p.id, notAfterMs(p)])).toEqual([
      [first, at(51)],
      [second, at(52)],
    ]);
    log.dispatched(first);
    expect(undispatched(log.state()).map((p) => p.id)).toEqual([second]);
  });

  it('leave no time to start what waits', () => {
    const log = testLog();
    log.configured();
    log.proposed([move(1)]);
    expect([...log.state().plans.values()].map(notAfterMs)).toEqual([null]);
  });
});

describe('moves in flight', () => {
  it('are those that are released and not over, in the order of plans and steps', () => {
    const log = testLog();
    const first = log.at(1).released([move(1), move(2)]);
    const second = log.at(2).released([move(3)]);
    log.started({ task: `${second}-s1` });
    log.completed({ task: `${first}-s1` });
    expect(inFlight(log.state()).map((t) => t.id)).toEqual([`${first}-s2`, `${second}-s1`]);
    expect(taskStatus(log.state(), `${first}-s1`)).toMatchObject({ known: true, task: { status: 'completed' } });
    expect(taskStatus(log.state(), 'gpu-0-s1')).toEqual({ known: false });
  });
});

describe('slots', () => {
  it('are started attempts without an end, counted by host and group', () => {
    const log = testLog();
    const group = { id: 'g', policy: 'anti-affinity' };
    const plan = log.released([
      move(1, { groups: [group] }),
      move(2, { to: 'h3', groups: [group] }),
      move(3, { from: 'h4' }),
      move(4),
    ]);
    for (const n of [3, 1, 2]) log.started({ task: `${plan}-s${n}` });
    log.failed({ task: `${plan}-s3`, retry: {} });
    const used = slots(log.state());
    expect(used.total).toBe(2);
    expect([...used.bySource]).toEqual([['h1', 2]]);
    expect([...used.byDestination].sort()).toEqual([
      ['h2', 1],
      ['h3', 1],
    ]);
    expect([...used.byGroup]).toEqual([['g', 2]]);
    expect(used.tasks.map((t) => t.step.step)).toEqual([1, 2]);
  });
});

describe('an attempt may start', () => {
  const free: Caps = {
    maxConcurrentMigrations: 9,
    maxOutboundPerHost: 9,
    maxInboundPerHost: 9,
    maxConcurrentPerGroup: 9,
  };
  const begin = (moves = [move(1)]) => {
    const log = testLog();
    log.configured({ planTtlSeconds: 1000 });
    const plan = log.released(moves);
    const ask = (
      step = 1,
      seconds = 1,
      caps: Partial<Caps> = {},
      attempt: { attempt?: number; destination?: string } = {},
    ) =>
      mayStart(log.state(), { taskId: `${plan}-s${step}`, attempt: 1, destination: 'h2', ...attempt }, at(seconds), {
        caps: { ...free, ...caps },
      });
    return { log, plan, ask };
  };
  const code = (verdict: ReturnType<typeof mayStart>) =>
    'reason' in verdict ? `${verdict.verdict} ${verdict.reason.code}` : verdict.verdict;

  it('when it is due and nothing is against it', () => {
    expect(begin().ask()).toEqual({ verdict: 'start' });
  });

  it('not before its time', () => {
    const { ask } = begin([move(1, { delaySeconds: 30 })]);
    expect(ask(1, 29)).toMatchObject({ verdict: 'wait', reason: { code: 'not-due' }, untilMs: at(30) });
    expect(code(ask(1, 30))).toBe('start');
  });

  it('only after what it depends on has completed', () => {
    const { log, plan, ask } = begin([move(1), move(2, { dependsOn: [1] })]);
    expect(code(ask(2))).toBe('wait dependency');
    log.started({ task: `${plan}-s1` });
    expect(code(ask(2))).toBe('wait dependency');
    log.completed({ task: `${plan}-s1` });
    expect(code(ask(2))).toBe('start');
  });

  it('never after a dependency failed or was skipped', () => {
    const failed = begin([move(1), move(2, { dependsOn: [1] })]);
    failed.log.failed({ task: `${failed.plan}-s1` });
    expect(failed.ask(2)).toMatchObject({
      verdict: 'end',
      errorType: 'Cancelled',
      reason: { code: 'dependency-failed' },
    });
    const skipped = begin([move(1), move(2, { dependsOn: [1] })]);
    skipped.log.skipped({ task: `${skipped.plan}-s1` });
    expect(code(skipped.ask(2))).toBe('end dependency-skipped');
  });

  it('never after plan_ttl', () => {
    const { ask } = begin();
    expect(code(ask(1, 1000))).toBe('start');
    expect(code(ask(1, 1001))).toBe('end expired');
  });

  it('never after its window has closed', () => {
    const startBefore = new Date(at(500)).toISOString();
    const { ask } = begin([move(1, { startBefore }), move(2)]);
    expect(code(ask(1, 499))).toBe('start');
    expect(code(ask(1, 500))).toBe('end window-closed');
    expect(code(ask(2, 500))).toBe('start');
  });

  it('never when the log names no options', () => {
    const log = testLog();
    const plan = log.released([move(1)]);
    expect(
      code(mayStart(log.state(), { taskId: `${plan}-s1`, attempt: 1, destination: 'h2' }, at(1), { caps: free })),
    ).toBe('end no-options');
  });

  it('not while the aggregate, or everything, is paused', () => {
    const { log, ask } = begin();
    log.about('_all_').paused();
    expect(code(ask())).toBe('wait paused');
    log.resumed();
    log.about('gpu').paused();
    expect(code(ask())).toBe('wait paused');
    log.resumed();
    expect(code(ask())).toBe('start');
  });

  it('never after its cancellation or abortion was asked for', () => {
    const cancelled = begin();
    cancelled.log.cancelled(`${cancelled.plan}-s1`);
    expect(code(cancelled.ask())).toBe('end cancelled');
    const aborted = begin();
    aborted.log.started({ task: `${aborted.plan}-s1` });
    aborted.log.aborted(`${aborted.plan}-s1`);
    aborted.log.failed({ task: `${aborted.plan}-s1`, retry: {} });
    expect(code(aborted.ask(1, 2, {}, { attempt: 2 }))).toBe('end cancelled');
  });

  it('never when its VM was quarantined since', () => {
    const { log, ask } = begin();
    log.quarantined('vm1', 5);
    expect(code(ask(1, 4))).toBe('end vm-quarantined-by-operator');
    expect(code(ask(1, 6))).toBe('start');
  });

  it('not while another move of its VM runs', () => {
    const { log, plan, ask } = begin([move(1), move(1, { from: 'h2', to: 'h3' })]);
    log.started({ task: `${plan}-s1` });
    expect(code(ask(2, 1, {}, { destination: 'h3' }))).toBe('wait server-moving');
  });

  it('not while a move of another aggregate has its VM, leaves its source or reaches its destination', () => {
    const { log, ask } = begin();
    const other = log.about('other').released([
      { serverId: 'vm1', from: 'h8', to: 'h9' },
      { serverId: 'vm8', from: 'h1', to: 'h9' },
      { serverId: 'vm9', from: 'h8', to: 'h2' },
    ]);
    const held = (step: number): string => {
      log.started({ task: `${other}-s${step}` });
      const found = code(ask(1, 1, { maxConcurrentMigrations: 1, maxOutboundPerHost: 1, maxInboundPerHost: 1 }));
      log.completed({ task: `${other}-s${step}` });
      return found;
    };
    expect(held(1)).toBe('wait server-moving');
    expect(held(2)).toBe('wait max_outbound_per_host');
    expect(held(3)).toBe('wait max_inbound_per_host');
    // The cap of moves at once is of its own aggregate.
    log.about('third').started({ task: `${log.released([{ serverId: 'vm7', from: 'h7', to: 'h9' }])}-s1` });
    expect(code(ask(1, 1, { maxConcurrentMigrations: 1 }))).toBe('start');
  });

  describe('that was stored after a start of another aggregate which it did not know', () => {
    const tight = { maxConcurrentMigrations: 1, maxOutboundPerHost: 1, maxInboundPerHost: 1, maxConcurrentPerGroup: 1 };
    const group = [{ id: 'g', policy: 'anti-affinity' as const }];
    /** A start of vm1 from h1 to h2 in gpu after one in web. */
    function after(move: Partial<StepInput>, caps: Partial<AllCaps> = {}) {
      const log = testLog();
      log.configured();
      const own = `${log.released([{ serverId: 'vm1', from: 'h1', to: 'h2', groups: group }])}-s1`;
      log.about('web').configured();
      const other = `${log.released([{ serverId: 'vm8', from: 'h8', to: 'h9', ...move }])}-s1`;
      log.started({ task: other });
      log.about('gpu').started({ task: own });
      const code = (aggregate: string, task: string) =>
        exceeded(log.state(aggregate), task, { ...tight, ...caps })?.code ?? null;
      return { log, own, other, code };
    }

    it('acts: the later one exceeds a limit that both share, and never the earlier one', () => {
      for (const [move, limit] of [
        [{ serverId: 'vm1' }, 'server-moving'],
        [{ from: 'h1' }, 'max_outbound_per_host'],
        [{ to: 'h2' }, 'max_inbound_per_host'],
        [{ groups: group }, 'max_concurrent_per_group'],
      ] as const) {
        const { own, other, code } = after(move);
        expect([code('gpu', own), code('web', other)]).toEqual([limit, null]);
      }
    });

    it('refuses: the limit leaves room for both, or the first one has ended', () => {
      const roomy = after({ from: 'h1' }, { maxOutboundPerHost: 2 });
      expect(roomy.code('gpu', roomy.own)).toBeNull();
      const { log, own, other, code } = after({ from: 'h1' });
      log.about('web').completed({ task: other });
      expect(code('gpu', own)).toBeNull();
    });

    it('does nothing: they share nothing, or the task has not started', () => {
      const { own, code } = after({});
      expect([code('gpu', own), code('gpu', 'unknown')]).toEqual([null, null]);
    });
  });

  it('not above the cap of moves at once', () => {
    const { log, plan, ask } = begin([move(1), move(2)]);
    log.started({ task: `${plan}-s1` });
    expect(code(ask(2, 1, { maxConcurrentMigrations: 1 }))).toBe('wait max_concurrent_migrations');
    log.completed({ task: `${plan}-s1` });
    expect(code(ask(2, 1, { maxConcurrentMigrations: 1 }))).toBe('start');
  });

  it('not above the caps per source, destination and group', () => {
    const group = { id: 'g', policy: 'affinity' };
    const { log, plan, ask } = begin([move(1, { groups: [group] }), move(2, { groups: [group] })]);
    log.started({ task: `${plan}-s1` });
    expect(code(ask(2, 1, { maxOutboundPerHost: 1 }))).toBe('wait max_outbound_per_host');
    expect(code(ask(2, 1, { maxInboundPerHost: 1 }))).toBe('wait max_inbound_per_host');
    expect(code(ask(2, 1, { maxInboundPerHost: 1 }, { destination: 'h5' }))).toBe('start');
    expect(code(ask(2, 1, { maxConcurrentPerGroup: 1 }))).toBe('wait max_concurrent_per_group');
  });

  it('once: a successor sees that it is started', () => {
    const { log, plan, ask } = begin();
    log.started({ task: `${plan}-s1` });
    expect(ask()).toMatchObject({ verdict: 'started', task: { slot: { executor: 'executor-1' } } });
  });

  it('never again when it is over, and the retry is named', () => {
    const { log, plan, ask } = begin([move(1), move(2)]);
    log.started({ task: `${plan}-s1` });
    log.failed({ task: `${plan}-s1`, retry: { destination: 'h3' } });
    expect(ask()).toMatchObject({ verdict: 'over', task: { status: 'retryPending', attempt: 2, destination: 'h3' } });
    expect(code(ask(1, 1, {}, { attempt: 2, destination: 'h3' }))).toBe('start');
    log.completed({ task: `${plan}-s1`, attempt: 2, destination: 'h3' });
    expect(code(ask(1, 1, {}, { attempt: 2 }))).toBe('over task-ended');
    expect(code(ask(9))).toBe('over unknown-task');
    expect(code(ask(2, 1, {}, { attempt: 3 }))).toBe('over attempt-unknown');
  });

  it('never when its plan was only proposed', () => {
    const log = testLog();
    log.configured();
    const plan = log.proposed([move(1)]);
    expect(
      code(mayStart(log.state(), { taskId: `${plan}-s1`, attempt: 1, destination: 'h2' }, at(1), { caps: free })),
    ).toBe('over unknown-task');
  });
});
