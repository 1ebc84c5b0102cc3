import { describe, expect, it } from 'vitest';
import { type Comparison, judgePredictions } from './calibration.ts';

const THRESHOLD = 0.2;
const hosts = ['a', 'b', 'c'];

/** Moves of VMs between three hosts; `part`: of the predicted change, what is measured. */
const after = (moves: number, part: (host: string, gains: boolean) => number): Comparison[] =>
  Array.from({ length: moves }, (_, i) => {
    const host = hosts[i % hosts.length] ?? 'a';
    const gains = i % 2 === 0;
    const change = (gains ? 1 : -1) * (0.04 + 0.01 * (i % 5));
    const noise = 0.002 * ((i % 3) - 1);
    return { host, change, error: change * (part(host, gains) - 1) + noise };
  });

describe('predictions', () => {
  it('are not off while hosts change as predicted, or nothing moved', () => {
    expect(
      judgePredictions(
        after(60, () => 1),
        THRESHOLD,
      ),
    ).toBeNull();
    expect(judgePredictions([], THRESHOLD)).toBeNull();
  });

  it('are not judged by a few moves', () => {
    expect(
      judgePredictions(
        after(7, () => 0),
        THRESHOLD,
      ),
    ).toBeNull();
  });

  it('are off by the label when hosts do not change at all', () => {
    expect(
      judgePredictions(
        after(60, () => 0),
        THRESHOLD,
      ),
    ).toMatchObject({ cause: 'wrong-label', comparisons: 60 });
  });

  it('are off by sizes when one host gains twice what was predicted, and loses as predicted', () => {
    const off = judgePredictions(
      after(60, (host, gains) => (host === 'b' && gains ? 2 : 1)),
      THRESHOLD,
    );
    expect(off).toMatchObject({ cause: 'host-sizes', hosts: [{ host: 'b', gains: true }] });
    expect(off?.hosts[0]?.part).toBeCloseTo(2, 1);
  });

  it('are off by the load when one host gains and loses another part', () => {
    const off = judgePredictions(
      after(60, (host) => (host === 'c' ? 1.3 : 1)),
      THRESHOLD,
    );
    expect(off).toMatchObject({ cause: 'load-depends-on-host' });
    expect(off?.hosts.map(({ host }) => host)).toEqual(['c', 'c']);
  });

  it('are off when values differ by more than the threshold, however noisy', () => {
    const wild = after(60, (_, gains) => (gains ? 9 : -7));
    expect(judgePredictions(wild, THRESHOLD)).not.toBeNull();
    const far = Array.from({ length: 20 }, (_, i) => ({ host: `h${i}`, change: 0.1, error: 0.3 }));
    expect(judgePredictions(far, THRESHOLD)).toMatchObject({ cause: 'load-depends-on-host', hosts: [], error: 0.3 });
  });
});
