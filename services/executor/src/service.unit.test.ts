import { describe, expect, it } from 'vitest';
import { servedAggregates } from './service.ts';

describe('what an executor serves', () => {
  const config = { engine: { aggregates: ['gpu', 'web'], includeUnassignedHosts: true } } as unknown as Parameters<
    typeof servedAggregates
  >[0];

  it('is all in scope unless its command line says otherwise', () => {
    expect(servedAggregates(config, [])).toEqual(['gpu', 'web', '_unassigned_']);
    expect(servedAggregates(config, ['web', 'web'])).toEqual(['web']);
  });

  it('is nothing out of scope', () => {
    expect(() => servedAggregates(config, ['cpu'])).toThrow('the aggregate cpu is not in scope');
  });
});
