import { createServer, request as send } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpListenError } from './errors.ts';
import { type HttpLimits, HttpServer } from './http.ts';
import { createMetrics } from './metrics.ts';
import { beginEvents, sendJson, sendTagged } from './replies.ts';

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

/** A server on a free port, and the lines it logs. */
async function serve(
  setUp: (http: HttpServer) => void = () => {},
  port = 0,
  more: { limits?: Partial<HttpLimits>; allowedHosts?: string[] } = {},
) {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const metrics = createMetrics(resourceFromAttributes({}));
  const http = new HttpServer({ address: '127.0.0.1', port, portOption: 'planner_port', log, metrics, ...more });
  setUp(http);
  const listening = await http.listen();
  open.push(() => http.close());
  const get = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${listening.url}${path}`, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: (): unknown => JSON.parse(text) };
  };
  return { http, listening, get, lines, metrics };
}

/** One request with exactly these headers: `fetch` sets the Host header itself. */
const ask = (port: number, path: string, headers: Record<string, string>) =>
  new Promise<{ status: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
    const request = send({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      let text = '';
      response.on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    request.on('error', reject);
    request.end();
  });

describe('the HTTP server of a service answers', () => {
  it('requests for loopback names, its address and the names of the configuration, and no others', async () => {
    const { listening } = await serve(() => {}, 0, { allowedHosts: ['ledger.example.org'] });
    for (const host of ['localhost', '127.0.0.1:9784', 'LEDGER.example.org:80'])
      expect((await ask(listening.port, '/healthz', { host })).status, host).toBe(200);
    for (const host of ['evil.example.com', 'ledger.example.org.evil.com', '10.1.2.3'])
      for (const path of ['/', '/healthz', '/metrics']) {
        const { status, text } = await ask(listening.port, path, { host });
        expect(status, host).toBe(421);
        expect(text).toContain('allowed_hosts');
      }
  });

  it('limits concurrent requests: beyond the limit it answers 503 with Retry-After, and probes are still answered', async () => {
    const waiting: (() => void)[] = [];
    const { get } = await serve(
      (http) =>
        http.route('/slow', async (_, response) => {
          await new Promise<void>((resolve) => waiting.push(resolve));
          sendJson(response, 200, 'done');
        }),
      0,
      { limits: { requests: 2 } },
    );
    const first = [get('/slow'), get('/slow')];
    await expect.poll(() => waiting.length).toBe(2);
    const refused = await get('/slow');
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('1');
    for (const probe of ['/healthz', '/readyz', '/metrics']) expect((await get(probe)).status, probe).toBe(200);
    for (const go of waiting.splice(0)) go();
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200]);
    const again = get('/slow');
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.();
    expect((await again).status).toBe(200);
  });

  it('limits concurrent streams apart from requests; a stream outlives the time limit of an answer', async () => {
    let streaming = 0;
    const stop = new AbortController();
    const { get, listening } = await serve(
      (http) => {
        http.route('/hang', () => {});
        http.route(
          '/stream',
          (_, response) => {
            streaming++;
            beginEvents(response);
            // biome-ignore lint/style/noRestrictedGlobals: the stream goes on until it is ended, for as long as that takes
            const said = setInterval(() => response.write(':\n\n'), 20);
            response.on('close', () => {
              clearInterval(said);
              streaming--;
            });
            stop.signal.addEventListener('abort', () => response.end('data: last\n\n'));
          },
          { stream: true },
        );
      },
      0,
      { limits: { streams: 1, requests: 1, answerMs: 1000 } },
    );
    const stream = await fetch(`${listening.url}/stream`);
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect((await get('/stream')).status).toBe(503);
    // A request ends at its limit; the stream, which began before it, goes on.
    await expect(fetch(`${listening.url}/hang`)).rejects.toThrow();
    expect(streaming).toBe(1);
    stop.abort();
    expect(await stream.text()).toMatch(/^(:\n\n)+data: last\n\n$/);
    await expect.poll(() => streaming).toBe(0);
  });

  it('304 to a client that has this version, and compresses for one that takes it', async () => {
    const text = 'host-1 '.repeat(1000);
    const { get, listening } = await serve((http) => {
      http.route('/large', (_, response) => sendTagged(response, 'text/plain', text));
      http.route('/small', (_, response) => sendTagged(response, 'text/plain', 'small'));
      let reads = 0;
      http.route('/aged', (_, response) => sendTagged(response, 'text/plain', `age ${reads++}`, 'same'));
    });
    for (const [accepted, coding] of [
      ['br, gzip', 'br'],
      ['gzip', 'gzip'],
      ['br;q=0, gzip;q=0.5', 'gzip'],
      ['identity', null],
    ] as const) {
      const answer = await get('/large', { headers: { 'accept-encoding': accepted } });
      expect(answer.headers.get('content-encoding')).toBe(coding);
      expect(answer.text).toBe(text);
      if (coding !== null) expect(Number(answer.headers.get('content-length'))).toBeLessThan(200);
    }
    expect((await get('/small', { headers: { 'accept-encoding': 'br' } })).headers.get('content-encoding')).toBeNull();
    const tag = async (path: string) => String((await get(path)).headers.get('etag'));
    expect(await tag('/large')).not.toBe(await tag('/small'));
    expect(await tag('/aged')).toBe(await tag('/aged'));
    const again = { headers: { 'if-none-match': `W/"other", ${await tag('/large')}` } };
    expect(await get('/large', again)).toMatchObject({ status: 304, text: '' });
    expect((await get('/small', again)).status).toBe(200);
    const head = await ask(listening.port, '/small', { host: 'localhost' });
    expect(head.headers).toMatchObject({ 'cache-control': 'private, no-cache', vary: 'accept-encoding' });
  });

  it('no long URLs, no large headers, no bodies and no other forms of a target', async () => {
    const { listening, get } = await serve();
    expect((await get(`/healthz?${'a'.repeat(3000)}`)).status).toBe(414);
    expect((await get('/healthz', { headers: { x: 'a'.repeat(9000) } })).status).toBe(431);
    expect((await get('/healthz', { method: 'POST', body: 'x' })).status).toBe(405);
    expect((await ask(listening.port, '/healthz', { host: 'localhost', 'content-length': '5' })).status).toBe(413);
    expect((await ask(listening.port, 'http://localhost/healthz', { host: 'localhost' })).status).toBe(404);
    expect((await get('/healthz?a=1')).status).toBe(200);
  });

  it('no client for ever: neither one that sends slowly nor one that waits for an answer that does not come', async () => {
    const { listening, get } = await serve((http) => http.route('/never', () => new Promise<void>(() => {})), 0, {
      limits: { headersMs: 200, requestMs: 200, answerMs: 300, requests: 1 },
    });
    const slow = connect(listening.port, '127.0.0.1');
    slow.on('error', () => {}).resume();
    slow.write('GET /healthz HTTP/1.1\r\nHost: local');
    const closed = new Promise((resolve) => slow.once('close', resolve));
    await expect(get('/never')).rejects.toThrow();
    // Its place is free again.
    await expect(get('/never')).rejects.toThrow();
    await closed;
    expect((await get('/healthz')).status).toBe(200);
  });
});

describe('the HTTP server of a service', () => {
  it('reports the port it was given for port 0', async () => {
    const { listening, get } = await serve();
    expect(listening.port).toBeGreaterThan(0);
    expect(listening.url).toBe(`http://127.0.0.1:${listening.port}`);
    expect(await get('/healthz')).toMatchObject({ status: 200, text: '{"alive":true}\n' });
  });

  it('is ready when every check passes, and says why not', async () => {
    let connected = false;
    const { get, metrics } = await serve((http) => {
      http.check('nats', async () => (connected ? { ok: true } : { ok: false, reason: 'not connected for 12 s' }));
      http.check('clock', () => ({ ok: true }));
    });
    const before = await get('/readyz');
    expect(before.status).toBe(503);
    expect(before.json()).toEqual({
      ready: false,
      checks: { nats: { ok: false, reason: 'not connected for 12 s' }, clock: { ok: true } },
    });
    connected = true;
    const after = await get('/readyz');
    expect(after.status).toBe(200);
    expect(after.json()).toMatchObject({ ready: true });
    expect(await metrics.scrape()).toContain('kronos_ready{check="nats"} 1');
  });

  it('takes a check that throws as not passed', async () => {
    const { get } = await serve((http) => {
      http.check('a', () => {
        throw new Error('boom');
      });
      http.check('b', () => Promise.reject(new Error('bang')));
    });
    expect((await get('/readyz')).json()).toMatchObject({
      checks: { a: { ok: false, reason: 'boom' }, b: { ok: false, reason: 'bang' } },
    });
  });

  it('serves metrics with the readiness of this moment', async () => {
    const { get } = await serve((http) => http.check('nats', () => ({ ok: false, reason: 'x' })));
    const { status, headers, text } = await get('/metrics');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(text).toContain('kronos_ready{check="nats"} 0');
  });

  it('takes further routes: the longest match wins, below a path that ends in /', async () => {
    const { get, metrics } = await serve((http) => {
      http.route('/', (_, response) => sendJson(response, 200, 'console'));
      http.route('/api/', (_, response, url) => sendJson(response, 200, [url.pathname, url.searchParams.get('q')]));
      http.route('/api/plans', (_, response) => sendJson(response, 200, 'plans'));
    });
    expect((await get('/')).json()).toBe('console');
    expect((await get('/api/vms/1?q=a%20b')).json()).toEqual(['/api/vms/1', 'a b']);
    expect((await get('/api/plans')).json()).toBe('plans');
    expect((await get('/healthz')).json()).toEqual({ alive: true });
    expect(await metrics.scrape()).toContain('kronos_http_requests_total{route="/api/",status="2xx"} 1');
  });

  it('refuses unknown paths and methods', async () => {
    const { get } = await serve();
    expect((await get('/nowhere')).status).toBe(404);
    const post = await get('/healthz', { method: 'POST', body: 'x' });
    expect(post.status).toBe(405);
    expect(post.headers.get('allow')).toBe('GET, HEAD');
    const head = await get('/healthz', { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers.get('content-length')).toBe('15');
  });

  it('reads a JSON body within its limits, and keeps the connection', async () => {
    const { get } = await serve((http) =>
      http.route('/act', (_request, response, _url, body) => sendJson(response, 200, { body: body ?? 'none' }), {
        methods: ['GET', 'POST'],
        bodyBytes: 100,
      }),
    );
    const post = (body: string | ReadableStream, type = 'application/json', more = {}) =>
      get('/act', {
        method: 'POST',
        body,
        headers: { 'content-type': type, ...more },
        duplex: 'half',
      } as RequestInit);
    const answer = await post('{"a":[1]}', 'application/json; charset=utf-8');
    expect([answer.status, answer.json()]).toEqual([200, { body: { a: [1] } }]);
    expect(answer.headers.get('connection')).not.toBe('close');
    expect((await get('/act')).json()).toEqual({ body: 'none' });
    expect((await get('/act', { method: 'POST' })).json()).toEqual({ body: 'none' });
    const streamed = (text: string) => new Blob([text]).stream();
    for (const [body, status] of [
      [`"${'x'.repeat(99)}"`, 413],
      [streamed(`"${'x'.repeat(99)}"`), 413],
      ['[[[[[[[[[0]]]]]]]]]', 400],
      ['{"a":', 400],
    ] as const)
      expect((await post(body)).status).toBe(status);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp'])
      expect((await post('{}', type)).status, type).toBe(415);
    expect((await post('{}', 'application/json', { 'content-encoding': 'gzip' })).status).toBe(415);
    expect((await get('/healthz', { method: 'POST', body: '{}' })).status).toBe(405);
  });

  it('cuts off a client that does not send the whole body in time; the handler is not called', async () => {
    let called = 0;
    const { listening } = await serve(
      (http) => http.route('/act', () => void called++, { methods: ['POST'], bodyBytes: 100 }),
      0,
      { limits: { requestMs: 200, headersMs: 100 } },
    );
    const socket = connect(listening.port, '127.0.0.1');
    const head = ['POST /act HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: 50'];
    socket.write(`${head.join('\r\n')}\r\n\r\n{"a":`);
    socket.resume();
    await new Promise((resolve) => socket.on('close', resolve));
    expect(called).toBe(0);
  });

  it('answers 500 without details when a route fails, and logs the reason', async () => {
    const { get, lines } = await serve((http) =>
      http.route('/bad', async () => {
        throw new Error('hunter2');
      }),
    );
    const { status, text } = await get('/bad');
    expect(status).toBe(500);
    expect(text).not.toContain('hunter2');
    expect(lines.join()).toContain('hunter2');
  });

  it('says which option to change when the port is taken', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    open.push(() => new Promise((resolve) => other.close(resolve)));
    const { port } = other.address() as AddressInfo;
    const failed = serve(() => {}, port);
    await expect(failed).rejects.toBeInstanceOf(HttpListenError);
    await expect(failed).rejects.toMatchObject({
      code: 'KRONOS_HTTP_LISTEN',
      message: `cannot listen on 127.0.0.1 port ${port} (EADDRINUSE)`,
      remedy: expect.stringContaining('planner_port'),
    });
  });

  it('closes although a client keeps its connection', async () => {
    const { http, get } = await serve();
    await get('/healthz', { headers: { connection: 'keep-alive' } });
    await http.close();
    await expect(get('/healthz')).rejects.toThrow();
  });
});
