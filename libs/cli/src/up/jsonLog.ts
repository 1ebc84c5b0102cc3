import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { iso } from '@kronos/contracts';

/** A file that reaches this size becomes FILE.1, in place of the last one. */
const MAX_BYTES = 64 * 1024 ** 2;

/** One file for the output of several processes: one JSON object per line. */
export interface JsonLog {
  /** Writes a line of a process. A line that is no JSON object becomes the `message` of one. */
  readonly line: (of: string, text: string) => void;
  readonly close: () => void;
}

/** Opens the file to append to it. `now`: milliseconds since the epoch. */
export function openJsonLog(path: string, now: () => number, maxBytes = MAX_BYTES): JsonLog {
  let file = openSync(path, 'a', 0o600);
  let bytes = fstatSync(file).size;
  const turn = () => {
    closeSync(file);
    if (existsSync(path)) renameSync(path, `${path}.1`);
    file = openSync(path, 'a', 0o600);
    bytes = 0;
  };
  return {
    line(of, text) {
      if (text === '') return;
      if (bytes >= maxBytes) turn();
      const own = text.startsWith('{') && text.endsWith('}');
      const entry = own ? text : JSON.stringify({ time: iso(now()), service: of, message: text });
      bytes += writeSync(file, `${entry}\n`);
    },
    close: () => closeSync(file),
  };
}
