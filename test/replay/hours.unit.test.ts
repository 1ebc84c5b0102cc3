import { canonicalState, createFolder, fold, fromParts, toParts } from '@kronos/projections';
import { verify, verifyTotals } from '@kronos/replay';
import { memoryHistory, operate, tamper } from '@kronos/replay/testing';
import { describe, expect, it } from 'vitest';

/** Eight hours: 480 cycles of three aggregates, with failures, people's commands and an upgrade of the planner after 2 hours. */
const UPGRADE = 120;
const CYCLES = 480;
const day = operate({ seed: 20_260_105, cycles: CYCLES, upgradeAt: UPGRADE, failures: 0.2, commands: 0.08 });
const count = (type: string): number => day.events.filter(({ event }) => event.type === type).length;

describe('eight hours of simulated operation', () => {
  it('was one in which things happened', () => {
    expect(count('cycle.decided')).toBe(CYCLES * 3);
    expect(count('migration.completed')).toBeGreaterThan(50);
    expect(count('migration.failed')).toBeGreaterThan(10);
    for (const type of [
      'plan.approved',
      'plan.rejected',
      'aggregate.paused',
      'instance.quarantined',
      'planner.configured',
    ])
      expect(count(type), type).toBeGreaterThan(3);
  });

  it('folds to the same bytes on an empty machine, and from a state kept on the way', () => {
    const whole = canonicalState(fold(day.events));
    expect(whole).toBe(canonicalState(day.end));
    for (const share of [0.1, 0.5, 0.99]) {
      const cut = Math.floor(day.events.length * share);
      const folder = createFolder();
      for (const stored of day.events.slice(0, cut)) folder.apply(stored);
      const kept = fromParts(structuredClone(toParts(folder.snapshot(), 'anchor')));
      if (!kept.ok) throw new Error(kept.problem);
      expect(canonicalState(fold(day.events.slice(cut), kept.state))).toBe(whole);
    }
  });

  it('has byte-equal decisions for every cycle of the same planner version', async () => {
    const cycles = await Array.fromAsync(verify(memoryHistory(day.events, day.snapshots), {}));
    const [older, same] = [
      cycles.filter((c) => c.plannerVersion === '0'),
      cycles.filter((c) => c.plannerVersion !== '0'),
    ];
    expect(same.length).toBe((CYCLES - UPGRADE) * 3);
    expect(verifyTotals(same)).toMatchObject({ identical: same.length, identicalShare: 1, ok: true });
    expect(verifyTotals(same, { strict: true }).ok).toBe(true);
    expect(verifyTotals(older)).toMatchObject({ different: 0, notReplayed: 0, ok: true });
    expect(older.some((cycle) => cycle.verdict === 'otherVersion')).toBe(true);
  });

  it('shows a planted difference, and nothing else', async () => {
    const planted = day.events.findLast(
      ({ event }) => event.type === 'cycle.decided' && event.data.plan !== null && event.data.release === 'released',
    );
    const events = tamper(day.events, planted?.sequence ?? 0);
    const sinceMs = Date.parse(day.snapshots.at(-120 * 3)?.time ?? '');
    const cycles = await Array.fromAsync(verify(memoryHistory(events, day.snapshots), { sinceMs }));
    expect(cycles).toHaveLength(120 * 3);
    expect(cycles.filter((cycle) => cycle.verdict !== 'identical')).toMatchObject([
      { sequence: planted?.sequence, verdict: 'different', differences: [{ path: 'refusals.planted' }] },
    ]);
  });
});
