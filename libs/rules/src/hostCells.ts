/**
 * NUMA cells: what hosts have, what servers need of them, and what fits. Nova's scheduler and computes judge alike; no API shows it.
 * Source: nova/virt/hardware.py, numa_get_constraints and numa_fit_instance_to_host.
 */
import type { HostCell, ServerCell, ServerObservation } from '@kronos/contracts';

/** One NUMA cell that a server needs. */
export interface CellNeed extends ServerCell {
  /** It asks for the smallest pages by name: then they cannot be overcommitted. */
  readonly smallPages: boolean;
}

/** `unknown`: it needs cells, and nothing shows which. */
export type CellNeeds = readonly CellNeed[] | 'unknown' | null;

type Asks = Pick<ServerObservation, 'extraSpecs' | 'vcpus' | 'ramMb' | 'topology'>;

const ASKS_FOR_CELLS = /^hw:(numa_nodes|mem_page_size|pmem|numa_cpus\.\d+|numa_mem\.\d+)$/;

/** Whether a flavor with these extra specs, or an image with these properties (`hw_numa_nodes`), gives a server NUMA cells. */
export function asksForCells(specs: Readonly<Record<string, string>>): boolean {
  for (const name of Object.keys(specs)) {
    const key = name.startsWith('hw_') ? `hw:${name.slice(3)}` : name;
    if (ASKS_FOR_CELLS.test(key)) return true;
    if (key === 'hw:cpu_policy' && isPinned(specs[name])) return true;
  }
  return false;
}

const isPinned = (policy: string | undefined): boolean => policy === 'dedicated' || policy === 'mixed';

/** Whether a server has NUMA cells, by its flavor and its image. */
export const needsCells = ({
  flavor,
  imageProperties,
}: {
  readonly flavor: { readonly extraSpecs: Readonly<Record<string, string>> } | null;
  readonly imageProperties: Readonly<Record<string, string>> | undefined;
}): boolean => asksForCells(flavor?.extraSpecs ?? {}) || asksForCells(imageProperties ?? {});

/** Nova's answer about the cells of a server (`GET /servers/{id}/topology`). */
interface SeenTopology {
  readonly nodes: readonly {
    readonly hostNode: number | null;
    readonly vcpus: number;
    /** Null: not shown. */
    readonly pinned: number | null;
    readonly memoryMb: number;
  }[];
  readonly pageSizeKb: number | null;
}

/** Nova's answer in the words of the snapshot; null where it does not show enough. */
export function cellsOf({ nodes, pageSizeKb }: SeenTopology): readonly ServerCell[] | null {
  if (nodes.length === 0) return [];
  const huge = pageSizeKb !== null && isHuge(pageSizeKb) ? pageSizeKb : null;
  const cells = nodes.map(({ hostNode, vcpus, pinned, memoryMb }): ServerCell | null =>
    pinned === null
      ? null
      : { hostCell: hostNode, dedicatedCpus: pinned, sharedCpus: vcpus - pinned, memoryMb, pageSizeKb: huge },
  );
  return cells.some((cell) => cell === null) ? null : cells.filter((cell) => cell !== null);
}

/** The cells that a server needs: those that Nova gave it, else those that its flavor asks for. Null: it needs none. */
export function cellNeedsOf(server: Asks): CellNeeds {
  const { extraSpecs, topology } = server;
  const asks = asksForCells(extraSpecs);
  if (topology === undefined && !asks) return null;
  const cells = topology === undefined || topology === null ? flavorCells(server) : topology.cells;
  if (cells === null) return 'unknown';
  const small = ['small', '4', '4KB', '4kB'].includes(extraSpecs['hw:mem_page_size'] ?? '');
  const whole = extraSpecs['hw:cpu_thread_policy'] === 'require';
  const emulator = extraSpecs['hw:emulator_threads_policy'] === 'isolate' ? 1 : 0;
  return cells.map((cell, i) => {
    const pinned = cell.dedicatedCpus + (i === 0 && cell.dedicatedCpus > 0 ? emulator : 0);
    // Threads of one core stay together: an odd one leaves its sibling unused.
    return { ...cell, dedicatedCpus: whole ? 2 * Math.ceil(pinned / 2) : pinned, smallPages: small };
  });
}

/** The cells that a flavor alone implies; null where it leaves something to Nova or to the image. */
function flavorCells({ extraSpecs, vcpus, ramMb }: Asks): ServerCell[] | null {
  if (!asksForCells(extraSpecs)) return null;
  const nodes = Number(extraSpecs['hw:numa_nodes'] ?? 1);
  const policy = extraSpecs['hw:cpu_policy'] ?? 'shared';
  const pageSizeKb = pageSizeOf(extraSpecs['hw:mem_page_size']);
  if (!Number.isInteger(nodes) || nodes < 1 || policy === 'mixed' || pageSizeKb === undefined) return null;
  const split = (name: string, whole: number): number[] | null => {
    const given = Array.from({ length: nodes }, (_, i) => extraSpecs[`${name}.${i}`]);
    if (given.every((one) => one === undefined)) return whole % nodes === 0 ? given.map(() => whole / nodes) : null;
    const amounts = given.map((one) => (name === 'hw:numa_mem' ? Number(one) : cpusOf(one)));
    return amounts.reduce((sum, one) => sum + one, 0) === whole ? amounts : null;
  };
  const cpus = split('hw:numa_cpus', vcpus);
  const memory = split('hw:numa_mem', ramMb);
  if (cpus === null || memory === null) return null;
  return cpus.map((count, i) => ({
    hostCell: null,
    dedicatedCpus: policy === 'dedicated' ? count : 0,
    sharedCpus: policy === 'dedicated' ? 0 : count,
    memoryMb: memory[i] ?? 0,
    pageSizeKb,
  }));
}

/** CPUs in a list such as `0-3,6`; NaN where it has another form. */
const cpusOf = (list: string | undefined): number =>
  (list ?? '').split(',').reduce((sum, part) => {
    const [, from, to] = /^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(part) ?? [];
    return from === undefined ? Number.NaN : sum + Number(to ?? from) - Number(from) + 1;
  }, 0);

const UNIT_KB: Readonly<Record<string, number>> = { '': 1, KB: 1, MB: 1024, GB: 1024 ** 2 };

/** The size of huge pages in KiB; null: ordinary memory; undefined: Nova chooses the size. */
function pageSizeOf(asked: string | undefined): number | null | undefined {
  if (asked === undefined || asked === 'small') return null;
  const [, amount, unit] = /^(\d+)(|[KMG]B)$/i.exec(asked) ?? [];
  if (amount === undefined || unit === undefined) return undefined;
  const sizeKb = Number(amount) * (UNIT_KB[unit.toUpperCase()] ?? 1);
  return isHuge(sizeKb) ? sizeKb : null;
}

/** Pages above the smallest size of any architecture (4 or 64 KiB). */
export const isHuge = (sizeKb: number): boolean => sizeKb > 64;

/** Amounts of one cell: {@link CELL_PINNED} and so on, then the memory in huge pages by size, in MiB. */
export type CellAmounts = Float64Array;
export const CELL_PINNED = 0;
/** Shared CPUs of servers with cells. Others are not counted, as in Nova. */
export const CELL_SHARED = 1;
/** Memory of servers with cells, in MiB, in pages of any size. */
export const CELL_MEMORY = 2;
/** The part of it in pages of the smallest size. */
const SMALL = 3;
const FIRST_PAGE = 4;

/** Ratios by which Nova overcommits CPUs that are not pinned, and memory in pages of the smallest size. */
export interface CellRatios {
  readonly cpu: number;
  readonly memory: number;
}

/** The page sizes that count in amounts, ascending, in KiB. */
export const pageSizesOf = (hosts: readonly HostCell[], needs: readonly CellNeed[]): number[] => {
  const sizes = new Set(hosts.flatMap(({ pages }) => pages.map(({ sizeKb }) => sizeKb)));
  for (const { pageSizeKb } of needs) if (pageSizeKb !== null && isHuge(pageSizeKb)) sizes.add(pageSizeKb);
  return [...sizes].sort((a, b) => a - b);
};

/** Amounts of a cell. */
export const cellWidth = (sizes: readonly number[]): number => FIRST_PAGE + sizes.length;

/** The amounts of a cell of a host. */
export function cellTotals(cell: HostCell, sizes: readonly number[]): CellAmounts {
  const totals = new Float64Array(cellWidth(sizes));
  totals[CELL_PINNED] = cell.dedicatedCpus;
  totals[CELL_SHARED] = cell.sharedCpus;
  totals[CELL_MEMORY] = cell.memoryMb;
  let huge = 0;
  for (const { sizeKb, total } of cell.pages) {
    const memoryMb = (sizeKb * total) / 1024;
    totals[FIRST_PAGE + sizes.indexOf(sizeKb)] = memoryMb;
    huge += memoryMb;
  }
  totals[SMALL] = cell.memoryMb - huge;
  return totals;
}

/** The amounts that a cell of a server takes of the host's cell that it is on. */
export function cellDemand(need: CellNeed, sizes: readonly number[]): CellAmounts {
  const demand = new Float64Array(cellWidth(sizes));
  demand[CELL_PINNED] = need.dedicatedCpus;
  demand[CELL_SHARED] = need.sharedCpus;
  demand[CELL_MEMORY] = need.memoryMb;
  const huge = need.pageSizeKb !== null && isHuge(need.pageSizeKb) ? sizes.indexOf(need.pageSizeKb) : -1;
  demand[huge < 0 ? SMALL : FIRST_PAGE + huge] = need.memoryMb;
  return demand;
}

const at = (amounts: CellAmounts, i: number): number => amounts[i] ?? 0;

/** The amount of a cell that a server lacks there. */
type Shortage = 'dedicated' | 'shared' | 'memory' | 'pages';

/**
 * The resource that a host's cell lacks for a server's cell; null: the cell fits.
 *
 * @param totals of the host's cell, @param used of the same cell by other servers, @param demand by {@link cellDemand} of `need`
 */
export function cellShortage(
  { totals, used }: { readonly totals: CellAmounts; readonly used: CellAmounts },
  demand: CellAmounts,
  need: CellNeed,
  { ratios, sizes }: { readonly ratios: CellRatios; readonly sizes: readonly number[] },
): Shortage | null {
  const after = (i: number): number => at(used, i) + at(demand, i);
  const pinned = at(demand, CELL_PINNED) > 0;
  if (pinned && after(CELL_PINNED) > at(totals, CELL_PINNED)) return 'dedicated';
  // No server overcommits a cell by itself.
  if (at(demand, CELL_SHARED) > at(totals, CELL_SHARED)) return 'shared';
  if (!pinned && after(CELL_SHARED) > at(totals, CELL_SHARED) * ratios.cpu) return 'shared';
  const lacks = (i: number): boolean =>
    at(demand, FIRST_PAGE + i) > 0 && after(FIRST_PAGE + i) > at(totals, FIRST_PAGE + i);
  if (sizes.some((_, i) => lacks(i))) return 'pages';
  if (at(demand, SMALL) > at(totals, SMALL)) return 'memory';
  if (need.smallPages && after(SMALL) > at(totals, SMALL)) return 'memory';
  if (at(demand, CELL_MEMORY) > at(totals, CELL_MEMORY)) return 'memory';
  return after(CELL_MEMORY) > at(totals, CELL_MEMORY) * (pinned ? 1 : ratios.memory) ? 'memory' : null;
}

/**
 * A cell of the host for each cell of the server, no two the same: by augmenting paths. Null: there is none.
 *
 * @param fits whether a cell of the server fits a cell of the host, by their positions
 * @param hostCells positions of the host's cells, those that are preferred first
 */
export function matchCells(
  serverCells: number,
  hostCells: readonly number[],
  fits: (serverCell: number, hostCell: number) => boolean,
): number[] | null {
  if (serverCells > hostCells.length) return null;
  const owner = new Map<number, number>();
  const settle = (need: number, tried: Set<number>): boolean => {
    const free = hostCells.find((cell) => !owner.has(cell) && fits(need, cell));
    if (free !== undefined) {
      owner.set(free, need);
      return true;
    }
    for (const cell of hostCells) {
      if (tried.has(cell) || !fits(need, cell)) continue;
      tried.add(cell);
      const before = owner.get(cell);
      if (before !== undefined && !settle(before, tried)) continue;
      owner.set(cell, need);
      return true;
    }
    return false;
  };
  for (let need = 0; need < serverCells; need++) if (!settle(need, new Set())) return null;
  const found = new Array<number>(serverCells).fill(0);
  for (const [cell, need] of owner) found[need] = cell;
  return found;
}

/** The needs of a server's cell, in words: `4 dedicated CPUs and 8 GiB of 1 GiB pages`. */
export function cellWords(need: CellNeed): string {
  const cpus = [
    ...(need.dedicatedCpus > 0 ? [`${need.dedicatedCpus} dedicated CPUs`] : []),
    ...(need.sharedCpus > 0 ? [`${need.sharedCpus} shared CPUs`] : []),
  ];
  const pages = need.pageSizeKb !== null && isHuge(need.pageSizeKb) ? ` of ${size(need.pageSizeKb / 1024)} pages` : '';
  return [...cpus, `${size(need.memoryMb)}${pages === '' ? ' of memory' : pages}`].join(' and ');
}

const size = (mib: number): string => (mib % 1024 === 0 ? `${mib / 1024} GiB` : `${mib} MiB`);

/** Whether a flavor or an image asks for CPUs by itself: then its guest sees no more of them than it asked for. */
export const asksForCpu = (specs: Readonly<Record<string, string>>): boolean =>
  Object.entries(specs).some(
    ([key, value]) =>
      key === 'hw:cpu_model' || key === 'hw_cpu_model' || (/^trait\d*:HW_CPU_/.test(key) && value === 'required'),
  );

/** Property names of images that Nova's filters, its claims and its computes read. Ids, names and notes of an image are none. */
const PLACING = /^(?:hw_|os_|img_|trait\d*:)/;

/** Of an image's properties those that may decide where a server can run; undefined: none. */
export function placingProperties(
  properties: Readonly<Record<string, string>> | undefined,
): Record<string, string> | undefined {
  const placing = Object.entries(properties ?? {}).filter(([key]) => PLACING.test(key));
  return placing.length === 0 ? undefined : Object.fromEntries(placing);
}
