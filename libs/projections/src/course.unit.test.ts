import { describe, expect, it } from 'vitest';
import { testCourse as course, testLog } from '../testing/index.ts';
import { courseLeft, movesToGo } from './course.ts';

const moves = ['a', 'b'].map((serverId) => ({ serverId, from: 'h1', to: 'h2' }));

describe('what is left of a course', () => {
  it('is what the decision found, also while later ones are gated', () => {
    const log = testLog();
    log.configured();
    log.decided('proposed', moves, { course });
    log.pass(60);
    log.decided('none', [], { outcome: 'gated', reason: { code: 'cooldown', text: 'cooling down' } });
    expect(courseLeft(log.state(), log.nowMs)).toEqual({ reaches: true, moves: 5, cycles: 3, seconds: 1500 });
  });

  it('shrinks with each completed move, and counts the time from the release', () => {
    const log = testLog();
    log.configured();
    const plan = log.decided('released', moves, { course });
    log.dispatched(plan, 2);
    log.pass(100).started({ task: `${plan}-s1` });
    log.completed({ task: `${plan}-s1` });
    expect(courseLeft(log.state(), log.nowMs)).toMatchObject({ moves: 4, cycles: 3, seconds: 1400 });
    log.started({ task: `${plan}-s2` });
    log.completed({ task: `${plan}-s2` });
    expect(courseLeft(log.state(), log.nowMs)).toMatchObject({ moves: 3, cycles: 2, seconds: 1400 });
    expect(courseLeft(log.state(), log.nowMs + 9_999_999)).toMatchObject({ moves: 3, cycles: 2, seconds: 0 });
  });

  it('is nothing when the plan made all of it, and when a later decision finds none', () => {
    const log = testLog();
    log.configured();
    const plan = log.decided('released', moves, { course: { ...course, moves: 1, cycles: 1 } });
    log.dispatched(plan, 2);
    log.started({ task: `${plan}-s1` });
    log.completed({ task: `${plan}-s1` });
    expect(courseLeft(log.state(), log.nowMs)).toBeNull();
    log.pass(60).decided('none', [], { course });
    expect(courseLeft(log.state(), log.nowMs)).toMatchObject({ moves: 5 });
    log.pass(60).decided('none');
    expect(courseLeft(log.state(), log.nowMs)).toBeNull();
  });

  it('has the budget that its smallest part needs', () => {
    const log = testLog();
    log.configured();
    log.decided('none', [], { course: { ...course, neededBudget: 2 } });
    expect(courseLeft(log.state(), log.nowMs)).toMatchObject({ moves: 5, neededBudget: 2 });
  });
});

describe('the moves of a course that go on below the thresholds', () => {
  const begun = () => {
    const log = testLog();
    log.configured();
    const plan = log.decided('released', moves, { course });
    log.dispatched(plan, 2);
    return { log, plan };
  };

  it('acts: those after the released part, whose moves are in flight or done', () => {
    const { log, plan } = begun();
    expect(movesToGo(log.state())).toBe(3);
    for (const step of [1, 2]) log.completed({ task: `${plan}-s${step}` });
    expect(log.state().plans.size).toBe(0);
    expect(movesToGo(log.state())).toBe(3);
  });

  it('acts: through decisions that do not look for a course', () => {
    const { log } = begun();
    log.pass(60).decided('none', [], { outcome: 'gated', reason: { code: 'cooldown', text: 'cooling down' } });
    log.pass(60).decided('none', [], { reason: { code: 'no-budget', text: 'in flight' } });
    expect(movesToGo(log.state())).toBe(3);
  });

  it('refuses: after a quiet decision, and after one that found no part', () => {
    for (const found of [{}, { course }]) {
      const { log } = begun();
      log.pass(60).decided('none', [], found);
      expect(movesToGo(log.state())).toBeNull();
    }
  });

  it.each(['failed', 'cancelled'] as const)('refuses: when a move %s', (how) => {
    const { log, plan } = begun();
    log.failed({ task: `${plan}-s1`, ...(how === 'cancelled' ? { errorType: 'Cancelled' as const } : {}) });
    expect(movesToGo(log.state())).toBeNull();
    log.completed({ task: `${plan}-s2` });
    expect(movesToGo(log.state())).toBeNull();
  });

  it('refuses: a plan that nobody approved, and a dry run', () => {
    const log = testLog();
    log.configured();
    const plan = log.decided('proposed', moves, { course });
    expect(movesToGo(log.state())).toBeNull();
    log.approved(plan);
    expect(movesToGo(log.state())).toBe(3);
    log.pass(60).rejected(log.decided('proposed', moves, { course: { ...course, moves: 3 } }));
    expect(movesToGo(log.state())).toBeNull();
    log.pass(60).decided('dryRun', moves, { course });
    expect(movesToGo(log.state())).toBeNull();
  });

  it('does nothing: where the targets are out of reach, or nothing is left', () => {
    for (const other of [{ reaches: false }, { moves: 2 }]) {
      const log = testLog();
      log.configured();
      log.decided('released', moves, { course: { ...course, ...other } });
      expect(movesToGo(log.state())).toBeNull();
    }
  });
});
