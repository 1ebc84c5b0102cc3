/** Every error of the event log: one class per meaning. README.md lists the codes, and a test keeps the two in step. */

/** Base of all errors that this library throws on purpose. */
export abstract class EventLogError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No server of the list could be reached. */
export class NatsUnreachable extends EventLogError {
  readonly code = 'KRONOS_NATS_UNREACHABLE';
  readonly servers: readonly string[];

  constructor(servers: readonly string[], detail: string, options?: ErrorOptions) {
    super(
      `no NATS server answers at ${servers.join(', ')} (${detail}): start one, or correct [nats] servers and the TLS options`,
      options,
    );
    this.servers = servers;
  }
}

/** The server refused the credentials, or an act that the user has no permission for. */
export class NatsRefused extends EventLogError {
  readonly code = 'KRONOS_NATS_REFUSED';
}

/** The server is too old for what is asked of it. */
export class ServerTooOld extends EventLogError {
  readonly code = 'KRONOS_SERVER_TOO_OLD';
}

/** The servers' `max_payload` is below what Kronos may have to send. */
export class PayloadTooSmall extends EventLogError {
  readonly code = 'KRONOS_NATS_MAX_PAYLOAD';

  constructor(allowed: number, needed: number) {
    super(
      `the NATS server takes messages of at most ${allowed} bytes (max_payload), and Kronos needs ${needed}: set max_payload to ${needed} or more on every server`,
    );
  }
}

/** A stream, a durable or a bucket is missing, or differs from the definition. */
export class NotProvisioned extends EventLogError {
  readonly code = 'KRONOS_NOT_PROVISIONED';
  readonly differences: readonly string[];

  constructor(differences: readonly string[]) {
    super(
      `JetStream is not set up as it must be. Run \`kronos provision\`.\n${differences.map((d) => `  ${d}`).join('\n')}`,
    );
    this.differences = differences;
  }
}

/** The server does not give what was asked for: provisioning stopped there. */
export class ProvisionRefused extends EventLogError {
  readonly code = 'KRONOS_PROVISION_REFUSED';
}

/** A message that does not fit its own schema was to be appended: a defect of the caller. */
export class InvalidMessage extends EventLogError {
  readonly code = 'KRONOS_INVALID_MESSAGE';
}

/** Another writer appended to the subject first. Fold the new events, and decide again. */
export class AppendConflict extends EventLogError {
  readonly code = 'KRONOS_APPEND_CONFLICT';
  readonly subject: string;
  readonly expected: number;
  /** Sequence of the subject's last message; null when the server did not say. */
  readonly actual: number | null;

  constructor(subject: string, expected: number, actual: number | null, options?: ErrorOptions) {
    super(
      `expected ${expected} as the last sequence of ${subject}, ${actual === null ? 'which another append has changed' : `but it is ${actual}`}`,
      options,
    );
    this.subject = subject;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The stream, or the server's storage, is full. Nothing was stored. */
export class LogFull extends EventLogError {
  readonly code = 'KRONOS_LOG_FULL';
  /** The server as a whole is out of storage; false: the stream is at its own limit. */
  readonly ofServer: boolean;

  constructor(message: string, options: ErrorOptions & { readonly ofServer?: boolean } = {}) {
    super(message, options);
    this.ofServer = options.ofServer ?? false;
  }
}

/** The server refused the message for good; nothing was stored. */
export class AppendRefused extends EventLogError {
  readonly code = 'KRONOS_APPEND_REFUSED';
}

/** The caller withdrew the message before it was sent. Nothing was stored. */
export class AppendWithdrawn extends EventLogError {
  readonly code = 'KRONOS_APPEND_WITHDRAWN';
}

/** No answer came: the message may be stored or not. To append the same message again is safe. */
export class AppendUnknown extends EventLogError {
  readonly code = 'KRONOS_APPEND_UNKNOWN';
}

/** A request to JetStream got no answer, or none that can be used now. */
export class StreamUnavailable extends EventLogError {
  readonly code = 'KRONOS_STREAM_UNAVAILABLE';
}

/** Events that were on the log are not there any more, or it is another log. */
export class LogGap extends EventLogError {
  readonly code = 'KRONOS_LOG_GAP';
}

/** A copy cannot be restored onto this log. */
export class RestoreRefused extends EventLogError {
  readonly code = 'KRONOS_RESTORE_REFUSED';
}

/** A message refers to an object that the bucket does not hold (any more). */
export class MissingObject extends EventLogError {
  readonly code = 'KRONOS_MISSING_OBJECT';
}

/** An object's bytes are not those that the message names. */
export class BadObject extends EventLogError {
  readonly code = 'KRONOS_BAD_OBJECT';
}

/** The event log, or a view of it, was closed. */
export class Closed extends EventLogError {
  readonly code = 'KRONOS_CLOSED';
}

/** No nats-server of the wanted version could be found or fetched (tests, demo). */
export class ServerNotFound extends EventLogError {
  readonly code = 'KRONOS_NATS_SERVER_NOT_FOUND';
}
