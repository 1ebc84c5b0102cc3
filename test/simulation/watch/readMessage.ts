import type { Message } from '@kronos/contracts';
import type { StoredMessage } from '@kronos/eventlog/simulated';

const decoder = new TextDecoder();

/** Parses a message on a subject `kronos.>`; null: garbage. */
export function readMessage({ data }: StoredMessage): Message | null {
  try {
    return JSON.parse(decoder.decode(data)) as Message;
  } catch {
    return null;
  }
}
