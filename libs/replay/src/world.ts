import { type LogEvent, type Snapshot, timeMs } from '@kronos/contracts';
import type { Overlay } from './overlay.ts';
import { OwnMigrations } from './ownMigrations.ts';

/** One try of Kronos to move a VM, as the recorded log has it. */
export type MoveAttempt = {
  readonly serverId: string;
  readonly from: string;
  readonly destination: string;
  readonly startedMs: number;
  /** Null while it had not ended. */
  endedMs: number | null;
};

/**
 * Where every VM is in a what-if's world. It begins as recorded; the what-if's own moves are done at once; what the recorded
 * Kronos moved stays where it was; what anyone else moved, made or deleted happens here too.
 */
export class World {
  /** By server, in the order of the log: those that had not ended before the last snapshot. */
  readonly #attempts = new Map<string, MoveAttempt[]>();
  readonly #start: ReadonlyMap<string, string>;
  readonly #here = new Map<string, string>();
  readonly #recorded = new Map<string, string>();
  readonly #own: OwnMigrations;
  #lastMs = Number.NEGATIVE_INFINITY;

  /**
   * @param start server uuid -> where it is at the start, for those whose move was under way then
   * @param own the migrations that the recorded Kronos started
   */
  constructor(start: ReadonlyMap<string, string>, own: OwnMigrations = new OwnMigrations([])) {
    this.#start = start;
    this.#own = own;
  }

  /** Takes in what the recorded Kronos did. */
  note(event: LogEvent): void {
    this.#own.note(event);
    if (event.type === 'migration.started') {
      const { serverId, from, destination } = event.data;
      const attempts = this.#attempts.get(serverId) ?? [];
      this.#attempts.set(serverId, attempts);
      attempts.push({ serverId, from, destination, startedMs: timeMs(event.time), endedMs: null });
    } else if (event.type === 'migration.completed' || event.type === 'migration.failed') {
      const open = this.#attempts.get(event.data.serverId)?.findLast((a) => a.endedMs === null);
      if (open !== undefined) open.endedMs = timeMs(event.time);
    }
  }

  /** Takes in the next recorded snapshot, and gives what is laid over it. */
  next(snapshot: Snapshot): Overlay {
    const nowMs = timeMs(snapshot.time);
    const hosts = new Map<string, string>();
    const still = new Set<string>();
    const seen = new Set<string>();
    for (const { id, host } of snapshot.servers) {
      seen.add(id);
      const before = this.#recorded.get(id);
      const attempts = this.#attempts.get(id) ?? [];
      const ofKronos = attempts.filter((a) => a.startedMs <= nowMs);
      if (ofKronos.some((a) => a.endedMs === null || a.endedMs > nowMs)) still.add(id);
      const moved = ofKronos.some((a) => a.destination === host && (a.endedMs === null || a.endedMs > this.#lastMs));
      if (before === undefined) this.#here.set(id, this.#start.get(id) ?? host);
      else if (before !== host && !moved) this.#here.set(id, host);
      const here = this.#here.get(id) ?? host;
      if (here !== host) hosts.set(id, here);
      this.#recorded.set(id, host);
    }
    for (const id of [...this.#recorded.keys()])
      if (!seen.has(id)) {
        this.#recorded.delete(id);
        this.#here.delete(id);
      }
    for (const [id, attempts] of this.#attempts) {
      const open = attempts.filter(({ endedMs }) => endedMs === null || endedMs > nowMs);
      if (open.length === 0) this.#attempts.delete(id);
      else this.#attempts.set(id, open);
    }
    this.#lastMs = nowMs;
    return { hosts, still, ...this.#own.among(snapshot) };
  }

  /** One of the what-if's own moves, done at once. */
  move(serverId: string, to: string): void {
    this.#here.set(serverId, to);
  }
}
