/** The end of an attempt between cells, by where its server is. Pure. */
import { type CellResult, GUEST_OFF, type NovaFacts, type Reason, SERVER_IN_ERROR } from '@kronos/contracts';
import { type TaskReasonCode, taskReasonOf } from '@kronos/facts';
import {
  type Account,
  cancelled,
  failedMigration,
  failureFor,
  type JudgedFailure,
  NO_ACCOUNT,
  reason,
} from '../failure.ts';
import { fail, finalOf, inError, operatorStopped } from '../taskEnd.ts';
import type { CellServer, Ended, Reading } from '../taskFacts.ts';
import { type CellRun, type TaskState, to } from '../taskStages.ts';

/** Nova's number of a guest that runs. */
export const RUNNING = 1;

/** A resize names no host: Nova has tried them all, and another attempt would ask for the same. */
export const ofMethod = ({ start }: CellRun, failure: JudgedFailure): JudgedFailure =>
  start.method === 'resize' && failure.fault === 'destination'
    ? { ...failure, fault: 'none', hostAtFault: null }
    : failure;

export const BROKEN: ReadonlySet<string> = new Set(['error', 'failed']);

/** The end, by where the server is: on its source it failed or was reverted, elsewhere it is done. */
export function conclude(
  state: TaskState,
  run: CellRun,
  {
    server,
    at,
    account = NO_ACCOUNT,
    stopped = false,
  }: { readonly server: CellServer; readonly at: Reading; readonly account?: Account; readonly stopped?: boolean },
): TaskState {
  const { task } = state;
  const wrong = damage(run, server, account);
  if (server.host !== task.from) {
    const ended: Ended = {
      type: 'completed',
      outcome: 'migrated',
      host: server.host ?? task.destination,
      warnings: [...(wrong === null ? [] : [wrong]), ...surprises(run, server)],
      nova: novaFacts(run, account, at),
      cell: resultOf(run, run.settle?.act === 'confirm' ? 'kronos' : run.arrived === null ? null : 'others', at),
    };
    return to(state, { at: 'ending', ended, expected: null });
  }
  const { arrived, settle, status } = run;
  const settledBy = settle?.act === 'revert' ? 'kronos' : arrived === null ? null : 'others';
  return failed(state, run, failureOf(), { at, settledBy, account });

  function failureOf(): JudgedFailure {
    if (wrong !== null) return damagedBy(wrong);
    if (arrived === null && status !== 'reverted') {
      const seen = { status: status ?? 'unknown', destCompute: task.destination, serverInError: false };
      const failure = ofMethod(run, failedMigration(seen, account, task));
      // Nova does not call it over: another attempt could meet it.
      if (!BROKEN.has(seen.status)) return { ...finalOf(failure), hostAtFault: null };
      return stopped ? finalOf(failure) : failure;
    }
    if (settle?.act !== 'revert') return cancelled('reverted-by-others', 'somebody else reverted it');
    if (settle.cause === 'operator') return operatorStopped();
    const text = `reverted: ${settle.reason.text}`;
    // The cause is a code that the log has, perhaps of a later version.
    return damagedBy({ code: settle.cause, text, detail: { check: settle.reason.code } });
  }
}

/** The damage of a server by its move; null: none. A hard reboot starts it again from the disk where it is. */
function damage({ start, settle, arrived }: CellRun, server: CellServer, { story }: Account): Reason | null {
  const { host, status, vmState, powerState, taskState } = server;
  const step = settle === null ? (arrived === null ? 'move' : 'end of the move') : settle.act;
  const why = story === null ? '' : `: ${story.text}`;
  const remedy = `Hard reboot it (openstack server reboot --hard); it has its disk on ${host}`;
  const detail = { step, status, vmState, powerState, taskState };
  if (inError(server))
    return reason(SERVER_IN_ERROR, `the ${step} failed and the server is in ERROR on ${host}${why}. ${remedy}`, detail);
  const off =
    start.before.powerState === RUNNING && vmState === 'active' && powerState !== null && powerState !== RUNNING;
  return off
    ? reason(GUEST_OFF, `the ${step} failed and left the server powered off on ${host}${why}. ${remedy}`, detail)
    : null;
}

/** The differences between the plan and the state after a move that was done. */
function surprises({ start, settle, arrived, status }: CellRun, server: CellServer): Reason[] {
  const found: Reason[] = [];
  if (settle?.act === 'revert')
    found.push(
      reason(
        'confirmed-by-others',
        `it was to be reverted (${settle.reason.text}), and somebody else confirmed it first`,
      ),
    );
  if (arrived !== null && server.host !== arrived.host)
    found.push(reason('moved-since', `the server has moved on from ${arrived.host} to ${server.host} since`));
  if (arrived === null && status !== 'confirmed')
    found.push(reason('no-verify-resize', 'the server was never seen in VERIFY_RESIZE'));
  const { vmState } = server;
  if (!inError(server) && vmState !== start.before.vmState)
    found.push(reason('server-changed', `the server is ${vmState} and was ${start.before.vmState}`));
  return found;
}

export const infrastructure = (code: TaskReasonCode, text: string): JudgedFailure =>
  failureFor(code, { errorType: 'NovaClientError', text });

/** The server is not as it was: no further attempt, and no host is to blame. */
const damagedBy = (found: Reason): JudgedFailure => ({
  errorType: 'MigrationFailed',
  reason: found,
  cause: taskReasonOf(found.code)?.party ?? 'unknown',
  fault: 'none',
  hostAtFault: null,
});

/** Ends an attempt that was started. */
export function failed(
  state: TaskState,
  run: CellRun,
  failure: JudgedFailure,
  {
    at,
    settledBy = null,
    account = NO_ACCOUNT,
  }: { readonly at: Reading; readonly settledBy?: CellResult['settledBy']; readonly account?: Account },
): TaskState {
  const cell = resultOf(run, settledBy, at);
  return fail(state, failure, at, { started: true, nova: novaFacts(run, account, at), cell });
}

function resultOf(run: CellRun, settledBy: CellResult['settledBy'], at: Reading): CellResult {
  const { start, arrived, startedAtMs } = run;
  const { method, oldFlavor, newFlavor } = start;
  return { method, oldFlavor, newFlavor, downtimeMs: downtime(), settledBy };

  /** A guest that was reverted was off a second time: until now, at most. */
  function downtime(): number | null {
    if (start.before.powerState !== null && start.before.powerState !== RUNNING) return 0;
    if (arrived === null) return null;
    return Math.max(0, (run.settle?.act === 'revert' ? at.wall : arrived.atMs) - startedAtMs);
  }
}

function novaFacts(run: CellRun, { story }: Account, at: Reading): NovaFacts {
  const { migrationId, requestId, status, acceptedAt } = run;
  return {
    migrationId,
    requestId,
    status,
    reason: story?.text ?? null,
    queuedMs: null,
    runningMs: null,
    totalMs: acceptedAt === null ? null : Math.round(at.mono - acceptedAt),
    memoryBytes: null,
    diskBytes: null,
  };
}
