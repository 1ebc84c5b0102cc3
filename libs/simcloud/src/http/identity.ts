import type { Cloud } from '../cloud.ts';
import { ActError } from '../errors.ts';
import type { User } from '../model.ts';
import { random, type SeededRandom } from '../random.ts';
import { bodyJson, type Call, json, object, type Reply, textIn } from './exchange.ts';

export interface Token {
  readonly id: string;
  readonly user: User;
  readonly projectId: string | null;
  readonly methods: readonly string[];
  readonly issuedMs: number;
  readonly expiresMs: number;
  readonly auditId: string;
  readonly parentAuditId: string | null;
  readonly credential: { readonly id: string; readonly name: string } | null;
}

/** Service type and name -> URL. */
export interface CatalogEntry {
  readonly type: string;
  readonly name: string;
  readonly url: string;
}

type Given = Readonly<Record<string, unknown>>;

/** The identity that an authentication method proves. */
type Proven = { readonly user: User; readonly projectId?: string; readonly parent?: string } & Partial<
  Pick<Token, 'credential'>
>;

const NO_JSON =
  'Expecting to find valid JSON in request body. The server could not comply with the request since it is either ' +
  'malformed or otherwise incorrect. The client is assumed to be in error.';
const NO_IDENTITY = "'identity' is a required property\n\nFailed validating 'required' in schema";

/** Keystone v3 as a client of the APIs uses it: tokens, and the catalog in them. */
export class Keystone {
  readonly tokens = new Map<string, Token>();
  /** Life of a new token, seconds. */
  tokenSeconds: number;
  readonly #cloud: Cloud;
  readonly #catalog: () => readonly CatalogEntry[];
  readonly #random: SeededRandom;
  /** Roles of users by their ids, where they are not those of the scenario. */
  readonly #roles = new Map<string, readonly string[]>();

  constructor(cloud: Cloud, catalog: () => readonly CatalogEntry[], seed: number) {
    this.#cloud = cloud;
    this.#catalog = catalog;
    this.#random = random(seed);
    this.tokenSeconds = cloud.scenario.tokenSeconds;
  }

  /** The token's owner, while it is valid. */
  check(token: string | undefined, nowMs: number): Token | undefined {
    const found = token === undefined ? undefined : this.tokens.get(token);
    if (found === undefined || found.expiresMs <= nowMs) return undefined;
    return { ...found, user: this.#asOfNow(found.user) };
  }

  /** Every token issued so far becomes invalid. */
  revokeAll(): void {
    this.tokens.clear();
  }

  /** Gives a user these roles instead of those that they have. @throws ActError when nobody has that name */
  setRoles(name: string, roles: readonly string[]): void {
    const user = [...this.#cloud.users.values()].find((each) => each.name === name);
    if (user === undefined) throw new ActError(`there is no user ${name}`);
    this.#roles.set(user.id, roles);
  }

  answer(call: Call): Reply {
    const { path } = call;
    if (path === '' || path === '/') return this.#versions(call);
    if (path === '/v3' || path === '/v3/') return json(200, { version: version(call) }, vary(call));
    if (path === '/v3/auth/tokens') return call.method === 'POST' ? this.#issue(call) : this.#subject(call);
    if (path === '/v3/auth/catalog') {
      const caller = this.check(call.headers['x-auth-token'], call.nowMs);
      return caller === undefined
        ? unauthorized(call)
        : json(200, { catalog: this.#view(caller).catalog ?? [], links: {} }, vary(call));
    }
    return {
      status: 404,
      headers: { 'Content-Type': 'text/html; charset=utf-8', ...vary(call) },
      body:
        '<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n' +
        '<p>The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.</p>\n',
    };
  }

  /** Shows or revokes the token in X-Subject-Token. */
  #subject(call: Call): Reply {
    const caller = this.check(call.headers['x-auth-token'], call.nowMs);
    if (caller === undefined) return unauthorized(call);
    const subject = this.check(call.headers['x-subject-token'], call.nowMs);
    if (subject === undefined) return unknownToken(call);
    // Each worker of the real Keystone has a cache of its own: one that still has the token shows no roles, and the
    // others refuse the token as that of the caller or as the subject.
    if (subject.projectId !== null && subject.user.roles.length === 0) {
      const worker = this.#random.int(0, 2);
      if (worker === 0) return unauthorized(call);
      if (worker === 1) return unknownToken(call);
    }
    if (call.method === 'DELETE') {
      this.tokens.delete(subject.id);
      return { status: 204, headers: vary(call), body: '' };
    }
    return json(200, { token: this.#view(subject) }, { 'X-Subject-Token': subject.id, ...vary(call) });
  }

  #asOfNow(user: User): User {
    return { ...user, roles: this.#roles.get(user.id) ?? user.roles };
  }

  #versions(call: Call): Reply {
    return json(300, { versions: { values: [version(call)] } }, { Location: `${call.base}/v3/`, ...vary(call) });
  }

  #issue(call: Call): Reply {
    const body = object(bodyJson(call.body));
    if (body === undefined) return badRequest(call, NO_JSON);
    const auth = object(body.auth);
    const identity = object(auth?.identity);
    if (identity === undefined) return badRequest(call, NO_IDENTITY);
    const methods = Array.isArray(identity.methods) ? identity.methods.filter((each) => typeof each === 'string') : [];
    const proven = this.#proveAll(call, methods, identity);
    if ('status' in proven) return proven;
    const user = this.#asOfNow(proven.user);
    const project = object(object(auth?.scope)?.project);
    const scope = project === undefined ? { id: proven.projectId ?? null } : this.#projectOf(user, project);
    if (scope === undefined) return unauthorized(call);
    const token: Token = {
      id: `gAAAAAB${this.#random.word(160)}`,
      user,
      projectId: scope.id,
      methods: methods.length === 0 ? ['password'] : methods,
      issuedMs: call.nowMs,
      expiresMs: call.nowMs + this.tokenSeconds * 1000,
      auditId: this.#random.word(22),
      parentAuditId: proven.parent ?? null,
      credential: proven.credential ?? null,
    };
    this.tokens.set(token.id, token);
    return json(201, { token: this.#view(token) }, { 'X-Subject-Token': token.id, ...vary(call) });
  }

  /** Who the methods together prove the caller to be, or the first refusal. */
  #proveAll(call: Call, methods: readonly string[], identity: Given): Proven | Reply {
    let proven: Proven | undefined;
    for (const method of methods) {
      const result = this.#prove(call, method, object(identity[method]) ?? {});
      if (result === null) continue;
      if ('status' in result) return result;
      proven = { ...proven, ...result };
    }
    return proven ?? unauthorized(call);
  }

  /** Who a method proves the caller to be, or the refusal; null: a method that is not known here. */
  #prove(call: Call, method: string, given: Given): Proven | Reply | null {
    if (method === 'password') return this.#byPassword(call, given);
    if (method === 'token') {
      const former = this.check(textIn(given.id), call.nowMs);
      return former === undefined ? unknownToken(call) : { user: former.user, parent: former.auditId };
    }
    return method === 'application_credential' ? this.#byCredential(call, given) : null;
  }

  #byPassword(call: Call, given: Given): Proven | Reply {
    const asked = object(given.user);
    const user = [...this.#cloud.users.values()].find(
      (each) => each.id === asked?.id || (each.name === asked?.name && isDefaultDomain(object(asked?.domain))),
    );
    return user === undefined || user.password !== asked?.password ? unauthorized(call) : { user };
  }

  #byCredential(call: Call, given: Given): Proven | Reply {
    const id = textIn(given.id);
    const name = textIn(given.name);
    const owner = object(given.user);
    const found = [...this.#cloud.applicationCredentials.values()].find((each) => {
      if (id !== undefined) return each.id === id;
      const by = this.#cloud.users.get(each.userId);
      return each.name === name && (owner?.id === by?.id || owner?.name === by?.name);
    });
    if (found === undefined)
      return failure(call, 404, 'Not Found', `Could not find Application Credential: ${id ?? name ?? ''}.`);
    const user = found.secret === given.secret ? this.#cloud.users.get(found.userId) : undefined;
    if (user === undefined) return unauthorized(call);
    return { user, projectId: user.projectId, credential: { id: found.id, name: found.name } };
  }

  /** The project that a scope names; undefined when the user has no role in it. */
  #projectOf(user: User, wanted: Given): { readonly id: string } | undefined {
    const project = [...this.#cloud.projects.values()].find(
      (each) => each.id === wanted.id || (each.name === wanted.name && isDefaultDomain(object(wanted.domain))),
    );
    if (user.roles.length === 0 || project === undefined) return undefined;
    return project.id === user.projectId || user.roles.includes('admin') ? project : undefined;
  }

  #view(token: Token): Record<string, unknown> {
    const domain = { id: 'default', name: 'Default' };
    const iso = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}.000000Z`;
    const view: Record<string, unknown> = {
      methods: token.methods,
      user: { domain, id: token.user.id, name: token.user.name, password_expires_at: null },
      audit_ids: token.parentAuditId === null ? [token.auditId] : [token.auditId, token.parentAuditId],
      expires_at: iso(token.expiresMs),
      issued_at: iso(token.issuedMs),
    };
    if (token.projectId === null) return view;
    const project = [...this.#cloud.projects.values()].find((each) => each.id === token.projectId);
    view.project = { domain, id: token.projectId, name: project?.name ?? '' };
    view.is_domain = false;
    view.roles = token.user.roles.map((name) => ({ id: hexOf(name), name }));
    view.catalog = this.#catalog().map((entry) => ({
      endpoints: ['public', 'admin', 'internal'].map((face) => ({
        id: hexOf(`${entry.type}/${face}`),
        interface: face,
        region_id: this.#cloud.scenario.region,
        url: entry.url,
        region: this.#cloud.scenario.region,
      })),
      id: hexOf(entry.type),
      type: entry.type,
      name: entry.name,
    }));
    if (token.credential !== null) view.application_credential = { ...token.credential, restricted: true };
    return view;
  }
}

function hexOf(name: string): string {
  return Buffer.from(name.padEnd(16, '.')).toString('hex').slice(0, 32);
}

function isDefaultDomain(domain: Readonly<Record<string, unknown>> | undefined): boolean {
  return domain?.id === 'default' || domain?.name === 'Default';
}

function version(call: Call): unknown {
  return {
    id: 'v3.14',
    status: 'stable',
    updated: '2020-04-07T00:00:00Z',
    links: [{ rel: 'self', href: `${call.base}/v3/` }],
    'media-types': [{ base: 'application/json', type: 'application/vnd.openstack.identity-v3+json' }],
  };
}

function vary(call: Call): Record<string, string> {
  return { Vary: 'X-Auth-Token', 'x-openstack-request-id': call.requestId };
}

function failure(call: Call, code: number, title: string, message: string): Reply {
  return json(code, { error: { code, message, title } }, vary(call));
}

const badRequest = (call: Call, message: string): Reply => failure(call, 400, 'Bad Request', message);

const unknownToken = (call: Call): Reply => failure(call, 404, 'Not Found', 'Could not recognize Fernet token');

function unauthorized(call: Call): Reply {
  return failure(call, 401, 'Unauthorized', 'The request you have made requires authentication.');
}

/** keystonemiddleware's answer for Nova and Placement when the token is missing, unknown or expired. */
export function denied(call: Call, keystone: string): Reply {
  return json(
    401,
    { error: { code: 401, title: 'Unauthorized', message: 'The request you have made requires authentication.' } },
    { 'WWW-Authenticate': `Keystone uri="${keystone}"`, 'X-Openstack-Request-Id': call.requestId },
  );
}
