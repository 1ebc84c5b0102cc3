import fc from 'fast-check';
import type { z } from 'zod';

/** Beyond a limit that does not belong to the range. */
const SLIGHTLY = 1e-3;

type Limits = {
  minimum: number;
  maximum: number;
  pattern: RegExp | null;
  format: string | null;
};

function limitsOf(def: z.core.$ZodTypes['_zod']['def']): Limits {
  const limits: Limits = {
    minimum: Number.NEGATIVE_INFINITY,
    maximum: Number.POSITIVE_INFINITY,
    pattern: null,
    format: null,
  };
  const own = 'check' in def ? [def as unknown as z.core.$ZodCheckDef] : [];
  for (const check of [...own, ...(def.checks ?? []).map((one) => one._zod.def)]) {
    const { minimum, maximum, value, inclusive, format, pattern } = check as unknown as Record<string, unknown>;
    if (typeof minimum === 'number' || check.check === 'greater_than')
      limits.minimum = Number(minimum ?? value) + (inclusive === false ? SLIGHTLY : 0);
    if (typeof maximum === 'number' || check.check === 'less_than')
      limits.maximum = Number(maximum ?? value) - (inclusive === false ? SLIGHTLY : 0);
    if (pattern instanceof RegExp) limits.pattern = pattern;
    if (typeof format === 'string') limits.format = format;
  }
  return limits;
}

const names = fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('toString', 'constructor', 'a.b', 'a/b', 'ü'));

function stringOf({ format, pattern, minimum, maximum }: Limits): fc.Arbitrary<string> {
  if (format === 'datetime')
    return fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString());
  if (format === 'uuid') return fc.uuid({ version: 4 });
  if (pattern !== null) return fc.stringMatching(pattern);
  return fc.string({ minLength: Math.max(0, minimum), maxLength: Math.min(maximum, 12) });
}

function numberOf({ format, minimum, maximum }: Limits): fc.Arbitrary<number> {
  const [min, max] = [Math.max(minimum, -1e6), Math.min(maximum, 1e6)];
  const whole = fc.integer({ min: Math.ceil(min), max: Math.floor(max) });
  return format === 'safeint' ? whole : fc.oneof(whole, fc.double({ min, max, noNaN: true }));
}

/** Values that a schema accepts, all optional fields with and without. @throws for a kind that is not known here */
export function arbitraryOf(schema: z.core.$ZodType): fc.Arbitrary<unknown> {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const limits = limitsOf(def);
  switch (def.type) {
    case 'object': {
      const shape = Object.entries(def.shape);
      const requiredKeys = shape.flatMap(([name, one]) => (one._zod.optin === 'optional' ? [] : [name]));
      return fc.record(Object.fromEntries(shape.map(([name, one]) => [name, arbitraryOf(one)])), {
        requiredKeys: requiredKeys as never,
        noNullPrototype: true,
      });
    }
    case 'record':
      return fc.dictionary(names, arbitraryOf(def.valueType), { maxKeys: 3, noNullPrototype: true });
    case 'array':
      return fc.array(arbitraryOf(def.element), {
        minLength: Math.max(0, limits.minimum),
        maxLength: Math.min(limits.maximum, Math.max(3, limits.minimum)),
      });
    case 'nullable':
      return fc.option(arbitraryOf(def.innerType));
    case 'optional':
      return arbitraryOf(def.innerType);
    case 'literal':
      return fc.constantFrom(...def.values);
    case 'enum':
      return fc.constantFrom(...Object.values(def.entries));
    case 'string':
      return stringOf(limits);
    case 'number':
      return numberOf(limits);
    case 'boolean':
      return fc.boolean();
    case 'lazy':
      return fc.jsonValue({ maxDepth: 3 });
    default:
      throw new RangeError(`libs/contracts/testing/arbitrary.ts does not know schemas of the kind ${def.type}: add it`);
  }
}
