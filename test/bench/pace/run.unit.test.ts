import { describe, expect, it } from 'vitest';
import { run, scenarios } from './run.ts';

describe('the interval of how long a move takes', () => {
  it.each(scenarios)('holds 85 to 95 % of the moves of simulated months: $name', (scenario) => {
    const months = [1, 2, 3, 4].map((seed) => run(scenario, seed, 30));
    const sum = (of: 'moves' | 'within' | 'plans' | 'plansWithin') => months.reduce((n, month) => n + month[of], 0);
    expect(sum('moves')).toBeGreaterThan(100);
    expect(sum('within') / sum('moves')).toBeGreaterThanOrEqual(0.85);
    expect(sum('within') / sum('moves')).toBeLessThanOrEqual(0.95);
    // The ends of a plan's interval are sums: it holds more.
    expect(sum('plansWithin') / sum('plans')).toBeGreaterThanOrEqual(0.85);
  });
});
