import { sleepless } from '@kronos/http/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cloud, failure, playCloud, tokenAnswer } from '../testing/index.ts';
import { EndpointNotFound, Forbidden, HttpError, Unauthorized, Unreachable } from './errors.ts';
import type { ServiceCall } from './session.ts';

let cloud: Cloud;
beforeEach(async () => {
  cloud = await playCloud({ 'GET /v2.1/x': () => ({ body: { fine: true } }) });
});
afterEach(() => cloud.close());

const TOKENS = 'POST /v3/auth/tokens';
const call = (more: Partial<ServiceCall> = {}): ServiceCall => ({
  service: 'nova',
  method: 'GET',
  url: `${cloud.url}/v2.1/x`,
  route: '/x',
  expect: [200],
  ...more,
});

describe('a token', () => {
  it('is asked for once by all who need it at the same time, and sent with every call', async () => {
    const session = cloud.session();
    await Promise.all([session.call(call()), session.call(call()), session.token()]);
    expect(cloud.of(TOKENS)).toHaveLength(1);
    expect(cloud.of('GET /v2.1/x').map((seen) => seen.headers['x-auth-token'])).toEqual(['token-1', 'token-1']);
  });

  it('is renewed when its margin begins, by the life that Keystone gave it and not by the local date', async () => {
    let at = 0;
    const session = cloud.session({ clock: { ...sleepless(), monotonic: () => at }, renewMarginMs: 600_000 });
    expect(await session.token()).toBe('token-1');
    at = 3_600_000 - 600_000 - 1;
    expect(await session.token()).toBe('token-1');
    at += 1;
    expect(await session.token()).toBe('token-2');
  });

  it('that lives shorter than the margin is used for half its life', async () => {
    let at = 0;
    cloud.on({ [TOKENS]: (_, n) => tokenAnswer(`short-${n}`, { expires_at: '2026-01-01T00:01:00Z' }) });
    const session = cloud.session({ clock: { ...sleepless(), monotonic: () => at } });
    await session.token();
    at = 29_999;
    expect(await session.token()).toBe('short-1');
    at = 30_000;
    expect(await session.token()).toBe('short-2');
  });

  it('that is still valid is used on while Keystone does not answer, and Keystone is asked again later', async () => {
    let at = 0;
    const session = cloud.session({
      clock: { ...sleepless(), monotonic: () => at },
      retry: { status: { retries: 0, backoffMs: 0 } },
    });
    await session.token();
    cloud.on({ [TOKENS]: (_, n) => (n < 4 ? { status: 503 } : tokenAnswer('after')) });
    at = 3_400_000;
    expect(await session.token()).toBe('token-1');
    at += 9_999;
    expect(await session.token()).toBe('token-1');
    expect(cloud.of(TOKENS)).toHaveLength(2);
    at += 1;
    expect(await session.token()).toBe('token-1');
    at = 3_600_000;
    expect(await session.token()).toBe('after');
  });

  it('that has expired is not used when Keystone does not answer', async () => {
    let at = 0;
    const session = cloud.session({
      clock: { ...sleepless(), monotonic: () => at },
      retry: { status: { retries: 0, backoffMs: 0 } },
    });
    await session.token();
    cloud.on({ [TOKENS]: () => ({ status: 503, body: 'Service Unavailable' }) });
    at = 3_600_000;
    expect(await failure(session.token())).toBeInstanceOf(HttpError);
  });

  it('is asked for again after an attempt that Keystone did not answer', async () => {
    cloud.on({ [TOKENS]: (_, n) => (n === 1 ? { status: 503 } : tokenAnswer('second')) });
    expect(await cloud.session().token()).toBe('second');
  });

  it('that one caller gives up waiting for still reaches the others', async () => {
    const session = cloud.session();
    const controller = new AbortController();
    const reason = new Error('going down');
    const impatient = session.token(controller.signal);
    const patient = session.token();
    controller.abort(reason);
    expect(await failure(impatient)).toBe(reason);
    expect(await patient).toBe('token-1');
    expect(cloud.of(TOKENS)).toHaveLength(1);
  });
});

describe('a 401', () => {
  it('from a service renews the token and sends the call once more', async () => {
    cloud.on({ 'GET /v2.1/x': (seen) => ({ status: seen.headers['x-auth-token'] === 'token-1' ? 401 : 200 }) });
    const session = cloud.session();
    expect(await session.call(call())).toMatchObject({ status: 200 });
    expect(await session.token()).toBe('token-2');
  });

  it('that several calls get for one token renews it once', async () => {
    cloud.on({ 'GET /v2.1/x': (seen) => ({ status: seen.headers['x-auth-token'] === 'token-1' ? 401 : 200 }) });
    const session = cloud.session();
    await Promise.all([1, 2, 3, 4].map(() => session.call(call())));
    expect(cloud.of(TOKENS)).toHaveLength(2);
  });

  it('for the new token too is an error that names service, user and Keystone', async () => {
    cloud.on({ 'GET /v2.1/x': () => ({ status: 401, body: { error: { message: 'token revoked' } } }) });
    const error = await failure(cloud.session({ auth: { userDomainName: 'Default' } }).call(call()));
    expect(error).toBeInstanceOf(Unauthorized);
    expect(error).toHaveProperty(
      'message',
      expect.stringMatching(/nova refused user kronos in domain Default at http.*token revoked/),
    );
    expect(cloud.of('GET /v2.1/x')).toHaveLength(2);
  });

  it('from Keystone is an error that says who and where and never the password', async () => {
    cloud.on({
      [TOKENS]: () => ({
        status: 401,
        headers: { 'x-openstack-request-id': 'req-7' },
        body: {
          error: { code: 401, message: 'The request you have made requires authentication.', title: 'Unauthorized' },
        },
      }),
    });
    const error = await failure(cloud.session().token());
    expect(error).toBeInstanceOf(Unauthorized);
    expect(error).toMatchObject({ code: 'KRONOS_OPENSTACK_UNAUTHORIZED', requestId: 'req-7', identity: 'user kronos' });
    expect(error).toHaveProperty('message', expect.stringContaining(`${cloud.url}/v3`));
    expect(JSON.stringify(error) + String(error)).not.toContain('hunter2');
  });
});

describe('other answers of Keystone', () => {
  it('without a token are errors that name the field', async () => {
    cloud.on({ [TOKENS]: () => ({ status: 201, body: { token: {} } }) });
    expect(await failure(cloud.session().token())).toMatchObject({ field: 'X-Subject-Token' });
    cloud.on({ [TOKENS]: () => ({ status: 201, headers: { 'x-subject-token': 't' }, body: { token: {} } }) });
    expect(await failure(cloud.session().token())).toMatchObject({ field: 'token.expires_at' });
    cloud.on({ [TOKENS]: () => tokenAnswer('t', { expires_at: 'tomorrow' }) });
    expect(await failure(cloud.session().token())).toMatchObject({ field: 'token.expires_at' });
  });

  it('that do not know the token refuse it with 404; any other 404 is not Keystone', async () => {
    const auth = { authType: 'v3token', token: 'hunter2' };
    cloud.on({
      [TOKENS]: () => ({ status: 404, body: { error: { code: 404, message: 'Could not recognize Fernet token' } } }),
    });
    expect(await failure(cloud.session({ auth }).token())).toBeInstanceOf(Unauthorized);
    cloud.on({ [TOKENS]: () => ({ status: 404, body: 'page not found' }) });
    expect(await failure(cloud.session({ auth }).token())).toHaveProperty(
      'message',
      expect.stringContaining('check auth_url'),
    );
  });

  it('that redirect are errors that say where to', async () => {
    cloud.on({ [TOKENS]: () => ({ status: 302, headers: { location: 'https://keystone/v3' } }) });
    expect(await failure(cloud.session().token())).toHaveProperty(
      'message',
      expect.stringContaining('https://keystone/v3'),
    );
  });

  it('and none at all is Unreachable', async () => {
    const gone = await playCloud();
    const session = cloud.session({ auth: { authUrl: gone.url } });
    await gone.close();
    expect(await failure(session.token())).toBeInstanceOf(Unreachable);
  });
});

describe('a call', () => {
  it('with an unexpected status is an error with the service own reason and request id', async () => {
    cloud.on({
      'GET /v2.1/x': () => ({
        status: 403,
        headers: { 'x-openstack-request-id': 'req-9', 'retry-after': '3' },
        body: { forbidden: { code: 403, message: "Policy doesn't allow it" } },
      }),
    });
    const error = await failure(cloud.session().call(call()));
    expect(error).toBeInstanceOf(Forbidden);
    expect(error).toMatchObject({
      code: 'KRONOS_OPENSTACK_FORBIDDEN',
      status: 403,
      reason: "Policy doesn't allow it",
      requestId: 'req-9',
      retryAfterMs: 3000,
      name: 'Forbidden',
    });
  });
});

describe('an endpoint', () => {
  it('comes from the override without asking the catalog, else from the catalog', async () => {
    const session = cloud.session({ auth: { endpointOverrides: { compute: 'http://nova.example/v2.1/' } } });
    expect(await session.endpoint('compute')).toBe('http://nova.example/v2.1');
    expect(cloud.seen).toHaveLength(0);
    expect(await session.endpoint('placement')).toBe(`${cloud.url}/placement`);
  });

  it('that the catalog lacks is an error that lists what it has', async () => {
    const error = await failure(cloud.session().endpoint('image'));
    expect(error).toBeInstanceOf(EndpointNotFound);
    expect(error).toHaveProperty('message', expect.stringContaining('it has compute, placement'));
  });
});
