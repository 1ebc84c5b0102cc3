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
    show(lines) {
      terminal.out(`${height > 0 ? `\u001b[${height}A` : ''}${lines.map((l) => `\u001b[2K${l}\n`).join('')}\u001b[0J`);
      height = lines.length;
    },
    finish() {
      height = 0;
    },
  };
}
