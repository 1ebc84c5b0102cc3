import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { logEventTypes } from '@kronos/contracts';
import { plannerVersion } from '@kronos/placement';
import { readRecording, verify } from '@kronos/replay';
import { describe, expect, it } from 'vitest';
import { released } from '../golden/plans.ts';
import { factsOf } from './facts.ts';

const root = join(import.meta.dirname, '../histories');
const versions = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());

describe.each(versions.map((entry) => entry.name))('the history that version %s wrote', (version) => {
  it('is read whole, and folds to the facts that it folded to then', async () => {
    const { history } = await readRecording(join(root, version));
    const events = await Array.fromAsync(history.events());
    expect(events.filter(({ event }) => event.type === 'unreadable')).toEqual([]);
    expect(factsOf(events)).toEqual(JSON.parse(readFileSync(join(root, version, 'facts.json'), 'utf8')));
  });

  it('has snapshots that can be decided again, from the state that they were decided on', async () => {
    const { history } = await readRecording(join(root, version));
    const cycles = await Array.fromAsync(verify(history, {}));
    const run = cycles.filter((cycle) => cycle.verdict !== 'notReplayed');
    // A history of every type of event has no snapshots.
    expect(run.length > 0).toBe(!version.endsWith('-events'));
    for (const cycle of run) {
      // Another planner version may keep another memory and decide otherwise. The same version gets the same input again.
      if (cycle.plannerVersion !== plannerVersion) expect(cycle.verdict).not.toBe('different');
      else expect('causes' in cycle ? cycle.causes : []).toEqual([]);
    }
  });
});

it('there is a history of every planner version that was released', async () => {
  const recorded = new Set<string>();
  for (const { name } of versions) {
    const { history } = await readRecording(join(root, name));
    for await (const { event } of history.events())
      if (event.type === 'cycle.decided') recorded.add(event.data.plannerVersion);
  }
  expect(Object.values(released()).filter((version) => !recorded.has(version))).toEqual([]);
});

it('there is a history with every type of event that the log may hold', async () => {
  const recorded = new Set<string>();
  for (const { name } of versions) {
    const { history } = await readRecording(join(root, name));
    for await (const { event } of history.events()) recorded.add(event.type);
  }
  // A new type: its part in everyEvent.ts, then `node test/replay/writeHistory.ts NAME-events --every-event` with a new NAME.
  expect(logEventTypes.filter((type) => !recorded.has(type))).toEqual([]);
});
