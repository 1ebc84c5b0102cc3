/** Errors of Prometheus' HTTP API. */
export { BadAnswer, Timeout, Unreachable } from '@kronos/http';

/** Prometheus refused the query or could not evaluate it: the query is wrong, not the connection. */
export class BadQuery extends Error {
  readonly code = 'KRONOS_PROMETHEUS_BAD_QUERY';
  readonly query: string;
  /** Prometheus' `errorType`, e.g. `bad_data`, `execution`; `result_type` when the answer is no vector. */
  readonly errorType: string;
  /** Prometheus' own words. */
  readonly reason: string;

  constructor(query: string, errorType: string, reason: string) {
    super(`Prometheus refused the query ${JSON.stringify(query)} (${errorType}): ${reason}`);
    this.name = 'BadQuery';
    this.query = query;
    this.errorType = errorType;
    this.reason = reason;
  }
}

/** 401 or 403: the credentials are missing, wrong, or not enough. */
export class PrometheusUnauthorized extends Error {
  readonly code = 'KRONOS_PROMETHEUS_UNAUTHORIZED';
  readonly url: string;
  readonly status: number;
  /** The words of the answer. */
  readonly reason: string;
  readonly remedy =
    'Set in [prometheus] what the answer misses: bearer_token, bearer_token_file, username and password, or headers (a tenant: X-Scope-OrgID).';

  constructor(url: string, status: number, used: string, reason: string) {
    super(`Prometheus answered ${status} at ${url}: ${reason} (sent: ${used})`);
    this.name = 'PrometheusUnauthorized';
    this.url = url;
    this.status = status;
    this.reason = reason;
  }
}

/** Prometheus answered with an error that is not the query's fault, e.g. 503 while it starts. */
export class ServerError extends Error {
  readonly code = 'KRONOS_PROMETHEUS_SERVER_ERROR';
  readonly url: string;
  readonly status: number;
  readonly reason: string;

  constructor(url: string, status: number, reason: string) {
    super(`Prometheus answered ${status} at ${url}: ${reason}`);
    this.name = 'ServerError';
    this.url = url;
    this.status = status;
    this.reason = reason;
  }
}

/** Options of the client that cannot work. Names the option and the remedy. */
export class BadPrometheusOptions extends Error {
  readonly code = 'KRONOS_PROMETHEUS_OPTIONS';
  readonly option: string;

  constructor(option: string, problem: string, cause?: unknown) {
    super(`${option}: ${problem}`, cause === undefined ? undefined : { cause });
    this.name = 'BadPrometheusOptions';
    this.option = option;
  }
}
