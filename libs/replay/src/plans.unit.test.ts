import { type CycleDecided, SERVER_IN_ERROR, type StoredEvent } from '@kronos/contracts';
import { testCourse, testLog } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { memoryHistory } from '../testing/index.ts';
import { plansOf } from './plans.ts';

const policies = ['cpu', 'memory'].map((policy) => {
  return { policy, imbalance: 0.3, threshold: 0.2, participates: true, detected: true, sustainedCycles: 3 };
});

/** The load of hosts before a plan whose decision has a changed body. */
async function before(change: (data: CycleDecided['data']) => CycleDecided['data']) {
  const log = testLog();
  log.configured();
  log.decided('dryRun', [{ serverId: 'a', from: 'h1', to: 'h2' }], { policies });
  async function* events(): AsyncGenerator<StoredEvent> {
    for (const stored of log.events) {
      const { event } = stored;
      yield event.type === 'cycle.decided' ? { ...stored, event: { ...event, data: change(event.data) } } : stored;
    }
  }
  const [plan] = await plansOf(events(), { sinceMs: 0 });
  return plan?.hostsBefore;
}

const withoutPlanLoads = ({ plan, ...data }: CycleDecided['data']): CycleDecided['data'] => {
  if (plan === null) return { ...data, plan };
  const { loads: _, ...rest } = plan;
  return { ...data, plan: rest };
};

it('says what hosts carried before a plan whose steps have no alternates, by its decision', async () => {
  const values = { vms: {}, arrived: {} };
  const loads = [
    { host: 'h1', values: { cpu: 0.6 }, ...values },
    { host: 'h2', values: { cpu: 0.1, memory: 0.2 }, ...values },
  ];
  expect(await before((data) => ({ ...withoutPlanLoads(data), loads }))).toEqual({
    policies: ['cpu', 'memory'],
    hosts: [
      { host: 'h1', values: [0.6, null] },
      { host: 'h2', values: [0.1, 0.2] },
    ],
  });
});

it('has the last attempt of a move, and how it ended', async () => {
  const log = testLog();
  log.configured();
  const plan = log.released([
    { serverId: 'a', from: 'h1', to: 'h2' },
    { serverId: 'b', from: 'h1', to: 'h2' },
  ]);
  for (const step of [1, 2]) log.pass(10).started({ task: `${plan}-s${step}` });
  log.failed({ task: `${plan}-s1`, retry: { destination: 'h3' } });
  log.pass(10).started({ task: `${plan}-s1`, attempt: 2, destination: 'h3' });
  log.completed({ task: `${plan}-s1`, attempt: 2, destination: 'h3' });
  log.failed({ task: `${plan}-s2`, reason: { code: SERVER_IN_ERROR, text: 'in ERROR' } });
  const [record] = await plansOf(memoryHistory(log.events, []).events(), {});
  expect(record?.steps.map(({ ended, state, attempt, destination }) => [ended, state, attempt, destination])).toEqual([
    ['completed', 'completed', 2, 'h3'],
    ['failed', 'damaged', 1, 'h2'],
  ]);
});

it('calls a move cancelled that nobody wanted any more, and failed one that went wrong', async () => {
  const ends = async (errorType: 'Cancelled' | 'PreFlightError') => {
    const log = testLog();
    log.configured();
    const plan = log.released([{ serverId: 'a', from: 'h1', to: 'h2' }]);
    log.failed({ task: `${plan}-s1`, errorType, started: false, reason: { code: 'x', text: 'why' } });
    const [record] = await plansOf(memoryHistory(log.events, []).events(), {});
    return record?.steps.map(({ ended, state, note }) => [ended, state, note]);
  };
  expect(await ends('Cancelled')).toEqual([['failed', 'cancelled', 'why']]);
  expect(await ends('PreFlightError')).toEqual([['failed', 'failed', 'PreFlightError: why']]);
});

it('says nothing where the log does not', async () => {
  expect(await before(withoutPlanLoads)).toBeNull();
});

it('has the course of its decision, and none where the decision has none', async () => {
  const log = testLog();
  log.configured();
  log.decided('dryRun', [{ serverId: 'a', from: 'h1', to: 'h2' }], { course: testCourse });
  log.pass(60).decided('dryRun', [{ serverId: 'b', from: 'h1', to: 'h2' }]);
  expect((await plansOf(memoryHistory(log.events, []).events(), {})).map((plan) => plan.course)).toEqual([
    testCourse,
    null,
  ]);
});

it('says of a step that its window closed before the release, and of a plan that all of them had', async () => {
  const log = testLog();
  log.configured();
  const startBefore = new Date(log.nowMs).toISOString();
  const late = { serverId: 'a', from: 'h1', to: 'h2', startBefore };
  log.released([late, { serverId: 'b', from: 'h1', to: 'h2' }]);
  log.pass(60).released([late]);
  log.pass(60).decided('none', [late]);
  const plans = await plansOf(memoryHistory(log.events, []).events(), {});
  expect(plans.map(({ outcome, steps }) => [outcome, ...steps.map(({ state }) => state)])).toEqual([
    ['running', 'outsideWindow', 'waiting'],
    ['outsideWindow', 'outsideWindow'],
    ['outsideWindow', 'outsideWindow'],
  ]);
});
