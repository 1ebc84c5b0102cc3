import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type FailingPart, parseJson } from '@kronos/contracts';
import { errorText } from '@kronos/contracts/words';
import { HttpListenError } from './errors.ts';
import { hostGuard } from './hosts.ts';
import type { Logger } from './log.ts';
import { METRICS_CONTENT_TYPE, type Metrics } from './metrics.ts';
import { OPENMETRICS_CONTENT_TYPE, wantsOpenMetrics } from './openMetrics.ts';
import { send, sendBusy, sendJson } from './replies.ts';

/** The result of a readiness check. `parts`: what fails, for programs; `reason` is for people. */
export type Check =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly parts?: readonly FailingPart[] };

/**
 * A check that fails while there are failing parts.
 *
 * @param tell what the reason says of a part; default: its name and its text
 */
export const checkOf = (
  parts: readonly FailingPart[],
  tell: (part: FailingPart) => string = ({ part, text }) => `${part}: ${text}`,
): Check => (parts.length === 0 ? { ok: true } : { ok: false, reason: parts.map(tell).join('; '), parts });

/** A check that takes longer than this fails. */
const CHECK_TIMEOUT_MS = 5000;

/** `body`: the parsed JSON body of the request; undefined: it has none. */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  body: unknown,
) => void | Promise<void>;

export interface RouteOptions {
  /** Methods that the handler takes; others are answered with 405. */
  readonly methods?: readonly string[];
  /** Maximum bytes of the JSON body that a request may carry, except with GET and HEAD. Default 0: no body. */
  readonly bodyBytes?: number;
  /** The answer goes on until the handler or the client ends it: it counts among the `streams` and has no time limit. */
  readonly stream?: boolean;
}

/** Limits of one process for all its clients. */
export interface HttpLimits {
  /** Requests answered at once. */
  readonly requests: number;
  /** Requests of `/healthz`, `/readyz` and `/metrics` answered at once, in addition: they are answered under load too. */
  readonly probes: number;
  /** Answers that go on (server-sent events) at once, beside the others. */
  readonly streams: number;
  readonly connections: number;
  /** Length of path and query. */
  readonly urlBytes: number;
  /** Request line and headers together. */
  readonly headerBytes: number;
  /** Limits for a client to send the headers, and the whole request. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** Limit of an answer, until the client has all of it. */
  readonly answerMs: number;
}

const defaultHttpLimits: HttpLimits = {
  requests: 64,
  probes: 16,
  streams: 64,
  connections: 256,
  urlBytes: 2048,
  headerBytes: 8192,
  headersMs: 5_000,
  requestMs: 10_000,
  answerMs: 30_000,
};

/** How deep a request body may nest, and how many values it may have. */
const BODY_DEPTH = 8;
const BODY_VALUES = 1_000;

const PROBES: readonly string[] = ['/healthz', '/readyz', '/metrics'];

export interface HttpInput {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  /** Name of the port's option, for the error when it is taken. */
  readonly portOption: string;
  /** Names in the `Host` header that are answered, beside loopback names and `address`. */
  readonly allowedHosts?: readonly string[];
  readonly limits?: Partial<HttpLimits>;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface Listening {
  readonly address: string;
  readonly port: number;
  /** `http://127.0.0.1:9781` */
  readonly url: string;
}

type Kind = 'requests' | 'probes' | 'streams';
type Route = {
  readonly handler: Handler;
  readonly methods: readonly string[];
  readonly bodyBytes: number;
  readonly kind: Kind;
};

/** Why a request is refused. */
type Refusal = { readonly status: number; readonly error: string };

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/**
 * The small HTTP server of a service: `/healthz` (the process lives), `/readyz` (every named check passes, else 503 with
 * the reasons), `/metrics`, and what the service adds.
 */
export class HttpServer {
  readonly #input: HttpInput;
  readonly #server: Server;
  readonly #checks = new Map<string, () => Check | Promise<Check>>();
  readonly #routes = new Map<string, Route>();
  readonly #limits: HttpLimits;
  readonly #allowed: ReturnType<typeof hostGuard>;
  /** Requests that are being answered. */
  readonly #running = { requests: 0, probes: 0, streams: 0 };

  constructor(input: HttpInput) {
    this.#input = input;
    this.#limits = { ...defaultHttpLimits, ...input.limits };
    this.#allowed = hostGuard(input.address, input.allowedHosts ?? []);
    const { requestMs, headersMs, headerBytes, answerMs, connections } = this.#limits;
    const options = {
      requestTimeout: requestMs,
      headersTimeout: headersMs,
      maxHeaderSize: headerBytes,
      connectionsCheckingInterval: Math.min(1_000, headersMs),
    };
    this.#server = createServer(options, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.maxConnections = connections;
    // A client that neither sends nor reads is cut off.
    this.#server.setTimeout(answerMs);
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
  route(
    path: string,
    handler: Handler,
    { methods = ['GET', 'HEAD'], bodyBytes = 0, stream = false }: RouteOptions = {},
  ): void {
    const kind = stream ? 'streams' : PROBES.includes(path) ? 'probes' : 'requests';
    this.#routes.set(path, { handler, methods, bodyBytes, kind });
  }

  /** Runs every check now. A service without checks is ready. */
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
    const target = request.url ?? '';
    const { url, path, route } = this.#routeOf(target);
    response.on('finish', () => {
      const status = `${Math.floor(response.statusCode / 100)}xx` as '2xx';
      this.#input.metrics.instruments.httpRequests.add(1, { route: path ?? 'none', status });
    });
    const withBody = hasBody(request);
    const refused = this.#refusal(request, target);
    // A body is not read, unless the route takes it.
    if (withBody || refused !== null) response.setHeader('connection', 'close');
    if (refused !== null) {
      sendJson(response, refused.status, { error: refused.error });
      return;
    }
    if (url === null || route === undefined) {
      sendJson(response, 404, { error: 'not found' });
      return;
    }
    if (!route.methods.includes(request.method ?? '')) {
      response.setHeader('allow', route.methods.join(', '));
      sendJson(response, 405, { error: 'method not allowed' });
      return;
    }
    const unread = withBody ? bodyRefusal(request, route) : null;
    if (unread !== null) {
      sendJson(response, unread.status, { error: unread.error });
      return;
    }
    if (this.#enter(route.kind, response)) await this.#handle(route, request, response, { url, withBody });
    else sendBusy(response);
  }

  #routeOf(target: string): {
    readonly url: URL | null;
    readonly path: string | null;
    readonly route: Route | undefined;
  } {
    const url = target.startsWith('/') ? URL.parse(target, 'http://service') : null;
    const path = url === null ? null : this.#match(url.pathname);
    return { url, path, route: path === null ? undefined : this.#routes.get(path) };
  }

  async #handle(
    route: Route,
    request: IncomingMessage,
    response: ServerResponse,
    { url, withBody }: { readonly url: URL; readonly withBody: boolean },
  ): Promise<void> {
    try {
      const body = withBody ? await readBody(request, route.bodyBytes) : NO_BODY;
      if (body === null) return;
      if ('error' in body) {
        sendJson(response, body.status, { error: body.error });
        return;
      }
      response.removeHeader('connection');
      await route.handler(request, response, url, body.value);
    } catch (error) {
      this.#input.log.error({ err: error, path: this.#match(url.pathname) }, 'a request could not be answered');
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: 'internal error; the log of the service has the reason' });
    }
  }

  /** Why a request is refused before it is routed; null when it is not. */
  #refusal({ headers, socket }: IncomingMessage, target: string): Refusal | null {
    if (!this.#allowed(headers.host, socket.localAddress))
      return { status: 421, error: 'the Host header names no host of this service; see [http] allowed_hosts' };
    const { urlBytes } = this.#limits;
    if (Buffer.byteLength(target) > urlBytes) return { status: 414, error: `the URL is longer than ${urlBytes} bytes` };
    return null;
  }

  /** Counts a request until its answer is sent; false when as many as allowed are being answered. */
  #enter(kind: Kind, response: ServerResponse): boolean {
    if (this.#running[kind] >= this.#limits[kind]) return false;
    this.#running[kind]++;
    const late = kind === 'streams' ? undefined : setTimeout(() => response.destroy(), this.#limits.answerMs);
    response.once('close', () => {
      clearTimeout(late);
      this.#running[kind]--;
    });
    return true;
  }

  #match(pathname: string): string | null {
    if (this.#routes.has(pathname)) return pathname;
    const above = [...this.#routes.keys()].filter((path) => path.endsWith('/') && pathname.startsWith(path));
    return above.toSorted((a, b) => b.length - a.length)[0] ?? null;
  }
}

/** Why the body of a request is not read; null when it is. */
function bodyRefusal({ headers, method }: IncomingMessage, { bodyBytes }: Route): Refusal | null {
  if (bodyBytes === 0 || method === 'GET' || method === 'HEAD')
    return { status: 413, error: 'this request takes no body' };
  if (Number(headers['content-length'] ?? 0) > bodyBytes) return tooLong(bodyBytes);
  const isJson = /^application\/json *(; *charset=utf-8 *)?$/i.test(headers['content-type'] ?? '');
  return isJson && headers['content-encoding'] === undefined
    ? null
    : { status: 415, error: 'the body must be JSON: Content-Type application/json, without Content-Encoding' };
}

const tooLong = (bytes: number): Refusal => ({ status: 413, error: `the body is longer than ${bytes} bytes` });

const NO_BODY = { value: undefined };

/** The body of a request, read within the limits; null: the client did not send all of it. */
async function readBody(
  request: IncomingMessage,
  bytes: number,
): Promise<{ readonly value: unknown } | Refusal | null> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > bytes) return tooLong(bytes);
      parts.push(part);
    }
  } catch {
    return null;
  }
  const parsed = parseJson(Buffer.concat(parts), { bytes, depth: BODY_DEPTH, values: BODY_VALUES });
  return parsed.ok ? { value: parsed.value } : { status: 400, error: parsed.problem };
}

async function settle(check: () => Check | Promise<Check>): Promise<Check> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const result = check();
    if (!(result instanceof Promise)) return result;
    const late = new Promise<Check>((resolve) => {
      const reason = `has not answered within ${CHECK_TIMEOUT_MS / 1000} s`;
      timer = setTimeout(() => resolve({ ok: false, reason }), CHECK_TIMEOUT_MS);
    });
    return await Promise.race([result, late]);
  } catch (error) {
    return { ok: false, reason: errorText(error) };
  } finally {
    clearTimeout(timer);
  }
}
