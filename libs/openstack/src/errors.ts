import type { CallPlace } from '@kronos/http';

/** Errors of OpenStack's APIs. A call without a usable answer throws Unreachable, Timeout or BadAnswer of @kronos/http. */
export { BadAnswer, NotSent, Timeout, Unreachable } from '@kronos/http';

/** The service answered with a status that the call does not expect. */
export class HttpError extends Error {
  readonly code: string = 'KRONOS_OPENSTACK_HTTP';
  readonly service: string;
  readonly method: string;
  /** Without credentials. */
  readonly url: string;
  readonly status: number;
  /** The message of OpenStack's fault body, else the start of the body's text. */
  readonly reason: string;
  /** `x-openstack-request-id` of the answer: the key to the service's own log. */
  readonly requestId: string | undefined;
  /** `Retry-After` of the answer in milliseconds, when it had one. */
  readonly retryAfterMs: number | undefined;

  constructor(
    place: CallPlace,
    status: number,
    reason: string,
    {
      requestId,
      retryAfterMs,
    }: { readonly requestId?: string | undefined; readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(
      `${place.service} answered ${status} to ${place.method} ${place.url}: ${reason}${requestId === undefined ? '' : ` (request ${requestId})`}`,
    );
    this.name = new.target.name;
    this.service = place.service;
    this.method = place.method;
    this.url = place.url;
    this.status = status;
    this.reason = reason;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** 400: the request cannot be carried out as it is, now or later. */
export class BadRequest extends HttpError {
  override readonly code = 'KRONOS_OPENSTACK_BAD_REQUEST';
}

/** 403: policy does not let this user do it. */
export class Forbidden extends HttpError {
  override readonly code = 'KRONOS_OPENSTACK_FORBIDDEN';
}

/** 404. */
export class NotFound extends HttpError {
  override readonly code = 'KRONOS_OPENSTACK_NOT_FOUND';
}

/** 409: the state of the server or resource forbids it now. */
export class Conflict extends HttpError {
  override readonly code = 'KRONOS_OPENSTACK_CONFLICT';
}

/** Keystone refused the credentials, or a service refused a fresh token. Never names the secret. */
export class Unauthorized extends Error {
  readonly code = 'KRONOS_OPENSTACK_UNAUTHORIZED';
  readonly service: string;
  readonly authUrl: string;
  /** The user, e.g. `user admin in domain default`. */
  readonly identity: string;
  readonly requestId: string | undefined;

  constructor(
    service: string,
    { authUrl, user }: { readonly authUrl: string; readonly user: string },
    reason: string,
    requestId?: string,
  ) {
    super(
      `${service} refused ${user} at ${authUrl}: ${reason}${requestId === undefined ? '' : ` (request ${requestId})`}; ` +
        'check the credentials and that the user has a role on the project',
    );
    this.name = 'Unauthorized';
    this.service = service;
    this.authUrl = authUrl;
    this.identity = user;
    this.requestId = requestId;
  }
}

/** The service's catalog entry is missing or ambiguous. The message lists the entries of the catalog. */
export class EndpointNotFound extends Error {
  readonly code = 'KRONOS_OPENSTACK_ENDPOINT_NOT_FOUND';
  readonly serviceType: string;

  constructor(serviceType: string, problem: string) {
    super(problem);
    this.name = 'EndpointNotFound';
    this.serviceType = serviceType;
  }
}

/** The service does not speak a version of its API that the call needs. */
export class MicroversionUnsupported extends Error {
  readonly code = 'KRONOS_OPENSTACK_MICROVERSION_UNSUPPORTED';
  readonly service: string;
  readonly call: string;

  constructor(service: string, call: string, needs: string, offered: string) {
    super(`${service}: ${call} needs microversion ${needs}, the cloud offers ${offered}`);
    this.name = 'MicroversionUnsupported';
    this.service = service;
    this.call = call;
  }
}

/** Authentication options that cannot work, or a cloud that clouds.yaml does not have. Names the option and the remedy. */
export class BadAuthOptions extends Error {
  readonly code = 'KRONOS_OPENSTACK_AUTH_OPTIONS';
  readonly option: string;

  constructor(option: string, problem: string, cause?: unknown) {
    super(`${option}: ${problem}`, cause === undefined ? undefined : { cause });
    this.name = 'BadAuthOptions';
    this.option = option;
  }
}
