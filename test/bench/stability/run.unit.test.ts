import { describe, expect, it } from 'vitest';
import { forecasting, run, variants } from './run.ts';
import { months, scenarios } from './world.ts';

function named<T extends { readonly name: string }>(list: readonly T[], name: string): T {
  const found = list.find((one) => one.name === name);
  if (found === undefined) throw new RangeError(`there is no ${name}`);
  return found;
}
const target = named(variants, 'search, target');
const size = { hosts: 4, vmsPerHost: 6 };

describe('the planner under load that goes on', () => {
  it('moves nothing more once a steady load is balanced, at 2 % noise', () => {
    const scenario = named(scenarios, 'steady, noise 2 %');
    let first = 0;
    for (const seed of [1, 2, 3, 4, 5]) {
      first += run({ scenario, variant: target, seed, days: 1, size, warmUpCycles: 0 }).moves;
      const { moves, above } = run({ scenario, variant: target, seed, days: 1, size });
      expect({ seed, moves, above }).toEqual({ seed, moves: 0, above: 0 });
    }
    expect(first, 'what was placed by chance is balanced first').toBeGreaterThan(0);
  });

  it('follows families of opposite load, and takes nothing back within the hour', () => {
    const { moves, takenBack } = run({
      scenario: named(scenarios, 'day and night'),
      variant: target,
      seed: 3,
      days: 1,
    });
    expect(moves).toBeGreaterThan(0);
    expect(takenBack).toBe(0);
  });

  it('without a wait, a month with the forecast is the month without it', () => {
    const input = { scenario: named(months, 'office'), seed: 301_000, days: 10, size };
    const { waits, ...on } = run({ ...input, variant: forecasting });
    expect(waits).toBe(0);
    expect(on.moves).toBeGreaterThan(0);
    expect(run({ ...input, variant: target })).toEqual({ ...on, waits: 0 });
  });

  it('makes the same moves whether or not the cycles that end at once are left out', () => {
    const input = {
      scenario: named(scenarios, 'coming and going'),
      variant: target,
      seed: 2,
      days: 0.5,
      size,
      warmUpCycles: 0,
    };
    const quick = run(input);
    expect(quick.moves).toBeGreaterThan(0);
    expect(run({ ...input, everyCycle: true })).toEqual(quick);
  });
});
