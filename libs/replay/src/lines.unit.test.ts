import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inLines, withoutLines } from './lines.ts';

const text = (value: unknown): string => withoutLines(inLines(value));
const long = 'x'.repeat(1001);

describe('JSON in lines', () => {
  it('without its lines is the JSON without spaces', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(text([long, value])).toBe(JSON.stringify([long, value]));
      }),
    );
    for (const value of [{ a: [long, { b: ' \n "' }, [], {}] }, { [`${long}\n  `]: [[long]] }, long, [undefined, long]])
      expect(text(value)).toBe(JSON.stringify(value));
    expect(text({ a: long, b: undefined })).toBe(JSON.stringify({ a: long }));
  });

  it('has a short value on one line, and each part of a long one on a line of its own', () => {
    expect(inLines({ a: [1, 2] })).toBe('{"a":[1,2]}\n');
    expect(inLines({ a: 1, b: [long, { c: 2 }] })).toBe(`{\n  "a":1,\n  "b":[\n    "${long}",\n    {"c":2}\n  ]\n}\n`);
  });
});
