import type { z } from 'zod';

/** The first thing that does not fit. */
export type Misfit = { readonly path: readonly (string | number)[]; readonly text: string };

/**
 * Source of a function body that takes `constants` and returns the function that judges a value: undefined where it fits and
 * has known fields only, `'open'` where it fits and may have others, else a {@link Misfit}.
 *
 * @throws RangeError for a kind or a check of schemas that is not known here
 */
export function validatorSource(schema: z.core.$ZodType): {
  readonly code: string;
  readonly constants: readonly unknown[];
} {
  const source = new Source();
  const root = source.functionOf(schema);
  return { code: `${PRELUDE}\n${source.functions.join('\n')}\nreturn ${JUDGE(root)};`, constants: source.constants };
}

const PRELUDE = `'use strict';
let open = false;
const kind = (x) => x === null ? 'null' : x === undefined ? 'missing' : Array.isArray(x) ? 'an array' : typeof x === 'object' ? 'an object' : typeof x === 'number' && !Number.isFinite(x) ? 'no finite number' : 'a ' + typeof x;
const bad = (path, wanted, x) => ({ path, text: x === undefined ? 'is missing' : 'must be ' + wanted + ', is ' + kind(x) });
const not = (path, text) => ({ path, text });
const under = (path, misfit) => ({ path: path.concat(misfit.path), text: misfit.text });
const has = Object.hasOwn;`;

const JUDGE = (root: string): string =>
  `(x) => { open = false; const misfit = ${root}(x); return misfit ?? (open ? 'open' : undefined); }`;

/** Place of a value in the body: literal names, and variables of loops as code. */
type Path = readonly string[];
type Def = z.core.$ZodTypes['_zod']['def'];

/** A value to be judged: the code that gives it, and its place. */
type Subject = { readonly x: string; readonly path: Path };

const quoted = JSON.stringify;
const unknown = (what: string): never => {
  throw new RangeError(`libs/contracts/src/validatorSource.ts does not know schemas with ${what}: add it`);
};
const defOf = (schema: z.core.$ZodType): Def => (schema as z.core.$ZodTypes)._zod.def;

/** The statements return what `place` says when `condition` does not hold. */
const unless = (condition: string, wanted: string, { x, path }: Subject): string =>
  `if (!(${condition})) return bad([${path.join(', ')}], ${quoted(wanted)}, ${x});`;
const demand = (condition: string, text: string, { path }: Subject): string =>
  `if (!(${condition})) return not([${path.join(', ')}], ${quoted(text)});`;

/** Code that tells a kind of value from the others, and what people call it. */
const GUARDS: Readonly<Record<string, { readonly test: (x: string) => string; readonly wanted: string }>> = {
  string: { test: (x) => `typeof ${x} === 'string'`, wanted: 'a string' },
  number: { test: (x) => `Number.isFinite(${x})`, wanted: 'a finite number' },
  boolean: { test: (x) => `typeof ${x} === 'boolean'`, wanted: 'a boolean' },
  null: { test: (x) => `${x} === null`, wanted: 'null' },
  array: { test: (x) => `Array.isArray(${x})`, wanted: 'an array' },
  object: { test: (x) => `typeof ${x} === 'object' && ${x} !== null && !Array.isArray(${x})`, wanted: 'an object' },
  record: { test: (x) => `typeof ${x} === 'object' && ${x} !== null && !Array.isArray(${x})`, wanted: 'an object' },
};

/** The fields of checks of all kinds. */
type Facts = {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly value?: number;
  readonly inclusive?: boolean;
  readonly format?: string;
  readonly pattern?: RegExp;
};

/** How bounds are written and said: the first words leave the bound itself out. */
const BOUNDS = {
  greater_than: { sign: '>', words: ['more than', 'at least'] },
  less_than: { sign: '<', words: ['less than', 'at most'] },
} as const;

/** Says how a text of a format must look. */
const FORMATS: Readonly<Record<string, (pattern: RegExp) => string>> = {
  regex: (pattern) => `match ${pattern}`,
  datetime: () => 'be a time in ISO 8601',
  uuid: () => 'be a UUID',
};

class Source {
  readonly functions: string[] = [];
  readonly constants: unknown[] = [];
  readonly #made = new Map<z.core.$ZodType, string>();
  #names = 0;

  #name(prefix: string): string {
    return `${prefix}${this.#names++}`;
  }

  /** A function that judges this schema; one that contains itself calls itself. */
  functionOf(schema: z.core.$ZodType): string {
    const known = this.#made.get(schema);
    if (known !== undefined) return known;
    const name = this.#name('judge');
    this.#made.set(schema, name);
    this.functions.push(`function ${name}(x) { ${this.#judge(schema, { x: 'x', path: [] })} return null; }`);
    return name;
  }

  /** Statements that return a misfit, or go on. */
  #judge(schema: z.core.$ZodType, at: Subject): string {
    const def = defOf(schema);
    if ('coerce' in def && def.coerce === true) unknown('a conversion');
    const guard = GUARDS[def.type];
    if (guard === undefined) {
      if (def.checks !== undefined && def.checks.length > 0) unknown(`checks of the kind ${def.type}`);
      return this.#wrapped(schema as z.core.$ZodTypes, at);
    }
    return `${unless(guard.test(at.x), guard.wanted, at)} ${this.#checks(def, at)} ${this.#inside(def, at)}`;
  }

  /** Kinds that hold another schema, or name their values. */
  #wrapped(schema: z.core.$ZodTypes, at: Subject): string {
    const { def } = schema._zod;
    switch (def.type) {
      case 'nullable':
        return `if (${at.x} !== null) { ${this.#judge(def.innerType, at)} }`;
      case 'optional':
        return `if (${at.x} !== undefined) { ${this.#judge(def.innerType, at)} }`;
      case 'literal':
        return this.#oneOf(def.values, at);
      case 'enum':
        return this.#oneOf(Object.values(def.entries), at);
      case 'lazy': {
        const misfit = this.#name('m');
        const judge = this.functionOf((schema as z.core.$ZodLazy)._zod.innerType);
        return `const ${misfit} = ${judge}(${at.x}); if (${misfit} !== null) return under([${at.path.join(', ')}], ${misfit});`;
      }
      case 'union':
        return this.#union(def.options, at);
      default:
        return unknown(`the kind ${def.type}`);
    }
  }

  #oneOf(values: readonly unknown[], at: Subject): string {
    if (!values.every((value) => value === null || ['string', 'number', 'boolean'].includes(typeof value)))
      unknown('a literal that is no JSON value');
    const all = values.map((value) => quoted(value)).join(', ');
    return demand(
      values.map((value) => `${at.x} === ${quoted(value)}`).join(' || '),
      `must be ${values.length > 1 ? 'one of ' : ''}${all}`,
      at,
    );
  }

  /** The options are told apart by their kinds. */
  #union(options: readonly z.core.$ZodType[], at: Subject): string {
    const guards = options.map((option) => GUARDS[defOf(option).type]);
    const wanted = guards.map((guard) => guard?.wanted ?? unknown('a union of other kinds than plain ones'));
    if (new Set(wanted).size < wanted.length) unknown('a union of two schemas of one kind');
    const branches = options.map((option, i) => `if (${guards[i]?.test(at.x)}) { ${this.#judge(option, at)} }`);
    return `${branches.join(' else ')} else return bad([${at.path.join(', ')}], ${quoted(wanted.join(' or '))}, ${at.x});`;
  }

  #inside(def: Def, at: Subject): string {
    switch (def.type) {
      case 'object':
        if (def.catchall !== undefined) unknown('a catch-all');
        return this.#object(def.shape, at);
      case 'record':
        return this.#record(def, at);
      case 'array': {
        const [i, item] = [this.#name('i'), this.#name('v')];
        const inner = this.#judge(def.element, { x: item, path: [...at.path, i] });
        return `for (let ${i} = 0; ${i} < ${at.x}.length; ${i}++) { const ${item} = ${at.x}[${i}]; ${inner} }`;
      }
      default:
        return '';
    }
  }

  /** Fields are counted: where there are more than the known ones, the schema leaves the others out. */
  #object(shape: z.core.$ZodShape, { x, path }: Subject): string {
    const [seen, key] = [this.#name('n'), this.#name('k')];
    const fields = Object.entries(shape).map(([name, schema]) => {
      // It would be taken from the prototype.
      if (name in Object.prototype) unknown(`a field named ${name}`);
      const value = this.#name('v');
      const inner = this.#judge(schema, { x: value, path: [...path, quoted(name)] });
      const counted = `if (${value} !== undefined) ${seen}++;`;
      return `const ${value} = ${x}[${quoted(name)}]; ${counted} ${inner}`;
    });
    return `let ${seen} = 0; ${fields.join(' ')} for (const ${key} in ${x}) ${seen}--; if (${seen} !== 0) open = true;`;
  }

  #record(def: z.core.$ZodRecordDef, { x, path }: Subject): string {
    if (defOf(def.keyType).type !== 'string') unknown('a record whose names are no strings');
    const [key, value] = [this.#name('k'), this.#name('v')];
    const names = this.#judge(def.keyType, { x: key, path: [...path, key] });
    const inner = this.#judge(def.valueType, { x: value, path: [...path, key] });
    // The schema leaves a field of this name out.
    return `for (const ${key} in ${x}) { if (${key} === '__proto__') { open = true; continue; } const ${value} = ${x}[${key}]; ${names} ${inner} }`;
  }

  #checks(def: Def, at: Subject): string {
    // A schema may be its own first check, such as z.int() or z.uuid().
    const own = 'check' in def ? [def as unknown as z.core.$ZodCheckDef] : [];
    return [...own, ...(def.checks ?? []).map((check) => check._zod.def)]
      .map((check) => this.#check(check, at))
      .join(' ');
  }

  #check(check: z.core.$ZodCheckDef, at: Subject): string {
    const { x } = at;
    const { minimum, maximum, value, inclusive, format, pattern } = check as Facts;
    switch (check.check) {
      case 'min_length':
        return demand(`${x}.length >= ${minimum}`, `must have a length of at least ${minimum}`, at);
      case 'max_length':
        return demand(`${x}.length <= ${maximum}`, `must have a length of at most ${maximum}`, at);
      case 'greater_than':
      case 'less_than': {
        const { sign, words } = BOUNDS[check.check];
        const [exclusively, inclusively] = words;
        const what = `must be ${inclusive ? inclusively : exclusively} ${value}`;
        return demand(`${x} ${sign}${inclusive ? '=' : ''} ${Number(value)}`, what, at);
      }
      case 'number_format':
        if (format !== 'safeint') break;
        return demand(`Number.isSafeInteger(${x})`, 'must be a whole number', at);
      case 'string_format': {
        const what = FORMATS[format ?? ''];
        // Other formats are more than their pattern. A pattern with a memory gives another answer each time.
        if (what === undefined || pattern === undefined || /[gy]/.test(pattern.flags)) break;
        const place = this.constants.push(pattern) - 1;
        return demand(`constants[${place}].test(${x})`, `must ${what(pattern)}`, at);
      }
      default:
    }
    return unknown(`the check ${check.check}${format === undefined ? '' : ` ${format}`}`);
  }
}
