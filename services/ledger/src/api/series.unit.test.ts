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
    const { times, points } = imbalanceAnswer(decisions(20), 20);
    expect([points, times.length]).toEqual([20, 20]);
  });

  it('is thinned out to about the points that are wanted, and keeps every decision with a plan', () => {
    const { times, steps, points } = imbalanceAnswer(decisions(1000, [3, 4, 5, 700]), 50);
    expect(points).toBe(1000);
    expect(times.length).toBeLessThanOrEqual(54);
    expect(times.length).toBeGreaterThanOrEqual(50);
    expect(times).toEqual(times.toSorted());
    expect(steps.filter((count) => count > 0)).toHaveLength(4);
  });

  it('is empty without decisions', () => {
    expect(imbalanceAnswer([], 500)).toMatchObject({ points: 0, times: [], policies: [] });
  });
});
