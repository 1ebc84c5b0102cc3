import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { formerCodes } from '../libs/facts/src/sharedReasons.ts';
import { codeFiles, errorCodes, reasons } from './codes.ts';

const root = join(import.meta.dirname, '..');
const [[path, text] = ['', '']] = codeFiles();

it('docs/codes.md is what the sources say (npm run generate makes it)', () => {
  expect(readFileSync(join(root, path), 'utf8')).toBe(text);
});

it('a reason has one code with one meaning, whoever gives it', () => {
  const rows = reasons();
  const twice = rows.filter(({ code }, at) => rows.findIndex((row) => row.code === code) !== at);
  expect(twice).toEqual([]);
  const meanings = rows.map(({ meaning }) => meaning);
  expect(meanings.filter((meaning, at) => meanings.indexOf(meaning) !== at)).toEqual([]);
  const codes = new Set(rows.map(({ code }) => code));
  expect(Object.keys(formerCodes).filter((code) => codes.has(code))).toEqual([]);
});

it('every code of an error is on the page, with what it means', () => {
  const codes = [...errorCodes()].sort();
  expect(codes.length).toBeGreaterThan(50);
  const rows = new Map([...text.matchAll(/^\| `(KRONOS_[A-Z_]+)` \| (.*) \| .* \|$/gm)].map((row) => [row[1], row[2]]));
  expect([...rows.keys()].sort()).toEqual(codes);
  expect([...rows].filter(([, meaning]) => meaning === '')).toEqual([]);
});
