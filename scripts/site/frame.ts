/** The frame around the text of a page: the menu, the search field, the versions. Pure. */
import { posix } from 'node:path';
import { escaped } from '../../libs/replay/src/markup.ts';

export type Menu = readonly {
  readonly title: string;
  readonly pages: readonly { readonly path: string; readonly title: string }[];
}[];

type Framed = {
  /** Path on the site, from the directory of its version. */
  readonly path: string;
  readonly title: string;
  readonly html: string;
  readonly menu: Menu;
  readonly version: string;
};

export function wholePage({ path, title, html, menu, version }: Framed): string {
  const to = (target: string): string => posix.relative(posix.dirname(path), target);
  const groups = menu.map(({ title: group, pages }) => {
    const here = pages.some((page) => page.path === path);
    const items = pages.map(
      (page) =>
        `<li><a href="${escaped(to(page.path))}"${page.path === path ? ' aria-current="page"' : ''}>${escaped(page.title)}</a></li>`,
    );
    // People read the other groups first: they are open on every page.
    const open = here || group !== 'Develop' ? ' open' : '';
    return `<details${open}><summary>${escaped(group)}</summary><ul>${items.join('')}</ul></details>`;
  });
  const up = posix.relative(posix.dirname(path), '.');
  return `<!doctype html>
<html lang="en" data-root="${up === '' ? '.' : up}" data-version="${escaped(version)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === 'Kronos' ? title : `${escaped(title)} · Kronos`}</title>
<link rel="stylesheet" href="${to('site.css')}">
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
<header>
<a class="name" href="${to('index.html')}">Kronos</a>
<a class="to-pages" href="#pages">Pages</a>
<label class="versions">version <select id="versions" aria-label="version"><option>${escaped(version)}</option></select></label>
<label class="search"><input id="query" type="search" placeholder="Search (/)" aria-label="Search the documentation" autocomplete="off"></label>
</header>
<ol id="found" aria-live="polite" hidden></ol>
<main id="text">
${html}</main>
<nav id="pages" aria-label="Pages">${groups.join('\n')}</nav>
<script src="${to('../versions.js')}"></script>
<script src="${to('minisearch.js')}"></script>
<script src="${to('search.js')}"></script>
<script src="${to('site.js')}"></script>
</body>
</html>
`;
}

export function pageOfDirectory(
  directory: string,
  entries: readonly { readonly name: string; readonly path: string }[],
): string {
  const items = entries.map(
    ({ name, path }) => `<li><a href="${escaped(path)}"><code>${escaped(name)}</code></a></li>`,
  );
  return `<h1>${escaped(directory)}</h1>\n<ul>${items.join('\n')}</ul>\n`;
}
