import type { LogEvent, StoredEvent } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { TEST_START_MS, testLog } from '../testing/index.ts';
import { createFolder, fold } from './evolve.ts';
import { aggregateState } from './state.ts';

const move = (n: number) => ({ serverId: `vm${n}`, from: 'h1', to: 'h2' });
const iso = (ms: number): string => new Date(ms).toISOString();
const at = (seconds: number): number => TEST_START_MS + seconds * 1000;
const gpu = (events: readonly StoredEvent[]) => aggregateState(fold(events), 'gpu');

/** The log with its last event changed. */
function forge(log: ReturnType<typeof testLog>, change: (event: LogEvent) => void): readonly StoredEvent[] {
  const copy = structuredClone(log.events);
  const last = copy.at(-1);
  if (last === undefined || last.event.type === 'unreadable') throw new Error('nothing to forge');
  change(last.event);
  return copy;
}

describe('a plan passes by neither dry_run nor approval', () => {
  it.each([
    ['released', { dryRun: true }, /dry_run/],
    ['proposed', { dryRun: true }, /dry_run/],
    ['released', { approval: 'manual' }, /approval/],
  ] as const)('%s under %j makes the aggregate unplannable and releases nothing', (release, options, problem) => {
    const log = testLog();
    log.configured(options);
    log.decided(release, [move(1)]);
    const state = log.state();
    expect(state.unreadable).toMatchObject({ sequence: 2, claimedType: 'cycle.decided', remedy: 'skip' });
    expect(state.unreadable?.problem).toMatch(problem);
    expect([state.plans.size, state.tasks.size, state.lastRelease, state.decided]).toEqual([0, 0, null, null]);
  });

  it.each([
    ['released', {}],
    ['proposed', { approval: 'manual' }],
    ['proposed', {}],
    ['dryRun', { dryRun: true }],
    ['none', { dryRun: true, approval: 'manual' }],
  ] as const)('%s under %j is what it says', (release, options) => {
    const log = testLog();
    log.configured(options);
    log.decided(release, release === 'none' ? [] : [move(1)]);
    expect(log.state()).toMatchObject({ unreadable: null, decided: { release } });
  });

  it('judges by the options in force at the decision, not by earlier or later ones', () => {
    const log = testLog();
    log.configured({ dryRun: true });
    log.configured({ dryRun: false });
    const plan = log.released([move(1)]);
    log.configured({ dryRun: true });
    expect(log.state().unreadable).toBeNull();
    expect(log.state().plans.get(plan)?.state).toBe('released');
  });

  it('is not approved once dry_run was turned on while it waited', () => {
    const log = testLog();
    log.configured({ approval: 'manual' });
    const plan = log.proposed([move(1)]);
    log.configured({ approval: 'manual', dryRun: true });
    log.approved(plan);
    expect(log.state().plans.get(plan)?.state).toBe('proposed');
    expect(log.state().tasks.size).toBe(0);
  });
});

describe('no clock and no forged year reaches further than a minute', () => {
  it('not the time of an event', () => {
    const log = testLog();
    const plan = log.configured() && log.released([move(1)]);
    log.started({ task: `${plan}-s1` });
    log.completed({ task: `${plan}-s1` });
    const stored = log.events.at(-1)?.storedAt ?? 0;
    for (const [time, ms] of [
      ['2099-01-01T00:00:00.000Z', stored + 60_000],
      ['1999-01-01T00:00:00.000Z', stored - 60_000],
    ] as const)
      expect(gpu(forge(log, (e) => Object.assign(e, { time }))).lastMoveEnd?.atMs).toBe(ms);
  });

  it('not the time of a snapshot: the next one is decided', () => {
    const log = testLog();
    log.configured();
    log.decided();
    const forged = forge(log, (e) => Object.assign(e.data, { snapshotTime: '2099-01-01T00:00:00.000Z' }));
    const stored = forged.at(-1)?.storedAt ?? 0;
    expect(gpu(forged).decided?.snapshotMs).toBe(stored + 60_000);
    log.pass(120).decided();
    const next = log.events.at(-1);
    expect(next === undefined ? 0 : gpu([...forged, next]).decided?.snapshotMs).toBe(at(120));
  });

  it('not the next attempt of a task', () => {
    const log = testLog();
    log.configured();
    const plan = log.released([move(1)]);
    log.failed({ task: `${plan}-s1`, retry: { notBeforeSeconds: 30 } });
    const task = (events: readonly StoredEvent[]) => gpu(events).tasks.get(`${plan}-s1`);
    expect(task(log.events)?.notBeforeMs).toBe(at(30));
    const forged = forge(log, (e) => {
      if (e.type === 'migration.failed' && e.data.next !== null) e.data.next.notBefore = '2099-01-01T00:00:00.000Z';
    });
    expect(task(forged)?.notBeforeMs).toBe(at(3600));
  });

  it('not an approval: an operator whose clock is 25 minutes slow cannot approve a plan that expired', () => {
    const log = testLog();
    log.configured({ approval: 'manual', approvalTtlSeconds: 900 });
    const plan = log.proposed([move(1)]);
    log.pass(1500).approved(plan);
    expect(gpu(forge(log, (e) => Object.assign(e, { time: iso(at(1)) }))).plans.get(plan)?.release).toBeNull();
  });

  it('not the claim of a restore, once an event came that no restore published', () => {
    const log = testLog();
    log.paused();
    log.pass(600).again(log.events[0]?.event as LogEvent);
    log.resumed();
    log.paused();
    const [first, second, third, fourth] = log.events;
    if (first === undefined || second === undefined || third === undefined || fourth === undefined) throw new Error();
    const claim = { originallyStoredAt: 5_000 };
    const time = iso(0);
    const late = { ...fourth, ...claim, event: { ...fourth.event, time } as LogEvent };
    expect(gpu([first, second, third, late]).paused.here?.atMs).toBe(fourth.storedAt - 60_000);
    const all = [first, second, third].map((stored) => ({ ...stored, ...claim }));
    expect(gpu([...all, late]).paused.here?.atMs).toBe(0);
  });
});

describe('no event ends the fold', () => {
  it('not the answer to a plan whose steps depend on one another in one long chain', () => {
    const log = testLog();
    log.configured({ approval: 'manual' });
    const steps = Array.from({ length: 20_000 }, (_, i) => ({ ...move(i), ...(i > 0 ? { dependsOn: [i] } : {}) }));
    const plan = log.proposed(steps);
    log.approved(plan, [20_000]);
    expect(log.state().plans.get(plan)?.tasks).toHaveLength(20_000);
    const other = log.pass(60).proposed([...steps].reverse());
    log.rejected(other, [20_000]);
    expect(log.state().unreadable).toBeNull();
  });

  it('not one that cannot be folded: it makes its aggregate unplannable, and the fold goes on', () => {
    const log = testLog();
    log.configured();
    log.decided();
    const broken = forge(log, (e) => Object.assign(e, { data: null }));
    log.paused();
    const folder = createFolder();
    for (const stored of [...broken, ...log.events.slice(-1)]) folder.apply(stored);
    const state = aggregateState(folder.snapshot(), 'gpu');
    expect(state.unreadable).toMatchObject({ sequence: 2, claimedType: 'cycle.decided', remedy: 'skip' });
    expect(state.paused.here).not.toBeNull();
  });
});

describe("a planner's result about a started task", () => {
  const result = (closed: boolean) => {
    const log = testLog();
    log.configured();
    const task = `${log.released([move(1)])}-s1`;
    log.started({ task });
    if (closed) log.closed(task);
    log.failed({ task, errorType: 'Cancelled' });
    const events = forge(log, (event) => {
      Object.assign(event.by, { service: 'planner' });
      if (event.type === 'migration.failed') Object.assign(event.data.reason, { code: 'closed' });
    });
    return gpu(events).tasks.get(task);
  };

  it('ends the task when an operator closed it', () => {
    expect(result(true)).toMatchObject({ status: 'failed', slot: null });
  });

  it('does nothing when nobody did: its slot stays taken', () => {
    expect(result(false)).toMatchObject({ status: 'started', end: null });
  });
});
