import { readFile } from 'node:fs/promises';
import { type HttpServer, send } from '@kronos/telemetry';

/** The files of the console, with the path that each is served at. */
const FILES = [
  { path: '/', file: 'index.html', type: 'text/html; charset=utf-8' },
  { path: '/console/console.js', file: 'console.js', type: 'text/javascript; charset=utf-8' },
  { path: '/console/chart.js', file: 'chart.js', type: 'text/javascript; charset=utf-8' },
  { path: '/console/console.css', file: 'console.css', type: 'text/css; charset=utf-8' },
] as const;

/** The page loads nothing from elsewhere and cannot be framed. */
const POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** Serves the console: static files that read the JSON interface. */
export async function addConsole(http: HttpServer): Promise<void> {
  for (const { path, file, type } of FILES) {
    const body = await readFile(new URL(`./console/${file}`, import.meta.url));
    http.route(path === '/' ? '/index.html' : path, (_, response) => {
      response.setHeader('content-security-policy', POLICY);
      send(response, 200, type, body);
    });
    if (path === '/')
      http.route('/', (_, response, url) => {
        response.setHeader('content-security-policy', POLICY);
        if (url.pathname === '/') send(response, 200, type, body);
        else send(response, 404, 'application/json; charset=utf-8', '{"error":"not found"}\n');
      });
  }
}
