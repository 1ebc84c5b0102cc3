import { randomHistory, testLog } from '@kronos/projections/testing';
import { expect, it, describe as suite } from 'vitest';
import { historyEntry } from './describe.ts';

const unknown = () => null;

suite('an event in words', () => {
  it('says what happened', () => {
    const log = testLog();
    log.configured({}, '1.2.3');
    const planId = log.proposed([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    log.approved(planId, [1]);
    log.rejected(planId, [1, 2]);
    log.dispatched(planId, 2);
    const task = `${planId}-s1`;
    log.started({ task });
    log.observed({ task, migrationId: 17, requestId: null });
    log.failed({ task, retry: { destination: 'h3' } });
    log.completed({ task, attempt: 2, destination: 'h3' }, 30);
    log.skipped({ task });
    log.paused();
    log.resumed();
    log.quarantined('vm1', 60);
    log.quarantined('vm1');
    log.unquarantined('vm1');
    log.cancelled(task);
    log.aborted(task);
    log.evaluationRequested();
    log.decided('none', [], { reason: { code: 'cooldown', text: 'cooling down' }, outcome: 'gated' });
    log.unreadable();
    expect(log.events.map((e) => historyEntry(e, unknown).text)).toEqual([
      expect.stringMatching(/^planner 1\.2\.3 decides from now on with options sha256:/),
      'planned 1 move, waits for approval: by the test',
      `approved step 1 of ${planId}`,
      `rejected steps 1, 2 of ${planId}`,
      `handed 2 moves of ${planId} to the executors`,
      'attempt 1: vm1 from h1 to h2 started',
      'Nova calls it migration 17, request (unknown)',
      'attempt 1: vm1 from h1 to h2 failed, MigrationFailed: MigrationFailed by the test; next on h3',
      'vm1 from h1 to h3 completed after 30.9 s',
      'vm1 from h1 to h2 skipped: dry run of the executor',
      'paused',
      'resumed',
      'quarantined vm1 for 1 min',
      'quarantined vm1 until it is released',
      'released vm1 from quarantine',
      `asked to cancel ${task}`,
      `asked to abort ${task}`,
      'requested an evaluation now',
      'blocked: cooling down',
      'cannot be read by this version: unknown type',
    ]);
  });

  it('names who did it and what it is about', () => {
    const log = testLog();
    const planId = log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    log.started({ task: `${planId}-s1` });
    log.paused('ada');
    expect(log.events.map((e) => historyEntry(e, (id) => (id === 'vm1' ? 'web-1' : null)))).toMatchObject([
      { by: 'planner planner-1', planId, taskId: null, serverId: null },
      {
        by: 'executor executor-1',
        planId,
        taskId: `${planId}-s1`,
        serverId: 'vm1',
        text: 'attempt 1: web-1 from h1 to h2 started',
      },
      { by: 'operator ada', planId: null, sequence: 3, time: '2026-01-05T00:00:00.000Z' },
    ]);
  });

  it('has a word for every event there is', () => {
    for (const stored of randomHistory({ seed: 8, cycles: 300, commands: 0.3, unreadable: 0.01 }))
      expect(historyEntry(stored, unknown).text).not.toMatch(/undefined|NaN|^$/);
  });
});
