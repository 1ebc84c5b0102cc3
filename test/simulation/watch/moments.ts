import type { Message } from '@kronos/contracts';

/** Those who wait longest are dropped when more than this many wait for events of one type. */
const WAITING = 3;

/** Faults that wait for the next event of a type. */
export class Moments {
  readonly #waiting = new Map<string, readonly ((replica: string) => void)[]>();

  /** Calls once, with the name of the replica that wrote it, when the next event of a type is stored. */
  onNext(type: string, act: (replica: string) => void): void {
    this.#waiting.set(type, [...(this.#waiting.get(type) ?? []), act].slice(-WAITING));
  }

  /** One event lets one of those who wait for it act. */
  stored({ type, by }: Message): void {
    const [next, ...later] = this.#waiting.get(type) ?? [];
    if (next === undefined) return;
    this.#waiting.set(type, later);
    // A process is named after its replica and its number.
    next(by.instance.replace(/-\d+$/, ''));
  }

  /** Nobody waits any more. */
  clear(): void {
    this.#waiting.clear();
  }
}
