/** The views of the page: its own, and those of the console with their libraries, as modules that `boot.js` links. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { posix } from 'node:path';
import { timesScript } from '@kronos/browser-core';

/** Names of modules are paths in the repository. */
const ROOT = new URL('../../../', import.meta.url);
const PAGE = 'libs/evidence/page';
const CONSOLE = 'services/ledger/src/console';
const ENTRY = `${PAGE}/view.js`;
/** Modules that another one stands for: the page has no ledger, and its core is a part of its own. */
const IN_PLACE: Readonly<Record<string, string>> = {
  [`${CONSOLE}/api.js`]: `${PAGE}/api.js`,
  [`${PAGE}/lib/lit-html.js`]: `${CONSOLE}/lib/lit-html.js`,
};
const CORE = `${CONSOLE}/core.js`;
const TIMES = `${CONSOLE}/times.js`;
/** The console starts it by its address. */
const WORKER = `${CONSOLE}/deciderWorker.js`;

/** As the console finds them. */
const packages = createRequire(new URL('services/ledger/package.json', ROOT));
const folderOf = (file: string): string => file.slice(0, file.lastIndexOf('/') + 1);

function sourceOf(name: string): string {
  if (name === TIMES) return timesScript();
  const library = name.startsWith(`${CONSOLE}/lib/`) ? name.slice(`${CONSOLE}/lib/`.length) : null;
  const path =
    library === null
      ? new URL(name, ROOT)
      : library === 'uplot.js'
        ? `${folderOf(packages.resolve('uplot'))}uPlot.esm.js`
        : `${folderOf(packages.resolve('lit-html')).replace(/node\/$/, '')}${library}`;
  // Packages refer to source maps that are not there.
  return readFileSync(path, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');
}

/** As in boot.js. */
const IMPORT = /((?:\bfrom|\bimport)\s*)(["'])(\.{1,2}\/[^"']+)\2/g;

/** The modules by name, with what stands for what, as JSON. */
export function viewModules(): string {
  const modules: Record<string, string> = {};
  const add = (name: string): void => {
    if (name in modules || name === CORE) return;
    const text = sourceOf(name);
    modules[name] = text;
    for (const [, , , spec = ''] of text.matchAll(IMPORT)) {
      const asked = posix.join(posix.dirname(name), spec);
      add(IN_PLACE[asked] ?? asked);
    }
  };
  add(ENTRY);
  add(WORKER);
  return JSON.stringify({ entry: ENTRY, worker: WORKER, core: CORE, inPlace: IN_PLACE, modules });
}

/** The console's styles, and what the page has beside them. */
export const viewStyle = (): string =>
  [
    ...[`${CONSOLE}/tokens.css`, `${CONSOLE}/console.css`, `${PAGE}/style.css`].map((name) => new URL(name, ROOT)),
    `${folderOf(packages.resolve('uplot'))}uPlot.min.css`,
  ]
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
