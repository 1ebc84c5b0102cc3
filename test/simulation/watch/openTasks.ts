import type { Message } from '@kronos/contracts';

/** A task without a final result. */
export interface OpenTask {
  readonly taskId: string;
  readonly server: string;
  /** Where its newest attempt goes. */
  readonly destination: string;
}

/** Tasks without a final result, by the log. */
export class OpenTasks {
  readonly #open = new Map<string, OpenTask>();
  /** Tasks that were started, with any result. */
  readonly #started = new Set<string>();

  stored({ type, data }: Message): void {
    switch (type) {
      case 'migration.requested':
        this.#open.set(data.taskId, {
          taskId: data.taskId,
          server: data.serverId,
          destination: data.destination,
        });
        break;
      case 'migration.started':
        this.#started.add(data.taskId);
        break;
      case 'migration.completed':
      case 'migration.skipped':
        this.#open.delete(data.taskId);
        break;
      case 'migration.failed':
        if (!data.retryPending) this.#open.delete(data.taskId);
        break;
      default:
    }
  }

  all(): readonly OpenTask[] {
    return [...this.#open.values()];
  }

  isWaiting(taskId: string): boolean {
    return this.#open.has(taskId) && !this.#started.has(taskId);
  }

  /** The log is lost with its tasks. */
  forget(): void {
    this.#open.clear();
  }
}
