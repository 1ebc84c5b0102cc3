import { describe, expect, it } from 'vitest';
import { withRelated } from './elsewhere.ts';
import { type Elsewhere, initialAggregateFacts } from './state.ts';

const SERVERS = new Set(['vm1']);
const HOSTS = new Set(['h1']);

/** Another aggregate that has one row of one table. */
function other(table: Exclude<keyof Elsewhere, 'aggregate' | 'plans'>, key: string, row: unknown = {}): Elsewhere {
  return { ...initialAggregateFacts, aggregate: 'other', [table]: new Map([[key, row]]) };
}
const kept = (one: Elsewhere) => withRelated({ elsewhere: [one] }, SERVERS, HOSTS).elsewhere.length;

describe('of the other aggregates', () => {
  it.each(['vmReleases', 'vmFailures', 'operatorQuarantines', 'ownMoves'] as const)(
    'one whose %s name a VM stays',
    (table) => {
      expect(kept(other(table, 'vm1'))).toBe(1);
      expect(kept(other(table, 'vm2'))).toBe(0);
    },
  );

  it.each(['hostFailures', 'drains'] as const)('one whose %s name a host stays', (table) => {
    expect(kept(other(table, 'h1'))).toBe(1);
    expect(kept(other(table, 'h2'))).toBe(0);
  });

  it('one stays whose refusals name a host', () => {
    expect(kept(other('refusals', 'vm2 h1', { host: 'h1' }))).toBe(1);
    expect(kept(other('refusals', 'vm1 h2', { host: 'h2' }))).toBe(0);
  });

  it.each([
    ['VM', 'vm1', 'h2', 'h3'],
    ['source', 'vm2', 'h1', 'h3'],
    ['destination', 'vm2', 'h2', 'h1'],
  ])('one stays whose task has the %s', (_, serverId, from, destination) => {
    expect(kept(other('tasks', 't', { step: { serverId, from }, destination }))).toBe(1);
    expect(kept(other('tasks', 't', { step: { serverId: 'vm2', from: 'h2' }, destination: 'h3' }))).toBe(0);
  });
});
