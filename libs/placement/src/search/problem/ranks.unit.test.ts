import { describe, expect, it } from 'vitest';
import { decideInput } from '../../../testing/index.ts';
import { Random } from '../../base/random.ts';
import { imbalances } from '../../cluster/measure.ts';
import { Draft } from '../../draft/draft.ts';
import { observe } from '../../snapshot/observe.ts';
import { fieldOf } from './field.ts';
import { Ranks } from './ranks.ts';

const HOSTS = 60;
const names = Array.from({ length: HOSTS }, (_, h) => `h${String(h).padStart(2, '0')}`);
const { snapshot, memory, options } = decideInput({
  policies: { cpu: {} },
  hosts: Object.fromEntries(names.map((name) => [name, {}])),
  vms: { v1: { host: 'h00', w: { cpu: 0.1 } } },
});
const { cluster } = observe(snapshot, memory, options, Date.parse(snapshot.time));
const draft = new Draft(cluster, 1);
const field = fieldOf(draft, imbalances(cluster, draft.score), 1);

/** The hosts of many draws from both ends: equal orders give equal draws. */
const drawn = (ranks: Ranks): number[] => {
  const random = new Random(1);
  return Array.from({ length: 4 * HOSTS }, (_, i) => ranks.draw(random, 0, i % 2 === 0));
};

describe('the ranks of hosts', () => {
  it.each([
    ['nothing', 0],
    ['few hosts', 3],
    ['every host', HOSTS],
  ])('are after a change of %s as if they were made anew', (_, changes) => {
    const random = new Random(2);
    const score = new Float64Array(cluster.H);
    const value = (): number => random.below(20) / 20;
    for (let h = 0; h < cluster.H; h++) score[h] = value();
    const ranks = new Ranks(field, score);
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < changes; i++) score[random.below(cluster.H)] = value();
      ranks.refresh();
      expect(drawn(ranks)).toEqual(drawn(new Ranks(field, score)));
    }
  });
});
