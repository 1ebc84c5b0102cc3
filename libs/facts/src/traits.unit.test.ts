import { describe, expect, it } from 'vitest';
import { traitsFit, traitsOf } from './traits.ts';

const asks = (requiredTraits: string[], forbiddenTraits: string[]) => ({ requiredTraits, forbiddenTraits });

describe('the traits of a host', () => {
  it('take a server that asks for none, known or not', () => {
    expect(traitsFit(['HW_CPU_X86_AVX2'], asks([], []))).toBe(true);
    expect(traitsFit(null, asks([], []))).toBe(true);
  });

  it('take a server when they have all required ones and no forbidden one', () => {
    expect(traitsFit(['A', 'B'], asks(['A', 'B'], ['C']))).toBe(true);
    expect(traitsFit(['A'], asks(['A', 'B'], []))).toBe(false);
    expect(traitsFit(['A', 'C'], asks(['A'], ['C']))).toBe(false);
  });

  it('say nothing when they are not known', () => {
    expect(traitsFit(null, asks(['A'], []))).toBeNull();
    expect(traitsFit(null, asks([], ['A']))).toBeNull();
  });
});

it("a flavor's traits stand in its extra specs, numbered ones too", () => {
  const extraSpecs = {
    'trait:A': 'required',
    'trait1:B': 'forbidden',
    'trait:C': 'other',
    'hw:mem_page_size': 'large',
  };
  expect(traitsOf({ extraSpecs }, 'required')).toEqual(['A']);
  expect(traitsOf({ extraSpecs }, 'forbidden')).toEqual(['B']);
});
