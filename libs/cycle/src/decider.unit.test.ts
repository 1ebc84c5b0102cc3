import { defaultEngineOptions } from '@kronos/contracts';
import { cellsSettings, snapshotOf } from '@kronos/placement/testing';
import { aggregateState, initialLogState } from '@kronos/projections';
import { afterAll, describe, expect, it } from 'vitest';
import { type CycleInput, runCycle } from './cycle.ts';
import { decider } from './decider.ts';
import { planRequest, runProposal } from './proposals.ts';

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

  it('answers requests for plans as one without', async () => {
    const here = { policies: {}, hosts: { n: {} }, vms: {}, snapshot: { purpose: 'cells' as const } };
    const cells = {
      commandId: 'c1',
      asked: { from: ['gpu'], to: 'new', flavorMap: {}, servers: null, project: null, limit: null },
      map: { gpu: 'cell1', new: 'cell2' },
      settings: cellsSettings,
      others: [{ ...snapshotOf(here), aggregate: 'new' }],
      metadata: {},
      flavors: {},
      facts: Object.fromEntries(['v1', 'v2', 'v3'].map((id) => [id, { volumes: 0, ports: [] }])),
      unread: [],
    };
    const shape = { name: 'm1', resources: { VCPU: 1 }, requiredTraits: [], forbiddenTraits: [] };
    const capacity = { commandId: 'c2', asked: { shape, count: 10_000, maxMoves: 5 } };
    const { stateOf, options } = { stateOf: () => input.state, options: input.options };
    const moves: number[] = [];
    for (const more of [
      { purpose: 'cells' as const, cells },
      { purpose: 'capacity' as const, capacity },
    ]) {
      const request = planRequest({ ...input.snapshot, aggregate: 'gpu', ...more });
      if (request === null) throw new Error('there is no request');
      const asked = { request, stateOf, options, refusal: null };
      const answer = await threads.proposal(asked);
      expect(answer).toEqual(runProposal(asked));
      moves.push(answer.decision.steps.length);
    }
    expect(moves[0]).toBeGreaterThan(0);
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
