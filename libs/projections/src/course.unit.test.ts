import type { Course } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { testLog } from '../testing/index.ts';
import { courseLeft } from './course.ts';

const course: Course = {
  reaches: true,
  moves: 5,
  costGib: 20,
  cycles: 3,
  seconds: 1500,
  after: { combined: 0.1, policies: [] },
};
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
