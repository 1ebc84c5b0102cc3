import { describe, expect, it } from 'vitest';
// @ts-expect-error: plain JavaScript, which runs before the dependencies are there.
import { roomOf, wrongArrows } from './arrows.mjs';

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

describe('a room', () => {
  it('is a directory, or a file of its own', () => {
    expect(['log/view.ts', 'api/handlers/plans.ts', 'index.ts'].map(roomOf)).toEqual([
      'log',
      'api/handlers',
      'index.ts',
    ]);
  });
});
