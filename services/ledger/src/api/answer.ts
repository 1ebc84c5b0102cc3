import type { ServerResponse } from 'node:http';
import { sendBusy, sendJson, sendTagged } from '@kronos/telemetry';
import { scrubbedJson } from '@kronos/telemetry/scrub';

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
