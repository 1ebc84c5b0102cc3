import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { HttpListenError } from './errors.ts';
import type { Logger } from './log.ts';
import { METRICS_CONTENT_TYPE, type Metrics } from './metrics.ts';
import { OPENMETRICS_CONTENT_TYPE, wantsOpenMetrics } from './openMetrics.ts';

/** What a readiness check says. */
export type Check = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** A check that has not answered after this long is not passed. */
const CHECK_TIMEOUT_MS = 5000;

export type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => void | Promise<void>;

export interface RouteOptions {
  /** Methods that the handler takes; others are answered with 405. */
  readonly methods?: readonly string[];
}

export interface HttpInput {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  /** Name of the port's option, for the error when it is taken. */
  readonly portOption: string;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface Listening {
  readonly address: string;
  readonly port: number;
  /** `http://127.0.0.1:9781` */
  readonly url: string;
}

/**
 * The small HTTP server of a service: `/healthz` (the process lives), `/readyz` (every named check passes, else 503 with
 * the reasons), `/metrics`, and what the service adds.
 */
export class HttpServer {
  readonly #input: HttpInput;
  readonly #server: Server;
  readonly #checks = new Map<string, () => Check | Promise<Check>>();
  readonly #routes = new Map<string, { readonly handler: Handler; readonly methods: readonly string[] }>();

  constructor(input: HttpInput) {
    this.#input = input;
    this.#server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (request, response) => {
      void this.#serve(request, response);
    });
    this.route('/healthz', (_, response) => sendJson(response, 200, { alive: true }));
    this.route('/readyz', async (_, response) => {
      const { ready, checks } = await this.readiness();
      sendJson(response, ready ? 200 : 503, { ready, checks });
    });
    this.route('/metrics', async ({ headers }, response) => {
      await this.readiness();
      response.setHeader('vary', 'accept');
      const { metrics } = this.#input;
      if (wantsOpenMetrics(headers.accept))
        send(response, 200, OPENMETRICS_CONTENT_TYPE, await metrics.scrape('openmetrics'));
      else send(response, 200, METRICS_CONTENT_TYPE, await metrics.scrape());
    });
  }

  /** Adds a readiness check; the same name replaces the check. A check that throws or hangs has failed. */
  check(name: string, check: () => Check | Promise<Check>): void {
    this.#checks.set(name, check);
  }

  /** Adds a route. A path that ends in `/` takes everything below it; the longest match wins. */
  route(path: string, handler: Handler, { methods = ['GET', 'HEAD'] }: RouteOptions = {}): void {
    this.#routes.set(path, { handler, methods });
  }

  /** Runs every check now. Without checks a service is ready: what it needs is then up to its start. */
  async readiness(): Promise<{ ready: boolean; checks: Record<string, Check> }> {
    const results = await Promise.all(
      [...this.#checks].map(async ([name, check]): Promise<[string, Check]> => [name, await settle(check)]),
    );
    for (const [name, result] of results) this.#input.metrics.instruments.ready.set(result.ok ? 1 : 0, { check: name });
    return { ready: results.every(([, result]) => result.ok), checks: Object.fromEntries(results) };
  }

  /** @throws HttpListenError */
  async listen(): Promise<Listening> {
    const { address, port, portOption } = this.#input;
    await new Promise<void>((resolve, reject) => {
      const failed = (cause: unknown) => reject(new HttpListenError(address, port, portOption, cause));
      this.#server.once('error', failed);
      this.#server.listen(port, address, () => {
        this.#server.off('error', failed);
        resolve();
      });
    });
    const bound = this.#server.address();
    if (bound === null || typeof bound === 'string') throw new HttpListenError(address, port, portOption, null);
    const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
    return { address: bound.address, port: bound.port, url: `http://${host}:${bound.port}` };
  }

  /** Takes no new connection, ends the idle ones at once and the others after a second. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const timer = setTimeout(() => this.#server.closeAllConnections(), 1000);
    await closed;
    clearTimeout(timer);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '/', 'http://service');
    const path = url === null ? null : this.#match(url.pathname);
    const route = path === null ? undefined : this.#routes.get(path);
    response.on('finish', () => {
      const status = `${Math.floor(response.statusCode / 100)}xx` as '2xx';
      this.#input.metrics.instruments.httpRequests.add(1, { route: path ?? 'none', status });
    });
    try {
      if (url === null || route === undefined) sendJson(response, 404, { error: 'not found' });
      else if (!route.methods.includes(request.method ?? '')) {
        response.setHeader('allow', route.methods.join(', '));
        sendJson(response, 405, { error: 'method not allowed' });
      } else await route.handler(request, response, url);
    } catch (error) {
      this.#input.log.error({ err: error, path }, 'a request could not be answered');
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: 'internal error; the log of the service has the reason' });
    }
  }

  #match(pathname: string): string | null {
    if (this.#routes.has(pathname)) return pathname;
    const above = [...this.#routes.keys()].filter((path) => path.endsWith('/') && pathname.startsWith(path));
    return above.toSorted((a, b) => b.length - a.length)[0] ?? null;
  }
}

async function settle(check: () => Check | Promise<Check>): Promise<Check> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Check>((resolve) => {
    const reason = `has not answered within ${CHECK_TIMEOUT_MS / 1000} s`;
    timer = setTimeout(() => resolve({ ok: false, reason }), CHECK_TIMEOUT_MS);
  });
  try {
    return await Promise.race([Promise.try(check), late]);
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
  }
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, 'application/json; charset=utf-8', `${JSON.stringify(body)}\n`);
}

/** Answers with text or bytes, never cached. */
export function send(response: ServerResponse, status: number, type: string, body: string | Uint8Array): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
