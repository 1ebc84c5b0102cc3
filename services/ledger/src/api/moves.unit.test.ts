import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { hostsOf, movesOf } from './moves.ts';

function recorded() {
  const log = testLog('gpu');
  log.configured();
  const planId = log.at(1).released([
    { serverId: 'vm1', from: 'h1', to: 'h2' },
    { serverId: 'vm2', from: 'h1', to: 'h3' },
  ]);
  return {
    log,
    planId,
    all: (limit = 10) => movesOf(log.events.toReversed(), (aggregate) => aggregate === 'gpu', limit),
  };
}

describe('the moves', () => {
  it('say who moved where, when, how long it took and how it ended; the newest is the first', () => {
    const { log, planId, all } = recorded();
    log.at(10).started({ task: `${planId}-s1` });
    log.at(20).started({ task: `${planId}-s2` });
    log.at(70).completed({ task: `${planId}-s1` });
    expect(all()).toMatchObject([
      {
        serverId: 'vm2',
        serverName: 'name-of-vm2',
        from: 'h1',
        to: 'h3',
        outcome: 'underWay',
        endedAt: null,
        durationMs: null,
      },
      { serverId: 'vm1', from: 'h1', to: 'h2', outcome: 'completed', durationMs: 60_000 },
    ]);
    expect(all(1)).toHaveLength(1);
  });

  it('tell a failure that is tried again from one that is final, and what never started', () => {
    const { log, planId, all } = recorded();
    log.at(10).started({ task: `${planId}-s1` });
    log.at(15).failed({ task: `${planId}-s1`, retry: {} });
    log.at(20).skipped({ task: `${planId}-s2` });
    expect(all()).toMatchObject([
      { serverId: 'vm2', outcome: 'skipped', startedAt: null, durationMs: null },
      { serverId: 'vm1', outcome: 'retried', durationMs: 5_000 },
    ]);
  });

  it('of other aggregates are left out', () => {
    const { log, planId } = recorded();
    log.at(10).started({ task: `${planId}-s1` });
    expect(movesOf(log.events.toReversed(), (aggregate) => aggregate === 'other', 10)).toEqual([]);
  });
});

describe('the hosts where a VM ran', () => {
  const move = (from: string, to: string, endedAt: string, outcome = 'completed') =>
    ({ from, to, endedAt, outcome }) as ReturnType<typeof movesOf>[number];

  it('follow from the moves that completed', () => {
    expect(hostsOf([move('b', 'c', 't2'), move('b', 'x', 't1', 'failed'), move('a', 'b', 't0')])).toEqual([
      { host: 'a', since: null, until: 't0' },
      { host: 'b', since: 't0', until: 't2' },
      { host: 'c', since: 't2', until: null },
    ]);
  });

  it('are not known to be where somebody else moved it', () => {
    expect(hostsOf([move('c', 'd', 't1'), move('a', 'b', 't0')])).toEqual([
      { host: 'a', since: null, until: 't0' },
      { host: 'b', since: 't0', until: null },
      { host: 'c', since: null, until: 't1' },
      { host: 'd', since: 't1', until: null },
    ]);
  });
});
