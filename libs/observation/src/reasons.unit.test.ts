import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { noteCodes, problemCodes } from './reasons.ts';

test('the README explains every code of a problem and of a note, and no others', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const codesOf = (section: string): string[] => {
    const text = readme.split(`## ${section}\n`)[1]?.split('\n## ')[0] ?? '';
    return [...text.matchAll(/^\| `([a-z-]+)`/gm)].map((found) => found[1] ?? '').sort();
  };
  expect(codesOf('Problems')).toEqual([...problemCodes].sort());
  expect(codesOf('Notes')).toEqual([...noteCodes].sort());
});
