import { describe, expect, it } from 'vitest';
import { evenly } from '../aside/evenly.ts';
import { valuesIn, valuesOf } from '../aside/values.ts';

describe('the points of a line', () => {
  it('are spread evenly, the first and the last among them', () => {
    expect(evenly([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)).toEqual([0, 4, 8]);
    expect(evenly([1, 2], 3)).toEqual([1, 2]);
    expect(evenly([], 3)).toEqual([]);
  });
});

describe('the values of a host in a snapshot', () => {
  const scores = {
    policies: [
      { policy: 'cpu', hosts: { h1: { raw: 0.5 } } },
      { policy: 'memory', hosts: {} },
    ],
  };
  const seen = valuesIn({ scores, hosts: [{ name: 'h1' }] } as unknown as Parameters<typeof valuesIn>[0]);

  it('are those of every policy, also where it has none', () => {
    expect(valuesOf(seen, 'h1')).toEqual({ cpu: 0.5, memory: null });
  });

  it('are nothing for a host that it does not have', () => {
    expect(valuesOf(seen, 'h2')).toBeNull();
  });
});
