/**
 * Makes one script for a browser of TypeScript modules: types stripped, and only the declarations that the entry needs. It understands
 * modules as the formatter leaves them: a statement begins at the start of a line, and what follows it is indented or closes it.
 */
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A module that cannot be put into the script; the message names it and why. */
export class CannotBundle extends Error {
  readonly code = 'KRONOS_CANNOT_BUNDLE';

  constructor(file: string, problem: string) {
    super(`${file}: ${problem}`);
    this.name = 'CannotBundle';
  }
}

type Names = readonly (readonly [name: string, as: string])[];
type Import = { readonly spec: string; readonly name: string };

/** A module in its parts. */
type Module = {
  readonly file: string;
  /** Declarations by name, without the word `export`, in the order of the file. */
  readonly statements: ReadonlyMap<string, string>;
  /** Name inside -> where it comes from. */
  readonly imports: ReadonlyMap<string, Import>;
  /** Name outside -> name inside. */
  readonly own: ReadonlyMap<string, string>;
  /** Name outside -> where it comes from. */
  readonly passed: ReadonlyMap<string, Import>;
  readonly stars: readonly string[];
};

const IMPORT = /^import\s+\{([^}]*)\}\s+from\s*["']([^"']+)["'];?/gm;
const BARE = /^import\s*["'][^"']+["'];?/gm;
const STAR = /^export\s*\*\s*from\s*["']([^"']+)["'];?/gm;
const LIST = /^export\s*\{([^}]*)\}\s*(?:from\s*["']([^"']+)["'])?;?/gm;
const EXPORTED = /^export\s+(?:async\s+)?(?:const|let|function\s*\*?|class)\s+([\w$]+)/gm;
const DECLARED = /^(?:async\s+)?(?:const|let|function\s*\*?|class)\s+([\w$]+)/;
const WORD = /[\w$]+/g;

function namesIn(list: string): Names {
  return list
    .replaceAll(/\/\/.*$/gm, '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const [name = '', as = name] = part.split(/\s+as\s+/);
      return [name, as] as const;
    });
}

/** Node says once in a process that this is experimental. A command that prints JSON must not say it. */
function withoutTypes(source: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}

function parse(file: string): Module {
  let code = lean(withoutTypes(readFileSync(file, 'utf8')));
  const imports = new Map<string, Import>();
  const own = new Map<string, string>();
  const passed = new Map<string, Import>();
  const stars: string[] = [];
  code = code.replaceAll(IMPORT, (_, list: string, spec: string) => {
    for (const [name, as] of namesIn(list)) imports.set(as, { spec, name });
    return '';
  });
  code = code.replaceAll(BARE, '');
  code = code.replaceAll(STAR, (_, spec: string) => {
    stars.push(spec);
    return '';
  });
  code = code.replaceAll(LIST, (_, list: string, spec: string | undefined) => {
    for (const [name, as] of namesIn(list))
      if (spec === undefined) own.set(as, name);
      else passed.set(as, { spec, name });
    return '';
  });
  for (const [, name = ''] of code.matchAll(EXPORTED)) own.set(name, name);
  code = code.replaceAll(/^export\s+(?=(?:async\s+)?(?:const|let|function|class)\b)/gm, '');
  const left = /^(?:import|export)\b.*$/m.exec(code);
  if (left !== null) throw new CannotBundle(file, `this statement is not understood: ${left[0]}`);
  return { file, statements: statementsOf(file, code), imports, own, passed, stars };
}

function statementsOf(file: string, code: string): Map<string, string> {
  const statements = new Map<string, string>();
  let last: string | null = null;
  for (const line of code.split('\n')) {
    const name = DECLARED.exec(line)?.[1];
    if (name !== undefined) {
      last = name;
      statements.set(name, line);
    } else if (last !== null) statements.set(last, `${statements.get(last) ?? ''}\n${line}`);
    else if (line.trim() !== '') throw new CannotBundle(file, `no declaration stands before: ${line}`);
  }
  return statements;
}

/** Comments of whole lines and spaces at the ends of lines are half of the script: stripped types leave spaces. */
const lean = (code: string): string =>
  code
    .replaceAll(/^[ \t]*\/\*\*?[\s\S]*?\*\/[ \t]*$/gm, '')
    .replaceAll(/^[ \t]*\/\/.*$/gm, '')
    .replaceAll(/[ \t]+$/gm, '')
    .replaceAll(/\n{2,}/g, '\n');

/** Where a name is declared: the file, and the name inside. */
type Place = { readonly file: string; readonly name: string };

class Modules {
  readonly #parsed = new Map<string, Module>();

  get(file: string): Module {
    let module = this.#parsed.get(file);
    if (module === undefined) {
      module = parse(file);
      this.#parsed.set(file, module);
    }
    return module;
  }

  /** The file of a specifier: a module of Kronos. */
  resolve(spec: string, from: string): string {
    if (spec.startsWith('.')) return resolve(dirname(from), spec);
    if (spec.startsWith('@kronos/')) return fileURLToPath(import.meta.resolve(spec));
    throw new CannotBundle(from, `a declaration that the script needs imports ${spec}, which is not part of the core`);
  }

  /** Where a module's export is declared; null: it has none of this name. */
  place(file: string, name: string): Place | null {
    const { own, passed, stars } = this.get(file);
    const inside = own.get(name);
    if (inside !== undefined) return { file, name: inside };
    const to = passed.get(name);
    if (to !== undefined) return this.place(this.resolve(to.spec, file), to.name);
    for (const spec of stars) {
      const found = this.place(this.resolve(spec, file), name);
      if (found !== null) return found;
    }
    return null;
  }

  /** @throws CannotBundle */
  placed(file: string, name: string): Place {
    const place = this.place(file, name);
    if (place === null) throw new CannotBundle(file, `it exports no ${name}`);
    return place;
  }
}

/** By file: the declarations that are needed, and the files that they are taken from. */
type Kept = Map<string, { readonly names: Set<string>; readonly imports: Map<string, Place> }>;

function keep(modules: Modules, wanted: readonly Place[]): Kept {
  const kept: Kept = new Map();
  const left = [...wanted];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { file, name } = next;
    const own = kept.get(file) ?? { names: new Set<string>(), imports: new Map<string, Place>() };
    kept.set(file, own);
    if (own.names.has(name)) continue;
    own.names.add(name);
    const { statements, imports } = modules.get(file);
    const text = statements.get(name);
    if (text === undefined) throw new CannotBundle(file, `it declares no ${name}`);
    for (const [word] of text.matchAll(WORD)) {
      if (statements.has(word)) left.push({ file, name: word });
      const from = imports.get(word);
      if (from === undefined || own.imports.has(word)) continue;
      const place = modules.placed(modules.resolve(from.spec, file), from.name);
      own.imports.set(word, place);
      left.push(place);
    }
  }
  return kept;
}

/** Each file after those that it takes from. @throws CannotBundle for a circle */
function ordered(kept: Kept): string[] {
  const order: string[] = [];
  const open = new Set<string>();
  const visit = (file: string): void => {
    if (order.includes(file)) return;
    if (open.has(file)) throw new CannotBundle(file, `it needs itself: ${[...open, file].join(' -> ')}`);
    open.add(file);
    for (const { file: from } of kept.get(file)?.imports.values() ?? []) if (from !== file) visit(from);
    open.delete(file);
    order.push(file);
  };
  for (const file of [...kept.keys()].sort()) visit(file);
  return order;
}

/**
 * The text of an ES module that exports what the entry file passes on, and imports nothing. The same files give the same text.
 *
 * @param root directory that the names of files in the script are relative to
 * @throws CannotBundle
 */
export function bundle(entry: string, root: string): string {
  const modules = new Modules();
  const exported = [...modules.get(entry).passed.keys()].map((name) => [name, modules.placed(entry, name)] as const);
  const kept = keep(
    modules,
    exported.map(([, place]) => place),
  );
  const key = (file: string): string => JSON.stringify(relative(root, file));
  const parts = ordered(kept).map((file) => {
    const { names, imports } = kept.get(file) ?? { names: new Set<string>(), imports: new Map<string, Place>() };
    const taken = [...imports].map(([as, { file: from, name }]) => `const ${as}=M[${key(from)}].${name};`);
    const texts = [...modules.get(file).statements].flatMap(([name, text]) => (names.has(name) ? [text] : []));
    return `M[${key(file)}]=(()=>{\n${[...taken, ...texts].join('\n')}\nreturn{${[...names].sort().join(',')}};})();`;
  });
  const given = exported.map(([name, { file, name: inside }]) => `export const ${name}=M[${key(file)}].${inside};`);
  return `const M={};\n${parts.join('\n')}\n${given.join('\n')}\n`;
}
