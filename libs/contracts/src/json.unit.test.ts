import { describe, expect, it } from 'vitest';
import { excess, messageLimits, parseJson } from './json.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const nested = (depth: number): string => `${'[{"a":'.repeat(depth / 2)}0${'}]'.repeat(depth / 2)}`;

describe('parsing a body', () => {
  it('gives what JSON.parse gives', () => {
    for (const text of ['{"a":[1,"\\"[[\\\\",{"b":null}],"c":"]}{["}', '"text"', '0', nested(messageLimits.depth)])
      expect(parseJson(bytes(text))).toEqual({ ok: true, value: JSON.parse(text) });
  });

  it.each([
    ['', /empty/],
    ['no json', /no JSON/],
    ['{"a":', /no JSON/],
    [nested(messageLimits.depth + 2), /nests more than 64/],
    ['['.repeat(500_000), /nests more than 64/],
    [`[${'0,'.repeat(messageLimits.values)}0]`, /values/],
    [`"${'x'.repeat(messageLimits.bytes)}"`, /bytes/],
  ])('refuses %#', (text, problem) => {
    const parsed = parseJson(bytes(text));
    expect(parsed.ok ? '' : parsed.problem).toMatch(problem);
  });

  it('takes brackets inside strings for text, escaped quotes included', () => {
    expect(excess(bytes(JSON.stringify({ a: `${'['.repeat(100)}"${'{'.repeat(100)}\\` })))).toBeNull();
  });
});
