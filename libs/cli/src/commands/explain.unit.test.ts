import { describe, expect, it } from 'vitest';
import { UsageError } from '../errors.ts';
import { begun, onlyOne } from './explain.ts';

const names = new Map([
  ['6d1f0d5e-8a34-4a4c-8d3b-0a4a3d2a7b11', 'db-01'],
  ['6d1f0d5e-9999-4a4c-8d3b-0a4a3d2a7b11', 'db-02'],
  ['7c000000-8a34-4a4c-8d3b-0a4a3d2a7b11', 'web'],
]);
const refused = (text: string, act: () => unknown = () => begun(text, names)): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof UsageError) return `${error.message} | ${error.remedy}`;
    throw error;
  }
  return 'not refused';
};

describe('the beginning of a uuid', () => {
  it('finds the only VM that it begins', () => {
    expect(begun('7c000000', names)).toBe('7c000000-8a34-4a4c-8d3b-0a4a3d2a7b11');
    expect(begun('6D1F0D5E-9', names)).toBe('6d1f0d5e-9999-4a4c-8d3b-0a4a3d2a7b11');
  });

  it('is refused where several VMs have it', () => {
    expect(refused('6d1f0d5e')).toBe(
      '2 VMs begin with "6d1f0d5e" | Name one, or give its uuid; their uuids: 6d1f0d5e-8a34-4a4c-8d3b-0a4a3d2a7b11, 6d1f0d5e-9999-4a4c-8d3b-0a4a3d2a7b11.',
    );
  });

  it('finds nothing where it is shorter than in tables, or begins no uuid', () => {
    expect(begun('7c', names)).toBeNull();
    expect(begun('99999999', names)).toBeNull();
  });
});

describe('the beginning of names', () => {
  it('leads to the names', () => {
    expect(refused('db')).toBe('2 VMs begin with "db" | Name one, or give its uuid; their names: db-01, db-02.');
    expect(refused('we')).toBe('1 VM begins with "we" | Name one, or give its uuid; their names: web.');
  });
});

describe('several VMs with one name', () => {
  const twins = [
    { id: 'one', host: 'h1', projectId: 'blue' },
    { id: 'two', host: 'h2', projectId: null },
  ];
  it('are refused with the uuid, the host and the project of each', () => {
    expect(refused('web', () => onlyOne(twins, 'web'))).toBe(
      '2 VMs are called "web" | Give the uuid: one on h1 (project blue), two on h2',
    );
  });
  it('are none where one VM or none has it', () => {
    expect(onlyOne(twins.slice(1), 'web')).toBe(twins[1]);
    expect(onlyOne([], 'web')).toBeUndefined();
  });
});
