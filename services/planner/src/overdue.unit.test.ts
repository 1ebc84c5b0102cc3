import { parseMessage } from '@kronos/contracts';
import { fold } from '@kronos/projections';
import { TEST_START_MS, testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { overdueResults } from './overdue.ts';

const by = { service: 'planner', instance: 'p1', version: '1' } as const;
const MINUTE = 60_000;

describe('a task that an operator closed and no executor ended', () => {
  function closed(more: { readonly force?: true } = { force: true }) {
    const log = testLog();
    log.configured();
    const task = `${log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }])}-s1`;
    log.started({ task });
    log.closed(task, 'ada', more);
    return { log, task };
  }

  it('is not ended by a planner without force: no planner sees whether Nova works on its server', () => {
    expect(overdueResults(closed({}).log.state(), by, TEST_START_MS + 60 * MINUTE)).toEqual([]);
  });

  it('is ended by a planner after a minute, once', () => {
    const { log, task } = closed();
    const [result, ...more] = overdueResults(log.state(), by, TEST_START_MS + MINUTE);
    expect(more).toEqual([]);
    expect(result).toMatchObject({
      id: `migration.ended:${task}:1`,
      data: { taskId: task, errorType: 'Cancelled', reason: { code: 'closed' }, started: true, next: null },
    });
    if (result === undefined) throw new Error('no result');
    expect(parseMessage(result)).toMatchObject({ ok: true });
    const sequence = log.events.length + 1;
    const state = fold([...log.events, { sequence, storedAt: TEST_START_MS, event: result }]);
    expect(state.aggregates.get('gpu')?.tasks.get(task)).toMatchObject({ status: 'failed', slot: null });
  });

  it('is left to the executor before', () => {
    expect(overdueResults(closed().log.state(), by, TEST_START_MS + MINUTE - 1)).toEqual([]);
  });

  it('is not ended again when the executor was first', () => {
    const { log, task } = closed();
    log.failed({ task, errorType: 'Cancelled' });
    expect(overdueResults(log.state(), by, TEST_START_MS + 2 * MINUTE)).toEqual([]);
  });
});
