import {
  type CellsReading,
  type CompleteEngineOptions,
  defaultEngineOptions,
  proposalDecisionSchema,
} from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { cellsSettings, type Sketch, snapshotOf } from '../../testing/index.ts';
import { emptyMemory, type Memory } from '../snapshot/memory.ts';
import { decideCells } from './decideCells.ts';

type World = {
  readonly vms?: Sketch['vms'];
  readonly groups?: Sketch['groups'];
  readonly asked?: Partial<CellsReading['asked']>;
  readonly cells?: Partial<CellsReading>;
  readonly options?: Partial<CompleteEngineOptions>;
  readonly memory?: Partial<Memory>;
  /** Of the target. */
  readonly there?: Partial<Memory>;
  readonly problems?: Sketch['snapshot'];
};

const settings: CellsReading['settings'] = {
  ...cellsSettings,
  downtimeFixedSeconds: 30,
  downtimeSecondsPerGib: 10,
  confirm: 'manual',
  verifySeconds: 45,
  approvalTtlSeconds: 600,
  planTtlSeconds: 7200,
};

/** Aggregate `old` of cell 1, with two hosts and the servers; aggregate `new` of cell 2. */
function decide(world: World = {}) {
  const { vms = { a: { host: 'o1' }, b: { host: 'o1' }, c: { host: 'o2' } }, groups = {} } = world;
  const { policies: _, ...home } = { policies: {}, hosts: { o1: {}, o2: {} }, vms, groups };
  const snapshot = snapshotOf({ policies: {}, ...home, snapshot: { aggregate: 'old', purpose: 'cells' } });
  const other = snapshotOf({
    policies: {},
    hosts: { n1: {}, n2: {} },
    vms: {},
    snapshot: { aggregate: 'new', purpose: 'cells', ...world.problems },
  });
  const options = { ...defaultEngineOptions, ...world.options };
  const cells: CellsReading = {
    commandId: 'c1',
    asked: { from: ['old'], to: 'new', flavorMap: {}, servers: null, project: null, limit: null, ...world.asked },
    map: { old: 'cell1', new: 'cell2' },
    settings,
    others: [other],
    metadata: {},
    flavors: {},
    facts: Object.fromEntries(Object.keys(vms).map((id) => [id, { volumes: 0, ports: [] }])),
    unread: [],
    ...world.cells,
  };
  const decision = decideCells({
    planId: 'p',
    snapshot: { ...snapshot, cells },
    memory: { ...emptyMemory, ...world.memory },
    options,
    others: { new: { memory: { ...emptyMemory, ...world.there }, options } },
  });
  return proposalDecisionSchema.parse(decision);
}

describe('the decision about a request for moves between cells', () => {
  it('acts: gives steps of phase cell, numbered in the order in which they start', () => {
    const decision = decide({ groups: { g: { policy: 'soft-anti-affinity', members: ['c', 'x'] } } });
    expect(decision).toMatchObject({ outcome: 'planned', reason: { code: 'planned' }, refused: [], left: 0 });
    expect(decision.steps.map(({ step, taskId, serverId, from }) => [step, taskId, serverId, from])).toEqual([
      [1, 'p-s1', 'c', 'o2'],
      [2, 'p-s2', 'a', 'o1'],
      [3, 'p-s3', 'b', 'o1'],
    ]);
    expect(decision.steps[0]).toMatchObject({
      phase: 'cell',
      dependsOn: [],
      groups: [{ id: 'g', policy: 'soft-anti-affinity' }],
      why: { code: 'leaves-cell' },
      cell: {
        method: 'migrate',
        target: 'new',
        fromCell: 'cell1',
        toCell: 'cell2',
        confirm: 'manual',
        verifySeconds: 45,
      },
    });
  });

  it('acts: what cannot move is named and counted beside what can', () => {
    const vms = { a: { host: 'o1' }, b: { host: 'o1', set: { locked: true } }, c: { host: 'o2' } };
    const facts = { a: { volumes: 1, ports: [] }, b: { volumes: 0, ports: [] }, c: { volumes: 0, ports: [] } };
    const decision = decide({ vms, cells: { facts } });
    expect(decision.steps.map(({ serverId }) => serverId)).toEqual(['c']);
    expect(decision.refused.map(({ serverId, reason }) => [serverId, reason.code])).toEqual([
      ['a', 'cell-volumes'],
      ['b', 'vm-locked'],
    ]);
    expect(decision.refusals).toEqual({ 'cell-volumes': 1, 'vm-locked': 1 });
  });

  it('acts: a pause, a cooldown and a plan that waits hold back only what they are about', () => {
    const waitingPlan = {
      planId: 'old-1',
      proposedAtMs: Date.parse('2026-01-01T11:59:00.000Z'),
      approvalTtlSeconds: 900,
    };
    const lastRelease = { planId: 'old-0', atMs: Date.parse('2026-01-01T11:59:00.000Z') };
    expect(decide({ memory: { waitingPlan, lastRelease } }).outcome).toBe('planned');
  });

  it('acts: the end of a window is the last start of each step', () => {
    const { steps } = decide({ options: { windows: ['11:00-14:00'] } });
    expect(steps.map(({ startBefore }) => startBefore)).toEqual(Array(3).fill('2026-01-01T14:00:00.000Z'));
  });

  const paused = { atMs: Date.parse('2026-01-01T11:00:00.000Z'), by: 'ada' };
  const cases: [string, World, string, string][] = [
    ['moves between cells are off', { cells: { map: {} } }, 'cells-off', 'old'],
    ['the target is in no cell', { cells: { map: { old: 'cell1' } } }, 'cells-off', 'new'],
    ['the aggregate is paused', { memory: { paused } }, 'paused', 'old'],
    ['the target is paused', { there: { paused } }, 'paused', 'new'],
    [
      'an event about the target is not understood',
      { there: { unreadable: { sequence: 7, type: 'x', version: 2 } } },
      'unreadable-event',
      'new',
    ],
    [
      'the target could not be observed',
      { problems: { problems: [{ code: 'servers-unknown', text: 'no answer' }] } },
      'snapshot-problems',
      'new',
    ],
  ];
  it.each(cases)('refuses: %s', (_, world, code, aggregate) => {
    expect(decide(world)).toMatchObject({ outcome: 'gated', steps: [], reason: { code, detail: { aggregate } } });
  });

  it.each([
    [{ from: ['olt'] }, ['olt']],
    [{ from: ['old', 'n1'] }, ['n1']],
    [{ servers: ['a', 'ghost'] }, ['ghost']],
  ])('refuses: names that are not there: %j', (asked, names) => {
    expect(decide({ asked })).toMatchObject({
      outcome: 'gated',
      steps: [],
      reason: { code: 'cells-unknown-name', detail: { names } },
    });
  });

  it('refuses: outside its window a plan is shown and not released', () => {
    const decision = decide({ options: { windows: ['22:00-23:00'] } });
    expect(decision).toMatchObject({ outcome: 'planned', reason: { code: 'outside-window' } });
    expect(decision.steps).toHaveLength(3);
  });

  it('does nothing: without facts no server can be judged', () => {
    const unread = [{ code: 'ports-unknown', text: 'the ports could not be read' }];
    const decision = decide({ cells: { facts: {}, unread } });
    expect(decision).toMatchObject({ outcome: 'quiet', reason: { code: 'cells-none' }, warnings: unread });
    expect(decision.refusals).toEqual({ 'cell-facts-unknown': 3 });
  });

  it('does nothing: more than the limit is left for the next plan', () => {
    expect(decide({ asked: { limit: 2 } })).toMatchObject({ outcome: 'planned', left: 1 });
  });
});
