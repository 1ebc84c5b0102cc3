import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpListenError } from './errors.ts';
import { HttpServer, sendJson } from './http.ts';
import { createMetrics } from './metrics.ts';

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

/** A server on a free port, and the lines it logs. */
async function serve(setUp: (http: HttpServer) => void = () => {}, port = 0) {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const metrics = createMetrics(resourceFromAttributes({}));
  const http = new HttpServer({ address: '127.0.0.1', port, portOption: 'planner_port', log, metrics });
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
