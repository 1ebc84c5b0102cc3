/** The person who skips what no reader of the log understands. */

import type { World } from '../world.ts';
import type { Commands } from './commands.ts';

/** After a command that was not stored: until the person tries again. */
const AGAIN_MS = 60_000;

export class Custodian {
  readonly #world: World;
  readonly #commands: Commands;
  /** Sequences on the log that are still to be skipped -> their aggregates. */
  readonly #open = new Map<number, string>();

  constructor(world: World, commands: Commands) {
    this.#world = world;
    this.#commands = commands;
  }

  skipAfter(sequence: number, aggregate: string, ms: number): void {
    this.#open.set(sequence, aggregate);
    this.#world.after(ms, () => this.#skip(sequence));
  }

  skipAllNow(): void {
    for (const sequence of [...this.#open.keys()]) this.#skip(sequence);
  }

  /** The log is lost with what was to be skipped. */
  forget(): void {
    this.#open.clear();
  }

  #skip(sequence: number): void {
    const aggregate = this.#open.get(sequence);
    if (aggregate === undefined) return;
    const stored = this.#commands.append('event.skipped', aggregate, { sequence, through: sequence });
    if (stored === null) this.#world.after(AGAIN_MS, () => this.#skip(sequence));
    else this.#open.delete(sequence);
  }
}
