import { readMessage } from '@kronos/contracts';

type Read = ReturnType<typeof readMessage>;

/**
 * Reads each stored message once for all its readers: the simulated server hands the same bytes to each of them. What was read is
 * frozen, so that no reader can change it for another.
 */
export function readOnce(): typeof readMessage {
  const known = new WeakMap<Uint8Array, { readonly family: string; readonly name: string; readonly read: Read }>();
  return (data, place) => {
    if (place === null) return readMessage(data, place);
    const { family, name } = place;
    const before = known.get(data);
    if (before?.family === family && before.name === name) return before.read;
    const read = freeze(readMessage(data, place));
    known.set(data, { family, name, read });
    return read;
  };
}

/** Freezes a value of JSON with all its parts. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
