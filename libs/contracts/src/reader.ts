import type { z } from 'zod';
import { exact } from './exact.ts';

export type ReadValue<T> =
  | { readonly ok: true; readonly value: T }
  /** The first thing that does not fit, with its path: `data.tasks: Invalid input: expected number, received string`. */
  | { readonly ok: false; readonly problem: string };

/** A mismatch. Callers prepend their names to the path, innermost first. */
class Misfit {
  readonly path: (string | number)[] = [];
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  under(name: string | number): Misfit {
    this.path.push(name);
    return this;
  }
}

type Read = (value: unknown) => unknown;

/**
 * A reader made from a schema. It gives the value without the fields that the schema does not know, and stops at the first
 * thing that does not fit: its time is bounded by the size of the value. Parsing with the schema itself collects every
 * problem, which takes a minute for a message of 200 KB that has nothing right.
 *
 * @throws RangeError for a schema of a kind that is not known here: add it
 */
export function reader<T extends z.ZodType>(schema: T): (value: unknown) => ReadValue<z.infer<T>> {
  const read = readOf(schema);
  const isExact = exact(schema);
  return (value) => {
    // Most values are as they were written by this version: reading them piece by piece takes seven times as long.
    if (isExact(value)) return { ok: true, value: value as z.infer<T> };
    const result = read(value);
    if (!(result instanceof Misfit)) return { ok: true, value: result as z.infer<T> };
    return { ok: false, problem: `${result.path.reverse().join('.') || 'body'}: ${result.text}` };
  };
}

function readOf(schema: z.core.$ZodType): Read {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case 'object':
      if (def.catchall !== undefined) break;
      return object(def.shape);
    case 'record':
      return record(readOf(def.keyType), readOf(def.valueType));
    case 'array':
      return array(readOf(def.element), asked(schema));
    case 'nullable': {
      const inner = readOf(def.innerType);
      return (value) => (value === null ? null : inner(value));
    }
    case 'optional': {
      const inner = readOf(def.innerType);
      return (value) => (value === undefined ? undefined : inner(value));
    }
    case 'union':
      return union(def.options.map(readOf));
    case 'lazy':
      return lazy(def.getter);
    case 'literal':
    case 'enum':
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return leaf(schema);
    default:
  }
  throw new RangeError(`libs/contracts/src/reader.ts does not know schemas of the kind ${def.type}: add it`);
}

const received = (value: unknown): string => {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A value without parts: the schema itself is asked where the quick check does not pass. */
function leaf(schema: z.core.$ZodType): Read {
  const isExact = exact(schema);
  const ask = asked(schema);
  return (value) => (isExact(value) ? value : ask(value));
}

function asked(schema: z.core.$ZodType): Read {
  const { safeParse } = schema as z.ZodType;
  return (value) => {
    const parsed = safeParse(value);
    return parsed.success ? parsed.data : new Misfit(parsed.error.issues[0]?.message ?? 'does not fit');
  };
}

function object(shape: z.core.$ZodShape): Read {
  const fields = new Map(Object.entries(shape).map(([name, schema]) => [name, readOf(schema)]));
  const needed = Object.entries(shape).flatMap(([name, schema]) => (schema._zod.optin === 'optional' ? [] : [name]));
  return (value) => {
    if (!isObject(value)) return new Misfit(`Invalid input: expected object, received ${received(value)}`);
    for (const name of needed)
      if (!Object.hasOwn(value, name)) {
        const missing = fields.get(name)?.(undefined);
        if (missing instanceof Misfit) return missing.under(name);
      }
    let changed = false;
    const kept: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const read = fields.get(name);
      if (read === undefined) {
        changed = true;
        continue;
      }
      const field = read(value[name]);
      if (field instanceof Misfit) return field.under(name);
      changed ||= field !== value[name];
      kept[name] = field;
    }
    return changed ? kept : value;
  };
}

function record(key: Read, inner: Read): Read {
  return (value) => {
    if (!isObject(value)) return new Misfit(`Invalid input: expected record, received ${received(value)}`);
    let changed = false;
    const kept: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      if (name === '__proto__') {
        changed = true;
        continue;
      }
      const wrong = key(name);
      if (wrong instanceof Misfit) return wrong.under(name);
      const field = inner(value[name]);
      if (field instanceof Misfit) return field.under(name);
      changed ||= field !== value[name];
      kept[name] = field;
    }
    return changed ? kept : value;
  };
}

/** @param whole judges the array by itself: with its elements left out, its checks (a least length) fail as they must */
function array(element: Read, whole: Read): Read {
  return (value) => {
    if (!Array.isArray(value)) return new Misfit(`Invalid input: expected array, received ${received(value)}`);
    // The only check of arrays in use is that they are not empty.
    if (value.length === 0) {
      const judged = whole(value);
      return judged instanceof Misfit ? judged : value;
    }
    let copy: unknown[] | null = null;
    for (let i = 0; i < value.length; i++) {
      const read = element(value[i]);
      if (read instanceof Misfit) return read.under(i);
      if (read !== value[i]) copy ??= value.slice();
      if (copy !== null) copy[i] = read;
    }
    return copy ?? value;
  };
}

/** The first option that fits. Options are told apart by their outermost kind, so at most one of them looks inside. */
function union(options: readonly Read[]): Read {
  return (value) => {
    let first: Misfit | null = null;
    for (const option of options) {
      const read = option(value);
      if (!(read instanceof Misfit)) return read;
      // A problem deep inside says more than one about the kind of the whole value.
      if (first === null || read.path.length > first.path.length) first = read;
    }
    return first ?? new Misfit('Invalid input');
  };
}

function lazy(getter: () => z.core.$ZodType): Read {
  let made: Read | null = null;
  return (value) => {
    made ??= readOf(getter());
    return made(value);
  };
}
