import { type ErrorType, type Reason, SERVER_IN_ERROR } from '@kronos/contracts';

/**
 * The cause of a failure, which decides the next attempt. `destination`: the next alternate at once. `infrastructure`: the same
 * destination again, later. `none`: nothing that a further attempt could cure.
 */
export type Fault = 'destination' | 'infrastructure' | 'none';

export interface Failure {
  readonly errorType: ErrorType;
  readonly reason: Reason;
  readonly fault: Fault;
  /** For the host breaker; null when no host is to blame. */
  readonly hostAtFault: string | null;
}

export const reason = (code: string, text: string, detail?: Reason['detail']): Reason =>
  detail === undefined ? { code, text } : { code, text, detail };

export const cancelled = (code: string, text: string): Failure => ({
  errorType: 'Cancelled',
  reason: reason(code, text),
  fault: 'none',
  hostAtFault: null,
});

/** Nova's reason for a failed action: the first event that ended in error. */
interface Story {
  readonly text: string;
  /** E.g. `compute_pre_live_migration`; null when no event says. */
  readonly event: string | null;
  readonly host: string | null;
}

/** Whether a nova-compute serves, as Nova's services say. */
export type Liveness = 'up' | 'down' | 'unknown';

/** Nova's account of a migration that did not complete. */
export interface Account {
  readonly story: Story | null;
  /** Whether Nova was asked and answered: only then the lack of a story means something. */
  readonly asked: boolean;
  readonly hosts: { readonly source: Liveness; readonly destination: Liveness };
}

export const NO_ACCOUNT: Account = {
  story: null,
  asked: false,
  hosts: { source: 'unknown', destination: 'unknown' },
};

/**
 * The nova-compute that died under a migration. Its end shows in Nova's services, or, when it is back already, in a
 * migration that its start-up set to `error` without a reason (`_reset_live_migration` in nova/compute/manager.py; everything
 * else that sets `error` leaves an event that says why or a server in ERROR, and a roll-back ends `failed`).
 */
function crashed(
  { status, serverInError }: { readonly status: string; readonly serverInError: boolean },
  { story, asked, hosts }: Account,
): 'destination' | 'source' | 'restarted' | null {
  if (hosts.destination === 'down') return 'destination';
  if (hosts.source === 'down') return 'source';
  return asked && story === null && status === 'error' && !serverInError ? 'restarted' : null;
}

/** Nova lost its message bus or its database: nothing that a host did. */
const INFRASTRUCTURE =
  /timed out waiting for a reply|MessagingTimeout|MessageDeliveryFailure|DBConnectionError|OperationalError|Lost connection|Connection to .* (refused|failed)|keystone|placement.*(unavailable|could not be reached)|ServiceUnavailable/i;

/**
 * A definite answer to the POST other than 202. `look`: the server is migrating, perhaps by this very request, sent twice by
 * a proxy; Nova's migrations tell.
 */
export function refusedPost(
  answer: { readonly status: number; readonly text: string },
  move: { readonly from: string; readonly destination: string },
): Failure | 'look' {
  const { status, text } = answer;
  const said = reason('nova-refused', `Nova refused the request with ${status}: ${text}`, { status });
  const failure = (errorType: ErrorType, fault: Fault, hostAtFault: string | null = null): Failure => ({
    errorType,
    reason: said,
    fault,
    hostAtFault,
  });
  switch (status) {
    case 400:
      if (/additional properties|invalid input|microversion/i.test(text)) return failure('NovaClientError', 'none');
      if (text.includes(move.destination) || /pre-check|could not be found|unavailable|hypervisor|cpu/i.test(text))
        return failure('MigrationFailed', 'destination', move.destination);
      return failure('MigrationFailed', 'none');
    case 404:
      return cancelled('server-gone', 'Nova does not know the server any more');
    case 409:
      if (/task_state migrating/i.test(text)) return 'look';
      if (/vm_state|locked|share/i.test(text)) return failure('MigrationFailed', 'none');
      return failure('NovaClientError', 'infrastructure');
    case 429:
      return failure('NovaClientError', 'infrastructure');
    default:
      // 401 and 403: the credentials cannot do it. Anything else is not Nova's.
      return failure('NovaClientError', status === 401 || status === 403 ? 'none' : 'infrastructure');
  }
}

/** A migration that ended `failed` or `error` with the server still on its source. */
export function failedMigration(
  seen: { readonly status: string; readonly destCompute: string | null; readonly serverInError: boolean },
  account: Account,
  move: { readonly from: string; readonly destination: string },
): Failure {
  const { story } = account;
  const text = story?.text ?? 'Nova gives no reason';
  const where = story?.event == null ? '' : ` (${story.event}${story.host === null ? '' : ` on ${story.host}`})`;
  const said = (code: string, more = ''): Reason =>
    reason(code, `the migration ended ${seen.status}: ${text}${where}${more}`, {
      status: seen.status,
      event: story?.event ?? null,
    });
  // The crash of a host says nothing about the VM: it is the infrastructure's failure.
  const crash = crashed(seen, account);
  if (seen.serverInError) {
    const errorType = crash === null ? 'MigrationFailed' : 'NovaClientError';
    const more = `; the server is in ERROR on ${move.from}`;
    return { errorType, reason: said(SERVER_IN_ERROR, more), fault: 'none', hostAtFault: null };
  }
  const crashOf = (code: string, fault: Fault, hostAtFault: string | null, more: string): Failure => ({
    errorType: 'NovaClientError',
    reason: said(code, more),
    fault,
    hostAtFault,
  });
  switch (crash) {
    case 'destination':
      return crashOf(
        'destination-down',
        'destination',
        move.destination,
        `; nova-compute on ${move.destination} is down`,
      );
    case 'source':
      return crashOf('source-down', 'infrastructure', null, `; nova-compute on ${move.from} is down`);
    case 'restarted':
      return crashOf('compute-restarted', 'infrastructure', null, `; nova-compute on ${move.from} has restarted`);
    case null:
      break;
  }
  if (story !== null && INFRASTRUCTURE.test(story.text))
    return { errorType: 'NovaClientError', reason: said('nova-internal'), fault: 'infrastructure', hostAtFault: null };
  if (/no valid host/i.test(text))
    return {
      errorType: 'MigrationFailed',
      reason: said('no-valid-host'),
      fault: 'destination',
      hostAtFault: move.destination,
    };
  if (
    /compute service of .* is unavailable/i.test(text) &&
    text.includes(move.from) &&
    !text.includes(move.destination)
  )
    return {
      errorType: 'NovaClientError',
      reason: said('source-unavailable'),
      fault: 'infrastructure',
      hostAtFault: null,
    };
  return {
    errorType: 'MigrationFailed',
    reason: said('migration-failed'),
    fault: 'destination',
    hostAtFault: move.destination,
  };
}
