import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { history } from '../memory/history.ts';
import { imbalanceAnswer } from './series.ts';

function decisions(count: number, plannedAt: readonly number[] = []) {
  const log = testLog('gpu');
  for (let i = 0; i < count; i++) {
    log.pass(60);
    if (plannedAt.includes(i)) log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    else log.decided();
  }
  const seen = history();
  for (const stored of log.events) seen.add(stored);
  return seen.decisions('gpu');
}

describe('the imbalance over time', () => {
  it('keeps every decision while there are few', () => {
    const { times, points } = imbalanceAnswer(decisions(20), [], { points: 20, near: null });
    expect([points, times.length]).toEqual([20, 20]);
  });

  it('is thinned out to about the points that are wanted, and keeps every decision with a plan', () => {
    const { times, steps, points } = imbalanceAnswer(decisions(1000, [3, 4, 5, 700]), [], { points: 50, near: null });
    expect(points).toBe(1000);
    expect(times.length).toBeLessThanOrEqual(54);
    expect(times.length).toBeGreaterThanOrEqual(50);
    expect(times).toEqual(times.toSorted());
    expect(steps.filter((count) => count > 0)).toHaveLength(4);
  });

  it('keeps every decision near the one that is looked at', () => {
    const all = decisions(1000);
    const near = all[500]?.snapshotId ?? '';
    const { snapshotIds } = imbalanceAnswer(all, [], { points: 50, near });
    expect(snapshotIds).toEqual(expect.arrayContaining(all.slice(380, 621).map(({ snapshotId }) => snapshotId)));
    expect(snapshotIds.length).toBeLessThan(300);
    expect(imbalanceAnswer(all, [], { points: 50, near: 'gone' }).times.length).toBeLessThan(55);
  });

  it('names each reason once, and says when the moves of each plan started and ended', () => {
    const log = testLog('gpu');
    const plan = log.pass(60).released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    log.pass(5).started({ task: `${plan}-s1` });
    log.pass(9).completed({ task: `${plan}-s1` });
    for (const text of ['a', 'b', 'a']) log.pass(60).decided('none', [], { reason: { code: 'x', text } });
    const seen = history();
    for (const stored of log.events) seen.add(stored);
    const answer = imbalanceAnswer(seen.decisions('gpu'), seen.runs('gpu'), { points: 50, near: null });
    expect(answer.reason.slice(1).map((i) => answer.reasons[i])).toEqual(['a', 'b', 'a']);
    expect(answer.reasons.slice(-2)).toEqual(['a', 'b']);
    expect(answer.runs).toEqual([
      {
        planId: plan,
        sequence: 1,
        release: 'released',
        decidedAt: '2026-01-05T00:01:00.000Z',
        releasedAt: '2026-01-05T00:01:00.000Z',
        steps: 1,
        started: ['2026-01-05T00:01:05.000Z'],
        completed: ['2026-01-05T00:01:14.000Z'],
        failed: [],
        skipped: [],
      },
    ]);
  });

  it('is empty without decisions', () => {
    expect(imbalanceAnswer([], [], { points: 500, near: null })).toMatchObject({ points: 0, times: [], policies: [] });
  });
});
