import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { sampleTask } from '../testing/sample.ts';
import { uselessness } from './alternates.ts';
import { judgeStart } from './startRule.ts';

const MOVE = { serverId: 'a', from: 'h1', to: 'h2', alternates: ['h3'] };
const caps = { maxConcurrentMigrations: 9, maxOutboundPerHost: 9, maxInboundPerHost: 9, maxConcurrentPerGroup: 9 };

/** A released plan whose first move was refused by its destination and is to go to its alternate. Shares of VMs are .08. */
function refused(
  hosts: Record<string, number>,
  more: { readonly phase?: 'spread' | 'evacuate'; readonly code?: string; readonly others?: readonly object[] } = {},
) {
  const log = testLog();
  log.configured();
  const { phase = 'spread', code = 'capacity', others = [] } = more;
  const loads = {
    policies: [{ policy: 'cpu', weight: 1, threshold: 0.2 }],
    hosts: Object.entries(hosts).map(([host, value]) => ({ host, values: [value] })),
  };
  const moves = [{ ...MOVE, phase }, ...(others as (typeof MOVE)[])];
  const plan = log.decided('released', moves, { loads });
  log.failed({
    task: `${plan}-s1`,
    errorType: 'PreFlightError',
    reason: { code, text: 'by the test' },
    retry: { destination: 'h3' },
    started: false,
  });
  const state = log.state();
  const task = state.tasks.get(`${plan}-s1`);
  if (task === undefined) throw new Error('no task');
  return { state, task, nowMs: log.nowMs };
}
const useless = (...given: Parameters<typeof refused>) => {
  const { state, task } = refused(...given);
  return uselessness(state, task);
};

describe('an alternate', () => {
  it('is used while the move to it lowers the imbalance', () => {
    expect(useless({ h1: 0.5, h2: 0.1, h3: 0.2 })).toBeNull();
  });

  it('is not used when it does not, and the reason has both figures', () => {
    expect(useless({ h1: 0.5, h2: 0.1, h3: 0.5 })).toBe(
      'a move to h3 would not lower the combined imbalance: 0.400 without it, 0.480 with it',
    );
  });

  it('is judged without the destination that an operator disabled', () => {
    // While h2 is the lowest host, the move changes nothing, because h9 is as high as h1. Without h2, it raises the lowest.
    const hosts = { h1: 0.4, h9: 0.4, h2: 0, h3: 0.1 };
    expect(useless(hosts, { code: 'capacity' })).toContain('would not lower');
    expect(useless(hosts, { code: 'host-disabled' })).toBeNull();
    // As an earlier version recorded it.
    expect(useless(hosts, { code: 'destination-disabled' })).toBeNull();
  });

  it('is used by an evacuation, which only has to leave, and by a move that makes room for another one', () => {
    expect(useless({ h1: 0.1, h2: 0.1, h3: 0.5 }, { phase: 'evacuate' })).toBeNull();
    const others = [{ serverId: 'b', from: 'h4', to: 'h1', alternates: [], dependsOn: [1] }];
    expect(useless({ h1: 0.5, h2: 0.1, h3: 0.5 }, { others })).toBeNull();
  });

  it('is not used when its first destination was the only thing known', () => {
    const { state, task } = refused({ h1: 0.5, h2: 0.1, h3: 0.2 });
    const plans = new Map([...state.plans].map(([id, { loads: _, ...plan }]) => [id, plan]));
    expect(uselessness({ ...state, plans }, task)).toBe('the plan does not say what its hosts carry');
  });

  it('ends the attempt before anything is asked of Nova; a further alternate may follow, and no host is charged', () => {
    const { state, task, nowMs } = refused({ h1: 0.5, h2: 0.1, h3: 0.5 });
    const message = sampleTask({
      taskId: task.id,
      planId: task.planId,
      attempt: 2,
      destination: 'h3',
      aggregate: 'gpu',
    });
    expect(judgeStart(state, message, nowMs, { caps })).toMatchObject({
      kind: 'end',
      failure: {
        errorType: 'Cancelled',
        reason: { code: 'no-longer-useful' },
        fault: 'destination',
        hostAtFault: null,
      },
    });
  });
});
