import { logEventSchema } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { fold } from '../src/evolve.ts';
import { randomHistory } from './index.ts';

describe('a random history', () => {
  it('holds only events that the contracts allow', () => {
    for (const { event } of randomHistory({ seed: 3, cycles: 150, commands: 0.5 }))
      expect(event.type === 'unreadable' ? null : logEventSchema.parse(event)).toEqual(event);
  });

  it('is the same for the same seed and another for another', () => {
    const text = (seed: number) => JSON.stringify([...randomHistory({ seed, cycles: 20 })]);
    expect(text(5)).toBe(text(5));
    expect(text(5)).not.toBe(text(6));
  });

  it('is numbered without a gap', () => {
    const sequences = [...randomHistory({ seed: 1, cycles: 50, repeats: 0.3 })].map((e) => e.sequence);
    expect(sequences).toEqual(sequences.map((_, i) => i + 1));
  });

  it('holds every type of event and leads to every kind of end', () => {
    const history = [...randomHistory({ seed: 2, cycles: 1500, commands: 0.2, unreadable: 0.001 })];
    expect([...new Set(history.map((e) => e.event.type))].sort()).toEqual([
      'aggregate.paused',
      'aggregate.resumed',
      'cycle.decided',
      'evaluation.requested',
      'host.released',
      'instance.quarantined',
      'instance.unquarantined',
      'migration.aborted',
      'migration.cancelled',
      'migration.completed',
      'migration.failed',
      'migration.observed',
      'migration.skipped',
      'migration.started',
      'plan.approved',
      'plan.dispatched',
      'plan.rejected',
      'planner.configured',
      'unreadable',
    ]);
    const outcomes = new Set<string>();
    for (let length = 200; length < history.length; length += 500)
      for (const facts of fold(history.slice(0, length)).aggregates.values())
        for (const plan of facts.recentPlans) outcomes.add(plan.outcome);
    expect([...outcomes].sort()).toEqual(['done', 'expired', 'rejected', 'superseded']);
  });

  it('comes to rest: what it begins also ends in the state', () => {
    const state = fold(randomHistory({ seed: 4, cycles: 3000 }));
    for (const facts of state.aggregates.values()) expect(facts.plans.size).toBeLessThan(15);
  });
});
