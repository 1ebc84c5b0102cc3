import { decisionSchema } from '@kronos/contracts';
import { decide, explain } from '@kronos/placement';
import { describe, expect, it } from 'vitest';
import { verify } from '../property/verifier.ts';
import { goldens, line, stuckLine } from './golden.ts';

describe('golden clusters', () => {
  for (const golden of goldens())
    it(`${golden.file}: ${golden.title}`, () => {
      const { input } = golden;
      const decision = decide(input);
      expect(decisionSchema.parse(decision)).toEqual(decision);
      expect(verify(input, decision)).toEqual([]);
      const steps = (decision.plan?.steps ?? []).map(line);
      expect({ outcome: decision.outcome, steps }).toEqual({ outcome: golden.outcome, steps: golden.steps ?? [] });
      if (golden.reason !== undefined) expect(decision.reason.code).toBe(golden.reason);
      if (golden.combined !== undefined)
        expect(decision.plan?.after.combined ?? decision.before.combined).toBeCloseTo(golden.combined, 9);
      if (golden.stuck !== undefined) expect(decision.stuck.map(stuckLine)).toEqual(golden.stuck);
      if (golden.warnings !== undefined) expect(decision.warnings.map((w) => w.code)).toEqual(golden.warnings);
      if (golden.evacuations !== undefined)
        expect(decision.evacuations.map((e) => `${e.host}: ${e.state}, ${e.left} left`)).toEqual(golden.evacuations);
      if (golden.refusals !== undefined)
        for (const code of golden.refusals) expect(Object.keys(decision.refusals)).toContain(code);
      if (golden.why !== undefined)
        expect((decision.plan?.steps ?? []).map((step) => step.why?.code)).toEqual(golden.why);
      const explanation = explain(input);
      expect(explanation.decision).toEqual(decision);
      const cycle = explanation.cycle();
      if (golden.gates !== undefined) expect(cycle.gates.map((gate) => gate.code)).toEqual(golden.gates);
      if (golden.skipped !== undefined)
        expect(
          Object.fromEntries(cycle.policies.flatMap((p) => (p.reason === null ? [] : [[p.policy, p.reason.code]]))),
        ).toEqual(golden.skipped);
      for (const [id, code] of Object.entries(golden.verdicts ?? {}))
        expect([id, explanation.vm(id)?.verdict.code]).toEqual([id, code]);
      for (const [id, hosts] of Object.entries(golden.destinations ?? {})) {
        const said = explanation.vm(id)?.destinations.map((d) => [d.host, d.refusal ?? 'legal']);
        expect([id, Object.fromEntries(said ?? [])]).toEqual([id, hosts]);
      }
      if (golden.greedy !== undefined) {
        const greedy = decide({ ...input, options: { ...input.options, planner: 'greedy' } });
        expect((greedy.plan?.steps ?? []).map(line)).toEqual(golden.greedy);
      }
    });
});
