import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch } from '../../testing/index.ts';
import { decide } from '../decide.ts';

/** Host a is disabled and full, b is idle: a move from a to b would lower the imbalance between b and c. */
const sketch = (set: Partial<Sketch> = {}): Sketch => ({
  policies: { cpu: { threshold: 0.1 } },
  hosts: { a: { disabled: true }, b: {}, c: {} },
  vms: {
    one: { host: 'a', w: { cpu: 0.25 } },
    two: { host: 'a', w: { cpu: 0.25 } },
    big: { host: 'c', w: { cpu: 0.5 } },
  },
  ...set,
});

const steps = (of: Sketch) => {
  const { plan } = decide(decideInput(of));
  return (plan?.steps ?? []).map((step) => `${step.serverId} ${step.from} -> ${step.to} ${step.phase}`);
};

describe('a VM on a disabled host', () => {
  it('stays, although its move would lower the imbalance: the executor would cancel it', () => {
    expect(steps(sketch({ options: { evacuateDisabledHosts: false } }))).toEqual([]);
  });

  it('moves by an evacuation', () => {
    expect(steps(sketch({ options: { evacuateDisabledHosts: true } })).sort()).toEqual([
      'one a -> b evacuate',
      'two a -> b evacuate',
    ]);
  });

  it('moves to lower the imbalance when its host is enabled', () => {
    expect(steps(sketch({ hosts: { a: {}, b: {}, c: {} } })).length).toBeGreaterThan(0);
  });
});
