import { describe, expect, it } from 'vitest';
import { Random } from '../base/random.ts';
import { type ClusterFile, clusterOf } from '../file/clusterFile.ts';
import { combinedOf, imbalances } from './measure.ts';
import { Witnesses } from './witnesses.ts';

const HOSTS = 12;

/** A cluster of three policies. The last host is disabled: it does not count. */
const file: ClusterFile = {
  policies: ['cpu', 'mem', 'net'],
  weights: [1, 2, 3],
  hosts: Array.from({ length: HOSTS }, (_, h) => ({
    id: `h${h}`,
    ...(h === HOSTS - 1 ? { status: 'disabled' as const } : {}),
  })),
  vms: [],
};

describe('the witnesses of an imbalance', () => {
  const cluster = clusterOf(file, { maxMigrations: 1 });
  const { P } = cluster;

  it('show it below the limit, and never more than it', () => {
    const random = new Random(5);
    const score = Float64Array.from({ length: HOSTS * P }, () => random.unit());
    const witnesses = new Witnesses(cluster, score);
    const seen = { below: 0, above: 0 };
    for (let i = 0; i < 2000; i++) {
      score[random.below(score.length)] = random.unit();
      const now = imbalances(cluster, score);
      const combined = combinedOf(cluster, now);
      const limit = combined * (0.5 + random.unit());
      const shown = witnesses.combined(limit);
      if (combined < limit) {
        expect(shown).toBe(combined);
        expect(Array.from(now, (_, p) => witnesses.imbalance(p))).toEqual([...now]);
        seen.below++;
      } else {
        expect(shown).toBeGreaterThanOrEqual(limit);
        expect(shown).toBeLessThanOrEqual(combined);
        seen.above++;
      }
    }
    expect(Math.min(seen.below, seen.above)).toBeGreaterThan(500);
  });

  it('show nothing where no host counts', () => {
    const none = { ...cluster, counted: new Uint8Array(HOSTS) };
    expect(new Witnesses(none, new Float64Array(HOSTS * P).fill(0.5)).combined(1)).toBe(0);
  });
});
