/** The live migrations that Nova completed: read once for a day, and then only those that changed since. */
import { DAY_MS, type EndedMigration, iso, type Snapshot, timeMs } from '@kronos/contracts';
import type { Nova } from '@kronos/openstack';
import type { Fetched } from './cloud.ts';
import { fetched } from './collect.ts';

/** Nova's clock, and rows that were written while they were read. */
const OVERLAP_MS = 60_000;
/** Of one aggregate. */
const MOST = 1_000;

/** Reads Nova's completed live migrations of the last day, and later only those that are new. */
export class EndedMigrations {
  readonly #nova: Pick<Nova, 'listMigrations'>;
  readonly #clockWrong: () => boolean;
  readonly #kept = new Map<string, EndedMigration>();
  #readMs: number | null = null;

  /** @param clockWrong whether the reader's clock is wrong, now: then the whole day is read, and again by the right clock */
  constructor(nova: Pick<Nova, 'listMigrations'>, clockWrong: () => boolean) {
    this.#nova = nova;
    this.#clockWrong = clockWrong;
  }

  /**
   * Those of the last day, in no order; after a read that failed, the next one asks for the same time again.
   *
   * @throws the signal's reason when it aborts; nothing else.
   */
  read(nowMs: number, signal: AbortSignal): Promise<Fetched<readonly EndedMigration[]>> {
    return fetched(async () => {
      await this.#update(nowMs, signal);
      return [...this.#kept.values()];
    }, signal);
  }

  async #update(nowMs: number, signal: AbortSignal): Promise<void> {
    const dayMs = nowMs - DAY_MS;
    const wrong = this.#clockWrong();
    if (wrong) this.#readMs = null;
    const sinceMs = Math.max(dayMs, (this.#readMs ?? dayMs) - OVERLAP_MS);
    const rows = await this.#nova.listMigrations({ status: 'completed', changesSince: iso(sinceMs) }, { signal });
    if (!wrong) this.#readMs = nowMs;
    for (const { uuid, id, type, serverId, sourceCompute, destCompute, updatedAt, createdAt } of rows) {
      if (sourceCompute === null || destCompute === null || sourceCompute === destCompute) continue;
      // Nova ends a cold migration as `confirmed`, and not as `completed`.
      if (type !== 'live-migration') continue;
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

/**
 * The migrations of these servers, the newest first; nothing where there are none, null where they could not be read.
 *
 * @param ended null: nobody asked
 */
export function endedOf(
  ended: Fetched<readonly EndedMigration[]> | null,
  servers: readonly { readonly id: string }[],
): Pick<Snapshot, 'endedMigrations'> {
  if (ended === null) return {};
  if (!ended.ok) return { endedMigrations: null };
  const ids = new Set(servers.map(({ id }) => id));
  const own = ended.value
    .filter(({ serverId }) => ids.has(serverId))
    .sort((a, b) => timeMs(b.at) - timeMs(a.at) || b.id - a.id)
    .slice(0, MOST);
  return own.length === 0 ? {} : { endedMigrations: own };
}
