import { AGGREGATE, OVER_TIME } from './promqlFunctions.ts';

/** The text of Prometheus' `bad_data` error for a query it cannot read. */
export class PromqlError extends Error {
  override readonly name = 'PromqlError';
}

interface Matcher {
  readonly label: string;
  readonly negative: boolean;
  readonly test: (value: string) => boolean;
}

export interface Selector {
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

/** Milliseconds of each unit of a duration. */
export const UNITS: Readonly<Record<string, number>> = {
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
    if (found === null) throw new PromqlError(`1:${at + 1}: parse error: unexpected character: '${query.charAt(at)}'`);
    if (found[0].trim() !== '') out.push({ text: found[0], at });
  }
  return out;
}

class Parser {
  readonly #query: string;
  readonly #tokens: readonly Token[];
  #place = 0;

  constructor(query: string) {
    this.#query = query;
    this.#tokens = tokens(query);
  }

  whole(): Expression {
    if (this.#tokens.length === 0) throw new PromqlError('unknown position: parse error: no expression found in input');
    const whole = this.#additive();
    if (this.#place < this.#tokens.length) this.#fail();
    if (whole.kind === 'selector' && whole.metric === '' && whole.matchers.length === 0)
      throw new PromqlError('1:1: parse error: vector selector must contain at least one non-empty matcher');
    return whole;
  }

  #peek(): string | undefined {
    return this.#tokens[this.#place]?.text;
  }

  #fail(): never {
    const token = this.#tokens[this.#place];
    if (token === undefined) throw new PromqlError(`1:${this.#query.length + 1}: parse error: unexpected end of input`);
    throw new PromqlError(`1:${token.at + 1}: parse error: unexpected "${token.text}"`);
  }

  /** Fails at the token that was taken last. */
  #refuse(): never {
    this.#place--;
    return this.#fail();
  }

  #take(): string {
    const token = this.#tokens[this.#place];
    if (token === undefined) return this.#fail();
    this.#place++;
    return token.text;
  }

  #expect(text: string): void {
    if (this.#peek() !== text) this.#fail();
    this.#place++;
  }

  #matchers(): Matcher[] {
    const out: Matcher[] = [];
    this.#expect('{');
    while (this.#peek() !== '}') {
      const label = this.#take();
      if (!/^[A-Za-z_]\w*$/.test(label)) {
        this.#refuse();
      }
      const operator = this.#take();
      const quoted = this.#take();
      if (!['=', '!=', '=~', '!~'].includes(operator) || !/^["']/.test(quoted)) {
        this.#refuse();
      }
      const value = quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1');
      const negative = operator.startsWith('!');
      let test = (seen: string): boolean => seen === value;
      if (operator.endsWith('~')) {
        let pattern: RegExp;
        try {
          pattern = new RegExp(`^(?:${value})$`, 'u');
        } catch {
          throw new PromqlError(
            `1:${this.#tokens[this.#place - 1]?.at ?? 0}: parse error: error parsing regexp: ${value}`,
          );
        }
        test = (seen) => pattern.test(seen);
      }
      out.push({ label, negative, test });
      if (this.#peek() === ',') this.#place++;
      else if (this.#peek() !== '}') this.#fail();
    }
    this.#expect('}');
    return out;
  }

  #range(): number | null {
    if (this.#peek() !== '[') return null;
    this.#place++;
    const text = this.#take();
    const found = /^(\d+)(ms|[smhdw])$/.exec(text);
    const unit = found?.[2] === undefined ? undefined : UNITS[found[2]];
    if (found === null || unit === undefined) {
      return this.#refuse();
    }
    this.#expect(']');
    return Number(found[1]) * unit;
  }

  #labels(): string[] {
    const out: string[] = [];
    this.#expect('(');
    while (this.#peek() !== ')') {
      out.push(this.#take());
      if (this.#peek() === ',') this.#place++;
      else if (this.#peek() !== ')') this.#fail();
    }
    this.#expect(')');
    return out;
  }

  #primary(): Expression {
    const text = this.#take();
    if (text === '(') {
      const inner = this.#additive();
      this.#expect(')');
      return inner;
    }
    if (text === '-') {
      return { kind: 'binary', operator: '*', left: { kind: 'number', value: -1 }, right: this.#primary() };
    }
    if (/^\d/.test(text)) {
      const value = Number(text);
      if (Number.isNaN(value)) {
        this.#refuse();
      }
      return { kind: 'number', value };
    }
    if (text === '{') {
      this.#place--;
      const found = this.#matchers();
      return { kind: 'selector', metric: '', matchers: found, rangeMs: this.#range() };
    }
    if (!/^[A-Za-z_:]/.test(text)) {
      return this.#refuse();
    }
    if (AGGREGATE[text] !== undefined && (this.#peek() === '(' || this.#peek() === 'by'))
      return this.#aggregation(text);
    if (this.#peek() === '(') return this.#call(text);
    const found = this.#peek() === '{' ? this.#matchers() : [];
    return { kind: 'selector', metric: text, matchers: found, rangeMs: this.#range() };
  }

  /** `by` may stand before or after the argument. */
  #aggregation(name: string): Expression {
    let by: string[] = [];
    if (this.#peek() === 'by') {
      this.#place++;
      by = this.#labels();
    }
    this.#expect('(');
    const argument = this.#additive();
    this.#expect(')');
    if (this.#peek() === 'by') {
      this.#place++;
      by = this.#labels();
    }
    return { kind: 'sum', name, by, argument };
  }

  #call(name: string): Expression {
    if (OVER_TIME[name] === undefined && name !== 'timestamp') {
      this.#place--;
      throw new PromqlError(
        `1:${(this.#tokens[this.#place]?.at ?? 0) + 1}: parse error: unknown function with name "${name}"`,
      );
    }
    this.#place++;
    const argument = this.#additive();
    this.#expect(')');
    const wantsRange = name !== 'timestamp';
    const isRange = argument.kind === 'selector' && argument.rangeMs !== null;
    if (wantsRange !== isRange)
      throw new PromqlError(
        `1:${this.#query.indexOf(name) + name.length + 2}: parse error: expected type ${wantsRange ? 'range' : 'instant'} vector ` +
          `in call to function "${name}", got ${isRange ? 'range' : 'instant'} vector`,
      );
    return { kind: 'call', name, argument };
  }

  #multiplicative(): Expression {
    let left = this.#primary();
    for (let next = this.#peek(); next === '*' || next === '/'; next = this.#peek()) {
      this.#place++;
      left = { kind: 'binary', operator: next, left, right: this.#primary() };
    }
    return left;
  }

  #additive(): Expression {
    let left = this.#multiplicative();
    for (let next = this.#peek(); next === '+' || next === '-'; next = this.#peek()) {
      this.#place++;
      left = { kind: 'binary', operator: next, left, right: this.#multiplicative() };
    }
    return left;
  }
}

/**
 * Reads the few forms that the simulated Prometheus knows: selectors with matchers, numbers, `+ - * /` with a number
 * or between vectors of equal labels, `<x>_over_time(sel[5m])`, `timestamp(sel)`, `sum|avg|max|min|count by (l) (expr)`
 * and brackets. Throws PromqlError for anything else, with Prometheus' wording.
 */
export const parse = (query: string): Expression => new Parser(query).whole();
