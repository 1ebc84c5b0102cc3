import type { Cancel } from '@kronos/clock';
import { type MigrationRequested, readMessage } from '@kronos/contracts';
import { type Msg, nanos, type Subscription } from '@nats-io/transport-node';
import { TASK_STREAM, taskConsumerName } from './definitions.ts';
import { headersSafely, traceparentOf } from './headers.ts';
import { Held, type Settlement } from './held.ts';
import { type Link, plainText, troubleOf } from './link.ts';
import { parseDelivery } from './reader.ts';
import type { Health, TaskDelivery, TaskOutcome, TaskWorker, TaskWorkerOptions, UnreadableTask } from './types.ts';

/** How often an empty durable is looked at while there are fewer free slots than durables. */
const SWEEP_MS = 500;
const TROUBLE_WAIT_MS = 2_000;
const GRACE_MS = 3_000;
const HANDLER_FAILED_DELAY_MS = 5_000;

/** Characters of a body that is no task: what its final result may quote. */
const SHOWN = 4_000;

/** A task message, or what is wrong with it. Never throws. */
function readTask(message: Pick<Msg, 'data'>, aggregate: string): MigrationRequested | UnreadableTask {
  const read = readMessage(message.data, { family: 'migrations', name: aggregate });
  if (read.ok && read.message.type === 'migration.requested') return read.message;
  const problem = read.ok ? `${read.message.type} is no task` : read.problem;
  return { unreadable: problem, body: new TextDecoder().decode(message.data.subarray(0, SHOWN)) };
}

const settlementOf = (outcome: TaskOutcome): Settlement =>
  outcome.kind === 'later' ? { delayMs: outcome.delayMs } : outcome.kind;

type Pulled =
  | { readonly kind: 'message'; readonly message: Msg; readonly askedAt: number }
  | { readonly kind: 'empty' | 'disconnected' | 'silent' }
  | { readonly kind: 'trouble'; readonly text: string };

const nextSubject = (aggregate: string): string =>
  `$JS.API.CONSUMER.MSG.NEXT.${TASK_STREAM}.${taskConsumerName(aggregate)}`;

type PullOptions = {
  /** How long the server waits for a message, ms; 0: not at all. */
  readonly waitMs: number;
  /** A message that comes within this time after the request is still held, ms. */
  readonly ackWaitMs: number;
  /** Called with a message that comes after the request ended as `silent`. */
  readonly onLate: (message: Msg, askedAt: number) => void;
};

/** One request for one message. */
class Pull {
  readonly result: Promise<Pulled>;
  readonly #resolve: (pulled: Pulled) => void;
  readonly #link: Link;
  readonly #options: PullOptions;
  readonly #sub: Subscription;
  #cancel: Cancel;
  readonly #unhook: () => void;
  #over = false;

  constructor(link: Link, subject: string, options: PullOptions) {
    const { waitMs } = options;
    const { promise, resolve } = Promise.withResolvers<Pulled>();
    this.result = promise;
    this.#resolve = resolve;
    this.#link = link;
    this.#options = options;
    const inbox = link.inbox();
    // Not before now can the message be delivered: its ack clock is at most as old as this.
    const askedAt = link.clock.monotonic();
    this.#sub = link.nc.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) this.#end({ kind: 'trouble', text: plainText(error) });
        else this.#receive(message, askedAt);
      },
    });
    this.#cancel = link.clock.after(waitMs + TROUBLE_WAIT_MS, () => this.#silent());
    this.#unhook = link.onDisconnect(() => this.#end({ kind: 'disconnected' }));
    link.nc.publish(
      subject,
      JSON.stringify(waitMs > 0 ? { batch: 1, expires: nanos(waitMs) } : { batch: 1, no_wait: true }),
      { reply: inbox },
    );
  }

  /**
   * Ends without an answer and listens on: a slow server may have delivered a message already. Nobody else gets it before its
   * ack wait, and a task that nobody takes is a poison message after some deliveries.
   */
  #silent(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancel = this.#link.clock.after(this.#options.ackWaitMs, () => this.#close());
    this.#resolve({ kind: 'silent' });
  }

  #receive(message: Msg, askedAt: number): void {
    const delivered = message.reply?.startsWith('$JS.ACK.') === true;
    if (this.#over) {
      this.#close();
      if (delivered) this.#options.onLate(message, askedAt);
      return;
    }
    if (delivered) {
      this.#end({ kind: 'message', message, askedAt });
      return;
    }
    const code = message.headers?.code ?? 0;
    if (code === 404 || code === 408) this.#end({ kind: 'empty' });
    else if (code === 503) this.#end({ kind: 'silent' });
    else if (code !== 100)
      this.#end({ kind: 'trouble', text: `${message.headers?.description ?? 'unknown answer'} (${code})` });
  }

  #end(pulled: Pulled): void {
    this.#close();
    if (this.#over) return;
    this.#over = true;
    this.#resolve(pulled);
  }

  #close(): void {
    this.#cancel();
    this.#unhook();
    if (!this.#sub.isClosed()) this.#sub.unsubscribe();
  }
}

/** Pulls tasks one by one, each into a free slot, and holds them while they are handled. */
export class Worker implements TaskWorker {
  readonly #link: Link;
  readonly #options: TaskWorkerOptions;
  readonly #stopping = new AbortController();
  readonly #unhook: () => void;
  readonly #onStop: (worker: Worker) => void;
  /** Aggregates that wait to be asked for, the longest waiting first: none can starve another. */
  readonly #waiting: string[];
  readonly #pulls = new Set<Pull>();
  readonly #handling = new Map<Held, Promise<void>>();
  readonly #timers = new Set<Cancel>();
  readonly #trouble = new Map<string, string>();
  #closing = false;
  #stopped: Promise<void> | null = null;

  constructor(link: Link, options: TaskWorkerOptions, onStop: (worker: Worker) => void = () => undefined) {
    if (!(options.concurrency >= 1)) throw new RangeError('concurrency must be at least 1');
    if (!(options.ackWaitMs >= 100)) throw new RangeError('ackWaitMs must be at least 100');
    this.#link = link;
    this.#options = options;
    this.#onStop = onStop;
    this.#waiting = [...new Set(options.aggregates)];
    this.#unhook = link.onReconnect(() => this.#fill());
    this.#fill();
  }

  get held(): number {
    return this.#handling.size;
  }

  healthy(): Health {
    if (this.#closing) return { ok: false, detail: 'the worker is stopped' };
    if (!this.#link.connected) return { ok: false, detail: 'there is no connection to NATS' };
    if (this.#trouble.size > 0) return { ok: false, detail: [...this.#trouble.values()].join('; ') };
    return { ok: true, detail: `${this.held} tasks held` };
  }

  #fill(): void {
    while (!this.#closing && this.#link.connected) {
      const free = this.#options.concurrency - this.held - this.#pulls.size;
      const aggregate = this.#waiting[0];
      if (aggregate === undefined) return;
      if (free <= 0) return;
      this.#waiting.shift();
      const enough = this.#options.concurrency - this.held >= this.#options.aggregates.length;
      void this.#serve(
        aggregate,
        enough ? Math.min(this.#link.wire.pollMs, Math.floor(this.#options.ackWaitMs / 3)) : 0,
      );
    }
  }

  async #serve(aggregate: string, waitMs: number): Promise<void> {
    const pull = new Pull(this.#link, nextSubject(aggregate), {
      waitMs,
      ackWaitMs: this.#options.ackWaitMs,
      onLate: (message, askedAt) => this.#take(aggregate, message, askedAt),
    });
    this.#pulls.add(pull);
    const pulled = await pull.result;
    this.#pulls.delete(pull);
    switch (pulled.kind) {
      case 'message':
        this.#trouble.delete(aggregate);
        this.#take(aggregate, pulled.message, pulled.askedAt);
        this.#again(aggregate, 0);
        return;
      case 'empty':
        this.#trouble.delete(aggregate);
        this.#again(aggregate, waitMs > 0 ? 0 : SWEEP_MS);
        return;
      case 'disconnected':
        this.#again(aggregate, 0);
        return;
      case 'trouble':
        this.#say(aggregate, pulled.text);
        this.#again(aggregate, TROUBLE_WAIT_MS);
        return;
      case 'silent':
        await this.#inquire(aggregate);
        this.#again(aggregate, this.#trouble.has(aggregate) ? TROUBLE_WAIT_MS : 0);
    }
  }

  #again(aggregate: string, delayMs: number): void {
    if (delayMs === 0) {
      this.#waiting.push(aggregate);
      this.#fill();
      return;
    }
    const cancel = this.#link.clock.after(delayMs, () => {
      this.#timers.delete(cancel);
      this.#again(aggregate, 0);
    });
    this.#timers.add(cancel);
  }

  #say(aggregate: string, text: string): void {
    const words = `tasks of ${aggregate}: ${text}`;
    if (this.#trouble.get(aggregate) !== words) this.#link.warn('task_consumer', words);
    this.#trouble.set(aggregate, words);
  }

  /** A request without any answer: older servers say nothing when the durable is gone. */
  async #inquire(aggregate: string): Promise<void> {
    const refused = this.#link.refusedOn(nextSubject(aggregate));
    if (refused !== null) {
      this.#say(aggregate, this.#link.refusal('take tasks', refused).message);
      return;
    }
    try {
      await this.#link.ask(
        () => this.#link.jsm.consumers.info(TASK_STREAM, taskConsumerName(aggregate)),
        TROUBLE_WAIT_MS,
      );
      this.#trouble.delete(aggregate);
    } catch (error) {
      if (this.#closing || troubleOf(error) === 'disconnected') return;
      this.#say(
        aggregate,
        this.#link.fatal(error, `durable ${taskConsumerName(aggregate)}`)?.message ?? plainText(error),
      );
    }
  }

  #take(aggregate: string, message: Msg, askedAt: number): void {
    const held = new Held(this.#link, message.reply ?? '', this.#options.ackWaitMs, askedAt);
    const handled = (
      this.#closing ? held.settle('handOver').then(() => undefined) : this.#handle(aggregate, message, held)
    ).finally(() => {
      this.#handling.delete(held);
      this.#fill();
    });
    this.#handling.set(held, handled);
  }

  async #handle(aggregate: string, message: Msg, held: Held): Promise<void> {
    // Came too late to be surely ours: another worker has it, or will.
    if (held.lost.aborted) return;
    const info = parseDelivery(message.reply ?? '');
    const delivery: TaskDelivery = {
      task: readTask(message, aggregate),
      aggregate,
      subject: message.subject,
      sequence: info?.streamSequence ?? 0,
      deliveries: info?.deliveries ?? 1,
      traceparent: traceparentOf(headersSafely(() => message.headers)),
      lost: held.lost,
      held: () => held.mine(),
      stopping: this.#stopping.signal,
    };
    let outcome: TaskOutcome;
    try {
      outcome = await this.#options.handle(delivery);
    } catch (error) {
      this.#link.warn(
        'task_handler',
        `the handler of ${delivery.subject} ${delivery.sequence} failed: ${plainText(error)}`,
      );
      outcome = { kind: 'later', delayMs: HANDLER_FAILED_DELAY_MS };
    }
    const confirmed = await held.settle(settlementOf(outcome));
    if (!confirmed && outcome.kind === 'done')
      this.#link.warn(
        'task_lost',
        `${delivery.subject} ${delivery.sequence} was done, but the delivery was lost: it comes again`,
      );
  }

  stop(graceMs = GRACE_MS): Promise<void> {
    this.#stopped ??= this.#stop(graceMs);
    return this.#stopped;
  }

  async #stop(graceMs: number): Promise<void> {
    this.#closing = true;
    this.#unhook();
    for (const cancel of this.#timers) cancel();
    // First the requests end, so that what is handed over next does not come back here.
    await Promise.all([...this.#pulls].map((pull) => pull.result));
    this.#stopping.abort();
    const over = new AbortController();
    const grace = this.#link.clock.sleep(graceMs, over.signal);
    await Promise.race([Promise.allSettled(this.#handling.values()), grace]);
    over.abort();
    await Promise.all(
      [...this.#handling.keys()].map(async (held) => {
        if (this.#link.connected) await held.settle('handOver');
        held.giveUp();
      }),
    );
    this.#onStop(this);
  }
}
