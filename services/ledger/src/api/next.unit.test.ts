import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { comingUp } from './next.ts';
import { aggregateSummary } from './stateJson.ts';

const at = (log: ReturnType<typeof testLog>, seconds: number): string =>
  new Date(log.nowMs + seconds * 1000).toISOString();

function coming(log: ReturnType<typeof testLog>, decisions: readonly { time: string }[] = []) {
  const state = log.state();
  const nameOf = (id: string) => (id === 'vm7' ? 'db-7' : null);
  return comingUp(state, aggregateSummary(state, log.nowMs), { decisions, nameOf }, log.nowMs);
}

describe('what happens next', () => {
  it('is a snapshot as far from the last one as that was from the one before', () => {
    const log = testLog('gpu');
    log.configured();
    expect(coming(log, [{ time: at(log, -90) }, { time: at(log, -30) }])).toEqual([
      { at: at(log, 30), what: 'cycle', text: 'The planner takes the next decision.' },
    ]);
    // One that is late is due: nobody knows when it comes.
    expect(coming(log, [{ time: at(log, -900) }, { time: at(log, -600) }])[0]?.at).toBeNull();
    expect(coming(log)[0]?.at).toBeNull();
  });

  it('is the move that starts first, and the end of the cooldown', () => {
    const log = testLog('gpu');
    log.configured();
    log.pass(1).released([
      { serverId: 'vm1', from: 'h1', to: 'h2', delaySeconds: 60 },
      { serverId: 'vm2', from: 'h1', to: 'h3', delaySeconds: 30 },
    ]);
    const found = coming(log);
    expect(found.map(({ what }) => what)).toEqual(['cycle', 'move', 'cooldown']);
    expect(found[1]).toEqual({ at: at(log, 30), what: 'move', text: 'name-of-vm2 moves to h3, and 1 more after it.' });
  });

  it('is the end of a quarantine, of a VM by its name where one is known', () => {
    const log = testLog('gpu');
    log.configured();
    log.quarantined('vm7', 60, 'grace');
    log.quarantined('vm8', 120, 'grace');
    expect(coming(log).slice(1)).toMatchObject([
      { what: 'quarantine', text: 'The quarantine of db-7 ends.' },
      { what: 'quarantine', text: 'The quarantine of vm8 ends.' },
    ]);
  });

  it('is nothing while an aggregate is paused', () => {
    const log = testLog('gpu');
    log.configured();
    log.paused();
    expect(coming(log)).toMatchObject([{ at: null, what: 'blocked' }]);
  });
});
