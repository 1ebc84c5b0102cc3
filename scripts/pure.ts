/**
 * Holds code to its claim: a comment that says `Pure.` is about its file, or about the declaration that follows. Pure code, and all that
 * it reaches through imports, has no clock, no chance, no process, no timers, no network and no files; packages that are pure as a whole
 * are claims, too.
 *
 *   node scripts/run.mjs node scripts/pure.ts    names each claim that does not hold, and fails
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseSync } from 'oxc-parser';

/** Packages of which every file is pure. */
const PURE_PACKAGES = ['libs/facts', 'libs/rules', 'libs/placement', 'libs/projections', 'libs/inventory'];

/** Impure code that pure code may reach: `file: what`, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'libs/cycle/src/digest.ts: node:crypto': 'Digests: the same text, the same digest.',
  'libs/cli/src/terminal.ts: node:util': 'styleText puts colours around a text; whether, is an argument.',
};

/** npm packages that do nothing but compute. */
const COMPUTING: readonly string[] = ['zod'];

const IMPURE = new Set([
  'process',
  'console',
  'performance',
  'crypto',
  'fetch',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'globalThis',
  'XMLHttpRequest',
  'WebSocket',
]);

/** The text of a file by its path in the repository; null: there is none. */
export type Read = (path: string) => string | null;

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** The export that an imported name stands for; `*`: everything of that module. */
type Target = { readonly from: string; readonly name: string };

interface Module {
  readonly path: string;
  readonly text: string;
  readonly statements: readonly Node[];
  readonly comments: readonly { readonly start: number; readonly end: number; readonly value: string }[];
  /** By local name. */
  readonly imports: ReadonlyMap<string, Target>;
  /** By exported name: a name of this module, or of another. */
  readonly exports: ReadonlyMap<string, string | Target>;
  readonly stars: readonly string[];
  /** By local name. */
  readonly declared: ReadonlyMap<string, Node>;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';

const nodesIn = (value: unknown): Node[] =>
  Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [];

const childrenOf = (node: Node): Node[] => Object.values(node).flatMap(nodesIn);

const nameOf = (node: unknown): string => {
  const { name, value } = node as { name?: string; value?: string };
  return name ?? value ?? '';
};

/** The names that a pattern binds. */
function bound(pattern: Node): string[] {
  if (pattern.type === 'Identifier') return [nameOf(pattern)];
  if (pattern.type === 'Property') return nodesIn(pattern.value).flatMap(bound);
  if (pattern.type === 'AssignmentPattern') return nodesIn(pattern.left).flatMap(bound);
  return childrenOf(pattern)
    .filter(({ type }) => !type.startsWith('TS'))
    .flatMap(bound);
}

/** The names that a top-level statement declares. */
function declaredBy(statement: Node): string[] {
  if (statement.type === 'VariableDeclaration')
    return nodesIn(statement.declarations).flatMap(({ id }) => nodesIn(id).flatMap(bound));
  return /^(Function|Class)Declaration$/.test(statement.type) ? nodesIn(statement.id).map(nameOf) : [];
}

const isTyping = (one: Node): boolean => one.importKind === 'type' || one.exportKind === 'type';
const valuesOf = (specifiers: unknown): Node[] => nodesIn(specifiers).filter((one) => !isTyping(one));

const importedName = (one: Node): string =>
  one.type === 'ImportSpecifier' ? nameOf(one.imported) : one.type === 'ImportDefaultSpecifier' ? 'default' : '*';

function parse(path: string, text: string): Module {
  const { program, comments } = parseSync(path, text);
  const statements = program.body as unknown as Node[];
  const imports = new Map<string, Target>();
  const exports = new Map<string, string | Target>();
  const stars: string[] = [];
  const declared = new Map<string, Node>();
  const declare = (statement: Node): string[] => {
    const names = declaredBy(statement);
    for (const name of names) declared.set(name, statement);
    return names;
  };
  const exportNamed = (statement: Node, from: string | null): void => {
    for (const one of valuesOf(statement.specifiers))
      exports.set(nameOf(one.exported), from === null ? nameOf(one.local) : { from, name: nameOf(one.local) });
    for (const one of nodesIn(statement.declaration)) for (const name of declare(one)) exports.set(name, name);
  };
  for (const statement of statements) {
    if (isTyping(statement) || statement.type.startsWith('TS')) continue;
    const from = isNode(statement.source) ? nameOf(statement.source) : null;
    if (statement.type === 'ImportDeclaration')
      for (const one of valuesOf(statement.specifiers))
        imports.set(nameOf(one.local), { from: from ?? '', name: importedName(one) });
    else if (statement.type === 'ExportAllDeclaration') stars.push(from ?? '');
    else if (statement.type === 'ExportNamedDeclaration') exportNamed(statement, from);
    else if (statement.type === 'ExportDefaultDeclaration') {
      declared.set('default', statement);
      exports.set('default', 'default');
    } else declare(statement);
  }
  return { path, text, statements, comments, imports, exports, stars, declared };
}

interface Uses {
  /** Names that the code refers to and does not bind itself. */
  readonly names: ReadonlySet<string>;
  /** Its impure calls, with their places. */
  readonly impure: readonly { readonly what: string; readonly at: number }[];
}

const TYPED = /^TS(As|Satisfies|NonNull|Instantiation)/;

const isMember = (node: Node, object: string, property: string): boolean =>
  node.type === 'MemberExpression' && nameOf(node.object) === object && nameOf(node.property) === property;

/** The impure call that a node itself is; null: none. */
function impurityOf(node: Node): string | null {
  if (isMember(node, 'Date', 'now')) return 'Date.now';
  if (isMember(node, 'Math', 'random')) return 'Math.random';
  if (node.type === 'ImportExpression') return 'import()';
  const isCall = node.type === 'NewExpression' || node.type === 'CallExpression';
  return isCall && nameOf(node.callee) === 'Date' && nodesIn(node.arguments).length === 0 ? 'new Date()' : null;
}

/** The names that a node binds inside itself. */
function boundBy({ type, id, params, param }: Node): string[] {
  if (type === 'VariableDeclarator') return nodesIn(id).flatMap(bound);
  if (type === 'CatchClause') return nodesIn(param).flatMap(bound);
  if (/Function/.test(type)) return [...nodesIn(id).map(nameOf), ...nodesIn(params).flatMap(bound)];
  return /Class/.test(type) ? nodesIn(id).map(nameOf) : [];
}

/** The code below a node: no types, no names of properties. */
function codeBelow(node: Node): Node[] {
  const { type } = node;
  if (type.startsWith('TS')) return TYPED.test(type) ? nodesIn(node.expression) : [];
  const isLink = /^(Import|ExportAll)Declaration$/.test(type) || type === 'MetaProperty';
  if (isLink || (type === 'ExportNamedDeclaration' && node.declaration === null)) return [];
  const isNamed = node.computed !== true && (type === 'MemberExpression' || /Property|Method/.test(type));
  return Object.entries(node).flatMap(([key, value]) => {
    if (isNamed && key === (type === 'MemberExpression' ? 'property' : 'key')) return [];
    return key === 'label' || key === 'typeAnnotation' || key === 'superTypeArguments' ? [] : nodesIn(value);
  });
}

/** The names that a piece of code refers to. A name that it binds anywhere counts as bound everywhere in it. */
function usesOf(code: Node): Uses {
  const names = new Set<string>();
  const own = new Set<string>();
  const impure: { what: string; at: number }[] = [];
  const visit = (node: Node): void => {
    const what = impurityOf(node);
    if (what !== null) impure.push({ what, at: node.start });
    if (node.type === 'Identifier') names.add(nameOf(node));
    for (const name of boundBy(node)) own.add(name);
    codeBelow(node).forEach(visit);
  };
  visit(code);
  for (const name of own) names.delete(name);
  return { names, impure };
}

/** One claim to be pure: of a file, or of one of its declarations. */
interface Claim {
  readonly path: string;
  readonly name: string | null;
}

const SAYS = /\bPure[.:]/;

function claimsOf(module: Module): Claim[] {
  const { path, text, comments, declared } = module;
  if (PURE_PACKAGES.some((directory) => path.startsWith(`${directory}/src/`))) return [{ path, name: null }];
  return comments.flatMap(({ start, end, value }): Claim[] => {
    if (!SAYS.test(value)) return [];
    if (start === 0) return [{ path, name: null }];
    const rest = text.slice(end);
    const [, name] = /^\s*(?:export )?(?:default )?(?:async )?(?:function\*?|const|class) (\w+)/.exec(rest) ?? [];
    const isOfDeclaration = name !== undefined && declared.has(name) && !/^\s*\n\s*\n/.test(rest);
    return [{ path, name: isOfDeclaration ? name : null }];
  });
}

/** Modules by path, read once. */
class Modules {
  readonly read: Read;
  readonly #known = new Map<string, Module | null>();

  constructor(read: Read) {
    this.read = read;
  }

  load(path: string): Module | null {
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const text = this.read(path);
    const made = text === null ? null : parse(path, text);
    this.#known.set(path, made);
    return made;
  }

  /** The path of a module that another one imports; null: it is none of the repository. */
  pathOf(from: string, by: string): string | null {
    if (from.startsWith('.')) return normalize(join(dirname(by), from));
    const [, name, below] = /^@kronos\/([^/]+)(\/.+)?$/.exec(from) ?? [];
    if (name === undefined) return null;
    for (const parent of ['libs', 'services']) {
      const manifest = this.read(`${parent}/${name}/package.json`);
      if (manifest === null) continue;
      const target = JSON.parse(manifest).exports?.[`.${below ?? ''}`];
      if (typeof target === 'string') return join(parent, name, target);
    }
    return null;
  }
}

/** Something impure: what, where, and the names through which the code reaches it. */
type Found = { readonly module: Module; readonly at: number; readonly what: string; readonly by: readonly string[] };

/** Everything that code reaches, once. */
class Walk {
  readonly #modules: Modules;
  readonly #found: (found: Found) => void;
  readonly #done = new Set<string>();

  constructor(modules: Modules, found: (found: Found) => void) {
    this.#modules = modules;
    this.#found = found;
  }

  #once(key: string): boolean {
    const isNew = !this.#done.has(key);
    this.#done.add(key);
    return isNew;
  }

  #enter(module: Module, code: Node, by: readonly string[]): void {
    if (!this.#once(`${module.path}#${code.start}`)) return;
    const { names, impure } = usesOf(code);
    for (const one of impure) this.#found({ module, by, ...one });
    for (const name of names) {
      const target = module.imports.get(name);
      if (target !== undefined) this.#follow(module, code.start, target, [...by, name]);
      else if (module.declared.has(name)) this.enterName(module, name, by);
      else if (IMPURE.has(name)) this.#found({ module, at: code.start, what: name, by });
    }
  }

  enterName(module: Module, name: string, by: readonly string[] = []): void {
    const code = module.declared.get(name);
    if (code !== undefined) this.#enter(module, code, by);
  }

  enterAll(module: Module, by: readonly string[] = []): void {
    if (!this.#once(module.path)) return;
    for (const statement of module.statements) this.#enter(module, statement, by);
    for (const target of module.exports.values()) if (typeof target !== 'string') this.#follow(module, 0, target, by);
    for (const from of module.stars) this.#follow(module, 0, { from, name: '*' }, by);
  }

  #follow(module: Module, at: number, { from, name }: Target, by: readonly string[]): void {
    const path = this.#modules.pathOf(from, module.path);
    if (path === null) {
      if (!COMPUTING.includes(from)) this.#found({ module, at, what: from, by });
      return;
    }
    const other = this.#modules.load(path);
    if (other === null) this.#found({ module, at, what: `${from}, which cannot be read`, by });
    else if (name === '*') this.enterAll(other, by);
    else this.#enterExport(other, name, by);
  }

  #enterExport(module: Module, name: string, by: readonly string[]): boolean {
    const own = module.exports.get(name);
    if (own === undefined)
      return module.stars.some((from) => {
        const path = this.#modules.pathOf(from, module.path);
        const other = path === null ? null : this.#modules.load(path);
        return other !== null && this.#enterExport(other, name, by);
      });
    const target = typeof own === 'string' ? module.imports.get(own) : own;
    if (target !== undefined) this.#follow(module, 0, target, by);
    else this.enterName(module, name === 'default' ? name : String(own), by);
    return true;
  }
}

/** The claims that do not hold, and exceptions that nothing needs, as sentences. @param paths of the files whose claims are judged */
export function impurities(paths: readonly string[], read: Read, exceptions = EXCEPTIONS): string[] {
  const modules = new Modules(read);
  const needed = new Set<string>();
  const problems = new Set<string>();
  const judge = (claim: Claim, claimed: Module): void => {
    const walk = new Walk(modules, ({ module, at, what, by }) => {
      const exception = `${module.path}: ${what}`;
      if (Object.hasOwn(exceptions, exception)) {
        needed.add(exception);
        return;
      }
      const line = module.text.slice(0, at).split('\n').length;
      const through = by.length === 0 ? '' : ` through ${by.join(', ')}`;
      const who = claim.name === null ? claim.path : `${claim.path}: ${claim.name}`;
      problems.add(`${who} says that it is pure and reaches ${what} in ${module.path}:${line}${through}`);
    });
    if (claim.name === null) walk.enterAll(claimed);
    else walk.enterName(claimed, claim.name);
  };
  for (const path of paths) {
    const module = modules.load(path);
    if (module !== null) for (const claim of claimsOf(module)) judge(claim, module);
  }
  for (const exception of Object.keys(exceptions))
    if (!needed.has(exception)) problems.add(`no exception is needed any more: ${exception}`);
  return [...problems];
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const read: Read = (path) => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : null);
  const paths = globSync('{libs,services}/*/src/**/*.{ts,js}', { cwd: root }).filter(
    (path) => !path.includes('.test.'),
  );
  const problems = impurities(paths, read);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
