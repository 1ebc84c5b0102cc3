import type { StoredEvent } from '@kronos/contracts';
import { hostsInEvent } from './slots.ts';

/** Events of which it is remembered what hosts they concerned; a pre-flight older than that is not fresh. */
const REMEMBERED = 4096;

/** What happened to hosts lately, by the log: one memory for the boards of all aggregates, as hosts change their aggregate. */
export class RecentMoves {
  readonly #events: { readonly sequence: number; readonly hosts: readonly string[] }[] = [];
  #forgotten = 0;

  note({ sequence, event }: StoredEvent): void {
    const hosts = hostsInEvent(event);
    if (hosts.length === 0) return;
    this.#events.push({ sequence, hosts });
    if (this.#events.length > REMEMBERED) this.#forgotten = this.#events.shift()?.sequence ?? this.#forgotten;
  }

  /** Whether something happened to one of these hosts after an event of the log, or may have. */
  touched(those: readonly string[], sinceSequence: number): boolean {
    if (sinceSequence < this.#forgotten) return true;
    return this.#events.some(
      ({ sequence, hosts }) => sequence > sinceSequence && hosts.some((host) => those.includes(host)),
    );
  }
}
