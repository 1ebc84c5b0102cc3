import { type ErrorType, type Reason, SERVER_IN_ERROR } from '@kronos/contracts';
import { causeOfText, consequencesOf, type Fault, type Party, type TaskReasonCode, taskReasons } from '@kronos/facts';

export interface JudgedFailure {
  readonly errorType: ErrorType;
  readonly reason: Reason;
  /** The party at fault. */
  readonly cause: Party;
  /** The attempt that can follow. */
  readonly fault: Fault;
  /** For the host breaker; null when no host is to blame. */
  readonly hostAtFault: string | null;
}

export const reason = (code: TaskReasonCode, text: string, detail?: Reason['detail']): Reason =>
  detail === undefined ? { code, text } : { code, text, detail };

interface FailureFacts {
  readonly errorType: ErrorType;
  readonly text: string;
  readonly detail?: Reason['detail'];
  /** The destination of the attempt, which is charged where the party at fault says so. Absent: no host can be to blame. */
  readonly destination?: string;
}

/** A failure for one reason: who is at fault and what can follow stands in the table of reasons. */
export function failureFor(
  code: TaskReasonCode,
  { errorType, text, detail, destination }: FailureFacts,
): JudgedFailure {
  const { party, fault } = taskReasons[code];
  const hostAtFault = consequencesOf(party).chargesHost ? (destination ?? null) : null;
  return { errorType, reason: reason(code, text, detail), cause: party, fault, hostAtFault };
}

export const cancelled = (code: TaskReasonCode, text: string): JudgedFailure => ({
  ...failureFor(code, { errorType: 'Cancelled', text }),
  fault: 'none',
});

/** The words for a server that is not where its task knows it. A shelved one is on no host. */
export const elsewhere = (host: string | null): string =>
  host === null
    ? 'the server is on no host: it was shelved, or somebody else moves it'
    : `the server is on ${host}: somebody else moved it`;

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
): 'nova-internal' | 'host-down' | 'vm-source-down' | 'compute-restarted' | null {
  // Hosts do not fail together; what both of them report through does.
  if (hosts.destination === 'down' && hosts.source === 'down') return 'nova-internal';
  if (hosts.destination === 'down') return 'host-down';
  if (hosts.source === 'down') return 'vm-source-down';
  return asked && story === null && status === 'error' && !serverInError ? 'compute-restarted' : null;
}

interface Move {
  readonly from: string;
  readonly destination: string;
}

/**
 * A definite answer to the POST other than 202. `look`: the server is migrating, perhaps by this very request, sent twice by
 * a proxy; Nova's migrations tell.
 */
export function refusedPost(
  answer: { readonly status: number; readonly text: string },
  move: Move,
): JudgedFailure | 'look' {
  const { status, text } = answer;
  if (status === 409 && /task_state migrating/i.test(text)) return 'look';
  if (status === 404) return cancelled('server-gone', 'Nova does not know the server any more');
  const code = codeOfPost(status, text, move);
  return failureFor(code, {
    errorType: taskReasons[code].party === 'nova' ? 'NovaClientError' : 'MigrationFailed',
    text: `Nova refused the request with ${status}: ${text}`,
    detail: { status },
    destination: move.destination,
  });
}

function codeOfPost(status: number, text: string, move: Move): TaskReasonCode {
  switch (status) {
    case 400: {
      if (/additional properties|invalid input|microversion/i.test(text)) return 'request-invalid';
      const known = causeOfText(text, move);
      if (known !== null) return known;
      const ofHost = text.includes(move.destination) || /could not be found|unavailable|hypervisor|cpu/i.test(text);
      return ofHost ? 'destination-refused' : 'server-refused';
    }
    case 401:
    case 403:
      return 'request-forbidden';
    case 409:
      return /vm_state|locked|share/i.test(text) ? 'server-refused' : 'nova-refused';
    default:
      return 'nova-refused';
  }
}

/** A migration that ended `failed` or `error` with the server still on its source. */
export function failedMigration(
  seen: { readonly status: string; readonly destCompute: string | null; readonly serverInError: boolean },
  account: Account,
  move: Move,
): JudgedFailure {
  const { story } = account;
  const text = story?.text ?? 'Nova gives no reason';
  const where = story?.event == null ? '' : ` (${story.event}${story.host === null ? '' : ` on ${story.host}`})`;
  const failure = (code: TaskReasonCode, errorType: ErrorType, more = ''): JudgedFailure =>
    failureFor(code, {
      errorType,
      text: `the migration ended ${seen.status}: ${text}${where}${more}`,
      detail: { status: seen.status, event: story?.event ?? null },
      destination: move.destination,
    });
  // The crash of a host says nothing about the VM: it is the infrastructure's failure.
  const crash = crashed(seen, account);
  if (seen.serverInError)
    return failure(
      SERVER_IN_ERROR,
      crash === null ? 'MigrationFailed' : 'NovaClientError',
      `; the server is in ERROR on ${move.from}`,
    );
  if (crash === 'nova-internal') {
    const both = `nova-compute on ${move.from} and on ${move.destination} are down`;
    return failure(crash, 'NovaClientError', `; ${both}: the message bus or nova-conductor is the likely cause`);
  }
  if (crash === 'host-down') return failure(crash, 'NovaClientError', `; nova-compute on ${move.destination} is down`);
  if (crash === 'vm-source-down') return failure(crash, 'NovaClientError', `; nova-compute on ${move.from} is down`);
  if (crash !== null) return failure(crash, 'NovaClientError', `; nova-compute on ${move.from} has restarted`);
  const code = (story === null ? null : causeOfText(story.text, move)) ?? 'migration-failed';
  const infrastructure = taskReasons[code].fault === 'infrastructure';
  return failure(code, infrastructure ? 'NovaClientError' : 'MigrationFailed');
}
