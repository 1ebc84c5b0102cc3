import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RangeSeries, Sample } from './client.ts';
import { type AnswerInput, judgeAnswer, seriesName, stalenessRange } from './health.ts';

const NOW = 1_767_225_600_000;
const sample = (host: string, value: number, more: Record<string, string> = {}): Sample => ({
  labels: { __name__: 'load', host, ...more },
  timeMs: NOW,
  value,
});
const series = (host: string): RangeSeries => ({ labels: { host }, samples: [{ timeMs: NOW - 60_000, value: 1 }] });
const input = (more: Partial<AnswerInput>): AnswerInput => ({
  kind: 'host',
  label: 'host',
  instant: [],
  range: [],
  nowMs: NOW,
  stalenessMs: 300_000,
  expected: [],
  ...more,
});

const judge = (more: Partial<AnswerInput>) => judgeAnswer(input(more));

describe('an answer about hosts', () => {
  it('is HEALTHY when every expected host has a value; 0 is one', () => {
    const instant = [sample('a', 0), sample('b', 0.5)];
    expect(judge({ instant, range: [series('a'), series('b')], expected: ['a', 'b'] })).toEqual({
      health: 'HEALTHY',
      cause: null,
      text: '',
      values: { a: 0, b: 0.5 },
      missing: [],
      stale: [],
      notFinite: [],
      unknown: [],
      duplicates: [],
      unlabelled: 0,
    });
  });

  it('is UNREACHABLE without an answer, and when its age could not be checked', () => {
    expect(judge({ instant: null, expected: ['a'] })).toMatchObject({
      health: 'UNREACHABLE',
      missing: ['a'],
      text: 'no answer',
    });
    const instant = [sample('a', 1)];
    const age = 'the age of the answer could not be checked';
    expect(judge({ instant, range: null })).toMatchObject({ health: 'UNREACHABLE', text: age });
    expect(judge({ instant, timestamps: null })).toMatchObject({ health: 'UNREACHABLE', text: age });
  });

  it('is PARTIAL when an expected host was not there lately either', () => {
    const result = judge({ instant: [sample('a', 1)], range: [series('a')], expected: ['b', 'a'] });
    expect(result).toMatchObject({ health: 'PARTIAL', missing: ['b'], stale: [], text: 'missing hosts: b' });
  });

  it('is STALE when an expected host was there within the threshold and is gone', () => {
    const result = judge({ instant: [sample('a', 1)], range: [series('a'), series('b')], expected: ['a', 'b', 'c'] });
    expect(result).toMatchObject({
      health: 'STALE',
      stale: ['b'],
      missing: ['b', 'c'],
      text: 'stale hosts: b; missing hosts: c',
    });
  });

  it('is not STALE for a host that nobody expects: it is down', () => {
    expect(judge({ instant: [sample('a', 1)], range: [series('a'), series('gone')], expected: ['a'] }).health).toBe(
      'HEALTHY',
    );
  });

  it('is STALE when the sample itself is older than the threshold, whose value is not used', () => {
    const timestamps = [sample('a', NOW / 1000 - 299), sample('b', NOW / 1000 - 301)];
    const instant = [sample('a', 1), sample('b', 2)];
    const result = judge({ instant, timestamps, expected: ['a', 'b'] });
    expect(result).toMatchObject({ health: 'STALE', stale: ['b'], values: { a: 1 }, missing: ['b'] });
  });

  it('takes a timestamp that is not finite for too old', () => {
    const result = judge({ instant: [sample('a', 1)], timestamps: [sample('a', Number.NaN)], expected: ['a'] });
    expect(result.health).toBe('STALE');
  });

  it('counts NaN and Inf as missing', () => {
    const instant = [sample('a', Number.NaN), sample('b', Number.NEGATIVE_INFINITY)];
    const result = judge({ instant, range: [series('a'), series('b')], expected: ['a', 'b'] });
    expect(result).toMatchObject({
      health: 'PARTIAL',
      values: {},
      missing: ['a', 'b'],
      notFinite: ['a', 'b'],
      text: 'hosts with NaN or Inf: a, b',
    });
  });

  it('is ERROR when two series claim one host, and names both', () => {
    const instant = [sample('a', 1, { job: 'x' }), sample('a', 2, { job: 'y' })];
    const result = judge({ instant, expected: ['a'] });
    expect(result).toMatchObject({
      health: 'ERROR',
      values: {},
      missing: ['a'],
      text: 'a has 2 series: load{host="a", job="x"} and load{host="a", job="y"}',
    });
  });

  it('is ERROR when two label values stand for one host', () => {
    const subjects = new Map([
      ['a', 'cmp1'],
      ['a:9100', 'cmp1'],
    ]);
    const result = judge({ instant: [sample('a', 1), sample('a:9100', 1)], subjects, expected: ['cmp1'] });
    expect(result.health).toBe('ERROR');
    expect(result.duplicates).toEqual([{ subject: 'cmp1', series: ['load{host="a"}', 'load{host="a:9100"}'] }]);
  });

  it('speaks of hosts by their service host, and lists the labels that stand for none', () => {
    const subjects = new Map([['a:9100', 'cmp1']]);
    const instant = [sample('a:9100', 1), sample('strange', 1), { labels: { job: 'x' }, timeMs: NOW, value: 1 }];
    expect(judge({ instant, subjects, range: [series('a:9100')], expected: ['cmp1'] })).toMatchObject({
      health: 'HEALTHY',
      values: { cmp1: 1 },
      unknown: ['strange'],
      unlabelled: 1,
    });
  });

  it('shortens a long list', () => {
    const expected = Array.from({ length: 12 }, (_, i) => `h${String(i).padStart(2, '0')}`);
    expect(judge({ expected }).text).toMatch(/^missing hosts: h00, .*, h09 and 2 more$/);
  });
});

describe('an answer about VMs', () => {
  it('is never PARTIAL nor ERROR: VMs without a sample, or with two, have no value', () => {
    const instant = [sample('v1', 0.1), sample('v2', 1, { node: 'a' }), sample('v2', 2, { node: 'b' })];
    expect(judge({ kind: 'vm', instant, expected: ['v1', 'v2', 'v3'] })).toMatchObject({
      health: 'HEALTHY',
      values: { v1: 0.1 },
      missing: ['v2', 'v3'],
      duplicates: [{ subject: 'v2' }],
      text: '',
    });
  });

  it('is STALE when a running VM was there within the threshold and is gone, not when a deleted one was', () => {
    const range = [series('v1'), series('deleted')];
    expect(judge({ kind: 'vm', range, expected: ['v1'] })).toMatchObject({
      health: 'STALE',
      stale: ['v1'],
      text: 'stale VMs: v1',
    });
    expect(judge({ kind: 'vm', instant: [sample('v1', 1)], range, expected: ['v1'] }).health).toBe('HEALTHY');
  });

  it('is UNREACHABLE without an answer', () => {
    expect(judge({ kind: 'vm', instant: null }).health).toBe('UNREACHABLE');
  });
});

describe('always', () => {
  const host = fc.constantFrom('a', 'b', 'c', 'd');
  const value = fc.oneof(fc.double(), fc.constantFrom(0, Number.NaN, Number.POSITIVE_INFINITY));
  const samples = fc.array(
    fc.tuple(host, value, fc.constantFrom('x', 'y')).map(([h, v, job]) => sample(h, v, { job })),
    { maxLength: 8 },
  );
  const ranges = fc.array(host.map(series), { maxLength: 4 });
  const ages = fc.option(
    fc.array(
      fc.tuple(host, fc.integer({ min: 0, max: 600 })).map(([h, age]) => sample(h, NOW / 1000 - age)),
      { maxLength: 4 },
    ),
    { nil: undefined },
  );
  const anything = fc.record({
    kind: fc.constantFrom('host' as const, 'vm' as const),
    instant: fc.option(samples),
    range: fc.option(ranges),
    timestamps: ages,
    expected: fc.uniqueArray(host),
  });
  const judged = anything.map(({ timestamps, ...rest }) => {
    const whole = input({ ...rest, ...(timestamps === undefined ? {} : { timestamps }) });
    return { input: whole, result: judgeAnswer(whole) };
  });

  it('a HEALTHY answer about hosts has a finite value for every expected host', () => {
    fc.assert(
      fc.property(judged, ({ input: { kind, expected }, result }) => {
        if (kind !== 'host' || result.health !== 'HEALTHY') return;
        for (const one of expected) expect(Number.isFinite(result.values[one])).toBe(true);
      }),
    );
  });

  it('a value is never one of several, never infinite, never old', () => {
    fc.assert(
      fc.property(judged, ({ input: { instant, timestamps }, result }) => {
        for (const [one, number] of Object.entries(result.values)) {
          const own = (instant ?? []).filter((s) => s.labels.host === one);
          expect(own.map((s) => s.value)).toEqual([number]);
          expect(Number.isFinite(number)).toBe(true);
          for (const s of timestamps ?? [])
            if (s.labels.host === one) expect(NOW - s.value * 1000).toBeLessThanOrEqual(300_000);
        }
      }),
    );
  });

  it('an expected subject has a value or is missing, never both and never neither', () => {
    fc.assert(
      fc.property(judged, ({ input: { expected }, result }) => {
        for (const one of expected) expect(Object.hasOwn(result.values, one)).toBe(!result.missing.includes(one));
        for (const one of result.stale) expect(result.missing).toContain(one);
      }),
    );
  });

  it('an answer is HEALTHY exactly when there is nothing to say about it', () => {
    fc.assert(
      fc.property(judged, ({ result }) => {
        expect(result.text === '').toBe(result.health === 'HEALTHY');
      }),
    );
  });
});

describe('stalenessRange', () => {
  it('covers the threshold in at most 20 steps', () => {
    expect(stalenessRange(NOW, 300_000)).toEqual({ startMs: NOW - 300_000, endMs: NOW, stepMs: 15_000 });
    expect(stalenessRange(NOW, 5_000).stepMs).toBe(1_000);
  });
});

describe('seriesName', () => {
  it('is what people write', () => {
    expect(seriesName({ __name__: 'up' })).toBe('up');
    expect(seriesName({ __name__: 'up', b: 'x"y', a: '1' })).toBe('up{a="1", b="x\\"y"}');
    expect(seriesName({})).toBe('{}');
  });
});

describe('the error codes', () => {
  it('are each in the README, and no other', () => {
    const codes = (path: string): string[] => [
      ...new Set(readFileSync(new URL(path, import.meta.url), 'utf8').match(/KRONOS_PROMETHEUS_[A-Z_]+[A-Z]/g) ?? []),
    ];
    expect(codes('../README.md').sort()).toEqual(codes('./errors.ts').sort());
  });
});
