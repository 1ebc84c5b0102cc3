import { describe, expect, it } from 'vitest';
import { released } from '../testing/released.ts';
import { attemptLog, hostsInEvent, ordersFor } from './attemptLog.ts';

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
    expect(ordersFor(log.state(), id(1), 1)).toEqual({ stopAsked: false, closeAsked: null, ended: false });
    log.aborted(id(1));
    expect(ordersFor(log.state(), id(1), 1)).toMatchObject({ stopAsked: true, closeAsked: null });
    // The cancellation of a task that waits came just after its start.
    log.started({ task: id(2) });
    log.cancelled(id(2));
    expect(ordersFor(log.state(), id(2), 1)).toMatchObject({ stopAsked: true, closeAsked: null });
    log.closed(id(1), 'ada');
    expect(ordersFor(log.state(), id(1), 1)).toMatchObject({ closeAsked: { by: 'ada' }, ended: false });
  });

  it('says how long such moves take, once an attempt has begun and enough of them are known', () => {
    const { log, id } = released();
    const known = [1000, 2000, 3000];
    expect(ordersFor(log.state(), id(1), 1, known).usual).toBeUndefined();
    const { ramMb, diskGb } = log.started({ task: id(1) }).data;
    const expectedMs = 2000 * (ramMb / 1024 + diskGb + 2);
    expect(ordersFor(log.state(), id(1), 1, known).usual).toEqual({ expectedMs, interval: null });
    expect(ordersFor(log.state(), id(1), 1, known.slice(1)).usual).toBeUndefined();
  });

  it('says when another has ended the attempt', () => {
    const { log, id } = released();
    expect(ordersFor(log.state(), 'other', 1)).toMatchObject({ stopAsked: false, ended: true });
    log.started({ task: id(1) });
    log.failed({ task: id(1), errorType: 'NovaClientError', retry: {} });
    expect(ordersFor(log.state(), id(1), 1).ended).toBe(true);
    expect(ordersFor(log.state(), id(1), 2).ended).toBe(false);
  });

  it('concerns both hosts of a move', () => {
    const { log, id } = released();
    expect(hostsInEvent(log.started({ task: id(1) }))).toEqual(['h1', 'h2']);
    expect(hostsInEvent(log.paused())).toEqual([]);
  });
});
