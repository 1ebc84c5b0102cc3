import { type Clock, systemClock } from '@kronos/clock';
import { manualClock, until } from '@kronos/clock/testing';
import { ALL, type SnapshotTaken } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import { demoCloud } from '@kronos/simcloud';
import { checkOf } from '@kronos/telemetry';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Bed, type BedScorer, openBed, type ScorerOptions } from '../testing/bed.ts';
import { createScoreLoop, type ScoreLoop } from './scoreLoop.ts';
import { Seen } from './seen.ts';
import { SnapshotStream } from './snapshotStream.ts';

let bed: Bed;
beforeAll(async () => {
  bed = await openBed({ scenario: demoCloud(), scope: ['general'] });
});
afterAll(() => bed.close());

interface Running extends ScoreLoop {
  readonly scorer: BedScorer;
  /** Requests of each observation so far. */
  readonly takes: (readonly string[])[];
  /** Number of observations that it has ended. */
  taken(): number;
  stop(): Promise<void>;
}

const running: Running[] = [];
afterEach(async () => {
  bed.onWrite = () => undefined;
  await Promise.all(running.splice(0).map((one) => one.stop()));
});

const start = (options: ScorerOptions & { readonly intervalMs: number; readonly clock?: Clock }): Running => {
  const { name = 'scorer-1', clock = systemClock } = options;
  const scorer = bed.scorer(options);
  const takes: (readonly string[])[] = [];
  let ends = 0;
  const ending = new AbortController();
  const cycle = createScoreLoop({
    log: bed.log,
    scorer: {
      take: (requests, signal) => {
        takes.push(requests.map((one) => one.id));
        return scorer.take(requests, signal).finally(() => {
          ends += 1;
        });
      },
      longest: scorer.longest,
    },
    seen: scorer.seen,
    scope: ['general'],
    intervalMs: options.intervalMs,
    clock,
    maxClockSkewMs: 5000,
    instance: name,
    logger: options.logger ?? bed.silent,
    metrics: scorer.metrics.instruments,
    signal: ending.signal,
  });
  const done = cycle.run();
  const one: Running = {
    ...cycle,
    scorer,
    takes,
    taken: () => ends,
    async stop() {
      ending.abort();
      await done;
    },
  };
  running.push(one);
  return one;
};

const cycles = (taken: readonly SnapshotTaken[], intervalSeconds: number): number[] =>
  taken
    .filter((one) => one.data.purpose === 'cycle' && one.data.intervalSeconds === intervalSeconds)
    .map((one) => one.data.cycle);

describe('the cycle', () => {
  test('takes a snapshot as each cycle begins, named by the clock', async () => {
    const one = start({ intervalMs: 700 });
    // A busy machine may begin the observation after its cycle.
    const begun = ({ data }: SnapshotTaken): number => Math.floor(Date.parse(data.observedFrom) / 700);
    const taken = await bed.until(
      'four cycles, one of them observed as it began',
      (all) => cycles(all, 0.7).length >= 4 && all.some((each) => each.data.cycle === begun(each)),
    );
    const numbers = cycles(taken, 0.7);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    for (const each of taken) {
      const { data, time, aggregate } = each;
      expect(data.cycle).toBeLessThanOrEqual(begun(each));
      expect(data.snapshotId).toBe(`${aggregate}-${data.cycle}`);
      expect(Date.parse(time)).toBeGreaterThanOrEqual(Date.parse(data.observedFrom));
    }
    expect(one.current()).toEqual({ ok: true });
    expect(one.clockRight()).toEqual({ ok: true });
  });

  test('that overran leaves out the cycles that went by, and counts them', async () => {
    bed.sim.act({
      act: 'faultApi',
      fault: { api: 'compute', path: '/servers/detail', times: 1, effect: { kind: 'latency', ms: 1500 } },
    });
    const one = start({ intervalMs: 400 });
    const numbers = cycles(await bed.until('three cycles', (all) => cycles(all, 0.4).length >= 3), 0.4);
    expect((numbers[1] ?? 0) - (numbers[0] ?? 0)).toBeGreaterThan(2);
    expect(await one.scorer.metrics.scrape()).toMatch(/kronos_cycles_skipped_total [1-9]/);
  });

  test('ends at once when it is told to, also in the middle of an observation', async () => {
    bed.sim.act({ act: 'pauseApi', api: 'compute' });
    try {
      const one = start({ intervalMs: 60_000 });
      await expect.poll(() => one.takes.length).toBe(1);
      const from = performance.now();
      await one.stop();
      expect(performance.now() - from).toBeLessThan(20_000);
    } finally {
      bed.sim.act({ act: 'resumeApi', api: 'compute' });
    }
  });

  test('outlives a NATS server that goes away and comes back', async () => {
    const one = start({ intervalMs: 450 });
    const before = cycles(await bed.until('two cycles', (all) => cycles(all, 0.45).length >= 2), 0.45).length;
    await bed.nats.kill();
    await bed.nats.restart();
    await bed.until('cycles after the restart', (all) => cycles(all, 0.45).length >= before + 3);
    await bed.request('general', 'record', 'after-restart');
    await bed.until('the snapshot asked for', (all) =>
      all.some((taken) => taken.data.snapshotId === 'general-c-after-restart'),
    );
    expect(one.current()).toEqual({ ok: true });
  });

  test('goes on after a cycle in which nothing could be taken', async () => {
    let broken = true;
    bed.onWrite = (write) => {
      if (!broken || write.kind !== 'snapshot') return;
      broken = false;
      throw new Error('no room');
    };
    start({ intervalMs: 300 });
    await bed.until('a snapshot', (all) => cycles(all, 0.3).length >= 2);
    expect(broken).toBe(false);
  });
});

describe('two scorers', () => {
  /** Both read one clock, which the test moves: a busy machine does not make either of them late. */
  const clockAtCycle = (intervalMs: number) => manualClock(Math.ceil(Date.now() / intervalMs) * intervalMs);
  /** Waits until both have seen the snapshot of the cycle, and neither is observing. */
  const attended = (both: readonly Running[], cycle: number) =>
    until(() => both.every((one) => one.scorer.seen.cycle('general') === cycle && one.taken() === one.takes.length));

  test('are harmless: one snapshot per cycle, and one of them stands by', async () => {
    const intervalMs = 60_000;
    const clock = clockAtCycle(intervalMs);
    const both = [start({ name: 'one', intervalMs, clock }), start({ name: 'two', intervalMs, clock })];
    const first = clock.now() / intervalMs;
    for (let cycle = first; cycle < first + 5; cycle++) {
      await attended(both, cycle);
      clock.advance(intervalMs);
    }
    await attended(both, first + 5);
    expect(cycles(await bed.taken(), 60)).toEqual(Array.from({ length: 6 }, (_, i) => first + i));
    // The one that stands by finds the snapshots there and asks nobody.
    const takes = both.map((one) => one.takes.length).sort((a, b) => a - b);
    expect(takes[0]).toBeLessThanOrEqual(2);
    expect(takes[1]).toBeGreaterThanOrEqual(4);
  });

  test('one takes over within half a cycle when the other one ends', async () => {
    const intervalMs = 70_000;
    const clock = clockAtCycle(intervalMs);
    const begun = clock.now() / intervalMs;
    const first = start({ name: 'first', intervalMs, clock });
    await attended([first], begun);
    const second = start({ name: 'second', intervalMs, clock });
    await attended([first, second], begun);
    clock.advance(intervalMs);
    await attended([first, second], begun + 1);
    await first.stop();
    // At half of the cycle it has waited long enough.
    clock.advance(1.5 * intervalMs);
    await attended([second], begun + 2);
    clock.advance(intervalMs / 2);
    await attended([second], begun + 3);
    expect(cycles(await bed.taken(), 70)).toEqual([0, 1, 2, 3].map((i) => begun + i));
  });
});

describe("an operator's request", () => {
  const byId = (all: readonly SnapshotTaken[], id: string) => all.filter((one) => one.data.snapshotId === id);

  test('is answered at once, between two cycles', async () => {
    const one = start({ intervalMs: 3_600_000 });
    await expect.poll(() => one.takes.length).toBe(1);
    await bed.request('general', 'evaluate', 'ask-1');
    const taken = await bed.until('the snapshot asked for', (all) => byId(all, 'general-c-ask-1').length > 0);
    expect(byId(taken, 'general-c-ask-1')[0]).toMatchObject({
      correlationId: 'ask-1',
      data: { purpose: 'command' },
    });
    expect(byId(taken, 'general-c-ask-1')[0]?.causationId).toContain('ask-1');
  });

  test('to record gives a snapshot that is never planned; one of all aggregates is of each', async () => {
    const one = start({ intervalMs: 3_600_000 });
    await bed.request(ALL, 'record', 'ask-2');
    const taken = await bed.until('the snapshot asked for', (all) => byId(all, 'general-c-ask-2').length > 0);
    expect(byId(taken, 'general-c-ask-2')[0]?.data.purpose).toBe('record');
    expect(one.takes.flat().filter((id) => id === 'general-c-ask-2')).toHaveLength(1);
  });

  test('is answered once by two scorers', async () => {
    const both = ['one', 'two'].map((name) => start({ name, intervalMs: 3_600_000 }));
    await bed.request('general', 'record', 'ask-3');
    await expect.poll(() => both.map((one) => one.scorer.seen.has('general', 'general-c-ask-3'))).toEqual([true, true]);
    expect(byId(await bed.taken(), 'general-c-ask-3')).toHaveLength(1);
  });

  test('that was asked while no scorer ran is answered at the start, and not again at the next one', async () => {
    await bed.request('general', 'record', 'ask-4');
    const first = start({ intervalMs: 3_600_000 });
    await bed.until('the snapshot asked for', (all) => byId(all, 'general-c-ask-4').length > 0);
    await first.stop();
    const second = start({ name: 'second', intervalMs: 3_600_000 });
    await bed.request('general', 'record', 'ask-5');
    await bed.until('the next one', (all) => byId(all, 'general-c-ask-5').length > 0);
    expect(second.takes.flat().filter((id) => id.includes('-c-'))).toEqual(['general-c-ask-5']);
  });

  test('whose snapshot could not be taken is tried again', async () => {
    let broken = 1;
    bed.onWrite = (write) => {
      if (write.kind !== 'snapshot' || write.snapshot.purpose === 'cycle' || broken-- <= 0) return;
      throw new Error('no room');
    };
    start({ intervalMs: 3_600_000 });
    await bed.request('general', 'record', 'ask-8');
    await bed.until('the snapshot asked for', (all) => byId(all, 'general-c-ask-8').length > 0);
    expect(broken).toBeLessThan(1);
  });

  test('of an aggregate out of scope is left alone', async () => {
    const one = start({ intervalMs: 3_600_000 });
    await bed.request('elsewhere', 'record', 'ask-6');
    await bed.request('general', 'record', 'ask-7');
    await bed.until('the snapshot asked for', (all) => byId(all, 'general-c-ask-7').length > 0);
    expect(one.takes.flat().filter((id) => id.includes('ask-6'))).toEqual([]);
  });
});

describe('a snapshot of this process', () => {
  test.each([
    [-60, 'a late one', { current: { parts: [{ code: 'stored-late', part: 'general' }] }, clockRight: { ok: true } }],
    // By much: a busy machine takes some seconds to store it.
    [60, 'a wrong clock', { current: { ok: true }, clockRight: { ok: false } }],
  ])('whose time is %d s off the stamp of its message is %s', async (seconds, instance, found) => {
    const stream = new SnapshotStream({
      log: bed.log,
      seen: new Seen(),
      scope: ['general'],
      intervalMs: 60_000,
      clock: systemClock,
      maxClockSkewMs: 5000,
      instance,
      logger: bed.silent,
    });
    const time = new Date(systemClock.now() + seconds * 1000).toISOString();
    const of = snapshotOf({ time, policies: {}, hosts: { h1: {} }, vms: {}, snapshot: { purpose: 'record' } });
    const by = { service: 'scorer', instance, version: 'test' } as const;
    await bed.log.putSnapshot({ ...of, id: `general-${seconds}`, aggregate: 'general' }, { by, causationId: null });
    const { promise: level, resolve } = Promise.withResolvers<void>();
    stream.follow(resolve, () => undefined).catch(() => undefined);
    await level;
    expect({ current: checkOf(stream.missing()), clockRight: stream.clockRight() }).toMatchObject(found);
  });
});
