/** The port of moves between cells: the rest of the executor imports nothing else of them. */
export { lookCell } from './look.ts';
export { cellPreflight } from './preflight.ts';
export { decideCell, evolveCell, resumed } from './task.ts';
