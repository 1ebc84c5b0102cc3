import { describe, expect, it } from 'vitest';
import { findNames, rankOf, type SnapshotNames, searchNames } from './names.ts';

const names = new Map<string, SnapshotNames>([
  [
    'gpu',
    {
      time: '2026-01-05T10:01:00.000Z',
      hosts: ['web-host', 'gpu-1'],
      vms: [
        { id: 'a1', name: 'my-web', host: 'gpu-1' },
        { id: 'a2', name: 'Web', host: 'gpu-1' },
      ],
      skylines: [],
    },
  ],
  [
    'general',
    { time: '2026-01-05T10:00:00.000Z', hosts: [], vms: [{ id: 'web-9', name: 'db', host: 'h9' }], skylines: [] },
  ],
]);

describe('a search', () => {
  it('takes what is equal first, then what begins with the text, then what contains it; capital letters do not count', () => {
    const { found, total, oldest } = findNames(names, 'web', 10);
    expect(found.map(({ name, rank }) => [name, rank])).toEqual([
      ['Web', 0],
      ['db', 1],
      ['web-host', 1],
      ['my-web', 2],
    ]);
    expect([total, oldest]).toEqual([4, '2026-01-05T10:00:00.000Z']);
  });

  it('gives the best ones within the limit, and counts the others', () => {
    const { found, total } = findNames(names, 'web', 1);
    expect([found.map(({ id }) => id), total]).toEqual([['a2'], 4]);
  });

  it('finds nothing that no name and no id contains', () => {
    expect(findNames(names, 'none', 10).found).toEqual([]);
    expect(rankOf('x', [])).toBeNull();
  });
});

describe('the names of a snapshot', () => {
  const bytes = (body: unknown) => new TextEncoder().encode(JSON.stringify(body));
  const snapshot = {
    time: '2026-01-01T12:00:00.000Z',
    hosts: [
      { name: 'h1', service: { status: 'enabled', state: 'up', forcedDown: false } },
      { name: 'h2', service: { status: 'disabled', state: 'up', forcedDown: false } },
    ],
    servers: [{ id: 'u1', name: 'web-1', host: 'h1', status: 'ACTIVE' }],
    scores: { policies: [{ policy: 'cpu', threshold: 0.1, hosts: { h1: { raw: 0.25 }, h2: { raw: 0 } } }] },
  };

  it('are read without the rest of it', () => {
    expect(searchNames(bytes(snapshot))).toEqual({
      time: snapshot.time,
      hosts: ['h1', 'h2'],
      vms: [{ id: 'u1', name: 'web-1', host: 'h1' }],
      // A disabled host is in no imbalance, and no bar stands for it.
      skylines: [{ policy: 'cpu', threshold: 0.1, values: [0.25], highest: 'h1' }],
    });
  });
  it.each([
    ['another form', bytes({ ...snapshot, servers: [{ id: 'u1', host: 'h1' }] })],
    ['no JSON', new TextEncoder().encode('{')],
  ])('are not guessed from %s', (_, body) => {
    expect(searchNames(body)).toBeNull();
  });
});
