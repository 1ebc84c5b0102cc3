import { afterEach, describe, expect, it } from 'vitest';
import type { AggregateFigures } from '../../libs/cli/src/report/figures.ts';
import { runHere } from './command.ts';
import { openWorld, type World } from './world.ts';

describe('a default installation (dry_run)', () => {
  let world: World | null = null;
  afterEach(async () => {
    await world?.close();
    world = null;
  });

  it('records a complete plan every cycle and moves nothing', async () => {
    world = await openWorld({ env: { OS_ENGINE__DRY_RUN: 'true' } });
    await world.until('four decisions', (events) => events.filter((e) => e.type === 'cycle.decided').length >= 4);
    const decisions = world.events.filter((e) => e.type === 'cycle.decided');
    for (const { data } of decisions) {
      expect(data.outcome).toBe('planned');
      expect(data.release).toBe('dryRun');
      expect(data.plan?.steps.length).toBeGreaterThan(0);
      expect(data.plan?.after.combined).toBeLessThan(data.before.combined ?? 0);
    }
    expect(world.events.filter((e) => e.type.startsWith('migration.'))).toEqual([]);
    expect(await world.migrations()).toEqual([]);

    const args = ['-c', world.stage.configFile, 'report', '--since', 'all', '--json'];
    const { status, text } = await runHere(args);
    expect(status, text).toBe(0);
    const { aggregates } = JSON.parse(text.slice(text.indexOf('{'))) as { aggregates: AggregateFigures[] };
    expect(aggregates).toHaveLength(1);
    expect(aggregates[0]).toMatchObject({ plans: { released: 0, proposed: 0 }, moves: { completed: 0 } });
    expect(aggregates[0]?.dryRun?.moves).toBeGreaterThan(0);
    expect(aggregates[0]?.combined.meanAfterPlans).toBeLessThan(aggregates[0]?.combined.mean ?? 0);
  });
});
