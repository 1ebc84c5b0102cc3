/**
 * Whether a PromQL expression is a plain vector selector, such as `host_load` or `node_load1{job="nova", host=~"cmp.*"}`:
 * a name, label matchers, or both, perhaps in parentheses. Only for such a one does `timestamp(expression)` tell when each
 * sample was taken; for anything else it tells the time of evaluation. A selector with `offset`, `@` or a range is not plain.
 *
 * Source: the grammar of vector selectors in Prometheus' documentation, querying/basics.
 */
export function isPlainSelector(expression: string): boolean {
  const tokens = tokenize(expression);
  if (tokens === undefined) return false;
  let list = tokens;
  while (list.length > 2 && list[0] === '(' && list.at(-1) === ')') list = list.slice(1, -1);
  return !/^(?:nan|inf)$/i.test(list[0] ?? '') && SELECTOR.test(list.map(kindOf).join(''));
}

/** n: a name, s: a string, =: a comparison; punctuation is itself. */
const kindOf = (token: string): string =>
  /^[a-zA-Z_:]/.test(token) ? 'n' : /^["'`]/.test(token) ? 's' : /^[=!]/.test(token) ? '=' : token;

/** A name; or matchers in braces, where a string alone is the name; a name may have no matcher. */
const SELECTOR = /^(?:n|n\{\}|n?\{(?:[ns]=s|s)(?:,(?:[ns]=s|s))*,?\})$/;

const TOKEN =
  /\s+|#[^\n]*|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|[a-zA-Z_:][a-zA-Z0-9_:]*|=~|!~|!=|=|[(){},])/y;

function tokenize(text: string): string[] | undefined {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    if (match === null) return undefined;
    if (match[1] !== undefined) tokens.push(match[1]);
  }
  return tokens;
}
