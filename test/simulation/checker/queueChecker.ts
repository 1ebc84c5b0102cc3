import type { Book, Delivery, TaskMessage } from './book.ts';

/** Checks the answers to deliveries of the work queue. */
export class QueueChecker {
  readonly #book: Book;
  readonly #deliveries = new Map<string, Delivery>();
  readonly #messages = new Map<number, TaskMessage>();

  constructor(book: Book) {
    this.#book = book;
  }

  /** A task message was stored. */
  put(sequence: number, message: TaskMessage): void {
    this.#messages.set(sequence, message);
  }

  /** The queue is lost. */
  clear(): void {
    this.#deliveries.clear();
    this.#messages.clear();
  }

  /** A consumer delivered a message. */
  delivered(reply: string): void {
    const [, , stream, , , sequence] = reply.split('.');
    if (stream !== 'KRONOS_MIGRATIONS') return;
    this.#deliveries.set(reply, {
      sequence: Number(sequence),
      deadlineMs: this.#book.now() + this.#book.rules.ackWaitMs,
    });
  }

  /** A process sends an answer to a delivery: no longer after the server may have delivered the message to another. */
  answering(process: string, reply: string): void {
    const delivery = this.#deliveries.get(reply);
    if (delivery === undefined) return;
    const lateMs = this.#book.now() - delivery.deadlineMs;
    if (lateMs > 1)
      this.#book.breach(
        'lost-delivery',
        `${process} answers message ${delivery.sequence} ${lateMs / 1000} s after its ack wait`,
      );
  }

  /** The server takes an answer to a delivery. A task leaves the queue when the log has the end of its attempt. */
  answered(reply: string, answer: string): void {
    const delivery = this.#deliveries.get(reply);
    if (delivery === undefined) return;
    if (answer === '+WPI') {
      delivery.deadlineMs = this.#book.now() + this.#book.rules.ackWaitMs;
      return;
    }
    this.#deliveries.delete(reply);
    if (answer !== '+ACK' && answer !== '+TERM') return;
    const { taskId, attempt } = this.#messages.get(delivery.sequence) ?? { taskId: '', attempt: 0 };
    const task = this.#book.tasks.get(taskId);
    if (task === undefined || task.finalSequence !== null) return;
    if (task.attempts.get(attempt)?.ended !== true && !(task.announced !== null && attempt < task.announced))
      this.#book.breach('acked-early', `${taskId} attempt ${attempt} left the queue before the log had its end`);
    // The message of a later attempt keeps the task on the queue, until that attempt is over in its turn.
    else if (task.announced !== null && task.announced > attempt && Math.max(...task.queued) <= attempt)
      this.#book.breach('acked-early', `${taskId} attempt ${attempt} left the queue before a later one was there`);
  }
}
