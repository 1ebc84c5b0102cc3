import { systemClock } from '@kronos/clock';
import { type CallPlace, createHttp, type HttpOptions, parseAs, safeUrl } from '@kronos/http';
import { type AuthOptions, authRequest, identityOf, keystoneUrl } from './auth.ts';
import { BadAnswer } from './errors.ts';
import { httpError } from './fault.ts';
import { requestToken, type TokenBody, tokenSchema } from './token.ts';

/** The user of a token, with the token's scope and roles. */
export type Person = {
  readonly userId: string;
  readonly userName: string;
  readonly domainName: string;
  /** Scope of the token; null: no project. */
  readonly project: { readonly name: string; readonly domainName: string } | null;
  /** Names of the roles on that scope. */
  readonly roles: readonly string[];
};

/** Keystone, for the log-in of people. */
export interface Identity {
  /** @throws Unauthorized, BadAuthOptions, HttpError, Unreachable, Timeout, BadAnswer. No error names a secret. */
  login(
    auth: Omit<AuthOptions, 'authUrl'>,
  ): Promise<{ readonly token: string; readonly lifeMs: number; readonly person: Person }>;
  /** The current user of a token; null when Keystone no longer accepts it. @throws HttpError, Unreachable, Timeout, BadAnswer */
  validate(token: string): Promise<Person | null>;
  /** Ends a token. @throws HttpError, Unreachable, Timeout */
  revoke(token: string): Promise<void>;
  close(): Promise<void>;
}

/** A client of Keystone for the tokens of people. @throws BadAuthOptions when `keystone` is no URL */
export function createIdentity(keystone: string, options: HttpOptions): Identity {
  const authUrl = keystoneUrl(keystone);
  const http = createHttp(options);
  const clock = options.clock ?? systemClock;
  const url = `${authUrl}/auth/tokens`;
  const place = (method: 'POST' | 'GET' | 'DELETE'): CallPlace => ({ service: 'keystone', method, url: safeUrl(url) });

  /** A token may validate itself. */
  const present = (method: 'GET' | 'DELETE', token: string) =>
    http.call({
      service: 'keystone',
      method,
      url,
      route: '/auth/tokens',
      headers: { 'x-auth-token': token, 'x-subject-token': token },
      idempotent: true,
    });

  return {
    async login(auth) {
      const full = { ...auth, authUrl: keystone };
      const issued = await requestToken(http, { authUrl, request: authRequest(full), who: identityOf(full) }, () =>
        clock.now(),
      );
      return { token: issued.id, lifeMs: issued.lifeMs, person: personOf(place('POST'), issued.body) };
    },
    async validate(token) {
      const answer = await present('GET', token);
      if (answer.status === 401 || answer.status === 404) return null;
      if (answer.status !== 200) throw httpError(place('GET'), answer, clock.now());
      return personOf(place('GET'), parseAs(place('GET'), tokenSchema, answer.text).token);
    },
    async revoke(token) {
      const answer = await present('DELETE', token);
      if (![204, 401, 404].includes(answer.status)) throw httpError(place('DELETE'), answer, clock.now());
    },
    close: () => http.close(),
  };
}

function personOf(place: CallPlace, { user, project, roles }: TokenBody): Person {
  if (user === undefined) throw new BadAnswer(place, 'the token names no user', 'token.user');
  return {
    userId: user.id,
    userName: user.name,
    domainName: user.domain.name,
    project: project === undefined ? null : { name: project.name, domainName: project.domain.name },
    roles: roles.map(({ name }) => name),
  };
}
