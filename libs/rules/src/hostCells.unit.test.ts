import type { HostCell } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import {
  asksForCells,
  type CellNeed,
  cellDemand,
  cellNeedsOf,
  cellShortage,
  cellTotals,
  cellWords,
  matchCells,
} from './hostCells.ts';

const GIB = 1024;
const HUGE = 1024 ** 2;
const server = (extraSpecs: Record<string, string>, vcpus = 4, ramMb = 8 * GIB) => ({ extraSpecs, vcpus, ramMb });
const need = (set: Partial<CellNeed> = {}): CellNeed => ({
  hostCell: null,
  dedicatedCpus: 0,
  sharedCpus: 0,
  memoryMb: GIB,
  pageSizeKb: null,
  smallPages: false,
  ...set,
});

describe('what a server needs of NUMA cells', () => {
  it('is nothing where neither Nova nor the flavor gives it cells', () => {
    expect(cellNeedsOf(server({}))).toBeNull();
    expect(cellNeedsOf(server({ 'hw:cpu_policy': 'shared', 'hw:mem_encryption': 'false' }))).toBeNull();
    expect(asksForCells({ hw_cpu_policy: 'dedicated' })).toBe(true);
    expect(asksForCells({ hw_disk_bus: 'virtio' })).toBe(false);
  });

  it('is what the flavor asks for, split evenly or as given', () => {
    expect(cellNeedsOf(server({ 'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '1GB' }))).toEqual([
      need({ dedicatedCpus: 4, memoryMb: 8 * GIB, pageSizeKb: HUGE }),
    ]);
    expect(cellNeedsOf(server({ 'hw:numa_nodes': '2' }))).toEqual([
      need({ sharedCpus: 2, memoryMb: 4 * GIB }),
      need({ sharedCpus: 2, memoryMb: 4 * GIB }),
    ]);
    const uneven = {
      'hw:numa_nodes': '2',
      'hw:numa_cpus.0': '0-2',
      'hw:numa_cpus.1': '3',
      'hw:numa_mem.0': '6144',
      'hw:numa_mem.1': '2048',
    };
    expect(cellNeedsOf(server(uneven))).toEqual([
      need({ sharedCpus: 3, memoryMb: 6 * GIB }),
      need({ sharedCpus: 1, memoryMb: 2 * GIB }),
    ]);
  });

  it('is one CPU more for emulator threads, and whole cores where threads must stay together', () => {
    const pinned = { 'hw:cpu_policy': 'dedicated' };
    const cpus = (more: Record<string, string>, vcpus: number) =>
      (cellNeedsOf(server({ ...pinned, ...more }, vcpus)) as CellNeed[]).map(({ dedicatedCpus }) => dedicatedCpus);
    expect(cpus({ 'hw:emulator_threads_policy': 'isolate', 'hw:numa_nodes': '2' }, 4)).toEqual([3, 2]);
    expect(cpus({ 'hw:cpu_thread_policy': 'require' }, 3)).toEqual([4]);
  });

  it('is unknown where Nova or the image chooses', () => {
    for (const specs of [
      { 'hw:mem_page_size': 'large' },
      { 'hw:cpu_policy': 'mixed' },
      { 'hw:numa_nodes': '3' },
      { 'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-2' },
    ] as Record<string, string>[])
      expect(cellNeedsOf(server(specs))).toBe('unknown');
    expect(cellNeedsOf({ ...server({}), topology: null })).toBe('unknown');
  });

  it("is Nova's own answer where there is one", () => {
    const cells = [{ hostCell: 1, dedicatedCpus: 4, sharedCpus: 0, memoryMb: 8 * GIB, pageSizeKb: 2048 }];
    expect(cellNeedsOf({ ...server({ 'hw:mem_page_size': 'large' }), topology: { cells } })).toEqual([
      { ...cells[0], smallPages: false },
    ]);
  });

  it('is said in words', () => {
    expect(cellWords(need({ dedicatedCpus: 4, memoryMb: 8 * GIB, pageSizeKb: HUGE }))).toBe(
      '4 dedicated CPUs and 8 GiB of 1 GiB pages',
    );
    expect(cellWords(need({ sharedCpus: 2, memoryMb: 1500 }))).toBe('2 shared CPUs and 1500 MiB of memory');
  });
});

describe('a cell of a host', () => {
  const cell: HostCell = {
    id: 0,
    dedicatedCpus: 8,
    sharedCpus: 8,
    memoryMb: 32 * GIB,
    pages: [{ sizeKb: HUGE, total: 16 }],
  };
  const sizes = [HUGE];
  const lacks = (wanted: CellNeed, used: CellNeed[] = [], ratios = { cpu: 4, memory: 1.5 }) => {
    const taken = new Float64Array(5);
    for (const one of used)
      cellDemand(one, sizes).forEach((x, i) => {
        taken[i] = (taken[i] ?? 0) + x;
      });
    const of = { totals: cellTotals(cell, sizes), used: taken };
    return cellShortage(of, cellDemand(wanted, sizes), wanted, { ratios, sizes });
  };

  it('takes what fits, to the last CPU and page', () => {
    const pinned = need({ dedicatedCpus: 4, memoryMb: 8 * GIB, pageSizeKb: HUGE });
    expect(lacks(pinned, [pinned])).toBeNull();
    expect(lacks(pinned, [pinned, pinned])).toBe('dedicated');
    expect(lacks({ ...pinned, dedicatedCpus: 1 }, [pinned, pinned])).toBe('dedicated');
    expect(
      lacks(need({ dedicatedCpus: 1, memoryMb: GIB, pageSizeKb: HUGE }), [{ ...pinned, memoryMb: 16 * GIB }]),
    ).toBe('pages');
  });

  it('overcommits shared CPUs and ordinary memory by the ratios, and by no server alone', () => {
    const shared = need({ sharedCpus: 8, memoryMb: 8 * GIB });
    expect(lacks(shared, [shared, shared])).toBeNull();
    expect(lacks(shared, [shared, shared], { cpu: 2, memory: 1.5 })).toBe('shared');
    expect(lacks(shared, [shared, shared, shared], { cpu: 4, memory: 0.9 })).toBe('memory');
    expect(lacks(need({ sharedCpus: 9 }))).toBe('shared');
    // Half of its memory is in huge pages.
    expect(lacks(need({ sharedCpus: 1, memoryMb: 17 * GIB }))).toBe('memory');
  });

  it('does not overcommit the memory of servers with pinned CPUs or with small pages by name', () => {
    const shared = need({ sharedCpus: 1, memoryMb: 16 * GIB });
    expect(lacks(need({ dedicatedCpus: 1, memoryMb: 16 * GIB }), [shared])).toBeNull();
    expect(lacks(need({ dedicatedCpus: 1, memoryMb: 16 * GIB }), [shared, need()])).toBe('memory');
    expect(lacks(need({ sharedCpus: 1, memoryMb: GIB, smallPages: true }), [shared])).toBe('memory');
  });
});

describe('cells of a server on cells of a host', () => {
  it('are matched one to one, also where the first choice must give way', () => {
    const fits = (need: number, cell: number) => need === 0 || cell === 0;
    expect(matchCells(2, [0, 1], fits)).toEqual([1, 0]);
    expect(matchCells(2, [0, 1], () => true)).toEqual([0, 1]);
  });

  it('are not, where two need the same one, or the host has fewer', () => {
    expect(matchCells(2, [0, 1], (_, cell) => cell === 0)).toBeNull();
    expect(matchCells(3, [0, 1], () => true)).toBeNull();
  });
});
