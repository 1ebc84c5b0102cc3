import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ALL,
  aggregateOfToken,
  aggregateToken,
  capacityPlanId,
  cellsPlanId,
  commandSnapshotId,
  cycleSnapshotId,
  decodeToken,
  encodeToken,
  families,
  instanceName,
  maybeAskedPlan,
  parseSubject,
  subject,
  UNASSIGNED,
} from './names.ts';

const name = fc.string({ unit: 'grapheme', minLength: 1 }).filter((s) => s.isWellFormed());

describe('the id of a plan', () => {
  it('shows whether a person can have asked for the plan', () => {
    expect(maybeAskedPlan(cellsPlanId('gpu', 'c1'))).toBe(true);
    expect(maybeAskedPlan(capacityPlanId('gpu', 'c1'))).toBe(true);
    expect(maybeAskedPlan(cycleSnapshotId('gpu', 29537))).toBe(false);
    expect(maybeAskedPlan(commandSnapshotId('gpu', 'c1'))).toBe(false);
  });
});

describe('encodeToken', () => {
  it.each([
    ['gpu', 'gpu'],
    ['AZ-1_ssd', 'AZ-1_ssd'],
    ['host.example.com', 'host=2Eexample=2Ecom'],
    ['two words', 'two=20words'],
    ['*', '=2A'],
    ['>', '=3E'],
    ['a/b\\c', 'a=2Fb=5Cc'],
    ['a=2E', 'a=3D2E'],
    ['_unassigned_', '=5Funassigned_'],
    ['Größe', 'Gr=C3=B6=C3=9Fe'],
    ['日本', '=E6=97=A5=E6=9C=AC'],
    ['💾', '=F0=9F=92=BE'],
    ['\uFEFFbom', '=EF=BB=BFbom'],
  ])('writes %j as %s and reads it back', (text, token) => {
    expect(encodeToken(text)).toBe(token);
    expect(decodeToken(token)).toBe(text);
  });

  it('refuses the empty name and a lone surrogate, which have no token', () => {
    expect(() => encodeToken('')).toThrow('empty name');
    expect(() => encodeToken('a\uD800')).toThrow('not well-formed');
  });

  it('property: every name becomes one legal token and comes back', () => {
    fc.assert(
      fc.property(name, (text) => {
        const token = encodeToken(text);
        expect(token).toMatch(/^[A-Za-z0-9=-][A-Za-z0-9_=-]*$/);
        expect(decodeToken(token)).toBe(text);
      }),
    );
  });

  it('property: a text is read as a token only if encodeToken writes it so', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        let read: string;
        try {
          read = decodeToken(text);
        } catch {
          return;
        }
        expect(encodeToken(read)).toBe(text);
      }),
    );
  });

  it.each(['', '=', '=2', '=2e', '=41', '_a', 'a b', '=FF', 'a.b'])('does not read %j as a token', (token) => {
    expect(() => decodeToken(token)).toThrow(RangeError);
  });
});

describe('aggregate tokens', () => {
  it('keep the reserved names apart from an aggregate that is called so', () => {
    expect(aggregateToken(UNASSIGNED)).toBe('_unassigned_');
    expect(aggregateToken(ALL)).toBe('_all_');
    expect(aggregateOfToken('_all_')).toBe(ALL);
    expect(aggregateOfToken('=5Fall_')).toBe('_all_');
    expect(encodeToken('_all_')).not.toBe('_all_');
  });
});

describe('subjects', () => {
  it('property: are read back to family and name', () => {
    fc.assert(
      fc.property(fc.constantFrom(...families), name, (family, text) => {
        fc.pre(family === 'inventory' || (text !== UNASSIGNED && text !== ALL));
        const about = family === 'services' ? instanceName('planner', text) : text;
        expect(parseSubject(subject(family, about))).toEqual({ family, name: about });
      }),
    );
  });

  it.each([
    'kronos.plans',
    'kronos.plans.a.b',
    'other.plans.a',
    'kronos.nothing.a',
    'kronos.plans._x',
    'kronos.plans.',
    'kronos.services.planner',
    'kronos.services.planner.host.1',
  ])('reads %j as no subject of Kronos', (text) => expect(parseSubject(text)).toBeNull());
});
