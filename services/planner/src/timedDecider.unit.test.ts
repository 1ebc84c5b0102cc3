import { defaultEngineOptions } from '@kronos/contracts';
import { type CycleInput, decideHere, digest } from '@kronos/cycle';
import { snapshotOf } from '@kronos/placement/testing';
import { aggregateState, initialLogState } from '@kronos/projections';
import { checkOf } from '@kronos/telemetry';
import { beforeEach, describe, expect, it } from 'vitest';
import { slowText, timedDecider } from './timedDecider.ts';

const INTERVAL_SECONDS = 60;

const input = (aggregate: string): CycleInput => ({
  snapshot: {
    ...snapshotOf({
      policies: {},
      hosts: { h1: {}, h2: {} },
      vms: {},
      snapshot: { intervalSeconds: INTERVAL_SECONDS },
    }),
    aggregate,
  },
  state: aggregateState(initialLogState(), aggregate),
  options: defaultEngineOptions,
});

it('a decision is slow when it takes 2 s longer than its interval, not before', () => {
  const taking = { intervalSeconds: INTERVAL_SECONDS, ended: true };
  expect(slowText({ ...taking, ms: 62_000 })).toBeNull();
  expect(slowText({ ...taking, ms: 62_001 })).toBe(
    'a decision took 62.1 s, and one is due every 60 s: the next ones search with less work',
  );
  expect(slowText({ ...taking, ms: 75_000, ended: false })).toBe(
    'a decision has taken 75 s so far, and one is due every 60 s',
  );
});

describe('a decider that notes how long decisions take', () => {
  let nowMs: number;
  /** The decider waits for these two: first for its turn, then for its own work. */
  let turn: PromiseWithResolvers<void>;
  let work: PromiseWithResolvers<void>;
  let timed: ReturnType<typeof timedDecider>;
  const texts = (): string[] => timed.slow().map(({ part, text }) => `${part}: ${text}`);

  beforeEach(() => {
    nowMs = 0;
    turn = Promise.withResolvers();
    work = Promise.withResolvers();
    timed = timedDecider(
      {
        async cycle(asked, begun) {
          await turn.promise;
          begun?.();
          await work.promise;
          return decideHere.cycle(asked);
        },
      },
      { monotonic: () => nowMs },
    );
  });

  it('does not count the wait for the decisions of other aggregates', async () => {
    const decided = timed.cycle(input('gpu'));
    nowMs += 500_000;
    expect(texts()).toEqual([]);
    turn.resolve();
    work.resolve();
    expect(await decided).toMatchObject({ decideMs: 0, decision: { outcome: 'quiet' } });
    expect(checkOf(timed.slow())).toEqual({ ok: true });
  });

  it('names an aggregate while its decision takes too long, and until a later one takes less', async () => {
    turn.resolve();
    const first = timed.cycle(input('gpu'));
    await turn.promise;
    nowMs += 63_000;
    expect(texts()).toEqual(['gpu: a decision has taken 63 s so far, and one is due every 60 s']);
    nowMs += 12_000;
    work.resolve();
    expect((await first).decideMs).toBe(75_000);
    await timed.cycle(input('cpu'));
    const took = 'a decision took 75 s, and one is due every 60 s: the next ones search with less work';
    expect(checkOf(timed.slow())).toEqual({
      ok: false,
      reason: `gpu: ${took}`,
      parts: [{ code: 'decision-slow', part: 'gpu', text: took }],
    });

    work = Promise.withResolvers();
    const second = timed.cycle(input('gpu'));
    await turn.promise;
    expect(texts()).toEqual([`gpu: ${took}`]);
    work.resolve();
    await second;
    expect(texts()).toEqual([]);
  });

  /** Decides a cycle for which it waits, and then takes some time; returns the limit of its search. */
  async function limitOf(waitMs: number, tookMs: number): Promise<number> {
    [turn, work] = [Promise.withResolvers(), Promise.withResolvers()];
    const decided = timed.cycle(input('gpu'));
    nowMs += waitMs;
    turn.resolve();
    await turn.promise;
    nowMs += tookMs;
    work.resolve();
    const { searchWorkLimit, digests } = await decided;
    const options = { ...defaultEngineOptions, ...(searchWorkLimit === undefined ? {} : { searchWorkLimit }) };
    expect(digests.options).toBe(digest(options));
    return options.searchWorkLimit;
  }
  const FULL = defaultEngineOptions.searchWorkLimit;

  it('lowers the work after a decision that took longer than its interval, so that the same one takes half of it; a quarter of an hour later it doubles it', async () => {
    expect(await limitOf(0, 60_000)).toBe(FULL);
    expect(await limitOf(0, 120_000)).toBe(FULL);
    expect(await limitOf(0, 30_000)).toBe(FULL / 4);
    expect(await limitOf(0, 61_000)).toBe(FULL / 4);
    const least = Math.floor((FULL / 4) * (30 / 61));
    expect(await limitOf(0, 0)).toBe(least);
    await timed.cycle(input('cpu')).then(({ searchWorkLimit }) => expect(searchWorkLimit).toBeUndefined());
    const limits: number[] = [];
    for (let quarter = 0; quarter < 5; quarter++) {
      nowMs += 900_000;
      limits.push(await limitOf(0, 0), await limitOf(0, 0));
    }
    expect(limits).toEqual([2, 2, 4, 4, 8, 8].map((times) => times * least).concat([FULL, FULL, FULL, FULL]));
  });

  it('does so too where it waited for the decisions of other aggregates: its snapshot has become as old', async () => {
    expect(await limitOf(90_000, 30_000)).toBe(FULL);
    expect(await limitOf(0, 0)).toBe(FULL / 4);
    expect(texts()).toEqual([]);
  });

  it('never lowers the work below a 64th', async () => {
    for (let i = 0; i < 3; i++) await limitOf(0, 1_200_000);
    expect(await limitOf(0, 0)).toBe(FULL / 64);
  });

  it('counts a decision that fails', async () => {
    turn.resolve();
    const decided = timed.cycle(input('gpu'));
    await turn.promise;
    nowMs += 75_000;
    work.reject(new Error('no thread'));
    await expect(decided).rejects.toThrow('no thread');
    expect(texts()).toEqual([
      'gpu: a decision took 75 s, and one is due every 60 s: the next ones search with less work',
    ]);
  });
});
