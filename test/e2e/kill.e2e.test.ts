import type { LogEvent } from '@kronos/contracts';
import { afterEach, describe, expect, it } from 'vitest';
import { ended, openWorld, released, type ServiceName, settled, type World } from './world.ts';

const count = (type: LogEvent['type']) => (events: readonly LogEvent[]) => events.filter((e) => e.type === type).length;
const atLeast = (type: LogEvent['type'], n: number) => (events: readonly LogEvent[]) => count(type)(events) >= n;

/** A service is killed each time the log shows that the moment has come, and started again at once. */
const cases: readonly [ServiceName, readonly [string, (events: readonly LogEvent[]) => boolean][]][] = [
  [
    'scorer',
    [
      ['after its first snapshot', atLeast('cycle.decided', 1)],
      ['while moves are under way', atLeast('migration.started', 2)],
      ['near the end', atLeast('migration.completed', 8)],
    ],
  ],
  [
    'planner',
    [
      ['at its start', () => true],
      ['right after a release', (events) => released(events).length > 0],
      ['while moves are under way', atLeast('migration.completed', 2)],
    ],
  ],
  [
    'executor',
    [
      ['right after its first start', atLeast('migration.started', 1)],
      ['when Nova has begun', atLeast('migration.observed', 2)],
      ['after some results', atLeast('migration.completed', 4)],
    ],
  ],
  [
    'ledger',
    [
      ['after the first decision', atLeast('cycle.decided', 1)],
      ['while moves are under way', atLeast('migration.completed', 3)],
    ],
  ],
];

describe('SIGKILL of one service at several moments', () => {
  let world: World | null = null;
  afterEach(async () => {
    await world?.close();
    world = null;
  });

  it.each(cases)('%s: the run ends balanced, and no task moved its VM twice', async (service, moments) => {
    world = await openWorld({ speed: 20 });
    for (const [moment, condition] of moments) {
      await world.until(`the moment "${moment}"`, condition);
      for (const child of world.stage.processes.get(service) ?? []) child.kill('SIGKILL');
      world.stage.start(service);
    }
    await world.until('a balanced cloud', settled);
    await assertOnce(world);
  });
});

/** By the cloud's own record: one migration in Nova per attempt, and each task ended once. */
async function assertOnce(world: World): Promise<void> {
  const { events } = world;
  const tasks = released(events);
  expect(ended(events)).toEqual(new Set(tasks));
  for (const task of tasks) {
    const finals = events.filter(
      (e) =>
        (e.type === 'migration.completed' || (e.type === 'migration.failed' && !e.data.retryPending)) &&
        e.data.taskId === task,
    );
    expect(finals.length, `final results of ${task}`).toBe(1);
  }
  const started = events.filter((e) => e.type === 'migration.started');
  const migrations = await world.migrations();
  const byServer = Map.groupBy(migrations, (m) => m.server);
  for (const [serverId, own] of byServer) {
    const attempts = started.filter((e) => e.data.serverId === serverId).length;
    expect(own.length, `migrations of ${serverId} in Nova, of ${attempts} attempts`).toBeLessThanOrEqual(attempts);
  }
  for (const event of events) {
    if (event.type !== 'migration.completed') continue;
    const there = migrations.filter((m) => m.server === event.data.serverId && m.status === 'completed');
    expect(there.map((m) => m.dest)).toContain(event.data.host);
  }
}
