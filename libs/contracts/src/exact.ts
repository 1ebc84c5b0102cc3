import type { z } from 'zod';

/** True only when the schema accepts the value and returns it unchanged. False means unknown. */
export type Exact = (value: unknown) => boolean;

const never: Exact = () => false;

/**
 * A quick check made from a schema: a value that passes is valid and has no field that the schema does not know, so that
 * parsing it would only copy it. A reader asks it first, and looks closer only where a value does not pass.
 * Kinds and checks of schemas that are not known here never pass.
 */
export function exact(schema: z.core.$ZodType): Exact {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const checked = checks(def.checks ?? []);
  if (checked === null) return never;
  const kind = kindOf(def);
  return checked.length === 0 ? kind : (value) => kind(value) && checked.every((check) => check(value));
}

function kindOf(def: z.core.$ZodTypes['_zod']['def']): Exact {
  switch (def.type) {
    case 'object':
      return def.catchall === undefined ? object(def.shape) : never;
    case 'record': {
      const [key, value] = [exact(def.keyType), exact(def.valueType)];
      return (given) => {
        if (!isPlain(given)) return false;
        for (const name in given) if (name === '__proto__' || !key(name) || !value(given[name])) return false;
        return true;
      };
    }
    case 'array': {
      const element = exact(def.element);
      return (value) => {
        if (!Array.isArray(value)) return false;
        for (let i = 0; i < value.length; i++) if (!element(value[i])) return false;
        return true;
      };
    }
    case 'nullable': {
      const inner = exact(def.innerType);
      return (value) => value === null || inner(value);
    }
    case 'optional': {
      const inner = exact(def.innerType);
      return (value) => value === undefined || inner(value);
    }
    case 'union': {
      const options = def.options.map(exact);
      return (value) => options.some((option) => option(value));
    }
    case 'literal': {
      const [only, ...others] = def.values;
      if (others.length === 0) return (value) => value === only;
      const values = new Set<unknown>(def.values);
      return (value) => values.has(value);
    }
    case 'enum': {
      const values = new Set<unknown>(Object.values(def.entries));
      return (value) => values.has(value);
    }
    case 'string':
      return string(def);
    case 'number':
      return number(def);
    case 'boolean':
      return (value) => typeof value === 'boolean';
    case 'null':
      return (value) => value === null;
    case 'lazy':
      return lazily(def.getter);
    default:
      return never;
  }
}

type Plain = Readonly<Record<string, unknown>>;

function isPlain(value: unknown): value is Plain {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype;
}

/**
 * Every field of the value is known and passes, and none that is needed is missing. Values of one kind mostly come with
 * their fields in the same order, so the order of the last one is tried first: that needs no look-up by name.
 */
function object(shape: z.core.$ZodShape): Exact {
  const fields = new Map(Object.entries(shape).map(([name, schema]) => [name, exact(schema)]));
  const needed = Object.entries(shape).flatMap(([name, schema]) => (schema._zod.optin === 'optional' ? [] : [name]));
  let names: readonly string[] = [];
  let tests: readonly Exact[] = [];
  const byName = (value: Plain): boolean => {
    for (const name in value) if (fields.get(name)?.(value[name]) !== true) return false;
    if (!needed.every((name) => Object.hasOwn(value, name))) return false;
    names = Object.keys(value);
    tests = names.map((name) => fields.get(name) ?? never);
    return true;
  };
  return (value) => {
    if (!isPlain(value)) return false;
    let at = 0;
    for (const name in value) {
      if (name !== names[at]) return byName(value);
      if (tests[at]?.(value[name]) !== true) return false;
      at++;
    }
    return (at > 0 && at === names.length) || byName(value);
  };
}

/** Formats are patterns; one that is more than its pattern is not known here. */
function string(def: z.core.$ZodStringDef): Exact {
  if ('coerce' in def && def.coerce === true) return never;
  if (!('format' in def)) return (value) => typeof value === 'string';
  const { pattern } = def as { readonly pattern?: unknown };
  if (def.format !== 'datetime' || !(pattern instanceof RegExp)) return never;
  return (value) => typeof value === 'string' && pattern.test(value);
}

function number(def: z.core.$ZodNumberDef): Exact {
  if ('coerce' in def && def.coerce === true) return never;
  if (!('format' in def)) return (value) => typeof value === 'number' && Number.isFinite(value);
  return def.format === 'safeint' ? Number.isSafeInteger : never;
}

/** Made when it is first needed: such a schema contains itself. */
function lazily(getter: () => z.core.$ZodType): Exact {
  let made: Exact | null = null;
  return (value) => {
    made ??= exact(getter());
    return made(value);
  };
}

/** Null: one of them is not known here. */
function checks(wanted: readonly z.core.$ZodCheck[]): Exact[] | null {
  const made: Exact[] = [];
  for (const { _zod } of wanted as readonly z.core.$ZodChecks[]) {
    const { def } = _zod;
    switch (def.check) {
      case 'number_format':
        if (def.format !== 'safeint') return null;
        made.push(Number.isSafeInteger);
        break;
      case 'string_format': {
        const { format, pattern } = def;
        // A pattern that remembers where it matched last gives another answer each time.
        if (format !== 'regex' || pattern === undefined || pattern.global || pattern.sticky) return null;
        made.push((value) => pattern.test(value as string));
        break;
      }
      case 'min_length':
        made.push((value) => (value as { readonly length: number }).length >= def.minimum);
        break;
      case 'greater_than':
        made.push((value) => (def.inclusive ? Number(value) >= Number(def.value) : Number(value) > Number(def.value)));
        break;
      case 'less_than':
        made.push((value) => (def.inclusive ? Number(value) <= Number(def.value) : Number(value) < Number(def.value)));
        break;
      default:
        return null;
    }
  }
  return made;
}
