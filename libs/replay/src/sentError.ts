import { BadObject, MissingObject } from '@kronos/eventlog';
import { PolicyNotRecorded, RecordingInvalid } from './errors.ts';

/** An error as it is sent to another thread. */
export type SentError = { readonly kind: string; readonly fields: Readonly<Record<string, unknown>> };

/** Errors that have a meaning for the caller. Between threads an error loses its class and its fields. */
const KINDS: ReadonlyMap<string, new (...args: never[]) => Error> = new Map<string, new (...args: never[]) => Error>([
  ['PolicyNotRecorded', PolicyNotRecorded],
  ['RecordingInvalid', RecordingInvalid],
  ['MissingObject', MissingObject],
  ['BadObject', BadObject],
]);

/** An error as it is sent to another thread. */
export function packed(error: unknown): SentError {
  if (!(error instanceof Error)) return { kind: 'Error', fields: { message: String(error) } };
  const kind = [...KINDS].find(([, of]) => error instanceof of)?.[0] ?? 'Error';
  const { message, stack, cause: _, ...fields } = { ...error, message: error.message, stack: error.stack } as Error;
  return { kind, fields: { ...fields, message, stack } };
}

/** The error again, of its class where that has a meaning. */
export function unpacked({ kind, fields }: SentError): Error {
  const error: Error = Object.create((KINDS.get(kind) ?? Error).prototype);
  for (const [name, value] of Object.entries(fields))
    Object.defineProperty(error, name, { value, configurable: true, writable: true, enumerable: name !== 'stack' });
  return error;
}
