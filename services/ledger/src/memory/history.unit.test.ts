import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { history } from './history.ts';

describe('the history in memory', () => {
  const filled = (count: number, limits = { events: 5, decisions: 4 }) => {
    const log = testLog();
    const plans: string[] = [];
    for (let i = 0; i < count; i++) plans.push(log.pass(60).released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]));
    const seen = history(limits);
    for (const stored of log.events) seen.add(stored);
    return { seen, plans };
  };
  const sequences = (seen: ReturnType<typeof history>) => [...seen.events()].map((e) => e.sequence);

  it('gives the latest events, newest first', () => {
    expect(sequences(filled(3).seen)).toEqual([3, 2, 1]);
    expect(sequences(filled(12).seen)).toEqual([12, 11, 10, 9, 8]);
  });

  it('knows the oldest that it holds', () => {
    expect(history().oldest).toBeNull();
    expect(filled(3).seen.oldest?.sequence).toBe(1);
    expect(filled(5).seen.oldest?.sequence).toBe(1);
    expect(filled(12).seen.oldest?.sequence).toBe(8);
  });

  it('gives the latest decisions of an aggregate, oldest first', () => {
    const { seen } = filled(9);
    expect(seen.decisions('gpu').map((d) => d.sequence)).toEqual([6, 7, 8, 9]);
    expect(seen.decisions('gpu').at(-1)).toMatchObject({
      steps: 1,
      release: 'released',
      combined: 0.3,
      combinedAfter: 0.1,
    });
    expect(seen.decisions('other')).toEqual([]);
  });

  it('gives a decision the time of its snapshot, at most a minute after the timestamp', () => {
    const log = testLog();
    log.pass(60).released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    const seen = history();
    for (const stored of log.events) {
      const { event, storedAt } = stored;
      if (event.type !== 'cycle.decided') throw new Error(event.type);
      const untrue = { ...event, data: { ...event.data, snapshotTime: '2099-01-01T00:00:00.000Z' } };
      for (const [i, one] of [event, untrue].entries()) seen.add({ ...stored, sequence: i + 1, event: one });
      expect(seen.decisions('gpu').map(({ time }) => time)).toEqual([
        event.data.snapshotTime,
        new Date(storedAt + 60_000).toISOString(),
      ]);
    }
  });

  it('takes older events in front as far as there is room', () => {
    const { seen } = filled(9, { events: 20, decisions: 20 });
    const younger = history({ events: 6, decisions: 20 });
    const all = [...seen.events()].reverse();
    for (const stored of all.slice(6)) younger.add(stored);
    younger.prepend(all.slice(0, 6));
    expect(sequences(younger)).toEqual([9, 8, 7, 6, 5, 4]);
    expect(younger.decisions('gpu').map((d) => d.sequence)).toEqual([4, 5, 6, 7, 8, 9]);
    younger.prepend(all.slice(0, 3));
    expect(sequences(younger)).toEqual([9, 8, 7, 6, 5, 4]);
    for (const stored of all.slice(0, 1)) younger.add({ ...stored, sequence: 10 });
    expect(sequences(younger)).toEqual([10, 9, 8, 7, 6, 5]);
  });

  it('finds the event of a recent plan, and no longer that of an old one', () => {
    const { seen, plans } = filled(9);
    expect(plans.map((id) => seen.planSequence(id))).toEqual([null, null, null, null, 5, 6, 7, 8, 9]);
    expect(seen.planSequence('gpu-0')).toBeNull();
  });

  it('keeps the last decision about each aggregate, also when its event is no longer among the latest', () => {
    const { seen } = filled(2);
    const other = testLog('general');
    for (let i = 0; i < 9; i++) other.pass(60).released([{ serverId: 'vm2', from: 'h1', to: 'h2' }]);
    for (const stored of other.events) seen.add(stored);
    expect(seen.lastDecision('gpu')?.sequence).toBe(2);
    expect(seen.lastDecision('general')?.sequence).toBe(9);
    expect(seen.lastDecision('none')).toBeNull();
  });
});
