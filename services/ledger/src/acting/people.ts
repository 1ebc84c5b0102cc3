/** The people who may act: they log in with their own credentials of Keystone and have sessions. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { iso } from '@kronos/contracts';
import {
  BadAuthOptions,
  HttpError,
  type Identity,
  type Person,
  Timeout,
  Unauthorized,
  Unreachable,
} from '@kronos/openstack';
import type { z } from 'zod';
import { type ActingAnswer, requests } from '../api/commandSchemas.ts';
import { cookieOf, setCookie } from './cookie.ts';
import type { Acting, ActingInput } from './deps.ts';
import { cameFrom } from './origin.ts';
import { rateLimit } from './rateLimit.ts';
import { limited, parsed, Refused } from './refused.ts';
import { createSessions, type PersonSession, sameSecret } from './sessions.ts';

const MINUTE_MS = 60_000;
/** Log-ins of one name, and of all together: passwords cannot be guessed here faster than that. */
const LOGINS_OF_ONE = { most: 5, perMs: MINUTE_MS };
const LOGINS = { most: 30, perMs: MINUTE_MS };

type PeopleInput = Pick<ActingInput, 'clock' | 'monotonic' | 'logger'>;

export class People {
  readonly #acting: Acting;
  readonly #input: PeopleInput;
  readonly #sessions: ReturnType<typeof createSessions>;
  readonly #loginsOfOne: ReturnType<typeof rateLimit>;
  readonly #logins: ReturnType<typeof rateLimit>;

  constructor(acting: Acting, input: PeopleInput) {
    const { maxSessions, idleMs } = acting.options;
    this.#acting = acting;
    this.#input = input;
    this.#sessions = createSessions({ most: maxSessions, idleMs }, input.monotonic);
    this.#loginsOfOne = rateLimit(LOGINS_OF_ONE, input.monotonic);
    this.#logins = rateLimit(LOGINS, input.monotonic);
  }

  /** The session of a request that only reads. */
  shown(request: IncomingMessage): ActingAnswer<'session'> {
    return this.#answer(this.#sessionOf(request));
  }

  /** The session of a request that changes something. @throws Refused */
  actor(request: IncomingMessage): PersonSession {
    this.#ownPage(request);
    const session = this.#sessionOf(request);
    if (session === null) throw new Refused(401, 'you are not logged in, or the session has ended: log in again');
    const csrf = request.headers['x-kronos-csrf'];
    if (typeof csrf !== 'string' || !sameSecret(csrf, session.csrf))
      throw new Refused(403, 'the header X-Kronos-Csrf is missing or wrong: reload the page');
    return session;
  }

  /**
   * Asks Keystone whether the person may still act: a token can be revoked, and a role taken away. Without their last
   * role, a worker of Keystone that has the token in its cache still accepts it and shows no roles; the others refuse
   * it. Both end the session. @throws Refused
   */
  async mayStill(session: PersonSession): Promise<{ readonly custodian: boolean }> {
    const person = await this.#acting.identity.validate(session.token).catch((error: unknown) => {
      throw keystoneProblem(error);
    });
    try {
      if (person === null) throw new Refused(401, 'Keystone no longer accepts the token of this session: log in again');
      this.#checkPerson(person);
      return { custodian: this.#isCustodian(person) };
    } catch (error) {
      this.#sessions.end(session);
      throw error;
    }
  }

  /** @throws Refused */
  async logIn(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<ActingAnswer<'logIn'>> {
    const { options, identity } = this.#acting;
    const { tls } = this.#ownPage(request);
    const asked = parsed(requests.logIn, body);
    const userDomainName = asked.method === 'password' ? (asked.userDomainName ?? options.userDomainName) : null;
    limited(
      this.#loginsOfOne(asked.method === 'password' ? `${asked.userName}@${userDomainName}`.toLowerCase() : asked.id),
    );
    limited(this.#logins(''));
    const { token, lifeMs, person } = await identity
      .login(credentialsOf(asked, userDomainName ?? '', options))
      .catch((error: unknown) => {
        throw keystoneProblem(error);
      });
    try {
      this.#checkPerson(person);
    } catch (error) {
      await identity.revoke(token).catch(() => undefined);
      throw error;
    }
    const { cookie, session } = this.#sessions.open({
      person: `${person.userName}@${person.domainName}`,
      custodian: this.#isCustodian(person),
      token,
      lifeMs,
    });
    response.setHeader('set-cookie', setCookie(cookie, { tls }));
    this.#input.logger.info({ person: session.person }, 'a person logged in to the console');
    return this.#answer(session);
  }

  /** @throws Refused */
  async logOut(request: IncomingMessage, response: ServerResponse): Promise<ActingAnswer<'logOut'>> {
    const { logger } = this.#input;
    const session = this.actor(request);
    this.#sessions.end(session);
    response.setHeader('set-cookie', setCookie(null, this.#ownPage(request)));
    logger.info({ person: session.person }, 'a person logged out of the console');
    await this.#acting.identity
      .revoke(session.token)
      .catch((error: unknown) => logger.warn({ err: error }, 'a token could not be revoked: it ends by its time'));
    return this.#answer(null);
  }

  #answer(session: PersonSession | null): ActingAnswer<'session'> {
    const { options } = this.#acting;
    return {
      acting: true,
      userDomainName: options.userDomainName,
      cells: [...options.cells],
      custodian: session?.custodian ?? false,
      person: session?.person ?? null,
      csrf: session?.csrf ?? null,
      until: session === null ? null : iso(this.#input.clock() + this.#sessions.leftMs(session)),
    };
  }

  #sessionOf({ headers }: IncomingMessage): PersonSession | null {
    return this.#sessions.use(cookieOf(headers));
  }

  /** @throws Refused */
  #ownPage({ headers }: IncomingMessage): { readonly tls: boolean } {
    const came = cameFrom(headers, this.#acting.options.allowedHosts);
    if (!came.ok) throw new Refused(403, came.problem);
    return came;
  }

  /** @throws Refused when the person may not act */
  #checkPerson({ project, roles }: Person): void {
    const { options } = this.#acting;
    const wanted = `${options.projectName} (domain ${options.projectDomainName})`;
    if (project?.name !== options.projectName || project.domainName !== options.projectDomainName)
      throw new Refused(403, `the credentials are not for the project ${wanted}`);
    if (!options.roles.some((role) => roles.includes(role)))
      throw new Refused(403, `none of the roles ${options.roles.join(', ')} on the project ${wanted}`);
  }

  #isCustodian({ roles }: Person): boolean {
    const { options, custody } = this.#acting;
    return custody !== null && options.custodianRoles.some((role) => roles.includes(role));
  }
}

function credentialsOf(
  asked: z.infer<typeof requests.logIn>,
  userDomainName: string,
  { projectName, projectDomainName }: Acting['options'],
): Parameters<Identity['login']>[0] {
  return asked.method === 'password'
    ? { username: asked.userName, userDomainName, password: asked.password, projectName, projectDomainName }
    : {
        authType: 'v3applicationcredential',
        applicationCredentialId: asked.id,
        applicationCredentialSecret: asked.secret,
      };
}

/** The answer to a person for an error of Keystone. It quotes nothing that they typed. */
function keystoneProblem(error: unknown): unknown {
  if (error instanceof Unauthorized || error instanceof BadAuthOptions)
    return new Refused(401, 'Keystone refused these credentials, or they have no role on the project');
  if (error instanceof Unreachable || error instanceof Timeout || (error instanceof HttpError && error.status >= 500))
    return new Refused(503, 'Keystone does not answer: try again, or use the kronos command');
  if (error instanceof HttpError) return new Refused(401, `Keystone refused the log-in with status ${error.status}`);
  return error;
}
