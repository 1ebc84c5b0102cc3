import { describe, expect, it } from 'vitest';
// @ts-expect-error: plain JavaScript, which runs before the dependencies are there.
import { roomOf, undeclaredImports, wrongArrows } from './arrows.mjs';

describe('wrong imports', () => {
  it('are a library that imports a service, and a service that imports another', () => {
    expect(
      wrongArrows({ 'libs/a': ['services/x'], 'services/x': ['libs/b'], 'services/y': ['services/x'] }, {}),
    ).toEqual([
      'libs/a imports services/x: code that two of them need belongs in libs',
      'services/y imports services/x: code that two of them need belongs in libs',
    ]);
  });

  it('are circles of packages and of rooms, however long', () => {
    const packages = { a: ['b'], b: ['c'], c: ['b'] };
    const rooms = { 'libs/a': { log: ['wire'], wire: ['index.ts'], 'index.ts': ['log'] } };
    expect(wrongArrows(packages, rooms)).toEqual([
      'packages: a circle of imports: b -> c -> b',
      'libs/a/src: a circle of imports: log -> wire -> index.ts -> log',
    ]);
  });

  it('are not several ways to one place', () => {
    expect(wrongArrows({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }, { a: { x: ['y', 'z'], y: ['z'] } })).toEqual([]);
  });
});

describe('undeclared imports', () => {
  const manifest = { name: '@kronos/a', dependencies: { '@kronos/b': '*' }, devDependencies: { '@kronos/c': '*' } };
  const found = (ships: boolean, ...names: string[]) =>
    undeclaredImports('libs/a', manifest, [{ path: 'libs/a/x.ts', ships, names }]);

  it('are those that package.json does not name, and those of what runs that it names for tests alone', () => {
    expect(found(true, '@kronos/c')).toEqual([
      'libs/a/x.ts imports @kronos/c: add it to the dependencies of libs/a/package.json',
    ]);
    expect(found(false, '@kronos/d')).toEqual([
      'libs/a/x.ts imports @kronos/d: add it to the devDependencies of libs/a/package.json',
    ]);
  });

  it('are named once for a package, by a file that ships if there is one', () => {
    const names = ['@kronos/d'];
    const files = [false, true, false].map((ships, i) => ({ path: `libs/a/${i}.ts`, ships, names }));
    expect(undeclaredImports('libs/a', manifest, files)).toEqual([
      'libs/a/1.ts imports @kronos/d: add it to the dependencies of libs/a/package.json',
    ]);
  });

  it('are neither the package itself nor what it declares', () => {
    expect(found(true, '@kronos/a', '@kronos/b')).toEqual([]);
    expect(found(false, '@kronos/a', '@kronos/b', '@kronos/c')).toEqual([]);
  });
});

describe('a room', () => {
  it('is a directory, or a file of its own', () => {
    expect(['log/view.ts', 'api/handlers/plans.ts', 'index.ts'].map(roomOf)).toEqual([
      'log',
      'api/handlers',
      'index.ts',
    ]);
  });
});
