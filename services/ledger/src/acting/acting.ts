import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EventLog, LogView } from '@kronos/eventlog';
import {
  BadAuthOptions,
  HttpError,
  type Identity,
  type Person,
  Timeout,
  Unauthorized,
  Unreachable,
} from '@kronos/openstack';
import {
  ClockWrong,
  CommandRefused,
  type Following,
  giveCommand,
  requireCells,
  requireUnblocked,
} from '@kronos/operator';
import type { LogState } from '@kronos/projections';
import { type HttpServer, type Logger, sendJson } from '@kronos/telemetry';
import type { z } from 'zod';
import { BadRequest } from '../api/answer.ts';
import { ACTING } from '../api/endpoints.ts';
import { Changed, confirmed, type DrainAnswer, drainLines, foreseen } from './command.ts';
import { cameFrom, cookieOf, setCookie } from './origin.ts';
import { rateLimit } from './rateLimit.ts';
import { type actingAnswers, type Command, requests } from './schemas.ts';
import { createSessions, type Session, sameSecret } from './sessions.ts';

/** What acting needs: `[console]`, Keystone, and a connection that may write commands. */
export type Acting = {
  readonly options: {
    readonly userDomainName: string;
    readonly projectName: string;
    readonly projectDomainName: string;
    readonly roles: readonly string[];
    /** Those who may skip unreadable events need one of these too. */
    readonly custodianRoles: readonly string[];
    /** Aggregates of `[cells] aggregates`. */
    readonly cells: readonly string[];
    readonly idleMs: number;
    readonly maxSessions: number;
    /** `[http] allowed_hosts` */
    readonly allowedHosts: readonly string[];
  };
  readonly identity: Identity;
  /** Connected as a NATS user of its own: the ledger's may not write commands. */
  readonly log: Pick<EventLog, 'append'>;
  /** Connected as the NATS user that may skip events; null: nobody skips them from the console. */
  readonly custody: Pick<EventLog, 'append'> | null;
};

export type ActingInput = {
  readonly acting: Acting | null;
  readonly log: Pick<EventLog, 'readClock'>;
  readonly view: Pick<LogView<LogState>, 'at' | 'refresh' | 'upTo'>;
  readonly following: Following;
  readonly scope: readonly string[];
  readonly version: string;
  readonly maxSkewMs: number;
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly logger: Logger;
  /** What a drain would do now. @throws BadRequest for a host that is not there */
  readonly drain: (aggregate: string, host: string) => Promise<DrainAnswer>;
};

/** Largest body of a request. */
const BODY_BYTES = 16 * 1024;
const MINUTE_MS = 60_000;
/** Log-ins of one name, and of all together: passwords cannot be guessed here faster than that. */
const LOGINS_OF_ONE = { most: 5, perMs: MINUTE_MS };
const LOGINS = { most: 30, perMs: MINUTE_MS };
/** Requests of one session: a person confirms each command, and looks at it before. */
const COMMANDS = { most: 60, perMs: MINUTE_MS };

type Answer<C extends keyof typeof actingAnswers> = z.infer<(typeof actingAnswers)[C]>;

/** An answer other than 200, with what the client should do about it. */
class Refused extends BadRequest {
  readonly retryAfterMs: number;
  constructor(status: number, message: string, retryAfterMs = 0) {
    super(status, message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** Adds log-in, log-out and commands to the server; without acting only the answer that there is none. */
export function addActing(http: HttpServer, input: ActingInput): void {
  const { acting, monotonic, clock, logger } = input;
  if (acting === null) {
    http.route(ACTING.session, (_, response) =>
      sendJson(response, 200, {
        acting: false,
        userDomainName: null,
        cells: [],
        custodian: false,
        person: null,
        csrf: null,
        until: null,
      }),
    );
    return;
  }
  const { options, identity, log, custody } = acting;
  const sessions = createSessions({ most: options.maxSessions, idleMs: options.idleMs }, monotonic);
  const loginsOfOne = rateLimit(LOGINS_OF_ONE, monotonic);
  const logins = rateLimit(LOGINS, monotonic);
  const commands = rateLimit(COMMANDS, monotonic);

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

  /** The session of a request that changes something. @throws Refused */
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

  /** Whoever may act on VMs may not skip events by that alone. @throws Refused */
  function checkCustodian(command: Command, custodian: boolean): void {
    if (command.command !== 'skip' || custodian) return;
    throw new Refused(
      403,
      custody === null || options.custodianRoles.length === 0
        ? 'nobody may skip events from the console: [console] custodian_roles is empty. Use kronos log skip'
        : `skipping events needs one of the roles ${options.custodianRoles.join(', ')} on the project ${options.projectName}`,
    );
  }

  function limited(waitMs: number): void {
    if (waitMs > 0) throw new Refused(429, 'too many requests', waitMs);
  }

  async function logIn(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<Answer<'logIn'>> {
    const { tls } = ownPage(request);
    const asked = parsed(requests.logIn, body);
    const userDomainName = asked.method === 'password' ? (asked.userDomainName ?? options.userDomainName) : null;
    limited(loginsOfOne(asked.method === 'password' ? `${asked.userName}@${userDomainName}`.toLowerCase() : asked.id));
    limited(logins(''));
    const { token, lifeMs, person } = await identity
      .login(
        asked.method === 'password'
          ? {
              username: asked.userName,
              userDomainName: userDomainName ?? '',
              password: asked.password,
              projectName: options.projectName,
              projectDomainName: options.projectDomainName,
            }
          : {
              authType: 'v3applicationcredential',
              applicationCredentialId: asked.id,
              applicationCredentialSecret: asked.secret,
            },
      )
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
    response.setHeader('set-cookie', setCookie(cookie, tls));
    logger.info({ person: session.person }, 'a person logged in to the console');
    return shown(session);
  }

  async function logOut(request: IncomingMessage, response: ServerResponse): Promise<Answer<'logOut'>> {
    const session = actor(request);
    sessions.end(session);
    response.setHeader('set-cookie', setCookie(null, ownPage(request).tls));
    logger.info({ person: session.person }, 'a person logged out of the console');
    await identity
      .revoke(session.token)
      .catch((error: unknown) => logger.warn({ err: error }, 'a token could not be revoked: it ends by its time'));
    return shown(null);
  }

  const asking = (session: Session, comment: string | null) => ({
    commandId: randomUUID(),
    person: session.person,
    version: input.version,
    comment,
  });

  /** @returns what the state alone does not say of it, in words. @throws CommandRefused, BadRequest */
  async function checkPossible(command: Command): Promise<readonly string[]> {
    if (command.command === 'cellsPlan') requireCells(options.cells, input.scope, command.aggregate, command.to);
    if (command.command !== 'drain') return [];
    const drain = await input.drain(command.aggregate, command.host);
    requireUnblocked(drain);
    return drainLines(drain);
  }

  async function foresee(request: IncomingMessage, body: unknown): Promise<Answer<'foresee'>> {
    const session = actor(request);
    limited(commands(session.csrf));
    const { command } = parsed(requests.foresee, body);
    checkCustodian(command, session.custodian);
    await input.view.refresh();
    const known = await checkPossible(command);
    const { state } = input.view.at();
    const { effect, says, planId, digest } = foreseen(state, input.scope, command, {
      ...asking(session, null),
      nowMs: clock(),
    });
    return { effect, says: [...says, ...known], planId, digest };
  }

  /**
   * Asks Keystone whether the person may still act: a token can be revoked, and a role taken away. Without their last
   * role, a worker of Keystone that has the token in its cache still accepts it and shows no roles; the others refuse
   * it. Both end the session. @throws Refused
   */
  async function checkAgain(session: Session): Promise<Person> {
    const person = await identity.validate(session.token).catch((error: unknown) => {
      throw keystoneProblem(error);
    });
    try {
      if (person === null) throw new Refused(401, 'Keystone no longer accepts the token of this session: log in again');
      checkPerson(person);
      return person;
    } catch (error) {
      sessions.end(session);
      throw error;
    }
  }

  async function give(request: IncomingMessage, body: unknown): Promise<Answer<'give'>> {
    const session = actor(request);
    limited(commands(session.csrf));
    const { command, digest, comment: said } = parsed(requests.give, body);
    const comment = said === null || said.trim() === '' ? null : said.trim();
    if (command.command === 'skip' && comment === null)
      throw new Refused(400, 'a skip needs a reason, which is shown permanently: give a comment');
    checkCustodian(command, isCustodian(await checkAgain(session)));
    await input.view.refresh();
    await checkPossible(command);
    const writer = command.command === 'skip' && custody !== null ? custody : log;
    const told = await giveCommand(
      { append: (message, how) => writer.append(message, how), readClock: () => input.log.readClock() },
      input.view,
      input.following,
      {
        ...asking(session, comment),
        now: clock,
        maxSkewMs: input.maxSkewMs,
        onSkew: (problem) => logger.warn({ problem }, 'a command was given with a wrong clock'),
        onUnchanged: true,
      },
      (state, who) => confirmed(state, input.scope, command, who, digest),
    );
    const { command: type, aggregate, sequence, commandId, effect } = told;
    logger.info({ person: session.person, type, aggregate, sequence, commandId, effect }, 'a person gave a command');
    return told;
  }

  const answer = async (response: ServerResponse, act: () => object | Promise<object>): Promise<void> => {
    try {
      sendJson(response, 200, await act());
    } catch (error) {
      const refused = refusalOf(error);
      if (refused.retryAfterMs > 0) response.setHeader('retry-after', String(Math.ceil(refused.retryAfterMs / 1000)));
      sendJson(response, refused.status, { error: refused.message });
    }
  };

  http.route(
    ACTING.session,
    (request, response, _url, body) =>
      answer(response, () => {
        if (request.method === 'POST') return logIn(request, response, body);
        if (request.method === 'DELETE') return logOut(request, response);
        return shown(sessionOf(request));
      }),
    { methods: ['GET', 'HEAD', 'POST', 'DELETE'], bodyBytes: BODY_BYTES },
  );
  const post = { methods: ['POST'], bodyBytes: BODY_BYTES };
  http.route(ACTING.foresee, (request, response, _, body) => answer(response, () => foresee(request, body)), post);
  http.route(ACTING.give, (request, response, _, body) => answer(response, () => give(request, body)), post);
}

/** @throws Refused that names the field */
function parsed<S extends z.ZodType>(schema: S, body: unknown): z.infer<S> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Refused(400, `the body is wrong: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
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

/** @throws what is no answer to the person */
function refusalOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  if (error instanceof BadRequest) return new Refused(error.status, error.message);
  if (error instanceof Changed) return new Refused(409, error.message);
  if (error instanceof CommandRefused)
    return new Refused(409, error.remedy === undefined ? error.message : `${error.message}. ${error.remedy}`);
  if (error instanceof ClockWrong) return new Refused(503, error.message);
  throw error;
}
