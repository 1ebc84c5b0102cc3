import { describe, expect, it } from 'vitest';
import { type LoadMove, usefulness } from './usefulness.ts';

const loads = (hosts: Record<string, number>, threshold = 0.2) => ({
  policies: [{ policy: 'cpu', weight: 1, threshold }],
  hosts: Object.entries(hosts).map(([host, value]) => ({ host, values: [value] })),
});
const move = (from: string, to: string, share = 0.1): LoadMove => ({
  from,
  to,
  leaves: { cpu: share },
  adds: { cpu: share },
});
const judge = (
  hosts: Record<string, number>,
  to: string,
  { others = [], out = [] }: { readonly others?: readonly LoadMove[]; readonly out?: readonly string[] } = {},
) => usefulness(loads(hosts), move('h1', to), others, new Set(out));

describe('a move to an alternate', () => {
  it('helps when it lowers the imbalance', () => {
    expect(judge({ h1: 0.5, h2: 0.1, h3: 0.2 }, 'h2')).toMatchObject({ helps: true });
    expect(judge({ h1: 0.5, h2: 0.1, h3: 0.2 }, 'h2').withMove).toBeCloseTo(0.2);
  });

  it('does not help when it raises it, or changes nothing', () => {
    expect(judge({ h1: 0.3, h2: 0.25, h3: 0.2 }, 'h2').helps).toBe(false);
    expect(judge({ h1: 0.4, h2: 0.2, h3: 0.6, h4: 0.1 }, 'h2').helps).toBe(false);
  });

  it('is judged with the other moves: the place that it would fill may be taken', () => {
    const hosts = { h1: 0.4, h2: 0.1, h3: 0.3 };
    expect(judge(hosts, 'h2').helps).toBe(true);
    expect(judge(hosts, 'h2', { others: [move('h3', 'h2', 0.2), move('h1', 'h3', 0.2)] }).helps).toBe(false);
  });

  it('is judged without hosts that take no servers any more', () => {
    // h4 is the lowest host, and h1 is not the only highest one. Without h4, the move raises the lowest.
    const hosts = { h1: 0.4, h2: 0.4, h3: 0.1, h4: 0 };
    expect(judge(hosts, 'h3').helps).toBe(false);
    expect(judge(hosts, 'h3', { out: ['h4'] }).helps).toBe(true);
  });

  it('does not help when another policy gets worse and is above its threshold', () => {
    const policies = [
      { policy: 'cpu', weight: 0.9, threshold: 0.2 },
      { policy: 'memory', weight: 0.1, threshold: 0.2 },
    ];
    const hosts = [
      { host: 'h1', values: [0.6, 0.1] },
      { host: 'h2', values: [0.1, 0.3] },
    ];
    const both = { ...move('h1', 'h2'), leaves: { cpu: 0.2, memory: 0.1 }, adds: { cpu: 0.2, memory: 0.1 } };
    expect(usefulness({ policies, hosts }, both, [], new Set()).helps).toBe(false);
  });
});
