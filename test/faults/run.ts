/**
 * The fault matrix from the command line, cell by cell as they finish:
 * `node test/faults/run.ts [--cells all|sample|N|TEXT] [--workers N] [--json]`.
 * `sample`: an executor killed at every second point, and each other fault at some of them.
 * `--json`: a line of JSON per cell. The last line is a summary as JSON; exit code 1 if a cell did not hold. A cell runs once: a breach is never tried again.
 */
import { parseArgs } from 'node:util';
import { type Cell, type CellResult, choose, runCells } from './cells.ts';

const { values } = parseArgs({
  options: {
    cells: { type: 'string', default: 'all' },
    workers: { type: 'string', default: '4' },
    json: { type: 'boolean', default: false },
  },
});
const cells = choose(values.cells);
const workers = Number(values.workers);
if (cells.length === 0 || !(workers >= 1)) {
  console.error(cells.length === 0 ? `no cell is called ${values.cells}` : '--workers must be 1 or more');
  process.exit(2);
}

const outcome = ({ breaches, ms }: CellResult): string =>
  `${breaches.length === 0 ? 'held' : `BROKEN: ${breaches.join('; ')}`} (${(ms / 1000).toFixed(1)} s)`;

function tell(cell: Cell, result: CellResult): void {
  if (values.json) console.log(JSON.stringify({ cell: cell.name, held: result.breaches.length === 0, ...result }));
  else console.log(`${done}/${cells.length} ${cell.name}: ${outcome(result)}`);
}

const began = performance.now();
let done = 0;
const broken: string[] = [];
await runCells(cells, workers, (cell, result) => {
  done += 1;
  if (result.breaches.length > 0) broken.push(cell.name);
  tell(cell, result);
});
const seconds = Math.round((performance.now() - began) / 1000);
console.log(JSON.stringify({ cells: cells.length, failed: broken.length, broken, workers, seconds }));
process.exit(broken.length === 0 ? 0 : 1);
