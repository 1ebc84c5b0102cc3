import { type CompleteEngineOptions, DAY_MS, type Decision, type Snapshot } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch } from '../testing/index.ts';
import { decide } from './decide.ts';
import { explain } from './explain/explain.ts';

/** Host a is 0.45 above b. */
const now: Readonly<Record<string, number>> = { spike: 0.35, a1: 0.15, a2: 0.15, b1: 0.2 };
const STEP = 300;
const POINTS = 13;

/** The load of each VM on a day, by point. A VM that is not named keeps its load of now. */
type Course = Readonly<Record<string, (k: number) => number>>;

const dayOf = (course: Course, ago: number) => ({
  ago,
  servers: Object.fromEntries(
    Object.entries(now).map(([vm, value]) => [vm, Array.from({ length: POINTS }, (_, k) => course[vm]?.(k) ?? value)]),
  ),
});
const history = (courses: readonly Course[], text = ''): Partial<Snapshot> => ({
  forecast: {
    stepSeconds: STEP,
    points: POINTS,
    readings: [
      {
        query: 'cpu_vm',
        label: 'vm',
        labelType: 'nova_instance_uuid',
        text,
        days: courses.map((course, d) => dayOf(course, d + 1)),
      },
    ],
  },
});
const decided = (
  snapshot: Partial<Snapshot>,
  options: Partial<CompleteEngineOptions> = {},
  more: Partial<Sketch> = {},
): Decision => decide(inputOf(snapshot, options, more));
const inputOf = (snapshot: Partial<Snapshot>, options: Partial<CompleteEngineOptions>, more: Partial<Sketch> = {}) =>
  decideInput({
    policies: { cpu: { threshold: 0.2 } },
    hosts: { a: {}, b: {} },
    vms: Object.fromEntries(
      Object.entries(now).map(([vm, cpu]) => [
        vm,
        { host: vm.startsWith('b') ? 'b' : 'a', w: { cpu }, ramMb: 32 * 1024 },
      ]),
    ),
    snapshot,
    options: { forecast: true, ...options },
    ...more,
  });

/** The spike is over at the second point. */
const passing: Course = { spike: (k) => (k < 1 ? 0.35 : 0.02) };
/** Within the horizon b gets more load than a: the plan would only bring that on. */
const turning: Course = { b1: (k) => (k < 2 ? 0.2 : k < 6 ? 0.65 : 0.95) };
const lasting: Course = {};

describe('a forecast', () => {
  it('acts: waits for what passed by itself on former days, until it has passed, with figures', () => {
    const decision = decided(history([passing, passing, passing]));
    expect(decision).toMatchObject({
      outcome: 'quiet',
      plan: null,
      reason: {
        code: 'expected-to-pass',
        detail: { until: '2026-01-01T12:05:00.000Z', days: 3, passes: 3, useless: 3, secondsWithoutPlan: 300 },
      },
    });
    expect(decision.reason.text).toContain('on 3 of 3 former days like this one the imbalance passed by itself');
    const explained = explain(inputOf(history([passing, passing, passing]), {})).cycle();
    expect(explained.reason).toEqual(decision.reason);
  });

  it('acts: makes no plan that would be undone', () => {
    const decision = decided(history([turning, turning]), { cooldownSeconds: 3600 });
    expect(decision).toMatchObject({ outcome: 'quiet', plan: null, reason: { code: 'expected-to-return' } });
  });

  it('does nothing about an imbalance that lasted, or that passed on too few days', () => {
    for (const days of [
      [lasting, lasting, lasting],
      [passing, passing, lasting],
    ]) {
      const decision = decided(history(days));
      expect(decision.reason.code).toBe('planned');
      expect(decision.warnings).toEqual([]);
    }
  });

  it('does nothing about an imbalance for which Kronos has waited long enough', () => {
    const at = Date.parse('2026-01-01T12:00:00.000Z');
    const open = {
      sinceMs: Date.parse('2026-01-01T11:50:00.000Z'),
      untilMs: Date.parse('2026-01-01T12:00:00.000Z'),
      plannedMs: 0,
    };
    const lost = { day: Math.floor(at / DAY_MS), savedMs: -301_000 };
    const past = history([passing, passing]);
    for (const [waits, code] of [
      [{ open, days: [] }, 'forecast-late'],
      [{ open: null, days: [lost] }, 'forecast-unearned'],
    ] as const) {
      const decision = decided(past, {}, { memory: { waits } });
      expect(decision.reason.code).toBe('planned');
      expect(decision.warnings.map((warning) => warning.code)).toEqual([code]);
    }
  });

  it('does nothing beyond the horizon', () => {
    const late: Course = { spike: (k) => (k < 4 ? 0.35 : 0.02) };
    const slow = {
      vms: Object.fromEntries(
        Object.entries(now).map(([vm, cpu]) => [
          vm,
          { host: vm.startsWith('b') ? 'b' : 'a', w: { cpu }, ramMb: 512 * 1024 },
        ]),
      ),
    };
    expect(decided(history([late, late]), {}, slow).reason.code).toBe('expected-to-pass');
    expect(decided(history([late, late]), { forecastHorizonSeconds: 900 }, slow).reason.code).not.toBe(
      'expected-to-pass',
    );
  });

  it('refuses to guess: without history, and after days with other values, there is a plan and a warning', () => {
    const cases: [Partial<Snapshot>, string][] = [
      [{}, 'the snapshot holds no history'],
      [history([], 'Prometheus has no values of former days'), 'Prometheus has no values of former days'],
      [history([passing]), '1 of 1 former days resemble this one, and 2 are needed'],
      [
        history([passing, { spike: () => 0.02 }, { a1: () => 0.35 }]),
        '1 of 3 former days resemble this one, and 2 are needed (2 with other values)',
      ],
    ];
    for (const [snapshot, text] of cases) {
      const decision = decided(snapshot);
      expect(decision.reason.code).toBe('planned');
      expect(decision.warnings).toEqual([{ code: 'no-forecast', text }]);
    }
  });

  it('refuses days on which too many VMs have no values', () => {
    const snapshot = history([passing, passing]);
    for (const day of snapshot.forecast?.readings[0]?.days ?? []) {
      delete day.servers.spike;
      delete day.servers.a1;
    }
    expect(decided(snapshot).warnings[0]?.text).toContain('2 without enough values');
  });

  it('is not used where it is off: the decision is the same to the byte with and without a history', () => {
    const off = { forecast: false };
    expect(JSON.stringify(decided(history([passing, passing]), off))).toBe(JSON.stringify(decided({}, off)));
    expect(decided({}, off).reason.code).toBe('planned');
  });

  it('allows evacuations, and warns about the moves that it left out', () => {
    const decision = decided(
      history([passing, passing]),
      { evacuateDisabledHosts: true },
      {
        hosts: { a: {}, b: {}, c: { disabled: true } },
        vms: {
          ...Object.fromEntries(
            Object.entries(now).map(([vm, cpu]) => [
              vm,
              { host: vm.startsWith('b') ? 'b' : 'a', w: { cpu }, ramMb: 32 * 1024 },
            ]),
          ),
          c1: { host: 'c', w: { cpu: 0.01 } },
        },
      },
    );
    expect(decision.plan?.steps.map(({ phase }) => phase)).toEqual(['evacuate']);
    expect(decision.warnings.map(({ code }) => code)).toEqual(['expected-to-pass']);
  });
});
