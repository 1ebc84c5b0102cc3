/** Performs what the state machine decides, for one delivery of one task. */
import { type MigrationRequested, moveEnd, sentence } from '@kronos/contracts';
import type { TaskDelivery, TaskOutcome } from '@kronos/eventlog';
import { spans, withSpan } from '@kronos/telemetry';
import { type DeliveredTask, deliveredTask, Lost, type RunDeps } from './deliveredTask.ts';
import {
  abortRefusedEvent,
  abortRequestedEvent,
  endedEvent,
  nextRequest,
  observedEvent,
  settleEvent,
  startedEvent,
  suspectedEvent,
  verifiedEvent,
  verifyingEvent,
} from './events.ts';
import { NovaCalls } from './novaCalls.ts';
import { decide, evolve, initialState } from './task.ts';
import { TaskEvents } from './taskEvents.ts';
import type { FactBody, Task } from './taskFacts.ts';
import type { Command, TaskState } from './taskStages.ts';
import { type GiveBack, triesOf } from './trials.ts';

/**
 * Brings one delivered task as far as this executor can, and says what is to become of the delivery. When the delivery is
 * lost on the way, it stops where it is: the log and Nova say to a successor how far it came.
 */
export async function runTask(
  message: MigrationRequested,
  delivery: TaskDelivery,
  deps: RunDeps,
): Promise<TaskOutcome> {
  const { board, clock, options, logger, meters } = deps;
  const of = deliveredTask(message, delivery, deps);
  const { task, about } = of;
  const shell = new Shell(of);
  let state = initialState(task, options, delivery.deliveries);
  try {
    for (;;) {
      const command = decide(state);
      await shell.survive(state, command);
      if (command.do === 'finish') {
        const level = command.why.code === 'suspected' ? 'error' : 'info';
        logger[level]({ ...about, why: command.why }, `task ${command.outcome.kind}`);
        return command.outcome;
      }
      const body = await shell.perform(command, state);
      if (delivery.lost.aborted) throw new Lost();
      const before = state;
      state = evolve(state, { ...body, at: clock.read() });
      logger.debug(
        { ...about, from: before.stage.at, fact: body.kind, to: state.stage.at },
        'the task changed its stage',
      );
      meters.moved(task, before, state);
    }
  } catch (error) {
    if (!(error instanceof Lost) && !delivery.lost.aborted) throw error;
    logger.warn(about, 'the delivery was lost: the executor stops work on it');
    return { kind: 'handOver' };
  } finally {
    board.release(task);
    shell.leave();
  }
}

/** The level at which the end of a move is logged. */
const LEVELS = { plain: 'info', warned: 'warn', damaged: 'error' } as const;

/** A suspected task keeps its turn no longer than this while it waits for leave to start. */
const TURN_WAIT_MS = 1000;

class Shell {
  readonly #task: Task;
  readonly #delivery: TaskDelivery;
  readonly #deps: RunDeps;
  readonly #about: DeliveredTask['about'];
  readonly #events: TaskEvents;
  readonly #nova: NovaCalls;
  /** The log's end as it was when the newest pre-flight began. */
  #checkedAtSequence: number | null = null;
  /** The turn of a suspected task, while this one has it. */
  #turn: GiveBack | null = null;
  /** The number of tries in this delivery. */
  #trial = 0;

  constructor(of: DeliveredTask) {
    this.#task = of.task;
    this.#delivery = of.delivery;
    this.#deps = of.deps;
    this.#about = of.about;
    this.#events = new TaskEvents(of);
    this.#nova = new NovaCalls(of, this.#events);
  }

  async perform(command: Exclude<Command, { do: 'finish' }>, state: TaskState): Promise<FactBody> {
    const { log, logger } = this.#deps;
    const task = this.#task;
    const origin = this.#events.origin();
    switch (command.do) {
      case 'readLog':
        return {
          kind: 'log',
          log: state.stage.at === 'received' ? await this.#events.inherit() : await this.#events.readLog(),
        };
      case 'awaitTurn':
        return this.#awaitTurn(command.started);
      case 'appendSuspected':
        logger.warn({ ...this.#about, ...command }, 'the task may be a poison message: the executor isolates it');
        return this.#events.write(suspectedEvent(task, origin, { ...command, trial: this.#trial }));
      case 'awaitStart':
        return this.#awaitStart(command.notBefore);
      case 'check':
        return this.#checked();
      case 'appendStarted':
        return this.#appendStarted(command);
      case 'post':
        return this.#nova.post(command);
      case 'look':
        return this.#nova.look(command.afterMs, command.migrationId);
      case 'appendObserved':
        return this.#appendObserved(command);
      case 'postCell':
        return this.#nova.postCell(command);
      case 'lookCell':
        return this.#nova.lookCell(command);
      case 'appendVerifying':
        return this.#events.note(verifyingEvent(task, origin, command.host), 'the server is in VERIFY_RESIZE');
      case 'appendVerified':
        return this.#events.note(verifiedEvent(task, origin, command), 'the checks of the server have passed');
      case 'appendSettle': {
        const { settle } = command;
        return this.#events.note(settleEvent(task, origin, settle), `the executor will ${settle.act} the move`);
      }
      case 'settle':
        return this.#nova.settle(command.act, command.by);
      case 'appendAbortRequested':
        return this.#events.write(abortRequestedEvent(task, origin, command.stop));
      case 'appendAbortRefused':
        return this.#events.write(abortRefusedEvent(task, origin, command));
      case 'abort':
        return this.#nova.abort(command, state);
      case 'explain':
        return this.#nova.explain(command.afterMs, command.requestId);
      case 'appendEnded':
        return this.#appendEnded(command);
      case 'publishNext': {
        const event = nextRequest(task, origin, command.next);
        const written = await this.#events.append(() => log.append(event));
        // A conflict is the message itself, published before.
        return written === 'lostTrack' ? { kind: 'lostTrack' } : { kind: 'published' };
      }
    }
  }

  async #checked(): Promise<FactBody> {
    const { reader, clock, tracer } = this.#deps;
    this.#checkedAtSequence = reader.at(this.#task.aggregate).sequence;
    const began = clock.read().mono;
    const verdict = await withSpan(tracer, spans.preflight, {}, (span) => this.#nova.check(span));
    return { kind: 'checked', verdict, tookMs: clock.read().mono - began };
  }

  async #appendStarted(command: Extract<Command, { do: 'appendStarted' }>): Promise<FactBody> {
    const { log, clock, board, options, logger } = this.#deps;
    const began = clock.read().mono;
    const event = startedEvent(this.#task, this.#events.origin(), command);
    const expectation = {
      expectedLastSequence: command.expected,
      timeoutMs: options.postWindowMs,
      // A pause, a cancellation or a wrong clock may have come while the append waited for NATS.
      veto: () => board.mayNotStart(this.#task),
    };
    const written = await this.#events.append(() => log.append(event, expectation));
    if (written !== 'appended') return { kind: written };
    const text = command.forced ? 'migration started, past the scheduler (force)' : 'migration started';
    logger[command.forced ? 'warn' : 'info']({ ...this.#about, forced: command.forced }, text);
    return { kind: 'appended', began };
  }

  async #appendObserved({ do: _, ...found }: Extract<Command, { do: 'appendObserved' }>): Promise<FactBody> {
    const { migrationId, requestId } = found;
    const fact = await this.#events.write(observedEvent(this.#task, this.#events.origin(), found));
    this.#deps.logger.info({ ...this.#about, migrationId, requestId }, 'Nova runs the migration');
    return fact;
  }

  async #appendEnded(command: Extract<Command, { do: 'appendEnded' }>): Promise<FactBody> {
    const { log, clock, logger, meters } = this.#deps;
    const task = this.#task;
    const event = endedEvent(task, this.#events.origin(), command.ended);
    const written = await this.#events.append(() => log.append(event, { expectedLastSequence: command.expected }));
    if (written !== 'appended') return { kind: written };
    const { type, data } = event;
    const end = event.type === 'migration.skipped' ? 'plain' : moveEnd(event);
    logger[LEVELS[end]]({ ...this.#about, type, data }, end === 'plain' ? type : sentence(event));
    meters.ended(task, command.ended, end);
    return { kind: 'appended', began: clock.read().mono };
  }

  async #awaitStart(notBefore: number): Promise<FactBody> {
    const { board, options } = this.#deps;
    const { stopping, lost, sequence } = this.#delivery;
    const wish = { order: sequence, notBefore, checkedAtSequence: this.#checkedAtSequence };
    const impatient = new AbortController();
    const cancel = this.#turn === null ? null : this.#deps.clock.after(TURN_WAIT_MS, () => impatient.abort());
    const until = cancel === null ? stopping : AbortSignal.any([stopping, impatient.signal]);
    const leave = await this.#events.untilAnswered(() => board.start(this.#task, wish, until, lost));
    cancel?.();
    if (leave.kind === 'draining' && !stopping.aborted && !lost.aborted) {
      await this.#survived();
      return { kind: 'yielded' };
    }
    return leave.kind === 'requeued' ? { kind: 'requeued', delayMs: options.requeueMs } : leave;
  }

  async #awaitTurn(started: boolean): Promise<FactBody> {
    const { trials, log, reader } = this.#deps;
    const { stopping, lost } = this.#delivery;
    const { aggregate, planId, taskId, attempt } = this.#task;
    this.#turn ??= await trials.turn({ started }, stopping, lost);
    if (this.#turn === null) return { kind: 'draining' };
    this.#trial += 1;
    const from = reader.at(aggregate).state.plans.get(planId)?.sequence ?? 1;
    const { tries, atMs } = await this.#events.untilAnswered(() => triesOf(log.replay({ from }), taskId, attempt));
    return { kind: 'turn', tries, agoMs: this.#deps.clock.read().wall - atMs };
  }

  /** Clears the suspicion once Nova is at work on the task, or when the executor gives the task back unharmed. */
  async survive({ stage, tried }: TaskState, command: Command): Promise<void> {
    const follows = 'soon' in stage && stage.at !== 'seeking' && !stage.soon;
    const putDown = command.do === 'finish' && command.outcome.kind !== 'done';
    if (follows || putDown) await (tried ? this.#survived() : this.leave());
  }

  async #survived(): Promise<void> {
    if (this.#turn === null) return;
    const { deliveries } = this.#delivery;
    const event = suspectedEvent(this.#task, this.#events.origin(), { deliveries, trial: this.#trial, tries: 0 });
    await this.#events.append(() => this.#deps.log.append(event)).catch(() => undefined);
    this.leave();
  }

  /** Gives the turn back, if this task has it. */
  leave(): void {
    this.#turn?.();
    this.#turn = null;
  }
}
