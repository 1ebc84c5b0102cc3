import type { LogEvent, Snapshot } from '@kronos/contracts';
import type { TaskFacts } from '@kronos/projections';
import type { Overlay } from './overlay.ts';

/** A started attempt whose migration Nova has not named to Kronos. */
type Unnamed = { readonly destination: string; readonly newestMigrationId: number };

/** Which of Nova's migrations the recorded Kronos started. */
export class OwnMigrations {
  readonly #ids: Set<number>;
  /** By server: an attempt is looked up by what it was before and where it went until its migration has a name. */
  readonly #unnamed = new Map<string, Unnamed>();

  /** @param underWay moves that had begun before the first event */
  constructor(underWay: readonly TaskFacts[]) {
    this.#ids = new Set(underWay.flatMap(({ slot }) => slot?.migrationId ?? []));
    for (const { slot, step, destination } of underWay)
      if (slot !== null && slot.migrationId === null)
        this.#unnamed.set(step.serverId, { destination, newestMigrationId: slot.newestMigrationId });
  }

  note({ type, data }: LogEvent): void {
    if (type === 'migration.started') {
      const { serverId, destination, newestMigrationId } = data;
      this.#unnamed.set(serverId, { destination, newestMigrationId });
    } else if (type === 'migration.observed') this.#name(data.serverId, data.migrationId);
    else if (type === 'migration.completed' || type === 'migration.failed') {
      this.#name(data.serverId, data.nova?.migrationId ?? null);
      // Nova began no migration for it: one that comes later is of somebody else.
      if (type === 'migration.failed') this.#unnamed.delete(data.serverId);
    }
  }

  /** The ids of those among them that Kronos started. Nova may show one as ended before the log does. */
  among({ endedMigrations }: Pick<Snapshot, 'endedMigrations'>): Pick<Overlay, 'own'> {
    const ended = endedMigrations ?? [];
    for (const { id, serverId, to } of ended.toSorted((a, b) => a.id - b.id)) {
      const attempt = this.#unnamed.get(serverId);
      if (attempt !== undefined && id > attempt.newestMigrationId && to === attempt.destination)
        this.#name(serverId, id);
    }
    const own = ended.flatMap(({ id }) => (this.#ids.has(id) ? [id] : []));
    return own.length === 0 ? {} : { own: new Set(own) };
  }

  #name(serverId: string, migrationId: number | null): void {
    if (migrationId === null) return;
    this.#ids.add(migrationId);
    this.#unnamed.delete(serverId);
  }
}
