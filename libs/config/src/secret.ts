import { inspect } from 'node:util';

/** Stands in the place of a secret. */
export const HIDDEN = '[secret]';

/** The values of all secrets of this process, for {@link knownSecrets}. */
const configured = new Set<string>();
/** Those that came later, the oldest first: tokens change. */
const learned = new Set<string>();
const MOST_LEARNED = 64;
/** A shorter value that was only learned is no secret of ours: a scheme, or a placeholder. */
const LEAST_LEARNED = 8;
let version = 0;

/** Notes a secret that is not in the configuration: a token that a service was given, a password of clouds.yaml. */
export function learnSecret(value: string): void {
  if (value.length < LEAST_LEARNED || configured.has(value) || learned.has(value)) return;
  learned.add(value);
  for (const oldest of learned) {
    if (learned.size <= MOST_LEARNED) break;
    learned.delete(oldest);
  }
  version++;
}

/** Every secret that this process knows, so that whatever it writes can be searched for them. `version` changes with them. */
export const knownSecrets = (): { readonly version: number; readonly values: Iterable<string> } => ({
  version,
  values: [...configured, ...learned],
});

/**
 * Forgets every secret. A process of Kronos never does: a secret may still be in a text that it writes. A test worker does before each
 * file, because the words that one test uses as passwords are plain words of the next.
 */
export function forgetSecrets(): void {
  configured.clear();
  learned.clear();
  version++;
}

/**
 * A value that must not be shown. Printing, logging, interpolating, inspecting or serialising it gives `[secret]`;
 * only {@link Secret.reveal} gives the value, at the one place that sends it.
 */
export class Secret {
  readonly #value: string;

  /** @param kind `public`: it holds nothing that has to be hidden wherever it turns up */
  constructor(value: string, kind: 'hidden' | 'public' = 'hidden') {
    this.#value = value;
    if (kind === 'public' || configured.has(value)) return;
    configured.add(value);
    version++;
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
