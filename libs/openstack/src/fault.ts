import { type CallPlace, type HttpAnswer, parseRetryAfter, withoutMarkup } from '@kronos/http';
import { BadRequest, Conflict, Forbidden, HttpError, NotFound } from './errors.ts';

/** `x-openstack-request-id` of an answer, under any of the names that the services use. */
export function requestIdOf(answer: HttpAnswer): string | undefined {
  return (
    answer.headers['x-openstack-request-id'] ??
    answer.headers['x-compute-request-id'] ??
    answer.headers['openstack-request-id']
  );
}

/**
 * The text in a fault body: Nova's `{"conflictingRequest": {"message", "code"}}`, Keystone's `{"error": {"message"}}`,
 * Placement's `{"errors": [{"detail"}]}`; else the start of the body's text.
 */
export function faultText(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    const found = messageIn(parsed);
    if (found !== undefined) return found.replace(/\s+/g, ' ').trim();
  } catch {
    // Not JSON: a proxy's page.
  }
  return withoutMarkup(body, 300);
}

function messageIn(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if ('errors' in value && Array.isArray(value.errors)) {
    const details = value.errors.map((error: unknown) => field(error, 'detail') ?? field(error, 'title'));
    const texts = details.filter((text) => text !== undefined);
    return texts.length > 0 ? texts.join('; ') : undefined;
  }
  for (const inner of Object.values(value)) {
    const message = field(inner, 'message');
    if (message !== undefined) return message;
  }
  return field(value, 'message');
}

function field(value: unknown, name: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const found: unknown = Object.getOwnPropertyDescriptor(value, name)?.value;
  return typeof found === 'string' ? found : undefined;
}

/** The error for an unexpected answer. */
export function httpError(place: CallPlace, answer: HttpAnswer, nowMs: number): HttpError {
  const reason =
    answer.status >= 300 && answer.status < 400
      ? `it redirects to ${answer.headers.location ?? 'nowhere'}; set the endpoint to the final URL`
      : faultText(answer.text);
  const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], nowMs);
  const Kind = { 400: BadRequest, 403: Forbidden, 404: NotFound, 409: Conflict }[answer.status] ?? HttpError;
  return new Kind(place, answer.status, reason, { requestId: requestIdOf(answer), retryAfterMs });
}
