import type { HostCell } from '@kronos/contracts';
import type { CellNeed } from '@kronos/rules';
import { expect, it } from 'vitest';
import { cellsRefusal } from './preflightCells.ts';

const cell = (id: number): HostCell => ({ id, dedicatedCpus: 4, sharedCpus: 0, memoryMb: 8192, pages: [] });
const planned = { cells: [cell(0), cell(1)], ratios: { cpu: 1, memory: 1 } };
const pinned = (dedicatedCpus: number, hostCell: number | null = null): readonly CellNeed[] => [
  { hostCell, dedicatedCpus, sharedCpus: 0, memoryMb: 1024, pageSizeKb: null, smallPages: false },
];
const codeFor = (others: Parameters<typeof cellsRefusal>[1]['others'], own = pinned(3), allowUnknown = false) =>
  cellsRefusal(planned, { own, others }, { moveUnknownTopology: allowUnknown })?.code ?? 'fits';

it('a cell that is free takes the server; residents count on their own cells', () => {
  expect(codeFor([pinned(4, 0)])).toBe('fits');
  expect(codeFor([pinned(4, 0), pinned(2, 1)])).toBe('numa-fit');
});

it('what is on its way counts on every cell, because Nova chooses', () => {
  expect(codeFor([pinned(2)])).toBe('numa-fit');
  expect(codeFor([pinned(1)])).toBe('fits');
});

it('what is unknown is no room, unless unknown cells are allowed', () => {
  expect(codeFor(['unknown'])).toBe('numa-unknown');
  expect(codeFor(['unknown'], pinned(3), true)).toBe('fits');
  expect(cellsRefusal(planned, { own: 'unknown', others: [] }, { moveUnknownTopology: false })?.code).toBe(
    'numa-unknown',
  );
  expect(cellsRefusal(planned, { own: null, others: ['unknown'] }, { moveUnknownTopology: false })).toBeNull();
});

it('says what does not fit', () => {
  expect(cellsRefusal(planned, { own: pinned(5), others: [] }, { moveUnknownTopology: false })?.text).toBe(
    'no room for 5 dedicated CPUs and 1 GiB of memory in its NUMA cells',
  );
});
