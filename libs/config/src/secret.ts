import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/**
 * A value that must not be shown. Printing, logging, interpolating, inspecting or serialising it gives `[secret]`;
 * only {@link Secret.reveal} gives the value, at the one place that sends it.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. Never pass the result to anything that writes. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [Symbol.toPrimitive](): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}
