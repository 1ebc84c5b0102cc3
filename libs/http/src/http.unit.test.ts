import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { failure, listen, type Play, type Played, selfSigned, serve, sleepless } from '../testing/index.ts';
import { BadAnswer, BadHttpOptions, Timeout, Unreachable } from './errors.ts';
import { type CallReport, createHttp, type Http, type HttpCall, type HttpOptions, timeLimits } from './http.ts';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function play(script: Play, tls?: Parameters<typeof serve>[1]): Promise<Played> {
  const server = await serve(script, tls);
  closing.push(() => server.close());
  return server;
}

function client(options: HttpOptions = {}): Http {
  const http = createHttp({ clock: sleepless(), ...options });
  closing.push(() => http.close());
  return http;
}

const directory = mkdtempSync(join(tmpdir(), 'kronos-http-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};

const get = (url: string, more: Partial<HttpCall> = {}): HttpCall => ({
  service: 'nova',
  method: 'GET',
  url,
  route: '/x',
  ...more,
});
const post = (url: string, more: Partial<HttpCall> = {}): HttpCall => get(url, { method: 'POST', json: {}, ...more });
const NEVER_AGAIN = { connection: { retries: 0, backoffMs: 0 } };

/** The port of a server that is closed after the test. */
async function portOf(server: Server): Promise<number> {
  closing.push(() => void server.close());
  return listen(server);
}

describe('an answer', () => {
  it('is returned whatever its status, with lower-case headers', async () => {
    const server = await play((_, response) => {
      response.writeHead(418, { 'X-Openstack-Request-Id': 'req-1', 'Set-Cookie': ['a', 'b'] }).end('no');
    });
    expect(await client().call(get(server.url))).toEqual({
      status: 418,
      headers: expect.objectContaining({ 'x-openstack-request-id': 'req-1', 'set-cookie': 'a, b' }),
      text: 'no',
    });
  });

  it('and its request tell of the credentials in their headers, and of nothing else', async () => {
    const server = await play((_, response) => void response.writeHead(201, { 'x-subject-token': 'given' }).end());
    const seen: string[] = [];
    const http = client({ onCredential: (value) => void seen.push(value) });
    const headers = { Authorization: 'Bearer of-mine', 'x-auth-token': 'asked', accept: 'application/json' };
    await http.call(post(server.url, { json: { a: 1 }, headers }));
    expect(seen).toEqual(['of-mine', 'asked', 'given']);
  });

  it('follows a request with its JSON or form body and its own and the injected headers', async () => {
    const server = await play((_, response) => void response.end());
    const http = client({ injectHeaders: () => ({ traceparent: '00-1-2-01' }), userAgent: 'kronos/1' });
    await http.call(post(server.url, { json: { a: 1 }, headers: { 'x-auth-token': 't' } }));
    const form = { query: 'a b&c' };
    await http.call({ service: 'prometheus', method: 'POST', url: server.url, route: '/', form });
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      body: '{"a":1}',
      headers: {
        'content-type': 'application/json',
        'x-auth-token': 't',
        traceparent: '00-1-2-01',
        'user-agent': 'kronos/1',
      },
    });
    expect(server.seen[1]).toMatchObject({
      body: 'query=a+b%26c',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  });

  it('that is larger than the limit is refused, and not asked for again', async () => {
    const server = await play((_, response) => void response.end('x'.repeat(2000)));
    const error = await failure(client({ maxBodyBytes: 1000 }).call(get(server.url)));
    expect(error).toBeInstanceOf(BadAnswer);
    expect(error).toHaveProperty('message', expect.stringContaining('larger than 1000 bytes'));
    expect(server.seen).toHaveLength(1);
  });
});

describe('an idempotent call', () => {
  it.each([429, 502, 503, 504])('is sent again after %i', async (status) => {
    const server = await play((_, response, number) => void response.writeHead(number < 3 ? status : 200).end('ok'));
    expect(await client().call(get(server.url))).toMatchObject({ status: 200, text: 'ok' });
    expect(server.seen).toHaveLength(3);
  });

  it.each([400, 401, 404, 409, 500])('is not sent again after %i', async (status) => {
    const server = await play((_, response) => void response.writeHead(status).end());
    expect(await client().call(get(server.url))).toMatchObject({ status });
    expect(server.seen).toHaveLength(1);
  });

  it('returns the last answer when the retries are used up', async () => {
    const server = await play((_, response, number) => void response.writeHead(503).end(`try ${number}`));
    const retry = { status: { retries: 2, backoffMs: 1 } };
    expect(await client({ retry }).call(get(server.url))).toMatchObject({ status: 503, text: 'try 3' });
  });

  it('is sent again when the connection breaks before or within the answer', async () => {
    const server = await play((_, response, number) => {
      if (number === 1) response.socket?.destroy();
      else if (number === 2)
        response.writeHead(200, { 'content-length': 100 }).write('half', () => response.socket?.destroy());
      else response.end('whole');
    });
    expect(await client().call(get(server.url))).toMatchObject({ status: 200, text: 'whole' });
    expect(server.seen).toHaveLength(3);
  });

  it('counts connection failures and refused statuses apart', async () => {
    const server = await play((_, response, number) => {
      if (number % 2 === 1) response.socket?.destroy();
      else response.writeHead(503).end();
    });
    const retry = { connection: { retries: 2, backoffMs: 1 }, status: { retries: 2, backoffMs: 1 } };
    expect(await failure(client({ retry }).call(get(server.url)))).toBeInstanceOf(Unreachable);
    expect(server.seen).toHaveLength(5);
  });

  it('may be a POST when it says so', async () => {
    const server = await play((_, response, number) => void response.writeHead(number === 1 ? 503 : 200).end());
    expect(await client().call(post(server.url, { idempotent: true }))).toMatchObject({ status: 200 });
  });

  it('waits with exponential backoff and full jitter between attempts', async () => {
    const server = await play((_, response) => void response.writeHead(503).end());
    const waits: number[] = [];
    await client({
      clock: sleepless((ms) => waits.push(ms)),
      random: () => 0.5,
      retry: { status: { retries: 4, backoffMs: 1000 }, backoffMaxMs: 3000 },
    }).call(get(server.url));
    expect(waits).toEqual([500, 1000, 1500, 1500]);
  });

  it('waits at least as long as Retry-After asks, in seconds or until a date, up to the cap', async () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    const asked = ['7', 'Thu, 01 Jan 2026 00:00:09 GMT', '3600', 'soon'];
    const server = await play((_, response, number) => {
      response.writeHead(429, { 'retry-after': asked[number - 1] ?? '0' }).end();
    });
    const waits: number[] = [];
    await client({
      clock: { ...sleepless((ms) => waits.push(ms)), now: () => now },
      random: () => 0,
      retry: { status: { retries: 4, backoffMs: 1 }, retryAfterMaxMs: 30_000 },
    }).call(get(server.url));
    expect(waits).toEqual([7000, 9000, 30_000, 0]);
  });

  it('does not begin a wait that would pass the total limit', async () => {
    const server = await play((_, response) => void response.writeHead(503, { 'retry-after': '20' }).end('busy'));
    const clock = sleepless(() => expect.unreachable('it slept'));
    const http = client({ limits: { totalMs: 10_000 }, clock });
    expect(await http.call(get(server.url))).toMatchObject({ status: 503, text: 'busy' });
    expect(server.seen).toHaveLength(1);
  });
});

describe('a call that is not idempotent', () => {
  it('is sent exactly once when the connection breaks after it was written, and says that it may have arrived', async () => {
    const server = await play((_, response) => void response.socket?.destroy());
    const error = await failure(client().call(post(server.url)));
    expect(error).toBeInstanceOf(Unreachable);
    expect(error).toMatchObject({ code: 'KRONOS_HTTP_UNREACHABLE', maybeSent: true });
    expect(server.seen).toHaveLength(1);
  });

  it.each([429, 503, 504])('is sent exactly once after %i', async (status) => {
    const server = await play((_, response) => void response.writeHead(status, { 'retry-after': '0' }).end());
    expect(await client().call(post(server.url))).toMatchObject({ status });
    expect(server.seen).toHaveLength(1);
  });

  it('starts on a connection of its own, where others share theirs', async () => {
    const server = await play((_, response) => void response.end());
    const http = client({ connections: 1 });
    for (let i = 0; i < 3; i += 1) await http.call(get(server.url));
    expect(server.connections()).toBe(1);
    for (let i = 0; i < 3; i += 1) await http.call(post(server.url));
    expect(server.connections()).toBe(4);
  });

  it('for a host that does not exist was certainly not sent', async () => {
    const error = await failure(client().call(post('http://nowhere.invalid/')));
    expect(error).toMatchObject({ maybeSent: false });
  });

  it('that found no listener was certainly not sent', async () => {
    const server = await serve((_, response) => void response.end());
    await server.close();
    const error = await failure(client().call(post(server.url)));
    expect(error).toBeInstanceOf(Unreachable);
    expect(error).toMatchObject({ maybeSent: false, url: `${server.url}/` });
  });
});

describe('a call whose sending is checked', () => {
  it('is sent as without the check: a body with its length, or none', async () => {
    const server = await play((_, response) => void response.end('done'));
    const http = client();
    const checkSend = () => null;
    expect(await http.call(post(server.url, { json: { host: 'é' }, checkSend }))).toMatchObject({ text: 'done' });
    expect(await http.call(get(server.url, { method: 'DELETE', checkSend }))).toMatchObject({ text: 'done' });
    expect(server.seen.map(({ method, body }) => [method, body])).toEqual([
      ['POST', '{"host":"é"}'],
      ['DELETE', ''],
    ]);
    expect(server.seen[0]?.headers).toMatchObject({ 'content-length': '13', 'content-type': 'application/json' });
    for (const { headers } of server.seen) expect(headers['transfer-encoding']).toBeUndefined();
  });

  it.each(['POST', 'DELETE'] as const)(
    'leaves no byte of a %s on the connection when it is refused',
    async (method) => {
      const bytes: Buffer[] = [];
      const closed = Promise.withResolvers<void>();
      const silent = createTcpServer((socket) => {
        socket.on('data', (data) => void bytes.push(data));
        socket.on('close', () => closed.resolve()).on('error', () => undefined);
      });
      const url = `http://127.0.0.1:${await portOf(silent)}/`;
      const call = get(url, { method, ...(method === 'POST' ? { json: {} } : {}), checkSend: () => 'too late' });
      expect(await failure(client().call(call))).toMatchObject({ code: 'KRONOS_HTTP_NOT_SENT', reason: 'too late' });
      await closed.promise;
      expect(Buffer.concat(bytes).toString()).toBe('');
    },
  );

  it('is checked when the connection is ready, not before it, also while the event loop was blocked', async () => {
    const own = selfSigned();
    const server = await play((_, response) => void response.end(), own);
    const started = performance.now();
    const checkSend = () => (performance.now() - started > 200 ? 'too late' : null);
    const call = failure(client({ tls: { insecure: true } }).call(post(server.url, { checkSend })));
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400));
    expect(await call).toMatchObject({ code: 'KRONOS_HTTP_NOT_SENT' });
    expect(server.seen).toHaveLength(0);
  });

  it('is certainly not sent when its connection breaks before', async () => {
    const url = `https://127.0.0.1:${await portOf(createTcpServer((socket) => socket.destroy()))}/`;
    expect(await failure(client().call(post(url, { checkSend: () => null })))).toMatchObject({
      code: 'KRONOS_HTTP_UNREACHABLE',
      maybeSent: false,
    });
  });

  it('may have arrived when its connection breaks afterwards', async () => {
    const server = await play((_, response) => void response.socket?.destroy());
    expect(await failure(client().call(post(server.url, { checkSend: () => null })))).toMatchObject({
      maybeSent: true,
    });
  });
});

describe('closing', () => {
  it('breaks off what is under way, which may have arrived; afterwards nothing is sent', async () => {
    const http = client();
    const server = await play(() => void http.close());
    expect(await failure(http.call(post(server.url)))).toMatchObject({
      code: 'KRONOS_HTTP_UNREACHABLE',
      maybeSent: true,
    });
    expect(await failure(http.call(post(server.url)))).toMatchObject({
      code: 'KRONOS_HTTP_UNREACHABLE',
      maybeSent: false,
    });
    expect(server.seen).toHaveLength(1);
  });
});

describe('time limits', () => {
  it('end a call whose headers do not come', async () => {
    const server = await play(() => {});
    const http = client({ limits: { headersMs: 100 }, retry: NEVER_AGAIN });
    const error = await failure(http.call(get(server.url)));
    expect(error).toBeInstanceOf(Timeout);
    expect(error).toMatchObject({ phase: 'headers', limitMs: 100, maybeSent: true });
  });

  it('end a call whose body stops', async () => {
    const server = await play((_, response) => void response.writeHead(200).write('half'));
    const http = client({ limits: { bodyMs: 100 }, retry: NEVER_AGAIN });
    expect(await failure(http.call(get(server.url)))).toMatchObject({ code: 'KRONOS_HTTP_TIMEOUT', phase: 'body' });
  });

  it('end a connection that is not made, before anything is sent', async () => {
    const port = await portOf(createTcpServer(() => {}));
    const error = await failure(client({ limits: { connectMs: 100 } }).call(post(`https://127.0.0.1:${port}/`)));
    expect(error).toMatchObject({ phase: 'connect', maybeSent: false });
  });

  it('leave room for two attempts when only their own limit is given', () => {
    expect(timeLimits()).toMatchObject({ headersMs: 60_000, totalMs: 190_000 });
    expect(timeLimits({ headersMs: 1_000 }).totalMs).toBe(180_000);
    expect(timeLimits({ headersMs: 600_000 }).totalMs).toBeGreaterThanOrEqual(1_200_000);
    expect(timeLimits({ headersMs: 600_000, totalMs: 5_000 }).totalMs).toBe(5_000);
  });

  it('end a call with all its retries', async () => {
    const server = await play((_, response) => void response.writeHead(200).write('half'));
    const error = await failure(client({ limits: { totalMs: 150 } }).call(get(server.url)));
    expect(error).toMatchObject({ phase: 'total', limitMs: 150 });
    expect(server.seen).toHaveLength(1);
  });
});

describe('the signal of the caller', () => {
  it('stops a call before it is sent', async () => {
    const server = await play((_, response) => void response.end());
    const reason = new Error('going down');
    expect(await failure(client().call(get(server.url, { signal: AbortSignal.abort(reason) })))).toBe(reason);
    expect(server.seen).toHaveLength(0);
  });

  it('stops a call that waits for its answer, with its reason and without a retry', async () => {
    const controller = new AbortController();
    const reason = new Error('going down');
    const server = await play(() => controller.abort(reason));
    expect(await failure(client().call(get(server.url, { signal: controller.signal })))).toBe(reason);
    expect(server.seen).toHaveLength(1);
  });

  it('stops a call that waits for its next attempt', async () => {
    const controller = new AbortController();
    const reason = new Error('going down');
    const server = await play((_, response) => {
      response.writeHead(503, { 'retry-after': '20' }).end();
    });
    const http = createHttp({ onCall: () => setImmediate(() => controller.abort(reason)) });
    closing.push(() => http.close());
    expect(await failure(http.call(get(server.url, { signal: controller.signal })))).toBe(reason);
    expect(server.seen).toHaveLength(1);
  });
});

describe('the hook', () => {
  it('hears of every attempt by its route, also of those without an answer', async () => {
    const server = await play((_, response, number) => {
      if (number === 1) response.socket?.destroy();
      else response.writeHead(number === 2 ? 503 : 200).end();
    });
    const reports: CallReport[] = [];
    let at = 0;
    const clock = { ...sleepless(), monotonic: () => (at += 5) };
    const http = client({ onCall: (report) => reports.push(report), clock });
    await http.call(get(`${server.url}/servers/1/action`, { route: '/servers/{id}/action' }));
    const common = { service: 'nova', method: 'GET', route: '/servers/{id}/action', durationMs: 5 };
    expect(reports).toEqual([
      { ...common, attempt: 1, status: undefined, error: 'KRONOS_HTTP_UNREACHABLE' },
      { ...common, attempt: 2, status: 503 },
      { ...common, attempt: 3, status: 200 },
    ]);
  });

  it('cannot break a call', async () => {
    const server = await play((_, response) => void response.end());
    const http = client({
      onCall: () => {
        throw new Error('telemetry');
      },
    });
    expect(await http.call(get(server.url))).toMatchObject({ status: 200 });
  });
});

describe('TLS', () => {
  const own = selfSigned();
  const secured = (more = {}) => play((_, response) => void response.end('secret'), { ...own, ...more });

  it('refuses a certificate that no CA signed, before anything is sent', async () => {
    const server = await secured();
    const error = await failure(client().call(post(server.url)));
    expect(error).toMatchObject({ maybeSent: false });
    // Advice for people who configure Kronos, not for those who start Node.
    expect(String(error)).toContain('name the CA that signed it (cacert in clouds.yaml');
    expect(String(error)).not.toMatch(/Node\.js|--use-/);
    expect(server.seen).toHaveLength(0);
  });

  it('accepts it by caFile, or without any check by insecure', async () => {
    const server = await secured();
    const caFile = file('ca.pem', own.cert);
    expect(await client({ tls: { caFile } }).call(get(server.url))).toMatchObject({ text: 'secret' });
    expect(await client({ tls: { insecure: true } }).call(get(server.url))).toMatchObject({ text: 'secret' });
  });

  it('shows a client certificate', async () => {
    const mine = selfSigned();
    const server = await secured({ requestCert: true, ca: mine.cert });
    const caFile = file('ca.pem', own.cert);
    const tls = { caFile, certFile: file('me.pem', mine.cert), keyFile: file('me.key', mine.key) };
    expect(await client({ tls }).call(get(server.url))).toMatchObject({ status: 200 });
    expect(await failure(client({ tls: { caFile } }).call(get(server.url)))).toBeInstanceOf(Unreachable);
  });

  it('names the option of a file that cannot be read, and a certificate without its key', () => {
    expect(() => createHttp({ tls: { caFile: '/nowhere/ca.pem' } })).toThrow(/caFile: cannot read \/nowhere\/ca.pem/);
    expect(() => createHttp({ tls: { certFile: 'me.pem' } })).toThrow(BadHttpOptions);
  });
});

describe('a proxy that the environment names', () => {
  /** A proxy that takes every name for the server behind it, and notes what it was asked for. */
  async function proxy(target: string): Promise<{ url: string; asked: string[] }> {
    const asked: string[] = [];
    const { hostname, port } = new URL(target);
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      response.end('by the proxy');
    });
    server.on('connect', (request, socket: Socket) => {
      asked.push(`CONNECT ${request.url}`);
      const behind = connect(Number(port), hostname, () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.pipe(behind).pipe(socket);
      });
      socket.on('error', () => behind.destroy());
      behind.on('error', () => socket.destroy());
    });
    closing.push(() => server.closeAllConnections());
    return { url: `http://127.0.0.1:${await portOf(server)}`, asked };
  }

  it('is used for reads and for what is sent once, except for hosts that are excepted and for this machine', async () => {
    const server = await play((_, response) => void response.end('itself'));
    const { url, asked } = await proxy(server.url);
    const http = client({ env: { HTTP_PROXY: url, NO_PROXY: 'here.invalid' } });
    expect((await http.call(get('http://nova.example/v2.1'))).text).toBe('by the proxy');
    expect((await http.call(post('http://nova.example/v2.1/action'))).text).toBe('by the proxy');
    expect((await http.call(get(server.url))).text).toBe('itself');
    expect(await failure(http.call(get('http://here.invalid/')))).toBeInstanceOf(Unreachable);
    expect(asked).toEqual(['GET http://nova.example/v2.1', 'POST http://nova.example/v2.1/action']);
  });

  it('carries TLS through, with the authority of the client', async () => {
    const own = selfSigned();
    const server = await play((_, response) => void response.end('itself'), own);
    const { url, asked } = await proxy(server.url);
    const http = client({ env: { https_proxy: url }, tls: { caFile: file('ca.pem', own.cert) } });
    expect((await http.call(post('https://nova.example/'))).text).toBe('itself');
    expect(asked).toEqual(['CONNECT nova.example:443']);
    const doubtful = client({ env: { https_proxy: url }, retry: NEVER_AGAIN });
    expect(await failure(doubtful.call(get('https://nova.example/')))).toBeInstanceOf(Unreachable);
  });
});
