import type { Cloud } from './cloud.ts';
import { instant, type Sample } from './series.ts';

/** The text of Prometheus' `bad_data` error for a query it cannot read. */
export class BadQuery extends Error {
  override readonly name = 'BadQuery';
}

interface Matcher {
  readonly label: string;
  readonly negative: boolean;
  readonly test: (value: string) => boolean;
}

interface Selector {
  readonly kind: 'selector';
  readonly metric: string;
  readonly matchers: readonly Matcher[];
  /** Set for a range selector, `sel[5m]`. */
  readonly rangeMs: number | null;
}

export type Expression =
  | Selector
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'call'; readonly name: string; readonly argument: Expression }
  | { readonly kind: 'sum'; readonly name: string; readonly by: readonly string[]; readonly argument: Expression }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: Expression; readonly right: Expression };

const OVER_TIME: Readonly<Record<string, (values: readonly number[]) => number>> = {
  avg_over_time: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  max_over_time: (values) => Math.max(...values),
  min_over_time: (values) => Math.min(...values),
  sum_over_time: (values) => values.reduce((sum, value) => sum + value, 0),
  count_over_time: (values) => values.length,
  last_over_time: (values) => values.at(-1) ?? Number.NaN,
};
const AGGREGATE: Readonly<Record<string, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  avg: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
  count: (values) => values.length,
};
const OPERATE: Readonly<Record<string, (a: number, b: number) => number>> = {
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
};
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

interface Token {
  readonly text: string;
  readonly at: number;
}

const TOKEN =
  /\s+|[A-Za-z_:][A-Za-z0-9_:]*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:ms|[smhdw])?|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|=~|!~|!=|[{}()[\],=*/+-]/y;

function tokens(query: string): Token[] {
  const out: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < query.length) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(query);
    if (found === null) throw new BadQuery(`1:${at + 1}: parse error: unexpected character: '${query.charAt(at)}'`);
    if (found[0].trim() !== '') out.push({ text: found[0], at });
  }
  return out;
}

/**
 * Reads the few forms that the simulated Prometheus knows: selectors with matchers, numbers, `+ - * /` with a number
 * or between vectors of equal labels, `<x>_over_time(sel[5m])`, `timestamp(sel)`, `sum|avg|max|min|count by (l) (expr)`
 * and brackets. Throws BadQuery for anything else, with Prometheus' wording.
 */
export function parse(query: string): Expression {
  const list = tokens(query);
  let place = 0;
  const peek = (): string | undefined => list[place]?.text;
  const fail = (): never => {
    const token = list[place];
    if (token === undefined) throw new BadQuery(`1:${query.length + 1}: parse error: unexpected end of input`);
    throw new BadQuery(`1:${token.at + 1}: parse error: unexpected "${token.text}"`);
  };
  const take = (): string => {
    const token = list[place];
    if (token === undefined) return fail();
    place++;
    return token.text;
  };
  const expect = (text: string): void => {
    if (peek() !== text) fail();
    place++;
  };

  const matchers = (): Matcher[] => {
    const out: Matcher[] = [];
    expect('{');
    while (peek() !== '}') {
      const label = take();
      if (!/^[A-Za-z_]\w*$/.test(label)) {
        place--;
        fail();
      }
      const operator = take();
      const quoted = take();
      if (!['=', '!=', '=~', '!~'].includes(operator) || !/^["']/.test(quoted)) {
        place--;
        fail();
      }
      const value = quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1');
      const negative = operator.startsWith('!');
      let test = (seen: string): boolean => seen === value;
      if (operator.endsWith('~')) {
        let pattern: RegExp;
        try {
          pattern = new RegExp(`^(?:${value})$`, 'u');
        } catch {
          throw new BadQuery(`1:${list[place - 1]?.at ?? 0}: parse error: error parsing regexp: ${value}`);
        }
        test = (seen) => pattern.test(seen);
      }
      out.push({ label, negative, test });
      if (peek() === ',') place++;
      else if (peek() !== '}') fail();
    }
    expect('}');
    return out;
  };

  const range = (): number | null => {
    if (peek() !== '[') return null;
    place++;
    const text = take();
    const found = /^(\d+)(ms|[smhdw])$/.exec(text);
    const unit = found?.[2] === undefined ? undefined : UNITS[found[2]];
    if (found === null || unit === undefined) {
      place--;
      return fail();
    }
    expect(']');
    return Number(found[1]) * unit;
  };

  const labels = (): string[] => {
    const out: string[] = [];
    expect('(');
    while (peek() !== ')') {
      out.push(take());
      if (peek() === ',') place++;
      else if (peek() !== ')') fail();
    }
    expect(')');
    return out;
  };

  const primary = (): Expression => {
    const text = take();
    if (text === '(') {
      const inner = additive();
      expect(')');
      return inner;
    }
    if (text === '-') {
      return { kind: 'binary', operator: '*', left: { kind: 'number', value: -1 }, right: primary() };
    }
    if (/^\d/.test(text)) {
      const value = Number(text);
      if (Number.isNaN(value)) {
        place--;
        fail();
      }
      return { kind: 'number', value };
    }
    if (text === '{') {
      place--;
      const found = matchers();
      return { kind: 'selector', metric: '', matchers: found, rangeMs: range() };
    }
    if (!/^[A-Za-z_:]/.test(text)) {
      place--;
      return fail();
    }
    if (AGGREGATE[text] !== undefined && (peek() === '(' || peek() === 'by')) {
      let by: string[] = [];
      if (peek() === 'by') {
        place++;
        by = labels();
      }
      expect('(');
      const argument = additive();
      expect(')');
      if (peek() === 'by') {
        place++;
        by = labels();
      }
      return { kind: 'sum', name: text, by, argument };
    }
    if (peek() === '(') {
      if (OVER_TIME[text] === undefined && text !== 'timestamp') {
        place--;
        throw new BadQuery(`1:${(list[place]?.at ?? 0) + 1}: parse error: unknown function with name "${text}"`);
      }
      place++;
      const argument = additive();
      expect(')');
      const wantsRange = text !== 'timestamp';
      const isRange = argument.kind === 'selector' && argument.rangeMs !== null;
      if (wantsRange !== isRange)
        throw new BadQuery(
          `1:${query.indexOf(text) + text.length + 2}: parse error: expected type ${wantsRange ? 'range' : 'instant'} vector ` +
            `in call to function "${text}", got ${isRange ? 'range' : 'instant'} vector`,
        );
      return { kind: 'call', name: text, argument };
    }
    const found = peek() === '{' ? matchers() : [];
    return { kind: 'selector', metric: text, matchers: found, rangeMs: range() };
  };

  const multiplicative = (): Expression => {
    let left = primary();
    for (let next = peek(); next === '*' || next === '/'; next = peek()) {
      place++;
      left = { kind: 'binary', operator: next, left, right: primary() };
    }
    return left;
  };

  const additive = (): Expression => {
    let left = multiplicative();
    for (let next = peek(); next === '+' || next === '-'; next = peek()) {
      place++;
      left = { kind: 'binary', operator: next, left, right: multiplicative() };
    }
    return left;
  };

  if (list.length === 0) throw new BadQuery('unknown position: parse error: no expression found in input');
  const whole = additive();
  if (place < list.length) fail();
  if (whole.kind === 'selector' && whole.metric === '' && whole.matchers.length === 0)
    throw new BadQuery('1:1: parse error: vector selector must contain at least one non-empty matcher');
  return whole;
}

function select(cloud: Cloud, selector: Selector, atMs: number): Sample[] {
  let metrics = [selector.metric];
  if (selector.metric === '') {
    const named = selector.matchers.filter((matcher) => matcher.label === '__name__');
    metrics =
      named.length === 0 ? [] : ['up', ...KNOWN].filter((name) => named.every((m) => m.test(name) !== m.negative));
  }
  return metrics.flatMap((metric) =>
    instant(cloud, metric, atMs).filter((sample) =>
      selector.matchers.every((matcher) => matcher.test(sample.labels[matcher.label] ?? '') !== matcher.negative),
    ),
  );
}

const KNOWN = [
  'host_cpu_utilisation',
  'host_mem_utilisation',
  'host_cpu_cores',
  'host_mem_mb',
  'vm_cpu_cores',
  'vm_mem_mb',
];

/** Labels -> the same without the metric's name. */
const unnamed = new WeakMap<Readonly<Record<string, string>>, Readonly<Record<string, string>>>();

function nameless(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  let rest = unnamed.get(labels);
  if (rest === undefined) {
    const { __name__: _, ...kept } = labels;
    rest = Object.freeze(kept);
    unnamed.set(labels, rest);
  }
  return rest;
}

export type Value = { readonly scalar: number } | { readonly vector: readonly Sample[] };

/** The value of an expression at `atMs`. A range selector alone has none: BadQuery. */
export function evaluate(cloud: Cloud, expression: Expression, atMs: number): Value {
  switch (expression.kind) {
    case 'number':
      return { scalar: expression.value };
    case 'selector':
      if (expression.rangeMs !== null)
        throw new BadQuery('invalid expression type "range vector" for range query, must be Scalar or instant Vector');
      return { vector: select(cloud, expression, atMs) };
    case 'call': {
      const { argument, name } = expression;
      if (name === 'timestamp') {
        const inner = evaluate(cloud, argument, atMs);
        if ('scalar' in inner)
          throw new BadQuery(`expected type instant vector in call to function "${name}", got scalar`);
        return { vector: inner.vector.map((s) => ({ ...s, labels: nameless(s.labels), value: s.atMs / 1000 })) };
      }
      const over = OVER_TIME[name];
      if (over === undefined || argument.kind !== 'selector' || argument.rangeMs === null)
        throw new BadQuery(`unknown function with name "${name}"`);
      const stepMs = cloud.scenario.scrapeSeconds * 1000;
      const series = new Map<
        string,
        { labels: Readonly<Record<string, string>>; values: number[]; seen: Set<number> }
      >();
      // A long range is thinned: the simulated series are smooth, 60 samples say enough.
      const stride = Math.max(1, Math.floor(argument.rangeMs / stepMs / 60)) * stepMs;
      for (let t = atMs; t > atMs - argument.rangeMs && t >= cloud.startMs - stepMs; t -= stride) {
        for (const sample of select(cloud, argument, t)) {
          if (sample.atMs <= atMs - argument.rangeMs) continue;
          const labels = name === 'last_over_time' ? sample.labels : nameless(sample.labels);
          const key = JSON.stringify(labels);
          let entry = series.get(key);
          if (entry === undefined) {
            entry = { labels, values: [], seen: new Set() };
            series.set(key, entry);
          }
          if (entry.seen.has(sample.atMs)) continue;
          entry.seen.add(sample.atMs);
          entry.values.unshift(sample.value);
        }
      }
      return { vector: [...series.values()].map(({ labels, values }) => ({ labels, value: over(values), atMs })) };
    }
    case 'sum': {
      const inner = evaluate(cloud, expression.argument, atMs);
      if ('scalar' in inner) throw new BadQuery(`expected type instant vector in aggregation expression, got scalar`);
      const groups = new Map<string, { labels: Record<string, string>; values: number[] }>();
      for (const sample of inner.vector) {
        const labels: Record<string, string> = {};
        for (const name of expression.by) {
          const value = sample.labels[name];
          if (value !== undefined) labels[name] = value;
        }
        const key = JSON.stringify(labels);
        const group = groups.get(key);
        if (group === undefined) groups.set(key, { labels, values: [sample.value] });
        else group.values.push(sample.value);
      }
      const fold = AGGREGATE[expression.name] ?? ((): number => Number.NaN);
      return { vector: [...groups.values()].map(({ labels, values }) => ({ labels, value: fold(values), atMs })) };
    }
    case 'binary': {
      const operate = OPERATE[expression.operator] ?? ((): number => Number.NaN);
      const left = evaluate(cloud, expression.left, atMs);
      const right = evaluate(cloud, expression.right, atMs);
      if ('scalar' in left && 'scalar' in right) return { scalar: operate(left.scalar, right.scalar) };
      if ('scalar' in right && 'vector' in left)
        return {
          vector: left.vector.map((s) => ({ ...s, labels: nameless(s.labels), value: operate(s.value, right.scalar) })),
        };
      if ('scalar' in left && 'vector' in right)
        return {
          vector: right.vector.map((s) => ({ ...s, labels: nameless(s.labels), value: operate(left.scalar, s.value) })),
        };
      if ('scalar' in left || 'scalar' in right) return { scalar: Number.NaN };
      const partners = new Map(right.vector.map((s) => [JSON.stringify(nameless(s.labels)), s.value]));
      const out: Sample[] = [];
      for (const sample of left.vector) {
        const labels = nameless(sample.labels);
        const partner = partners.get(JSON.stringify(labels));
        if (partner !== undefined) out.push({ labels, value: operate(sample.value, partner), atMs });
      }
      return { vector: out };
    }
  }
}
