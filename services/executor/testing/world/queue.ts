import type { Next } from '../../src/taskFacts.ts';
import type { Scene } from './scene.ts';

/** A message on the queue. */
export interface Message {
  readonly attempt: number;
  readonly destination: string;
  deliveries: number;
  holder: number | null;
  /** Not delivered before this. */
  notBefore: number;
}

/** The task's messages: at first one, or two of the same. */
export class Queue {
  readonly messages: Message[] = [];
  readonly #scene: Scene;

  constructor(scene: Scene) {
    this.#scene = scene;
    const { task } = scene;
    this.#push(1, task.destination);
    // A planner that did not know whether it had published a task has published it twice.
    if (scene.flip(0.1)) this.#push(1, task.destination);
  }

  #push(attempt: number, destination: string): void {
    this.messages.push({ attempt, destination, deliveries: 0, holder: null, notBefore: 0 });
  }

  /** Beyond the window of the server's memory for ids a message may be there twice. */
  publish(next: Next): void {
    const there = this.messages.some((m) => m.attempt === next.attempt);
    if (!there || this.#scene.flip(0.2)) this.#push(next.attempt, next.destination);
  }

  remove(message: Message): void {
    this.messages.splice(this.messages.indexOf(message), 1);
  }
}
