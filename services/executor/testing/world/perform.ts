import type { AttemptOrders } from '../../src/taskFacts.ts';
import type { Command, TaskState } from '../../src/taskStages.ts';
import { SAMPLE_MS } from '../sample.ts';
import type { Body, Doing } from './doing.ts';
import type { Log } from './log.ts';
import type { Nova } from './nova.ts';
import type { Queue } from './queue.ts';
import type { Scene } from './scene.ts';

export type World = { readonly scene: Scene; readonly nova: Nova; readonly log: Log; readonly queue: Queue };

/** The requests of an agent before an attempt is started, and after it ended. */
type Before = 'readLog' | 'awaitTurn' | 'appendSuspected' | 'awaitStart' | 'check' | 'appendStarted' | 'publishNext';

/** Does what an agent asks for; time may pass meanwhile. */
export function perform(
  { scene, nova, log, queue }: World,
  doing: Doing,
  state: TaskState,
  command: Exclude<Command, { do: 'finish' }>,
): Body {
  const { attempt } = doing;
  const { fails } = scene;
  switch (command.do) {
    case 'readLog':
      return { kind: 'log', log: log.read(attempt) };
    case 'awaitTurn':
      return fails(0.02) ? { kind: 'draining' } : { kind: 'turn', ...log.tries(attempt) };
    case 'appendSuspected':
      return log.suspected(doing, command.tries);
    case 'awaitStart':
      return awaitStart(scene, log, attempt, state.tried);
    case 'check':
      return nova.check(doing);
    case 'appendStarted': {
      const body = log.started(doing, command.expected, command.newestMigrationId);
      // The answer may take its time, and the process may be stopped before it reads it.
      scene.now += scene.pick(0, 5, 5, 2000, 20_000, 90_000);
      return body;
    }
    case 'publishNext':
      if (fails(0.05)) return { kind: 'lostTrack' };
      queue.publish(command.next);
      return fails(0.05) ? { kind: 'lostTrack' } : { kind: 'published' };
    default:
      return migrate({ scene, nova, log, queue }, doing, command);
  }
}

/** Does a request of an agent whose attempt is started. */
function migrate(
  { scene, nova, log }: World,
  doing: Doing,
  command: Exclude<Command, { do: 'finish' | Before }>,
): Body {
  const { attempt } = doing;
  switch (command.do) {
    case 'post':
      return nova.post(doing, command.by, () => {
        const made = log.attempt(doing);
        made.posts += 1;
        if (made.outcome !== null) made.late += 1;
        scene.say(`POST ${attempt} by ${doing.agent}`);
      });
    case 'look':
      return look(scene, nova, log, { attempt, afterMs: command.afterMs });
    case 'appendObserved':
      return log.observed(doing, command.migrationId);
    case 'appendAbortRequested':
      return log.abortRequested(doing, command.stop);
    case 'abort':
      return nova.abort(command.migrationId);
    case 'appendAbortRefused':
      return log.abortRefused(doing);
    case 'explain':
      return explain(scene, log, { attempt, afterMs: command.afterMs });
    case 'appendEnded':
      return log.ended(doing, command.expected, command.ended, nova.busyWith(attempt));
    default:
      throw new Error(`a live migration asks for ${command.do}`);
  }
}

const ordersOf = (scene: Scene, log: Log, attempt: number): AttemptOrders => ({
  stopAsked: scene.now >= scene.stopAt,
  closeAsked: null,
  ended: log.read(attempt).attempt.kind === 'ended',
});

/** A pause, and the attempt that it is about. */
type After = { readonly attempt: number; readonly afterMs: number };

function look(scene: Scene, nova: Nova, log: Log, { attempt, afterMs }: After): Body {
  scene.now += afterMs;
  nova.advance();
  if (scene.fails(0.05)) return { kind: 'draining' };
  const orders = ordersOf(scene, log, attempt);
  if (scene.fails(0.1)) return { kind: 'blind', text: 'down', orders };
  return { kind: 'looked', look: nova.look(), orders };
}

function explain(scene: Scene, log: Log, { attempt, afterMs }: After): Body {
  const { fails, flip, pick } = scene;
  scene.now += afterMs;
  if (fails(0.05)) return { kind: 'draining' };
  const orders = ordersOf(scene, log, attempt);
  if (fails(0.2)) return { kind: 'blind', text: 'down', orders };
  const story = { text: pick('no valid host', 'timed out waiting for a reply', 'x'), event: null, host: null };
  const hosts = { source: pick('up', 'up', 'down'), destination: pick('up', 'up', 'down') } as const;
  return { kind: 'explained', orders, account: { story: flip(0.5) ? null : story, asked: flip(0.5), hosts } };
}

function awaitStart(scene: Scene, log: Log, attempt: number, tried: boolean): Body {
  const { fails, flip, now, task } = scene;
  const { attempt: logged, expected } = log.read(attempt);
  if (logged.kind !== 'waiting') return { kind: 'overtaken' };
  if (fails(0.02)) return { kind: 'draining' };
  if (tried && flip(0.05)) {
    log.setTries(attempt, 0);
    return { kind: 'yielded' };
  }
  const late = now > Date.parse(task.notAfter) - SAMPLE_MS;
  if (late || now >= scene.stopAt) {
    const why = { code: late ? 'expired' : 'cancelled', text: '' };
    const cause = late ? ('kronos' as const) : ('operator' as const);
    const failure = { errorType: 'Cancelled' as const, reason: why, cause, fault: 'none' as const, hostAtFault: null };
    return { kind: 'mustEnd', failure, expected };
  }
  return { kind: 'mayStart', grant: { expected, disturbed: flip(0.1) } };
}
