import type { Decision } from '@kronos/contracts';
import { decide, type Memory, planCluster } from '@kronos/placement';
import { decideInput, type Sketch } from '@kronos/placement/testing';
import { describe, expect, it } from 'vitest';
import { courseFamilies, runCycles } from '../bench/courses.ts';

const searchWorkLimit = 2_000_000;

/** Ten hosts with ten equal VMs each, three empty hosts, and a budget of two moves. */
const newHosts = (maxMigrationsPerCycle: number): Sketch => ({
  policies: { cpu: { threshold: 0.2, maxMigrationsPerCycle } },
  hosts: Object.fromEntries(Array.from({ length: 13 }, (_, h) => [`h${h}`, {}])),
  vms: Object.fromEntries(
    Array.from({ length: 100 }, (_, v) => [`vm${v}`, { host: `h${v % 10}`, w: { cpu: 0.06 }, ramMb: 8192 }]),
  ),
  options: { searchWorkLimit },
});

describe('a course over many cycles', () => {
  for (const name of ['new hosts, small', 'new hosts, equal VMs', 'back from maintenance', 'zones'])
    it(`ends within the thresholds, moves no VM twice, and costs little more than one plan (${name})`, () => {
      const family = courseFamilies.find((f) => f.name === name);
      if (family === undefined) throw new Error(name);
      const file = family.make(1);
      const { restrictToAz = false } = family;
      const one = runCycles(file, { budget: file.vms.length, restrictToAz, mostCycles: 1, searchWorkLimit });
      const run = runCycles(file, { budget: 12, restrictToAz, mostCycles: 60, searchWorkLimit });
      expect(one.within).toBe(true);
      expect(run).toMatchObject({ within: true, twice: 0 });
      expect(run.moves).toBeLessThanOrEqual(1.25 * one.moves);
      expect(run.gib).toBeLessThanOrEqual(1.25 * one.gib);
    });

  it('becomes shorter in each cycle while the load stands still, and ends at the targets, not at the thresholds', () => {
    const family = courseFamilies.find((f) => f.name === 'new hosts, small');
    const lengths: number[] = [];
    const starts: number[] = [];
    const run = runCycles(
      family?.make(1) as never,
      { budget: 3, mostCycles: 20, searchWorkLimit },
      undefined,
      (plan) => {
        lengths.push(plan.course?.moves ?? plan.moves.length);
        starts.push(plan.before.combined);
      },
    );
    expect(lengths.length).toBeGreaterThan(3);
    lengths.forEach((n, i) => {
      if (i > 0) expect(n).toBeLessThan(lengths[i - 1] ?? 0);
    });
    // The threshold is .2, the target .17.
    expect(starts.at(-1)).toBeLessThanOrEqual(0.2);
    expect(run.left).toBeLessThanOrEqual(0.17);
  });

  it('acts: the decision records what is left, and says that a step is part of it', () => {
    const decision = decide(decideInput(newHosts(2)));
    expect(decision).toMatchObject({ outcome: 'planned', course: { reaches: true, moves: 20, cycles: 10 } });
    expect(decision.course?.seconds).toBeGreaterThan(9 * 600);
    expect(decision.plan?.steps.map((step) => step.why?.code)).toEqual(['part-of-course', 'part-of-course']);
  });

  it('refuses: a budget below the smallest exchange is named with the one that is needed', () => {
    const sketch: Sketch = {
      policies: { cpu: { threshold: 0.15, maxMigrationsPerCycle: 1 } },
      hosts: { a: {}, b: {} },
      vms: {
        a1: { host: 'a', w: { cpu: 0.5 } },
        a2: { host: 'a', w: { cpu: 0.3 } },
        b1: { host: 'b', w: { cpu: 0.4 } },
        b2: { host: 'b', w: { cpu: 0.2 } },
      },
      options: { searchWorkLimit },
    };
    const decision = decide(decideInput(sketch));
    expect(decision).toMatchObject({
      outcome: 'quiet',
      reason: { code: 'budget-too-small', detail: { needed: 2 } },
      course: { reaches: true, moves: 2, neededBudget: 2 },
    });
    const enough = decideInput({ ...sketch, policies: { cpu: { threshold: 0.15, maxMigrationsPerCycle: 2 } } });
    expect(decide(enough).outcome).toBe('planned');
  });

  it('does nothing where the budget reaches the targets, and where the bound proves that no moves help', () => {
    expect(decide(decideInput(newHosts(30))).course).toBeUndefined();
    const alone = decide(
      decideInput({
        policies: { cpu: { threshold: 0.2 } },
        hosts: { a: {}, b: {} },
        vms: { a1: { host: 'a', w: { cpu: 0.6 } } },
        options: { searchWorkLimit },
      }),
    );
    expect(alone).toMatchObject({ outcome: 'quiet', reason: { code: 'no-improvement' } });
    expect(alone.course).toBeUndefined();
  });

  it('ends as low as it can where a VM that cannot move keeps the targets out of reach, with any budget', () => {
    const { vms, ...sketch } = newHosts(2);
    const pinned: Sketch = {
      ...sketch,
      hosts: { ...sketch.hosts, large: {} },
      vms: { ...vms, large: { host: 'large', w: { cpu: 0.9 }, ramMb: 65_536, set: { locked: true } } },
    };
    const decision = decide(decideInput(pinned));
    expect(decision.outcome).toBe('planned');
    expect(decision.course).toMatchObject({ reaches: false });
    expect(decision.course?.after.combined).toBeLessThan(0.6);
    expect(decision.warnings.map(({ code }) => code)).toContain('threshold-unreachable');
    expect(decision.plan?.steps.map((step) => step.why?.code)).toEqual(['part-of-course', 'part-of-course']);
  });

  it('takes as many moves and cycles as its first decision says where the targets are out of reach', () => {
    const family = courseFamilies.find((f) => f.name === 'new hosts, small');
    if (family === undefined) throw new Error('no such family');
    const file = { ...family.make(1), thresholds: [0.005] };
    const run = runCycles(file, { budget: 5, mostCycles: 20, searchWorkLimit });
    // Some cycles lower the imbalance with fewer moves than the budget has: what is left of it goes to the course.
    expect(run).toMatchObject({ promised: { cycles: run.cycles, moves: run.moves }, twice: 0 });
    expect(run.left).toBeLessThanOrEqual((run.promised?.left ?? 0) + 1e-6);
  });

  it('ends at once where the bound shows that no moves gain min_gain', () => {
    // Nothing that can move explains the .9 of one host; two hosts are empty.
    const file = {
      policies: ['cpu'],
      weights: [1],
      thresholds: [0.2],
      hosts: Array.from({ length: 13 }, (_, h) => ({ id: `h${h}`, ...(h === 12 ? { score: [0.9] } : {}) })),
      vms: Array.from({ length: 100 }, (_, v) => ({ id: `vm${v}`, host: `h${v % 10}`, w: [0.06], memMb: 8192 })),
    };
    const evaluated = (minGain: number) =>
      planCluster(file, { maxMigrations: 30, minGain, searchWorkLimit }).stats.candidatesEvaluated;
    expect(evaluated(0.6)).toBeLessThan(5000);
    expect(evaluated(0.001)).toBeGreaterThan(40_000);
  });

  it('brings a policy of small weight to its threshold, whatever min_gain says about the weighted sum', () => {
    const vms = Array.from({ length: 20 }, (_, v) => ({
      id: `vm${v}`,
      host: `h${v % 2}`,
      w: [0.02, 0.03],
      memMb: 1024,
    }));
    const file = {
      policies: ['cpu', 'memory'],
      weights: [0.999, 0.001],
      thresholds: [0.9, 0.1],
      hosts: ['h0', 'h1', 'h2'].map((id) => ({ id })),
      vms,
    };
    const plan = planCluster(file, { maxMigrations: 20, minGain: 0.01 });
    expect(plan.after.perPolicy.memory).toBeLessThanOrEqual(0.1);
  });
});

describe('below the thresholds', () => {
  /** Two moves of two hosts bring an imbalance of .18 to .06; the threshold is .2, the target .17, and a cycle has one move. */
  const between = (memory: Partial<Memory>, options: Sketch['options'] = {}, cpu: object = {}): Decision => {
    const count = { a: 5, b: 2, c: 5, d: 2 };
    return decide(
      decideInput({
        policies: { cpu: { threshold: 0.2, maxMigrationsPerCycle: 1, ...cpu } },
        hosts: { a: {}, b: {}, c: {}, d: {} },
        vms: Object.fromEntries(
          Object.entries(count).flatMap(([host, n]) =>
            Array.from({ length: n }, (_, v) => [`${host}${v}`, { host, w: { cpu: 0.06 }, ramMb: 8192 }]),
          ),
        ),
        memory: { lastRelease: { planId: 'agg-1', atMs: Date.parse('2026-01-01T11:50:00.000Z') }, ...memory },
        options: { searchWorkLimit, ...options },
      }),
    );
  };
  const ended = (decision: Decision) => [decision.outcome, decision.reason.code, decision.course];

  it('acts: a course goes on', () => {
    const decision = between({ courseMoves: 2 });
    expect(decision).toMatchObject({ outcome: 'planned', course: { reaches: true, moves: 2 } });
    expect(decision.before.policies[0]?.detected).toBe(false);
    expect(decision.plan?.steps).toHaveLength(1);
    expect(between({ courseMoves: 2 }, {}, { maxMigrationsPerCycle: 5 }).plan?.steps).toHaveLength(2);
  });

  it('refuses: where none was begun, and where more moves are needed than were left', () => {
    expect(ended(between({}))).toEqual(['quiet', 'balanced', undefined]);
    expect(ended(between({ courseMoves: 1 }))).toEqual(['quiet', 'balanced', undefined]);
  });

  it('refuses: moves that gain less than min_gain each, or than noise explains', () => {
    expect(ended(between({ courseMoves: 2 }, { minGain: 0.061 }))).toEqual(['quiet', 'balanced', undefined]);
    expect(between({ courseMoves: 2 }, { minGain: 0.059 }).outcome).toBe('planned');
    expect(ended(between({ courseMoves: 2, noise: { cpu: 0.2 } }))).toEqual(['quiet', 'within-noise', undefined]);
    expect(between({ courseMoves: 2, noise: { cpu: 0.1 } }).outcome).toBe('planned');
  });

  it('does nothing: at the targets, and with planner = greedy', () => {
    expect(ended(between({ courseMoves: 2 }, {}, { target: 0.18 }))).toEqual(['quiet', 'balanced', undefined]);
    expect(ended(between({ courseMoves: 2 }, { planner: 'greedy' }))).toEqual(['quiet', 'balanced', undefined]);
  });
});
