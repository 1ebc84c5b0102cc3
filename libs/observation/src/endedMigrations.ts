/** The migrations that Nova completed: read once for a day, and then only those that changed since. */
import { DAY_MS, type EndedMigration, iso, timeMs } from '@kronos/contracts';
import type { Nova } from '@kronos/openstack';

/** Nova's clock, and rows that were written while they were read. */
const OVERLAP_MS = 60_000;
/** Of one aggregate. */
const MOST = 1_000;

export class EndedMigrations {
  readonly #nova: Pick<Nova, 'listMigrations'>;
  readonly #onFailure: (error: unknown) => void;
  readonly #kept = new Map<string, EndedMigration>();
  #readMs: number | null = null;

  /** @param onFailure is told when Nova does not answer: moves since the last read are not seen. */
  constructor(nova: Pick<Nova, 'listMigrations'>, onFailure: (error: unknown) => void) {
    this.#nova = nova;
    this.#onFailure = onFailure;
  }

  /**
   * Those of the last day, in no order. When Nova does not answer, those that are known; the next read asks for the same time again.
   *
   * @throws the signal's reason when it aborts; nothing else.
   */
  async read(nowMs: number, signal: AbortSignal): Promise<readonly EndedMigration[]> {
    try {
      await this.#update(nowMs, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#onFailure(error);
    }
    return [...this.#kept.values()];
  }

  async #update(nowMs: number, signal: AbortSignal): Promise<void> {
    const dayMs = nowMs - DAY_MS;
    const sinceMs = Math.max(dayMs, (this.#readMs ?? dayMs) - OVERLAP_MS);
    const rows = await this.#nova.listMigrations({ status: 'completed', changesSince: iso(sinceMs) }, { signal });
    this.#readMs = nowMs;
    for (const { uuid, id, type, serverId, sourceCompute, destCompute, updatedAt, createdAt } of rows) {
      if (sourceCompute === null || destCompute === null || sourceCompute === destCompute) continue;
      if (type !== 'live-migration' && type !== 'migration') continue;
      this.#kept.set(uuid, {
        id,
        serverId,
        from: sourceCompute,
        to: destCompute,
        at: iso(timeMs(updatedAt ?? createdAt)),
      });
    }
    for (const [uuid, { at }] of this.#kept) if (timeMs(at) < dayMs) this.#kept.delete(uuid);
  }
}

/** The migrations of these servers, the newest first; nothing where there are none. */
export function endedOf(
  ended: readonly EndedMigration[],
  servers: readonly { readonly id: string }[],
): { readonly endedMigrations?: EndedMigration[] } {
  const ids = new Set(servers.map(({ id }) => id));
  const own = ended
    .filter(({ serverId }) => ids.has(serverId))
    .sort((a, b) => timeMs(b.at) - timeMs(a.at) || b.id - a.id)
    .slice(0, MOST);
  return own.length === 0 ? {} : { endedMigrations: own };
}
