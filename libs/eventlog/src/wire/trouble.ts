/** Why requests to JetStream bring no usable answer. */
import { errorText } from '@kronos/contracts';
import { JetStreamApiError } from '@nats-io/jetstream';
import {
  ClosedConnectionError,
  DrainingConnectionError,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node';
import { apiCodes } from './codes.ts';
import { Closed, NatsRefused } from './errors.ts';

/** Why a request brought no usable answer. */
export type Trouble =
  | 'timeout'
  | 'noResponders'
  | 'noLeader'
  | 'notConnected'
  | 'disconnected'
  | 'closed'
  | 'refused'
  | 'other';

/** There was no connection to ask over: nothing was sent. */
export class NotConnected extends Error {
  constructor() {
    super('there is no connection to NATS');
    this.name = 'NotConnected';
  }
}

/** The connection broke after the request was sent: the server may have carried it out. */
export class Disconnected extends Error {
  constructor() {
    super('the connection was lost while waiting for the answer');
    this.name = 'Disconnected';
  }
}

/** A copy of a stream has answered that has no leader: it may lack what the leader had stored. */
export class NoLeader extends Error {
  constructor(text: string) {
    super(text);
    this.name = 'NoLeader';
  }
}

/** The error that an error wraps. */
export const wrappedIn = (error: unknown): unknown => (error instanceof Error ? error.cause : undefined);

/** Classifies an error of the client, which wraps some errors in others. */
export function troubleOf(error: unknown): Trouble {
  for (let e = error; e !== undefined && e !== null; e = wrappedIn(e)) {
    if (e instanceof Disconnected) return 'disconnected';
    if (e instanceof NotConnected) return 'notConnected';
    if (e instanceof TimeoutError) return 'timeout';
    if (e instanceof NoRespondersError) return 'noResponders';
    if (e instanceof NoLeader) return 'noLeader';
    if (e instanceof PermissionViolationError || e instanceof NatsRefused) return 'refused';
    if (e instanceof ClosedConnectionError || e instanceof DrainingConnectionError || e instanceof Closed)
      return 'closed';
    if (e instanceof RequestError && e.message === 'connection disconnected') return 'disconnected';
  }
  return 'other';
}

/** The stream or the consumer that was asked for is not there. */
export const isNotFound = (error: unknown): boolean =>
  error instanceof JetStreamApiError &&
  (error.code === apiCodes.streamNotFound || error.code === apiCodes.consumerNotFound);

/** The text of a request that the server did not answer in time. */
export const NO_ANSWER = 'no answer in time';

/** The text of an error without what a URL may carry before its `@`. */
export function plainText(error: unknown): string {
  if (error instanceof TimeoutError) return NO_ANSWER;
  return errorText(error).replace(/\/\/[^/@\s]*@/g, '//');
}
