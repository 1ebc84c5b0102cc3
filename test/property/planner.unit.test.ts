import { type CompleteEngineOptions, type Decision, decisionSchema, type Snapshot, type Step } from '@kronos/contracts';
import { decide } from '@kronos/placement';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { caseArb } from './arbitraries.ts';
import { RUNS, SEED } from './runs.ts';
import {
  type Case,
  illegal,
  sampledMoments,
  scores,
  verify,
  verifyScores,
  verifyShape,
  verifyTransit,
} from './verifier.ts';

vi.setConfig({ testTimeout: 600_000 });

const holds = (arb: fc.Arbitrary<Case>, property: (input: Case) => void, runs = RUNS): void => {
  fc.assert(fc.property(arb, property), { numRuns: Math.ceil(runs), seed: SEED });
};

const sound = (input: Case): void => {
  const decision = decide(input);
  expect(decisionSchema.safeParse(decision).success).toBe(true);
  expect(verify(input, decision)).toEqual([]);
  expect(decision.warnings.filter((warning) => warning.code === 'order-impossible')).toEqual([]);
};

describe('whatever the cluster', () => {
  for (const planner of ['greedy', 'search'] as const)
    it(`a ${planner} plan breaks no rule at its start, in transit or at its end, and states its scores rightly`, () => {
      holds(caseArb({ options: { planner } }), sound);
    });

  it('a pack plan breaks no rule at its start, in transit or at its end, and states its scores rightly', () => {
    holds(caseArb({ mode: 'pack' }), sound);
  });

  it('a plan for tight hosts breaks no rule in transit', () => {
    holds(caseArb({ plain: true, options: { allowParking: true, searchWorkLimit: 400_000 } }), sound, RUNS / 5);
  });

  for (const mode of ['spread', 'pack'] as const)
    it(`a ${mode} plan has no more moves than the budget, and moves no VM twice but to and from a declared parking place`, () => {
      holds(caseArb({ mode, options: { allowParking: true } }), (input) => {
        expect(verifyShape(input, decide(input))).toEqual([]);
      });
    });

  it('the scores of a plan are those of its final placement', () => {
    holds(caseArb(), (input) => {
      expect(verifyScores(input, decide(input))).toEqual([]);
    });
  });

  it('the same input gives the same bytes', () => {
    holds(caseArb(), (input) => {
      expect(JSON.stringify(decide(structuredClone(input)))).toBe(JSON.stringify(decide(input)));
    });
  });

  it('the order of the input is irrelevant', () => {
    holds(caseArb(), (input) => {
      expect(JSON.stringify(decide(reversed(input)))).toBe(JSON.stringify(decide(input)));
    });
  });

  it('a search plan is never worse than the greedy one in the order of aims', () => {
    holds(caseArb(), (input) => {
      const search = aims(input, { planner: 'search' });
      const greedy = aims(input, { planner: 'greedy' });
      if (search !== null && greedy !== null) expectNoWorse(search, greedy);
    });
  });

  it('a larger work limit never gives a worse plan', () => {
    let differ = 0;
    for (const plain of [true, false])
      holds(
        caseArb({ plain, options: { allowParking: true } }),
        (input) => {
          let last: Aims | null = null;
          for (const searchWorkLimit of [500, 3000, 20_000, 150_000, 1_000_000]) {
            const now = aims(input, { searchWorkLimit });
            if (now !== null && last !== null) {
              expectNoWorse(now, last);
              if (now.combined < last.combined - 1e-8) differ++;
            }
            last = now;
          }
        },
        RUNS / 5,
      );
    expect(differ).toBeGreaterThan(0);
  });

  it('a move that gains less than min_gain is not made, thresholds met or not', () => {
    let small = 0;
    holds(caseArb({ plain: true, options: { minGain: 0.02 } }), (input) => {
      const greedy = decide({ ...input, options: { ...input.options, planner: 'greedy' } });
      const decision = decide(input);
      const steps = decision.plan?.steps ?? [];
      if (decide({ ...input, options: { ...input.options, minGain: 0 } }).plan?.steps.length !== steps.length) small++;
      // Each move of greedy gained that much when greedy made it.
      if (JSON.stringify(moves(decision).sort()) === JSON.stringify(moves(greedy).sort())) return;
      const { combined } = scores(input, steps);
      for (const step of steps) {
        const rest = steps.filter((other) => other !== step);
        // It may make room for others, or keep a policy from getting worse.
        if (illegal(input, { done: new Set(rest), running: new Set() }).length > 0 || !acceptable(input, rest))
          continue;
        expect((scores(input, rest).combined ?? 0) - (combined ?? 0)).toBeGreaterThan(0.02 - 1e-6);
      }
    });
    expect(small).toBeGreaterThan(0);
  });

  it('a search plan empties no fewer hosts than the greedy one', () => {
    let emptied = 0;
    holds(caseArb({ mode: 'pack', plain: true }), (input) => {
      const search = emptyHosts(input, 'search');
      const greedy = emptyHosts(input, 'greedy');
      emptied += search;
      expect(search).toBeGreaterThanOrEqual(greedy);
    });
    expect(emptied).toBeGreaterThan(0);
  });

  it('when every policy is skipped, nothing is balanced', () => {
    holds(caseArb(), (input) => {
      const readings = input.snapshot.hostReadings.map((reading) => ({ ...reading, health: 'STALE' as const }));
      const decision = decide({ ...input, snapshot: { ...input.snapshot, hostReadings: readings } });
      expect(decision.before.combined).toBeNull();
      for (const step of decision.plan?.steps ?? []) expect(['evacuate', 'repair', 'affinity']).toContain(step.phase);
    });
  });

  it('a policy that is skipped causes no move: the plan is the one of a cloud without it', () => {
    let checked = 0;
    holds(caseArb(), (input) => {
      const { policies, hostReadings } = input.snapshot;
      const last = policies.at(-1);
      if (policies.length < 2 || last === undefined) return;
      checked++;
      const stale = hostReadings.map((r) => (r.query === last.imbalanceQuery ? { ...r, health: 'STALE' as const } : r));
      const without = policies.map((policy) => (policy === last ? { ...policy, enabled: false } : policy));
      const free = { ...input, options: { ...input.options, requireAllPolicies: false } };
      const skipped = decide({ ...free, snapshot: { ...input.snapshot, hostReadings: stale } });
      const absent = decide({ ...free, snapshot: { ...input.snapshot, policies: without } });
      expect(moves(skipped)).toEqual(moves(absent));
    });
    expect(checked).toBeGreaterThan(RUNS / 4);
  });

  it('a VM without data does not move where its policy says skip', () => {
    holds(caseArb(), (input) => {
      const id = input.snapshot.servers[0]?.id ?? '';
      const snapshot = structuredClone(input.snapshot);
      for (const policy of snapshot.policies) policy.vmProfileFallback = 'skip';
      for (const reading of snapshot.vmReadings) delete reading.values[id];
      const decision = decide({ ...input, snapshot });
      const scored = decision.before.policies.some((policy) => policy.participates);
      if (scored) expect(moves(decision).filter(([server]) => server === id)).toEqual([]);
    });
  });

  it('a host of which nothing is known takes no VM', () => {
    holds(caseArb(), (input) => {
      const snapshot = structuredClone(input.snapshot);
      const host = snapshot.hosts[0];
      if (host === undefined) return;
      if (snapshot.servers.length % 2 === 0) host.inventory = null;
      else host.service = { status: 'unknown', state: 'unknown', forcedDown: false, disabledReason: null };
      const steps = decide({ ...input, snapshot }).plan?.steps ?? [];
      for (const step of steps) expect([step.to, ...step.alternates]).not.toContain(host.name);
    });
  });

  it('without a fact about the past that allows it, a paused or waiting aggregate is not planned', () => {
    holds(caseArb(), (input) => {
      const paused = { ...input.memory, paused: { atMs: Date.parse(input.snapshot.time), by: 'someone' } };
      expect(decide({ ...input, memory: paused }).outcome).toBe('gated');
      const waiting = {
        ...input.memory,
        waitingPlan: { planId: 'agg-1', proposedAtMs: Date.parse(input.snapshot.time), approvalTtlSeconds: 900 },
      };
      expect(decide({ ...input, memory: waiting }).outcome).toBe('gated');
    });
  });
});

describe('the search', () => {
  it('finds nothing on its own outcome, unless the budget or the work limit ended it', () => {
    let checked = 0;
    holds(
      caseArb({ plain: true, options: { searchWorkLimit: 4_000_000 } }),
      (drawn) => {
        const input = sampled(drawn);
        const first = decide(input);
        if (first.plan?.endedBy !== 'done') return;
        const second = decide({ ...input, snapshot: outcome(input, first) });
        // Drawn samples may add up to more than their host: an outcome outside [0,1] is another question.
        if (second.before.policies.some((policy) => !policy.participates)) return;
        checked++;
        expect(second.plan?.steps ?? []).toEqual([]);
      },
      RUNS / 5,
    );
    expect(checked).toBeGreaterThan(RUNS / 30);
  });
});

describe('the verifier', () => {
  it('finds the fault when the dependencies of an exchange are taken away', () => {
    let found = 0;
    holds(
      caseArb({ plain: true, options: { searchWorkLimit: 400_000 } }),
      (input) => {
        const decision = decide(input);
        const plan = decision.plan;
        if (plan === null || plan.steps.every((step) => step.dependsOn.length === 0)) return;
        found++;
        const steps = plan.steps.map((step) => ({ ...step, dependsOn: [] }));
        expect(verifyTransit(input, { ...decision, plan: { ...plan, steps } })).not.toEqual([]);
      },
      RUNS / 2,
    );
    expect(found).toBeGreaterThan(RUNS / 60);
  });

  it('agrees with a thousand random executions about every plan', () => {
    holds(
      caseArb({ plain: true, options: { searchWorkLimit: 400_000, allowParking: true } }),
      (input) => {
        const decision = decide(input);
        const steps = decision.plan?.steps ?? [];
        for (const moment of sampledMoments(steps, 1000, 3)) expect(illegal(input, moment)).toEqual([]);
      },
      RUNS / 30,
    );
  });
});

const moves = (decision: Decision): [server: string, from: string, to: string][] =>
  (decision.plan?.steps ?? []).map((step) => [step.serverId, step.from, step.to]);

/** With a sample of every VM: what a fallback says of a VM changes with its neighbours, and so with every move. */
function sampled(input: Case): Case {
  const snapshot = structuredClone(input.snapshot);
  for (const reading of snapshot.vmReadings) for (const server of snapshot.servers) reading.values[server.id] ??= 0.05;
  return { ...input, snapshot };
}

/** The next snapshot, if only the plan changed the cloud. */
function outcome({ snapshot }: Case, decision: Decision): Snapshot {
  const steps = decision.plan?.steps ?? [];
  const next = structuredClone(snapshot);
  next.id = `${snapshot.id}-next`;
  for (const step of steps) {
    const server = next.servers.find((s) => s.id === step.serverId);
    if (server === undefined) continue;
    server.host = step.to;
    for (const host of next.hosts)
      for (const [resource, amount] of Object.entries(server.resources)) {
        const item = host.inventory?.[resource];
        if (item === undefined) continue;
        if (host.name === step.from) item.used -= amount;
        if (host.name === step.to) item.used += amount;
      }
    for (const policy of next.policies) {
      const weights = step.weights[policy.name];
      if (weights === undefined) continue;
      for (const query of [policy.imbalanceQuery, policy.capacityQuery]) {
        const reading = next.hostReadings.find((r) => r.query === query);
        if (reading === undefined) continue;
        reading.values[step.from] = (reading.values[step.from] ?? 0) - weights.source;
        reading.values[step.to] = (reading.values[step.to] ?? 0) + weights.destination;
      }
      const vms = next.vmReadings.find((r) => r.query === policy.vmProfileQuery);
      if (vms?.values[step.serverId] !== undefined) vms.values[step.serverId] = weights.destination;
    }
  }
  return next;
}

type Aims = { readonly reached: boolean; readonly cost: number; readonly moves: number; readonly combined: number };

/** The order of aims: the targets, at the lowest cost; else the lowest combined imbalance; then cost and moves. */
function expectNoWorse(a: Aims, b: Aims): void {
  if (a.reached !== b.reached) {
    expect(a.reached).toBe(true);
    return;
  }
  if (!a.reached) expect(a.combined).toBeLessThanOrEqual(b.combined + 1e-8);
  if (!a.reached && Math.abs(a.combined - b.combined) > 1e-11) return;
  expect(a.cost).toBeLessThanOrEqual(b.cost + 1e-8);
  if (Math.abs(a.cost - b.cost) <= 1e-8) expect(a.moves).toBeLessThanOrEqual(b.moves);
}

/** True when the steps leave no policy both worse than at the start and above its threshold. */
function acceptable(input: Case, steps: readonly Step[]): boolean {
  const before = scores(input, []).policies;
  const after = scores(input, steps).policies;
  return input.snapshot.policies.every(
    ({ name, threshold }) => (after.get(name) ?? 0) <= Math.max(threshold, before.get(name) ?? 0) + 1e-9,
  );
}

/** The imbalance after the spread pass, if only that pass made the plan; null when nothing is scored. */
function aims(input: Case, options: Partial<CompleteEngineOptions>): Aims | null {
  const decision = decide({
    ...input,
    options: {
      ...input.options,
      ...options,
      softRules: 'veto',
      evacuateDisabledHosts: false,
      enforceHardAffinity: false,
      enforceSoftAffinity: false,
    },
  });
  const steps = decision.plan?.steps ?? [];
  const { combined, policies } = scores(input, steps);
  if (combined === null) return null;
  const { targetRatio, moveOverheadGib } = input.options;
  const reached = input.snapshot.policies.every((p) => (policies.get(p.name) ?? 0) <= targetRatio * p.threshold + 1e-8);
  let cost = 0;
  for (const step of steps) cost += moveOverheadGib + step.ramMb / 1024 + step.diskGb;
  return { reached, cost, moves: steps.length, combined };
}

/** Number of hosts without servers after the plan. */
function emptyHosts(input: Case, planner: CompleteEngineOptions['planner']): number {
  const { plan } = decide({ ...input, options: { ...input.options, planner } });
  const at = new Map(input.snapshot.servers.map((server) => [server.id, server.host]));
  for (const step of plan?.steps ?? []) at.set(step.serverId, step.to);
  return input.snapshot.hosts.length - new Set(at.values()).size;
}

/** The same facts with every list in another order. */
function reversed(input: Case): Case {
  const { snapshot, memory } = input;
  const turn = <T>(items: readonly T[]): T[] => [...items].reverse();
  const turnKeys = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(turn(Object.entries(record)));
  return {
    ...input,
    snapshot: {
      ...snapshot,
      policies: turn(snapshot.policies),
      hosts: turn(snapshot.hosts).map((host) => ({
        ...host,
        inventory: host.inventory === null ? null : turnKeys(host.inventory),
      })),
      servers: turn(snapshot.servers),
      serverGroups: turn(snapshot.serverGroups).map((group) => ({ ...group, members: turn(group.members) })),
      migrations: turn(snapshot.migrations),
      hostReadings: turn(snapshot.hostReadings).map((reading) => ({ ...reading, values: turnKeys(reading.values) })),
      vmReadings: turn(snapshot.vmReadings).map((reading) => ({ ...reading, values: turnKeys(reading.values) })),
    },
    memory: {
      ...memory,
      inFlight: turn(memory.inFlight),
      quarantines: turnKeys(memory.quarantines),
      releases: Object.fromEntries(turn(Object.entries(memory.releases)).map(([id, times]) => [id, turn(times)])),
      hostFailures: Object.fromEntries(
        turn(Object.entries(memory.hostFailures)).map(([host, times]) => [host, turn(times)]),
      ),
    },
  };
}
