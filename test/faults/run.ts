/**
 * The fault matrix from the command line, cell by cell as they finish:
 * `node test/faults/run.ts [--cells all|pairs|N|TEXT] [--lanes N] [--again] [--json]`.
 * `pairs`: every fault at every point, with one executor or with three. `--again`: a cell that fails is run a second time, and
 * both outcomes are printed. `--json`: a line of JSON per cell. The last line is a summary as JSON; exit code 1 if a cell did
 * not hold, at the second try where there is one.
 */
import { parseArgs } from 'node:util';
import { type Cell, type CellResult, choose, held, runCells, type Tried } from './cells.ts';

const { values } = parseArgs({
  options: {
    cells: { type: 'string', default: 'all' },
    lanes: { type: 'string', default: '4' },
    again: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const cells = choose(values.cells);
const lanes = Number(values.lanes);
if (cells.length === 0 || !(lanes >= 1)) {
  console.error(cells.length === 0 ? `no cell is called ${values.cells}` : '--lanes must be 1 or more');
  process.exit(2);
}

const outcome = ({ breaches, ms }: CellResult): string =>
  `${breaches.length === 0 ? 'held' : `BROKEN: ${breaches.join('; ')}`} (${(ms / 1000).toFixed(1)} s)`;

function tell(cell: Cell, tried: Tried): void {
  const { first, second } = tried;
  if (values.json) console.log(JSON.stringify({ cell: cell.name, held: held(tried), first, second }));
  else {
    console.log(`${done}/${cells.length} ${cell.name}: ${outcome(first)}`);
    if (second !== null) console.log(`  again: ${outcome(second)}`);
  }
}

const began = performance.now();
let done = 0;
const broken: string[] = [];
const heldAtSecondTry: string[] = [];
await runCells(
  cells,
  lanes,
  (cell, tried) => {
    done += 1;
    if (!held(tried)) broken.push(cell.name);
    else if (tried.second !== null) heldAtSecondTry.push(cell.name);
    tell(cell, tried);
  },
  values.again,
);
const seconds = Math.round((performance.now() - began) / 1000);
console.log(JSON.stringify({ cells: cells.length, failed: broken.length, broken, heldAtSecondTry, lanes, seconds }));
process.exit(broken.length === 0 ? 0 : 1);
