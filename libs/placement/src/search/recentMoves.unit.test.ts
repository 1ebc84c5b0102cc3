import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch } from '../../testing/index.ts';
import { decide } from '../decide.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-01-01T12:00:00.000Z');

/** Either of two equal VMs of a loaded host brings both hosts to the target. */
const plan = (releases: Record<string, readonly number[]>, locked: readonly string[] = []) => {
  const vm = (name: string) => ({
    host: 'a',
    w: { cpu: 0.2 },
    ramMb: 8192,
    ...(locked.includes(name) ? { set: { locked: true } } : {}),
  });
  const sketch: Sketch = {
    policies: { cpu: { threshold: 0.1 } },
    hosts: { a: {}, b: {} },
    vms: { x: vm('x'), y: vm('y') },
  };
  const input = decideInput(sketch);
  const memory = { ...input.memory, releases };
  const decision = decide({ ...input, memory });
  return decision.plan?.steps.map(({ serverId, to }) => [serverId, to]);
};

describe('a VM that was moved lately', () => {
  it('acts: another one moves in its place where that costs no more', () => {
    const [first] = plan({})?.[0] ?? [];
    const other = first === 'x' ? 'y' : 'x';
    expect(plan({ [String(first)]: [NOW_MS - DAY_MS / 2] })).toEqual([[other, 'b']]);
    expect(
      plan({ [String(first)]: [NOW_MS - DAY_MS / 2], [other]: [1, 2].map((n) => NOW_MS - n * DAY_MS * 0.3) }),
    ).toEqual([[first, 'b']]);
  });

  it('refuses: it moves again where no other may', () => {
    expect(plan({ x: [NOW_MS - DAY_MS / 2] }, ['y'])).toEqual([['x', 'b']]);
  });

  it('does nothing: a week after its last move', () => {
    const [first] = plan({})?.[0] ?? [];
    expect(plan({ [String(first)]: [NOW_MS - 8 * DAY_MS] })).toEqual([[first, 'b']]);
  });
});
