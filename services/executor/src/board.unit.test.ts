import { manualClock } from '@kronos/clock/testing';
import type { StoredEvent } from '@kronos/contracts';
import { type StepInput, testLog } from '@kronos/projections/testing';
import type { Caps } from '@kronos/rules';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { sampleTask } from '../testing/sample.ts';
import { StartBoard, type WaitEnd } from './board.ts';
import { RecentMoves } from './recentMoves.ts';
import type { Task } from './taskFacts.ts';

const roomy: Caps = {
  maxConcurrentMigrations: 10,
  maxOutboundPerHost: 10,
  maxInboundPerHost: 10,
  maxConcurrentPerGroup: 10,
};

const boards: StartBoard[] = [];
afterEach(() => {
  for (const board of boards.splice(0)) board.close();
});

/** A board over a log that the test writes; closed when the test is over. */
function setUp(moves: readonly StepInput[], caps: Partial<Caps> = {}) {
  const log = testLog('gpu', Date.now());
  log.configured();
  const planId = log.released(moves);
  const held: string[] = [];
  const clock: { problem: string | null } = { problem: null };
  /** The delays that the board asked for, ms. */
  const alarms: number[] = [];
  const at = () => ({ state: log.state(), sequence: log.events.length, expectedOn: () => log.events.length });
  const time = manualClock(0);
  const recent = new RecentMoves();
  const board = new StartBoard({
    aggregate: 'gpu',
    recent,
    at,
    refresh: async () => at(),
    caps: { ...roomy, ...caps },
    clockProblem: () => clock.problem,
    clock: {
      ...time,
      read: () => ({ mono: time.monotonic(), wall: log.nowMs }),
      after(ms, act) {
        alarms.push(ms);
        return time.after(ms, act);
      },
    },
    onWait: (task, code) => held.push(`${task.taskId.split('-').at(-1)} ${code}`),
  });
  boards.push(board);
  const never = new AbortController().signal;
  const task = (step: number): Task => {
    const facts = log.state().tasks.get(`${planId}-s${step}`)?.step;
    if (facts === undefined) throw new Error('no such step');
    const { delaySeconds: _, ...known } = facts;
    const notAfter = new Date(log.nowMs + 3_600_000).toISOString();
    return sampleTask({ ...known, planId, destination: facts.to, aggregate: 'gpu', notAfter });
  };
  const wait = (
    step: number,
    more: { notBefore?: number; checked?: number; stopping?: AbortSignal } = {},
  ): Promise<WaitEnd> =>
    board.start(
      task(step),
      { order: step, notBefore: more.notBefore ?? 0, checkedAtSequence: more.checked ?? null },
      more.stopping ?? never,
      never,
    );
  /** Once everything that is ready has run. */
  const ready = async (): Promise<void> => {
    for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
  };
  /** Says that the log went on, and lets the board look. */
  const noticed = async (last = log.events.at(-1) as StoredEvent): Promise<void> => {
    recent.note(last);
    board.changed(last);
    await ready();
  };
  const open = async (waiting: Promise<WaitEnd>): Promise<boolean> =>
    (await Promise.race([waiting, ready().then(() => 'open')])) === 'open';
  const id = (step: number): string => `${planId}-s${step}`;
  return { log, clock, time, alarms, board, task, wait, noticed, open, held, id };
}

const two: readonly StepInput[] = [
  { serverId: 'a', from: 'h1', to: 'h2' },
  { serverId: 'b', from: 'h1', to: 'h3' },
];

describe('the board of an aggregate', () => {
  it('lets a task start, with the sequence of the log as it stands', async () => {
    const { wait, log } = setUp(two);
    expect(await wait(1)).toEqual({ kind: 'mayStart', grant: { expected: log.events.length, disturbed: false } });
  });

  it('grants no more than the caps, the log and its own grants together', async () => {
    const { wait, board, open, task, held } = setUp(two, { maxOutboundPerHost: 1 });
    expect((await wait(1)).kind).toBe('mayStart');
    const second = wait(2);
    await vi.waitUntil(() => held.length > 0);
    expect(held).toEqual(['s2 max_outbound_per_host']);
    expect(await open(second)).toBe(true);
    board.release(task(1));
    expect((await second).kind).toBe('mayStart');
  });

  it('keeps a grant until the log has the start, and then counts that', async () => {
    const { wait, open, log, id, noticed } = setUp(two, { maxOutboundPerHost: 1 });
    await wait(1);
    const second = wait(2);
    log.started({ task: id(1) });
    await noticed();
    expect(await open(second)).toBe(true);
    log.completed({ task: id(1) });
    await noticed();
    expect((await second).kind).toBe('mayStart');
  });

  it('sleeps while an expired task may not end, as the log is not understood', async () => {
    const { wait, open, log, noticed, alarms } = setUp(two);
    log.unreadable();
    const waiting = wait(1);
    await noticed();
    log.pass(7200);
    alarms.length = 0;
    await noticed();
    expect(await open(waiting)).toBe(true);
    expect(alarms).toEqual([30_000]);
  });

  it('goes by the order of the queue', async () => {
    const { wait, log, noticed, open } = setUp(two, { maxConcurrentMigrations: 1 });
    log.paused();
    const later = wait(2);
    const earlier = wait(1);
    log.resumed();
    await noticed();
    expect((await earlier).kind).toBe('mayStart');
    expect(await open(later)).toBe(true);
  });

  it('wakes for what a person says, whatever the caps', async () => {
    const { wait, log, id, noticed } = setUp(two, { maxOutboundPerHost: 1 });
    await wait(1);
    const second = wait(2);
    log.cancelled(id(2));
    await noticed();
    expect(await second).toMatchObject({ kind: 'mustEnd', failure: { reason: { code: 'cancelled' } } });
  });

  it('wakes when another has started the attempt', async () => {
    const { wait, log, id, noticed } = setUp(two);
    log.paused();
    const waiting = wait(1);
    await noticed();
    log.started({ task: id(1) });
    await noticed();
    expect(await waiting).toEqual({ kind: 'overtaken' });
  });

  it('does not start before its time by the monotonic clock', async () => {
    const { wait, open, time } = setUp(two);
    const waiting = wait(1, { notBefore: time.monotonic() + 60 });
    time.advance(59);
    expect(await open(waiting)).toBe(true);
    time.advance(1);
    expect((await waiting).kind).toBe('mayStart');
  });

  it('says when something happened to the hosts of a task since its pre-flight', async () => {
    const { wait, log, id, noticed } = setUp([...two, { serverId: 'c', from: 'h7', to: 'h8' }]);
    const checked = log.events.length;
    log.started({ task: id(1) });
    await noticed();
    expect(await wait(2, { checked })).toMatchObject({ grant: { disturbed: true } });
    expect(await wait(3, { checked })).toMatchObject({ grant: { disturbed: false } });
    expect(await wait(2, { checked: log.events.length })).toMatchObject({ grant: { disturbed: false } });
  });

  it('looks again at a move of another aggregate where it concerns a task that waits', async () => {
    const { wait, log, id, noticed, open, alarms } = setUp(two, { maxOutboundPerHost: 1 });
    await wait(1);
    const second = wait(2);
    expect(await open(second)).toBe(true);
    const event = log.started({ task: id(1) });
    const before = alarms.length;
    const elsewhere = (from: string, serverId = 'x'): Promise<void> => {
      const data = { ...event.data, serverId, from, destination: 'h9' };
      return noticed({ ...(log.events.at(-1) as StoredEvent), event: { ...event, aggregate: 'web', data } });
    };
    await elsewhere('h8');
    expect(alarms).toHaveLength(before);
    await elsewhere('h1');
    expect(alarms).toHaveLength(before + 1);
    await elsewhere('h8', 'b');
    expect(alarms).toHaveLength(before + 2);
  });

  it('sends the longest waiting back to make room', async () => {
    const { wait, board, log, open, time } = setUp(two);
    log.paused();
    const first = wait(1);
    time.advance(5);
    const second = wait(2);
    board.requeue(1);
    expect(await first).toEqual({ kind: 'requeued' });
    expect(await open(second)).toBe(true);
    expect(board.waiting).toBe(1);
  });

  it('lets everything go when the executor stops', async () => {
    const { wait, board, log } = setUp(two);
    log.paused();
    const stopping = new AbortController();
    const waiting = wait(1, { stopping: stopping.signal });
    stopping.abort();
    expect(await waiting).toEqual({ kind: 'draining' });
    expect(board.waiting).toBe(0);
  });
});

describe('a wrong clock', () => {
  it('starts nothing, and ends nothing as expired', async () => {
    const { clock, log, wait, open, held, noticed } = setUp(two);
    clock.problem = 'the clock is 7200.0 s ahead';
    log.pass(7200);
    const waiting = wait(1);
    expect(await open(waiting)).toBe(true);
    expect(held).toEqual(['s1 clock']);
    log.pass(-7200);
    clock.problem = null;
    await noticed();
    expect(await waiting).toMatchObject({ kind: 'mayStart' });
  });

  it('forbids a start that was allowed before, until the bytes of the append leave', async () => {
    const { clock, board, task, wait } = setUp(two);
    await wait(1);
    expect(board.mayNotStart(task(1))).toBeNull();
    clock.problem = 'the clock is 600.0 s behind';
    expect(board.mayNotStart(task(1))).toContain('behind');
  });
});

describe('leave to start', () => {
  it('ends with a pause or a cancellation that comes before the append leaves', async () => {
    const { log, board, task, wait, id } = setUp(two);
    await wait(1);
    log.paused();
    expect(board.mayNotStart(task(1))).toContain('paused');
    log.resumed();
    expect(board.mayNotStart(task(1))).toBeNull();
    log.cancelled(id(1));
    expect(board.mayNotStart(task(1))).toContain('must end');
  });
});
