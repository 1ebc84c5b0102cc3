/** Performs what the state machine decides, for one delivery of one task. */

import type { Cancel, Clock } from '@kronos/clock';
import {
  type Actor,
  errorText,
  type LogEvent,
  type MigrationRequested,
  moveEnd,
  sentence,
  subject,
} from '@kronos/contracts';
import {
  AppendConflict,
  AppendUnknown,
  AppendWithdrawn,
  type EventLog,
  type LogPosition,
  type TaskDelivery,
  type TaskOutcome,
} from '@kronos/eventlog';
import {
  type ActionOutcome,
  type ActOptions,
  Forbidden,
  HttpError,
  MicroversionUnsupported,
  NotSent,
  type Nova,
  Timeout,
  Unauthorized,
  Unreachable,
} from '@kronos/openstack';
import type { AggregateState, SettleAct } from '@kronos/projections';
import { attributes, type Logger, spans, withSpan } from '@kronos/telemetry';
import type { Span, Tracer } from '@opentelemetry/api';
import type { StartBoard } from './board.ts';
import { cellPreflight, lookCell } from './cells/index.ts';
import {
  abortRefusedEvent,
  abortRequestedEvent,
  endedEvent,
  nextRequest,
  type Origin,
  observedEvent,
  settleEvent,
  startedEvent,
  stopOf,
  suspectedEvent,
  verifiedEvent,
  verifyingEvent,
} from './events.ts';
import { failureFor } from './failure.ts';
import { look, readAccount } from './follow.ts';
import type { TaskMeters } from './meters.ts';
import type { TaskOptions } from './options.ts';
import { type CheckedCloud, type CheckOptions, preflight } from './preflight.ts';
import { attemptLog, wordOn } from './slots.ts';
import { decide, evolve, initialState } from './task.ts';
import type { Command, Fact, PostAnswer, PreflightVerdict, Task, TaskLog, TaskState, Word } from './taskStages.ts';
import { type GiveBack, type Trials, triesOf } from './trials.ts';

/** The part of the log's fold that a task needs. */
export interface LogReader {
  /** As folded so far. */
  at(aggregate: string): LogPosition<AggregateState>;
  /** Folded to the end of the log. */
  refresh(aggregate: string): Promise<LogPosition<AggregateState>>;
  /** Paces of moves in any aggregate, as folded so far. */
  paces(): readonly number[];
}

export interface RunDeps {
  readonly log: Pick<EventLog, 'append' | 'replay'>;
  readonly reader: LogReader;
  readonly board: StartBoard;
  readonly trials: Trials;
  readonly cloud: CheckedCloud;
  /** As the configuration and the log stand now. */
  readonly checkOptions: (task: Task) => CheckOptions;
  readonly options: TaskOptions;
  /** Aborted when an operator closes the task with force. */
  readonly forced: AbortSignal;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly meters: TaskMeters;
}

const taskOf = (message: MigrationRequested): Task => ({
  ...message.data,
  aggregate: message.aggregate,
});

type FactBody = Fact extends infer F ? (F extends { readonly at: unknown } ? Omit<F, 'at'> : never) : never;

/** The delivery was given up: nothing more is done for it. */
class Lost extends Error {}

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
  const task = taskOf(message);
  const shell = new Shell(task, message, delivery, deps);
  let state = initialState(task, options, delivery.deliveries);
  try {
    for (;;) {
      const command = decide(state);
      await shell.survive(state, command);
      if (command.do === 'finish') {
        const level = command.why.code === 'suspected' ? 'error' : 'info';
        logger[level]({ ...shell.about, why: command.why }, `task ${command.outcome.kind}`);
        return command.outcome;
      }
      const body = await shell.perform(command, state);
      if (delivery.lost.aborted) throw new Lost();
      const before = state;
      state = evolve(state, { ...body, at: clock.read() });
      logger.debug(
        { ...shell.about, from: before.stage.at, fact: body.kind, to: state.stage.at },
        'the task changed its stage',
      );
      meters.moved(task, before, state);
    }
  } catch (error) {
    if (!(error instanceof Lost) && !delivery.lost.aborted) throw error;
    logger.warn(shell.about, 'the delivery was lost: the executor stops work on it');
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
  readonly about: Readonly<Record<string, unknown>>;
  readonly #task: Task;
  readonly #message: MigrationRequested;
  readonly #delivery: TaskDelivery;
  readonly #deps: RunDeps;
  readonly #results: string;
  /** The log's end as it was when the newest pre-flight began. */
  #checkedAtSequence: number | null = null;
  /** The turn of a suspected task, while this one has it. */
  #turn: GiveBack | null = null;
  /** The number of tries in this delivery. */
  #trial = 0;

  constructor(task: Task, message: MigrationRequested, delivery: TaskDelivery, deps: RunDeps) {
    this.#task = task;
    this.#message = message;
    this.#delivery = delivery;
    this.#deps = deps;
    this.#results = subject('results', task.aggregate);
    this.about = {
      aggregate: task.aggregate,
      taskId: task.taskId,
      attempt: task.attempt,
      serverId: task.serverId,
      from: task.from,
      destination: task.destination,
    };
  }

  async perform(command: Exclude<Command, { do: 'finish' }>, state: TaskState): Promise<FactBody> {
    const { log, clock, logger } = this.#deps;
    const task = this.#task;
    switch (command.do) {
      case 'readLog':
        return { kind: 'log', log: state.stage.at === 'received' ? await this.#inherit() : await this.#readLog() };
      case 'awaitTurn':
        return this.#awaitTurn(command.started);
      case 'appendSuspected':
        logger.warn({ ...this.about, ...command }, 'the task may be a poison message: the executor isolates it');
        return this.#write(suspectedEvent(task, this.#origin(), { ...command, trial: this.#trial }));
      case 'awaitStart':
        return this.#awaitStart(command.notBefore);
      case 'check':
        return this.#checked();
      case 'appendStarted': {
        const began = clock.read().mono;
        const event = startedEvent(task, this.#origin(), command);
        const options = {
          expectedLastSequence: command.expected,
          timeoutMs: this.#deps.options.postWindowMs,
          // A pause, a cancellation or a wrong clock may have come while the append waited for NATS.
          veto: () => this.#deps.board.mayNotStart(task),
        };
        const written = await this.#append(() => log.append(event, options));
        if (written === 'appended') {
          const text = command.forced ? 'migration started, past the scheduler (force)' : 'migration started';
          logger[command.forced ? 'warn' : 'info']({ ...this.about, forced: command.forced }, text);
          return { kind: 'appended', began };
        }
        return { kind: written };
      }
      case 'post':
        return this.#posted((span) => this.#post(command, span));
      case 'look':
        return this.#look(command.afterMs, command.migrationId);
      case 'appendObserved':
        return this.#appendObserved(command);
      case 'postCell':
        return this.#posted((span) => this.#postCell(command, span));
      case 'lookCell':
        return this.#lookCell(command.afterMs, command.probe);
      case 'appendVerifying':
        return this.#note(verifyingEvent(task, this.#origin(), command.host), 'the server is in VERIFY_RESIZE');
      case 'appendVerified':
        return this.#note(verifiedEvent(task, this.#origin(), command), 'the checks of the server have passed');
      case 'appendSettle': {
        const { settle } = command;
        return this.#note(settleEvent(task, this.#origin(), settle), `the executor will ${settle.act} the move`);
      }
      case 'settle':
        return this.#settle(command.act, command.by);
      case 'appendAbortRequested':
        return this.#write(abortRequestedEvent(task, this.#origin(), command.stop));
      case 'appendAbortRefused':
        return this.#write(abortRefusedEvent(task, this.#origin(), command));
      case 'abort':
        return this.#abort(command, state);
      case 'explain':
        return this.#explain(command.afterMs, command.requestId);
      case 'appendEnded':
        return this.#appendEnded(command);
      case 'publishNext': {
        const event = nextRequest(task, this.#origin(), command.next);
        const written = await this.#append(() => log.append(event));
        // A conflict is the message itself, published before: as good.
        return written === 'lostTrack' ? { kind: 'lostTrack' } : { kind: 'published' };
      }
    }
  }

  /** Writes an event that expects nothing of the log. */
  async #write(event: LogEvent): Promise<FactBody> {
    const written = await this.#append(() => this.#deps.log.append(event));
    return written === 'appended' ? { kind: 'appended', began: this.#deps.clock.read().mono } : { kind: written };
  }

  async #checked(): Promise<FactBody> {
    const { reader, clock, tracer } = this.#deps;
    this.#checkedAtSequence = reader.at(this.#task.aggregate).sequence;
    const began = clock.read().mono;
    const verdict = await withSpan(tracer, spans.preflight, {}, (span) => this.#check(span));
    return { kind: 'checked', verdict, tookMs: clock.read().mono - began };
  }

  async #posted(post: (span: Span) => Promise<PostAnswer>): Promise<FactBody> {
    return { kind: 'posted', answer: await withSpan(this.#deps.tracer, spans.migrate, {}, post) };
  }

  async #appendObserved({ do: _, ...found }: Extract<Command, { do: 'appendObserved' }>): Promise<FactBody> {
    const { migrationId, requestId } = found;
    const fact = await this.#write(observedEvent(this.#task, this.#origin(), found));
    this.#deps.logger.info({ ...this.about, migrationId, requestId }, 'Nova runs the migration');
    return fact;
  }

  async #appendEnded(command: Extract<Command, { do: 'appendEnded' }>): Promise<FactBody> {
    const { log, clock, logger, meters } = this.#deps;
    const task = this.#task;
    const event = endedEvent(task, this.#origin(), command.ended);
    const written = await this.#append(() => log.append(event, { expectedLastSequence: command.expected }));
    if (written !== 'appended') return { kind: written };
    const { type, data } = event;
    const end = event.type === 'migration.skipped' ? 'plain' : moveEnd(event);
    logger[LEVELS[end]]({ ...this.about, type, data }, end === 'plain' ? type : sentence(event));
    meters.ended(task, command.ended, end);
    return { kind: 'appended', began: clock.read().mono };
  }

  /** Writes an event of which it makes no difference whose it is. */
  async #note(event: LogEvent, text: string): Promise<FactBody> {
    const fact = await this.#write(event);
    this.#deps.logger.info({ ...this.about, type: event.type, data: event.data }, text);
    return fact;
  }

  #origin(): Origin {
    return { by: this.#deps.by, correlationId: this.#message.correlationId, nowMs: this.#deps.clock.read().wall };
  }

  async #readLog(): Promise<TaskLog> {
    return this.#logAt(await this.#refresh());
  }

  #refresh(): Promise<LogPosition<AggregateState>> {
    return this.#untilAnswered(() => this.#deps.reader.refresh(this.#task.aggregate));
  }

  #logAt(at: LogPosition<AggregateState>): TaskLog {
    const { taskId, attempt } = this.#task;
    return { attempt: attemptLog(at.state, taskId, attempt), expected: at.expectedOn(this.#results) };
  }

  /** The log, and what an executor before this one wanted the attempt aborted for. */
  async #inherit(): Promise<TaskLog> {
    const { log } = this.#deps;
    const at = await this.#refresh();
    const read = this.#logAt(at);
    if (read.attempt.kind !== 'started') return read;
    const from = at.state.tasks.get(this.#task.taskId)?.slot?.sequence ?? 1;
    const stop = await this.#untilAnswered(() => stopOf(log.replay({ from }), this.#task));
    return { ...read, attempt: { ...read.attempt, stop } };
  }

  async #awaitStart(notBefore: number): Promise<FactBody> {
    const { board, options } = this.#deps;
    const { stopping, lost, sequence } = this.#delivery;
    const wish = { order: sequence, notBefore, checkedAtSequence: this.#checkedAtSequence };
    const impatient = new AbortController();
    const cancel = this.#turn === null ? null : this.#deps.clock.after(TURN_WAIT_MS, () => impatient.abort());
    const until = cancel === null ? stopping : AbortSignal.any([stopping, impatient.signal]);
    const leave = await this.#untilAnswered(() => board.start(this.#task, wish, until, lost));
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
    const { tries, atMs } = await this.#untilAnswered(() => triesOf(log.replay({ from }), taskId, attempt));
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
    const event = suspectedEvent(this.#task, this.#origin(), { deliveries, trial: this.#trial, tries: 0 });
    await this.#append(() => this.#deps.log.append(event)).catch(() => undefined);
    this.leave();
  }

  /** Gives the turn back, if this task has it. */
  leave(): void {
    this.#turn?.();
    this.#turn = null;
  }

  /** NATS may be away for minutes: tried again until it answers or the delivery is lost. */
  async #untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      if (this.#delivery.lost.aborted) throw new Lost();
      try {
        return await ask();
      } catch (error) {
        if (tries % 10 === 0) this.#deps.logger.warn({ ...this.about, err: error }, 'the event log does not answer');
        await this.#deps.clock.sleep(Math.min(100 * 2 ** tries, 5000), this.#delivery.lost);
      }
    }
  }

  async #append(write: () => Promise<{ readonly duplicate: boolean }>): Promise<'appended' | 'conflict' | 'lostTrack'> {
    if (this.#delivery.lost.aborted) throw new Lost();
    try {
      return (await write()).duplicate ? 'conflict' : 'appended';
    } catch (error) {
      if (error instanceof AppendConflict || error instanceof AppendWithdrawn) return 'conflict';
      if (!(error instanceof AppendUnknown))
        this.#deps.logger.error({ ...this.about, err: error }, 'the event log did not accept an event');
      await this.#deps.clock.sleep(500, this.#delivery.lost);
      return 'lostTrack';
    }
  }

  async #check(span: Span): Promise<PreflightVerdict> {
    const { cloud, checkOptions, logger } = this.#deps;
    try {
      const judge = this.#task.phase === 'cell' ? cellPreflight : preflight;
      const verdict = await judge(this.#task, cloud, checkOptions(this.#task), this.#delivery.lost);
      span.setAttribute(attributes.outcome, verdict.kind);
      if (verdict.kind === 'no') {
        span.setAttribute(attributes.reason, verdict.failure.reason.code);
        logger.info({ ...this.about, reason: verdict.failure.reason }, 'pre-flight refused the move');
      }
      return verdict;
    } catch (error) {
      if (this.#delivery.lost.aborted) throw new Lost();
      if (error instanceof Forbidden || error instanceof MicroversionUnsupported) {
        return {
          kind: 'no',
          failure: failureFor('not-allowed', { errorType: 'NovaClientError', text: error.message }),
        };
      }
      logger.warn({ ...this.about, err: error }, 'pre-flight got no answer');
      return { kind: 'unreachable', text: errorText(error) };
    }
  }

  async #postCell(
    { by, flavorId }: { readonly by: number; readonly flavorId: string | null },
    span: Span,
  ): Promise<PostAnswer> {
    const { nova } = this.#deps.cloud;
    const { serverId, destination } = this.#task;
    const answer = await this.#act(by, (options) =>
      answered(options, () =>
        flavorId === null
          ? nova.coldMigrate({ serverId, host: destination }, options)
          : nova.resize({ serverId, flavorId }, options),
      ),
    );
    this.#answered(answer, span, 'move the server');
    return answer;
  }

  async #settle(act: SettleAct, by: number): Promise<FactBody> {
    const { cloud, logger } = this.#deps;
    const { serverId } = this.#task;
    const answer = await this.#act(by, (options) =>
      answered(options, () => cloud.nova.settleResize({ serverId, act }, options)),
    );
    if (this.#delivery.lost.aborted) throw new Lost();
    // Nova shows the result: somebody else may have been first.
    const level = answer.kind === 'refused' ? 'warn' : 'info';
    logger[level]({ ...this.about, answer }, `Nova was asked to ${act} the move: ${answer.kind}`);
    return { kind: 'settleAnswered' };
  }

  #lookCell(afterMs: number, probe: boolean): Promise<FactBody> {
    const { cloud, options } = this.#deps;
    const verify = probe ? options.verify : null;
    return this.#asked(this.#untilLook(afterMs), 'Nova does not answer; the move continues', async () => {
      const seen = await this.#read((signal) => lookCell(cloud.nova, this.#task, verify, signal));
      return { kind: 'lookedCell', look: seen, word: this.#word() };
    });
  }

  async #post({ by, forced }: { readonly by: number; readonly forced: boolean }, span: Span): Promise<PostAnswer> {
    const { cloud } = this.#deps;
    const { serverId, destination } = this.#task;
    const request = { serverId, host: destination, force: forced };
    const answer = await this.#act(by, (options) => postOnce(cloud.nova, request, options));
    this.#answered(answer, span, 'migrate');
    return answer;
  }

  #answered(answer: PostAnswer, span: Span, act: string): void {
    span.setAttribute(attributes.outcome, answer.kind);
    if (answer.kind === 'accepted' && answer.requestId !== null)
      span.setAttribute(attributes.novaRequestId, answer.requestId);
    this.#deps.logger.info({ ...this.about, answer }, `Nova was asked to ${act}: ${answer.kind}`);
  }

  /** Sends one request that changes something in the cloud: before `by` (monotonic) and while the delivery is held, or never. */
  #act<T>(by: number, send: (options: ActOptions) => Promise<T>): Promise<T> {
    return actWithin({ by, clock: this.#deps.clock, held: this.#delivery.held, lost: this.#delivery.lost }, send);
  }

  #look(afterMs: number, migrationId: number | null): Promise<FactBody> {
    const { nova } = this.#deps.cloud;
    return this.#asked(this.#untilLook(afterMs), 'Nova does not answer; the migration continues', async () => {
      const seen = await this.#read((signal) => look(nova, this.#task.serverId, migrationId, signal));
      return { kind: 'looked', look: seen, word: this.#word() };
    });
  }

  /**
   * Reads Nova after a wait.
   *
   * @param unanswered text of the warning when Nova does not answer
   */
  async #asked(wait: Promise<void>, unanswered: string, ask: () => Promise<FactBody>): Promise<FactBody> {
    const { stopping, lost } = this.#delivery;
    await wait;
    if (lost.aborted) throw new Lost();
    if (stopping.aborted) return { kind: 'draining' };
    try {
      return await ask();
    } catch (error) {
      if (lost.aborted) throw new Lost();
      this.#deps.logger.warn({ ...this.about, err: error }, unanswered);
      return { kind: 'blind', text: errorText(error), word: this.#word() };
    }
  }

  /** The wait before a look; an operator who closes the task with force ends it. */
  async #untilLook(afterMs: number): Promise<void> {
    const { clock, forced, options } = this.#deps;
    const { stopping, lost } = this.#delivery;
    if (forced.aborted) await clock.sleep(Math.min(afterMs, options.pollIntervalMs), stopping, lost);
    else await clock.sleep(afterMs, stopping, lost, forced);
  }

  /** A look at Nova. Once the task is closed with force, its answers are awaited for `forcedLookMs`. */
  async #read<T>(read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, forced, options } = this.#deps;
    const { forcedLookMs } = options;
    const late = new AbortController();
    let cancel: Cancel = () => {};
    const limit = (): void => {
      cancel = clock.after(forcedLookMs, () => late.abort(new Error(`no answer within ${forcedLookMs / 1000} s`)));
    };
    if (forced.aborted) limit();
    else forced.addEventListener('abort', limit, { once: true });
    try {
      return await read(AbortSignal.any([this.#delivery.lost, late.signal]));
    } finally {
      cancel();
      forced.removeEventListener('abort', limit);
    }
  }

  #word(): Word {
    const { aggregate, taskId, attempt } = this.#task;
    const { reader } = this.#deps;
    return wordOn(reader.at(aggregate).state, taskId, attempt, reader.paces());
  }

  async #abort({ migrationId, by }: Command & { do: 'abort' }, state: TaskState): Promise<FactBody> {
    const { cloud, logger } = this.#deps;
    const stop = state.stage.at === 'aborting' ? state.stage.run.stop : null;
    const about = { ...this.about, migrationId, stop };
    try {
      const request = { serverId: this.#task.serverId, migrationId };
      const { outcome } = await this.#act(by, (options) => cloud.nova.abortMigration(request, options));
      logger.warn(about, `Nova was asked to abort the migration: ${outcome}`);
      return { kind: 'abortAnswered', answer: outcome };
    } catch (error) {
      if (this.#delivery.lost.aborted) throw new Lost();
      if (error instanceof HttpError && error.status < 500) {
        logger.error({ ...about, err: error }, 'Nova refused to abort the migration; the executor keeps following it');
        this.#deps.meters.abortRefused(this.#task);
        const refusal = { status: error.status, text: error.reason };
        return { kind: 'abortAnswered', answer: 'refused', refusal };
      }
      logger.warn({ ...about, err: error }, 'the abort did not reach Nova');
      return { kind: 'abortAnswered', answer: 'unknown' };
    }
  }

  #explain(afterMs: number, requestId: string | null): Promise<FactBody> {
    const { nova } = this.#deps.cloud;
    return this.#asked(this.#untilLook(afterMs), 'Nova does not say why the migration failed', async () => {
      const account = await this.#read((signal) => readAccount(nova, this.#task, requestId, signal));
      if (account !== null) return { kind: 'explained', account, word: this.#word() };
      return { kind: 'blind', text: 'nova-conductor has not ended the action', word: this.#word() };
    });
  }
}

/** Until when an act on the cloud may be sent. */
export interface ActWindow {
  /** Monotonic, by `clock`. */
  readonly by: number;
  readonly clock: Clock;
  /** Whether the delivery is held, looked up now. */
  readonly held: () => boolean;
  readonly lost: AbortSignal;
}

/**
 * Sends one request that changes something in the cloud, within a window. What decides is the clock at the moment at which the
 * first byte is about to be written. The signal beside it ends the wait for a token, for a connection or for the answer: what
 * became of a request that was written by then shows in Nova.
 */
export async function actWithin<T>(window: ActWindow, send: (options: ActOptions) => Promise<T>): Promise<T> {
  const { by, clock, held, lost } = window;
  const checkSend = (): string | null => {
    if (!held()) return 'its delivery was lost';
    return clock.read().mono > by ? LATE : null;
  };
  const late = new AbortController();
  const cancel = clock.after(Math.max(0, by - clock.read().mono), () => late.abort(new SendWindowOver()));
  try {
    return await send({ signal: AbortSignal.any([late.signal, lost]), checkSend });
  } finally {
    cancel();
  }
}

const LATE = 'its time had passed';

/** Sends the one request of an attempt and returns its known outcome. */
export const postOnce = (
  nova: Pick<Nova, 'liveMigrate'>,
  request: { readonly serverId: string; readonly host: string; readonly force: boolean },
  options: ActOptions,
): Promise<PostAnswer> => answered(options, () => nova.liveMigrate(request, options));

/** The certain result of a request that changes the cloud. */
async function answered(options: ActOptions, send: () => Promise<ActionOutcome>): Promise<PostAnswer> {
  try {
    const outcome = await send();
    if (outcome.outcome === 'accepted') return { kind: 'accepted', requestId: outcome.requestId ?? null };
    return { kind: 'unknown', text: errorText(outcome.error) };
  } catch (error) {
    if (error instanceof HttpError) return { kind: 'refused', status: error.status, text: error.reason };
    if (error instanceof Unauthorized) return { kind: 'refused', status: 401, text: error.message };
    if (error instanceof NotSent) return { kind: 'notSent', text: error.reason };
    const unsent = (error instanceof Unreachable || error instanceof Timeout) && !error.maybeSent;
    if (unsent || error instanceof MicroversionUnsupported) return { kind: 'notSent', text: errorText(error) };
    // The signal's own reason: the client throws it only for a request of which no byte was written.
    if (options.signal?.aborted === true && error === options.signal.reason)
      return { kind: 'notSent', text: errorText(error) };
    return { kind: 'unknown', text: errorText(error) };
  }
}

/** The window of an act was over before its request could be sent, or before its answer came. */
class SendWindowOver extends Error {
  constructor() {
    super(LATE);
    this.name = 'SendWindowOver';
  }
}
