/** Whether the VMs of any one host would find room elsewhere. First fit of the largest first, by amounts of its own. */
import type { Cloud } from '@kronos/simcloud';

type Server = ReturnType<Cloud['server']>;
type Host = NonNullable<ReturnType<Cloud['hosts']['get']>>;
type FreeCell = { pinned: number; shared: number; memoryMb: number; readonly huge: { memoryMb: number } };
type Free = {
  vcpus: number;
  pcpus: number;
  memoryMb: number;
  readonly traits: readonly string[];
  readonly cells: FreeCell[];
};

function freeOf(host: Host): Free {
  const held = [...host.consumers.values()].flatMap(({ cells = [] }) => cells);
  const { total, used, ratio, reserved } = host;
  return {
    vcpus: total.vcpus * ratio.vcpus - used.vcpus,
    pcpus: (total.pcpus ?? 0) - (used.pcpus ?? 0),
    memoryMb: (total.memoryMb - reserved.memoryMb) * ratio.memoryMb - used.memoryMb,
    traits: host.traits,
    cells: host.cells.map((cell) => {
      const here = held.filter(({ id }) => id === cell.id);
      const taken = (of: (one: (typeof here)[number]) => number): number => here.reduce((sum, one) => sum + of(one), 0);
      const pages = Object.entries(cell.pages).reduce((sum, [kb, count]) => sum + (Number(kb) * count) / 1024, 0);
      return {
        pinned: cell.dedicatedCpus - taken((one) => one.pinned),
        shared: cell.sharedCpus * ratio.vcpus - taken((one) => one.shared),
        memoryMb: cell.memoryMb - taken((one) => one.memoryMb),
        huge: { memoryMb: pages - taken((one) => (one.pageKb === null ? 0 : one.memoryMb)) },
      };
    }),
  };
}

type Held = NonNullable<ReturnType<Cloud['allocations']['get']>>['resources'];

const holds = (cell: FreeCell, { pinned, shared, memoryMb, pageKb }: NonNullable<Held['cells']>[number]): boolean =>
  pinned <= cell.pinned &&
  shared <= cell.shared &&
  memoryMb <= cell.memoryMb &&
  (pageKb === null || memoryMb <= cell.huge.memoryMb);

/** Takes the VM into the free amounts; false, and nothing is changed, where it does not fit. */
function enter(free: Free, server: Server, { vcpus, pcpus = 0, memoryMb, cells = [] }: Held): boolean {
  if (vcpus > free.vcpus || pcpus > free.pcpus || memoryMb > free.memoryMb) return false;
  if (server.cpuTraits.some((trait) => !free.traits.includes(trait))) return false;
  const taken: FreeCell[] = [];
  for (const need of cells) {
    const found = free.cells.find((cell) => !taken.includes(cell) && holds(cell, need));
    if (found === undefined) return false;
    taken.push(found);
  }
  for (const [i, cell] of taken.entries()) {
    const need = cells[i];
    if (need === undefined) continue;
    cell.pinned -= need.pinned;
    cell.shared -= need.shared;
    cell.memoryMb -= need.memoryMb;
    if (need.pageKb !== null) cell.huge.memoryMb -= need.memoryMb;
  }
  free.vcpus -= vcpus;
  free.pcpus -= pcpus;
  free.memoryMb -= memoryMb;
  return true;
}

/** Hosts whose VMs find no room elsewhere: none where the room for one failure is shown. */
export function withoutRefuge(cloud: Cloud): string[] {
  const bySize = (a: Server, b: Server): number => b.flavor.memoryMb - a.flavor.memoryMb;
  const of = Map.groupBy(cloud.servers.values(), ({ host }) => host);
  return [...cloud.hosts.keys()].filter((lost) => {
    const others = [...cloud.hosts.values()].filter(({ name }) => name !== lost);
    // Older hosts first: newer ones take every VM.
    const free = others.toSorted((a, b) => a.traits.length - b.traits.length).map(freeOf);
    const vms = (of.get(lost) ?? []).toSorted(
      (a, b) =>
        (cloud.allocations.get(b.uuid)?.resources.cells?.length ?? 0) -
          (cloud.allocations.get(a.uuid)?.resources.cells?.length ?? 0) || bySize(a, b),
    );
    return !vms.every((vm) => {
      const held = cloud.allocations.get(vm.uuid);
      return held !== undefined && free.some((one) => enter(one, vm, held.resources));
    });
  });
}
