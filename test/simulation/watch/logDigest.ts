import { createHash } from 'node:crypto';
import type { StoredMessage } from '@kronos/eventlog/simulated';

/** Digest of every message that was stored, with its sequence and time: two runs of one seed have the same. */
export class LogDigest {
  readonly #hash = createHash('sha256');
  messages = 0;

  stored(stream: string, { sequence, subject, storedAt, data }: StoredMessage): void {
    this.messages++;
    this.#hash.update(`${stream} ${sequence} ${subject} ${storedAt}\n`);
    this.#hash.update(data);
  }

  /** Ends the digest. */
  hex(): string {
    return this.#hash.digest('hex');
  }
}
