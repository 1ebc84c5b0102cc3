import { systemClock } from '@kronos/clock';
import type { Prometheus } from '@kronos/prometheus';
import { describe, expect, it } from 'vitest';
import { askAll } from './query.ts';
import type { QueryAnswer } from './readings.ts';

/** The answer to `load`; Prometheus adds a warning to the kinds of query that the test names. */
async function ask(
  query: string,
  warn: { readonly instant?: string[]; readonly range?: string[]; readonly age?: string[] },
) {
  const refuse = () => Promise.reject(new Error('only queries are asked'));
  const prometheus: Prometheus = {
    instant: async (text) => ({
      samples: [{ labels: { host: 'h1' }, timeMs: 0, value: 0.1 }],
      warnings: (text === query ? warn.instant : warn.age) ?? [],
      infos: [],
    }),
    range: async () => ({ series: [], warnings: warn.range ?? [], infos: [] }),
    runtimeInfo: refuse,
    metricNames: refuse,
    metricType: refuse,
    inProgress: () => [],
    close: async () => undefined,
  };
  const [answer] = await askAll({
    prometheus,
    questions: [{ query, uses: [] }],
    stalenessMs: 300_000,
    clock: systemClock,
    concurrency: 2,
    deadlineMs: 30_000,
    signal: new AbortController().signal,
    around: (_, run): Promise<QueryAnswer> => run(),
  });
  return answer?.warnings;
}

describe('the warnings of an answer', () => {
  it('are those of the values, of the range and of the age, each once', async () => {
    expect(await ask('load', { instant: ['a store is gone'] })).toEqual(['a store is gone']);
    expect(await ask('load', { range: ['a store is gone'] })).toEqual(['a store is gone']);
    expect(await ask('load', { age: ['a store is gone'] })).toEqual(['a store is gone']);
    const both = { instant: ['a store is gone'], range: ['a store is gone', 'another one'] };
    expect(await ask('load', both)).toEqual(['a store is gone', 'another one']);
  });

  it('are none where Prometheus has none', async () => {
    expect(await ask('load', {})).toEqual([]);
  });
});
