import { streamNames } from '@kronos/contracts';
import type { StoredMessage } from '@kronos/eventlog/simulated';

/** Task messages that are kept. */
const TASKS = 501;

/** The messages that were stored last: faults store them again, or where they do not belong. */
export class LastMessages {
  readonly #ofType = new Map<string, StoredMessage>();
  readonly #tasks: StoredMessage[] = [];

  /** @param type `unreadable` of garbage */
  stored(stream: string, type: string, message: StoredMessage): void {
    this.#ofType.set(type, message);
    if (stream !== streamNames.migrations) return;
    this.#tasks.push(message);
    if (this.#tasks.length > TASKS) this.#tasks.shift();
  }

  /** The last message of each type. */
  get ofType(): ReadonlyMap<string, StoredMessage> {
    return this.#ofType;
  }

  /** The last messages of the work queue, oldest first. */
  get tasks(): readonly StoredMessage[] {
    return this.#tasks;
  }
}
