import type { TaskOptions } from '../../src/options.ts';
import type { Task } from '../../src/taskFacts.ts';

/** The shared parts of a world: the time, the dice, and whether faults still occur. */
export class Scene {
  readonly task: Task;
  readonly options: TaskOptions;
  readonly history: string[] = [];
  now = 0;
  /** Things go wrong. */
  trouble = true;
  /** From then on an operator wants the task to stop. */
  stopAt = Number.POSITIVE_INFINITY;
  readonly #chance: () => number;

  constructor(task: Task, options: TaskOptions, chance: () => number) {
    this.task = task;
    this.options = options;
    this.#chance = chance;
  }

  readonly flip = (p: number): boolean => this.#chance() < p;
  readonly between = (low: number, high: number): number => low + Math.floor(this.#chance() * (high - low + 1));
  readonly pick = <T>(...from: readonly [T, ...T[]]): T => from[Math.floor(this.#chance() * from.length)] ?? from[0];
  /** Whether something that can go wrong does, with probability `p`. */
  readonly fails = (p: number): boolean => this.trouble && this.flip(p);

  say(text: string): void {
    this.history.push(`${this.now} ${text}`);
  }
}
