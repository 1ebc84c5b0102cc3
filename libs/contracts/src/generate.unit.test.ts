import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { generatedModules, schemaFiles } from './generate.ts';

const directory = new URL('../schemas/', import.meta.url);

it.each(generatedModules())('%s is what the definitions say (npm run generate makes it)', (path, text) => {
  expect(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')).toBe(text);
});

describe('the generated schemas', () => {
  const files = schemaFiles();

  it('are the files in schemas/, no more and no less (npm run generate makes them)', () => {
    expect(readdirSync(directory).sort()).toEqual([...files.keys()].sort());
  });

  it.each([...files])('%s is what the code says', (name, text) => {
    expect(readFileSync(new URL(name, directory), 'utf8')).toBe(text);
  });
});
