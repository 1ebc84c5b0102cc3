import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import MiniSearch from 'minisearch';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { grouped, newestFirst } from './site/pages.ts';
import { renderPage } from './site/render.ts';
import { searchOptions } from './site/search.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };

describe('npm run site', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-site-'));
  const build = () => execFileSync(process.execPath, [join(root, 'scripts/site.ts'), directory], { encoding: 'utf8' });
  const read = (path: string): string => readFileSync(join(directory, path), 'utf8');
  const files = (pattern: string): string[] => globSync(pattern, { cwd: join(directory, version) }).toSorted();
  beforeAll(() => {
    // A version that was written before.
    mkdirSync(join(directory, '0.0.9'));
    writeFileSync(join(directory, '0.0.9/site.js'), '');
    build();
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('every link and anchor of every page leads somewhere in it', () => {
    const pages = files('**/*.html');
    const texts = new Map(pages.map((page) => [page, read(`${version}/${page}`)]));
    const ids = new Map(
      [...texts].map(([page, text]) => [page, new Set([...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))]),
    );
    const dead = [...texts].flatMap(([page, text]) =>
      [...text.matchAll(/ (?:href|src)="([^"]*)"/g)].flatMap(([, link = '']) => {
        if (/^https?:/.test(link)) return [];
        const [path = '', anchor] = link.split('#');
        const target = path === '' ? page : posix.join(posix.dirname(page), path);
        const there = existsSync(join(directory, version, target));
        const known = anchor === undefined || ids.get(target)?.has(anchor) === true;
        return there && known ? [] : [`${page}: ${link}`];
      }),
    );
    expect(dead).toEqual([]);
    expect(pages).toContain('docs/adr/index.html');
    expect(pages).toContain('deploy/policies/index.html');
  });

  it('fetches nothing from elsewhere', () => {
    const own = files('**/*.html').flatMap((page) => {
      const text = read(`${version}/${page}`);
      return [...text.matchAll(/<(?:script|link|img)[^>]*?(?:src|href)="(https?:[^"]*)"/g)].map(([, url]) => url);
    });
    expect(own).toEqual([]);
  });

  it.each([
    ['failover_hosts', 'docs/configuration.html'],
    ['failover_ho', 'docs/configuration.html'],
    ['KronosNoSnapshots', 'docs/runbook.html#kronosnosnapshots'],
    ['pinned cpus', 'docs/real-clouds.html'],
    ['debian package', 'docs/install.html'],
  ])('its search finds %s', (asked, page) => {
    const [, index = ''] = /^globalThis\.kronosIndex = (.*);$/m.exec(read(`${version}/index.js`)) ?? [];
    const search = MiniSearch.loadJSON(JSON.parse(index) as string, searchOptions);
    const found = search.search(asked).map(({ id }) => id as string);
    expect(
      found.slice(0, 5).some((id) => id.startsWith(page)),
      found.slice(0, 8).join('\n'),
    ).toBe(true);
  });

  it('leads to the other versions, and first to the newest', () => {
    expect(read('versions.js')).toBe(`globalThis.kronosVersions = ["${version}","0.0.9"];\n`);
    expect(read('index.html')).toContain(`url=${version}/index.html`);
    expect(newestFirst(['1.0.0-rc.1', '0.9.0', '1.0.0', '0.10.0'])).toEqual(['1.0.0', '1.0.0-rc.1', '0.10.0', '0.9.0']);
  });

  it('is the same bytes when it is made again', () => {
    const all = () =>
      files('**/*')
        .filter((file) => statSync(join(directory, version, file)).isFile())
        .map((file) => [file, readFileSync(join(directory, version, file), 'base64')]);
    const before = all();
    build();
    expect(all()).toEqual(before);
  });
});

describe('a page of the site', () => {
  it('has the anchors of GitHub, links to pages of the site, and placeholders as they are written', () => {
    const page = renderPage(
      'docs/a.md',
      '# A `b_c` & [d](e.md)\n\n## Twice\n\n## Twice\n\n[in](../libs/x/README.md#y) <agg> <!-- no -->\n\n![p](q.png)\n',
    );
    expect(page.html).toContain('<h1 id="a-b_c--d">');
    expect(page.html).toContain('<h2 id="twice-1">');
    expect(page.html).toContain('<a href="../libs/x/index.html#y">in</a> &lt;agg&gt; ');
    expect(page.html).not.toContain('<!--');
    expect(page.links).toEqual(['docs/e.md', 'libs/x/README.md', 'docs/q.png']);
    expect(page.sections.map(({ id }) => id)).toEqual([
      'docs/a.html#a-b_c--d',
      'docs/a.html#twice',
      'docs/a.html#twice-1',
    ]);
  });

  it('of docs/ without a place in the menu is refused', () => {
    expect(() => grouped(['README.md', 'docs/new.md'])).toThrow("no group of the site's menu has docs/new.md");
  });
});
