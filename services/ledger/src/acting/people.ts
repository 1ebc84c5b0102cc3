/** The people who may act: they log in with their own credentials of Keystone and have sessions. */
import type { IncomingMessage, ServerResponse } from 'node:http';
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
import { type Answer, requests } from '../api/commandSchemas.ts';
import type { Acting, ActingInput } from './deps.ts';
import { cameFrom, cookieOf, setCookie } from './origin.ts';
import { rateLimit } from './rateLimit.ts';
import { limited, parsed, Refused } from './refused.ts';
import { createSessions, type Session, sameSecret } from './sessions.ts';

const MINUTE_MS = 60_000;
/** Log-ins of one name, and of all together: passwords cannot be guessed here faster than that. */
const LOGINS_OF_ONE = { most: 5, perMs: MINUTE_MS };
const LOGINS = { most: 30, perMs: MINUTE_MS };

export type People = {
  /** The session of a request that only reads. */
  readonly shown: (request: IncomingMessage) => Answer<'session'>;
  /** The session of a request that changes something. @throws Refused */
  readonly actor: (request: IncomingMessage) => Session;
  /**
   * Asks Keystone whether the person may still act: a token can be revoked, and a role taken away. Without their last
   * role, a worker of Keystone that has the token in its cache still accepts it and shows no roles; the others refuse
   * it. Both end the session. @throws Refused
   */
  readonly mayStill: (session: Session) => Promise<{ readonly custodian: boolean }>;
  /** @throws Refused */
  readonly logIn: (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<Answer<'logIn'>>;
  /** @throws Refused */
  readonly logOut: (request: IncomingMessage, response: ServerResponse) => Promise<Answer<'logOut'>>;
};

export function createPeople(
  { options, identity, custody }: Acting,
  { clock, monotonic, logger }: Pick<ActingInput, 'clock' | 'monotonic' | 'logger'>,
): People {
  const sessions = createSessions({ most: options.maxSessions, idleMs: options.idleMs }, monotonic);
  const loginsOfOne = rateLimit(LOGINS_OF_ONE, monotonic);
  const logins = rateLimit(LOGINS, monotonic);

  const shown = (session: Session | null): Answer<'session'> => ({
    acting: true,
    userDomainName: options.userDomainName,
    cells: [...options.cells],
    custodian: session?.custodian ?? false,
    person: session?.person ?? null,
    csrf: session?.csrf ?? null,
    until: session === null ? null : new Date(clock() + sessions.leftMs(session)).toISOString(),
  });

  const sessionOf = ({ headers }: IncomingMessage): Session | null => sessions.use(cookieOf(headers));

  /** @throws Refused */
  function ownPage({ headers }: IncomingMessage): { readonly tls: boolean } {
    const came = cameFrom(headers, options.allowedHosts);
    if (!came.ok) throw new Refused(403, came.problem);
    return came;
  }

  function actor(request: IncomingMessage): Session {
    ownPage(request);
    const session = sessionOf(request);
    if (session === null) throw new Refused(401, 'you are not logged in, or the session has ended: log in again');
    const csrf = request.headers['x-kronos-csrf'];
    if (typeof csrf !== 'string' || !sameSecret(csrf, session.csrf))
      throw new Refused(403, 'the header X-Kronos-Csrf is missing or wrong: reload the page');
    return session;
  }

  /** @throws Refused when the person may not act */
  function checkPerson({ project, roles }: Person): void {
    const wanted = `${options.projectName} (domain ${options.projectDomainName})`;
    if (project?.name !== options.projectName || project.domainName !== options.projectDomainName)
      throw new Refused(403, `the credentials are not for the project ${wanted}`);
    if (!options.roles.some((role) => roles.includes(role)))
      throw new Refused(403, `none of the roles ${options.roles.join(', ')} on the project ${wanted}`);
  }

  const isCustodian = ({ roles }: Person): boolean =>
    custody !== null && options.custodianRoles.some((role) => roles.includes(role));

  return {
    shown: (request) => shown(sessionOf(request)),
    actor,

    async mayStill(session) {
      const person = await identity.validate(session.token).catch((error: unknown) => {
        throw keystoneProblem(error);
      });
      try {
        if (person === null)
          throw new Refused(401, 'Keystone no longer accepts the token of this session: log in again');
        checkPerson(person);
        return { custodian: isCustodian(person) };
      } catch (error) {
        sessions.end(session);
        throw error;
      }
    },

    async logIn(request, response, body) {
      const { tls } = ownPage(request);
      const asked = parsed(requests.logIn, body);
      const userDomainName = asked.method === 'password' ? (asked.userDomainName ?? options.userDomainName) : null;
      limited(
        loginsOfOne(asked.method === 'password' ? `${asked.userName}@${userDomainName}`.toLowerCase() : asked.id),
      );
      limited(logins(''));
      const { token, lifeMs, person } = await identity
        .login(credentialsOf(asked, userDomainName ?? '', options))
        .catch((error: unknown) => {
          throw keystoneProblem(error);
        });
      try {
        checkPerson(person);
      } catch (error) {
        await identity.revoke(token).catch(() => undefined);
        throw error;
      }
      const { cookie, session } = sessions.open({
        person: `${person.userName}@${person.domainName}`,
        custodian: isCustodian(person),
        token,
        lifeMs,
      });
      response.setHeader('set-cookie', setCookie(cookie, { tls }));
      logger.info({ person: session.person }, 'a person logged in to the console');
      return shown(session);
    },

    async logOut(request, response) {
      const session = actor(request);
      sessions.end(session);
      response.setHeader('set-cookie', setCookie(null, ownPage(request)));
      logger.info({ person: session.person }, 'a person logged out of the console');
      await identity
        .revoke(session.token)
        .catch((error: unknown) => logger.warn({ err: error }, 'a token could not be revoked: it ends by its time'));
      return shown(null);
    },
  };
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
