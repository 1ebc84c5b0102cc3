/** The answers to refused requests. */
import { ClockWrong, CommandRefused } from '@kronos/operator';
import type { z } from 'zod';
import { ApiError } from '../api/answer.ts';
import { Changed } from './command.ts';

/** An answer other than 200, with a remedy for the client. */
export class Refused extends ApiError {
  readonly retryAfterMs: number;
  constructor(status: number, message: string, retryAfterMs = 0) {
    super(status, message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** @throws Refused where the request has to wait */
export function limited(waitMs: number): void {
  if (waitMs > 0) throw new Refused(429, 'too many requests', waitMs);
}

/** @throws Refused that names the field */
export function parsed<S extends z.ZodType>(schema: S, body: unknown): z.infer<S> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Refused(400, `the body is wrong: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}

/** @throws the error itself, unless it is an answer to the person */
export function refusalOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  if (error instanceof ApiError) return new Refused(error.status, error.message);
  if (error instanceof Changed) return new Refused(409, error.message);
  if (error instanceof CommandRefused)
    return new Refused(409, error.remedy === undefined ? error.message : `${error.message}. ${error.remedy}`);
  if (error instanceof ClockWrong) return new Refused(503, error.message);
  throw error;
}
