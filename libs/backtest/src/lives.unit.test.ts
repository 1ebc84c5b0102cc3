import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEED_MS, type Deed, FLAVORS, type Lived, live } from '../testing/forward.ts';
import { flavorNumbers, rebuildLife, segmentAt } from './lives.ts';

const bornMs = Date.parse('2026-03-01T00:00:00Z');
const hosts = fc.integer({ min: 0, max: 3 });
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({
    deed: fc.constant('move' as const),
    to: hosts,
    end: fc.constantFrom('completed' as const, 'failed' as const, 'error' as const, 'errorAfterSwitch' as const),
  }),
  fc.record({ deed: fc.constant('resize' as const), to: hosts, flavor: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ deed: fc.constantFrom('stop' as const, 'start' as const, 'pause' as const, 'unpause' as const) }),
  fc.constant({ deed: 'wait' as const }),
);
const numbers = new Map(FLAVORS.map((flavor, i) => [i, flavor]));
const times = ({ moments, readMs }: Lived): number[] => [
  ...moments,
  ...moments.map((ms) => ms + 1),
  ...moments.map((ms) => ms - 1),
  readMs - 1,
];

describe('a life rebuilt backwards', () => {
  it('is the life that was lived, at every moment', () => {
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 12 }), (deeds) => {
        const lived = live('a', bornMs, deeds, false);
        const life = rebuildLife(lived, numbers);
        for (const atMs of times(lived)) {
          const truth = lived.at(atMs);
          const segment = segmentAt(life, atMs);
          if (truth === null) expect(segment).toBeNull();
          else
            expect({ ...segment, fromMs: 0 }).toMatchObject({
              host: truth.host,
              status: truth.status,
              flavor: truth.flavor,
            });
          const moving = life.underWay.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs);
          expect(moving).toBe(truth?.moving ?? false);
        }
      }),
    );
  });

  it('is the life that was lived when the server was deleted and its migrations with it', () => {
    // A resize shows its flavors in the row alone, which is gone: the flavor before one is not known, and says so.
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 12 }), (deeds) => {
        const lived = live('a', bornMs, deeds, true);
        const life = rebuildLife(lived, numbers);
        for (const atMs of times(lived)) {
          const truth = lived.at(atMs);
          const segment = segmentAt(life, atMs);
          if (truth === null) expect(segment).toBeNull();
          else {
            expect(segment).toMatchObject({ host: truth.host, status: truth.status });
            if (segment?.unknown.flavor === false) expect(segment.flavor).toEqual(truth.flavor);
          }
        }
      }),
    );
  });

  it('never shows a server on a host at a time that only a lost row could tell of', () => {
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 12 }), fc.nat(11), (deeds, lost) => {
        const lived = live('a', bornMs, deeds, false);
        const kept = lived.migrations.filter((_, i) => i !== lost);
        const life = rebuildLife({ ...lived, migrations: kept }, numbers);
        // From the last kept arrival on, where the hosts contradict each other nothing is claimed.
        for (const { fromMs, host, unknown } of life.segments) {
          expect(unknown.host ? host : null).toBeNull();
          const arrival = kept.find(({ updatedAt }) => Date.parse(updatedAt ?? '') === fromMs);
          if (arrival !== undefined && !unknown.host && arrival.status === 'completed')
            expect(host).toBe(arrival.destCompute);
        }
      }),
    );
  });

  it('does not know where a server was between an arrival and a host that no row explains', () => {
    const lived = live(
      'a',
      bornMs,
      [
        { deed: 'move', to: 1, end: 'completed' },
        { deed: 'move', to: 2, end: 'completed' },
      ],
      false,
    );
    const life = rebuildLife({ ...lived, migrations: lived.migrations.slice(0, 1) }, numbers);
    expect(segmentAt(life, lived.readMs)?.unknown.host).toBe(true);
    expect(segmentAt(life, bornMs + 1)).toMatchObject({ host: 'host-0', unknown: { host: false } });
  });

  it('does not know the flavor before a resize whose numbers nothing reveals', () => {
    const lived = live('a', bornMs, [{ deed: 'resize', to: 1, flavor: 2 }], false);
    const life = rebuildLife(lived, new Map());
    expect(segmentAt(life, bornMs + 1)?.unknown.flavor).toBe(true);
    expect(segmentAt(life, lived.readMs)).toMatchObject({ flavor: { name: 'large' }, unknown: { flavor: false } });
  });

  it('learns the number of a flavor from a server that has it', () => {
    const other = live('b', bornMs, [{ deed: 'move', to: 1, end: 'completed' }], false);
    const lived = live('a', bornMs, [{ deed: 'resize', to: 1, flavor: 2 }], false);
    const life = rebuildLife(lived, flavorNumbers([other, lived]));
    expect(segmentAt(life, bornMs + 1)).toMatchObject({ flavor: { name: 'small' }, unknown: { flavor: false } });
  });

  it('names the moves that took a server elsewhere, and no other', () => {
    const lived = live(
      'a',
      bornMs,
      [
        { deed: 'move', to: 1, end: 'completed' },
        { deed: 'move', to: 2, end: 'failed' },
        { deed: 'move', to: 2, end: 'error' },
        { deed: 'move', to: 3, end: 'errorAfterSwitch' },
      ],
      false,
    );
    const { moves } = rebuildLife(lived, numbers);
    expect(moves.map(({ from, to }) => [from, to])).toEqual([
      ['host-0', 'host-1'],
      ['host-1', 'host-3'],
    ]);
    expect(moves[0]).toMatchObject({ type: 'live-migration', ramMb: 2048, startedMs: bornMs + DEED_MS });
  });
});
