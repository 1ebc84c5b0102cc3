import type { ErrorType, Reason } from '@kronos/contracts';

/**
 * Who is to blame, which decides what comes next. `destination`: the next alternate at once. `infrastructure`: the same
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

/** What Nova says about why an action failed: the first event that ended in error. */
export interface Story {
  readonly text: string;
  /** E.g. `compute_pre_live_migration`; null when no event says. */
  readonly event: string | null;
  readonly host: string | null;
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
  story: Story | null,
  move: { readonly from: string; readonly destination: string },
): Failure {
  const text = story?.text ?? 'Nova gives no reason';
  const where = story?.event == null ? '' : ` (${story.event}${story.host === null ? '' : ` on ${story.host}`})`;
  const said = (code: string): Reason =>
    reason(code, `the migration ended ${seen.status}: ${text}${where}`, {
      status: seen.status,
      event: story?.event ?? null,
    });
  if (seen.serverInError)
    return { errorType: 'MigrationFailed', reason: said('server-in-error'), fault: 'none', hostAtFault: null };
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
