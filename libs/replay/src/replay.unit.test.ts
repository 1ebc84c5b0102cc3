import { DAY_MS, defaultEngineOptions, type EngineOptions, type StoredEvent } from '@kronos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { counted, memoryHistory, type Operation, operate, tamper } from '../testing/index.ts';
import { PolicyNotRecorded } from './errors.ts';
import { findDecision, findProposal } from './find.ts';
import type { History, Range } from './history.ts';
import { plansOf } from './plans.ts';
import { VerifyCount, verify } from './verify.ts';
import { WhatIfCount, whatIf } from './whatIf.ts';
import type { WhatIfCycle } from './whatIfRun.ts';

const hours = (n: number, more = {}): Operation => operate({ seed: 5, cycles: n * 60, commands: 0.1, ...more });
/** Of three aggregates. */
const HOURS = 1;
/** The number of decisions that other threads make before the last one. */
const SOME = 262;
const day = hours(HOURS);
const historyOf = (op: Operation, events: readonly StoredEvent[] = op.events) => memoryHistory(events, op.snapshots);
const verified = (history: History) => Array.fromAsync(verify(history, {}, { threads: 1 }));
const simulate = (change: Partial<Parameters<typeof whatIf>[2]>, op = day, aggregates = ['gpu']) =>
  Array.fromAsync(whatIf(historyOf(op), { aggregates }, { defaults: defaultEngineOptions, ...change }, { threads: 1 }));
/** A what-if in which some options are others. */
const otherwise = (more: Partial<EngineOptions>, op = day, aggregates = ['gpu']) =>
  simulate({ options: (options) => ({ ...options, ...more }) }, op, aggregates);
async function expectIdentical(op: Operation): Promise<void> {
  const cycles = await verified(historyOf(op));
  expect(cycles.length).toBeGreaterThan(0);
  expect(cycles.filter(({ verdict }) => verdict !== 'identical')).toEqual([]);
}
const decided = day.events.filter(({ event }) => event.type === 'cycle.decided');

it('times that no server stamp confirms reach a minute at most: in plans and in a what-if', async () => {
  const timed = (time: (storedAt: number) => string): History => {
    const events = day.events.map((stored) => {
      const { event, storedAt } = stored;
      return event.type === 'unreadable' ? stored : { ...stored, event: { ...event, time: time(storedAt) } };
    });
    return historyOf(day, events);
  };
  const forged = timed(() => '2099-01-01T00:00:00.000Z');
  const bounded = timed((storedAt) => new Date(storedAt + 60_000).toISOString());
  expect(await plansOf(forged.events(), {})).toEqual(await plansOf(bounded.events(), {}));
  const run = (history: History) =>
    Array.fromAsync(whatIf(history, { aggregates: ['gpu'] }, { defaults: defaultEngineOptions }));
  const [one, other] = [await run(forged), await run(bounded)];
  expect(one).toEqual(other);
  expect(one.some(({ recorded }) => recorded.moves > 0)).toBe(true);
});

it('a decision is about a snapshot of at most a minute after its own timestamp', async () => {
  const [first] = decided;
  if (first?.event.type !== 'cycle.decided') throw new Error('there is no decision');
  const { event, storedAt } = first;
  const untrue = { ...first, event: { ...event, data: { ...event.data, snapshotTime: '2099-01-01T00:00:00.000Z' } } };
  const inRange = async (range: Range) => {
    const history = historyOf(day, [untrue]);
    const cycles = await Array.fromAsync(verify(history, range, { threads: 1 }));
    expect(await Array.fromAsync(history.decisions(range))).toHaveLength(cycles.length);
    return cycles.map((cycle) => cycle.snapshotTimeMs);
  };
  const atMs = storedAt + 60_000;
  expect(await inRange({ sinceMs: atMs, untilMs: atMs })).toEqual([atMs]);
  expect(await inRange({ sinceMs: atMs + 1 })).toEqual([]);
  expect(await inRange({ untilMs: atMs - 1 })).toEqual([]);
});

describe('an operation with a forecast, windows and targets', () => {
  const op = operate({
    seed: 5,
    cycles: 150,
    aggregates: ['general'],
    hosts: 4,
    history: true,
    engine: { forecast: true, targetRatio: 0.7, windows: ['00:00-01:00'], cooldownSeconds: 60 },
  });
  const reasons = new Set(
    op.events.flatMap(({ event }) => (event.type === 'cycle.decided' ? [event.data.reason.code] : [])),
  );

  it('leaves plans out', () => {
    expect([...reasons].filter((code) => code.startsWith('expected-to-'))).not.toEqual([]);
    expect(reasons).toContain('planned');
    expect(reasons).toContain('outside-window');
  });

  it('finds every decision identical', () => expectIdentical(op));

  it('answers what would have been without the forecast, and with it the same twice', async () => {
    const run = (forecast: boolean) => otherwise({ forecast }, op, ['general']);
    const [on, again, off] = [await run(true), await run(true), await run(false)];
    expect(again).toEqual(on);
    expect(off).not.toEqual(on);
  });
});

describe('an operation whose moves cost what VMs write', () => {
  const operation = (moveCosts: boolean) =>
    operate({
      seed: 7,
      cycles: 150,
      aggregates: ['general'],
      planner: 'search',
      moveCosts,
      searchWorkLimit: 200_000,
      slowEvery: 5,
      engine: { cooldownSeconds: 60, instanceCooldownSeconds: 300, targetRatio: 1, moveOverheadGib: 0 },
    });
  const op = operation(true);
  const stepsOf = ({ events }: Operation) =>
    events.flatMap(({ event }) =>
      event.type === 'cycle.decided' ? (event.data.plan?.steps ?? []).map(({ serverId }) => serverId) : [],
    );

  it('plans otherwise than without, and knows the rate of former moves', () => {
    expect(stepsOf(op)).not.toEqual(stepsOf(operation(false)));
    expect(op.end.aggregates.get('general')?.copyRates.length).toBeGreaterThanOrEqual(3);
  });

  it('finds every decision identical, also those of a planner that lowered its work, and what it answers the same twice', async () => {
    const lowered = op.events.filter(
      ({ event }) => event.type === 'cycle.decided' && event.data.searchWorkLimit === 20_000,
    );
    expect(lowered.length).toBeGreaterThan(0);
    await expectIdentical(op);
    const run = () => otherwise({ moveRateMib: 10 }, op, ['general']);
    expect(await run()).toEqual(await run());
  });
});

describe('an operation with migration windows', () => {
  /** The clock of Berlin goes forward at 01:00 UTC: the window is open from 00:30 to 01:30 UTC, local 01:30 to 03:30. */
  const timezone = {
    name: 'Europe/Berlin',
    since: [0, Date.parse('2026-03-29T01:00:00Z') / 1000],
    offsetSeconds: [3600, 7200],
  };
  const night = operate({
    seed: 3,
    cycles: 120,
    startMs: Date.parse('2026-03-29T00:00:00Z'),
    engine: { windows: ['Sun 01:30-03:30'], timezone, cooldownSeconds: 60, instanceCooldownSeconds: 300 },
  });
  const opens = Date.parse('2026-03-29T00:30:00Z');
  const closes = Date.parse('2026-03-29T01:30:00Z');
  const planned = night.events.flatMap(({ event }) =>
    event.type === 'cycle.decided' && event.data.plan !== null ? [event.data] : [],
  );
  const inside = (iso: string) => Date.parse(iso) >= opens && Date.parse(iso) < closes;

  it('releases and starts moves within the window only', () => {
    const [open, closed] = [
      planned.filter((d) => inside(d.snapshotTime)),
      planned.filter((d) => !inside(d.snapshotTime)),
    ];
    expect(closed.map((d) => [d.release, d.reason.code])).toEqual(closed.map(() => ['none', 'outside-window']));
    expect(closed.length).toBeGreaterThan(0);
    expect(open.some((d) => d.release !== 'none')).toBe(true);
    expect(
      open.flatMap((d) => d.plan?.steps.map((s) => s.startBefore) ?? []).every((t) => t === '2026-03-29T01:30:00.000Z'),
    ).toBe(true);
    const starts = night.events.flatMap(({ event }) => (event.type === 'migration.started' ? [event.time] : []));
    expect(starts.length).toBeGreaterThan(0);
    expect(starts.every(inside)).toBe(true);
  });

  it('finds every decision identical', () => expectIdentical(night));

  it('answers what would have been without the window', async () => {
    const run = (windows: string[]) => otherwise({ windows }, night);
    const moves = (cycles: WhatIfCycle[], within: boolean) =>
      cycles
        .filter((c) => inside(new Date(c.timeMs).toISOString()) === within)
        .reduce((n, c) => n + c.simulated.moves, 0);
    expect(moves(await run(['Sun 01:30-03:30']), false)).toBe(0);
    expect(moves(await run([]), false)).toBeGreaterThan(0);
  });
});

describe('running decisions again', () => {
  it('finds every decision of an operation identical', async () => {
    const cycles = await verified(historyOf(day));
    expect(counted(new VerifyCount(), cycles).totals()).toMatchObject({
      decisions: decided.length,
      identical: decided.length,
      ok: true,
    });
    expect(decided.length).toBe(3 * 60 * HOURS);
  });

  it('finds a planted difference, wherever it is planted, and only that', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(decided.length - 1), async (i) => {
        const { sequence = 0 } = decided[i] ?? {};
        const cycles = await verified(historyOf(day, tamper(day.events, sequence)));
        const others = cycles.filter((cycle) => cycle.verdict !== 'identical');
        expect(others).toHaveLength(1);
        expect(others[0]).toMatchObject({
          sequence,
          verdict: 'different',
          differences: [{ path: 'refusals.planted', recorded: 1 }],
        });
        expect(counted(new VerifyCount(), cycles).totals().ok).toBe(false);
      }),
      { numRuns: 2 },
    );
  });

  it('finds a change of the past that decisions were made of', async () => {
    const first = day.events.findIndex(({ event }) => event.type === 'migration.completed');
    const without = day.events.filter((_, i) => i !== first);
    const cycles = await verified(historyOf(day, without));
    const different = cycles.filter((cycle) => cycle.verdict === 'different');
    expect(different.length).toBeGreaterThan(0);
    expect(different[0]).toMatchObject({ causes: ['its state is not the one that it was made of'] });
  });

  it('finds an edited snapshot', async () => {
    const [first, ...rest] = day.snapshots;
    const edited = { ...first, notes: [{ code: 'edited', text: 'by hand' }] } as NonNullable<typeof first>;
    const cycles = await verified(memoryHistory(day.events, [edited, ...rest]));
    expect(cycles.filter((cycle) => cycle.verdict === 'different')).toMatchObject([
      { snapshotId: first?.id, causes: ['its snapshot is not the one that it was made of'], differences: [] },
    ]);
  });

  it('says which decisions cannot be run again', async () => {
    const cycles = await verified(memoryHistory(day.events, day.snapshots.slice(3)));
    expect(counted(new VerifyCount(), cycles).totals()).toMatchObject({ notReplayed: 3, ok: false });
  });

  it('reports what an older planner decided otherwise, which fails only when strict', async () => {
    const upgraded = hours(1, { upgradeAt: 30 });
    const cycles = await verified(historyOf(upgraded));
    const totals = counted(new VerifyCount(), cycles).totals();
    expect(totals.otherVersion).toBeGreaterThan(0);
    expect(totals).toMatchObject({ different: 0, ok: true });
    expect(counted(new VerifyCount(), cycles).totals({ strict: true }).ok).toBe(false);
    expect(cycles.every((c) => c.verdict === 'identical' || c.plannerVersion === '0')).toBe(true);
  });

  it('keeps to the range', async () => {
    const times = day.snapshots.map((snapshot) => Date.parse(snapshot.time)).toSorted((a, b) => a - b);
    const range = { sinceMs: times[30] ?? 0, untilMs: times[59] ?? 0, aggregates: ['gpu'] };
    const cycles = await Array.fromAsync(verify(historyOf(day), range, { threads: 1 }));
    expect(cycles).toHaveLength(10);
    expect(cycles.every((cycle) => cycle.aggregate === 'gpu' && cycle.verdict === 'identical')).toBe(true);
  });

  it('tells how far it is', async () => {
    const seen: number[] = [];
    const counts: number[] = [];
    const onProgress = (done: number, share: number | null) => {
      counts.push(done);
      seen.push(share ?? -1);
    };
    await Array.fromAsync(verify(historyOf(day), { aggregates: ['gpu'] }, { threads: 1, onProgress }));
    expect(counts.at(-1)).toBe(60 * HOURS);
    expect(seen[0]).toBe(0);
    expect(seen.at(-1)).toBe(1);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  });
});

const plans = (cycles: readonly WhatIfCycle[]) => cycles.filter((cycle) => cycle.simulated.decision.plan !== null);

it('a what-if has ended the moves of each plan before it makes the next: each has the whole budget', async () => {
  const made = plans(await otherwise({ cooldownSeconds: 0 }));
  expect(made.length).toBeGreaterThan(1);
  const budgets = made.map(({ simulated }) => simulated.decision.plan?.budget);
  expect(new Set(budgets)).toEqual(new Set([budgets[0]]));
});

describe('threads', () => {
  /** More decisions than the thread of the caller runs by itself. */
  const long = hours(1.5);
  const last = long.events.findLast(({ event }) => event.type === 'cycle.decided')?.sequence ?? 0;
  const change = {
    defaults: defaultEngineOptions,
    options: (options: EngineOptions) => ({ ...options, cooldownSeconds: 0 }),
  };

  it('change nothing of what is found, however many there are', async () => {
    const history = () => memoryHistory(tamper(long.events, last), long.snapshots.slice(3));
    const [one, other] = await Promise.all(
      [1, 3].map(async (threads) => JSON.stringify(await Array.fromAsync(verify(history(), {}, { threads })))),
    );
    expect(other).toBe(one);
    expect(one).toContain('refusals.planted');
    expect(one).toContain('is not kept (any more)');
  });

  it('change nothing of a what-if', async () => {
    const [one, other] = await Promise.all(
      [1, 3].map(async (threads) =>
        JSON.stringify(await Array.fromAsync(whatIf(historyOf(long), {}, change, { threads }))),
      ),
    );
    expect(other).toBe(one);
  });

  it('bring back errors as what they are', async () => {
    const policies = long.snapshots[0]?.policies.map((p) => ({ ...p, imbalanceQuery: `other_${p.name}` })) ?? [];
    const failing = Array.fromAsync(whatIf(historyOf(long), {}, { ...change, policies }, { threads: 2 }));
    const error = await failing.catch((e: unknown) => e);
    expect(error).toBeInstanceOf(PolicyNotRecorded);
    expect(error).toMatchObject({ code: 'KRONOS_POLICY_NOT_RECORDED', remedy: expect.stringContaining('"cpu_used"') });
  });

  it('end when nobody wants the rest, and when they are told to', async () => {
    const seen: number[] = [];
    for await (const { sequence } of verify(historyOf(long), {}, { threads: 2 }))
      if (seen.push(sequence) === SOME) break;
    const stop = new AbortController();
    let done = 0;
    for await (const _ of verify(historyOf(long), {}, { threads: 2, signal: stop.signal })) {
      done += 1;
      if (done === SOME) stop.abort();
    }
    expect([seen.length, done]).toEqual([SOME, SOME]);
    let cycles = 0;
    const again = new AbortController();
    for await (const _ of whatIf(historyOf(long), {}, change, { threads: 2, signal: again.signal })) {
      cycles += 1;
      if (cycles === 10) again.abort();
    }
    expect(cycles).toBe(10);
  });
});

describe('a replay along the log', () => {
  it('finds the state of a basis that is far behind the decision', async () => {
    // Another aggregate fills the log between the basis of a decision and the decision.
    const [first] = decided;
    if (first === undefined) throw new Error('no decision');
    const noise = Array.from(
      { length: 5000 },
      (_, i): StoredEvent => ({
        ...first,
        sequence: first.sequence + i,
        event: { ...first.event, aggregate: 'noise', id: `noise-${i}` } as StoredEvent['event'],
      }),
    );
    const events = [
      ...day.events.filter(({ sequence }) => sequence < first.sequence),
      ...noise,
      ...day.events
        .filter(({ sequence }) => sequence >= first.sequence)
        .map((e) => ({ ...e, sequence: e.sequence + 5000 })),
    ];
    const range = { aggregates: [first.event.aggregate], untilMs: Date.parse(day.snapshots[0]?.time ?? '') };
    const [cycle] = await Array.fromAsync(verify(memoryHistory(events, day.snapshots), range));
    expect(cycle).toMatchObject({ sequence: first.sequence + 5000, verdict: 'identical' });
  });

  it('hands out every event of the log once, to the end', async () => {
    const seen: number[] = [];
    const onEvent = ({ sequence }: StoredEvent) => seen.push(sequence);
    await Array.fromAsync(verify(historyOf(day), { untilMs: 0 }, { threads: 1, onEvent }));
    expect(seen).toEqual(day.events.map(({ sequence }) => sequence));
  });
});

describe('a what-if', () => {
  it('decides the first snapshot as it was decided, when nothing is otherwise', async () => {
    const [first] = await simulate({});
    const recorded = decided.find(({ event }) => event.aggregate === 'gpu')?.event;
    expect(recorded?.type === 'cycle.decided' && recorded.data.plan).toEqual(first?.simulated.decision.plan);
  });

  it('is the same twice', async () => {
    expect(JSON.stringify(await simulate({}))).toBe(JSON.stringify(await simulate({})));
  });

  it('plans within what was the cooldown when there is none', async () => {
    const without = plans(await otherwise({ cooldownSeconds: 0 }));
    const gaps = without.slice(1).map((cycle, i) => cycle.timeMs - (without[i]?.timeMs ?? 0));
    expect(Math.min(...gaps)).toBeLessThan(600_000);
  });

  it('moves nothing under a threshold that nothing exceeds', async () => {
    const policies = day.snapshots[0]?.policies.map((policy) => ({ ...policy, threshold: 1 })) ?? [];
    expect(plans(await simulate({ policies }))).toEqual([]);
  });

  it('carries dry runs and proposals out', async () => {
    const cycles = await otherwise({ dryRun: true, approval: 'manual' });
    expect(plans(cycles).length).toBeGreaterThan(0);
    expect(cycles.some((cycle) => cycle.simulated.elsewhere > 0)).toBe(true);
  });

  it('never finds its own moves undone', async () => {
    const cycles = await otherwise({ cooldownSeconds: 0 });
    const moved = plans(cycles).flatMap((cycle) => cycle.simulated.decision.plan?.steps ?? []);
    const last = new Map(moved.map((step) => [step.serverId, step.to]));
    for (const step of moved) {
      const later = moved.slice(moved.indexOf(step) + 1).find((other) => other.serverId === step.serverId);
      if (later !== undefined) expect(later.from).toBe(step.to);
    }
    expect(last.size).toBeGreaterThan(0);
  });

  it('takes no migration of the recorded Kronos for one of somebody else', async () => {
    const op = hours(HOURS, { ended: true, aggregates: ['gpu'] });
    const known = op.events.filter(({ event }) => event.type === 'migration.completed').length;
    expect(op.snapshots.at(-1)?.endedMigrations).toHaveLength(known);
    const cycles = await otherwise({ cooldownSeconds: 0 }, op);
    expect(plans(cycles).length).toBeGreaterThan(1);
    expect(cycles.flatMap(({ simulated }) => simulated.decision.foreign ?? [])).toEqual([]);
  });

  it('waits where somebody else undoes its moves', async () => {
    const op = hours(HOURS, { ended: true, aggregates: ['gpu'] });
    const step = plans(await simulate({}, op))[0]?.simulated.decision.plan?.steps[0];
    if (step === undefined) throw new Error('nothing is planned');
    const { serverId, from, to } = step;
    const undone = { id: 1_000_000, serverId, from: to, to: from, at: op.snapshots[2]?.time ?? '' };
    const snapshots = op.snapshots.map((snapshot, i) =>
      i < 3 ? snapshot : { ...snapshot, endedMigrations: [undone, ...(snapshot.endedMigrations ?? [])] },
    );
    const cycles = await simulate({}, { ...op, snapshots });
    expect(cycles[3]?.simulated.decision.foreign).toMatchObject({ count: 1, undone: 1 });
  });

  it('honours cooldowns that it is given', async () => {
    const cooldowns = { aggregate_cooldowns: { gpu: 600 }, instance_cooldowns: {}, instance_quarantines: {} };
    const cycles = await simulate({ cooldowns });
    const start = cycles[0]?.timeMs ?? 0;
    const during = cycles.filter((cycle) => cycle.timeMs < start + 600_000);
    expect(during.map((cycle) => cycle.simulated.outcome)).toEqual(during.map(() => 'gated'));
  });

  it('leaves a VM alone that is quarantined for ever', async () => {
    const [first] = await simulate({});
    const serverId = first?.simulated.decision.plan?.steps[0]?.serverId ?? '';
    const cooldowns = { aggregate_cooldowns: {}, instance_cooldowns: {}, instance_quarantines: { [serverId]: -1 } };
    const cycles = await simulate({ cooldowns });
    const moved = plans(cycles).flatMap((cycle) => cycle.simulated.decision.plan?.steps ?? []);
    const released = day.events.some(({ event }) => event.type === 'instance.unquarantined');
    if (!released) expect(moved.some((step) => step.serverId === serverId)).toBe(false);
    expect(cycles[0]?.simulated.decision.plan?.steps.some((step) => step.serverId === serverId)).toBe(false);
  });

  it('refuses a policy that nobody asked Prometheus for, by name', async () => {
    const policies = day.snapshots[0]?.policies.map((p) => ({ ...p, imbalanceQuery: `other_${p.name}` })) ?? [];
    const error = await simulate({ policies }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(PolicyNotRecorded);
    expect((error as PolicyNotRecorded).message).toContain('policy cpu: the snapshot');
    expect((error as PolicyNotRecorded).remedy).toContain('"cpu_used"');
  });

  it('counts what the recording did beside what it does itself', async () => {
    const cycles = await simulate({}, day, ['gpu', 'general']);
    const totals = counted(new WhatIfCount(), cycles).totals();
    expect(totals.map((total) => total.aggregate)).toEqual(['general', 'gpu']);
    for (const { aggregate, recorded, snapshots } of totals) {
      const last = cycles.filter((cycle) => cycle.aggregate === aggregate).at(-1)?.timeMs ?? 0;
      const completed = day.events.filter(
        ({ event }) =>
          event.type === 'migration.completed' && event.aggregate === aggregate && Date.parse(event.time) <= last,
      );
      expect(recorded.moves).toBe(completed.length);
      expect(snapshots).toBe(60 * HOURS);
    }
  });
});

describe('plans and what became of them', () => {
  it('has every plan of the log once, with the outcome that the fold knows', async () => {
    const records = await plansOf(historyOf(day).events(), {});
    const onLog = decided.filter(({ event }) => event.type === 'cycle.decided' && event.data.plan !== null);
    expect(records.map((record) => record.sequence)).toEqual(onLog.map(({ sequence }) => sequence));
    for (const record of records) {
      const facts = day.end.aggregates.get(record.aggregate);
      const finished = facts?.recentPlans.findLast((plan) => plan.id === record.id);
      if (finished === undefined) expect(['running', 'waiting']).toContain(record.outcome);
      else {
        expect(record.outcome).toBe(finished.outcome);
        const counted = (state: string) => record.steps.filter((step) => step.state === state).length;
        expect([counted('completed'), counted('failed')]).toEqual([finished.completed, finished.failed]);
      }
    }
    expect(new Set(records.map((record) => record.outcome))).toContain('done');
  });
});

describe('finding a decision', () => {
  const last = decided.findLast(({ event }) => event.aggregate === 'gpu');

  it('gives the newest one with all that it was made of', async () => {
    const found = await findDecision(historyOf(day), { aggregates: ['gpu'] });
    expect(found.sequence).toBe(last?.sequence);
    expect(found.snapshot?.id).toBe(found.event.data.snapshotId);
    expect(found.options).toMatchObject({ dryRun: false });
    expect(found.state.decided?.snapshotId).not.toBe(found.event.data.snapshotId);
  });

  it('gives the last one before a time', async () => {
    const wanted = decided[100]?.event;
    const atMs = wanted?.type === 'cycle.decided' ? Date.parse(wanted.data.snapshotTime) : 0;
    const found = await findDecision(historyOf(day), { aggregates: [wanted?.aggregate ?? ''], atMs });
    expect(found.sequence).toBe(decided[100]?.sequence);
  });

  it('reads only the last day of a long log when the decision is there', async () => {
    const history = historyOf(day);
    const asked: (number | undefined)[] = [];
    const counted: History = {
      ...history,
      decisions(range) {
        asked.push(range.sinceMs);
        return history.decisions(range);
      },
      proposals: () => expect.fail('read the plans that people asked for'),
    };
    const newestMs = (await history.newestMs()) ?? 0;
    await findDecision(counted, { aggregates: ['gpu'] });
    expect(asked).toEqual([newestMs - DAY_MS]);
    await findDecision(counted, { aggregates: ['gpu'], planId: 'nope' }).catch(() => null);
    expect(asked.slice(1)).toEqual([newestMs - DAY_MS, newestMs - 30 * DAY_MS, undefined]);
    expect(await findProposal(counted, ['gpu'], 'gpu-29537')).toBeNull();
  });

  it('says so when the snapshot is not kept', async () => {
    const found = await findDecision(memoryHistory(day.events, []), { aggregates: ['gpu'] });
    expect(found).toMatchObject({ snapshot: null, missing: expect.stringContaining('not kept') });
  });

  it('says so when there is none', async () => {
    await expect(findDecision(historyOf(day), { aggregates: ['gpu'], planId: 'nope' })).rejects.toThrow(
      'has no plan "nope"',
    );
    await expect(findDecision(historyOf(day), { aggregates: ['other'] })).rejects.toThrow('no decision about other');
  });
});
