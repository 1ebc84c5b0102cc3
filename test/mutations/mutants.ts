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

/** All mutants of a TypeScript file, in the order of the file. Types, imports and the texts of errors are left alone. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file} cannot be parsed: ${errors[0].message}`);
  const found: Mutant[] = [];
  const change = (start: number, end: number, becomes: string): void => {
    const line = source.slice(0, start).split('\n').length;
    found.push({ file, line, start, end, was: source.slice(start, end), becomes });
  };
  const swap = (left: Node, right: Node, operator: string): void => {
    const becomes = SWAPS[operator];
    if (becomes === undefined || (operator === '+' && (isText(left) || isText(right)))) return;
    const at = source.indexOf(operator, left.end);
    if (at >= 0 && at < right.start) change(at, at + operator.length, becomes);
  };
  const condition = (test: Node): void => {
    const text = source.slice(test.start, test.end);
    change(test.start, test.end, `!(${text})`);
    change(test.start, test.end, 'false');
  };
  const visit = (node: Node): void => {
    const { left, right, operator, test } = node;
    switch (node.type) {
      case 'ImportDeclaration':
      case 'ThrowStatement':
        return;
      case 'LogicalExpression': {
        const becomes = SWAPS[String(operator)];
        if (!isNode(left) || !isNode(right) || becomes === undefined) break;
        const [a, b] = [left, right].map(({ start, end }) => source.slice(start, end));
        change(node.start, node.end, `((${a}) ${becomes} (${b}))`);
        break;
      }
      case 'BinaryExpression':
      case 'AssignmentExpression':
        if (isNode(left) && isNode(right)) swap(left, right, String(operator));
        break;
      case 'IfStatement':
      case 'ConditionalExpression':
        if (isNode(test)) condition(test);
        break;
      case 'ExpressionStatement':
        if (!node.directive) change(node.start, node.end, ';');
        break;
      case 'ContinueStatement':
      case 'BreakStatement':
        change(node.start, node.end, ';');
        break;
      case 'Literal':
        if (typeof node.value === 'boolean') change(node.start, node.end, String(!node.value));
        if (typeof node.value === 'number') change(node.start, node.end, String(node.value + 1));
        break;
      case 'CallExpression': {
        const callee = node.callee as Node;
        const property = callee.property;
        if (callee.type === 'MemberExpression' && isNode(property) && callee.computed === false) {
          const becomes = METHODS[String(property.name)];
          if (becomes !== undefined) change(property.start, property.end, becomes);
        }
        break;
      }
      case 'ObjectExpression': {
        // A field that overrides one of the spread before it. Without the field the old value stays.
        const properties = node.properties as readonly Node[];
        if (properties[0]?.type !== 'SpreadElement') break;
        for (const each of properties.slice(1)) {
          const comma = source.slice(each.end).match(/^\s*,/)?.[0].length ?? 0;
          change(each.start, each.end + comma, '');
        }
        break;
      }
    }
    for (const [key, value] of Object.entries(node)) {
      if (key === 'typeAnnotation' || key === 'returnType' || key === 'typeArguments') continue;
      for (const each of Array.isArray(value) ? value : [value])
        if (isNode(each) && (!each.type.startsWith('TS') || 'expression' in each)) visit(each);
    }
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
