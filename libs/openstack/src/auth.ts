import type { TlsOptions } from '@kronos/http';
import { BadAuthOptions } from './errors.ts';

/** How to authenticate and which endpoints to use, in keystoneauth's terms. */
export interface AuthOptions {
  /** `password` (default), `v3applicationcredential` or `v3token`; the aliases `v3password` and `token` are known too. */
  readonly authType?: string | undefined;
  /** Keystone, with or without `/v3`. */
  readonly authUrl: string;

  readonly username?: string | undefined;
  readonly userId?: string | undefined;
  readonly password?: string | undefined;
  readonly userDomainName?: string | undefined;
  readonly userDomainId?: string | undefined;

  readonly projectName?: string | undefined;
  readonly projectId?: string | undefined;
  readonly projectDomainName?: string | undefined;
  readonly projectDomainId?: string | undefined;
  /** Scope to a domain instead of a project. */
  readonly domainName?: string | undefined;
  readonly domainId?: string | undefined;
  /** `all`: scope to the system. */
  readonly systemScope?: string | undefined;
  /** Used where a user or project domain is not given. */
  readonly defaultDomainName?: string | undefined;
  readonly defaultDomainId?: string | undefined;

  readonly applicationCredentialId?: string | undefined;
  readonly applicationCredentialName?: string | undefined;
  readonly applicationCredentialSecret?: string | undefined;

  /** For `v3token`. */
  readonly token?: string | undefined;

  /** Required when the catalog has the service in more than one region. */
  readonly regionName?: string | undefined;
  /** In order of preference; default `internal,public`, as in OpenStack's own services. */
  readonly validInterfaces?: readonly string[] | undefined;
  /** Endpoint per service type, used instead of the catalog, e.g. `{compute: 'https://nova:8774/v2.1'}`. */
  readonly endpointOverrides?: Readonly<Record<string, string | undefined>> | undefined;
  readonly tls?: TlsOptions | undefined;
}

type Ref = { id: string } | { name: string };

/** The body of `POST /v3/auth/tokens` (Identity API v3). @throws BadAuthOptions naming the option that is missing. */
export function authRequest(options: AuthOptions): { auth: unknown } {
  return { auth: { identity: identity(options), ...scope(options) } };
}

/** The user, for messages; without secrets. */
export function identityOf(options: AuthOptions): string {
  switch (kindOf(options)) {
    case 'application_credential':
      return `application credential ${options.applicationCredentialId ?? options.applicationCredentialName ?? '?'}`;
    case 'token':
      return 'the given token';
    case 'password': {
      const domain = options.userDomainName ?? options.userDomainId;
      return `user ${options.username ?? options.userId ?? '?'}${domain === undefined ? '' : ` in domain ${domain}`}`;
    }
  }
}

/** Base URL of Keystone's v3 API. @throws BadAuthOptions when `auth_url` is no URL of HTTP */
export function keystoneUrl(authUrl: string): string {
  let url: URL;
  try {
    url = new URL(authUrl);
  } catch {
    throw new BadAuthOptions('auth_url', `"${authUrl}" is not a URL; expected e.g. https://keystone.example:5000/v3`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new BadAuthOptions('auth_url', `"${authUrl}" must begin with http:// or https://`);
  }
  const base = `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v2\.0$/, '');
  return base.endsWith('/v3') ? base : `${base}/v3`;
}

function kindOf(options: AuthOptions): 'password' | 'application_credential' | 'token' {
  switch (options.authType ?? 'password') {
    case 'password':
    case 'v3password':
      return 'password';
    case 'v3applicationcredential':
      return 'application_credential';
    case 'token':
    case 'v3token':
      return 'token';
    default:
      throw new BadAuthOptions(
        'auth_type',
        `"${options.authType}" is not supported; use password, v3applicationcredential or v3token`,
      );
  }
}

function identity(options: AuthOptions): unknown {
  const kind = kindOf(options);
  switch (kind) {
    case 'password':
      return {
        methods: ['password'],
        password: { user: { ...user(options), password: required('password', options.password) } },
      };
    case 'application_credential': {
      const secret = required('application_credential_secret', options.applicationCredentialSecret);
      if (options.applicationCredentialId !== undefined) {
        return { methods: [kind], application_credential: { id: options.applicationCredentialId, secret } };
      }
      const name = required(
        'application_credential_id',
        options.applicationCredentialName,
        'give it, or application_credential_name with the user',
      );
      return { methods: [kind], application_credential: { name, secret, user: user(options) } };
    }
    case 'token':
      return { methods: ['token'], token: { id: required('token', options.token) } };
  }
}

function user(options: AuthOptions): { id: string } | { name: string; domain: Ref } {
  if (options.userId !== undefined) return { id: options.userId };
  const name = required('username', options.username, 'give username or user_id');
  return { name, domain: domain('user_domain_name', options.userDomainId, options.userDomainName, options) };
}

function scope(options: AuthOptions): { scope?: unknown } {
  // An application credential is bound to its project; Keystone refuses a scope beside it.
  if (kindOf(options) === 'application_credential') return {};
  if (options.systemScope !== undefined) {
    if (options.systemScope !== 'all') throw new BadAuthOptions('system_scope', 'the only value is "all"');
    return { scope: { system: { all: true } } };
  }
  if (options.projectId !== undefined) return { scope: { project: { id: options.projectId } } };
  if (options.projectName !== undefined) {
    const of = domain('project_domain_name', options.projectDomainId, options.projectDomainName, options);
    return { scope: { project: { name: options.projectName, domain: of } } };
  }
  if (options.domainId !== undefined) return { scope: { domain: { id: options.domainId } } };
  if (options.domainName !== undefined) return { scope: { domain: { name: options.domainName } } };
  if (kindOf(options) === 'token') return {};
  throw new BadAuthOptions('project_name', 'no scope: give project_name or project_id (or system_scope = all)');
}

function domain(option: string, id: string | undefined, name: string | undefined, options: AuthOptions): Ref {
  if (id !== undefined) return { id };
  if (name !== undefined) return { name };
  if (options.defaultDomainId !== undefined) return { id: options.defaultDomainId };
  if (options.defaultDomainName !== undefined) return { name: options.defaultDomainName };
  throw new BadAuthOptions(option, `missing; give ${option} or ${option.replace(/_name$/, '_id')}, often "Default"`);
}

function required(option: string, value: string | undefined, remedy = 'it must be set'): string {
  if (value === undefined || value === '') throw new BadAuthOptions(option, `missing; ${remedy}`);
  return value;
}
