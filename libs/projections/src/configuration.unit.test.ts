import { defaultEngineOptions, type EngineOptions } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { testLog } from '../testing/index.ts';
import { type PlannerIdentity, rightOf } from './configuration.ts';
import type { Configured } from './state.ts';

const options = (cooldownSeconds: number): EngineOptions => ({ ...defaultEngineOptions, cooldownSeconds });
/** `startedAfter` null: its writer does not state its start. */
const inForce = ({
  startedAfter = 80,
  ...set
}: Partial<Configured> & { readonly startedAfter?: number | null }): { configured: Configured } => ({
  configured: {
    sequence: 90,
    atMs: 0,
    plannerVersion: '1',
    optionsDigest: 'theirs',
    options: options(60),
    ...(startedAfter === null ? {} : { writer: { instance: 'other', startedAfter } }),
    ...set,
  },
});
const own = (set: Partial<PlannerIdentity> = {}): PlannerIdentity => ({
  startedAfter: 100,
  options: options(600),
  optionsDigest: 'ours',
  plannerVersion: '1',
  wasInForce: false,
  ...set,
});

describe('the options in force', () => {
  it('are those of the planner that started last: it puts its own on the log', () => {
    expect(rightOf({ configured: null }, own())).toEqual({ kind: 'configure' });
    expect(rightOf(inForce({}), own())).toEqual({ kind: 'configure' });
    // A planner that started before it has overwritten its options.
    expect(rightOf(inForce({ sequence: 120 }), own({ wasInForce: true }))).toEqual({ kind: 'configure' });
  });

  it('make a planner that started earlier yield, with the names of the options that differ', () => {
    const later = inForce({ startedAfter: 101 });
    expect(rightOf(later, own())).toEqual({
      kind: 'yield',
      to: 'other',
      options: options(60),
      differing: ['cooldownSeconds'],
    });
    expect(rightOf(later, own({ wasInForce: true }))).toMatchObject({ kind: 'yield' });
  });

  it('are the last ones written, between planners that started at the same sequence', () => {
    const same = inForce({ startedAfter: 100 });
    expect(rightOf(same, own())).toEqual({ kind: 'configure' });
    expect(rightOf(same, own({ wasInForce: true }))).toMatchObject({ kind: 'yield' });
  });

  it('of a planner that does not state its start make nobody yield', () => {
    expect(rightOf(inForce({ startedAfter: null }), own({ wasInForce: true }))).toEqual({ kind: 'configure' });
  });

  it('do not change when they are the same, whatever planner wrote them', () => {
    for (const startedAfter of [null, 80, 100, 200])
      expect(rightOf(inForce({ startedAfter, optionsDigest: 'ours', options: options(600) }), own())).toEqual({
        kind: 'inForce',
      });
  });

  it('are written again by a newer planner of another version, and left alone by an older one', () => {
    const same = { optionsDigest: 'ours', options: options(600), plannerVersion: '2' };
    expect(rightOf(inForce(same), own())).toEqual({ kind: 'configure' });
    expect(rightOf(inForce({ ...same, startedAfter: 101 }), own({ wasInForce: true }))).toEqual({ kind: 'inForce' });
  });
});

describe('the work limit that decisions have because their planner is too slow', () => {
  const log = testLog();
  const lowered = () => log.state().loweredWork;
  const decided = (searchWorkLimit?: number): void =>
    void log.pass(60).decided('none', [], searchWorkLimit === undefined ? {} : { searchWorkLimit });

  it('is that of the last decision, since the first that had it', () => {
    log.configured();
    expect(lowered()).toBeNull();
    decided(5000);
    const first = lowered();
    expect(first).toMatchObject({ limit: 5000 });
    decided(5000);
    expect(lowered()).toEqual(first);
    decided(10_000);
    expect(lowered()?.limit).toBe(10_000);
    expect(lowered()?.sinceMs).toBeGreaterThan(first?.sinceMs ?? 0);
  });

  it('is none after a decision with all of the work, and after other options or another version', () => {
    decided();
    expect(lowered()).toBeNull();
    decided(5000);
    log.configured({ evaluationIntervalSeconds: 300 });
    expect(lowered()).toBeNull();
    decided(5000);
    log.configured({ evaluationIntervalSeconds: 300 }, '2.0.0');
    expect(lowered()).toBeNull();
  });
});

describe('property: whatever the order of their steps, planners with different options settle on one of them', () => {
  /** Planners take turns; each reads the log and writes when it has to. */
  function settle(starts: readonly (number | null)[], turns: readonly number[]) {
    let sequence = 10;
    let configured: Configured | null = null;
    let writes = 0;
    const planners = starts.map((start, i) => ({ start, id: `p${i}`, wasInForce: false }));
    const turn = (i: number): string => {
      const planner = planners[i % planners.length];
      if (planner === undefined) throw new Error('no planner');
      const { start, id } = planner;
      const right = rightOf(
        { configured },
        own({ startedAfter: start ?? 0, optionsDigest: id, wasInForce: planner.wasInForce }),
      );
      if (right.kind === 'configure') {
        sequence += 1;
        writes += 1;
        configured = inForce({ sequence, startedAfter: start, optionsDigest: id }).configured;
      }
      if (right.kind !== 'yield') planner.wasInForce = true;
      return right.kind;
    };
    for (const i of turns) turn(i);
    for (let round = 0; round < 3; round++) for (const i of planners.keys()) turn(i);
    const before = writes;
    const last = planners.map((_, i) => turn(i));
    return { last, quiet: writes === before, winner: (configured as Configured | null)?.optionsDigest };
  }

  it('exactly one plans, the others yield, and nothing more is written', () => {
    for (let seed = 0; seed < 300; seed++) {
      let state = seed * 7919 + 1;
      const draw = (n: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return (state >>> 8) % n;
      };
      const starts = Array.from({ length: 2 + draw(3) }, () => 5 + draw(3));
      const turns = Array.from({ length: draw(12) }, () => draw(starts.length));
      const { last, quiet, winner } = settle(starts, turns);
      expect(last.filter((kind) => kind === 'inForce')).toHaveLength(1);
      expect(last.filter((kind) => kind === 'yield')).toHaveLength(starts.length - 1);
      expect(quiet).toBe(true);
      expect(starts[Number(winner?.slice(1))]).toBe(Math.max(...starts));
    }
  });
});
