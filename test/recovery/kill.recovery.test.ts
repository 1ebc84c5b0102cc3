import type { LogEvent } from '@kronos/contracts';
import { afterEach, describe, it } from 'vitest';
import { openWorld, released, type ServiceName, settled, type World } from '../e2e/world.ts';
import { assertOnce } from './once.ts';

type Condition = (events: readonly LogEvent[]) => boolean;

const atLeast =
  (type: LogEvent['type'], n: number): Condition =>
  (events) =>
    events.filter((e) => e.type === type).length >= n;

/** Kills a service at each of the moments on the log, and starts it again at once. */
const moments: readonly (readonly [ServiceName, string, Condition])[] = [
  ['planner', 'at its start', () => true],
  ['scorer', 'after its first snapshot', atLeast('cycle.decided', 1)],
  ['ledger', 'after the first decision', atLeast('cycle.decided', 1)],
  ['planner', 'right after a release', (events) => released(events).length > 0],
  ['executor', 'right after its first start', atLeast('migration.started', 1)],
  ['executor', 'when Nova has begun', atLeast('migration.observed', 2)],
  ['planner', 'while moves are under way', atLeast('migration.completed', 2)],
  ['scorer', 'near the end', atLeast('migration.completed', 8)],
];

describe('SIGKILL of services at several moments', () => {
  let world: World | null = null;
  afterEach(async () => {
    await world?.close();
    world = null;
  });

  it('the run ends balanced, and no task moved its VM twice', async () => {
    world = await openWorld({ speed: 20 });
    for (const [service, moment, condition] of moments) {
      await world.until(`the moment "${moment}" of the ${service}`, condition);
      for (const child of world.stage.processes.get(service) ?? []) child.kill('SIGKILL');
      world.stage.start(service);
    }
    await world.until('a balanced cloud', settled);
    assertOnce(world.events, await world.migrations());
  });
});
