import { createHash } from 'node:crypto';
import { parseSync } from 'oxc-parser';

/** One small change of a source file. */
export interface Mutant {
  /** Relative to the root of the project. */
  readonly file: string;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly was: string;
  readonly becomes: string;
}

const SWAPS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '||=': '=',
  '??=': '=',
  '+=': '-=',
  '-=': '+=',
};
const METHODS: Readonly<Record<string, string>> = { min: 'max', max: 'min', some: 'every', every: 'some' };

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
const isText = (node: Node): boolean =>
  node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string');

/** Notes that a range of the source becomes another text. */
type Change = (start: number, end: number, becomes: string) => void;

/** The mutants of a node itself, by its type. */
const CHANGES: Readonly<Record<string, (node: Node, source: string, change: Change) => void>> = {
  LogicalExpression({ start, end, left, right, operator }, source, change) {
    const becomes = SWAPS[String(operator)];
    if (!isNode(left) || !isNode(right) || becomes === undefined) return;
    const [a, b] = [left, right].map((side) => source.slice(side.start, side.end));
    change(start, end, `((${a}) ${becomes} (${b}))`);
  },
  BinaryExpression: swap,
  AssignmentExpression: swap,
  IfStatement: condition,
  ConditionalExpression: condition,
  ExpressionStatement({ start, end, directive }, _, change) {
    if (!directive) change(start, end, ';');
  },
  ContinueStatement: ({ start, end }, _, change) => change(start, end, ';'),
  BreakStatement: ({ start, end }, _, change) => change(start, end, ';'),
  Literal({ start, end, value }, _, change) {
    if (typeof value === 'boolean') change(start, end, String(!value));
    if (typeof value === 'number') change(start, end, String(value + 1));
  },
  CallExpression(node, _, change) {
    const callee = node.callee as Node;
    const property = callee.property;
    if (callee.type !== 'MemberExpression' || !isNode(property) || callee.computed !== false) return;
    const becomes = METHODS[String(property.name)];
    if (becomes !== undefined) change(property.start, property.end, becomes);
  },
  ObjectExpression(node, source, change) {
    // A field that overrides one of the spread before it. Without the field the old value stays.
    const properties = node.properties as readonly Node[];
    if (properties[0]?.type !== 'SpreadElement') return;
    for (const each of properties.slice(1)) {
      const comma = source.slice(each.end).match(/^\s*,/)?.[0].length ?? 0;
      change(each.start, each.end + comma, '');
    }
  },
};

function swap({ left, right, operator: word }: Node, source: string, change: Change): void {
  if (!isNode(left) || !isNode(right)) return;
  const operator = String(word);
  const becomes = SWAPS[operator];
  if (becomes === undefined || (operator === '+' && (isText(left) || isText(right)))) return;
  const at = source.indexOf(operator, left.end);
  if (at >= 0 && at < right.start) change(at, at + operator.length, becomes);
}

function condition({ test }: Node, source: string, change: Change): void {
  if (!isNode(test)) return;
  change(test.start, test.end, `!(${source.slice(test.start, test.end)})`);
  change(test.start, test.end, 'false');
}

/** The nodes in a node that are code and no types. */
function* codeIn(node: Node): Generator<Node> {
  for (const [key, value] of Object.entries(node)) {
    if (key === 'typeAnnotation' || key === 'returnType' || key === 'typeArguments') continue;
    for (const each of Array.isArray(value) ? value : [value])
      if (isNode(each) && (!each.type.startsWith('TS') || 'expression' in each)) yield each;
  }
}

/** All mutants of a TypeScript file, in the order of the file. Types, imports and the texts of errors are left alone. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file} cannot be parsed: ${errors[0].message}`);
  const found: Mutant[] = [];
  const change: Change = (start, end, becomes) => {
    const line = source.slice(0, start).split('\n').length;
    found.push({ file, line, start, end, was: source.slice(start, end), becomes });
  };
  const visit = (node: Node): void => {
    if (node.type === 'ImportDeclaration' || node.type === 'ThrowStatement') return;
    CHANGES[node.type]?.(node, source, change);
    for (const each of codeIn(node)) visit(each);
  };
  visit(program as unknown as Node);
  return found;
}

/**
 * `size` of the mutants, as the seed draws them. What is drawn depends on each mutant's own text and place among its likes, so a
 * change elsewhere in the code leaves most of the sample as it was.
 */
export function sample(mutants: readonly Mutant[], size: number, seed: number): Mutant[] {
  const likes = new Map<string, number>();
  const ranked = mutants.map((mutant) => {
    const key = `${mutant.file} ${mutant.was} ${mutant.becomes}`;
    const nth = likes.get(key) ?? 0;
    likes.set(key, nth + 1);
    return { mutant, rank: createHash('sha256').update(`${seed} ${key} ${nth}`).digest('hex') };
  });
  return ranked
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, size)
    .map(({ mutant }) => mutant);
}
