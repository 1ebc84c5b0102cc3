import type { Cloud } from '../../cloud.ts';
import { NovaRefusal } from '../../errors.ts';
import { type Call, json, type Reply } from '../exchange.ts';
import type { Token } from '../identity.ts';

const NAMES: Readonly<Record<number, string>> = {
  400: 'badRequest',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'itemNotFound',
  409: 'conflictingRequest',
};
export const TRUTHS = [true, 'True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes'];
export const LIES = [false, 'False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no'];

export interface Scope {
  readonly call: Call;
  readonly minor: number;
  readonly token: Token;
}

type Handler = (scope: Scope, ids: readonly string[]) => Reply;

export interface Route {
  readonly method: string;
  readonly pattern: RegExp;
  readonly since: number;
  readonly until: number;
  /** The policy a caller without the admin role is refused with; readers pass every GET. */
  readonly policy: string;
  readonly handler: Handler;
}

/** One part of a path, captured. */
export const ID = '([^/]+)';

/** @param call method and path: `GET /servers` */
export function route(
  call: string,
  policy: string,
  handler: Handler,
  { since = 1, until = Number.POSITIVE_INFINITY }: Partial<Pick<Route, 'since' | 'until'>> = {},
): Route {
  const [method = '', path = ''] = call.split(' ');
  return { method, pattern: new RegExp(`^${path}$`), since, until, policy, handler };
}

/** The page size asked for, at most Nova's own maximum; null when none was asked for. */
export function pageSize(cloud: Cloud, query: URLSearchParams): number | null {
  const given = query.get('limit');
  if (given === null) return null;
  if (!/^[0-9]*$/.test(given))
    throw new NovaRefusal(
      400,
      `Invalid input for query parameters limit. Value: ${given}. '${given}' does not match '^[0-9]*$'`,
    );
  return Math.min(Number(given), cloud.scenario.maxLimit);
}

/** nova/api/openstack/common.py _get_collection_links: a full page has a next one, even if that is empty. */
export function nextPage(
  cloud: Cloud,
  call: Call,
  collection: string,
  { count, last }: { readonly count: number; readonly last: string | undefined },
): unknown[] | null {
  const most = Math.min(Number(call.query.get('limit') ?? cloud.scenario.maxLimit), cloud.scenario.maxLimit);
  if (last === undefined || most === 0 || count !== most) return null;
  const params = new URLSearchParams([...call.query].filter(([key]) => key !== 'marker'));
  params.sort();
  params.append('marker', last);
  return [{ rel: 'next', href: `${call.base}/v2.1/${collection}?${params.toString()}` }];
}

export function strings(given: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

export function truthy(value: string | null): boolean {
  return value !== null && (TRUTHS.includes(value) || /^(t|y)$/i.test(value));
}

export function caller(scope: Scope): { userId: string; projectId: string; requestId: string } {
  return {
    userId: scope.token.user.id,
    projectId: scope.token.projectId ?? scope.token.user.projectId,
    requestId: scope.call.requestId,
  };
}

export function versionHeaders(call: Call, version: string): Record<string, string | readonly string[]> {
  return {
    'Openstack-Api-Version': `compute ${version}`,
    'X-Openstack-Nova-Api-Version': version,
    Vary: ['OpenStack-API-Version', 'X-OpenStack-Nova-API-Version'],
    'X-Openstack-Request-Id': call.requestId,
    'X-Compute-Request-Id': call.requestId,
  };
}

export function novaReply(scope: Scope, status: number, body: unknown): Reply {
  return json(status, body, versionHeaders(scope.call, `2.${scope.minor}`));
}

export function empty(scope: Scope, status: number): Reply {
  return {
    status,
    headers: { 'Content-Type': 'application/json', ...versionHeaders(scope.call, `2.${scope.minor}`) },
    body: '',
  };
}

export function refusalReply(call: Call, minor: number | null, status: number, message: string): Reply {
  const name = NAMES[status] ?? 'computeFault';
  const headers =
    minor === null
      ? { 'X-Openstack-Request-Id': call.requestId, 'X-Compute-Request-Id': call.requestId }
      : versionHeaders(call, `2.${minor}`);
  return json(
    status,
    { [name]: { code: status, message } },
    { ...headers, 'Content-Type': 'application/json; charset=UTF-8' },
  );
}
