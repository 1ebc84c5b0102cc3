import type { Message } from '@kronos/contracts';

/** Tasks without a final result, by the log. */
export class OpenTasks {
  /** Task -> its server. */
  readonly #open = new Map<string, string>();
  /** Tasks that were started, with any result. */
  readonly #started = new Set<string>();

  stored({ type, data }: Message): void {
    switch (type) {
      case 'migration.requested':
        this.#open.set(data.taskId, data.serverId);
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

  all(): readonly { readonly taskId: string; readonly server: string }[] {
    return [...this.#open].map(([taskId, server]) => ({ taskId, server }));
  }

  isWaiting(taskId: string): boolean {
    return this.#open.has(taskId) && !this.#started.has(taskId);
  }

  /** The log is lost with its tasks. */
  forget(): void {
    this.#open.clear();
  }
}
