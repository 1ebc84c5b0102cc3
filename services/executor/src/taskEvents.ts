import { type LogEvent, type MigrationRequested, subject } from '@kronos/contracts';
import { AppendConflict, AppendUnknown, AppendWithdrawn, type LogPosition, type TaskDelivery } from '@kronos/eventlog';
import type { AggregateState } from '@kronos/projections';
import { attemptLog, ordersFor } from './attemptLog.ts';
import { type DeliveredTask, Lost, type RunDeps } from './deliveredTask.ts';
import { type Origin, stopOf } from './events.ts';
import type { AttemptOrders, FactBody, Task, TaskLog } from './taskFacts.ts';

/** The events of one delivered task, appended to the log and read from it. */
export class TaskEvents {
  readonly #task: Task;
  readonly #message: MigrationRequested;
  readonly #delivery: TaskDelivery;
  readonly #deps: RunDeps;
  readonly #about: DeliveredTask['about'];
  readonly #results: string;

  constructor({ task, message, delivery, deps, about }: DeliveredTask) {
    this.#task = task;
    this.#message = message;
    this.#delivery = delivery;
    this.#deps = deps;
    this.#about = about;
    this.#results = subject('results', task.aggregate);
  }

  origin(): Origin {
    return { by: this.#deps.by, correlationId: this.#message.correlationId, nowMs: this.#deps.clock.read().wall };
  }

  /** Writes an event that expects nothing of the log. */
  async write(event: LogEvent): Promise<FactBody> {
    const written = await this.append(() => this.#deps.log.append(event));
    return written === 'appended' ? { kind: 'appended', began: this.#deps.clock.read().mono } : { kind: written };
  }

  /** Writes an event of which it makes no difference whose it is. */
  async note(event: LogEvent, text: string): Promise<FactBody> {
    const fact = await this.write(event);
    this.#deps.logger.info({ ...this.#about, type: event.type, data: event.data }, text);
    return fact;
  }

  async append(write: () => Promise<{ readonly duplicate: boolean }>): Promise<'appended' | 'conflict' | 'lostTrack'> {
    if (this.#delivery.lost.aborted) throw new Lost();
    try {
      return (await write()).duplicate ? 'conflict' : 'appended';
    } catch (error) {
      if (error instanceof AppendConflict || error instanceof AppendWithdrawn) return 'conflict';
      if (!(error instanceof AppendUnknown))
        this.#deps.logger.error({ ...this.#about, err: error }, 'the event log did not accept an event');
      await this.#deps.clock.sleep(500, this.#delivery.lost);
      return 'lostTrack';
    }
  }

  /** NATS may be away for minutes: tried again until it answers or the delivery is lost. */
  async untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      if (this.#delivery.lost.aborted) throw new Lost();
      try {
        return await ask();
      } catch (error) {
        if (tries % 10 === 0) this.#deps.logger.warn({ ...this.#about, err: error }, 'the event log does not answer');
        await this.#deps.clock.sleep(Math.min(100 * 2 ** tries, 5000), this.#delivery.lost);
      }
    }
  }

  #refresh(): Promise<LogPosition<AggregateState>> {
    return this.untilAnswered(() => this.#deps.reader.refresh(this.#task.aggregate));
  }

  #logAt(at: LogPosition<AggregateState>): TaskLog {
    const { taskId, attempt } = this.#task;
    return { attempt: attemptLog(at.state, taskId, attempt), expected: at.expectedOn(this.#results) };
  }

  async readLog(): Promise<TaskLog> {
    return this.#logAt(await this.#refresh());
  }

  /** The log, and what an executor before this one wanted the attempt aborted for. */
  async inherit(): Promise<TaskLog> {
    const { log } = this.#deps;
    const at = await this.#refresh();
    const read = this.#logAt(at);
    if (read.attempt.kind !== 'started') return read;
    const from = at.state.tasks.get(this.#task.taskId)?.slot?.sequence ?? 1;
    const stop = await this.untilAnswered(() => stopOf(log.replay({ from }), this.#task));
    return { ...read, attempt: { ...read.attempt, stop } };
  }

  orders(): AttemptOrders {
    const { aggregate, taskId, attempt } = this.#task;
    const { reader } = this.#deps;
    return ordersFor(reader.at(aggregate).state, taskId, attempt, reader.paces());
  }
}
