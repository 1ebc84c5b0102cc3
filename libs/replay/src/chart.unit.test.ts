import { defaultEngineOptions } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { whatIfChart } from './chart.ts';
import { memoryHistory, operate } from './testing/index.ts';
import { type WhatIfCycle, whatIf } from './whatIf.ts';

const op = operate({ seed: 3, cycles: 30, aggregates: ['a<b>&"c"'] });
const cycles = await Array.fromAsync(
  whatIf(memoryHistory(op.events, op.snapshots), {}, { defaults: defaultEngineOptions }),
);

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

  it('bears one snapshot, and none', () => {
    expect(whatIfChart(cycles.slice(0, 1), '')).not.toMatch(/NaN|Infinity/);
    expect(whatIfChart([], '')).toContain('</svg>');
  });
});
