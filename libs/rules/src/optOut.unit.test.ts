import { describe, expect, it } from 'vitest';
import { optedOutBy } from './optOut.ts';

const plain = {
  metadata: {},
  tags: [],
  name: 'db-7.example',
  projectId: 'p1',
  flavor: { name: 'm1.huge' },
  imageProperties: { os_type: 'windows', hw_pinned: 'false' },
};
const NAMES = ['kronos:exclude', 'pet'];
const by = (metadata: Record<string, string>, tags: string[] = [], names = NAMES) =>
  optedOutBy({ ...plain, metadata, tags }, names);

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

describe('an operator opts servers out', () => {
  it.each([
    ['project:p1'],
    ['flavor:m1.huge'],
    ['name:db-7.example'],
    ['name:db-*'],
    ['name:*.example'],
    ['name:d*7*e'],
    ['name:*'],
    ['image:os_type'],
    ['image:os_type=windows'],
    ['image:hw_pinned=false'],
  ])('acts: by %s', (entry) => {
    expect(optedOutBy(plain, ['other', entry])).toBe(entry);
  });

  it.each([
    ['project:p2'],
    ['project:p'],
    ['flavor:m1'],
    ['name:db'],
    ['name:*db'],
    ['name:db-7.example*example'],
    ['name:d.-7.*'],
    ['image:os_type=linux'],
    ['image:hw_pinned'],
    ['image:constructor'],
  ])('refuses: %s is another one', (entry) => {
    expect(optedOutBy(plain, [entry])).toBeNull();
  });

  it('refuses to move a server whose image properties Nova does not show, if an entry asks for one', () => {
    const unknown = { ...plain, imageProperties: undefined };
    expect(optedOutBy(unknown, ['image:os_type=linux'])).toBe('image:os_type=linux');
    expect(optedOutBy(unknown, ['name:other'])).toBeNull();
  });

  it('does nothing where Nova shows no name, project or flavor', () => {
    const bare = { ...plain, name: null, projectId: null, flavor: null, imageProperties: {} };
    expect(optedOutBy(bare, ['name:*', 'project:null', 'flavor:null', 'image:os_type'])).toBeNull();
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
