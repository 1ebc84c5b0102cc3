import { describe, expect, it } from 'vitest';
import { type Caps, capReached, countSlots, type SlotUse } from './caps.ts';

const use = (n: number, more: Partial<SlotUse> = {}): SlotUse => ({
  serverId: `vm${n}`,
  from: `from${n}`,
  destination: `to${n}`,
  groups: [],
  ...more,
});
const free: Caps = {
  maxConcurrentMigrations: 9,
  maxOutboundPerHost: 9,
  maxInboundPerHost: 9,
  maxConcurrentPerGroup: 9,
};

describe('slots', () => {
  it('are counted as a whole, by source, by destination, by group and by VM', () => {
    const held = countSlots([
      use(1, { from: 'h1', groups: ['g'] }),
      use(2, { from: 'h1', destination: 'h9', groups: ['g', 'f'] }),
    ]);
    expect(held.total).toBe(2);
    expect([...held.bySource]).toEqual([['h1', 2]]);
    expect([...held.byDestination]).toEqual([
      ['to1', 1],
      ['h9', 1],
    ]);
    expect([...held.byGroup]).toEqual([
      ['g', 2],
      ['f', 1],
    ]);
    expect([...held.servers]).toEqual(['vm1', 'vm2']);
  });
});

describe('the concurrency limits', () => {
  const code = (held: SlotUse[], move: SlotUse, caps: Partial<Caps> = {}) =>
    capReached(countSlots(held), move, { ...free, ...caps })?.code ?? null;

  it('acts: each limit that is reached holds the move back, and no other', () => {
    expect(code([use(1)], use(1, { from: 'other', destination: 'another' }))).toBe('server-moving');
    expect(code([use(1)], use(2), { maxConcurrentMigrations: 1 })).toBe('max_concurrent_migrations');
    expect(code([use(1, { from: 'h' })], use(2, { from: 'h' }), { maxOutboundPerHost: 1 })).toBe(
      'max_outbound_per_host',
    );
    expect(code([use(1, { destination: 'h' })], use(2, { destination: 'h' }), { maxInboundPerHost: 1 })).toBe(
      'max_inbound_per_host',
    );
    expect(code([use(1, { groups: ['g'] })], use(2, { groups: ['f', 'g'] }), { maxConcurrentPerGroup: 1 })).toBe(
      'max_concurrent_per_group',
    );
  });

  it('refuses: the last free slot is given, the next one is not', () => {
    const caps = { maxConcurrentMigrations: 2 };
    expect(code([use(1)], use(2), caps)).toBeNull();
    expect(code([use(1), use(2)], use(3), caps)).toBe('max_concurrent_migrations');
  });

  it('does nothing: a move elsewhere is not held back', () => {
    const one = { maxOutboundPerHost: 1, maxInboundPerHost: 1, maxConcurrentPerGroup: 1 };
    expect(code([use(1, { groups: ['g'] })], use(2, { groups: ['f'] }), one)).toBeNull();
    // Being a source takes no slot of a destination.
    expect(code([use(1, { from: 'h' })], use(2, { destination: 'h' }), one)).toBeNull();
    expect(code([], use(1))).toBeNull();
  });

  it('are named with figures, one move as one', () => {
    const text = (held: SlotUse[], caps: Partial<Caps>) =>
      capReached(countSlots(held), use(9, { from: 'h1', destination: 'h2', groups: ['g'] }), { ...free, ...caps })
        ?.text;
    const one = [use(1, { from: 'h1', destination: 'h2', groups: ['g'] })];
    const two = [...one, use(2, { from: 'h1', destination: 'h2', groups: ['g'] })];
    expect(text(one, { maxConcurrentMigrations: 1 })).toBe('1 move runs in this aggregate');
    expect(text(two, { maxConcurrentMigrations: 2 })).toBe('2 moves run in this aggregate');
    expect(text(one, { maxOutboundPerHost: 1 })).toBe('1 move leaves h1');
    expect(text(one, { maxInboundPerHost: 1 })).toBe('1 move reaches h2');
    expect(text(one, { maxConcurrentPerGroup: 1 })).toBe('1 member of server group g moves');
  });
});
