import { defaultEngineOptions, iso } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { drainTime, holdsOf, hostDrains } from './drains.ts';

const MINUTE = 60_000;
const move = { expectedMs: 2 * MINUTE, interval: { lowMs: MINUTE, highMs: 4 * MINUTE }, measured: true };
const moves = (n: number) => Array.from({ length: n }, () => move);
const options = { ...defaultEngineOptions, cooldownSeconds: 600, settleSeconds: 120, evaluationIntervalSeconds: 60 };

describe('the time of a drain', () => {
  it('is that of its moves one after the other, and of the wait for a snapshot', () => {
    expect(drainTime(moves(3), 10, options)).toEqual({
      plans: 1,
      expectedMs: 6.5 * MINUTE,
      interval: { lowMs: 3 * MINUTE, highMs: 13 * MINUTE },
      measured: true,
    });
  });

  it('counts the cooldown between plans, or the time after the last move where that is longer or evacuation ignores the cooldown', () => {
    // The first two plans: 4 min of moves at the expected pace, and 2 min after them, within the cooldown of 10 min.
    expect(drainTime(moves(5), 2, options)).toEqual({
      plans: 3,
      expectedMs: (10 + 10 + 2 + 1.5) * MINUTE,
      interval: { lowMs: (10 + 10 + 1) * MINUTE, highMs: (10 + 10 + 4 + 3) * MINUTE },
      measured: true,
    });
    expect(drainTime(moves(5), 2, { ...options, evacuationIgnoresCooldown: true })).toEqual({
      plans: 3,
      expectedMs: (6 + 6 + 2 + 1.5) * MINUTE,
      interval: { lowMs: (4 + 4 + 1) * MINUTE, highMs: (10 + 10 + 4 + 3) * MINUTE },
      measured: true,
    });
  });

  it('has no interval where a move has none, is not measured where a move is not, and unknown where no plan may have a move', () => {
    const assumed = { ...move, interval: null, measured: false };
    expect(drainTime([move, assumed], 10, options)).toMatchObject({ interval: null, measured: false });
    expect(drainTime(moves(1), 0, options)).toBeNull();
  });

  it('is none where nothing is to be moved', () => {
    const none = { plans: 0, expectedMs: 0, interval: { lowMs: 0, highMs: 0 }, measured: true };
    expect([drainTime([], 10, options), drainTime([], 0, options)]).toEqual([none, none]);
  });
});

describe('a host that is disabled', () => {
  const snapshot = snapshotOf({
    policies: {},
    hosts: { h1: { disabled: true }, h2: {} },
    vms: { vm1: { host: 'h1' } },
  });
  const disabledBefore = (byKronos: boolean) => {
    const log = testLog();
    log.configured();
    const drain = log.drainAsked('h1').data.commandId;
    log.hostDisabled(drain, 'h1', byKronos);
    return hostDrains({ snapshot, state: log.state(), hosts: ['h1'], paces: [] })[0]?.disabled;
  };

  it('was disabled before the drain, unless the drain of Kronos disabled it', () => {
    expect(disabledBefore(true)).toBeNull();
    expect(disabledBefore(false)).not.toBeNull();
  });
});

describe('a drain of a host', () => {
  const snapshot = snapshotOf({
    policies: {},
    hosts: { h1: { disabled: true }, h2: {} },
    vms: { vm1: { host: 'h1' } },
  });

  it('was asked for in another aggregate: the end of it enables the host', () => {
    const log = testLog('old');
    const drain = log.drainAsked('h1').data.commandId;
    log.hostDisabled(drain, 'h1');
    log.about('gpu').configured();
    expect(hostDrains({ snapshot, state: log.state('gpu'), hosts: ['h1'], paces: [] })[0]?.disabled).toBeNull();
  });

  it('is blocked while two aggregates in scope have it: neither is planned', () => {
    const log = testLog();
    log.configured();
    const both = snapshot.hosts.map((host) => ({ ...host, otherAggregates: host.name === 'h1' ? ['cpu'] : [] }));
    const of = (host: string, hosts = both) =>
      hostDrains({ snapshot: { ...snapshot, hosts }, state: log.state(), hosts: [host], paces: [] })[0]?.blockedBy;
    expect(of('h1')).toBe('h1 is in agg and in cpu, all in scope: no VM of it moves until it is in one of them');
    expect([of('h2'), of('h1', snapshot.hosts)]).toEqual([null, null]);
  });
});

describe('what the moves of a drain wait for', () => {
  it('is the answer to a plan that waits', () => {
    const log = testLog();
    log.configured();
    const id = log.proposed([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    const snapshot = { ...snapshotOf({ policies: {}, hosts: { h1: {} }, vms: {} }), time: iso(log.nowMs) };
    expect(hostDrains({ snapshot, state: log.state(), hosts: ['h1'], paces: [] })[0]?.holds).toEqual([
      `No plan is made until ${id} is approved, rejected or expired`,
    ]);
  });

  // 2026-01-05 is a Monday.
  const nowMs = Date.UTC(2026, 0, 5, 12);

  it('is a closed window, unless evacuation ignores windows, and an approval', () => {
    const closed = { ...defaultEngineOptions, windows: ['Sat 02:00-05:00'] };
    expect(holdsOf(closed, nowMs)).toEqual(['The moves are blocked by the window until 2026-01-10T02:00:00.000Z']);
    expect(holdsOf({ ...closed, evacuationIgnoresWindows: true }, nowMs)).toEqual([]);
    expect(holdsOf({ ...defaultEngineOptions, approval: 'manual' }, nowMs)).toEqual([
      'Each plan waits for kronos approve',
    ]);
  });

  it('is nothing within a window', () => {
    expect(holdsOf({ ...defaultEngineOptions, windows: ['Mon 10:00-14:00'] }, nowMs)).toEqual([]);
    expect(holdsOf(defaultEngineOptions, nowMs)).toEqual([]);
  });
});
