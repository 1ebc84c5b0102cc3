import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { arbitraryOf } from '../testing/arbitrary.ts';
import { changed, recorded, recordedSnapshots } from '../testing/index.ts';
import { MAX_PROPOSED_STEPS } from './limits.ts';
import { messagesByFamily } from './messages.ts';
import { snapshotSchema } from './snapshot.ts';
import { validator } from './validator.ts';

const schemas = new Map<string, z.ZodType>([
  ...Object.values(messagesByFamily)
    .flat()
    .map((schema): [string, z.ZodType] => [schema.shape.type.value, schema]),
  ['snapshot', snapshotSchema],
]);
const validators = new Map([...schemas].map(([type, schema]) => [type, validator(schema)]));

/** Values for a changed place: near the limits of checks, of other types, and names that a prototype has. */
const others = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(null, -1, 0, 0.5, 1, 2 ** 53, 1e300, '', 'spread', '2026-13-01T00:00:00Z', '2026-02-29T00:00:00Z'),
  fc.constantFrom<unknown>(
    [],
    {},
    [null],
    Array.from({ length: MAX_PROPOSED_STEPS + 1 }, () => ({})),
    { toString: 1 },
  ),
);
const change = fc.constantFrom('set' as const, 'delete' as const, 'add' as const);

/** Judges a value by both. */
function compare(type: string, value: unknown): boolean {
  const before = structuredClone(value);
  const parsed = schemas.get(type)?.safeParse(value);
  const read = validators.get(type)?.(value);
  if (read === undefined || parsed === undefined) throw new Error(`no schema ${type}`);
  expect(read.ok, read.ok ? undefined : read.problem).toBe(parsed.success);
  if (read.ok) expect(read.value).toEqual(parsed.data);
  expect(value).toEqual(before);
  return read.ok;
}

describe('a validator accepts what its schema accepts, refuses what it refuses, and gives what it gives', () => {
  it.each([...schemas.keys()])('%s', (type) => {
    const schema = schemas.get(type) as z.ZodType;
    let [accepted, refused] = [0, 0];
    fc.assert(
      fc.property(arbitraryOf(schema), fc.nat(), change, others, (value, place, how, to) => {
        // The form that it has on the wire.
        const body = JSON.parse(JSON.stringify(value)) as object;
        expect(compare(type, body), JSON.stringify(schema.safeParse(body).error?.issues)).toBe(true);
        if (compare(type, changed(body, place, how, to))) accepted++;
        else refused++;
      }),
      { numRuns: 150 },
    );
    expect(Math.min(accepted, refused)).toBeGreaterThan(5);
  });

  it('of the recorded histories', () => {
    for (const event of recorded) expect(compare(event.type, event), event.type).toBe(true);
    for (const snapshot of recordedSnapshots) expect(compare('snapshot', snapshot)).toBe(true);
  });
});

describe('a validator', () => {
  const judged = (schema: z.ZodType, value: unknown) => validator(schema)(value);
  const both = (schema: z.ZodType, value: unknown) => {
    const read = judged(schema, value);
    const parsed = schema.safeParse(value);
    expect(read.ok).toBe(parsed.success);
    if (read.ok) expect(read.value).toEqual(parsed.data);
    return read.ok;
  };

  it('refuses a plan with more steps than a plan may have', () => {
    const steps = { type: z.array(z.int()).max(MAX_PROPOSED_STEPS) };
    expect(both(z.object(steps), { type: Array(MAX_PROPOSED_STEPS).fill(1) })).toBe(true);
    expect(both(z.object(steps), { type: Array(MAX_PROPOSED_STEPS + 1).fill(1) })).toBe(false);
  });

  it('gives the value itself where there is nothing to leave out, and a copy without the rest where there is', () => {
    const schema = z.object({ a: z.object({ b: z.number().optional() }) });
    const exact = { a: { b: 1 } };
    expect(judged(schema, exact)).toEqual({ ok: true, value: exact });
    expect((judged(schema, exact) as { value: unknown }).value).toBe(exact);
    const more = { a: { b: 1, c: 2 }, d: 3 };
    expect(judged(schema, more)).toEqual({ ok: true, value: exact });
    expect(more).toEqual({ a: { b: 1, c: 2 }, d: 3 });
  });

  it('leaves out a field that would change the prototype', () => {
    const body: unknown = JSON.parse('{"a":{"__proto__":{"admin":true},"x":"1"}}');
    const read = judged(z.object({ a: z.record(z.string(), z.json()) }), body);
    expect(read).toEqual({ ok: true, value: { a: { x: '1' } } });
    expect(Object.hasOwn((read as { value: { a: object } }).value.a, '__proto__')).toBe(false);
  });

  it('names the place of the first thing that does not fit, and what is there', () => {
    const schema = z.object({ a: z.array(z.object({ b: z.number() })), c: z.string().optional() });
    const problem = (value: unknown) => {
      const read = judged(schema, value);
      return read.ok ? null : read.problem;
    };
    expect(problem({ a: [{ b: 1 }, { b: 'two' }] })).toBe('a.1.b: must be a finite number, is a string');
    expect(problem({ a: [{}] })).toBe('a.0.b: is missing');
    expect(problem([])).toBe('body: must be an object, is an array');
    expect(problem({ a: [], c: null })).toBe('c: must be a string, is null');
  });

  it('stops at the first thing that does not fit, however many there are', () => {
    let looked = 0;
    const wrong = new Proxy(Array(100_000).fill('x'), {
      get: (target, name) => {
        looked++;
        return Reflect.get(target, name) as unknown;
      },
    });
    expect(judged(z.array(z.number()), wrong).ok).toBe(false);
    expect(looked).toBeLessThan(10);
  });

  it.each<[string, z.ZodType]>([
    ['the kind tuple', z.tuple([z.string()])],
    ['a catch-all', z.strictObject({ a: z.string() })],
    ['the kind pipe', z.string().transform((text) => text.length)],
    ['the kind default', z.number().default(1)],
    ['the check string_format email', z.email()],
    ['the check string_format starts_with', z.string().startsWith('x')],
    ['the check string_format regex', z.string().regex(/x/g)],
    ['the check multiple_of', z.number().multipleOf(2)],
    ['the check custom', z.string().refine((text) => text !== 'x')],
    ['the check overwrite', z.string().trim()],
    [
      'checks of the kind nullable',
      z
        .string()
        .nullable()
        .refine((text) => text !== 'x'),
    ],
    ['a conversion', z.coerce.number()],
    ['a field named valueOf', z.object({ valueOf: z.string().optional() })],
    ['a union of two schemas of one kind', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
    ['a record whose names are no strings', z.record(z.enum(['a']), z.string())],
  ])('refuses a schema with %s, which it does not know', (what, schema) => {
    expect(() => judged(z.object({ field: schema }), { field: 'x' })).toThrow(`does not know schemas with ${what}`);
  });
});
