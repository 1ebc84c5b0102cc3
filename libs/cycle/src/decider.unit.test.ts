import { defaultEngineOptions } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import { aggregateState, initialLogState } from '@kronos/projections';
import { afterAll, describe, expect, it } from 'vitest';
import { type CycleInput, runCycle } from './cycle.ts';
import { decider } from './decider.ts';

const input: CycleInput = {
  snapshot: snapshotOf({
    policies: { cpu: { threshold: 0.1 } },
    hosts: { a: {}, b: {}, c: {} },
    vms: { v1: { host: 'a', w: { cpu: 0.3 } }, v2: { host: 'a', w: { cpu: 0.2 } }, v3: { host: 'b', w: { cpu: 0.2 } } },
  }),
  state: aggregateState(initialLogState(), 'gpu'),
  options: { ...defaultEngineOptions, cooldownSeconds: 0 },
};

describe('a decider with threads', () => {
  const threads = decider(2, 0);
  afterAll(() => threads.close());

  it('decides as one without', async () => {
    const decided = await threads.cycle(input);
    expect(decided).toEqual(runCycle(input));
    expect(decided.decision.outcome).toBe('planned');
  });

  it('says when it begins with a cycle: after it has decided the one before', async () => {
    const said: string[] = [];
    const one = async (name: string): Promise<void> => {
      await threads.cycle(input, () => said.push(`${name} begins`));
      said.push(`${name} ends`);
    };
    await Promise.all([one('first'), one('second')]);
    expect(said.filter((each) => each.startsWith('first'))).toEqual(['first begins', 'first ends']);
    expect(said.indexOf('second begins')).toBeGreaterThan(said.indexOf('first begins'));
    expect(said.at(-1)).toBe('second ends');
  });

  it('reports what went wrong, and goes on', async () => {
    const broken = { ...input, snapshot: { ...input.snapshot, hosts: null } } as unknown as CycleInput;
    await expect(threads.cycle(broken)).rejects.toThrow('null');
    expect(await threads.cycle(input)).toEqual(runCycle(input));
  });

  it('rejects what is open when it is closed, and starts again', async () => {
    const open = threads.cycle(input);
    await Promise.all([threads.close(), expect(open).rejects.toThrow("the planner's thread ended")]);
    expect(await threads.cycle(input)).toEqual(runCycle(input));
  });
});
