import { describe, expect, it } from 'vitest';
import { testLog } from '../testing/index.ts';
import { type MomentFacts, momentAt, momentText, PlanRuns } from './moment.ts';

const wording = {
  clock: (ms: number) => new Date(ms).toISOString().slice(11, 19),
  ratio: (ratio: number) => `${ratio.toFixed(2)}x`,
};
const facts: MomentFacts = { worst: { policy: 'cpu', ratio: 1.66 }, later: null, reason: null };
const step = (n: number) => ({ serverId: `vm${n}`, from: 'h1', to: 'h2' });
const steps = (n: number) => Array.from({ length: n }, (_, i) => step(i));

/** The text about the cycle `snapshotId`, which was measured `seconds` after the start. */
function told(log: ReturnType<typeof testLog>, seconds: number, more: Partial<MomentFacts> = {}, snapshotId = 'other') {
  const runs = new PlanRuns();
  for (const stored of log.events) runs.add(stored);
  const timeMs = log.events.length === 0 ? 0 : Date.parse('2026-01-05T00:00:00Z') + seconds * 1000;
  const moment = momentAt(runs.of('gpu'), { snapshotId, timeMs });
  return momentText(moment, { ...facts, ...more }, wording);
}

describe('a moment of the past in words', () => {
  it('while a plan runs: how far it is, how balanced it was, and how balanced after its last move', () => {
    const log = testLog();
    log.configured();
    const plan = log.at(60).released(steps(3));
    log.dispatched(plan, 3);
    log.at(61).started({ task: `${plan}-s1` });
    log.at(70).completed({ task: `${plan}-s1` });
    log.at(71).started({ task: `${plan}-s2` });
    log.at(80).failed({ task: `${plan}-s2`, retry: {} });
    log.at(81).started({ task: `${plan}-s2`, attempt: 2 });
    expect(told(log, 75)).toBe(
      'At 00:01:15 the plan of 00:01:00 ran: 1 of 3 moves were done, 1 under way. cpu was 1.66x its threshold.',
    );
    // The second attempt is the same move, and the failure before it is no end.
    expect(told(log, 85)).toContain('1 of 3 moves were done, 1 under way.');
    log.at(90).failed({ task: `${plan}-s2`, attempt: 2 });
    log.at(91).skipped({ task: `${plan}-s3` });
    const later = { atMs: Date.parse('2026-01-05T00:02:00Z'), ratio: 0.94 };
    expect(told(log, 90, { later })).toBe(
      'At 00:01:30 the plan of 00:01:00 ran: 1 of 3 moves were done, 1 had failed. cpu was 1.66x its threshold; at 00:02:00 it was 0.94x.',
    );
    expect(told(log, 91)).toContain('nothing moved. The last move ended at 00:01:30.');
  });

  it('while nothing moves: the last move, the next plan, and why there was none', () => {
    const log = testLog();
    log.configured();
    const first = log.at(60).released(steps(1));
    log.at(61).started({ task: `${first}-s1` });
    log.at(71).completed({ task: `${first}-s1` });
    log.at(77).released(steps(8));
    expect(told(log, 74, { reason: 'The cooldown is not over.' })).toBe(
      'At 00:01:14 nothing moved. The last move ended at 00:01:11; the next plan (8 moves) was released 3 s later. cpu was 1.66x its threshold. No plan was made: the cooldown is not over.',
    );
    expect(told(log, 5, { worst: { policy: 'cpu', ratio: 0.9 }, reason: 'All is well.' })).toBe(
      'At 00:00:05 nothing moved. The next plan (1 move) was released 55 s later. No policy was above its threshold (cpu 0.90x).',
    );
    expect(told(testLog(), 0, { worst: null })).toBe('At 00:00:00 nothing moved.');
  });

  it('of the cycle that made a plan: at the time of the plan, which is no plan of its future', () => {
    const log = testLog();
    log.configured();
    const plan = log.at(63).decided('released', steps(8), { snapshotMs: log.at(60).nowMs });
    // The decision was published later than the snapshot that it is about.
    const event = log.events.at(-1)?.event;
    if (event?.type !== 'cycle.decided') throw new Error('no decision');
    Object.assign(event, { time: '2026-01-05T00:01:03.000Z' });
    expect(told(log, 60, {}, plan)).toBe(
      'At 00:01:03 a plan of 8 moves was released. Nothing moved yet. cpu was 1.66x its threshold.',
    );
    // A look a second before it knows nothing of it.
    expect(told(log, 62)).toContain('At 00:01:02 nothing moved. The next plan (8 moves) was released 1 s later.');
  });

  it.each([
    ['dryRun', 'a plan of 2 moves was made in dry run. Nothing moved.'],
    ['none', 'a plan of 2 moves was made and not released. Nothing moved.'],
    ['proposed', 'a plan of 2 moves was made and waited for approval. Nothing moved.'],
  ] as const)('of a plan that is not released: %s', (release, words) => {
    const log = testLog();
    log.configured();
    const plan = log.at(60).decided(release, steps(2));
    expect(told(log, 60, {}, plan)).toContain(`At 00:01:00 ${words}`);
  });

  it('of a plan that was approved: it is released with the answer, if its moves were handed over', () => {
    const log = testLog();
    log.configured();
    const plan = log.at(60).proposed(steps(2));
    log.at(120).approved(plan, [1]);
    expect(told(log, 130)).toContain('nothing moved.');
    log.at(121).dispatched(plan, 1);
    expect(told(log, 60, {}, plan)).toContain('waited for approval; it was released 1 min later. Nothing moved.');
    expect(told(log, 130)).toContain('the plan of 00:02:00 ran: 0 of 1 move was done.');
  });

  it('of two plans that run: their moves together', () => {
    const log = testLog();
    log.configured();
    const first = log.at(60).released(steps(2));
    const second = log.at(70).released(steps(3));
    log.at(75).started({ task: `${first}-s1` });
    log.at(76).completed({ task: `${first}-s1` });
    log.at(77).started({ task: `${second}-s1` });
    expect(told(log, 80)).toContain('the plans of 00:01:00 and 00:01:10 ran: 1 of 5 moves were done, 1 under way.');
  });
});

describe('the plans of a log', () => {
  it('are kept by aggregate, the newest ones', () => {
    const log = testLog();
    log.configured();
    const ids = [1, 2, 3].map(() => log.pass(60).released(steps(1)));
    const other = log.about('general').pass(1).released(steps(1));
    const runs = new PlanRuns(2);
    for (const stored of log.events) runs.add(stored);
    expect(runs.of('gpu').map(({ planId }) => planId)).toEqual(ids.slice(1));
    expect(runs.of('general').map(({ planId }) => planId)).toEqual([other]);
    runs.clear();
    expect(runs.of('gpu')).toEqual([]);
  });
});
