import { describe, expect, it } from 'vitest';
import { released } from '../testing/released.ts';
import { judgeStart } from './startRule.ts';
import type { Task } from './taskFacts.ts';

const caps = { maxConcurrentMigrations: 2, maxOutboundPerHost: 1, maxInboundPerHost: 1, maxConcurrentPerGroup: 1 };

const tentative = (task: Task) => ({ taskId: task.taskId, attempt: task.attempt, destination: task.destination });

describe('the start of a task', () => {
  it('is allowed with free caps', () => {
    const { log, task } = released();
    expect(judgeStart(log.state(), task(1), log.nowMs, { caps })).toEqual({ kind: 'start' });
  });

  it('counts what this process is about to start like a slot', () => {
    const { log, task } = released();
    const start = judgeStart(log.state(), task(3), log.nowMs, { caps, soon: [tentative(task(1))] });
    expect(start).toMatchObject({ kind: 'wait', code: 'max_inbound_per_host' });
    const both = [tentative(task(1)), tentative(task(2))];
    expect(judgeStart(log.state(), task(3), log.nowMs, { caps, soon: both })).toMatchObject({
      code: 'max_concurrent_migrations',
    });
  });

  it('counts a start once when the log has it already', () => {
    const { log, id, task } = released();
    log.started({ task: id(1) });
    const start = judgeStart(log.state(), task(2), log.nowMs, { caps, soon: [tentative(task(1))] });
    expect(start).toEqual({ kind: 'start' });
  });

  it('is overtaken when the log has it started or ended', () => {
    const { log, id, task } = released();
    log.started({ task: id(1) });
    expect(judgeStart(log.state(), task(1), log.nowMs, { caps })).toEqual({ kind: 'overtaken' });
    log.completed({ task: id(1) });
    expect(judgeStart(log.state(), task(1), log.nowMs, { caps })).toEqual({ kind: 'overtaken' });
  });

  it('ends what an operator has cancelled', () => {
    const { log, id, task } = released();
    log.cancelled(id(1));
    expect(judgeStart(log.state(), task(1), log.nowMs, { caps })).toMatchObject({
      kind: 'end',
      failure: { errorType: 'Cancelled', reason: { code: 'cancelled' }, fault: 'none' },
    });
  });

  it('takes the next alternate when the breaker has the destination out', () => {
    const { log, id, task } = released();
    for (let i = 0; i < 3; i += 1) {
      log.started({ task: id(2), attempt: i + 1, destination: 'h2' });
      log.failed({ task: id(2), attempt: i + 1, destination: 'h2', hostAtFault: 'h2', retry: { destination: 'h2' } });
    }
    expect(judgeStart(log.state(), task(1), log.nowMs, { caps })).toMatchObject({
      kind: 'end',
      failure: { reason: { code: 'host-broken' }, fault: 'destination', hostAtFault: null },
    });
  });

  it('waits behind an event that this version cannot read: it may be a word of a person', () => {
    const { log, task } = released();
    log.unreadable();
    expect(judgeStart(log.state(), task(1), log.nowMs, { caps })).toMatchObject({
      kind: 'wait',
      code: 'unreadable-event',
    });
  });
});
