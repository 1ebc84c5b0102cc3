import { ALL } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { testLog } from '../testing/index.ts';
import { canonicalState, fromParts, toParts } from './checkpoint.ts';
import { fold } from './evolve.ts';
import { remedyOf, skipText } from './remedy.ts';
import { aggregateState, UNREADABLE_KEPT } from './state.ts';

describe('an unreadable event', () => {
  it('that was skipped makes its aggregate plannable again, and the state shows it for ever', () => {
    const log = testLog();
    log.configured();
    log.unreadable();
    expect(log.state().unreadable?.sequence).toBe(2);
    log.eventSkipped(2);
    expect(log.state().unreadable).toBeNull();
    expect(log.state().skips.map(skipText)).toEqual(['2 by carol: garbage']);
    const parts = fromParts(JSON.parse(JSON.stringify(toParts(log.fold(), 'x'))));
    expect(parts.ok && canonicalState(parts.state)).toBe(canonicalState(log.fold()));
  });

  it('leaves those that were not skipped', () => {
    const log = testLog();
    log.configured();
    log.unreadable();
    log.unreadable();
    log.eventSkipped(2);
    expect(log.state().unreadable?.sequence).toBe(3);
  });

  it('addressed to all is skipped for all, and not by a skip of one aggregate', () => {
    const log = testLog();
    log.configured();
    log.about(ALL).unreadable();
    log.about('gpu').eventSkipped(2);
    expect(log.state().unreadable?.sequence).toBe(2);
    log.about(ALL).eventSkipped(2);
    expect(log.state().unreadable).toBeNull();
    expect(log.state('other').skips).toHaveLength(1);
  });

  it('cannot be skipped before it is there, and what can be read is not skipped', () => {
    const log = testLog();
    log.eventSkipped(3);
    log.paused();
    log.unreadable();
    log.eventSkipped(2);
    expect(log.state()).toMatchObject({ unreadable: { sequence: 3 }, skips: [] });
    expect(log.state().paused.here).not.toBeNull();
  });

  it('of a flood is counted with others, and skipped with them', () => {
    const log = testLog();
    log.configured();
    for (let i = 0; i < UNREADABLE_KEPT + 50; i++) log.unreadable();
    const last = log.events.length;
    expect(log.fold().aggregates.get('gpu')?.unreadables).toHaveLength(UNREADABLE_KEPT);
    log.eventSkipped(2, last - 1);
    expect(log.state().unreadable).toMatchObject({ sequence: UNREADABLE_KEPT + 1, through: last });
    log.eventSkipped(2, last);
    expect(log.state().unreadable).toBeNull();
  });

  it('names the remedy that fits', () => {
    const log = testLog();
    log.unreadable('plan.painted', 3);
    const fact = aggregateState(fold(log.events), 'gpu').unreadable;
    if (fact === null) throw new Error('it was read');
    expect(remedyOf(fact)).toMatch(/plan.painted version 3, readers first/);
    expect(remedyOf({ ...fact, remedy: 'skip' })).toMatch(/kronos log skip 1 /);
  });
});
