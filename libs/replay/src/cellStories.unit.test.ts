import { DAY_MS, type LogEventOf, type ObjectRef, type StoredEvent, timeOf } from '@kronos/contracts';
import { type TestLog, testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { memoryHistory } from '../testing/index.ts';
import { type CellStory, findCellStories } from './cellStories.ts';

type Proposed = LogEventOf<'plan.proposed'>['data'];
const MOVE = { serverId: 'vm1', from: 'h1', to: 'n1' };
const OTHER = { serverId: 'vm2', from: 'h1', to: 'n1' };

const story = async (log: TestLog, id = 'vm1', untilMs = log.nowMs): Promise<CellStory | undefined> =>
  (await findCellStories(memoryHistory(log.events, []), (serverId) => serverId === id, untilMs))[0];
const types = (events: readonly StoredEvent[] = []): string[] => events.map(({ event }) => event.type);
const manual = (data: Proposed): Proposed => ({
  ...data,
  steps: data.steps.map((step) =>
    step.cell === undefined ? step : { ...step, cell: { ...step.cell, confirm: 'manual' as const } },
  ),
});

function proposed(change?: (data: Proposed) => Proposed) {
  const log = testLog();
  log.configured();
  const plan = log.cellsProposed([MOVE, OTHER], change === undefined ? {} : { change });
  return { log, plan, task: `${plan}-s1` };
}

describe('a plan between cells, as it concerns one VM', () => {
  it('waits for approval, then expires', async () => {
    const { log, plan } = proposed();
    expect(await story(log)).toMatchObject({ planId: plan, to: 'new', state: 'waitsForApproval', events: [] });
    log.pass(3600);
    expect((await story(log))?.state).toBe('waitsForApproval');
    log.pass(1);
    expect((await story(log))?.state).toBe('expired');
    log.approved(plan);
    expect(await story(log)).toMatchObject({ state: 'expired', events: [] });
  });

  it('is rejected for it, or approved without it', async () => {
    const { log, plan } = proposed();
    log.rejected(plan, [2]);
    expect((await story(log))?.state).toBe('waitsForApproval');
    expect((await story(log, 'vm2'))?.state).toBe('rejected');
    log.approved(plan);
    expect((await story(log))?.state).toBe('approved');
    expect((await story(log, 'vm2'))?.state).toBe('rejected');
    const other = proposed();
    other.log.approved(other.plan, [2]);
    expect((await story(other.log))?.state).toBe('leftOut');
  });

  it('is not approved by an approval after its window has closed', async () => {
    const log = testLog();
    log.configured();
    const startBefore = new Date(log.nowMs + 60_000).toISOString();
    const plan = log.cellsProposed([{ ...MOVE, startBefore }, OTHER]);
    log.pass(60).approved(plan);
    expect((await story(log))?.state).toBe('windowClosed');
    expect((await story(log, 'vm2'))?.state).toBe('approved');
    expect([...log.state().tasks.keys()]).toEqual([`${plan}-s2`]);
  });

  it('is followed from its approval to its end, with what people asked', async () => {
    const { log, plan, task } = proposed(manual);
    log.approved(plan);
    log.started({ task });
    log.verifying({ task });
    expect((await story(log))?.state).toBe('approved');
    log.pass(60).verified({ task });
    expect((await story(log))?.state).toBe('waitsForPerson');
    log.pass(60).settleAsked('revert', task);
    expect((await story(log))?.state).toBe('approved');
    log.settleRequested('revert', { task }, 'operator');
    log.failed({ task });
    const found = await story(log);
    expect(found?.state).toBe('ended');
    expect(types(found?.events)).toEqual([
      'plan.approved',
      'migration.started',
      'migration.verifying',
      'migration.verified',
      'migration.revertAsked',
      'migration.revertRequested',
      'migration.failed',
    ]);
    expect(types((await story(log, 'vm2'))?.events)).toEqual(['plan.approved']);
  });

  it('does not wait for a person when the executor confirms it', async () => {
    const { log, plan, task } = proposed();
    log.approved(plan);
    log.started({ task });
    log.verifying({ task });
    log.verified({ task });
    expect((await story(log))?.state).toBe('approved');
  });

  it('says why a VM stays, and what a dry run would do', async () => {
    const reason = { code: 'cell-volumes', text: 'Its volumes are not shared.' };
    const { log } = proposed((data) => ({
      ...data,
      release: 'dryRun',
      steps: data.steps.slice(0, 1),
      refused: [{ serverId: 'vm2', serverName: 'two', host: 'h1', reason }],
    }));
    expect(await story(log)).toMatchObject({ state: 'dryRun', step: { to: 'n1' } });
    expect(await story(log, 'vm2')).toMatchObject({ serverName: 'two', state: 'stays', step: null, reason });
  });

  it('has its state of a past moment; the newest plan comes first; a VM that no plan names has none', async () => {
    const { log, plan, task } = proposed();
    const thenMs = log.pass(5).nowMs;
    log.pass(5).approved(plan);
    log.started({ task });
    log.failed({ task });
    log.pass(5);
    const again = log.cellsProposed([MOVE]);
    expect(await story(log, 'vm1', thenMs)).toMatchObject({ planId: plan, state: 'waitsForApproval' });
    const all = await findCellStories(memoryHistory(log.events, []), (id) => id === 'vm1', log.nowMs);
    expect(all.map(({ planId }) => planId)).toEqual([again, plan]);
    expect(all[1]?.events.every((stored) => timeOf(stored) >= thenMs)).toBe(true);
    expect(await story(log, 'vm9')).toBeUndefined();
  });

  it('is left out once it is older than 30 days', async () => {
    const { log, plan } = proposed();
    const proposedMs = log.nowMs;
    expect(await story(log, 'vm1', proposedMs + 29 * DAY_MS)).toMatchObject({ planId: plan });
    expect(await story(log, 'vm1', proposedMs + 31 * DAY_MS)).toBeUndefined();
  });

  it('reads no details of a plan that makes room', async () => {
    const { log } = proposed();
    const capacity = { wanted: 2, now: 1, after: 2, proven: true };
    const details: ObjectRef = { bucket: 'b', object: 'd', digest: 'sha256:d', bytes: 1, storedBytes: 1 };
    log.cellsProposed([{ ...MOVE, to: 'h2' }], { capacity: true, change: (data) => ({ ...data, capacity, details }) });
    const history = { ...memoryHistory(log.events, []), details: () => expect.fail('read details') };
    expect(await findCellStories(history, (id) => id === 'vm1', log.nowMs)).toHaveLength(1);
  });
});
