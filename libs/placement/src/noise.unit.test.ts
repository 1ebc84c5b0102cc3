import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch } from '../testing/index.ts';
import { decide } from './decide.ts';
import type { Memory } from './snapshot/memory.ts';

/** One host holds a VM that cannot move: no plan reaches the threshold, and a move of .06 lowers the imbalance by as much. */
const stuck = (memory: Partial<Memory>): Sketch => ({
  policies: { cpu: { threshold: 0.1 } },
  hosts: { a: {}, b: {}, c: {} },
  vms: {
    large: { host: 'a', w: { cpu: 0.8 }, set: { locked: true } },
    b1: { host: 'b', w: { cpu: 0.2 } },
    b2: { host: 'b', w: { cpu: 0.06 } },
    b3: { host: 'b', w: { cpu: 0.06 } },
    c1: { host: 'c', w: { cpu: 0.2 } },
  },
  memory,
  options: { searchWorkLimit: 100_000 },
});
const decided = (memory: Partial<Memory>) => decide(decideInput(stuck(memory)));

describe('noise of the last cycles', () => {
  it('acts: a gain that it explains moves nothing, and the reason has both figures', () => {
    const { outcome, plan, reason } = decided({ noise: { cpu: 0.03 } });
    expect({ outcome, plan }).toEqual({ outcome: 'quiet', plan: null });
    expect(reason.code).toBe('within-noise');
    expect(reason.detail).toMatchObject({ moves: 1 });
    expect(reason.detail?.gain).toBeCloseTo(0.06, 9);
    expect(reason.detail?.least).toBeCloseTo(0.09, 9);
    expect(reason.text).toContain(
      'lower the combined imbalance by 0.06; the noise of the last cycles explains up to 0.09',
    );
  });

  it('refuses: a larger gain is made, and so is any while nothing is known of noise', () => {
    expect(decided({ noise: { cpu: 0.01 } }).plan?.steps).toHaveLength(1);
    expect(decided({ noise: { memory: 0.5 } }).plan?.steps).toHaveLength(1);
    expect(decided({}).plan?.steps).toHaveLength(1);
  });

  it('does nothing: where a plan reaches the targets, or ends what has lasted', () => {
    const reachable: Sketch = {
      ...stuck({ noise: { cpu: 0.5 } }),
      policies: { cpu: { threshold: 0.2 } },
      vms: {
        a1: { host: 'a', w: { cpu: 0.3 } },
        a2: { host: 'a', w: { cpu: 0.3 } },
        b1: { host: 'b', w: { cpu: 0.3 } },
        c1: { host: 'c', w: { cpu: 0.25 } },
        c2: { host: 'c', w: { cpu: 0.05 } },
      },
      hosts: { a: {}, b: {}, c: {}, d: {} },
    };
    expect(decide(decideInput(reachable)).outcome).toBe('planned');
    const within = (cycles: number): Sketch => ({
      ...stuck({ noise: { cpu: 0.5 }, sustained: { cpu: cycles } }),
      policies: { cpu: { threshold: 0.55, target: 0.5 } },
    });
    expect(decide(decideInput(within(0))).reason.code).toBe('within-noise');
    expect(decide(decideInput(within(7))).outcome).toBe('planned');
  });
});
