import type { Cancel } from '@kronos/clock';
import { families, type MigrationRequested } from '@kronos/contracts';
import { type Msg, nanos, type Subscription } from '@nats-io/transport-node';
import { deliver } from '../log/iterate.ts';
import { parseDelivery } from '../log/reader.ts';
import { SINK_ACK_WAIT_SECONDS, sinkConsumerName, TASK_STREAM, taskConsumerName } from '../wire/definitions.ts';
import { headersSafely, traceparentOf } from '../wire/headers.ts';
import type { Link } from '../wire/link.ts';
import { plainText, troubleOf } from '../wire/trouble.ts';
import type {
  SinkWorkerOptions,
  StreamHealth,
  TaskDelivery,
  TaskOutcome,
  TaskWorker,
  TaskWorkerOptions,
  UnreadableTask,
} from '../wire/types.ts';
import type { Wire } from '../wire/wire.ts';
import { Held, type Settlement } from './held.ts';

/** Interval between two pulls of an empty durable while there are fewer free slots than durables. */
const SWEEP_MS = 500;
const TROUBLE_WAIT_MS = 2_000;
const GRACE_MS = 3_000;
const HANDLER_FAILED_DELAY_MS = 5_000;

/** Characters of a body that is no task: what its final result may quote. */
const SHOWN = 4_000;

/** A task message, or what is wrong with it. Never throws. */
function readTask(
  { read }: Pick<Wire, 'read'>,
  message: Pick<Msg, 'data'>,
  aggregate: string,
): MigrationRequested | UnreadableTask {
  const found = read(message.data, { family: 'migrations', name: aggregate });
  if (found.ok && found.message.type === 'migration.requested') return found.message;
  const problem = found.ok ? `${found.message.type} is no task` : found.problem;
  return { unreadable: problem, body: new TextDecoder().decode(message.data.subarray(0, SHOWN)) };
}

const settlementOf = (outcome: TaskOutcome): Settlement =>
  outcome.kind === 'later' ? { delayMs: outcome.delayMs } : outcome.kind;

type Pulled =
  | { readonly kind: 'message'; readonly message: Msg; readonly askedAt: number }
  | { readonly kind: 'empty' | 'disconnected' | 'silent' }
  | { readonly kind: 'trouble'; readonly text: string };

/** A durable that a worker takes messages from. */
type Source = {
  readonly stream: string;
  readonly durable: string;
  /** `tasks of gpu` */
  readonly what: string;
};

const nextSubject = ({ stream, durable }: Source): string => `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`;

/** The facts about a delivery that its handler gets beside the message. */
type Holding = Pick<TaskDelivery, 'deliveries' | 'lost' | 'held' | 'stopping'>;

type WorkerOptions<S extends Source> = {
  readonly sources: readonly S[];
  /** Deliveries held at once, over all sources. */
  readonly concurrency: number;
  readonly ackWaitMs: number;
  readonly handle: (source: S, message: Msg, sequence: number, holding: Holding) => Promise<TaskOutcome>;
};

type PullOptions = {
  /** Time for which the server waits for a message, ms; 0: it does not wait. */
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

/** Takes the tasks of aggregates. */
export const taskWorker = (link: Link, options: TaskWorkerOptions, onStop?: (worker: TaskWorker) => void): TaskWorker =>
  new Worker(
    link,
    {
      ...options,
      sources: [...new Set(options.aggregates)].map((aggregate) => ({
        aggregate,
        stream: TASK_STREAM,
        durable: taskConsumerName(aggregate),
        what: `tasks of ${aggregate}`,
      })),
      handle: ({ aggregate }, message, sequence, holding) =>
        options.handle({
          ...holding,
          task: readTask(link.wire, message, aggregate),
          aggregate,
          subject: message.subject,
          sequence,
          traceparent: traceparentOf(headersSafely(() => message.headers)),
        }),
    },
    onStop,
  );

/** Takes what a sink is to be sent from one stream, one message at a time. */
export const sinkWorker = (
  link: Link,
  { stream, sink, handle }: SinkWorkerOptions,
  onStop?: (worker: TaskWorker) => void,
): TaskWorker =>
  new Worker(
    link,
    {
      sources: [{ stream, durable: sinkConsumerName(sink), what: `notifications of ${sink} from ${stream}` }],
      concurrency: 1,
      ackWaitMs: SINK_ACK_WAIT_SECONDS * 1000,
      handle: (_, message, sequence, { held: _held, ...holding }) => {
        const raw = {
          subject: message.subject,
          data: message.data,
          headers: () => headersSafely(() => message.headers),
          sequence,
          storedAt: parseDelivery(message.reply ?? '')?.storedAt ?? 0,
        };
        return handle({ ...deliver(link.wire, raw, families), ...holding });
      },
    },
    onStop,
  );

/** Pulls messages one by one, each into a free slot, and holds them while they are handled. */
class Worker<S extends Source> implements TaskWorker {
  readonly #link: Link;
  readonly #options: WorkerOptions<S>;
  readonly #stopping = new AbortController();
  readonly #unhook: () => void;
  readonly #onStop: (worker: TaskWorker) => void;
  /** Sources that wait to be asked, the longest waiting first: none can starve another. */
  readonly #waiting: S[];
  readonly #pulls = new Set<Pull>();
  readonly #handling = new Map<Held, Promise<void>>();
  readonly #timers = new Set<Cancel>();
  readonly #trouble = new Map<S, string>();
  #closing = false;
  #stopped: Promise<void> | null = null;

  constructor(link: Link, options: WorkerOptions<S>, onStop: (worker: TaskWorker) => void = () => undefined) {
    if (!(options.concurrency >= 1)) throw new RangeError('concurrency must be at least 1');
    if (!(options.ackWaitMs >= 100)) throw new RangeError('ackWaitMs must be at least 100');
    this.#link = link;
    this.#options = options;
    this.#onStop = onStop;
    this.#waiting = [...options.sources];
    this.#unhook = link.onReconnect(() => this.#fill());
    this.#fill();
  }

  get held(): number {
    return this.#handling.size;
  }

  healthy(): StreamHealth {
    if (this.#closing) return { ok: false, detail: 'the worker is stopped' };
    if (!this.#link.connected) return { ok: false, detail: 'there is no connection to NATS' };
    if (this.#trouble.size > 0) return { ok: false, detail: [...this.#trouble.values()].join('; ') };
    return { ok: true, detail: `${this.held} deliveries held` };
  }

  #fill(): void {
    while (!this.#closing && this.#link.connected) {
      const free = this.#options.concurrency - this.held - this.#pulls.size;
      const source = this.#waiting[0];
      if (source === undefined) return;
      if (free <= 0) return;
      this.#waiting.shift();
      const enough = this.#options.concurrency - this.held >= this.#options.sources.length;
      void this.#serve(source, enough ? Math.min(this.#link.wire.pollMs, Math.floor(this.#options.ackWaitMs / 3)) : 0);
    }
  }

  async #serve(source: S, waitMs: number): Promise<void> {
    const pull = new Pull(this.#link, nextSubject(source), {
      waitMs,
      ackWaitMs: this.#options.ackWaitMs,
      onLate: (message, askedAt) => this.#take(source, message, askedAt),
    });
    this.#pulls.add(pull);
    const pulled = await pull.result;
    this.#pulls.delete(pull);
    switch (pulled.kind) {
      case 'message':
        this.#trouble.delete(source);
        this.#take(source, pulled.message, pulled.askedAt);
        this.#again(source, 0);
        return;
      case 'empty':
        this.#trouble.delete(source);
        this.#again(source, waitMs > 0 ? 0 : SWEEP_MS);
        return;
      case 'disconnected':
        this.#again(source, 0);
        return;
      case 'trouble':
        this.#say(source, pulled.text);
        this.#again(source, TROUBLE_WAIT_MS);
        return;
      case 'silent':
        await this.#inquire(source);
        this.#again(source, this.#trouble.has(source) ? TROUBLE_WAIT_MS : 0);
    }
  }

  #again(source: S, delayMs: number): void {
    if (delayMs === 0) {
      this.#waiting.push(source);
      this.#fill();
      return;
    }
    const cancel = this.#link.clock.after(delayMs, () => {
      this.#timers.delete(cancel);
      this.#again(source, 0);
    });
    this.#timers.add(cancel);
    // The slot is free for a source that waits.
    this.#fill();
  }

  #say(source: S, text: string): void {
    const words = `${source.what}: ${text}`;
    if (this.#trouble.get(source) !== words) this.#link.warn('task_consumer', words);
    this.#trouble.set(source, words);
  }

  /** A request without any answer: older servers say nothing when the durable is gone. */
  async #inquire(source: S): Promise<void> {
    const refused = this.#link.refusedOn(nextSubject(source));
    if (refused !== null) {
      this.#say(source, this.#link.refusal('take tasks', refused).message);
      return;
    }
    try {
      await this.#link.ask(() => this.#link.jsm.consumers.info(source.stream, source.durable), TROUBLE_WAIT_MS);
      this.#trouble.delete(source);
    } catch (error) {
      if (this.#closing || troubleOf(error) === 'disconnected') return;
      this.#say(source, this.#link.fatal(error, `durable ${source.durable}`)?.message ?? plainText(error));
    }
  }

  #take(source: S, message: Msg, askedAt: number): void {
    const held = new Held(this.#link, message.reply ?? '', this.#options.ackWaitMs, askedAt);
    const handled = (
      this.#closing ? held.settle('handOver').then(() => undefined) : this.#handle(source, message, held)
    ).finally(() => {
      this.#handling.delete(held);
      this.#fill();
    });
    this.#handling.set(held, handled);
  }

  async #handle(source: S, message: Msg, held: Held): Promise<void> {
    // Came too late to be surely ours: another worker has it, or will.
    if (held.lost.aborted) return;
    const info = parseDelivery(message.reply ?? '');
    const sequence = info?.streamSequence ?? 0;
    const name = `${message.subject} ${sequence}`;
    const holding: Holding = {
      deliveries: info?.deliveries ?? 1,
      lost: held.lost,
      held: () => held.mine(),
      stopping: this.#stopping.signal,
    };
    let outcome: TaskOutcome;
    try {
      outcome = await this.#options.handle(source, message, sequence, holding);
    } catch (error) {
      this.#link.warn('task_handler', `the handler of ${name} failed: ${plainText(error)}`);
      outcome = { kind: 'later', delayMs: HANDLER_FAILED_DELAY_MS };
    }
    const confirmed = await held.settle(settlementOf(outcome));
    if (!confirmed && outcome.kind === 'done')
      this.#link.warn('task_lost', `${name} was done, but the delivery was lost: it comes again`);
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
