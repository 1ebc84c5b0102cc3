/** NUMA cells of hosts and servers: nova/virt/hardware.py, numa_get_constraints and numa_fit_instance_to_host. */
import type { Flavor, HeldCell, Host } from './model.ts';
import type { CloudState } from './state.ts';

export const NO_FIT =
  'Insufficient compute resources: Requested instance NUMA topology cannot fit the given host NUMA topology.';

type Wanted = Omit<HeldCell, 'id'>;

/** Pinned CPUs of a flavor, the one for its emulator threads included. */
export function pinnedCpus({ vcpus, extraSpecs }: Flavor): number {
  if (extraSpecs['hw:cpu_policy'] !== 'dedicated') return 0;
  return vcpus + (extraSpecs['hw:emulator_threads_policy'] === 'isolate' ? 1 : 0);
}

/** The cells that Nova makes for a flavor; none without any of the extra specs that ask for some. */
function wantedCells(flavor: Flavor, host: Host): Wanted[] {
  const specs = flavor.extraSpecs;
  const dedicated = specs['hw:cpu_policy'] === 'dedicated';
  const pages = specs['hw:mem_page_size'];
  if (!dedicated && specs['hw:numa_nodes'] === undefined && pages === undefined) return [];
  const nodes = Number(specs['hw:numa_nodes'] ?? 1);
  const pageKb = pages === undefined || pages === 'small' ? null : pageSizeOf(pages, host);
  return Array.from({ length: nodes }, (_, i) => {
    const cpus = flavor.vcpus / nodes;
    const emulator = i === 0 ? pinnedCpus(flavor) - (dedicated ? flavor.vcpus : 0) : 0;
    return {
      pinned: dedicated ? cpus + emulator : 0,
      shared: dedicated ? 0 : cpus,
      memoryMb: flavor.memoryMb / nodes,
      pageKb,
    };
  });
}

const UNITS: Readonly<Record<string, number>> = { KB: 1, MB: 1024, GB: 1024 * 1024 };

/** `large` is the largest that the host has. */
function pageSizeOf(asked: string, { cells }: Host): number {
  if (asked === 'large' || asked === 'any')
    return Math.max(0, ...cells.flatMap((cell) => Object.keys(cell.pages).map(Number)));
  const unit = Object.keys(UNITS).find((each) => asked.toUpperCase().endsWith(each));
  return Number.parseInt(asked, 10) * (unit === undefined ? 1 : (UNITS[unit] ?? 1));
}

/**
 * Whether a host counts the cells of a consumer. Its nova-compute counts those of a migration only while the server is being moved so, or
 * waits in VERIFY_RESIZE; in Placement, a migration that nobody ends holds its share for ever (`_update_usage_from_migrations` in Nova).
 */
function countsCells(s: CloudState, consumer: string): boolean {
  if (s.servers.has(consumer)) return true;
  const migration = s.migrations.find(({ uuid }) => uuid === consumer);
  const server = s.servers.get(migration?.serverUuid ?? '');
  if (migration === undefined || server === undefined) return false;
  if (migration.type === 'live-migration') return server.taskState === 'migrating';
  return server.vmState === 'resized' || server.taskState?.startsWith('resize_') === true;
}

/** Cells of the host for a server of this flavor, as Nova chooses them; null: it does not fit. */
export function placeCells(s: CloudState, host: Host, flavor: Flavor): HeldCell[] | null {
  const wanted = wantedCells(flavor, host);
  // Of a host without cells in the scenario nothing is known: it has one, which takes everything.
  if (wanted.length === 0 || host.cells.length === 0) return wanted.map((each) => ({ ...each, id: 0 }));
  const held = [...host.consumers].flatMap(([consumer, { cells = [] }]) => (countsCells(s, consumer) ? cells : []));
  const pinning = wanted.some(({ pinned }) => pinned > 0);
  const loads = host.cells.map((cell) => {
    const here = held.filter(({ id }) => id === cell.id);
    const sum = (of: (one: HeldCell) => number): number => here.reduce((total, one) => total + of(one), 0);
    return {
      cell,
      pinned: sum((one) => one.pinned),
      shared: sum((one) => one.shared),
      memoryMb: sum((one) => one.memoryMb),
      pagesMb: (kb: number): number => sum((one) => (one.pageKb === kb ? one.memoryMb : 0)),
    };
  });
  // Without packing_host_numa_cells_allocation_strategy the emptiest cells come first; else the fullest.
  const order = s.scenario.packNumaCells ? -1 : 1;
  const used = (load: (typeof loads)[number]): number => (pinning ? load.pinned : load.shared / load.cell.sharedCpus);
  loads.sort((a, b) => order * (used(a) - used(b) || a.memoryMb - b.memoryMb) || a.cell.id - b.cell.id);

  const fits = (need: Wanted, load: (typeof loads)[number]): boolean => {
    const { cell } = load;
    if (need.memoryMb > cell.memoryMb || need.shared > cell.sharedCpus) return false;
    if (need.pinned > 0) {
      if (load.pinned + need.pinned > cell.dedicatedCpus || load.memoryMb + need.memoryMb > cell.memoryMb) return false;
    } else if (
      load.shared + need.shared > cell.sharedCpus * host.ratio.vcpus ||
      load.memoryMb + need.memoryMb > cell.memoryMb * host.ratio.memoryMb
    )
      return false;
    if (need.pageKb === null) {
      const huge = Object.entries(cell.pages).reduce((total, [kb, count]) => total + (Number(kb) * count) / 1024, 0);
      return need.memoryMb <= cell.memoryMb - huge;
    }
    const all = ((cell.pages[String(need.pageKb)] ?? 0) * need.pageKb) / 1024;
    return load.pagesMb(need.pageKb) + need.memoryMb <= all;
  };
  const choose = (i: number, taken: readonly number[]): HeldCell[] | null => {
    const need = wanted[i];
    if (need === undefined) return [];
    for (const load of loads) {
      const { id } = load.cell;
      if (taken.includes(id) || !fits(need, load)) continue;
      const rest = choose(i + 1, [...taken, id]);
      if (rest !== null) return [{ ...need, id }, ...rest];
    }
    return null;
  };
  return choose(0, []);
}
