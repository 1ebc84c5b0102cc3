/**
 * The life of a task, as a pure state machine. `decide` names the one command that a stage asks for, `evolve` applies what came
 * of it. Nothing here reads a clock, a log or Nova: facts carry their own readings. README.md has the diagram.
 */
import { decideCell, evolveCell } from './cells/index.ts';
import type { TaskOptions } from './options.ts';
import { explained, finish, handOver } from './taskEnd.ts';
import type { Fact, Task } from './taskFacts.ts';
import { aborting, followed, sought, unseen } from './taskProgress.ts';
import {
  backoff,
  type Command,
  type Stage,
  seeing,
  startCellRun,
  startRun,
  type TaskState,
  to,
  UnexpectedFact,
} from './taskStages.ts';
import { checked, deadLetter, posted, received, setAside, tryAgainMs, waiting } from './taskStart.ts';

export const initialState = (task: Task, options: TaskOptions, deliveries: number): TaskState => ({
  task,
  options,
  deliveries,
  tried: false,
  blind: 0,
  stage: { at: 'received' },
});

/** The command that the stage asks for. */
export function decide(state: TaskState): Command {
  const { stage, options } = state;
  const poll = options.pollIntervalMs;
  switch (stage.at) {
    case 'received':
      return { do: 'readLog' };
    case 'suspected':
      return { do: 'awaitTurn', started: stage.started };
    case 'trying':
      return { do: 'appendSuspected', deliveries: state.deliveries, tries: stage.tries };
    case 'waiting':
      return { do: 'awaitStart', notBefore: stage.notBefore, checkedAt: stage.checked?.at ?? null };
    case 'checking':
      return { do: 'check' };
    case 'claiming':
      return {
        do: 'appendStarted',
        expected: stage.grant.expected,
        newestMigrationId: stage.checked.newestMigrationId,
        forced: stage.checked.forced,
        ...(stage.checked.cell === undefined ? {} : { cell: stage.checked.cell }),
      };
    case 'posting':
      return { do: 'post', by: stage.by, forced: stage.forced };
    case 'seeking':
    case 'following': {
      const afterMs = stage.soon ? Math.min(poll, 1000) : backoff(state, poll);
      return { do: 'look', afterMs, migrationId: stage.run.migrationId };
    }
    case 'noting':
      return { do: 'appendObserved', migrationId: stage.run.migrationId ?? 0, requestId: stage.run.requestId };
    case 'stopping':
      return { do: 'appendAbortRequested', stop: stage.stop };
    case 'aborting':
      return { do: 'abort', migrationId: stage.migrationId, by: stage.by };
    case 'refused':
      return { do: 'appendAbortRefused', migrationId: stage.migrationId, refusal: stage.refusal };
    case 'explaining':
      return { do: 'explain', afterMs: stage.tries === 0 ? 0 : poll, requestId: stage.run.requestId };
    case 'resizing':
    case 'travelling':
    case 'recording':
    case 'arriving':
    case 'verifying':
    case 'reportingVerified':
    case 'settling':
    case 'agreeing':
    case 'asking':
    case 'concluding':
    case 'inquiring':
      return decideCell(state, stage);
    case 'ending':
      if (stage.expected === null) return { do: 'readLog' };
      return { do: 'appendEnded', expected: stage.expected, ended: stage.ended };
    case 'passing':
      return { do: 'publishNext', next: stage.next };
    case 'finished':
      return { do: 'finish', outcome: stage.outcome, why: stage.why };
  }
}

type StageAt<At extends Stage['at']> = Extract<Stage, { readonly at: At }>;
type FactOf<Kind extends Fact['kind']> = Extract<Fact, { readonly kind: Kind }>;

/** A task that deliveries suspect has its turn: it is tried once more, set aside, or given up. */
function tryAgain(state: TaskState, { started }: StageAt<'suspected'>, { tries, agoMs }: FactOf<'turn'>): TaskState {
  if (tries >= state.options.suspectTries) {
    if (!started) return deadLetter(state, tries);
    // A clock that is behind reads the begin as a time in the future.
    const waitMs = tryAgainMs(tries, state.options) - Math.max(0, agoMs);
    if (waitMs > 0) return setAside(state, tries, waitMs);
  }
  return to(state, { at: 'trying', tries: tries + 1 });
}

/** The start is on the log: the request has to be sent within its window. */
function begun(state: TaskState, { checked }: StageAt<'claiming'>, { began, at }: FactOf<'appended'>): TaskState {
  const by = began + state.options.postWindowMs;
  const { cell } = checked;
  if (cell !== undefined) {
    const run = startCellRun(cell, at.wall, at.mono);
    return to(state, { at: 'resizing', run, by, flavorId: cell.flavorId });
  }
  const run = startRun(checked.newestMigrationId, at.mono);
  return to(state, { at: 'posting', run, by, forced: checked.forced });
}

/** The state after a fact, for the stages of an abort. */
function evolveAbort(state: TaskState, stage: StageAt<'stopping' | 'aborting' | 'refused'>, fact: Fact): TaskState {
  switch (stage.at) {
    case 'stopping':
      if (fact.kind === 'appended' || fact.kind === 'conflict')
        return aborting(state, { ...stage.run, noted: true }, stage.migrationId, fact.at);
      if (fact.kind === 'lostTrack') return state;
      break;
    case 'aborting':
      if (fact.kind === 'abortAnswered') return abortAnswered(state, stage, fact);
      break;
    case 'refused':
      // The first refusal stands for all of the attempt.
      if (fact.kind === 'appended' || fact.kind === 'conflict')
        return to(state, { at: 'following', run: { ...stage.run, refusalNoted: true }, soon: true });
      if (fact.kind === 'lostTrack') return state;
      break;
  }
  throw new UnexpectedFact(stage.at, fact.kind);
}

function abortAnswered(state: TaskState, stage: StageAt<'aborting'>, fact: FactOf<'abortAnswered'>): TaskState {
  const abort = { at: fact.at.mono, status: stage.run.status ?? '', answer: fact.answer };
  const run = { ...stage.run, abort };
  if (fact.answer === 'refused' && !run.refusalNoted)
    return to(state, { at: 'refused', run, migrationId: stage.migrationId, refusal: fact.refusal });
  return to(state, { at: 'following', run, soon: true });
}

/** The state after a fact. Throws UnexpectedFact when the fact is no answer to the stage's command. */
export function evolve(state: TaskState, fact: Fact): TaskState {
  const { stage } = state;
  switch (stage.at) {
    case 'received':
      if (fact.kind === 'log') return received(state, fact.log, fact.at);
      break;
    case 'suspected':
      if (fact.kind === 'draining') return handOver(state);
      if (fact.kind === 'turn') return tryAgain(state, stage, fact);
      break;
    case 'trying':
      // It does not matter who appended the start.
      if (fact.kind === 'appended' || fact.kind === 'conflict')
        return to({ ...state, tried: true }, { at: 'received' });
      if (fact.kind === 'lostTrack') return state;
      break;
    case 'waiting':
      return waiting(state, stage, fact);
    case 'checking':
      if (fact.kind === 'checked') return checked(state, stage, fact.verdict, fact);
      break;
    case 'claiming':
      if (fact.kind === 'appended') return begun(state, stage, fact);
      if (fact.kind === 'conflict')
        return to(state, { at: 'waiting', checked: stage.checked, notBefore: fact.at.mono });
      if (fact.kind === 'lostTrack') return to(state, { at: 'received' });
      break;
    case 'posting':
      if (fact.kind === 'posted') return posted(state, stage.run, fact.answer, fact.at);
      break;
    case 'seeking':
      if (fact.kind === 'looked') return sought(seeing(state), stage.run, fact);
      return unseen(state, fact, { ...stage, soon: false });
    case 'noting':
      // When it was not written, the attempt goes on all the same: a successor finds the migration as this one did.
      if (fact.kind === 'appended' || fact.kind === 'conflict' || fact.kind === 'lostTrack')
        return to(state, { at: 'following', run: stage.run, soon: true });
      break;
    case 'following':
      if (fact.kind === 'looked') return followed(seeing(state), stage.run, fact);
      return unseen(state, fact, { ...stage, soon: false });
    case 'stopping':
    case 'aborting':
    case 'refused':
      return evolveAbort(state, stage, fact);
    case 'explaining':
      return explained(state, stage, fact);
    case 'resizing':
    case 'travelling':
    case 'recording':
    case 'arriving':
    case 'verifying':
    case 'reportingVerified':
    case 'settling':
    case 'agreeing':
    case 'asking':
    case 'concluding':
    case 'inquiring':
      return evolveCell(state, stage, fact);
    case 'ending':
      return ending(state, stage, fact);
    case 'passing':
      if (fact.kind === 'published') return finish(state, 'retry-pending', 'the next attempt is on the work queue');
      if (fact.kind === 'lostTrack') return state;
      break;
    case 'finished':
      break;
  }
  throw new UnexpectedFact(stage.at, fact.kind);
}

function ending(state: TaskState, stage: Stage & { at: 'ending' }, fact: Fact): TaskState {
  const { ended } = stage;
  switch (fact.kind) {
    case 'log': {
      const { attempt, expected } = fact.log;
      const begun =
        ended.type === 'failed' ? ended.started : ended.type === 'completed' && ended.outcome === 'migrated';
      if (attempt.kind === 'waiting' || (attempt.kind === 'started' && begun)) return to(state, { ...stage, expected });
      // Ended by another, or started by another while this one came to the end that it must not start.
      return received(state, fact.log, fact.at);
    }
    case 'appended':
      if (ended.type === 'failed' && ended.next !== null) return to(state, { at: 'passing', next: ended.next });
      return finish(state, 'ended', 'the outcome is on the log');
    case 'conflict':
    case 'lostTrack':
      return to(state, { ...stage, expected: null });
    default:
      throw new UnexpectedFact(stage.at, fact.kind);
  }
}
