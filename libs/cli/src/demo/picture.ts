import type { Terminal } from '../terminal.ts';

/** Draws lines over the ones before. */
export type Picture = {
  readonly show: (lines: readonly string[]) => void;
  /** Leaves the last picture standing. */
  readonly finish: () => void;
};

export function picture(terminal: Terminal): Picture {
  let height = 0;
  return {
    show(all) {
      // The cursor does not reach lines that have left the screen.
      const lines = all.slice(0, Math.max(1, (terminal.rows ?? Number.POSITIVE_INFINITY) - 1));
      if (height > 0) terminal.steer('out', `\u001b[${height}A`);
      for (const line of lines) {
        terminal.steer('out', '\u001b[2K');
        terminal.out(`${line}\n`);
      }
      terminal.steer('out', '\u001b[0J');
      height = lines.length;
    },
    finish() {
      height = 0;
    },
  };
}
