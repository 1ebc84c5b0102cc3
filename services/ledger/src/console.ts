import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { coreScript, timesScript } from '@kronos/browser-core';
import { type HttpServer, send, sendTagged } from '@kronos/telemetry';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/** The files of the console's libraries, as they come in their packages. */
const lit = import.meta.resolve('lit-html').replace(/\/(node\/)?lit-html\.js$/, '/');
const uplot = new URL('./', import.meta.resolve('uplot')).href;
const libraries: Readonly<Record<string, string>> = {
  'lit-html.js': `${lit}lit-html.js`,
  'directive.js': `${lit}directive.js`,
  'directive-helpers.js': `${lit}directive-helpers.js`,
  'async-directive.js': `${lit}async-directive.js`,
  'directives/repeat.js': `${lit}directives/repeat.js`,
  'directives/ref.js': `${lit}directives/ref.js`,
  'uplot.js': `${uplot}uPlot.esm.js`,
  'uplot.css': `${uplot}uPlot.min.css`,
};

/** The console's modules that are the code of services, too. */
const scripts: Readonly<Record<string, () => string>> = { 'core.js': coreScript, 'times.js': timesScript };

/** The page loads nothing from elsewhere, runs no inline code and cannot be framed. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** Serves the console: static files that read the JSON interface. */
export async function addConsole(http: HttpServer): Promise<void> {
  const directory = new URL('./console/', import.meta.url);
  const own = await readdir(directory, { recursive: true });
  const files = [
    ...own.filter((name) => extname(name) in types).map((name) => [name, new URL(name, directory).href] as const),
    ...Object.entries(libraries).map(([name, url]) => [`lib/${name}`, url] as const),
  ];
  const serve = (path: string, type: string, content: () => Buffer) =>
    http.route(path, (_, response, { pathname }) => {
      response.setHeader('content-security-policy', POLICY);
      response.setHeader('referrer-policy', 'no-referrer');
      if (pathname === path) return sendTagged(response, type, content());
      return send(response, 404, 'application/json; charset=utf-8', '{"error":"not found"}\n');
    });
  for (const [name, url] of files) {
    const type = types[extname(name)] ?? '';
    // Packages refer to source maps that are not served.
    const text = (await readFile(new URL(url), 'utf8')).replace(/^\/\/# sourceMappingURL=.*$/m, '');
    // Bytes, not text: nothing in a file is a secret, and a password that is a common word must not change a script.
    const content = Buffer.from(text);
    serve(`/console/${name}`, type, () => content);
    if (name === 'index.html') serve('/', type, () => content);
  }
  for (const [name, script] of Object.entries(scripts)) {
    // Made when it is first asked for: few pages need the core.
    let made: Buffer | undefined;
    serve(`/console/${name}`, types['.js'] ?? '', () => {
      made ??= Buffer.from(script());
      return made;
    });
  }
}
