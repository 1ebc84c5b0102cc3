import type { LogEvent } from '@kronos/contracts';
import type { MigrationRecord } from '@kronos/simcloud';
import { expect } from 'vitest';
import { ended, released } from '../e2e/world.ts';

/** Checks the record of the cloud against the log: each task has one final result, and at most one POST per attempt. */
export function assertOnce(events: readonly LogEvent[], migrations: readonly MigrationRecord[]): void {
  const tasks = released(events);
  expect(ended(events)).toEqual(new Set(tasks));
  const finals = events.flatMap((e) =>
    e.type === 'migration.completed' || (e.type === 'migration.failed' && !e.data.retryPending) ? [e.data.taskId] : [],
  );
  expect(finals).toHaveLength(new Set(finals).size);
  for (const [serverId, own] of Map.groupBy(migrations, ({ server }) => server)) {
    const attempts = events.filter((e) => e.type === 'migration.started' && e.data.serverId === serverId).length;
    expect(own.length, `migrations of ${serverId} in Nova, of ${attempts} attempts`).toBeLessThanOrEqual(attempts);
  }
  for (const event of events) {
    if (event.type !== 'migration.completed') continue;
    const there = migrations.filter((m) => m.server === event.data.serverId && m.status === 'completed');
    expect(there.map(({ dest }) => dest)).toContain(event.data.host);
  }
}
