/** The parameters of a request: path segments and the query. Pure. */

import { ApiError } from './answer.ts';
import { DEFAULT_LIMIT, MAX_LIMIT } from './endpoints.ts';

export function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ApiError(400, `${JSON.stringify(segment)} is not percent-encoded UTF-8`);
  }
}

export function limitOf(
  query: URLSearchParams,
  { name = 'limit', usual = DEFAULT_LIMIT, least = 1, most = MAX_LIMIT } = {},
): number {
  const limit = numberParameter(query, name) ?? usual;
  if (limit < least || limit > most) throw new ApiError(400, `${name} must be a whole number from ${least} to ${most}`);
  return limit;
}

export function numberParameter(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (!/^\d{1,15}$/.test(text)) throw new ApiError(400, `${name} must be a whole number, 0 or more`);
  return Number(text);
}

/** A log sequence, or a time in ISO-8601. */
export function sinceOf(query: URLSearchParams): number | Date | null {
  const text = query.get('since');
  if (text === null || text === '') return null;
  if (/^\d{1,15}$/.test(text)) return Math.max(1, Number(text));
  const time = new Date(text);
  if (Number.isNaN(time.getTime()))
    throw new ApiError(400, 'since must be a log sequence or a time in ISO-8601, such as 2026-01-05T10:00:00Z');
  return time;
}

/** A time in ISO-8601, in ms since the epoch. */
export function timeIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null || text === '') return null;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new ApiError(400, `${name} must be a time in ISO-8601, such as 2026-01-05T10:00:00Z`);
  return ms;
}
