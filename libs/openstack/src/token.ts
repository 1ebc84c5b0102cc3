import { BadAnswer, type CallPlace, type Http, parseAs, safeUrl } from '@kronos/http';
import { z } from 'zod';
import { catalogSchema } from './catalog.ts';
import { Unauthorized } from './errors.ts';
import { faultText, httpError, requestIdOf } from './fault.ts';

const named = z.object({ id: z.string(), name: z.string() });
const inDomain = named.extend({ domain: named });

/** The body of a token of Keystone (Identity API v3). */
export const tokenSchema = z.object({
  token: z.object({
    expires_at: z.string(),
    issued_at: z.string().optional(),
    catalog: catalogSchema.default([]),
    user: inDomain.optional(),
    project: inDomain.optional(),
    roles: z.array(named.partial({ id: true })).default([]),
  }),
});
export type TokenBody = z.infer<typeof tokenSchema>['token'];

export type IssuedToken = {
  readonly id: string;
  readonly body: TokenBody;
  /** Its remaining life, by Keystone's own two times where it states both, so that a wrong local clock does no harm. */
  readonly lifeMs: number;
};

export interface TokenRequest {
  readonly authUrl: string;
  /** The body of `POST /v3/auth/tokens`. */
  readonly request: unknown;
  /** For messages: never a secret. */
  readonly who: string;
}

/**
 * Asks Keystone for a token.
 *
 * @throws Unauthorized, HttpError, Unreachable, Timeout, BadAnswer
 */
export async function requestToken(
  http: Http,
  { authUrl, request, who }: TokenRequest,
  nowMs: () => number,
): Promise<IssuedToken> {
  const url = `${authUrl}/auth/tokens`;
  const place: CallPlace = { service: 'keystone', method: 'POST', url: safeUrl(url) };
  // A token request changes nothing, so it may be retried.
  const answer = await http.call({
    ...place,
    method: 'POST',
    url,
    route: '/auth/tokens',
    json: request,
    idempotent: true,
  });
  // Keystone answers 404 to a token that it does not know.
  const unknownToken = answer.status === 404 && /^\s*\{\s*"error"/.test(answer.text);
  if (answer.status === 404 && !unknownToken) {
    throw new BadAnswer(place, 'status 404: this is not the v3 API of Keystone; check auth_url');
  }
  if (answer.status === 401 || unknownToken) {
    const whom = { authUrl: safeUrl(authUrl), user: who };
    throw new Unauthorized('keystone', whom, faultText(answer.text), requestIdOf(answer));
  }
  if (answer.status !== 201 && answer.status !== 200) throw httpError(place, answer, nowMs());
  const id = answer.headers['x-subject-token'];
  if (id === undefined) throw new BadAnswer(place, 'the header is missing', 'X-Subject-Token');
  const { token } = parseAs(place, tokenSchema, answer.text);
  return { id, body: token, lifeMs: lifeOf(place, token, token.issued_at, nowMs()) };
}

/** @param fromText when the life begins; undefined: now */
function lifeOf(place: CallPlace, token: TokenBody, fromText: string | undefined, nowMs: number): number {
  const expires = Date.parse(token.expires_at);
  if (Number.isNaN(expires)) throw new BadAnswer(place, `not a time: "${token.expires_at}"`, 'token.expires_at');
  const from = fromText === undefined ? nowMs : Date.parse(fromText);
  return Math.max(0, expires - (Number.isNaN(from) ? nowMs : from));
}
