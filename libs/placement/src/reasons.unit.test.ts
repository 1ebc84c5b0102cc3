import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { placementFiles } from './document.ts';
import { codeNumber, codeOfNumber, RefusalCounts, reasonCodes, reasonMeanings } from './reasons.ts';

const source = new URL('./', import.meta.url);
/** The packages whose code gives a reason: the planner, and the rules that it shares with the executor. */
const givers = [source, new URL('../../rules/src/', source)];

describe('reasons', () => {
  it('are the ones in docs/reasons.md (npm run generate makes it)', () => {
    for (const [path, text] of placementFiles())
      expect(readFileSync(new URL(`../../../${path}`, source), 'utf8')).toBe(text);
  });

  it('are all given somewhere', () => {
    const code = givers
      .flatMap((directory) =>
        readdirSync(directory, { recursive: true, encoding: 'utf8' })
          .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== 'reasons.ts')
          .map((file) => readFileSync(new URL(file, directory), 'utf8')),
      )
      .join('\n');
    const dead = reasonCodes.filter(
      (reason) => !code.includes(`'${reason}'`) && !new RegExp(`\\b${reason}:`).test(code),
    );
    // Keys without a dash are written without quotes.
    expect(dead.filter((reason) => !code.includes(`.${reason}`))).toEqual([]);
  });

  it('have one number each, and each number leads back to its code', () => {
    for (const code of reasonCodes) expect(codeOfNumber(codeNumber[code])).toBe(code);
    expect(() => codeOfNumber(0)).toThrow(RangeError);
  });

  it('say what they mean in one sentence', () => {
    for (const meaning of Object.values(reasonMeanings)) expect(meaning).toMatch(/^[A-Z].*\.$/);
  });

  it('are counted by code, sorted', () => {
    const counts = new RefusalCounts();
    counts.add(codeNumber.capacity);
    counts.add(codeNumber.affinity, 2);
    expect(JSON.stringify(counts.toRecord())).toBe('{"affinity":2,"capacity":1}');
  });
});
