import { expect, it } from 'vitest';
import { BadAnswer } from './errors.ts';
import { MAX_PAGES, MAX_ROWS, Pages } from './paging.ts';

const servers = { service: 'nova', url: '/servers/detail' };
const thrown = (run: () => void): unknown => {
  try {
    run();
  } catch (error) {
    return error;
  }
  return null;
};

it('acts: a list whose markers never come again ends after the most pages, with its name, its size and what to do', () => {
  const pages = new Pages(servers);
  for (let page = 1; page < MAX_PAGES; page++) pages.follow(2 * page, `id-${page}`);
  const error = thrown(() => pages.follow(2 * MAX_PAGES, 'id-last'));
  expect(error).toBeInstanceOf(BadAnswer);
  expect(String(error)).toMatch(
    /GET \/servers\/detail: .*does not end after 10000 pages with 20000 rows, .*the last marker is id-last\. .*endpoint behind the proxy/,
  );
});

it('acts: a list of more rows than any cloud has', () => {
  const pages = new Pages(servers);
  pages.follow(MAX_ROWS, 'a');
  expect(String(thrown(() => pages.follow(MAX_ROWS + 1, 'b')))).toContain('after 2 pages with 500001 rows');
  expect(
    thrown(() => new Pages({ service: 'neutron', url: '/ports', maxRows: 600_000 }).follow(600_000, 'b')),
  ).toBeNull();
});

it('acts: a marker that comes again', () => {
  const pages = new Pages(servers);
  for (const marker of ['a', 'b', 'c']) pages.follow(1, marker);
  expect(String(thrown(() => pages.follow(4, 'b')))).toContain('the page after the marker b again');
});
