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
  let at = 0;
  let named = false;
  const name = list[at];
  if (name !== undefined && /^[a-zA-Z_:]/.test(name)) {
    if (/^(?:nan|inf)$/i.test(name)) return false;
    named = true;
    at += 1;
  }
  if (at === list.length) return named;
  if (list[at] !== '{') return false;
  at += 1;
  let matchers = 0;
  while (list[at] !== '}') {
    const label = list[at];
    if (label === undefined || !/^[a-zA-Z_:"'`]/.test(label)) return false;
    at += 1;
    if (/^(?:=|!=|=~|!~)$/.test(list[at] ?? '')) {
      if (!/^["'`]/.test(list[at + 1] ?? '')) return false;
      at += 2;
    } else if (!/^["'`]/.test(label)) {
      return false;
    }
    matchers += 1;
    if (list[at] === ',') at += 1;
    else if (list[at] !== '}') return false;
  }
  return at + 1 === list.length && (named || matchers > 0);
}

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
