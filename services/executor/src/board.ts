/** The tasks of one aggregate that wait for their start in this process. */
import type { Cancel, Clock } from '@kronos/clock';
import { attemptIn, type StoredEvent, subject, timeMs } from '@kronos/contracts';
import type { LogPosition } from '@kronos/eventlog';
import type { WaitReasonCode } from '@kronos/facts';
import {
  type AggregateState,
  type AllCaps,
  type AttemptToStart,
  capOf,
  exceeded,
  type Slots,
  slots,
} from '@kronos/projections';
import type { JudgedFailure } from './failure.ts';
import type { RecentMoves } from './recentMoves.ts';
import { judgeStart, type Start } from './startRule.ts';
import type { Grant, Task } from './taskFacts.ts';

export interface BoardDeps {
  readonly aggregate: string;
  /** As folded so far. */
  readonly at: () => LogPosition<AggregateState>;
  /** Folded to the end of the log. */
  readonly refresh: () => Promise<LogPosition<AggregateState>>;
  readonly caps: AllCaps;
  /** Of all aggregates. */
  readonly recent: Pick<RecentMoves, 'touched'>;
  readonly clock: Clock;
  /** The problem of the own clock; null: none. By a wrong clock no task starts, and none ends as expired. */
  readonly clockProblem: () => string | null;
  /** A task waits for a reason that it did not wait for before. */
  readonly onWait?: (task: Task, code: WaitReasonCode, text: string) => void;
}

/** The ends of a wait. */
export type WaitEnd =
  | { readonly kind: 'mayStart'; readonly grant: Grant }
  | { readonly kind: 'mustEnd'; readonly failure: JudgedFailure; readonly expected: number }
  | { readonly kind: 'overtaken' }
  | { readonly kind: 'requeued' }
  | { readonly kind: 'draining' };

interface Waiter {
  readonly task: Task;
  /** Place in the queue: the sequence of its message. */
  readonly order: number;
  /** Not before this reading of the monotonic clock. */
  readonly notBefore: number;
  readonly since: number;
  code: WaitReasonCode | null;
  waits: boolean;
  readonly wake: (body: 'judge' | 'requeued') => void;
}

/** Time for which tasks wait on a wrong clock before it is checked again. */
const CLOCK_AGAIN_MS = 2_000;
/** The longest sleep: durations that the board cannot foresee (a quarantine, a breaker) end within it. */
const LONGEST_SLEEP_MS = 30_000;

export class StartBoard {
  readonly #deps: BoardDeps;
  readonly #waiting: Waiter[] = [];
  /** Started by tasks of this process and not on the log yet. */
  readonly #granted = new Map<string, AttemptToStart>();
  #timer: Cancel | null = null;
  /** When the timer fires, ms since the epoch. */
  #wakesAt = Number.POSITIVE_INFINITY;
  /** The waiters of the next look: all, or only those that came since the last look, as nothing has changed for the others. */
  #next: 'all' | Waiter[] = [];
  #pumping = false;

  constructor(deps: BoardDeps) {
    this.#deps = deps;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Waits until the task may start, by the log folded to its end, or must not. `mayStart` holds a place among the caps until
   * `release`. `checkedAtSequence`: the log as it stood when the task's pre-flight began; null when it has none.
   */
  async start(
    task: Task,
    wish: { readonly order: number; readonly notBefore: number; readonly checkedAtSequence: number | null },
    stopping: AbortSignal,
    lost: AbortSignal,
  ): Promise<WaitEnd> {
    this.release(task);
    for (;;) {
      const why = await this.#wait(task, wish, stopping, lost);
      if (why === 'draining') return { kind: 'draining' };
      if (why === 'requeued') return { kind: 'requeued' };
      let at: LogPosition<AggregateState>;
      try {
        at = await this.#deps.refresh();
      } catch (error) {
        this.release(task);
        throw error;
      }
      const expected = at.expectedOn(subject('results', this.#deps.aggregate));
      const start = this.#judge(task, at.state);
      if (start.kind === 'start') {
        const { checkedAtSequence } = wish;
        const hosts = [task.from, task.destination];
        const disturbed = checkedAtSequence !== null && this.#deps.recent.touched(hosts, checkedAtSequence);
        return { kind: 'mayStart', grant: { expected, disturbed } };
      }
      this.release(task);
      if (start.kind === 'end') return { kind: 'mustEnd', failure: start.failure, expected };
      if (start.kind === 'overtaken') return { kind: 'overtaken' };
    }
  }

  /** Gives the place among the caps back. */
  release(task: Task): void {
    const held = this.#granted.get(task.taskId);
    if (held === undefined || held.attempt !== task.attempt) return;
    this.#granted.delete(task.taskId);
    this.pump();
  }

  /** The log has one more event, of this aggregate, of all, or about a move. */
  changed(stored: StoredEvent): void {
    if (this.#concerns(stored)) this.pump();
  }

  /** Whether an event may end a wait. A move of another aggregate matters only to its VM, its hosts and its groups. */
  #concerns({ event }: StoredEvent): boolean {
    const move = attemptIn(event);
    if (move === null || event.aggregate === this.#deps.aggregate) return true;
    const hosts = [move.from, move.destination];
    return this.#waiting.some(
      ({ task, code }) =>
        task.serverId === move.serverId ||
        hosts.includes(task.from) ||
        hosts.includes(task.destination) ||
        code === 'max_concurrent_per_group',
    );
  }

  /** Requeues up to this many of the tasks that waited longest, to make room for tasks that may be able to start. */
  requeue(count: number): void {
    const longest = [...this.#waiting].sort((a, b) => a.since - b.since).slice(0, count);
    for (const waiter of longest) waiter.wake('requeued');
  }

  /** Looks at every waiting task again, soon. */
  pump(): void {
    this.#next = 'all';
    this.#soon();
  }

  #soon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    this.#deps.clock.soon(() => {
      this.#pumping = false;
      const next = this.#next;
      this.#next = [];
      if (this.#waiting.length > 0) this.#pump(next);
    });
  }

  close(): void {
    this.#timer?.();
    this.#timer = null;
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  /** Why the task may not start by the log as it is folded now; null while it may. */
  mayNotStart(task: Task): string | null {
    const start = this.#judge(task, this.#deps.at().state);
    if (start.kind === 'start') return null;
    return start.kind === 'wait' ? start.text : `the task ${start.kind === 'end' ? 'must end' : 'was overtaken'}`;
  }

  /** Why the start of the task, which is on the log, may not be sent: starts of other aggregates came before it; null: it may. */
  async exceeded({ taskId }: Task): Promise<string | null> {
    const { at, refresh, caps } = this.#deps;
    if (at().state.elsewhere.length === 0) return null;
    const { state } = await refresh();
    return exceeded(state, taskId, caps)?.text ?? null;
  }

  #judge(task: Task, state: AggregateState): Start {
    const problem = this.#deps.clockProblem();
    if (problem !== null)
      return { kind: 'wait', code: 'clock', text: problem, untilMs: this.#deps.clock.read().wall + CLOCK_AGAIN_MS };
    const soon = [...this.#granted.values()].filter((held) => held.taskId !== task.taskId);
    return judgeStart(state, task, this.#deps.clock.read().wall, { soon, caps: this.#deps.caps });
  }

  #pump(whom: 'all' | readonly Waiter[]): void {
    const { at, clock, clockProblem, caps, onWait } = this.#deps;
    const now = clock.read();
    const problem = clockProblem();
    if (problem !== null) {
      for (const waiter of this.#waiting) this.#note(waiter, 'clock', problem, onWait);
      this.#wakeAt(now.wall + CLOCK_AGAIN_MS, now.wall);
      return;
    }
    const { state } = at();
    this.#dropStarted(state);
    let held = slots(state, [...this.#granted.values()]);
    let soonest = now.wall + LONGEST_SLEEP_MS;
    for (const waiter of whom === 'all' ? [...this.#waiting] : whom.filter((each) => each.waits)) {
      const { task } = waiter;
      const expiredMs = timeMs(task.notAfter) + 1;
      // One that has expired already and may not end yet waits for a change of the log.
      if (expiredMs > now.wall) soonest = Math.min(soonest, expiredMs);
      if (this.#granted.has(task.taskId)) continue;
      const full = heldBack(state, task, now.wall, { held, caps });
      const start = full ?? this.#judge(task, state);
      if (start.kind === 'wait') {
        soonest = Math.min(soonest, start.untilMs ?? soonest);
        this.#note(waiter, start.code, start.text, onWait);
        continue;
      }
      const restMs = start.kind === 'start' ? waiter.notBefore - now.mono : 0;
      if (restMs > 0) {
        soonest = Math.min(soonest, now.wall + restMs);
        continue;
      }
      if (start.kind === 'start') held = this.#grant(task, state);
      waiter.wake('judge');
    }
    // After a look at some of the tasks, the timer of the others still holds.
    if (whom !== 'all' && this.#wakesAt <= soonest) return;
    this.#wakeAt(soonest, now.wall);
  }

  /** Gives up the places of attempts that hold their slots on the log. */
  #dropStarted({ tasks }: AggregateState): void {
    for (const [taskId, { attempt }] of this.#granted)
      if (tasks.get(taskId)?.slot?.attempt === attempt) this.#granted.delete(taskId);
  }

  /** Holds a place for the task; the slots that are held then. */
  #grant({ taskId, attempt, destination }: Task, state: AggregateState): Slots {
    this.#granted.set(taskId, { taskId, attempt, destination });
    return slots(state, [...this.#granted.values()]);
  }

  /** Looks at every waiting task again at that time. */
  #wakeAt(atMs: number, nowMs: number): void {
    this.close();
    this.#wakesAt = atMs;
    this.#timer = this.#deps.clock.after(Math.max(1, atMs - nowMs), () => this.pump());
  }

  #note(waiter: Waiter, code: WaitReasonCode, text: string, onWait: BoardDeps['onWait']): void {
    if (waiter.code === code) return;
    waiter.code = code;
    onWait?.(waiter.task, code, text);
  }

  #wait(
    task: Task,
    { order, notBefore }: { readonly order: number; readonly notBefore: number },
    stopping: AbortSignal,
    lost: AbortSignal,
  ): Promise<'judge' | 'requeued' | 'draining'> {
    if (stopping.aborted || lost.aborted) return Promise.resolve('draining');
    return new Promise((resolve) => {
      const leave = (why: 'judge' | 'requeued' | 'draining'): void => {
        waiter.waits = false;
        const at = this.#waiting.indexOf(waiter);
        if (at >= 0) this.#waiting.splice(at, 1);
        stopping.removeEventListener('abort', drain);
        lost.removeEventListener('abort', drain);
        resolve(why);
      };
      const drain = (): void => leave('draining');
      const waiter: Waiter = {
        task,
        order,
        notBefore,
        since: this.#deps.clock.read().mono,
        code: null,
        waits: true,
        wake: leave,
      };
      stopping.addEventListener('abort', drain, { once: true });
      lost.addEventListener('abort', drain, { once: true });
      const at = this.#waiting.findIndex((other) => other.order > order);
      this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, waiter);
      if (this.#next !== 'all') this.#next.push(waiter);
      this.#soon();
    });
  }
}

/**
 * The limit that holds a task back for which nothing else has changed, so that a long queue costs little: the start rule
 * itself is asked only when it could say something else than "wait".
 */
function heldBack(
  state: AggregateState,
  task: Task,
  nowMs: number,
  { held, caps }: { readonly held: Slots; readonly caps: AllCaps },
): Start | null {
  const facts = state.tasks.get(task.taskId);
  const unchanged =
    facts !== undefined &&
    facts.end === null &&
    facts.slot === null &&
    facts.attempt === task.attempt &&
    facts.cancelAsked === null &&
    facts.abortAsked === null &&
    facts.closeAsked === null &&
    // It ends: moves between cells are off.
    (facts.step.phase !== 'cell' || caps.cells !== undefined) &&
    timeMs(task.notAfter) > nowMs;
  const full = unchanged ? capOf(held, facts, task.destination, caps) : null;
  return full === null ? null : { kind: 'wait', code: full.code, text: full.text, untilMs: null };
}
