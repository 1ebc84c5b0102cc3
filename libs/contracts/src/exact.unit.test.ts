import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { changed, recorded, recordedSnapshots } from '../testing/index.ts';
import { exact } from './exact.ts';
import { messagesByFamily } from './messages.ts';
import { snapshotSchema } from './snapshot.ts';

const schemas = new Map(
  Object.values(messagesByFamily)
    .flat()
    .map((schema) => [schema.shape.type.value as string, schema]),
);

describe('the quick check of an event', () => {
  it('passes every recorded event, which parsing gives back as it is', () => {
    expect(recorded.length).toBeGreaterThan(100);
    for (const event of recorded) {
      const schema = schemas.get(event.type);
      if (schema === undefined) continue;
      expect(exact(schema)(event), event.type).toBe(true);
      expect(schema.parse(event)).toEqual(event);
    }
  });

  it('passes every recorded snapshot, which it would take long to read piece by piece', () => {
    expect(recordedSnapshots.length).toBeGreaterThan(10);
    const check = exact(snapshotSchema);
    for (const snapshot of recordedSnapshots) expect(check(snapshot)).toBe(true);
  });

  it('never passes what parsing refuses or would change', () => {
    const checks = new Map([...schemas].map(([type, schema]) => [type, exact(schema)]));
    const values = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(
        null,
        -1,
        0,
        1,
        0.5,
        2 ** 60,
        '',
        'spread',
        '2026-01-01T00:00:00Z',
        '2026-13-01T00:00:00Z',
        [],
        {},
      ),
    );
    const places = fc.record({
      which: fc.nat(),
      place: fc.nat(),
      change: fc.constantFrom('set' as const, 'delete' as const, 'add' as const),
      to: values,
    });
    let refused = 0;
    let passed = 0;
    fc.assert(
      fc.property(places, ({ which, place, change, to }) => {
        const event = recorded[which % recorded.length] ?? { type: '' };
        const body = changed(event, place, change, to);
        const schema = schemas.get(event.type);
        if (schema === undefined) return;
        if (checks.get(event.type)?.(body) !== true) {
          refused++;
          return;
        }
        passed++;
        const parsed = schema.safeParse(body);
        expect(parsed.success).toBe(true);
        expect(parsed.data).toEqual(body);
      }),
      { numRuns: 5000 },
    );
    expect(Math.min(refused, passed)).toBeGreaterThan(100);
  });

  it('knows whole numbers, as a heartbeat has them that names its checkpoint', () => {
    const check = exact(z.number().int().nonnegative());
    expect([0, 1, 2 ** 53 - 1].map(check)).toEqual([true, true, true]);
    expect([0.5, -1, 2 ** 53, Number.NaN, '1', null].some(check)).toBe(false);
  });

  it('knows patterns, as the name of a policy has one', () => {
    const check = exact(z.string().regex(/^[a-z]+$/));
    expect(['cpu', 'Cpu', '', 1, null].map(check)).toEqual([true, false, false, false, false]);
  });

  it('does not pass what it does not know how to look at', () => {
    expect(exact(z.email())('x@example.org')).toBe(false);
    expect(exact(z.string().startsWith('x'))('x')).toBe(false);
    expect(exact(z.string().regex(/x/g))('x')).toBe(false);
    expect(exact(z.strictObject({ a: z.string() }))({ a: 'x' })).toBe(false);
    expect(exact(z.object({ a: z.string().transform((text) => text.length) }))({ a: 'x' })).toBe(false);
    expect(exact(z.object({ a: z.number().default(1) }))({ a: 2 })).toBe(false);
    expect(exact(z.coerce.number())(1)).toBe(false);
    expect(exact(z.number().check(z.int32() as never))(1)).toBe(false);
  });

  it('needs every field that is not optional', () => {
    const check = exact(z.object({ a: z.string(), b: z.number().optional() }));
    // In whatever order they come, and whatever came before.
    for (const value of [{ a: '', b: 1 }, { b: 1, a: '' }, { a: '' }, { b: 1, a: '' }]) expect(check(value)).toBe(true);
    expect([{ a: '', b: '' }, { b: 1 }, { b: 1, c: 1 }, { b: 1, a: '', c: 1 }].some((value) => check(value))).toBe(
      false,
    );
    expect([{ a: '' }, { a: '', b: 1 }, { b: 1 }, {}, { a: '', c: 1 }, []].map((value) => check(value))).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});
