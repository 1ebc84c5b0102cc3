/** From the delivery of a task to the answer to its POST: the rules of the stages received, suspected, waiting, checking and posting. */
import { resumed } from './cells/index.ts';
import { failureFor, reason, refusedPost } from './failure.ts';
import type { TaskOptions } from './options.ts';
import { fail, finish, handOver } from './taskEnd.ts';
import type { Ended, Fact, PostAnswer, PreflightVerdict, Reading, TaskLog } from './taskFacts.ts';
import { backoff, type Run, type Stage, seeing, startRun, type TaskState, to, UnexpectedFact } from './taskStages.ts';

/** First look at the log: has the attempt begun, has it ended, or is it still to be started? */
export function received(state: TaskState, log: TaskLog, at: Reading): TaskState {
  const { attempt } = log;
  switch (attempt.kind) {
    case 'unknown':
      return finish(state, 'unknown-task', 'no released plan on the log has this task and attempt');
    case 'ended':
      if (attempt.next !== null) return to(state, { at: 'passing', next: attempt.next });
      return finish(state, 'already-ended', 'the log has the outcome of this attempt');
    case 'started': {
      if (suspicious(state)) return to(state, { at: 'suspected', started: true });
      if (attempt.cell !== undefined) return resumed(state, attempt, attempt.cell, at);
      const { migrationId, requestId, stop } = attempt;
      const begun = startRun(attempt.newestMigrationId, at.mono);
      const run = { ...begun, migrationId, requestId, stop, noted: stop !== null };
      return to(state, { at: migrationId === null ? 'seeking' : 'following', run, soon: true });
    }
    case 'waiting':
      return to(state, { at: 'waiting', checked: null, notBefore: at.mono });
  }
}

/**
 * Its number of deliveries suggests a poison message. Tasks that waited with a poison message have as many: which it is
 * shows when each is worked on alone.
 */
const suspicious = ({ deliveries, tried, options }: TaskState): boolean =>
  !tried && deliveries > options.suspectDeliveries;

/** The longest wait before a started task that crashes its executors is tried again. */
const TRY_AGAIN_MAX_MS = 3_600_000;

/** The wait after the last try of a started task that crashes its executors. */
export const tryAgainMs = (tries: number, { requeueMs, suspectTries }: TaskOptions): number =>
  Math.min(requeueMs * 2 ** Math.min(tries - suspectTries, 20), Math.max(requeueMs, TRY_AGAIN_MAX_MS));

const endsExecutors = (tries: number): string =>
  `begun alone ${tries} times in a row, and each time its executor ended`;

/** Nova may still move its server: only its end in Nova, or an operator, frees its slots. */
export const setAside = (state: TaskState, tries: number, delayMs: number): TaskState =>
  finish(state, 'suspected', `${endsExecutors(tries)}; it keeps its slots, and is tried again later`, {
    kind: 'later',
    delayMs,
  });

/** Call it only for a task that has not started: Nova does nothing for it. */
export function deadLetter(state: TaskState, tries: number): TaskState {
  const { deliveries } = state;
  const text = endsExecutors(tries);
  const ended: Ended = {
    type: 'failed',
    errorType: 'DeadLetter',
    reason: reason('poisonous', text, { deliveries, tries }),
    cause: 'kronos',
    hostAtFault: null,
    next: null,
    started: false,
    nova: null,
  };
  return to(state, { at: 'ending', ended, expected: null });
}

export function waiting(state: TaskState, stage: Stage & { at: 'waiting' }, fact: Fact): TaskState {
  switch (fact.kind) {
    case 'mayStart': {
      const { checked } = stage;
      if (suspicious(state)) return to(state, { at: 'suspected', started: false });
      const fresh = checked !== null && !fact.grant.disturbed && fact.at.mono - checked.at <= state.options.checkTtlMs;
      if (fresh) return to(state, { at: 'claiming', grant: fact.grant, checked });
      return to(state, { at: 'checking', grant: fact.grant });
    }
    case 'mustEnd':
      return fail(state, fact.failure, fact.at, { started: false, nova: null, expected: fact.expected });
    case 'overtaken':
      return to(state, { at: 'received' });
    case 'yielded':
      return { ...state, tried: false };
    case 'requeued':
      return finish(state, 'requeued', 'it waits on the queue', { kind: 'later', delayMs: fact.delayMs });
    case 'draining':
      return handOver(state);
    default:
      throw new UnexpectedFact(stage.at, fact.kind);
  }
}

export function checked(
  state: TaskState,
  { grant }: Stage & { at: 'checking' },
  verdict: PreflightVerdict,
  { tookMs, at }: { readonly tookMs: number; readonly at: Reading },
): TaskState {
  const { expected } = grant;
  // Nothing has begun, so nothing is lost by waiting; `notAfter` ends it.
  const later = (): TaskState =>
    to(
      { ...state, blind: state.blind + 1 },
      { at: 'waiting', checked: null, notBefore: at.mono + backoff(state, state.options.pollIntervalMs) },
    );
  switch (verdict.kind) {
    case 'go': {
      // Its executor was suspended, or Nova does not answer.
      if (tookMs > state.options.checkMaxMs) return later();
      if (state.options.dryRun) {
        const { from, destination } = state.task;
        const text = `dry run: pre-flight passed, it would have been migrated from ${from} to ${destination}`;
        return to(seeing(state), {
          at: 'ending',
          ended: { type: 'skipped', reason: reason('dry-run', text) },
          expected,
        });
      }
      // The log went on while the cloud was read: fold and decide again before the claim.
      const { newestMigrationId, forced, cell } = verdict;
      const found = { newestMigrationId, forced, at: at.mono, ...(cell === undefined ? {} : { cell }) };
      return to(seeing(state), { at: 'waiting', checked: found, notBefore: at.mono });
    }
    case 'there':
      return to(seeing(state), {
        at: 'ending',
        ended: { type: 'completed', outcome: 'alreadyThere', host: verdict.host, warnings: [], nova: null },
        expected,
      });
    case 'no':
      return fail(seeing(state), verdict.failure, at, { started: false, nova: null, expected });
    case 'unreachable':
      return later();
  }
}

export function posted(state: TaskState, run: Run, answer: PostAnswer, at: Reading): TaskState {
  const { task } = state;
  const look = { ...run, since: at.mono };
  switch (answer.kind) {
    case 'accepted':
      return to(state, {
        at: 'seeking',
        run: { ...look, requestId: answer.requestId, acceptedAt: at.mono },
        soon: true,
      });
    case 'unknown':
      return to(state, { at: 'seeking', run: look, soon: true });
    case 'notSent': {
      const text = `the request was not sent: ${answer.text}`;
      const failure = failureFor('not-sent', { errorType: 'NovaClientError', text });
      return fail(state, failure, at, { started: true, nova: null });
    }
    case 'refused': {
      const failure = refusedPost(answer, task);
      if (failure === 'look') return to(state, { at: 'seeking', run: look, soon: true });
      return fail(state, failure, at, { started: true, nova: null });
    }
  }
}
