/**
 * Records the demo as an animated SVG: node scripts/picture.ts docs/demo.svg
 *
 * Runs the real demo on a terminal that keeps its frames, and writes about one frame per two seconds.
 */
import { writeFileSync } from 'node:fs';
import { demo } from '../libs/cli/src/commands/demo.ts';
import type { Terminal } from '../libs/cli/src/terminal.ts';
import { escaped } from '../libs/replay/src/markup.ts';

const COLUMNS = 112;
const FRAME_EVERY_MS = 2000;
const SECONDS_PER_FRAME = 0.8;
const FONT = 13;
const CELL = 7.83;
const LINE = 17;
const ESC = String.fromCharCode(27);
const SEQUENCE = new RegExp(`(${ESC}\\[[0-9;]*[A-Za-z])`);

const colours: Record<string, string> = {
  31: '#ff7b72',
  32: '#3fb950',
  33: '#d29922',
  34: '#58a6ff',
  35: '#bc8cff',
  36: '#39c5cf',
  2: '#6e7681',
};

/** One line of terminal output as SVG tspans. */
function spans(line: string): string {
  let colour = '';
  let bold = false;
  let out = '';
  for (const part of line.split(SEQUENCE)) {
    const code = part.startsWith(ESC) ? /^\[(\d+)m$/.exec(part.slice(1))?.[1] : undefined;
    if (code === undefined) {
      if (part === '' || part.startsWith(ESC)) continue;
      out += `<tspan${colour === '' ? '' : ` fill="${colour}"`}${bold ? ' font-weight="bold"' : ''}>${escaped(part)}</tspan>`;
    } else if (code === '1') bold = true;
    else if (code === '22') {
      bold = false;
      colour = '';
    } else colour = colours[code] ?? '';
  }
  return out;
}

const file = process.argv[2];
if (file === undefined) {
  console.error('usage: node scripts/picture.ts FILE.svg');
  process.exit(2);
}

const frames: string[][] = [];
let keptMs = Number.NEGATIVE_INFINITY;
let last: string[] = [];
/** The lines of the picture that is being drawn; null: none is. */
let drawing: string[] | null = null;
let tail = '';
const terminal: Terminal = {
  colour: true,
  live: true,
  columns: COLUMNS,
  err: (text) => void process.stderr.write(text),
  out(text) {
    if (drawing !== null) drawing.push(text.slice(0, -1));
    else if (frames.length > 0) tail += text;
  },
  steer(stream, sequence) {
    if (stream === 'err') return;
    drawing ??= [];
    // The end of a picture.
    if (sequence !== '\u001b[0J') return;
    last = drawing;
    drawing = null;
    if (performance.now() - keptMs < FRAME_EVERY_MS) return;
    keptMs = performance.now();
    frames.push(last);
  },
};

const status = await demo(terminal, { keep: false, seed: 7, speed: 10 });
if (status !== 0) process.exit(status);
const end = [...last, ...tail.split('\n')];
frames.push(end, end, end, end);

const rows = Math.max(...frames.map((f) => f.length));
const width = Math.round(COLUMNS * CELL + 24);
const height = rows * LINE + 24;
const total = frames.length * SECONDS_PER_FRAME;
const share = 100 / frames.length;
const styles = frames.map((_, i) => `.f${i}{animation-delay:${(i * SECONDS_PER_FRAME).toFixed(1)}s}`).join('');
const groups = frames.map((lines, i) => {
  const texts = lines.map((line, row) => `<text x="12" y="${24 + row * LINE}">${spans(line)}</text>`).join('');
  return `<g class="f f${i}">${texts}</g>`;
});
writeFileSync(
  file,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="${FONT}" fill="#c9d1d9">
<style>text{white-space:pre}@keyframes show{0%,${share.toFixed(2)}%{visibility:visible}${(share + 0.01).toFixed(2)}%,100%{visibility:hidden}}.f{visibility:hidden;animation:show ${total.toFixed(1)}s step-end infinite}${styles}</style>
<rect width="100%" height="100%" rx="6" fill="#0d1117"/>
${groups.join('\n')}
</svg>
`,
);
