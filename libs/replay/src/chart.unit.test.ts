import { defaultEngineOptions } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { memoryHistory, operate } from '../testing/index.ts';
import { CycleChart, whatIfDrawn, whatIfLabels } from './chart.ts';
import { whatIf } from './whatIf.ts';
import type { WhatIfCycle } from './whatIfRun.ts';

const op = operate({ seed: 3, cycles: 30, aggregates: ['a<b>&"c"'] });
const cycles = await Array.fromAsync(
  whatIf(memoryHistory(op.events, op.snapshots), {}, { defaults: defaultEngineOptions }),
);

/** The chart of cycles as the command draws it. */
function whatIfChart(drawn: readonly WhatIfCycle[], title: string): string {
  const times = drawn.map(({ timeMs }) => timeMs);
  const chart = new CycleChart({ sinceMs: Math.min(...times), untilMs: Math.max(...times) });
  for (const cycle of drawn) chart.add(whatIfDrawn(cycle));
  return chart.svg(whatIfLabels(title));
}

describe('the chart', () => {
  it('is well-formed, with every name escaped', () => {
    const svg = whatIfChart(cycles, 'cooldown < 1');
    expect(svg).toContain('a&lt;b&gt;&amp;&quot;c&quot;: cooldown &lt; 1 (simulated)');
    const open = [...svg.matchAll(/<(\w+)(?:[^>]*[^/])?>/g)].map(([, tag]) => tag);
    const close = [...svg.matchAll(/<\/(\w+)>/g)].map(([, tag]) => tag);
    expect(open.toSorted()).toEqual(close.toSorted());
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  it('breaks a line where nothing was measured', () => {
    const gap = cycles.map(
      (cycle, i): WhatIfCycle => (i === 10 ? { ...cycle, recorded: { ...cycle.recorded, combined: null } } : cycle),
    );
    const moves = (svg: string) =>
      [...svg.matchAll(/ d="(M[^"]*L[^"]*)"/g)].map(([, d = '']) => d.split('M').length - 1);
    expect(moves(whatIfChart(cycles, ''))).toEqual([1, 1]);
    expect(moves(whatIfChart(gap, ''))).toEqual([2, 1]);
  });

  it('takes no more room for more snapshots than can be seen', () => {
    const many = (times: number): WhatIfCycle[] =>
      Array.from({ length: times }, (_, n) =>
        cycles.map((cycle, i) => ({ ...cycle, timeMs: (n * cycles.length + i) * 60_000 })),
      ).flat();
    // Both have more snapshots than a column has points.
    const small = whatIfChart(many(400), '').length;
    expect(whatIfChart(many(1600), '').length).toBeLessThan(small * 1.3);
  });

  it('keeps the highest and the lowest value of a column', () => {
    const [cycle] = cycles;
    if (cycle === undefined) throw new Error('no cycle');
    const flat = Array.from({ length: 100_000 }, (_, i): WhatIfCycle => {
      const combined = i === 51_234 ? 0.9 : 0.5;
      return {
        ...cycle,
        timeMs: i * 1000,
        recorded: { ...cycle.recorded, combined },
        simulated: { ...cycle.simulated, combined: 0.5 },
      };
    });
    const [recorded = '', simulated = ''] = [...whatIfChart(flat, '').matchAll(/ d="(M[^"]*L[^"]*)"/g)].map(
      ([, d = '']) => d,
    );
    const heights = (d: string) => new Set([...d.matchAll(/[ML][\d.]+ ([\d.]+)/g)].map(([, y]) => y)).size;
    expect([heights(recorded), heights(simulated)]).toEqual([2, 1]);
  });

  it('bears one snapshot, and none', () => {
    expect(whatIfChart(cycles.slice(0, 1), '')).not.toMatch(/NaN|Infinity/);
    expect(whatIfChart([], '')).toContain('</svg>');
  });
});
