import { canonicalJson } from '@kronos/contracts';
import { PACES_KEPT, PACES_OF_PAIR } from '@kronos/rules';
import { describe, expect, it } from 'vitest';
import { type TestLog, testLog } from '../testing/index.ts';
import { type CheckpointPart, canonicalState, fromParts, toParts } from './checkpoint.ts';
import { fold } from './evolve.ts';
import { copyRate, expectedDuration, movePaces, pace, pacesOfAll, planTime, timeTogether } from './pace.ts';
import { PAIRS_KEPT } from './state.ts';

/** 8 GiB of RAM and the 20 GiB of disk of the test log's servers: 30 GiB with the fixed part. */
const begun = (log: TestLog, to = 'h2', n = 0): string => {
  const task = `${log.released([{ serverId: `vm${n}`, from: 'h1', to, ramMb: 8192 }])}-s1`;
  log.started({ task });
  return task;
};
function moved(log: TestLog, moves: number, seconds = 90, to = 'h2'): TestLog {
  for (let n = 0; n < moves; n++) {
    const task = begun(log, to, n);
    log.pass(seconds).completed({ task }, seconds);
    log.pass(60);
  }
  return log;
}

describe('the paces of moves', () => {
  it('are folded of what completed, by source and destination, from the start to the end of each', () => {
    const log = moved(moved(testLog(), 19), 5, 30, 'h3');
    expect(pace(log.state(), { from: 'h1', destination: 'h2' }, [])).toEqual({
      of: 'pair',
      moves: 19,
      median: 3000,
      interval: { low: 3000, high: 3000 },
    });
    expect(pace(log.state(), { from: 'h1', destination: 'h3' }, [])).toMatchObject({
      of: 'aggregate',
      moves: 24,
      interval: { low: 1000 },
    });
    expect(expectedDuration(log.state(), { from: 'h1', destination: 'h2', gib: 8 }, [])).toEqual({
      expectedMs: 30_000,
      interval: { lowMs: 30_000, highMs: 30_000 },
    });
  });

  it('of another aggregate count where there are too few of the own', () => {
    const log = moved(testLog(), 19).about('other');
    moved(log, 2);
    const pair = { from: 'h1', destination: 'h2', gib: 8 };
    expect(pace(log.state('other'), pair, pacesOfAll(log.fold()))).toMatchObject({ of: 'all', moves: 21 });
    expect(pace(log.state('other'), pair, [])).toBeNull();
    expect(expectedDuration(testLog().state(), pair, [])).toBeNull();
  });

  it('are given to a decision for its own hosts, and not at all where nothing is known', () => {
    const hosts = [{ name: 'h1' }, { name: 'h2' }];
    const log = moved(moved(testLog(), 19), 19, 30, 'h3');
    expect(movePaces(log.state(), hosts)).toEqual({ others: 2000, pairs: { h1: { h2: 3000 } } });
    expect(movePaces(testLog().state(), hosts)).toBeNull();
  });

  it('count a move that ran into its deadline: else earlier deadlines would make moves look faster', () => {
    const log = moved(testLog(), 3);
    const task = begun(log);
    log.pass(900).failed({ task, errorType: 'MigrationTimeout', nova: { runningMs: 900_000 } });
    expect(log.state().paces).toEqual([3000, 3000, 3000, 30_000]);
  });

  it.each([
    ['that failed otherwise', (log: TestLog, task: string) => log.failed({ task, nova: { runningMs: 90_000 } })],
    ['that never ran in Nova', (log: TestLog, task: string) => log.failed({ task, errorType: 'MigrationTimeout' })],
    [
      'that ended with a warning',
      (log: TestLog, task: string) => log.completed({ task }, 90, [{ code: 'x', text: 'x' }]),
    ],
    ['of a dry run', (log: TestLog, task: string) => log.skipped({ task })],
    ['of another attempt', (log: TestLog, task: string) => log.completed({ task, attempt: 2 })],
  ])('do not count a move %s', (_, end) => {
    const log = testLog();
    const task = begun(log);
    log.pass(90);
    end(log, task);
    expect(log.state()).toMatchObject({ paces: [], copyRates: [], pairPaces: new Map() });
  });

  it('do not count a move without a start, nor one between cells', () => {
    const log = testLog();
    const task = `${log.released([{ serverId: 'vm', from: 'h1', to: 'h2' }])}-s1`;
    log.pass(90).completed({ task });
    const cells = log.cellsProposed([{ serverId: 'vm2', from: 'h1', to: 'h9' }], { to: 'other' });
    log.approved(cells);
    log.started({ task: `${cells}-s1` });
    log.pass(90).completed({ task: `${cells}-s1` });
    expect(log.state().paces).toEqual([]);
  });

  it('are bounded: the newest of each pair, of the pairs with the latest moves, and of all', () => {
    const log = moved(testLog(), PACES_KEPT + 5, 60);
    for (let n = 0; n < PAIRS_KEPT; n++) moved(log, 1, 30, `to-${n}`);
    const { paces, pairPaces, copyRates } = log.state();
    expect([paces.length, copyRates.length]).toEqual([PACES_KEPT, PACES_KEPT]);
    expect(pairPaces.size).toBe(PAIRS_KEPT);
    expect(pairPaces.get('h1\th2')).toBeUndefined();
    expect(new Set(paces)).toEqual(new Set([1000]));
    const one = moved(testLog(), PACES_OF_PAIR + 5).state();
    expect(one.pairPaces.get('h1\th2')?.paces).toHaveLength(PACES_OF_PAIR);
  });

  it('are the same from a checkpoint, which keeps no order of the pairs', () => {
    const log = testLog();
    for (let n = PAIRS_KEPT; n > 0; n--) moved(log, 1, 30, `to-${String(n).padStart(3, '0')}`);
    const known = log.events.length;
    moved(moved(log, 1, 90, 'new-1'), 1, 90, 'to-100');
    const parts = toParts(fold(log.events.slice(0, known)), 'anchor');
    const restored = fromParts(JSON.parse(canonicalJson(parts)) as CheckpointPart[]);
    if (!restored.ok) throw new Error(restored.problem);
    expect(canonicalState(fold(log.events.slice(known), restored.state))).toBe(canonicalState(log.fold()));
    expect(log.state().pairPaces.has(`h1\tto-${PAIRS_KEPT}`)).toBe(false);
  });
});

describe('the rate at which moves copied', () => {
  it('is the median of what Nova counted, and unknown for fewer than 3', () => {
    const log = moved(moved(testLog(), 1, 8), 1, 16);
    expect(copyRate(log.state())).toBeNull();
    // 4 GiB each.
    expect(copyRate(moved(log, 1, 32).state())).toBe(4_294_967_296 / 16);
  });
});

describe('the time of a plan', () => {
  const step = (from: string, ramMb: number) => ({ from, to: 'h9', ramMb, diskGb: 0 });
  const { ...known } = testLog().state();
  const state = { ...known, paces: Array.from({ length: 20 }, () => 1000) };

  it('is that of the host with the longest moves, one after the other', () => {
    const [one, both] = [[step('h1', 8192)], [step('h1', 8192), step('h1', 8192)]].map(
      (steps) => planTime(state, steps, [])?.expectedMs ?? 0,
    );
    expect(both).toBe(2 * (one ?? 0));
    expect(planTime(state, [step('h2', 1024), step('h1', 8192), step('h1', 8192)], [])?.expectedMs).toBe(both);
    expect(planTime(state, [step('h1', 8192)], [])?.interval).not.toBeNull();
  });

  it('is assumed from the first plan on, until enough moves are known', () => {
    const unknown = { ...state, paces: [] };
    expect(planTime(unknown, [step('h1', 8192)], [])).toEqual({ expectedMs: 100_000, interval: null, measured: false });
    expect(planTime(unknown, [step('h1', 8192)], [1000, 1000, 1000])?.measured).toBe(true);
    expect(planTime(unknown, [], [])).toBeNull();
  });

  it('of moves off two hosts is that of the slower host', () => {
    const took = { expectedMs: 60_000, interval: null, measured: false };
    const [a, b] = [{ from: 'a' }, { from: 'b' }];
    expect(timeTogether([a, b], () => took)).toEqual(took);
    expect(timeTogether([a, a, b], () => took)).toEqual({ ...took, expectedMs: 120_000 });
    expect(timeTogether([], () => took)).toBeNull();
  });
});
