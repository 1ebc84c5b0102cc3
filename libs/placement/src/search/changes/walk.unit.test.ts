import { describe, expect, it } from 'vitest';
import { Random } from '../../base/random.ts';
import { imbalances, valuesAfter } from '../../cluster/measure.ts';
import { Draft } from '../../draft/draft.ts';
import { type ClusterFile, clusterOf } from '../../file/clusterFile.ts';
import { RefusalCounts } from '../../reasons.ts';
import { fieldOf } from '../problem/field.ts';
import { Walk } from './walk.ts';

const HOSTS = 6;
const BUDGET = 8;

/** Hosts with little free memory, and an anti-affinity group: some proposals are not legal. */
const file: ClusterFile = {
  policies: ['cpu'],
  weights: [1],
  hosts: Array.from({ length: HOSTS }, (_, h) => ({ id: `h${h}`, memFreeMb: 3000 })),
  vms: Array.from({ length: 30 }, (_, v) => ({
    id: `v${v}`,
    host: `h${v % HOSTS}`,
    w: [(1 + (v % 7)) / 100],
    memMb: 1000 * (1 + (v % 3)),
  })),
  groups: [{ id: 'apart', policy: 'anti-affinity', vms: ['v0', 'v1', 'v2'] }],
};

describe.each([false, true])('a walk (departures free room: %s)', (departuresFree) => {
  const cluster = clusterOf(file, { maxMigrations: BUDGET });
  const draft = new Draft(cluster, BUDGET);
  const field = fieldOf(draft, imbalances(cluster, draft.score), 1);

  it('carries out what is legal, and changes nothing for the rest', () => {
    const walk = new Walk(field, field.home, field.room.copy(departuresFree), BUDGET, new RefusalCounts());
    const random = new Random(7);
    const seen = { done: 0, refused: 0 };
    for (let i = 0; i < 5000; i++) {
      const isAimed = i % 2 === 0 ? walk.aimAny(random) : walk.aimAt(random, random.below(HOSTS), i % 4 === 1);
      if (!isAimed || !walk.draw(random)) continue;
      const before = Int32Array.from(walk.place);
      const expected = Int32Array.from(before);
      for (let k = 0; k < walk.size; k++) expected[walk.vms[k] ?? -1] = walk.to[k] ?? -1;
      const isLegal = walk.isLegal();
      expect(walk.place).toEqual(before);
      expect(walk.commit()).toBe(isLegal);
      expect(walk.place).toEqual(isLegal ? expected : before);
      seen[isLegal ? 'done' : 'refused']++;
    }
    expect(Math.min(seen.done, seen.refused)).toBeGreaterThan(100);
    const away = [...field.home.keys()].filter((v) => walk.place[v] !== field.home[v]);
    expect([...walk.away.subarray(0, walk.count)].sort((a, b) => a - b)).toEqual(away);
    expect(away.length).toBeLessThanOrEqual(BUDGET);
    const values = valuesAfter(cluster, field.score, field.home, walk.place);
    walk.score.forEach((value, i) => {
      expect(value).toBeCloseTo(values[i] ?? Number.NaN, 12);
    });
  });
});
