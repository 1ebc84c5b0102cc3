import { defaultEngineOptions } from '@kronos/contracts';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { heldBack } from './drains.ts';

const state = (write: (log: ReturnType<typeof testLog>) => void, dryRun = false) => {
  const log = testLog();
  log.configured({ ...defaultEngineOptions, dryRun });
  write(log);
  return log.state();
};
const nothing = (): void => undefined;

describe('the service of a host', () => {
  it('is changed where nothing stands against it', () => {
    expect(heldBack(state(nothing), 'disable', false)).toBeNull();
    expect(heldBack(state(nothing), 'enable', false)).toBeNull();
  });

  it('is not disabled while the aggregate or all are paused, in a dry run, or before a planner has written its options', () => {
    const cases: [ReturnType<typeof state>, RegExp][] = [
      [state((log) => log.paused()), /paused/],
      [state((log) => log.about('_all_').paused()), /paused/],
      [state(nothing, true), /dry_run/],
      [testLog().state(), /options/],
    ];
    for (const [at, why] of cases) {
      expect(heldBack(at, 'disable', false)).toMatch(why);
      // What Kronos disabled is enabled all the same.
      expect(heldBack(at, 'enable', false)).toBeNull();
    }
  });

  it('is not changed at all by an executor in dry_run, or while an event cannot be read', () => {
    for (const act of ['disable', 'enable'] as const) {
      expect(heldBack(state(nothing), act, true)).toMatch(/dry_run/);
      const unreadable = state((log) => log.unreadable());
      expect(heldBack(unreadable, act, false)).toMatch(/cannot be read/);
    }
  });
});
