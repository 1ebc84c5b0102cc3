/** For tests: a real HTTP server that plays Keystone and whatever routes a test gives it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { serve, sleepless } from '@kronos/http/testing';
import type { AuthOptions } from '../src/auth.ts';
import { createSession, type Session, type SessionOptions } from '../src/session.ts';

export interface Seen {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A status with a JSON or text body, or a function that writes the response itself. */
export type Answer =
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly body?: unknown }
  | ((response: ServerResponse) => void);

/** Called for each request of a route; `times` counts them from 1. */
export type Route = (seen: Seen, times: number) => Answer;

export interface Cloud {
  readonly url: string;
  /** Every request that arrived, in order. */
  readonly seen: Seen[];
  /** Requests of one route, e.g. `GET /v2.1/servers/detail`. */
  readonly of: (route: string) => Seen[];
  /** Replaces or adds routes. */
  readonly on: (routes: Readonly<Record<string, Route>>) => void;
  /** A session on it; closed with the cloud. */
  readonly session: (options?: Partial<Omit<SessionOptions, 'auth'>> & { auth?: Partial<AuthOptions> }) => Session;
  close(): Promise<void>;
}

export const NOVA_VERSION =
  (max = '2.96'): Route =>
  () => ({ body: { version: { id: 'v2.1', status: 'CURRENT', version: max, min_version: '2.1' } } });

/** A token that lives an hour by Keystone's own times. */
export function tokenAnswer(id: string, token: Readonly<Record<string, unknown>> = {}): Answer {
  return {
    status: 201,
    headers: { 'x-subject-token': id },
    body: { token: { issued_at: '2026-01-01T00:00:00.000000Z', expires_at: '2026-01-01T01:00:00.000000Z', ...token } },
  };
}

export async function playCloud(routes: Readonly<Record<string, Route>> = {}): Promise<Cloud> {
  const seen: Seen[] = [];
  const sessions: Session[] = [];
  const counts = new Map<string, number>();
  const endpoint = (type: string, path: string): unknown => ({
    type,
    endpoints: [{ interface: 'public', region_id: 'RegionOne', region: 'RegionOne', url: `${server.url}${path}` }],
  });
  let script: Record<string, Route> = {
    'POST /v3/auth/tokens': (_, times) =>
      tokenAnswer(`token-${times}`, { catalog: [endpoint('compute', '/v2.1'), endpoint('placement', '/placement')] }),
    'GET /v2.1/': NOVA_VERSION(),
    'GET /placement/': () => ({
      body: { versions: [{ id: 'v1.0', status: 'CURRENT', max_version: '1.39', min_version: '1.0' }] },
    }),
    ...routes,
  };
  const server = await serve(({ path, ...asked }, response) => {
    const at = new URL(path, server.url);
    const one = { ...asked, url: at };
    seen.push(one);
    const key = `${one.method} ${at.pathname}`;
    const times = (counts.get(key) ?? 0) + 1;
    counts.set(key, times);
    const played = script[key]?.(one, times) ?? { status: 404, body: { itemNotFound: { message: `no route ${key}` } } };
    if (typeof played === 'function') {
      played(response);
      return;
    }
    const text = typeof played.body === 'string' ? played.body : JSON.stringify(played.body ?? '');
    response.writeHead(played.status ?? 200, { 'content-type': 'application/json', ...played.headers }).end(text);
  });
  return {
    url: server.url,
    seen,
    of: (route) => seen.filter((one) => `${one.method} ${one.url.pathname}` === route),
    on: (more) => {
      script = { ...script, ...more };
    },
    session: ({ auth, ...options } = {}) => {
      const session = createSession({
        clock: sleepless(),
        ...options,
        auth: {
          authUrl: server.url,
          username: 'kronos',
          password: 'hunter2',
          projectName: 'admin',
          defaultDomainId: 'default',
          ...auth,
        },
      });
      sessions.push(session);
      return session;
    },
    async close() {
      for (const session of sessions) await session.close();
      await server.close();
    },
  };
}

export { failure } from '@kronos/http/testing';
