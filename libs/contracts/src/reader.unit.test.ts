import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { changed, recorded } from '../testing/index.ts';
import { messagesByFamily } from './messages.ts';
import { reader } from './reader.ts';
import { snapshotSchema } from './snapshot.ts';

const schemas = new Map(
  Object.values(messagesByFamily)
    .flat()
    .map((schema) => [schema.shape.type.value as string, schema as z.ZodType]),
);

describe('a reader made from a schema', () => {
  it('gives what parsing gives, and refuses what parsing refuses', () => {
    const readers = new Map([...schemas].map(([type, schema]) => [type, reader(schema)]));
    const values = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(null, -1, 0.5, 2 ** 60, '', 'spread', '2026-13-01T00:00:00Z', [], {}),
    );
    let refused = 0;
    let read = 0;
    fc.assert(
      fc.property(
        fc.nat(),
        fc.nat(),
        fc.constantFrom('set' as const, 'delete' as const, 'add' as const),
        values,
        (which, place, change, to) => {
          const event = recorded[which % recorded.length] ?? { type: '' };
          const body = changed(event, place, change, to);
          const parsed = schemas.get(event.type)?.safeParse(body);
          const result = readers.get(event.type)?.(body);
          expect(result?.ok).toBe(parsed?.success);
          if (result?.ok === true) {
            read++;
            expect(result.value).toEqual(parsed?.data);
          } else refused++;
        },
      ),
      { numRuns: 5000 },
    );
    expect(Math.min(refused, read)).toBeGreaterThan(100);
  });

  it('gives the value itself where there is nothing to leave out', () => {
    for (const event of recorded.slice(0, 50)) {
      const schema = schemas.get(event.type);
      if (schema === undefined) continue;
      const result = reader(schema)(event);
      expect(result.ok && result.value).toBe(event);
    }
  });

  it('names the first thing that does not fit', () => {
    const read = reader(z.object({ a: z.array(z.object({ b: z.number() })), c: z.string().optional() }));
    expect(read({ a: [{ b: 1 }, { b: 'two' }] })).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/^a\.1\.b: /),
    });
    expect(read({ a: [{}] })).toMatchObject({ ok: false, problem: expect.stringMatching(/^a\.0\.b: .*undefined/) });
    expect(read([])).toMatchObject({ ok: false, problem: expect.stringMatching(/^body: .*array/) });
    expect(read({ a: [], d: 1 })).toEqual({ ok: true, value: { a: [] } });
  });

  it('refuses a schema of a kind that it does not know', () => {
    expect(() => reader(z.object({ a: z.tuple([z.string()]) }))).toThrow(/tuple/);
    expect(() => reader(z.strictObject({ a: z.string() }))).toThrow(/object/);
  });

  it('knows every schema that is read', () => {
    for (const schema of schemas.values()) expect(() => reader(schema)).not.toThrow();
    expect(() => reader(snapshotSchema)).not.toThrow();
  });
});
