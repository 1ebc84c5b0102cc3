/** When faults act: in the phase that has faults, and never later. */
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

  /** What a fault puts off. Of what it takes back, nothing is missing later: the end of all faults takes back everything. */
  after(ms: number, act: () => void): void {
    this.at(this.#world.now + ms, act);
  }

  /** What is still to come does not happen. */
  end(): void {
    this.#over = true;
  }
}
