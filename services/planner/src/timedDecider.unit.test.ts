import { defaultEngineOptions, type EngineOptions } from '@kronos/contracts';
import { type CycleInput, decideHere, digest, optionsOfDecision } from '@kronos/cycle';
import { type Sketch, snapshotOf } from '@kronos/placement/testing';
import { aggregateState, initialLogState } from '@kronos/projections';
import { checkOf } from '@kronos/telemetry';
import { beforeEach, describe, expect, it } from 'vitest';
import { slowText, timedDecider } from './timedDecider.ts';

const INTERVAL_SECONDS = 60;
const WALL_MS = Date.UTC(2026, 0, 1);

type Given = {
  readonly loweredWork?: CycleInput['state']['loweredWork'];
  readonly options?: Partial<EngineOptions>;
  readonly policies?: Sketch['policies'];
};

const input = (aggregate: string, { loweredWork = null, options = {}, policies = {} }: Given = {}): CycleInput => ({
  snapshot: {
    ...snapshotOf({
      policies,
      hosts: { h1: {}, h2: {} },
      vms: {},
      snapshot: { intervalSeconds: INTERVAL_SECONDS },
    }),
    aggregate,
  },
  state: { ...aggregateState(initialLogState(), aggregate), loweredWork },
  options: { ...defaultEngineOptions, ...options },
});

describe('the text about a slow decision', () => {
  const took = (ms: number, work: 'search' | 'least' | 'none', waitedMs = 0) =>
    slowText({ ms, intervalSeconds: INTERVAL_SECONDS, ended: { waitedMs, work } });

  it('is there when it takes 2 s longer than its interval, not before', () => {
    expect(took(62_000, 'search')).toBeNull();
    expect(took(62_001, 'search')).toBe(
      'a decision took 62.1 s, and one is due every 60 s: the next ones search with less work',
    );
    expect(slowText({ ms: 75_000, intervalSeconds: INTERVAL_SECONDS, ended: null })).toBe(
      'a decision has taken 75 s so far, and one is due every 60 s',
    );
  });

  it('promises less work only where there is less, and says what happens otherwise', () => {
    expect(took(75_000, 'least')).toBe(
      'a decision took 75 s, and one is due every 60 s: it had the least work already, and snapshots are skipped until decisions take less time',
    );
    expect(took(75_000, 'none')).toBe(
      'a decision took 75 s, and one is due every 60 s: it makes no search that could have less work, and snapshots are skipped until decisions take less time',
    );
    expect(took(123_000, 'least')).toBe(
      'a decision took 123 s, and one is due every 60 s: it had the least work already, and its snapshot was too old then, so nothing is decided until decisions take less time',
    );
  });

  it('is there too when it waited until its snapshot was too old', () => {
    expect(took(10_000, 'least', 110_000)).toBeNull();
    expect(took(10_000, 'search', 115_000)).toBe(
      'a decision took 10 s after it had waited 115 s for those of other aggregates, and one is due every 60 s: the next ones search with less work',
    );
  });
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
    start();
  });

  /** Starts a new process. */
  function start(): void {
    timed = timedDecider(
      {
        async cycle(asked, begun) {
          await turn.promise;
          begun?.();
          await work.promise;
          return decideHere.cycle(asked);
        },
      },
      // Of what the monotonic clock says, nothing is known after a restart.
      { monotonic: () => nowMs, now: () => WALL_MS + nowMs },
    );
  }

  it('does not count the wait for the decisions of other aggregates', async () => {
    const decided = timed.cycle(input('gpu'));
    nowMs += 100_000;
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
  async function limitOf(waitMs: number, tookMs: number, given: Given = {}): Promise<number> {
    [turn, work] = [Promise.withResolvers(), Promise.withResolvers()];
    const asked = input('gpu', given);
    const decided = timed.cycle(asked);
    nowMs += waitMs;
    turn.resolve();
    await turn.promise;
    nowMs += tookMs;
    work.resolve();
    const { searchWorkLimit, digests } = await decided;
    const options = optionsOfDecision(asked.options, { searchWorkLimit });
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

  it('has less work than any share of a huge limit', async () => {
    const options = { searchWorkLimit: 1_000_000 * FULL };
    for (let i = 0; i < 5; i++) await limitOf(0, 1_200_000, { options });
    expect(await limitOf(0, 0, { options })).toBe(FULL / 64);
    expect(texts()).toEqual([]);
    await limitOf(0, 63_000, { options });
    expect(texts()).toEqual([expect.stringContaining('it had the least work already')]);
  });

  it('lowers nothing where nothing is searched', async () => {
    const greedy: Given = { options: { planner: 'greedy' } };
    const rules: Given = { options: { balance: false } };
    const pack: Given = { policies: { cpu: { mode: 'pack' } } };
    for (const given of [greedy, rules, pack]) {
      start();
      await limitOf(0, 150_000, given);
      expect(texts()).toEqual([expect.stringContaining('it makes no search that could have less work')]);
      expect(await limitOf(0, 0, given)).toBe(FULL);
    }
  });

  it('takes the limit of the last decision up from the log after a restart, and doubles it in its time', async () => {
    const loweredWork = { limit: FULL / 8, sinceMs: WALL_MS };
    nowMs = 600_000;
    start();
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL / 8);
    nowMs += 299_999;
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL / 8);
    nowMs += 1;
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL / 4);
    // The log may have the limit of another planner then.
    nowMs += 900_000;
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL / 2);
    nowMs += 900_000;
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL);
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL);
  });

  it('waits no longer than its time for a limit of a clock that was ahead', async () => {
    const loweredWork = { limit: FULL / 8, sinceMs: WALL_MS + 86_400_000 };
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL / 8);
    nowMs += 900_000;
    expect(await limitOf(0, 0, { loweredWork })).toBe(FULL / 4);
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
