import type { Sim } from '@kronos/simcloud';
import { expect, it } from 'vitest';
import { breaches, type CloudRecord } from './breaches.ts';
import type { Result } from './plans.ts';

type Seen = ReturnType<Sim['migrations']>[number];
type Call = ReturnType<Sim['calls']>[number];

const caps = { maxConcurrentMigrations: 2, maxOutboundPerHost: 1, maxInboundPerHost: 1, maxConcurrentPerGroup: 1 };

const migration = (server: string, source: string, dest: string, from: number, to: number): Seen =>
  ({
    server,
    source,
    dest,
    status: 'completed',
    history: [
      { status: 'accepted', atMs: from },
      { status: 'completed', atMs: to },
    ],
  }) as unknown as Seen;

const record = (
  migrations: readonly Seen[],
  calls: readonly Partial<Call>[] = [],
  groups: Readonly<Record<string, string>> = {},
): CloudRecord => ({
  migrations: () => [...migrations],
  calls: () => calls as Call[],
  cloud: {
    servers: new Map(migrations.map(({ server, dest }) => [server, { host: dest ?? '' }])),
    groupOf: new Map(Object.entries(groups).map(([server, name]) => [server, { name }])),
  },
});

const result = (type: string, taskId: string, more: object = {}): Result =>
  ({ event: { type, data: { taskId, attempt: 1, serverId: taskId, ...more } } }) as unknown as Result;

const done = (task: string, host: string): Result[] => [
  result('migration.started', task),
  result('migration.completed', task, { host }),
];

it('finds nothing in a run in which everything held', () => {
  const cloud = record([migration('a', 'h1', 'h2', 0, 10), migration('b', 'h1', 'h2', 10, 20)]);
  expect(breaches(cloud, [...done('a', 'h2'), ...done('b', 'h2')], ['a', 'b'], caps)).toEqual([]);
});

it('does not count what was observed or refused in the course of an attempt as its outcome', () => {
  const cloud = record([migration('a', 'h1', 'h2', 0, 10)]);
  const during = [result('migration.observed', 'a'), result('migration.abortRefused', 'a')];
  expect(breaches(cloud, [...during, ...done('a', 'h2')], ['a'], caps)).toEqual([]);
});

it.each([
  [
    'more at once than allowed',
    record([migration('a', 'h1', 'h2', 0, 10), migration('b', 'h3', 'h4', 1, 10), migration('c', 'h5', 'h6', 9, 10)]),
    'max_concurrent_migrations: 3 at once, at most 2 are allowed',
  ],
  [
    'two off one host',
    record([migration('a', 'h1', 'h2', 0, 10), migration('b', 'h1', 'h4', 9, 10)]),
    'max_outbound_per_host: 2 at once, at most 1 are allowed',
  ],
  [
    'two onto one host',
    record([migration('a', 'h1', 'h2', 0, 10), migration('b', 'h3', 'h2', 9, 10)]),
    'max_inbound_per_host: 2 at once, at most 1 are allowed',
  ],
  [
    'two of one group',
    record([migration('a', 'h1', 'h2', 0, 10), migration('b', 'h3', 'h4', 9, 10)], [], { a: 'g', b: 'g' }),
    'max_concurrent_per_group: 2 at once, at most 1 are allowed',
  ],
])('finds %s', (_, cloud, text) => {
  const ids = cloud.migrations().map(({ server }) => server);
  const results = cloud.migrations().flatMap(({ server, dest }) => done(server, dest ?? ''));
  expect(breaches(cloud, results, ids, caps)).toEqual([text]);
});

it('finds a task without its one final result, a double start, and a double outcome', () => {
  const cloud = record([]);
  expect(breaches(cloud, [result('migration.started', 'a')], ['a'], caps)).toEqual(['a has 0 final results']);
  const twice = [...done('a', 'h2'), ...done('a', 'h2')];
  expect(breaches(cloud, twice, ['a'], caps)).toEqual([
    'a has 2 final results',
    'a attempt 1 was started 2 times',
    'a attempt 1 has 2 outcomes',
  ]);
});

it('finds a second migration, a second request, and a server that is elsewhere', () => {
  const two = record([migration('a', 'h1', 'h2', 0, 5), migration('a', 'h1', 'h2', 6, 9)]);
  expect(breaches(two, done('a', 'h2'), ['a'], caps)).toEqual(['a has 2 migrations in Nova and 1 attempts on the log']);
  const path = '/v2.1/servers/a/action';
  const posts = [401, 202, 202].map((status) => ({ method: 'POST', path, status }));
  const posted = record([migration('a', 'h1', 'h2', 0, 5)], posts);
  expect(breaches(posted, done('a', 'h2'), ['a'], caps)).toEqual(['a was posted 2 times for 1 attempts on the log']);
  expect(breaches(record([migration('a', 'h1', 'h2', 0, 5)]), done('a', 'h3'), ['a'], caps)).toEqual([
    'a completed on h3, and the server is on h2',
  ]);
});

it('counts confirmations and reverts that Nova took, beside the requests to migrate', () => {
  const post = (body: object, status: number | null) => ({
    method: 'POST',
    path: '/v2.1/servers/a/action',
    body,
    status,
  });
  const asked = (...statuses: (number | null)[]) =>
    record(
      [migration('a', 'h1', 'h2', 0, 10)],
      [post({ migrate: { host: 'h2' } }, 202), ...statuses.map((status) => post({ confirmResize: null }, status))],
    );
  const found = (cloud: CloudRecord) => breaches(cloud, done('a', 'h2'), ['a'], caps);
  expect(found(asked(204))).toEqual([]);
  // One was lost on its way, the other came too late.
  expect(found(asked(null, 204, 400))).toEqual([]);
  expect(found(asked(204, 204))).toEqual(['a was confirmed or reverted 2 times for 1 attempts on the log']);
});
