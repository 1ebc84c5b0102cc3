/** Errors of a call that got no usable answer. Errors of a service's own answers live in the client of that service. */

/** The place that every error of a call names: the service, and the request. */
export interface CallPlace {
  /** The service that was asked, e.g. `nova`. */
  readonly service: string;
  readonly method: string;
  /** The URL without credentials, see `safeUrl`. */
  readonly url: string;
}

/** Why a call failed, and whether the service may have its request all the same. */
type Sent = { readonly maybeSent: boolean; readonly cause?: unknown };

abstract class CallError extends Error {
  abstract readonly code: string;
  readonly service: string;
  readonly method: string;
  readonly url: string;

  constructor(place: CallPlace, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.service = place.service;
    this.method = place.method;
    this.url = place.url;
  }
}

/** No answer: the name does not resolve, the connection is refused or broke, or TLS failed. */
export class Unreachable extends CallError {
  readonly code = 'KRONOS_HTTP_UNREACHABLE';
  /** `true` when the request may have reached the service before the connection broke. */
  readonly maybeSent: boolean;

  constructor(place: CallPlace, reason: string, { maybeSent, cause }: Sent) {
    super(place, `${place.service} is unreachable: ${place.method} ${place.url}: ${reason}`, cause);
    this.maybeSent = maybeSent;
  }
}

/** The answer did not come in time. `phase` says which limit was hit. */
export class Timeout extends CallError {
  readonly code = 'KRONOS_HTTP_TIMEOUT';
  readonly phase: 'connect' | 'headers' | 'body' | 'total';
  readonly limitMs: number;
  /** `true` when the request may have reached the service. */
  readonly maybeSent: boolean;

  constructor(
    place: CallPlace,
    phase: 'connect' | 'headers' | 'body' | 'total',
    limitMs: number,
    { maybeSent, cause }: Sent,
  ) {
    super(
      place,
      `${place.service} did not answer in time: ${place.method} ${place.url}: no ${phase === 'total' ? 'complete answer' : phase} within ${limitMs} ms`,
      cause,
    );
    this.phase = phase;
    this.limitMs = limitMs;
    this.maybeSent = maybeSent;
  }
}

/** The caller's `checkSend` refused: the request was not sent, not a byte of it. */
export class NotSent extends CallError {
  readonly code = 'KRONOS_HTTP_NOT_SENT';
  readonly maybeSent = false;
  /** The result of `checkSend`. */
  readonly reason: string;

  constructor(place: CallPlace, reason: string) {
    super(place, `${place.method} ${place.url} was not sent to ${place.service}: ${reason}`);
    this.reason = reason;
  }
}

/** The answer breaks the API of the service: not JSON, too large, or a required field is missing. */
export class BadAnswer extends CallError {
  readonly code = 'KRONOS_HTTP_BAD_ANSWER';
  /** Path of the field inside the body, e.g. `servers[3].OS-EXT-SRV-ATTR:host`; undefined when the body as a whole is wrong. */
  readonly field: string | undefined;

  constructor(place: CallPlace, problem: string, field?: string, cause?: unknown) {
    super(
      place,
      `${place.service} gave a bad answer: ${place.method} ${place.url}: ${field === undefined ? '' : `${field}: `}${problem}`,
      cause,
    );
    this.field = field;
  }
}

/** Options of a client that cannot work, e.g. a CA file that cannot be read. */
export class BadHttpOptions extends Error {
  readonly code = 'KRONOS_HTTP_OPTIONS';
  readonly option: string;

  constructor(option: string, problem: string, cause?: unknown) {
    super(`${option}: ${problem}`, cause === undefined ? undefined : { cause });
    this.name = 'BadHttpOptions';
    this.option = option;
  }
}
