/** An error with a message (what is wrong) and a remedy (what to do). Every Kronos error that has a code has this form. */
export interface KronosError extends Error {
  /** `KRONOS_...` */
  readonly code: string;
  readonly remedy?: string;
}

/** True for errors that are written for people: they are printed without a stack trace. */
export function isKronosError(error: unknown): error is KronosError {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('KRONOS_')
  );
}

/** The service's HTTP server cannot listen on `[http]` address and port. */
export class HttpListenError extends Error {
  readonly code = 'KRONOS_HTTP_LISTEN';
  readonly remedy: string;

  constructor(address: string, port: number, option: string, cause: unknown) {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason';
    super(`cannot listen on ${address} port ${port} (${why})`, { cause });
    this.name = 'HttpListenError';
    this.remedy = `Choose another address or ${option} in [http] of kronos.conf, or 0 for any free port.`;
  }
}

/** A service did not stop within its time. */
export class StopTimeoutError extends Error {
  readonly code = 'KRONOS_STOP_TIMEOUT';
  readonly remedy = 'It resumes its work at the next start. Nothing is lost.';

  constructor(milliseconds: number) {
    super(`did not stop within ${milliseconds / 1000} s`);
    this.name = 'StopTimeoutError';
  }
}

/** A service's `done` rejects with it when the service must start again in the same process: its log was replaced under it. */
export class StartAgain extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartAgain';
  }
}
