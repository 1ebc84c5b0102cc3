import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { failure, serve, sleepless } from '@kronos/http/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { createPrometheus, type Prometheus, parseValue } from './client.ts';
import {
  BadAnswer,
  BadPrometheusOptions,
  BadQuery,
  PrometheusUnauthorized,
  ServerError,
  Timeout,
  Unreachable,
} from './errors.ts';
import type { PrometheusOptions } from './transport.ts';

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly authorization: string | undefined;
  readonly headers: IncomingMessage['headers'];
}
type Answer = { status?: number; body?: unknown; headers?: Record<string, string> } | 'hang' | 'break';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A real server that plays Prometheus, and a client of it. */
async function play(
  answer: (seen: Seen, number: number) => Answer,
  options: Partial<PrometheusOptions> = {},
): Promise<{ prometheus: Prometheus; seen: Seen[]; url: string }> {
  const seen: Seen[] = [];
  const server = await serve(({ method, path, headers, body }, response) => {
    const url = new URL(path, 'http://x');
    const query = Object.fromEntries(method === 'POST' ? new URLSearchParams(body) : url.searchParams);
    const one = { method, path: url.pathname, query, authorization: headers.authorization, headers };
    seen.push(one);
    const said = answer(one, seen.length);
    if (said === 'hang') return;
    if (said === 'break') {
      response.socket?.destroy();
      return;
    }
    const text = typeof said.body === 'string' ? said.body : JSON.stringify(said.body ?? null);
    response.writeHead(said.status ?? 200, { 'content-type': 'application/json', ...said.headers }).end(text);
  });
  closing.push(() => server.close());
  const { url } = server;
  return { prometheus: open({ url, clock: sleepless(), ...options }), seen, url };
}

function open(options: PrometheusOptions): Prometheus {
  const prometheus = createPrometheus(options);
  closing.push(() => prometheus.close());
  return prometheus;
}

const vector = (result: readonly unknown[], more = {}): Answer => ({
  body: { status: 'success', data: { resultType: 'vector', result }, ...more },
});

describe('a partial answer', () => {
  it('of VictoriaMetrics (isPartial) is a warning, of values and of ranges; a whole one is none', async () => {
    const answerOf = ({ path }: Seen, isPartial: boolean): Answer => ({
      body: {
        status: 'success',
        isPartial,
        data: { resultType: path.endsWith('query_range') ? 'matrix' : 'vector', result: [] },
      },
    });
    const range = { startMs: 0, endMs: 1000, stepMs: 1000 };
    const partial = await play((seen) => answerOf(seen, true));
    expect((await partial.prometheus.instant('up')).warnings).toEqual([expect.stringContaining('isPartial')]);
    expect((await partial.prometheus.range('up', range)).warnings).toEqual([expect.stringContaining('isPartial')]);
    const whole = await play((seen) => answerOf(seen, false));
    expect((await whole.prometheus.instant('up')).warnings).toEqual([]);
  });
});

describe('instant', () => {
  it('posts the query as a form and reads the samples, NaN and Inf among them', async () => {
    const { prometheus, seen } = await play(
      () =>
        vector(
          [
            { metric: { __name__: 'load', host: 'a' }, value: [1767225600.5, '0'] },
            { metric: { host: 'b' }, value: [1767225600, 'NaN'] },
            { metric: { host: 'c' }, value: [1767225600, '+Inf'] },
          ],
          { warnings: ['partial'], infos: ['not a counter'] },
        ),
      { timeoutMs: 30_000 },
    );
    expect(await prometheus.instant('load{a="b & c"}', { timeMs: 1767225600500 })).toEqual({
      samples: [
        { labels: { __name__: 'load', host: 'a' }, timeMs: 1767225600500, value: 0 },
        { labels: { host: 'b' }, timeMs: 1767225600000, value: Number.NaN },
        { labels: { host: 'c' }, timeMs: 1767225600000, value: Number.POSITIVE_INFINITY },
      ],
      warnings: ['partial'],
      infos: ['not a counter'],
    });
    expect(seen).toMatchObject([
      {
        method: 'POST',
        path: '/api/v1/query',
        query: { query: 'load{a="b & c"}', time: '1767225600.500', timeout: '30000ms' },
        authorization: undefined,
      },
    ]);
  });

  it('asks by GET where POST is not allowed, and keeps to it', async () => {
    const { prometheus, seen } = await play((one) => (one.method === 'POST' ? { status: 405 } : vector([])));
    await prometheus.instant('up');
    await prometheus.instant('up');
    expect(seen.map((one) => one.method)).toEqual(['POST', 'GET', 'GET']);
    expect(seen[1]?.query).toMatchObject({ query: 'up' });
  });

  it.each([
    [400, 'bad_data', '1:5: parse error: unclosed left parenthesis'],
    [422, 'execution', 'many-to-many matching not allowed'],
  ])(
    'that Prometheus refuses with %i is BadQuery with its words, and not asked again',
    async (status, errorType, error) => {
      const { prometheus, seen } = await play(() => ({ status, body: { status: 'error', errorType, error } }));
      const caught = await failure(prometheus.instant('sum('));
      expect(caught).toBeInstanceOf(BadQuery);
      expect(caught).toMatchObject({ code: 'KRONOS_PROMETHEUS_BAD_QUERY', query: 'sum(', errorType, reason: error });
      expect(seen).toHaveLength(1);
    },
  );

  const at = 1767225600;
  it.each([
    ['scalar', [at, '1'], 'one number without labels'],
    ['string', [at, 'text'], 'a text (a string)'],
    ['matrix', [{ metric: {}, values: [[at, '1']] }], 'such as rate() or avg_over_time()'],
    ['vector', [{ metric: {}, histogram: [at, { count: '1', sum: '2' }] }], 'histogram_avg(rate(...[5m]))'],
  ])('that gives no values (%s) is BadQuery that says what to select', async (resultType, result, remedy) => {
    const { prometheus } = await play(() => ({ body: { status: 'success', data: { resultType, result } } }));
    const caught = await failure(prometheus.instant('load'));
    expect(caught).toMatchObject({ errorType: 'result_type', reason: expect.stringContaining(remedy) });
  });

  it.each([401, 403])('answered with %i is Unauthorized, says what was sent and never the secret', async (status) => {
    const { prometheus } = await play(() => ({ status, body: 'denied' }), { username: 'kronos', password: 'hunter2' });
    const caught = await failure(prometheus.instant('up'));
    expect(caught).toBeInstanceOf(PrometheusUnauthorized);
    expect(String(caught)).toContain('basic authentication as kronos');
    expect(String(caught)).not.toContain('hunter2');
    expect(String(caught)).toContain('denied');
  });

  it('sends its headers with every request, and names them without their values when it is refused', async () => {
    const { prometheus, seen } = await play(
      ({ headers }) => (headers['x-scope-orgid'] === 'blue' ? vector([]) : { status: 401, body: 'no org id' }),
      { headers: { 'x-scope-orgid': 'blue' } },
    );
    expect(await prometheus.instant('up')).toMatchObject({ samples: [] });
    await prometheus.runtimeInfo().catch(() => undefined);
    expect(seen.map(({ headers }) => headers['x-scope-orgid'])).toEqual(['blue', 'blue']);
    const wrong = await play(() => ({ status: 401, body: 'no org id' }), {
      headers: { 'x-scope-orgid': 'secret-team' },
    });
    const caught = await failure(wrong.prometheus.instant('up'));
    expect(String(caught)).toContain('no org id (sent: no credentials, the headers x-scope-orgid)');
    expect(String(caught)).not.toContain('secret-team');
  });

  it('answered with a server error is tried again, then ServerError', async () => {
    const down = { status: 503, body: { status: 'error', errorType: 'unavailable', error: 'starting' } };
    const once = await play((_, number) => (number === 1 ? down : vector([])));
    expect(await once.prometheus.instant('up')).toMatchObject({ samples: [] });
    const always = await play(() => down, { maxRetries: 2 });
    const caught = await failure(always.prometheus.instant('up'));
    expect(caught).toBeInstanceOf(ServerError);
    expect(caught).toMatchObject({ status: 503, reason: 'starting' });
    expect(always.seen).toHaveLength(3);
  });

  it('that Prometheus itself breaks off for its time is Timeout', async () => {
    const { prometheus } = await play(
      () => ({ status: 503, body: { status: 'error', errorType: 'timeout', error: 'query timed out' } }),
      { maxRetries: 0 },
    );
    expect(await failure(prometheus.instant('up'))).toBeInstanceOf(Timeout);
  });

  it('without an answer is Timeout or Unreachable', async () => {
    const hanging = await play(() => 'hang', { timeoutMs: 100, maxRetries: 0 });
    expect(await failure(hanging.prometheus.instant('up'))).toBeInstanceOf(Timeout);
    const broken = await play(() => 'break', { maxRetries: 1 });
    expect(await failure(broken.prometheus.instant('up'))).toBeInstanceOf(Unreachable);
    expect(broken.seen).toHaveLength(2);
  });

  it('waits between attempts as retryBackoff says', async () => {
    const waits: number[] = [];
    const { prometheus } = await play(() => ({ status: 503 }), {
      maxRetries: 3,
      retryBackoffMs: 1000,
      random: () => 0.5,
      clock: sleepless((ms) => waits.push(ms)),
    });
    await failure(prometheus.instant('up'));
    expect(waits).toEqual([500, 1000, 2000]);
  });

  it.each([
    ['<html>', undefined],
    [{ status: 'success' }, 'data'],
    [{ status: 'success', data: { resultType: 'vector' } }, 'data.result.'],
    [{ status: 'success', data: { resultType: 'vector', result: [{ metric: {} }] } }, 'data.result.0.value'],
    [
      { status: 'success', data: { resultType: 'vector', result: [{ metric: {}, value: [1, 'much'] }] } },
      'data.result.0.value',
    ],
    [{ result: [] }, 'status'],
  ])('with the body %j is BadAnswer that names the field', async (body, field) => {
    const { prometheus } = await play(() => ({ body }));
    const caught = await failure(prometheus.instant('up'));
    expect(caught).toBeInstanceOf(BadAnswer);
    expect(caught).toMatchObject({ field });
  });

  it('stops with the reason of the caller signal', async () => {
    const controller = new AbortController();
    const reason = new Error('going down');
    const { prometheus } = await play(() => {
      controller.abort(reason);
      return 'hang';
    });
    expect(await failure(prometheus.instant('up', { signal: controller.signal }))).toBe(reason);
  });
});

describe('range', () => {
  it('reads the series', async () => {
    const result = [
      {
        metric: { host: 'a' },
        values: [
          [10, '1'],
          [20, 'NaN'],
        ],
      },
    ];
    const { prometheus, seen } = await play(() => ({
      body: { status: 'success', data: { resultType: 'matrix', result } },
    }));
    expect(await prometheus.range('up', { startMs: 10_000, endMs: 20_000, stepMs: 1500 })).toEqual({
      series: [
        {
          labels: { host: 'a' },
          samples: [
            { timeMs: 10_000, value: 1 },
            { timeMs: 20_000, value: Number.NaN },
          ],
        },
      ],
      warnings: [],
      infos: [],
    });
    expect(seen[0]).toMatchObject({
      path: '/api/v1/query_range',
      query: { start: '10.000', end: '20.000', step: '1.500' },
    });
  });
});

describe('runtimeInfo', () => {
  it('tells that it answers, also where the page does not exist', async () => {
    const real = await play(() => ({
      body: { status: 'success', data: { startTime: '2026-01-01T00:00:00Z', CWD: '/' } },
    }));
    expect(await real.prometheus.runtimeInfo()).toEqual({ startedAt: '2026-01-01T00:00:00Z' });
    expect(real.seen[0]?.path).toBe('/api/v1/status/runtimeinfo');
    const other = await play(() => ({ status: 404, body: 'not found' }));
    expect(await other.prometheus.runtimeInfo()).toEqual({ startedAt: undefined });
  });

  it('fails as the queries do', async () => {
    const { prometheus } = await play(() => ({ status: 401 }));
    expect(await failure(prometheus.runtimeInfo())).toBeInstanceOf(PrometheusUnauthorized);
  });
});

describe('metricType', () => {
  const told = async (body: unknown, status = 200) => {
    const { prometheus, seen } = await play(() => ({ status, body }));
    return { type: await prometheus.metricType('node_cpu_seconds_total'), seen };
  };
  const declared = (...types: string[]) => ({
    status: 'success',
    data: { node_cpu_seconds_total: types.map((type) => ({ type, help: '', unit: '' })) },
  });

  it('is the one that the exporters declare', async () => {
    const { type, seen } = await told(declared('counter', 'counter'));
    expect(type).toBe('counter');
    expect(seen[0]).toMatchObject({ path: '/api/v1/metadata', query: { metric: 'node_cpu_seconds_total' } });
  });

  it.each([
    ['none declares one', declared(), 200],
    ['they disagree', declared('counter', 'gauge'), 200],
    ['it is declared as unknown', declared('unknown'), 200],
    ['the server keeps no metadata', 'not found', 404],
  ])('is not known where %s', async (_, body, status) => {
    expect((await told(body, status)).type).toBeNull();
  });
});

describe('options', () => {
  it.each(['/prometheus/', '/select/0/prometheus', '/prometheus/api/v1'])(
    'keep the path of the URL: %s',
    async (path) => {
      const { url, seen } = await play(({ path: asked }) =>
        asked.endsWith('/query') ? vector([]) : { body: { status: 'success', data: [] } },
      );
      const routes: string[] = [];
      const prometheus = open({ url: `${url}${path}`, onCall: (report) => routes.push(report.route), maxRetries: 0 });
      await prometheus.instant('up');
      await prometheus.metricNames();
      const prefix = path.replace(/\/api\/v1$|\/$/, '');
      expect(seen.map((one) => one.path)).toEqual([`${prefix}/api/v1/query`, `${prefix}/api/v1/label/__name__/values`]);
      expect(routes).toEqual(['/api/v1/query', '/api/v1/label/__name__/values']);
    },
  );

  it('send a bearer token, or basic authentication', async () => {
    const bearer = await play(() => vector([]), { bearerToken: 'abc' });
    await bearer.prometheus.instant('up');
    expect(bearer.seen[0]?.authorization).toBe('Bearer abc');
    const basic = await play(() => vector([]), { username: 'u', password: 'p:q' });
    await basic.prometheus.instant('up');
    expect(basic.seen[0]?.authorization).toBe(`Basic ${Buffer.from('u:p:q').toString('base64')}`);
  });

  it('read the token file again when it changes', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'kronos-prometheus-'));
    closing.push(() => rmSync(directory, { recursive: true, force: true }));
    const file = join(directory, 'token');
    writeFileSync(file, 'one\n');
    const { prometheus, seen } = await play(() => vector([]), { bearerTokenFile: file });
    await prometheus.instant('up');
    writeFileSync(file, 'two\n');
    utimesSync(file, new Date(0), new Date(0));
    await prometheus.instant('up');
    rmSync(file);
    expect(await failure(prometheus.instant('up'))).toBeInstanceOf(BadPrometheusOptions);
    expect(seen.map((one) => one.authorization)).toEqual(['Bearer one', 'Bearer two']);
  });

  it.each([
    [{ url: 'prometheus:9090' }, 'url'],
    [{ url: 'localhost' }, 'url'],
    [{ url: 'http://u:p@host' }, 'url'],
    [{ bearerToken: 'a', username: 'b' }, 'bearer_token'],
    [{ bearerTokenFile: '/nowhere/token' }, 'bearer_token_file'],
    [{ username: 'a:b' }, 'username'],
  ])('%j are refused by name', (options, option) => {
    expect(() => createPrometheus({ url: 'http://host', ...options })).toThrow(
      expect.objectContaining({ code: 'KRONOS_PROMETHEUS_OPTIONS', option }),
    );
  });
});

describe('parseValue', () => {
  it.each([
    ['0', 0],
    ['-1.5e-3', -0.0015],
    ['+Inf', Number.POSITIVE_INFINITY],
    ['-Inf', Number.NEGATIVE_INFINITY],
    ['NaN', Number.NaN],
    ['', undefined],
    ['much', undefined],
  ])('of %j is %j', (text, value) => {
    expect(parseValue(text)).toEqual(value);
  });
});

/** A user of Keystone whose tokens are numbered. */
function user(endpoint: () => string) {
  const refused: string[] = [];
  return {
    refused,
    access: {
      user: 'user kronos',
      token: async () => `token-${refused.length + 1}`,
      refused: (token: string) => void refused.push(token),
      endpoint: async () => endpoint(),
      close: async () => undefined,
    },
  };
}

describe('a server behind Keystone', () => {
  it('is found in the catalog, and is asked with a token by GET: the query alone', async () => {
    const matrix = { status: 'success', data: { resultType: 'matrix', result: [{ metric: {}, values: [[1, '2']] }] } };
    const { seen, url } = await play(({ query }) =>
      query.query?.endsWith(']') || query.query?.includes('] @') ? { body: matrix } : vector([]),
    );
    const { access } = user(() => `${url}/metrics/api/v1/`);
    const prometheus = open({ keystone: access });
    await prometheus.instant('up', { timeMs: 600_000 });
    const { series } = await prometheus.range('up', { startMs: 300_000, endMs: 600_000, stepMs: 15_000 });
    expect(series).toEqual([{ labels: {}, samples: [{ timeMs: 1000, value: 2 }] }]);
    await prometheus.range('up', { startMs: 0, endMs: 60_000, stepMs: 15_000 });
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(3).fill('GET /metrics/api/v1/query'));
    expect(seen.map(({ query }) => query)).toEqual([
      { query: 'up' },
      { query: '(up)[300000ms:15000ms]' },
      { query: '(up)[60000ms:15000ms] @ 60.000' },
    ]);
    expect(seen.map(({ headers }) => headers['x-auth-token'])).toEqual(Array(3).fill('token-1'));
  });

  it('that refuses a token gets a new one, once', async () => {
    const first = await play(({ headers }) => (headers['x-auth-token'] === 'token-2' ? vector([]) : { status: 401 }));
    const good = user(() => first.url);
    const prometheus = open({ keystone: good.access });
    expect(await prometheus.instant('up')).toMatchObject({ samples: [] });
    expect(good.refused).toEqual(['token-1']);

    const never = await play(() => ({ status: 401, body: 'not your project' }));
    const bad = user(() => never.url);
    const refused = open({ keystone: bad.access });
    const caught = await failure(refused.instant('up'));
    expect(String(caught)).toContain('not your project (sent: the Keystone token of user kronos)');
    expect(never.seen).toHaveLength(2);
  });
});
