import { expect, it } from 'vitest';
import { Chance } from './chance.ts';
import { Trouble } from './trouble.ts';
import { World } from './world.ts';

it('an act that a fault has delayed does not happen after the end of the faults', async () => {
  const world = new World(new Chance('trouble'));
  const trouble = new Trouble(world);
  const done: string[] = [];
  trouble.at(1000, () => {
    done.push('fault');
    for (const ms of [1000, 5000]) trouble.after(ms, () => done.push(`delayed by ${ms} ms`));
  });
  trouble.at(6000, () => done.push('later fault'));
  await world.run(3000);
  trouble.end();
  await world.run(10_000);
  expect(done).toEqual(['fault', 'delayed by 1000 ms']);
});
