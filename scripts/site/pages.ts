/** The pages of the site: which files of the project they are, and the links between them. Pure. */
import { posix } from 'node:path';

type Group = { readonly title: string; readonly pages: readonly RegExp[] };

/** The groups of the menu. A page is in the first that names it, in the order of its patterns. */
const GROUPS: readonly Group[] = [
  {
    title: 'Start',
    pages: [/^README\.md$/, /^docs\/tutorial\.md$/, /^docs\/concepts\.md$/, /^docs\/(proof|faq)\.md$/],
  },
  {
    title: 'Install',
    pages: [/^docs\/install\.md$/, /^deploy\/[^/]+\/README\.md$/, /^docs\/releasing\.md$/, /^docs\/transcripts\//],
  },
  {
    title: 'Operate',
    pages: [
      /^docs\/(acting|cells|real-clouds|notifications)\.md$/,
      /^docs\/(runbook|troubleshooting)\.md$/,
      /^docs\/(observability|nats|sizing|coming-from-watcher)\.md$/,
    ],
  },
  {
    title: 'Reference',
    pages: [
      /^docs\/(configuration|cli|codes|telemetry)\.md$/,
      /^docs\/(glossary|compatibility)\.md$/,
      /^(CHANGELOG|SECURITY)\.md$/,
    ],
  },
  {
    title: 'Develop',
    pages: [
      /^(CONTRIBUTING|CODE_OF_CONDUCT)\.md$/,
      /^docs\/adr\/README\.md$/,
      /^docs\/adr\//,
      /^services\//,
      /^libs\//,
      /^test\//,
    ],
  },
];

/** A path of the project as a path of the site: `docs/install.md` is `docs/install.html`, `deploy/nats/README.md` `deploy/nats/index.html`. */
export const pathOnSite = (path: string): string =>
  path.replace(/(^|\/)README\.md$/, '$1index.html').replace(/\.md$/, '.html');

/** The pages among the files of the project, by group. Throws on a page of docs/ that is in no group. */
export function grouped(files: readonly string[]): { readonly title: string; readonly pages: readonly string[] }[] {
  const pages = files.filter((file) => file.endsWith('.md')).toSorted();
  const place = (page: string): readonly [number, number] => {
    for (const [group, { pages: patterns }] of GROUPS.entries()) {
      const order = patterns.findIndex((pattern) => pattern.test(page));
      if (order !== -1) return [group, order];
    }
    return [-1, -1];
  };
  const places = new Map(pages.map((page) => [page, place(page)]));
  const nowhere = pages.filter((page) => page.startsWith('docs/') && places.get(page)?.[0] === -1);
  if (nowhere.length > 0)
    throw new Error(`no group of the site's menu has ${nowhere.join(', ')}: add it to scripts/site/pages.ts`);
  return GROUPS.map(({ title }, group) => ({
    title,
    pages: pages
      .filter((page) => places.get(page)?.[0] === group)
      .toSorted((a, b) => (places.get(a)?.[1] ?? 0) - (places.get(b)?.[1] ?? 0)),
  }));
}

/** Where a link of a page leads on the site, from that page; `wanted` gets the path in the project, '' for a link within the page. */
export function linkOnSite(page: string, link: string, wanted: (path: string) => void): string {
  if (/^[a-z]+:/.test(link)) return link;
  const [path = '', anchor] = link.split('#');
  const hash = anchor === undefined ? '' : `#${anchor}`;
  if (path === '') return hash;
  const target = posix.normalize(posix.join(posix.dirname(page), path)).replace(/\/$/, '');
  wanted(target);
  const isPageOrFile = /\.[a-z0-9]+$/i.test(target);
  const onSite = isPageOrFile ? pathOnSite(target) : `${target}/index.html`;
  return `${posix.relative(posix.dirname(pathOnSite(page)), onSite)}${hash}`;
}

/** The name by which a heading is linked, as GitHub makes it; `taken` keeps those of the page. */
export function anchorOf(heading: string, taken: Map<string, number>): string {
  const plain = heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
  const before = taken.get(plain) ?? 0;
  taken.set(plain, before + 1);
  return before === 0 ? plain : `${plain}-${before}`;
}

/** Versions of Kronos, the newest first; one before its release stands behind it. */
export function newestFirst(versions: readonly string[]): string[] {
  const parts = (version: string): readonly [readonly number[], string] => {
    const [numbers = '', before = ''] = version.split('-', 2);
    return [numbers.split('.').map(Number), before];
  };
  return versions.toSorted((a, b) => {
    const [[numbersA, beforeA], [numbersB, beforeB]] = [parts(a), parts(b)];
    for (const [i, number] of numbersA.entries()) {
      const other = numbersB[i] ?? 0;
      if (number !== other) return other - number;
    }
    if (beforeA === beforeB) return 0;
    if (beforeA === '' || beforeB === '') return beforeA === '' ? -1 : 1;
    return beforeA < beforeB ? 1 : -1;
  });
}
