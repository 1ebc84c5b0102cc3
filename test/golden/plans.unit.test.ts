import { plannerVersion } from '@kronos/placement';
import { describe, expect, it } from 'vitest';
import { planSet, recordedSet, released, verdict } from './plans.ts';

describe('the plans of this planner version', () => {
  it('are those on record: a decision replays byte for byte with the version that it names', () => {
    expect(verdict(recordedSet(plannerVersion), planSet(), released())).toBeNull();
  });
});

describe('plans that differ from those on record', () => {
  const [recorded, made] = [
    { a: '1', b: '2' },
    { a: '1', b: '3' },
  ];

  it('act: they name the inputs', () => {
    expect(verdict(recorded, made, {})).toMatch(/1 of 2 inputs \(b\)\. If that is meant, run/);
    expect(verdict(recorded, { a: '1' }, {})).toMatch(/\(b\)/);
    expect(verdict(null, made, {})).toMatch(/has no plans on record/);
  });

  it('refuse: a released version cannot be written again, it must be raised', () => {
    expect(verdict(recorded, made, { '9.0.0': plannerVersion })).toMatch(
      /9\.0\.0 was released .* raise plannerVersion/,
    );
  });

  it('do nothing: the same plans', () => {
    expect(verdict(recorded, recorded, { '9.0.0': plannerVersion })).toBeNull();
  });
});
