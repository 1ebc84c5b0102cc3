/** Faults act in the phase that has faults, and never later. */
import type { World } from './world.ts';

export class Trouble {
  readonly #world: World;
  #over = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** @param atMs true time */
  at(atMs: number, act: () => void): void {
    this.#world.at(atMs, () => {
      if (!this.#over) act();
    });
  }

  /** Delays an act of a fault, or the act that takes it back: the end of the phase takes back every fault. */
  after(ms: number, act: () => void): void {
    this.at(this.#world.now + ms, act);
  }

  /** Ends the phase: no act that was delayed happens any more. */
  end(): void {
    this.#over = true;
  }
}
