import { describe, expect, it } from 'vitest';
import { float, int } from '../../base/array.ts';
import { Random } from '../../base/random.ts';
import { imbalances, valuesAfter } from '../../cluster/measure.ts';
import { Draft } from '../../draft/draft.ts';
import { type ClusterFile, clusterOf } from '../../file/clusterFile.ts';
import { RefusalCounts } from '../../reasons.ts';
import { Walk } from '../changes/walk.ts';
import { type Field, fieldOf } from '../problem/field.ts';
import { judge } from '../problem/solution.ts';
import { COURSES, level } from './level.ts';
import { Smooth } from './smooth.ts';

const HOSTS = 12;
const VMS = 80;

/** Hosts of unlike load, three in four VMs on the first half of them. */
function drawn(seed: number, budget: number, memFreeMb?: number): Field {
  const random = new Random(seed * 7919);
  const memory = memFreeMb === undefined ? {} : { memFreeMb };
  const file: ClusterFile = {
    policies: ['cpu', 'mem'],
    weights: [1, 2],
    hosts: Array.from({ length: HOSTS }, (_, h) => ({ id: `h${h}`, ...memory })),
    vms: Array.from({ length: VMS }, (_, v) => ({
      id: `v${v}`,
      host: `h${random.below(v % 4 === 0 ? HOSTS : HOSTS / 2)}`,
      w: [(1 + random.below(20)) / 200, (1 + random.below(8)) / 100],
      memMb: 1024 * (1 + random.below(8)),
    })),
  };
  const cluster = clusterOf(file, { maxMigrations: budget });
  const draft = new Draft(cluster, budget);
  return fieldOf(draft, imbalances(cluster, draft.score), 1);
}

const run = (field: Field, course: keyof typeof COURSES, departuresFree = false) =>
  level(field, field.home, field.room.copy(departuresFree), {
    seed: 1,
    course: COURSES[course],
    steps: 20_000,
    refusals: new RefusalCounts(),
  });

/** Does each host hold what arrives, with what its departures free? */
function fits({ cluster, home, room, V }: Field, place: Int32Array): boolean {
  const free = Float64Array.from(room.free);
  for (let v = 0; v < V; v++)
    for (let r = 0; r < cluster.R; r++) {
      const amount = float(cluster.demand, v * cluster.R + r);
      const [from, to] = [int(home, v) * cluster.R + r, int(place, v) * cluster.R + r];
      free[from] = float(free, from) + amount;
      free[to] = float(free, to) - amount;
    }
  return free.every((amount, i) => amount >= 0 || amount === room.free[i]);
}

describe('a run on the stand-in', () => {
  for (const course of ['short', 'long', 'fromBest', 'reheated'] as const)
    for (const budget of [1, 5, 30])
      it(`${course}: ends within a budget of ${budget}, ${budget === 1 ? 'and no worse than it began' : 'and better than it began'}`, () => {
        for (const seed of [1, 2, 3]) {
          const field = drawn(seed, budget);
          const before = judge(field, field.home);
          const after = judge(field, run(field, course).place);
          expect(after.moves).toBeLessThanOrEqual(budget);
          expect(after.combined).toBeLessThan(before.combined + (budget === 1 ? 1e-9 : 0));
        }
      });

  // With little free memory, a VM can hardly go home after another one took its room.
  it.each([
    ['long', 10, 2048],
    ['fromBest', 3, 1024],
    ['fromBest', 3, 0],
  ] as const)(
    '%s, budget %d, %d MB free: ends with VMs where they fit, no worse than it began',
    (course, budget, free) => {
      for (let seed = 1; seed <= 20; seed++) {
        const field = drawn(seed, budget, free);
        const { place } = run(field, course, true);
        const after = judge(field, place);
        expect(after.moves).toBeLessThanOrEqual(budget);
        expect(after.combined).toBeLessThanOrEqual(judge(field, field.home).combined + 1e-9);
        expect(fits(field, place)).toBe(true);
      }
    },
  );

  it('keeps the placement that is left when the VMs beyond the budget went home', () => {
    // A stage on loan, then one that is so cold and short that it makes no change.
    const once = { wide: 0.1, narrow: 0.1, hot: 0.1, cold: 1e-9, stages: [0.5, 1] };
    let better = 0;
    for (let seed = 1; seed <= 20; seed++) {
      const field = drawn(seed, 3);
      const room = field.room.copy(false);
      const { place } = level(field, field.home, room, {
        seed,
        course: once,
        steps: 40,
        refusals: new RefusalCounts(),
      });
      if (judge(field, place).combined < judge(field, field.home).combined - 1e-9) better++;
    }
    expect(better).toBeGreaterThan(0);
  });
});

describe('the stand-in', () => {
  // At the second width the heaviest VMs are not in the table of factors.
  it.each([0.1, 0.0008])('at a width of %d knows the change of a proposal as its formula gives it', (width) => {
    const field = drawn(1, 20);
    const walk = new Walk(field, field.home, field.room.copy(false), 20, new RefusalCounts());
    const random = new Random(3);
    const smooth = new Smooth(field, walk.score);
    smooth.sharpen(width);
    let compared = 0;
    for (let i = 0; i < 600; i++) {
      // Changes of a host have pairs of VMs that exchange hosts.
      const isAimed = i % 2 === 0 ? walk.aimAny(random) : walk.aimAt(random, random.below(field.H), i % 4 === 1);
      if (!isAimed || !walk.draw(random) || !walk.isLegal()) continue;
      const change = smooth.change(walk);
      const before = costOf(field, walk.place, width);
      // One large cost would hide an error in the others.
      if (!(change < before)) continue;
      walk.commit();
      smooth.changed(walk);
      const after = costOf(field, walk.place, width);
      expect(Math.abs(change - (after - before))).toBeLessThan(1e-6 * (before + after));
      compared++;
    }
    expect(compared).toBeGreaterThan(width === 0.1 ? 100 : 10);
  });

  it('changes by as much on the way back as on the way there when two VMs exchange their hosts', () => {
    const drawnField = drawn(1, 20);
    // Hosts so alike that the heavier half of the VMs is not in the table of factors.
    const field = { ...drawnField, score: drawnField.score.map((_, i) => 0.5 + 0.02 * ((i >> 1) % 3)) };
    const walk = new Walk(field, field.home, field.room.copy(true), 20, new RefusalCounts());
    const smooth = new Smooth(field, walk.score);
    smooth.sharpen(0.005);
    const exchange = (v: number, u: number): number => {
      const [a, b] = [int(walk.place, v), int(walk.place, u)];
      walk.reset();
      walk.add(v, b);
      walk.add(u, a);
      return smooth.change(walk);
    };
    let compared = 0;
    for (const v of field.vmsOf)
      for (const u of field.vmsOf) {
        if (walk.place[v] === walk.place[u]) continue;
        const there = exchange(v, u);
        // Smaller changes are rounding.
        if (!(there < -1e-12) || !walk.commit()) continue;
        smooth.changed(walk);
        const back = exchange(v, u);
        expect(Math.abs(there + back)).toBeLessThan(-1e-6 * there);
        walk.commit();
        smooth.changed(walk);
        compared++;
      }
    expect(compared).toBeGreaterThan(20);
  });

  it('costs nothing for a policy without weight, also where its hosts are so alike that one move leaves the range of numbers', () => {
    const field = drawn(1, 20);
    const weights = Float64Array.from([0, 1]);
    const score = field.score.map((value, i) => (i % 2 === 0 ? 0.5 + i * 1e-4 : value));
    const walk = new Walk({ ...field, weights, score }, field.home, field.room.copy(false), 20, new RefusalCounts());
    const smooth = new Smooth(walk.field, walk.score);
    smooth.sharpen(0.005);
    const random = new Random(3);
    let judged = 0;
    for (let i = 0; i < 1000; i++)
      if (walk.aimAny(random) && walk.draw(random)) {
        expect(smooth.change(walk)).not.toBeNaN();
        judged++;
      }
    expect(judged).toBeGreaterThan(100);
  });
});

/** The stand-in of a placement, with the tangent at the start, worked out from its formula. */
function costOf(field: Field, place: Int32Array, width: number): number {
  const { cluster, P, H, home, score, weights } = field;
  const now = valuesAfter(cluster, score, home, place);
  let cost = 0;
  for (let p = 0; p < P; p++) {
    const at = (values: Float64Array) => Array.from({ length: H }, (_, h) => float(values, h * P + p));
    const start = at(score);
    const [low, high] = [Math.min(...start), Math.max(...start)];
    const [middle, tau] = [(low + high) / 2, width * (high - low)];
    const sum = (values: readonly number[], sign: 1 | -1) =>
      values.reduce((all, x) => all + Math.exp((sign * (x - middle)) / tau), 0);
    cost += float(weights, p) * tau * (sum(at(now), 1) / sum(start, 1) + sum(at(now), -1) / sum(start, -1));
  }
  return cost;
}
