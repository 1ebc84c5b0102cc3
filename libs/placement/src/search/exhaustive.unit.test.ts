import { describe, expect, it } from 'vitest';
import { float, int } from '../base/array.ts';
import { Random } from '../base/random.ts';
import { imbalances } from '../cluster/measure.ts';
import { Draft } from '../draft/draft.ts';
import { type ClusterFile, clusterOf } from '../file/clusterFile.ts';
import { exhaust, mayExhaust } from './exhaustive.ts';
import { type Field, fieldOf } from './problem/field.ts';
import { compare, judge, type Solution } from './problem/solution.ts';

const BUDGET = 3;

/**
 * Five hosts and seven VMs with two policies; with thresholds, plans of the lowest cost are asked for.
 *
 * @param memFreeMb the free memory of each host; without it memory is not limited.
 */
function drawn(seed: number, memFreeMb?: number): { field: Field; draft: Draft } {
  const random = new Random(seed * 7919);
  const memory = memFreeMb === undefined ? {} : { memFreeMb };
  const file: ClusterFile = {
    policies: ['cpu', 'mem'],
    weights: [1, 2],
    ...(seed % 2 === 0 ? { thresholds: [0.2, 0.3] } : {}),
    hosts: Array.from({ length: 5 }, (_, h) => ({
      id: `h${h}`,
      size: [1 + (h % 2), 1],
      // Hosts differ in cost for some.
      ...(seed % 3 === 0 ? { costGib: 3 * h } : {}),
      ...memory,
    })),
    vms: Array.from({ length: 7 }, (_, v) => ({
      id: `v${v}`,
      host: `h${random.below(3)}`,
      w: [(1 + random.below(20)) / 64, (1 + random.below(20)) / 64],
      memMb: 1024 * (1 + random.below(4)),
      ...(seed % 6 === 0 ? { costGibTo: { h4: 1 + v } } : {}),
    })),
  };
  const cluster = clusterOf(file, { maxMigrations: BUDGET });
  const draft = new Draft(cluster, BUDGET);
  return { field: fieldOf(draft, imbalances(cluster, draft.score), 1), draft };
}

/** Does each host hold what arrives, with what its departures free? */
function fits({ cluster, home, room, H, V }: Field, place: Int32Array): boolean {
  for (let h = 0; h < H; h++)
    for (let r = 0; r < cluster.R; r++) {
      let [arrives, departs] = [0, 0];
      for (let v = 0; v < V; v++) {
        const amount = float(cluster.demand, v * cluster.R + r);
        if (place[v] === h && home[v] !== h) arrives += amount;
        if (place[v] !== h && home[v] === h) departs += amount;
      }
      if (arrives > 0 && arrives > float(room.free, h * cluster.R + r) + departs) return false;
    }
  return true;
}

/** The best of all placements that fit, each judged by itself. */
function bestOfAll(field: Field): Solution {
  let best = judge(field, field.home);
  const place = Int32Array.from(field.home);
  const visit = (v: number, left: number): void => {
    if (v === field.V) {
      const solution = judge(field, Int32Array.from(place));
      if (compare(solution, best) < 0 && fits(field, place)) best = solution;
      return;
    }
    visit(v + 1, left);
    for (let h = 0; left > 0 && h < field.H; h++) {
      if (h === int(field.home, v)) continue;
      place[v] = h;
      visit(v + 1, left - 1);
      place[v] = int(field.home, v);
    }
  };
  visit(0, BUDGET);
  return best;
}

/** Looks at all placements from a start. Returns the best one and the result of the look. */
function looked({ field, draft }: ReturnType<typeof drawn>, start: Int32Array, most = Number.POSITIVE_INFINITY) {
  let best = judge(field, start);
  const offer = (place: Int32Array): void => {
    const solution = judge(field, place);
    if (compare(solution, best) < 0) best = solution;
  };
  const { refusals } = draft;
  return { ...exhaust(field, { best: () => best, offer, refusals, most }), best: () => best };
}

describe('a look at all placements', () => {
  it('finds the best one, although it skips what cannot be better', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const given = drawn(seed);
      const { best, complete } = looked(given, given.field.home);
      expect(complete).toBe(true);
      expect(compare(best(), bestOfAll(given.field)), `seed ${seed}`).toBe(0);
    }
  });

  it('skips more placements when it begins with a better plan', () => {
    let [fromHome, fromBest] = [0, 0];
    for (let seed = 1; seed <= 20; seed++) {
      const given = drawn(seed);
      fromHome += looked(given, given.field.home).looked;
      fromBest += looked(given, bestOfAll(given.field).place).looked;
    }
    // Up to three of seven VMs, each with four other hosts.
    const all = 1 + 7 * 4 + 21 * 16 + 35 * 64;
    expect(fromHome).toBeLessThan(0.6 * 20 * all);
    expect(fromBest).toBeLessThan(0.8 * fromHome);
  });

  it('finds the best one that fits', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const given = drawn(seed, 512 + 1024 * (seed % 3));
      const { best, complete } = looked(given, given.field.home);
      expect(complete).toBe(true);
      expect(compare(best(), bestOfAll(given.field)), `seed ${seed}`).toBe(0);
    }
  });

  it('skips placements that leave more hosts overfull than moves are left', () => {
    // The best so far stays the same: memory alone makes the difference.
    const count = ({ field, draft }: ReturnType<typeof drawn>): number => {
      const home = judge(field, field.home);
      return exhaust(field, { best: () => home, offer: () => {}, refusals: draft.refusals }).looked;
    };
    let [unlimited, full] = [0, 0];
    for (let seed = 1; seed <= 20; seed++) {
      unlimited += count(drawn(seed));
      full += count(drawn(seed, 0));
    }
    expect(full).toBeLessThan(0.6 * unlimited);
  });

  it('says that it was cut off', () => {
    const given = drawn(1);
    expect(looked(given, given.field.home, 10)).toMatchObject({ looked: 10, complete: false });
  });

  it('is not tried with a budget of one move, or where soft rules have a price', () => {
    const { field } = drawn(1);
    expect(mayExhaust(field)).toBe(true);
    expect(mayExhaust({ ...field, budget: 1 })).toBe(false);
    const group = { members: [0, 1] } as unknown as Field['lax'][number];
    expect(mayExhaust({ ...field, lax: [group] })).toBe(false);
  });
});
