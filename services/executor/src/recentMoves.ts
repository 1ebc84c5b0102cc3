import type { StoredEvent } from '@kronos/contracts';
import { hostsInEvent } from './attemptLog.ts';

/** Number of events whose hosts are remembered; a pre-flight from before them is not fresh. */
const REMEMBERED = 4096;

/** The hosts of the newest moves on the log: one memory for the boards of all aggregates, because hosts change their aggregate. */
export class RecentMoves {
  readonly #events: { readonly sequence: number; readonly hosts: readonly string[] }[] = [];
  #forgotten = 0;

  note({ sequence, event }: StoredEvent): void {
    const hosts = hostsInEvent(event);
    if (hosts.length === 0) return;
    this.#events.push({ sequence, hosts });
    if (this.#events.length > REMEMBERED) this.#forgotten = this.#events.shift()?.sequence ?? this.#forgotten;
  }

  /** Whether a move began or ended on one of these hosts after this event of the log; also true where that is no longer known. */
  touched(those: readonly string[], sinceSequence: number): boolean {
    if (sinceSequence < this.#forgotten) return true;
    return this.#events.some(
      ({ sequence, hosts }) => sequence > sinceSequence && hosts.some((host) => those.includes(host)),
    );
  }
}
