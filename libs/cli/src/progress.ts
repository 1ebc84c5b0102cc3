import type { Terminal } from './terminal.ts';
import { span } from './times.ts';

export type Progress = {
  /** `total` is null where nobody knows it. */
  readonly update: (done: number, total: number | null) => void;
  /** The same where the share of the whole (0 to 1) is known and not the number; null where it is not known either. */
  readonly share: (done: number, share: number | null) => void;
  /** Takes it off the screen. It is drawn again at the next update. */
  readonly end: () => void;
};

const WIDTH = 24;
/** A bar that would be gone at once is not drawn. */
const PATIENCE_MS = 500;
const REDRAW_MS = 100;

/** A bar on a terminal that a person watches, for what takes longer than a moment; nothing anywhere else. */
export function progressBar(terminal: Terminal, what: string, now: () => number): Progress {
  if (!terminal.live) return { update: () => {}, share: () => {}, end: () => {} };
  const startedMs = now();
  let drawnMs = startedMs + PATIENCE_MS - REDRAW_MS;
  let drawn = false;
  /** The first progress: earlier work (reading a log up to a range) does not show the pace. */
  let base: { readonly atMs: number; readonly share: number } | null = null;

  function draw(nowMs: number, share: number | null, text: string): void {
    drawnMs = nowMs;
    drawn = true;
    terminal.steer('err', '\r\u001b[2K');
    if (share === null) {
      terminal.err(`${what} ${text}`);
      return;
    }
    const full = Math.round(share * WIDTH);
    const since = base ?? { atMs: startedMs, share: 0 };
    const gained = share - since.share;
    const left = gained <= 0 ? '' : `, ${span(((nowMs - since.atMs) / gained) * (1 - share))} left`;
    terminal.err(`${what} [${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}] ${text}${left}`);
  }

  return {
    update(done, total) {
      const nowMs = now();
      if (nowMs - drawnMs < REDRAW_MS || total === 0) return;
      draw(nowMs, total === null ? null : done / total, total === null ? `${done}` : `${done} of ${total}`);
    },
    share(done, share) {
      const nowMs = now();
      if (done > 0 && share !== null) base ??= { atMs: nowMs, share };
      if (nowMs - drawnMs >= REDRAW_MS)
        draw(nowMs, share, share === null ? `${done}` : `${Math.floor(share * 100)} %, ${done} done`);
    },
    end() {
      if (drawn) terminal.steer('err', '\r\u001b[2K');
      drawn = false;
    },
  };
}

/** A wait for somebody else, of which nothing is known but how long it has lasted. */
type Wait = { readonly what: string; readonly atMostMs: number; readonly tickMs?: number };

/** Shows on a terminal that a person watches what the command waits for, until it has come; nothing anywhere else, or without a wait. */
export async function whileWaiting<T>(
  { terminal, now }: { readonly terminal: Terminal; readonly now: () => number },
  { what, atMostMs, tickMs = 1000 }: Wait,
  come: Promise<T>,
): Promise<T> {
  if (!terminal.live || atMostMs === 0) return await come;
  const startedMs = now();
  let drawn = false;
  const clear = (): void => {
    if (drawn) terminal.steer('err', '\r\u001b[2K');
  };
  const tick = setInterval(() => {
    clear();
    drawn = true;
    terminal.err(`waiting for ${what}: ${span(now() - startedMs)} of at most ${span(atMostMs)}`);
  }, tickMs);
  try {
    return await come;
  } finally {
    clearInterval(tick);
    clear();
  }
}
