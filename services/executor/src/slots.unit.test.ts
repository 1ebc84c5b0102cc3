import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { sampleTask } from '../testing/sample.ts';
import { attemptLog, hostsInEvent, judgeStart, wordOn } from './slots.ts';
import type { Task } from './taskStages.ts';

const caps = { maxConcurrentMigrations: 2, maxOutboundPerHost: 1, maxInboundPerHost: 1, maxConcurrentPerGroup: 1 };

/** A log with a released plan of three moves off different hosts. */
function released() {
  const log = testLog('gpu');
  log.configured();
  const planId = log.released([
    { serverId: 'a', from: 'h1', to: 'h2' },
    { serverId: 'b', from: 'h3', to: 'h4' },
    { serverId: 'c', from: 'h5', to: 'h2' },
  ]);
  log.dispatched(planId, 3);
  const id = (step: number): string => `${planId}-s${step}`;
  const task = (step: number, changes: Partial<Task> = {}): Task => {
    const facts = log.state().tasks.get(id(step))?.step;
    if (facts === undefined) throw new Error('no such step');
    const { delaySeconds: _, ...known } = facts;
    return sampleTask({ ...known, planId, destination: facts.to, aggregate: 'gpu', ...changes });
  };
  return { log, id, task };
}
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

describe('what the log says about an attempt', () => {
  it('follows it from waiting to its end', () => {
    const { log, id } = released();
    const now = () => attemptLog(log.state(), id(1), 1);
    expect(now()).toEqual({ kind: 'waiting' });
    log.started({ task: id(1) });
    expect(now()).toMatchObject({ kind: 'started', migrationId: null });
    log.observed({ task: id(1), migrationId: 77, requestId: 'req' });
    expect(now()).toMatchObject({ kind: 'started', migrationId: 77, requestId: 'req' });
    log.completed({ task: id(1) });
    expect(now()).toEqual({ kind: 'ended', next: null });
  });

  it('names the next attempt until that one begins', () => {
    const { log, id } = released();
    log.started({ task: id(1) });
    log.failed({ task: id(1), retry: { destination: 'h4' } });
    expect(attemptLog(log.state(), id(1), 1)).toMatchObject({ kind: 'ended', next: { attempt: 2, destination: 'h4' } });
    expect(attemptLog(log.state(), id(1), 2)).toEqual({ kind: 'waiting' });
    log.started({ task: id(1), attempt: 2, destination: 'h4' });
    expect(attemptLog(log.state(), id(1), 1)).toEqual({ kind: 'ended', next: null });
    expect(attemptLog(log.state(), id(1), 2)).toMatchObject({ kind: 'started' });
  });

  it('knows nothing of a task that was not released, nor of an attempt that nobody asked for', () => {
    const { log, id } = released();
    expect(attemptLog(log.state(), 'other-s1', 1)).toEqual({ kind: 'unknown' });
    expect(attemptLog(log.state(), id(1), 2)).toEqual({ kind: 'unknown' });
  });

  it('says when a person asked for the move to end', () => {
    const { log, id } = released();
    expect(wordOn(log.state(), id(1), 1)).toEqual({ stopAsked: false, closeAsked: null, ended: false });
    log.aborted(id(1));
    expect(wordOn(log.state(), id(1), 1)).toMatchObject({ stopAsked: true, closeAsked: null });
    // The cancellation of a task that waits came just after its start.
    log.started({ task: id(2) });
    log.cancelled(id(2));
    expect(wordOn(log.state(), id(2), 1)).toMatchObject({ stopAsked: true, closeAsked: null });
    log.closed(id(1), 'ada');
    expect(wordOn(log.state(), id(1), 1)).toMatchObject({ closeAsked: { by: 'ada' }, ended: false });
  });

  it('says how long such moves take, once an attempt has begun and enough of them are known', () => {
    const { log, id } = released();
    const known = [1000, 2000, 3000];
    expect(wordOn(log.state(), id(1), 1, known).usual).toBeUndefined();
    const { ramMb, diskGb } = log.started({ task: id(1) }).data;
    const expectedMs = 2000 * (ramMb / 1024 + diskGb + 2);
    expect(wordOn(log.state(), id(1), 1, known).usual).toEqual({ expectedMs, interval: null });
    expect(wordOn(log.state(), id(1), 1, known.slice(1)).usual).toBeUndefined();
  });

  it('says when another has ended the attempt', () => {
    const { log, id } = released();
    expect(wordOn(log.state(), 'other', 1)).toMatchObject({ stopAsked: false, ended: true });
    log.started({ task: id(1) });
    log.failed({ task: id(1), errorType: 'NovaClientError', retry: {} });
    expect(wordOn(log.state(), id(1), 1).ended).toBe(true);
    expect(wordOn(log.state(), id(1), 2).ended).toBe(false);
  });

  it('concerns both hosts of a move', () => {
    const { log, id } = released();
    expect(hostsInEvent(log.started({ task: id(1) }))).toEqual(['h1', 'h2']);
    expect(hostsInEvent(log.paused())).toEqual([]);
  });
});
