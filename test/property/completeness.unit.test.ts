import type { Step } from '@kronos/contracts';
import { checkMove, decide, observe } from '@kronos/placement';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { caseArb } from './arbitraries.ts';
import { RUNS as ALL_RUNS, SEED } from './runs.ts';
import { type Case, scores, verifyDestinations, verifyServers, verifyShape, verifyTransit } from './verifier.ts';

vi.setConfig({ testTimeout: 600_000 });

const RUNS = Math.ceil(ALL_RUNS / 2);

const holds = (arb: fc.Arbitrary<Case>, property: (input: Case) => void): void => {
  fc.assert(fc.property(arb, property), { numRuns: RUNS, seed: SEED });
};

/** A step that somebody else proposes. */
function proposed({ snapshot }: Case, serverId: string, to: string, i: number, phase: Step['phase']): Step {
  const server = snapshot.servers.find((s) => s.id === serverId);
  return {
    step: i + 1,
    taskId: `${snapshot.id}-s${i + 1}`,
    phase,
    parking: false,
    serverId,
    serverName: serverId,
    from: server?.host ?? '',
    to,
    alternates: [],
    dependsOn: [],
    delaySeconds: 0,
    groups: [],
    resources: server?.resources ?? {},
    ramMb: server?.ramMb ?? 0,
    diskGb: server?.diskGb ?? 0,
    weights: {},
  };
}

/** The independent checker's objections to these steps, without those about policies and budgets. */
function objections(input: Case, steps: readonly Step[]): string[] {
  const decision = { ...decide(input), plan: null };
  const plan = { steps } as unknown as NonNullable<ReturnType<typeof decide>['plan']>;
  const with_ = { ...decision, plan };
  return [
    ...verifyServers(input, with_),
    ...verifyDestinations(input, with_),
    ...verifyTransit(input, with_),
    ...verifyShape(input, with_).filter((wrong) => wrong.includes('goes nowhere')),
  ];
}

/** The most that the soft groups of a VM add to the combined imbalance when it leaves its host. */
function priceOf({ snapshot, options }: Case, serverId: string): number {
  if (options.softRules !== 'penalty') return 0;
  const soft = snapshot.serverGroups.filter((g) => g.policy.startsWith('soft-') && g.members.includes(serverId));
  return options.softPenalty * soft.reduce((sum, { members }) => sum + members.length, 0);
}

/** True when the steps leave no policy worse than it began and above its threshold. */
function acceptable(input: Case, steps: readonly Step[]): boolean {
  const before = scores(input, []).policies;
  const after = scores(input, steps).policies;
  return input.snapshot.policies.every((policy) => {
    const value = after.get(policy.name);
    return value === undefined || value <= Math.max(policy.threshold, before.get(policy.name) ?? 0) + 1e-9;
  });
}

describe('whatever the cluster', () => {
  it('a move is refused exactly where the independent checker objects', () => {
    let legal = 0;
    let refused = 0;
    holds(caseArb(), (input) => {
      const { snapshot, memory, options } = input;
      // Moves in flight change where VMs are: the properties about plans cover these.
      if (memory.inFlight.length > 0) return;
      const { cluster } = observe(snapshot, memory, options, Date.parse(snapshot.time));
      for (const server of snapshot.servers.slice(0, 5))
        for (const host of snapshot.hosts) {
          if (host.name === server.host) continue;
          const wrong = objections(input, [proposed(input, server.id, host.name, 0, 'evacuate')]);
          const said = checkMove(cluster, server.id, host.name);
          expect([server.id, host.name, 'ok' in said ? [] : said.code, wrong]).toEqual([
            server.id,
            host.name,
            wrong.length === 0 ? [] : expect.any(String),
            wrong,
          ]);
          if (wrong.length === 0) legal++;
          else refused++;
        }
    });
    expect(legal).toBeGreaterThan(RUNS / 4);
    expect(refused).toBeGreaterThan(RUNS);
  });

  it('a legal move that gains enough is made, or a better plan', () => {
    let gains = 0;
    // To the greedy planner a soft rule is as strict as a hard one.
    for (const planner of ['search', 'greedy'] as const)
      holds(caseArb({ options: planner === 'greedy' ? { planner, softRules: 'veto' } : { planner } }), (input) => {
        const decision = decide(input);
        const foundNothing = ['no-improvement', 'search-limit'].includes(decision.reason.code);
        if (!foundNothing && decision.outcome !== 'planned') return;
        if (decision.outcome === 'planned') {
          gains++;
          return;
        }
        const before = scores(input, []).combined ?? 0;
        for (const server of input.snapshot.servers)
          for (const host of input.snapshot.hosts) {
            const step = proposed(input, server.id, host.name, 0, 'spread');
            const gain = before - (scores(input, [step]).combined ?? 0);
            if (
              gain < Math.max(input.options.minGain, 1e-6) + 1e-6 + priceOf(input, server.id) ||
              !acceptable(input, [step])
            )
              continue;
            expect([server.id, host.name, gain, objections(input, [step])]).not.toEqual([
              server.id,
              host.name,
              gain,
              [],
            ]);
          }
      });
    expect(gains).toBeGreaterThan(RUNS / 10);
  });

  it('an evacuation that can be done is done', () => {
    let done = 0;
    let stuck = 0;
    holds(caseArb({ options: { evacuateDisabledHosts: true, minInstanceAgeSeconds: 0 } }), (drawn) => {
      const snapshot = structuredClone(drawn.snapshot);
      const host = snapshot.hosts[0];
      if (host === undefined) return;
      host.service = { status: 'disabled', state: 'up', forcedDown: false, disabledReason: null };
      for (const policy of snapshot.policies) policy.maxMigrationsPerCycle = 20;
      const input = { ...drawn, snapshot, memory: { ...drawn.memory, inFlight: [] } };
      const leaving = new Set(
        snapshot.hosts.filter(({ service: s }) => s.status === 'disabled' && s.state === 'up').map((h) => h.name),
      );
      const waiting = snapshot.servers.filter(
        (server) =>
          leaving.has(server.host) &&
          verifyServers(input, {
            ...decide(input),
            plan: { steps: [proposed(input, server.id, '', 0, 'evacuate')] } as never,
          }).length === 0,
      );
      if (waiting.length === 0 || waiting.length > 3) return;
      const decision = decide(input);
      if (decision.outcome === 'gated') return;
      const left = (decision.plan?.steps ?? []).filter((step) => step.phase === 'evacuate').length;
      if (left === waiting.length) {
        done++;
        return;
      }
      stuck++;
      const hosts = snapshot.hosts.filter((h) => !leaving.has(h.name)).map((h) => h.name);
      const all = (chosen: readonly Step[]): Step[] | null => {
        const server = waiting[chosen.length];
        if (server === undefined)
          return acceptable(input, chosen) && objections(input, chosen).length === 0 ? [...chosen] : null;
        for (const to of hosts) {
          const step = proposed(input, server.id, to, chosen.length, 'evacuate');
          if (objections(input, [step]).length > 0) continue;
          const found = all([...chosen, step]);
          if (found !== null) return found;
        }
        return null;
      };
      expect(all([])?.map((step) => `${step.serverId} -> ${step.to}`) ?? null).toBeNull();
    });
    expect(done).toBeGreaterThan(RUNS / 20);
    expect(stuck).toBeGreaterThan(RUNS / 50);
  });
});
