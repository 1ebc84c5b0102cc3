import type { ServerResponse } from 'node:http';
import { sendBusy, sendJson, sendTagged } from '@kronos/telemetry';
import { scrubbedJson } from '@kronos/telemetry/scrub';
import { DEFAULT_LIMIT, MAX_LIMIT } from './endpoints.ts';

/** A request that cannot be answered, with what the client should do about it. */
export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The concurrency limit of costly requests is reached. */
class Busy extends Error {}

/** Answers with JSON; the field `time` does not count in the entity tag. `null`: the answer was already written. */
export async function reply(
  response: ServerResponse,
  answer: () => object | null | Promise<object | null>,
): Promise<void> {
  try {
    const body = await answer();
    if (body === null) return;
    const text = Buffer.from(`${scrubbedJson(body)}\n`);
    const version = 'time' in body ? JSON.stringify({ ...body, time: undefined }) : text;
    await sendTagged(response, 'application/json; charset=utf-8', text, version);
  } catch (error) {
    if (error instanceof Busy) {
      sendBusy(response);
      return;
    }
    if (!(error instanceof ApiError)) throw error;
    sendJson(response, error.status, { error: error.message });
  }
}

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

/** Runs at most `most` acts at a time; one beyond that throws {@link Busy} without having begun. */
export function costly(most: number) {
  let running = 0;
  return async <T>(act: () => Promise<T>): Promise<T> => {
    if (running >= most) throw new Busy();
    running++;
    try {
      return await act();
    } finally {
      running--;
    }
  };
}
