import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch, type SketchHost, type SketchVm } from '../../../testing/index.ts';
import { decide } from '../../decide.ts';

const decided = (hosts: Record<string, SketchHost>, vms: Record<string, SketchVm>, threshold = 0.2) => {
  const sketch: Sketch = { policies: { cpu: { threshold } }, hosts, vms, options: { searchWorkLimit: 100_000 } };
  return decide(decideInput(sketch)).warnings.filter(({ code }) => code === 'threshold-unreachable');
};
const small = { b1: { host: 'b', w: { cpu: 0.2 } }, c1: { host: 'c', w: { cpu: 0.2 } } };

describe('a threshold that no moves reach', () => {
  it('acts: the words name the VM that cannot move, and the threshold that can be reached', () => {
    const large = { host: 'a', w: { cpu: 0.8 }, set: { locked: true } };
    const [warning] = decided({ a: {}, b: {}, c: {} }, { large, ...small });
    expect(warning?.text).toBe(
      'no moves bring the imbalance of cpu below 0.6, and its threshold is 0.2: 0.8 stays on a, because VMs cannot move, such as large with 0.8. Set a threshold of 0.6 or more',
    );
    expect(warning?.detail).toMatchObject({ policy: 'cpu', threshold: 0.2, host: 'a' });
    expect(warning?.detail?.reachable).toBeCloseTo(0.6, 6);
  });

  it('acts: load that is of no VM, and a VM that is larger than the threshold', () => {
    const [unexplained] = decided({ a: { score: { cpu: 0.8 } }, b: {}, c: {} }, small);
    expect(unexplained?.text).toContain('0.8 stays on a, and 0.8 of it is of no VM with a value. Set a threshold');
    const silent = { dark: { host: 'a', w: {} }, idle: { host: 'a', w: {} }, other: { host: 'b', w: {} } };
    const [named] = decided({ a: { score: { cpu: 0.8 } }, b: {}, c: {} }, { ...silent, ...small });
    expect(named?.text).toContain('0.8 of it is of no VM with a value; without one: dark, idle. Set a threshold of 0.');
    const [larger] = decided({ a: {}, b: {}, c: {} }, { large: { host: 'a', w: { cpu: 0.9 } }, ...small });
    expect(larger?.text).toContain(
      'below 0.7, and its threshold is 0.2: one VM, large, has a load of 0.9 wherever it is',
    );
  });

  it('refuses: it says nothing where the bound is at the threshold or below it', () => {
    const movable = { a1: { host: 'a', w: { cpu: 0.3 } }, a2: { host: 'a', w: { cpu: 0.3 } }, ...small };
    expect(decided({ a: {}, b: {}, c: {}, d: {} }, movable)).toEqual([]);
  });

  it('does nothing: within the thresholds', () => {
    expect(decided({ a: {}, b: {}, c: {} }, { a1: { host: 'a', w: { cpu: 0.3 } }, ...small })).toEqual([]);
  });
});
