import { LogGap } from './errors.ts';

/** A person needs longer to notice that the log is lost, to provision another one and to state it. */
const CONFIRMED_MS = 10_000;

/**
 * The log that the views of one connection read, by its time of creation. A sequence of a lost log can be that of another message in the
 * log that replaces it, where an append with this expectation would be stored. So such an append is sent only shortly after the server
 * has confirmed that the log is still the same.
 */
export class KnownLog {
  #created: string | null = null;
  #confirmedMs = 0;

  /**
   * A view begins to read this log.
   *
   * @param askedMs when the server was asked for it, in ms of the monotonic clock: an answer can wait in a process that does not run
   */
  begin(created: string, askedMs: number): void {
    this.#created = created;
    this.#confirmedMs = askedMs;
  }

  /** @throws LogGap when it is another log */
  confirm(created: string, askedMs: number): void {
    if (this.#created !== null && created !== this.#created)
      throw new LogGap(`the log was created again at ${created}: it is another log than the one that was read`);
    this.#confirmedMs = Math.max(this.#confirmedMs, askedMs);
  }

  /** Whether the server has to confirm the log before an append with an expectation. Without a view there is nothing to confirm. */
  isDue(nowMs: number): boolean {
    return this.#created !== null && nowMs - this.#confirmedMs > CONFIRMED_MS;
  }
}
