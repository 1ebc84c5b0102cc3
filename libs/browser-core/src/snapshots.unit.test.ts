import { gzipSync } from 'node:zlib';
import { score } from '@kronos/placement';
import { operate } from '@kronos/replay/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Patch, patched, patchOf } from './patch.ts';
import { type SnapshotBody, snapshotPacker, unpackSnapshots } from './snapshots.ts';

const json = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const packSnapshots = (list: readonly SnapshotBody[]) => list.map(snapshotPacker());
const text = (value: unknown): string => JSON.stringify(value);

describe('a patch', () => {
  const load = fc.oneof(
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.integer({ min: -20_000, max: 20_000 }).map((n) => n / 10_000),
    fc.constantFrom(0, 1, 1e-7, 1e21, 0.1 + 0.2, 123_456_789.123_456),
  );
  const loads = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), load);
  const anything = fc.oneof(loads, fc.array(load), fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>);

  it('gives back the value after it, to the last digit', () => {
    fc.assert(
      fc.property(anything, anything, (one, other) => {
        const [before, after] = [json(one), json(other)];
        const patch = json<Patch | null>(patchOf(before, after));
        expect(text(patched(before, patch))).toBe(text(after));
      }),
      { numRuns: 400 },
    );
  });

  it('keeps fields that are named as what every object has', () => {
    const before: unknown = JSON.parse('{"constructor":[1],"__proto__":{"toString":1},"c":"x"}');
    const after: unknown = JSON.parse('{"constructor":[1],"__proto__":{"toString":1},"c":"y"}');
    expect(text(patched(before, json(patchOf(before, after))))).toBe(text(after));
  });

  it('of loads with few decimal places is their differences, most of one letter', () => {
    const before = { a: 0.1, b: 0.345, c: 0.5, d: 1, e: 0 };
    const after = { a: 0.1004, b: 0.3449, c: 0.5, d: 0.0001, e: 0 };
    const patch = patchOf(before, after);
    expect(patch).toEqual(['n', 4, expect.stringMatching(/^.{8}$/)]);
    expect(text(patched(before, patch))).toBe(text(after));
  });
});

describe('packed snapshots', () => {
  const { snapshots } = operate({
    seed: 4,
    cycles: 3,
    aggregates: ['gpu'],
    hosts: 40,
    vmsPerHost: 15,
    searchWorkLimit: 500,
  });
  const bodies: SnapshotBody[] = json(snapshots).map((body) => ({ id: body.id, aggregate: body.aggregate, body }));
  let seed = 7;
  const uniform = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return seed / 2 ** 32;
  };
  /** Every load of every snapshot with noise of 2 %. */
  const noisy = (places: number | null, list = bodies): SnapshotBody[] =>
    json(list).map(({ body, ...one }) => {
      const { hostReadings, vmReadings } = body as (typeof snapshots)[number];
      for (const { values } of [...hostReadings, ...vmReadings])
        for (const [key, value] of Object.entries(values)) {
          const spread = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
          const load = value * (1 + 0.02 * spread);
          values[key] = places === null ? load : Math.round(load * 10 ** places) / 10 ** places;
        }
      return { ...one, body };
    });
  /** Bytes that each further snapshot takes in a file. */
  const bytesOf = (list: readonly SnapshotBody[]): number => {
    const size = (many: readonly SnapshotBody[]) => (gzipSync(text(packSnapshots(many)), { level: 9 }).length * 4) / 3;
    return (size(list) - size(list.slice(0, 1))) / (list.length - 1);
  };

  it('are the same when they are unpacked, whatever their loads', () => {
    for (const list of [bodies, noisy(null), noisy(4)])
      expect(text(unpackSnapshots(json(packSnapshots(list))))).toBe(text(list));
  });

  it('leave out scores that follow from the rest, and keep those that do not', () => {
    const scored = json(bodies).map((one) => {
      const body = one.body as (typeof snapshots)[number];
      return { ...one, body: { ...body, scores: score({ ...body, options: { balance: true } }) } };
    });
    const packed = packSnapshots(scored);
    expect(packed.map(({ balance }) => balance)).toEqual(scored.map(() => true));
    expect(text(packed)).not.toContain('normalised');
    expect(text(unpackSnapshots(json(packed)))).toBe(text(scored));
    const [first, ...others] = scored;
    const other = { ...first, body: { ...first?.body, scores: { policies: [], combined: 0.25 } } } as SnapshotBody;
    expect(text(unpackSnapshots(json(packSnapshots([other, ...others]))))).toBe(text([other, ...others]));
  });

  it('of 40 hosts and 600 VMs with noisy loads take 1.4 KB each where the queries round to 4 places, and all the digits otherwise', () => {
    const still = Array.from({ length: 30 }, () => bodies[0] as SnapshotBody);
    expect(bytesOf(noisy(4, still))).toBeLessThan(1400);
    // 1,280 loads of 52 random bits are 11 KB in base64, however they are packed.
    expect(bytesOf(noisy(null, still))).toBeGreaterThan((1280 * 52) / 6);
    expect(bytesOf(noisy(null, still))).toBeLessThan(1280 * 12.5);
  });
});
