import type { SnapshotTaken } from '@kronos/contracts';
import { type AggregateState, aggregateState, initialLogState } from '@kronos/projections';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { eligibility } from './eligibility.ts';
import { overtaken } from './overtaken.ts';

const at = Date.parse('2026-03-01T12:00:00.000Z');
const options = { maxClockSkewSeconds: 5 };
const own = (nowMs: number, problem: string | null = null, logProblem: string | null = null) => ({
  nowMs,
  problem,
  logProblem,
});
const fresh = aggregateState(initialLogState(), 'gpu');
/** The verdict about a snapshot that was stored at its own time, by a clock of that time. */
const judged = (
  changes: Partial<SnapshotTaken['data']> = {},
  {
    state = fresh,
    storedAt = at,
    clock = own(at),
  }: { state?: AggregateState; storedAt?: number; clock?: ReturnType<typeof own> } = {},
) => eligibility({ message: taken(changes), storedAt }, state, options, clock);

const taken = (changes: Partial<SnapshotTaken['data']> = {}): SnapshotTaken => ({
  type: 'snapshot.taken',
  version: 1,
  id: 'snapshot.taken:gpu-7',
  time: new Date(at).toISOString(),
  aggregate: 'gpu',
  by: { service: 'scorer', instance: 's1', version: '0.1.0' },
  correlationId: 'gpu-7',
  causationId: null,
  data: {
    snapshotId: 'gpu-7',
    purpose: 'cycle',
    cycle: 7,
    intervalSeconds: 60,
    observedFrom: new Date(at - 1000).toISOString(),
    hosts: 3,
    servers: 9,
    combined: 0.1,
    policies: [],
    problems: [],
    body: { bucket: 'b', object: 'o', digest: 'sha256:0', bytes: 1, storedBytes: 1 },
    ...changes,
  },
});

const decidedAt = (snapshotMs: number): AggregateState => ({
  ...fresh,
  decided: {
    sequence: 1,
    snapshotId: 'gpu-6',
    recent: ['gpu-5', 'gpu-6'],
    snapshotMs,
    cycle: 6,
    outcome: 'quiet',
    release: 'none',
    reason: { code: 'balanced', text: 'balanced' },
    before: { combined: 0, policies: [] },
  },
});

describe('eligibility of a snapshot', () => {
  it('decides a fresh one', () => {
    expect(judged({}, { storedAt: at + 50, clock: own(at + 100) })).toEqual({ ok: true });
    expect(judged({ purpose: 'command' }, { state: decidedAt(at - 1) })).toEqual({ ok: true });
  });

  it('decides nothing by a wrong clock of its own, and says so', () => {
    const text = 'the clock is 2700.0 s behind';
    const found = { ok: false, alarm: true, reason: { code: 'clock', text } };
    expect(judged({}, { clock: own(at, text) })).toMatchObject(found);
  });

  it('leaves a recorded one alone', () => {
    const found = { ok: false, alarm: false, reason: { code: 'record-only' } };
    expect(judged({ purpose: 'record' })).toMatchObject(found);
  });

  it.each([at, at + 1])('leaves one alone that is not later than the last decided (%d)', (snapshotMs) => {
    expect(judged({}, { state: decidedAt(snapshotMs) })).toMatchObject({ reason: { code: 'already-decided' } });
  });

  it.each(['gpu-5', 'gpu-6'])('leaves %s alone, which was decided before and was taken again later', (snapshotId) => {
    const reason = { code: 'already-decided', text: `another snapshot ${snapshotId} was decided` };
    expect(judged({ snapshotId }, { state: decidedAt(at - 1) })).toMatchObject({ reason });
  });

  it('decides one of exactly two intervals, and none that is older', () => {
    expect(judged({}, { clock: own(at + 120_000) })).toEqual({ ok: true });
    expect(judged({}, { clock: own(at + 120_001) })).toMatchObject({ reason: { code: 'too-old' } });
  });

  it.each([
    [-5001, 'clock-skew', "the scorer's clock is 5.0 s ahead of the NATS server's, more than max_clock_skew"],
    [6200, 'stored-late', 'the last snapshot was stored 6.2 s after its time, more than max_clock_skew'],
  ])('refuses, with an alarm, a snapshot that is stored %d ms after its time', (skew, code, text) => {
    expect(judged({}, { storedAt: at + skew })).toMatchObject({ ok: false, alarm: true, reason: { code, text } });
  });

  it('refuses each snapshot while the log is in doubt, and says why', () => {
    const clock = own(at, null, 'the log is shorter than the ledger saw');
    const reason = { code: 'other-log', text: 'the log is shorter than the ledger saw' };
    expect(judged({}, { clock })).toMatchObject({ ok: false, reason });
  });

  it('bears a skew of exactly max_clock_skew', () => {
    expect(judged({}, { storedAt: at + 5000 })).toEqual({ ok: true });
  });
});

describe('a decision that waits to be appended', () => {
  const moves = [{ serverId: 'vm1', from: 'h1', to: 'h2' }];

  it('is made again after a pause, a release, a refusal, the end of a move, or an event that cannot be read', () => {
    const log = testLog('gpu');
    log.configured();
    const steps: (() => unknown)[] = [
      () => log.paused(),
      () => log.resumed(),
      () => log.decided('released', moves),
      () => log.completed({ task: `${[...log.state().plans.keys()].at(-1)}-s1` }),
      () => log.decided('proposed', moves),
      () => log.rejected([...log.state().plans.keys()].at(-1) ?? ''),
      () => log.unreadable(),
    ];
    for (const step of steps) {
      const basis = log.state();
      log.pass(1);
      step();
      expect(overtaken(basis, log.state())).toContain('the log has changed since the decision');
    }
  });

  it('is made again after a pause of all aggregates', () => {
    const log = testLog('gpu');
    const basis = log.state();
    log.about('_all_').paused();
    expect(overtaken(basis, log.state('gpu'))).toContain('pause');
  });

  it('stands after other events of its aggregate and of others', () => {
    const log = testLog('gpu');
    log.configured();
    const plan = log.decided('released', moves);
    const basis = log.state();
    log.started({ task: `${plan}-s1` });
    log.quarantined('vm9', 60);
    log.about('cpu').paused();
    expect(overtaken(basis, log.state('gpu'))).toBeNull();
    expect(overtaken(basis, basis)).toBeNull();
  });
});
