import { describe, expect, it } from 'vitest';
import { optedOutBy } from './optOut.ts';

const NAMES = ['kronos:exclude', 'pet'];
const by = (metadata: Record<string, string>, tags: string[] = [], names = NAMES) =>
  optedOutBy({ metadata, tags }, names);

describe('a server opts out', () => {
  it.each(['true', '', 'yes', '0'])('by a metadata key with the value %j', (value) => {
    expect(by({ 'kronos:exclude': value })).toBe('kronos:exclude');
  });

  it('by a tag, of whichever name is configured', () => {
    expect(by({}, ['web', 'pet'])).toBe('pet');
    expect(by({ pet: 'false' }, ['pet'])).toBe('pet');
  });

  it('by the first name that applies', () => {
    expect(by({ pet: '', 'kronos:exclude': '' })).toBe('kronos:exclude');
  });
});

describe('a server takes part', () => {
  it.each(['false', 'False', ' FALSE '])('with the value %j', (value) => {
    expect(by({ 'kronos:exclude': value })).toBeNull();
  });

  it('with other keys and tags, and when no name is configured', () => {
    expect(by({ other: 'true' }, ['pets'])).toBeNull();
    expect(by({ pet: 'true' }, ['pet'], [])).toBeNull();
  });

  it('with a name that every object has', () => {
    expect(by({}, [], ['constructor', 'toString'])).toBeNull();
  });
});
