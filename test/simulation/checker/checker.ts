/**
 * Checks what must always hold, on the log and in the cloud's own record. It has its own parser and its own fold, and
 * shares no code with the services: a mistake there cannot hide here.
 */
import { Book, type Breach, type CloudRecord, RACE_MS, type Rules } from './book.ts';
import { CloudChecker } from './cloudChecker.ts';
import { LogChecker } from './logChecker.ts';
import { QueueChecker } from './queueChecker.ts';

export type { Breach, CloudMigration, CloudRecord, Rules } from './book.ts';

export class Checker {
  readonly #book: Book;
  readonly log: LogChecker;
  readonly cloud: CloudChecker;
  readonly queue: QueueChecker;

  constructor(rules: Rules, cloud: CloudRecord, now: () => number, onBreach: (breach: Breach) => void) {
    this.#book = new Book(rules, cloud, now, onBreach);
    this.cloud = new CloudChecker(this.#book);
    this.queue = new QueueChecker(this.#book);
    this.log = new LogChecker(this.#book, this.cloud, this.queue);
  }

  get breaches(): readonly Breach[] {
    return this.#book.breaches;
  }

  get counts(): ReadonlyMap<string, number> {
    return this.#book.counts;
  }

  count(what: string): void {
    this.#book.count(what);
  }

  breach(...breach: Parameters<Book['breach']>): void {
    this.#book.breach(...breach);
  }

  /** Tasks that have no final result and were released before a time. */
  unfinished(beforeMs: number): string[] {
    return [...this.#book.tasks.values()]
      .filter((task) => task.finalSequence === null && task.sinceMs < beforeMs)
      .map((task) => task.id);
  }

  /** Everything that must finish has finished: looked at once the faults have been over for long enough. */
  settled(calmMs: number, aggregates: readonly string[]): void {
    for (const id of this.unfinished(calmMs)) this.#book.breach('liveness', `${id} has no final result`);
    for (const plan of this.#book.plans.values())
      if (plan.releasedMs !== null && plan.releasedMs < calmMs && !plan.dispatched)
        this.#book.breach('liveness', `${plan.id} was released and never dispatched`);
    for (const name of aggregates) {
      const decided = this.#book.aggregate(name).lastDecidedSnapshotMs;
      const age = this.#book.now() - decided;
      if (age > this.#book.rules.decidedWithinMs)
        this.#book.breach('liveness', `nothing was decided in ${name} for ${Math.round(age / 1000)} s`);
      const stored = this.#book.now() - this.#book.aggregate(name).checkpointMs;
      // Without a new event nothing is stored; a decision is one.
      if (stored > 3 * this.#book.rules.checkpointMs + this.#book.rules.decidedWithinMs + RACE_MS)
        this.#book.breach('liveness', `no checkpoint of ${name} was stored for ${Math.round(stored / 1000)} s`);
    }
  }
}
