import type { Cancel } from '@kronos/clock';
import { errorText } from '@kronos/contracts';
import type { TaskDelivery } from '@kronos/eventlog';
import { type ActOptions, Forbidden, HttpError, MicroversionUnsupported } from '@kronos/openstack';
import type { SettleAct } from '@kronos/projections';
import { attributes, spans, withSpan } from '@kronos/telemetry';
import type { Span } from '@opentelemetry/api';
import { actWithin, answered, postOnce } from './act.ts';
import { cellPreflight, lookCell } from './cells/index.ts';
import { type DeliveredTask, Lost, type RunDeps } from './deliveredTask.ts';
import { failureFor } from './failure.ts';
import { look, readAccount } from './follow.ts';
import { preflight } from './preflight.ts';
import type { TaskEvents } from './taskEvents.ts';
import type { FactBody, PostAnswer, PreflightVerdict, Task } from './taskFacts.ts';
import type { Command, TaskState } from './taskStages.ts';

/** The calls to the cloud for one delivered task. */
export class NovaCalls {
  readonly #task: Task;
  readonly #delivery: TaskDelivery;
  readonly #deps: RunDeps;
  readonly #about: DeliveredTask['about'];
  readonly #events: TaskEvents;

  constructor({ task, delivery, deps, about }: DeliveredTask, events: TaskEvents) {
    this.#task = task;
    this.#delivery = delivery;
    this.#deps = deps;
    this.#about = about;
    this.#events = events;
  }

  async check(span: Span): Promise<PreflightVerdict> {
    const { cloud, checkOptions, logger } = this.#deps;
    try {
      const judge = this.#task.phase === 'cell' ? cellPreflight : preflight;
      const verdict = await judge(this.#task, cloud, checkOptions(this.#task), this.#delivery.lost);
      span.setAttribute(attributes.outcome, verdict.kind);
      if (verdict.kind === 'no') {
        span.setAttribute(attributes.reason, verdict.failure.reason.code);
        logger.info({ ...this.#about, reason: verdict.failure.reason }, 'pre-flight refused the move');
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
      logger.warn({ ...this.#about, err: error }, 'pre-flight got no answer');
      return { kind: 'unreachable', text: errorText(error) };
    }
  }

  /** The one request of an attempt, between hosts of a cell. */
  post({ by, forced }: { readonly by: number; readonly forced: boolean }): Promise<FactBody> {
    const { nova } = this.#deps.cloud;
    const { serverId, destination } = this.#task;
    const request = { serverId, host: destination, force: forced };
    return this.#posted(by, 'migrate', (options) => postOnce(nova, request, options));
  }

  /** The same between cells: a cold migration, or a resize to the flavor. */
  postCell({ by, flavorId }: { readonly by: number; readonly flavorId: string | null }): Promise<FactBody> {
    const { nova } = this.#deps.cloud;
    const { serverId, destination } = this.#task;
    return this.#posted(by, 'move the server', (options) =>
      answered(options, () =>
        flavorId === null
          ? nova.coldMigrate({ serverId, host: destination }, options)
          : nova.resize({ serverId, flavorId }, options),
      ),
    );
  }

  async #posted(by: number, act: string, send: (options: ActOptions) => Promise<PostAnswer>): Promise<FactBody> {
    const { tracer, logger } = this.#deps;
    const answer = await withSpan(tracer, spans.migrate, {}, async (span) => {
      const outcome = await this.#alone(() => this.#act(by, send));
      span.setAttribute(attributes.outcome, outcome.kind);
      if (outcome.kind === 'accepted' && outcome.requestId !== null)
        span.setAttribute(attributes.novaRequestId, outcome.requestId);
      return outcome;
    });
    logger.info({ ...this.#about, answer }, `Nova was asked to ${act}: ${answer.kind}`);
    return { kind: 'posted', answer };
  }

  /** Sends unless a start of another aggregate that came before this one on the log has taken its place. */
  async #alone(send: () => Promise<PostAnswer>): Promise<PostAnswer> {
    const text = await this.#events.untilAnswered(() => this.#deps.board.exceeded(this.#task));
    return text === null ? send() : { kind: 'notSent', text: `${text}; a start in another aggregate came first` };
  }

  async settle(act: SettleAct, by: number): Promise<FactBody> {
    const { cloud, logger } = this.#deps;
    const { serverId } = this.#task;
    const answer = await this.#act(by, (options) =>
      answered(options, () => cloud.nova.settleResize({ serverId, act }, options)),
    );
    if (this.#delivery.lost.aborted) throw new Lost();
    // Nova shows the result: somebody else may have been first.
    const level = answer.kind === 'refused' ? 'warn' : 'info';
    logger[level]({ ...this.#about, answer }, `Nova was asked to ${act} the move: ${answer.kind}`);
    return { kind: 'settleAnswered' };
  }

  async abort({ migrationId, by }: Command & { do: 'abort' }, state: TaskState): Promise<FactBody> {
    const { cloud, logger } = this.#deps;
    const stop = state.stage.at === 'aborting' ? state.stage.run.stop : null;
    const about = { ...this.#about, migrationId, stop };
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

  look(afterMs: number, migrationId: number | null): Promise<FactBody> {
    const { nova } = this.#deps.cloud;
    return this.#asked(afterMs, 'Nova does not answer; the migration continues', async () => {
      const seen = await this.#read((signal) => look(nova, this.#task.serverId, migrationId, signal));
      return { kind: 'looked', look: seen, orders: this.#events.orders() };
    });
  }

  lookCell({ afterMs, probe }: Extract<Command, { do: 'lookCell' }>): Promise<FactBody> {
    const { cloud, options } = this.#deps;
    const verify = probe ? options.verify : null;
    return this.#asked(afterMs, 'Nova does not answer; the move continues', async () => {
      const seen = await this.#read((signal) => lookCell(cloud.nova, this.#task, verify, signal));
      return { kind: 'lookedCell', look: seen, orders: this.#events.orders() };
    });
  }

  explain(afterMs: number, requestId: string | null): Promise<FactBody> {
    const { nova } = this.#deps.cloud;
    return this.#asked(afterMs, 'Nova does not say why the migration failed', async () => {
      const account = await this.#read((signal) => readAccount(nova, this.#task, requestId, signal));
      if (account !== null) return { kind: 'explained', account, orders: this.#events.orders() };
      return { kind: 'blind', text: 'nova-conductor has not ended the action', orders: this.#events.orders() };
    });
  }

  /**
   * Reads Nova after a wait.
   *
   * @param unanswered text of the warning when Nova does not answer
   */
  async #asked(afterMs: number, unanswered: string, ask: () => Promise<FactBody>): Promise<FactBody> {
    const { stopping, lost } = this.#delivery;
    await this.#untilLook(afterMs);
    if (lost.aborted) throw new Lost();
    if (stopping.aborted) return { kind: 'draining' };
    try {
      return await ask();
    } catch (error) {
      if (lost.aborted) throw new Lost();
      this.#deps.logger.warn({ ...this.#about, err: error }, unanswered);
      return { kind: 'blind', text: errorText(error), orders: this.#events.orders() };
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

  /** Sends one request that changes something in the cloud: before `by` (monotonic) and while the delivery is held, or never. */
  #act<T>(by: number, send: (options: ActOptions) => Promise<T>): Promise<T> {
    return actWithin({ by, clock: this.#deps.clock, held: this.#delivery.held, lost: this.#delivery.lost }, send);
  }
}
