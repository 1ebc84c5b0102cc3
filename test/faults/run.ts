/**
 * The whole fault matrix from the command line, cell by cell as they finish:
 * `node test/faults/run.ts [--lanes N] [--cells N|TEXT]`. The last line is a summary as JSON; exit code 1 if any cell failed.
 */
import { parseArgs } from 'node:util';
import { choose, runCells } from './cells.ts';

const { values } = parseArgs({
  options: { lanes: { type: 'string', default: '4' }, cells: { type: 'string', default: 'all' } },
});
const cells = choose(values.cells);
const began = performance.now();
let done = 0;
let failed = 0;
await runCells(cells, Number(values.lanes), (cell, { breaches, ms }) => {
  done += 1;
  if (breaches.length > 0) failed += 1;
  const outcome = breaches.length === 0 ? 'held' : `BROKEN: ${breaches.join('; ')}`;
  console.log(`${done}/${cells.length} ${(ms / 1000).toFixed(1)} s  ${cell.name}: ${outcome}`);
});
console.log(JSON.stringify({ cells: cells.length, failed, seconds: Math.round((performance.now() - began) / 1000) }));
process.exit(failed === 0 ? 0 : 1);
