import type { Terminal } from './terminal.ts';
import { span } from './times.ts';

export type Progress = {
  /** `total` is null where nobody knows it. */
  readonly update: (done: number, total: number | null) => void;
  /** Takes it off the screen. */
  readonly end: () => void;
};

const WIDTH = 24;
/** A bar that would be gone at once is not drawn. */
const PATIENCE_MS = 500;
const REDRAW_MS = 100;

/** A bar on a terminal that a person watches, for what takes longer than a moment; nothing anywhere else. */
export function progressBar(terminal: Terminal, what: string, now: () => number): Progress {
  if (!terminal.live) return { update: () => {}, end: () => {} };
  const startedMs = now();
  let drawnMs = startedMs + PATIENCE_MS - REDRAW_MS;
  let drawn = false;
  return {
    update(done, total) {
      const nowMs = now();
      if (nowMs - drawnMs < REDRAW_MS || total === 0) return;
      drawnMs = nowMs;
      drawn = true;
      if (total === null) {
        terminal.err(`\r\u001b[2K${what} ${done}`);
        return;
      }
      const full = Math.round((done / total) * WIDTH);
      const left = done === 0 ? '' : `, ${span(((nowMs - startedMs) / done) * (total - done))} left`;
      terminal.err(`\r\u001b[2K${what} [${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}] ${done} of ${total}${left}`);
    },
    end() {
      if (drawn) terminal.err('\r\u001b[2K');
    },
  };
}
