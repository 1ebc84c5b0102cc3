import { readFileSync } from 'node:fs';
import { random } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { sampleTask } from '../testing/sample.ts';
import { runWorld } from '../testing/world/world.ts';
import { defaultTaskOptions } from './options.ts';

const task = sampleTask({ ramMb: 2048 });

it('the diagram of the README has every transition that the state machine makes, and no other', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const drawn = [...readme.matchAll(/^ {4}(\w+) --> (\w+)/gm)].map(([, from, to]) => `${from} --> ${to}`);
  const made = new Set<string>();
  for (let seed = 0; seed < 6000; seed += 1) {
    // Some worlds suspect every task, and have little patience.
    const options = { ...defaultTaskOptions, deadlineMinMs: 90_000, deadlinePerGibMs: 0 };
    const poison = seed % 4 === 0 ? { suspectDeliveries: 0, suspectTries: 2 } : {};
    const { edges } = runWorld(task, { ...options, ...poison, dryRun: seed % 5 === 0 }, random(seed));
    for (const edge of edges) made.add(edge);
  }
  expect([...made].sort()).toEqual([...new Set(drawn)].sort());
});
