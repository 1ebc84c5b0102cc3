import { memoryText } from '@kronos/placement';
import { testCourse, testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { absenceOf } from './cycle.ts';
import { toMemory } from './memory.ts';

const move = (n: number) => ({ serverId: `vm${n}`, from: 'h1', to: 'h2' });

const seen = {
  servers: ['vm1', 'vm2', 'vm3', 'vm7', 'vm8', 'vm9'].map((id) => ({ id })),
  hosts: ['h1', 'h2', 'h3'].map((name) => ({ name })),
};

describe('the rate of former moves', () => {
  const moved = (moves: number) => {
    const log = testLog();
    for (let n = 0; n < moves; n++) {
      const task = `${log.released([move(n)])}-s1`;
      log.started({ task });
      log.pass(32).completed({ task }, 32);
    }
    return log.state();
  };

  it('is in the memory where what moves cost is weighed against it, and enough moves are known', () => {
    // 4 GiB each.
    expect(toMemory(moved(3), { ...seen, moveCostReadings: [] }).copyBytesPerSecond).toBe(4_294_967_296 / 32);
    expect(toMemory(moved(2), { ...seen, moveCostReadings: [] })).not.toHaveProperty('copyBytesPerSecond');
    expect(toMemory(moved(3), seen)).not.toHaveProperty('copyBytesPerSecond');
  });
});

/** The text that digests are made of. */
const written = (...given: Parameters<typeof toMemory>) => memoryText(toMemory(...given));

describe('the memory of the planner', () => {
  it('has the facts, with their times as texts in digests', () => {
    const log = testLog();
    log.configured();
    const plan = log.at(60).released([move(1), move(2)]);
    log.at(70).started({ task: `${plan}-s1` });
    log.at(80).failed({ task: `${plan}-s1`, hostAtFault: 'h2' });
    log.at(90).started({ task: `${plan}-s2`, destination: 'h3' });
    log.at(100).quarantined('vm7', 30);
    log.at(110).paused('grace');
    log.unreadable('plan.sung', null);
    expect(written(log.state(), seen)).toMatchObject({
      paused: { at: '2026-01-05T00:01:50.000Z', by: 'grace' },
      unreadable: { sequence: 8, type: 'plan.sung', version: null },
      lastDecidedTime: '2026-01-05T00:01:00.000Z',
      lastRelease: { planId: plan, at: '2026-01-05T00:01:00.000Z' },
      lastRefusal: null,
      waitingPlan: null,
      lastMoveEndAt: '2026-01-05T00:01:20.000Z',
      releases: { vm1: ['2026-01-05T00:01:00.000Z'], vm2: ['2026-01-05T00:01:00.000Z'] },
      quarantines: {
        vm1: [{ cause: 'failure', errorType: 'MigrationFailed', seconds: null }],
        vm7: [{ cause: 'operator', at: '2026-01-05T00:01:40.000Z', errorType: null, seconds: 30 }],
      },
      hostFailures: { h2: ['2026-01-05T00:01:20.000Z'] },
      inFlight: [{ taskId: `${plan}-s2`, destination: 'h3', startedAt: '2026-01-05T00:01:30.000Z' }],
    });
  });

  it('has the moves that are left of a course, while there are any', () => {
    const log = testLog();
    log.configured();
    log.decided('released', [move(1), move(2)], { course: testCourse });
    expect(written(log.state(), seen).courseMoves).toBe(3);
    log.pass(60).decided('none');
    expect(written(log.state(), seen)).not.toHaveProperty('courseMoves');
  });

  it('has the paces of former moves where a course is timed by them', () => {
    const log = testLog();
    log.configured();
    const plan = log.decided('released', [move(1), move(2), move(3)]);
    for (const step of [1, 2, 3]) {
      log.started({ task: `${plan}-s${step}` });
      log.pass(28).completed({ task: `${plan}-s${step}` }, 28);
    }
    expect(written(log.state(), seen)).not.toHaveProperty('movePaces');
    log.pass(60).decided('none', [], { course: testCourse });
    expect(written(log.state(), seen).movePaces?.others).toBeGreaterThan(0);
  });

  it('has the plan that waits with the approval_ttl of its time, and how the last one ended', () => {
    const log = testLog();
    log.configured({ approvalTtlSeconds: 300 });
    const refused = log.proposed([move(1)]);
    log.at(10).rejected(refused);
    const planId = log.at(20).proposed([move(1)]);
    log.configured({ approvalTtlSeconds: 900 });
    expect(written(log.state(), seen)).toMatchObject({
      lastRefusal: { planId: refused, at: '2026-01-05T00:00:10.000Z', how: 'rejected' },
      waitingPlan: { planId, proposedAt: '2026-01-05T00:00:20.000Z', approvalTtlSeconds: 300 },
    });
  });

  it('has both quarantines of a VM, as which one ends last is the options to judge', () => {
    const log = testLog();
    log.configured();
    const task = `${log.released([move(1)])}-s1`;
    log.failed({ task });
    log.quarantined('vm1', 50);
    expect(written(log.state(), seen).quarantines.vm1).toMatchObject([
      { cause: 'failure', seconds: null },
      { cause: 'operator', seconds: 50 },
    ]);
  });

  it('is empty for an aggregate of which the log knows nothing', () => {
    expect(written(testLog().state('other'), seen)).toMatchObject({ lastRelease: null, inFlight: [], releases: {} });
  });

  /** Another aggregate from which vm1 and h1 may have come. */
  const former = () => {
    const log = testLog();
    log.configured();
    return { log, task: `${log.about('former').released([move(1)])}-s1` };
  };
  const came = { servers: [{ id: 'vm1' }, { id: 'vm9' }], hosts: [{ name: 'h1' }, { name: 'h3' }] };

  it('acts: has what the log knows of a VM and a host from the aggregate in which they were before', () => {
    const { log, task } = former();
    log.at(5).drainAsked('h1');
    expect(written(log.state(), came)).toMatchObject({
      releases: { vm1: ['2026-01-05T00:00:00.000Z'] },
      inFlight: [{ taskId: task, serverId: 'vm1', from: 'h1', destination: 'h2', aggregate: 'former' }],
      draining: ['h1'],
      // A plan there starts no cooldown here.
      lastRelease: null,
    });
    log.at(10).started({ task });
    log.at(20).failed({ task, hostAtFault: 'h3' });
    log.at(30).quarantined('vm9', 60);
    expect(written(log.state(), came)).toMatchObject({
      inFlight: [],
      quarantines: {
        vm1: [{ cause: 'failure', errorType: 'MigrationFailed' }],
        vm9: [{ cause: 'operator', seconds: 60 }],
      },
      hostFailures: { h3: ['2026-01-05T00:00:20.000Z'] },
    });
    // A release here reaches them too.
    log.about('gpu').at(40).unquarantined('vm1');
    log.unquarantined('vm9');
    log.hostReleased('h3');
    expect(written(log.state(), came)).toMatchObject({ quarantines: {}, hostFailures: {} });
  });

  it('refuses: what an aggregate still has in flight between hosts and VMs of its own', () => {
    const { log } = former();
    log.at(5).drainAsked('h1');
    const memory = written(log.state(), { servers: [{ id: 'vm9' }], hosts: [{ name: 'h3' }] });
    expect(memory).toMatchObject({ releases: {}, inFlight: [] });
    expect(memory).not.toHaveProperty('draining');
  });

  it('does nothing: where VMs and hosts stayed, the memory is that of the aggregate alone', () => {
    const log = testLog();
    log.configured();
    log.released([move(2)]);
    const alone = written(log.state(), seen);
    log.about('other').released([{ serverId: 'vm50', from: 'h8', to: 'h9' }]);
    expect(written(log.state(), seen)).toEqual(alone);
  });

  it('keeps a failure that came with its VM: it is not forgotten where the VM is absent', () => {
    const { log, task } = former();
    log.started({ task });
    log.failed({ task });
    const noted = (name: string, servers: readonly { readonly id: string }[]) => {
      log.about(name).pass(60).decided();
      const event = log.events.at(-1)?.event;
      const found = absenceOf(log.state(name), { servers } as never, { outcome: 'quiet' } as never);
      if (event?.type === 'cycle.decided' && found !== undefined) event.data.absence = found;
      return found;
    };
    expect(noted('former', [])).toEqual({ gone: ['vm1'], back: [] });
    expect(noted('gpu', [{ id: 'vm1' }])).toEqual({ gone: [], back: ['vm1'] });
    expect(noted('former', [])).toBeUndefined();
    expect(noted('gpu', [{ id: 'vm1' }])).toBeUndefined();
    expect([...log.state('former').vmFailures.keys()]).toEqual([]);
    expect([...log.state().vmFailures.keys()]).toEqual(['vm1']);
  });

  it('is about the servers and hosts of its snapshot, however much the log remembers', () => {
    const log = testLog();
    log.configured();
    const plan = log.released([move(1), move(2), move(3)]);
    log.failed({ task: `${plan}-s1`, hostAtFault: 'h2' });
    log.failed({ task: `${plan}-s2`, hostAtFault: 'h3' });
    const memory = written(log.state(), { servers: [{ id: 'vm2' }, { id: 'vm9' }], hosts: [{ name: 'h3' }] });
    expect(Object.keys(memory.releases)).toEqual(['vm2']);
    expect(Object.keys(memory.quarantines)).toEqual(['vm2']);
    expect(Object.keys(memory.hostFailures)).toEqual(['h3']);
  });
});
