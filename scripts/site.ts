// The documentation as a static site, which needs no server and fetches nothing from elsewhere:
//   npm run site -- DIRECTORY
//
// It writes the pages of this version to DIRECTORY/VERSION, and leaves those of other versions there: each page leads to them.
// The same commit gives the same bytes.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import MiniSearch from 'minisearch';
import { type Menu, pageOfDirectory, wholePage } from './site/frame.ts';
import { grouped, newestFirst, pathOnSite } from './site/pages.ts';
import { renderPage } from './site/render.ts';
import { searchOptions } from './site/search.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = process.argv[2];
if (out === undefined || process.argv.length > 3) {
  console.error('kronos: name one directory for the site: npm run site -- DIRECTORY');
  process.exit(2);
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .filter((file) => existsSync(join(root, file)));
const site = resolve(out);
const place = join(site, version);
if (existsSync(place) && !existsSync(join(place, 'site.js'))) {
  console.error(`kronos: ${place} is there and is no site: remove it, or name another directory`);
  process.exit(1);
}
rmSync(place, { recursive: true, force: true });

const write = (path: string, text: string): void => {
  const target = join(place, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
};

const groups = grouped(files);
const sources = groups.flatMap(({ pages }) => pages);
const pages = new Map(sources.map((source) => [source, renderPage(source, readFileSync(join(root, source), 'utf8'))]));
const menu: Menu = groups.map(({ title, pages: of }) => ({
  title,
  pages: of.map((source) => ({ path: pathOnSite(source), title: pages.get(source)?.title ?? source })),
}));

/** Puts what a page links to beside the pages: a file as it is, a directory as a list of what is in it. */
const linked = new Set<string>();
function link(target: string): void {
  if (linked.has(target) || pages.has(target) || pages.has(posix.join(target, 'README.md'))) return;
  linked.add(target);
  if (!existsSync(join(root, target))) throw new Error(`a page links to ${target}, which is not there`);
  if (statSync(join(root, target)).isFile()) {
    mkdirSync(dirname(join(place, target)), { recursive: true });
    cpSync(join(root, target), join(place, target));
    return;
  }
  const below = files.filter((file) => file.startsWith(`${target}/`));
  const names = [...new Set(below.map((file) => file.slice(target.length + 1).split('/')[0] ?? ''))].toSorted();
  for (const name of names) link(posix.join(target, name));
  const entries = names.map((name) => {
    const inner = posix.join(target, name);
    return { name, path: statSync(join(root, inner)).isDirectory() ? `${name}/index.html` : pathOnSite(name) };
  });
  const path = `${target}/index.html`;
  write(path, wholePage({ path, title: target, html: pageOfDirectory(target, entries), menu, version }));
}

for (const { source, title, html, links } of pages.values()) {
  const path = pathOnSite(source);
  write(path, wholePage({ path, title, html, menu, version }));
  for (const target of links) link(target);
}

const search = new MiniSearch(searchOptions);
search.addAll([...pages.values()].flatMap(({ sections }) => sections));
// These are scripts and not JSON: a browser reads no JSON from a file beside the page.
write('index.js', `globalThis.kronosIndex = ${JSON.stringify(JSON.stringify(search))};\n`);
const own = (name: string): string => join(root, 'scripts/site', name);
for (const name of ['site.css', 'site.js']) cpSync(own(name), join(place, name));
write('search.js', stripTypeScriptTypes(readFileSync(own('search.ts'), 'utf8')).replaceAll('export const ', 'const '));
cpSync(join(root, 'node_modules/minisearch/dist/umd/index.js'), join(place, 'minisearch.js'));

const versions = newestFirst(readdirSync(site).filter((name) => existsSync(join(site, name, 'site.js'))));
writeFileSync(join(site, 'versions.js'), `globalThis.kronosVersions = ${JSON.stringify(versions)};\n`);
const [newest = version] = versions;
writeFileSync(
  join(site, 'index.html'),
  `<!doctype html>\n<meta charset="utf-8">\n<title>Kronos</title>\n<meta http-equiv="refresh" content="0; url=${newest}/index.html">\n<a href="${newest}/index.html">Kronos ${newest}</a>\n`,
);
console.log(`${pages.size} pages of version ${version}: ${join(place, 'index.html')}`);
