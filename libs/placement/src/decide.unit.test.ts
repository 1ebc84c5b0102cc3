import { decisionSchema } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput } from '../testing/index.ts';
import { decide } from './decide.ts';

describe('a decision', () => {
  it('moves a VM from the fullest host to the emptiest', () => {
    const decision = decide(
      decideInput({
        policies: { cpu: { threshold: 0.2 } },
        hosts: { a: {}, b: {}, c: {} },
        vms: {
          v1: { host: 'a', w: { cpu: 0.3 } },
          v2: { host: 'a', w: { cpu: 0.3 } },
          v3: { host: 'b', w: { cpu: 0.3 } },
          v4: { host: 'c', w: { cpu: 0.1 } },
        },
      }),
    );
    expect(decisionSchema.parse(decision)).toEqual(decision);
    expect(decision.outcome).toBe('planned');
    expect(decision.plan?.steps.map((step) => [step.serverId, step.from, step.to])).toEqual([['v1', 'a', 'c']]);
    expect(decision.plan?.after.combined).toBeCloseTo(0.1, 9);
  });
});
