import { describe, expect, it } from 'vitest';
import { afterMeasurement, noiseOf, noSurprises, type Surprises } from './noise.ts';

const cpu = (imbalance: number | null) => [{ policy: 'cpu', imbalance }];
const through = (values: readonly number[]): Surprises =>
  values.reduce((surprises, value) => afterMeasurement(surprises, cpu(value), null), noSurprises);

describe('the noise of an imbalance', () => {
  it('acts: it is the standard deviation that the differences between cycles show', () => {
    const { known } = through([0.3, 0.31, 0.29, 0.3, 0.32, 0.3, 0.31]);
    expect(known.cpu).toEqual([0.01, 0.02, 0.01, 0.02, 0.02, 0.01]);
    expect(noiseOf(known.cpu ?? [])).toBeCloseTo(1.0484 * 0.015, 9);
  });

  it('does nothing: while too few differences are known', () => {
    expect(noiseOf(through([0.3, 0.31, 0.3, 0.31]).known.cpu ?? [])).toBeNull();
    expect(through([0.3]).known).toEqual({});
  });

  it('refuses: moves are no noise, and neither is a cycle without a value', () => {
    const moved = afterMeasurement(noSurprises, cpu(0.5), cpu(0.2));
    expect(afterMeasurement(moved, cpu(0.21), null).known.cpu).toEqual([0.01]);
    const unknown = afterMeasurement(afterMeasurement(noSurprises, cpu(0.5), null), cpu(null), null);
    expect(afterMeasurement(unknown, cpu(0.2), null).known.cpu ?? []).toEqual([]);
  });

  it('refuses: one large difference says little', () => {
    const differences = [0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.6];
    expect(noiseOf(differences)).toBeCloseTo(0.0105, 3);
  });

  it('keeps the latest differences', () => {
    const many = through(Array.from({ length: 100 }, (_, i) => (i % 2) / 10));
    expect(many.known.cpu).toHaveLength(30);
  });
});
