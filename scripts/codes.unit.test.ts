import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { errorCodes, generatedFiles } from './codes.ts';

const root = join(import.meta.dirname, '..');
const [[path, text] = ['', '']] = generatedFiles();

it('docs/codes.md is what the sources say (npm run generate makes it)', () => {
  expect(readFileSync(join(root, path), 'utf8')).toBe(text);
});

it('every code of an error is on the page, with what it means', () => {
  const codes = [...errorCodes()].sort();
  expect(codes.length).toBeGreaterThan(50);
  const rows = new Map([...text.matchAll(/^\| `(KRONOS_[A-Z_]+)` \| (.*) \| .* \|$/gm)].map((row) => [row[1], row[2]]));
  expect([...rows.keys()].sort()).toEqual(codes);
  expect([...rows].filter(([, meaning]) => meaning === '')).toEqual([]);
});
