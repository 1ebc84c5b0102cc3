import { describe, expect, it } from 'vitest';
// @ts-expect-error: plain JavaScript, as the lint runs it.
import { exportsOf, homonymsOf } from './exports.mjs';

const booleans = (text: string): unknown => exportsOf('file.ts', text).booleans;

describe('a boolean among the parameters', () => {
  it('is found in functions, arrow functions, methods and constructors, also by its default', () => {
    expect(booleans('export function stop(now: boolean) {}')).toEqual([{ name: 'stop', parameters: ['now'] }]);
    expect(booleans('export const stop = (a: string, now = false) => a + now')).toEqual([
      { name: 'stop', parameters: ['now'] },
    ]);
    expect(
      booleans('export class Life { constructor(readonly long: boolean | null) {} end(now?: boolean) {} }'),
    ).toEqual([
      { name: 'Life.constructor', parameters: ['long'] },
      { name: 'Life.end', parameters: ['now'] },
    ]);
  });

  it('is none inside an object, in what is not exported, and in private methods', () => {
    expect(booleans('export const stop = ({ now }: { now: boolean }) => now; function go(now: boolean) {}')).toEqual(
      [],
    );
    expect(booleans('export class Life { #end(now: boolean) {} private go(now: boolean) {} }')).toEqual([]);
  });
});

describe('homonyms', () => {
  it('are names that two files declare; passing one on declares nothing', () => {
    const names = (text: string) => exportsOf('file.ts', text).names;
    const files = new Map([
      ['a.ts', names('export type Cycle = {}; export const observe = 1;')],
      ['b.ts', names('export interface Cycle {}')],
      ['index.ts', names("export { observe } from './a.ts'; export * from './b.ts';")],
    ]);
    expect([...homonymsOf(files)]).toEqual([['Cycle', ['a.ts', 'b.ts']]]);
  });

  it('are not the overloads of one function', () => {
    const text =
      'export function of(a: string): string; export function of(a: number): number; export function of(a) { return a }';
    expect([...homonymsOf(new Map([['a.ts', exportsOf('a.ts', text).names]]))]).toEqual([]);
  });
});
