/** A simulated cloud with NUMA cells and CPU generations, and what Kronos sees of it. */
import type { HostCell, HostObservation, ServerCell, ServerObservation, Snapshot } from '@kronos/contracts';
import { type SketchHost, type SketchVm, snapshotOf } from '@kronos/placement/testing';
import { random as seeded } from '@kronos/projections/testing';
import type { Cloud, ScenarioInput } from '@kronos/simcloud';

export type EstateSize = { readonly hosts: number; readonly vms: number; readonly seed: number };

const GIB = 1024;
const CELL = { dedicatedCpus: 24, sharedCpus: 24, memoryMb: 256 * GIB, pages: { 1048576: 96 } } as const;
/** Traits of the second generation beside those that every host has. */
const NEWER = ['HW_CPU_X86_AVX512F', 'HW_CPU_X86_AVX512VNNI'];

const plain = (name: string, vcpus: number, gib: number) => ({ name, vcpus, memoryMb: gib * GIB, diskGb: 1 });
const SHARED = [plain('small', 2, 4), plain('medium', 4, 8), plain('large', 8, 16), plain('memory', 4, 32)];
const dedicated = { 'hw:cpu_policy': 'dedicated' };
const huge = { 'hw:mem_page_size': '1GB' };
/** Flavors that need NUMA cells. */
const PINNED = [
  { ...plain('pinned', 4, 8), extraSpecs: dedicated },
  { ...plain('pinned-pages', 8, 16), extraSpecs: { ...dedicated, ...huge } },
  { ...plain('pinned-wide', 8, 16), extraSpecs: { ...dedicated, 'hw:numa_nodes': '2' } },
  { ...plain('pinned-emulator', 6, 12), extraSpecs: { ...dedicated, 'hw:emulator_threads_policy': 'isolate' } },
  { ...plain('numa-wide', 8, 32), extraSpecs: { 'hw:numa_nodes': '2' } },
  { ...plain('pages', 4, 16), extraSpecs: huge },
];

const hostName = (h: number): string => `cmp${String(h + 1).padStart(3, '0')}`;

/** A fifth of the VMs need cells. Servers are added one by one, where their cells fit: `placeAll`. */
export const scenarioOf = ({ hosts, seed }: EstateSize, packNumaCells = false): ScenarioInput => ({
  seed,
  timing: { jitter: 0 },
  packNumaCells,
  hosts: Array.from({ length: hosts }, (_, h) => ({
    name: hostName(h),
    vcpus: 2 * CELL.sharedCpus,
    memoryMb: 2 * CELL.memoryMb,
    diskGb: 4000,
    memoryRatio: 1,
    traits: h % 2 === 0 ? [] : NEWER,
    cells: [0, 1].map((id) => ({ id, ...CELL })),
  })),
  flavors: [...SHARED, ...PINNED],
});

/** Creates a VM on a random host that takes it; false where the draw found none. */
export function createVm(cloud: Cloud, nowMs: number, name: string, draw: () => number): boolean {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(draw() * items.length)] as T;
  const { name: flavorName } = pick(draw() < 0.2 ? PINNED : SHARED);
  const flavor = cloud.flavors.get(flavorName);
  if (flavor === undefined) throw new Error(`the cloud has no flavor ${flavorName}`);
  const names = [...cloud.hosts.keys()];
  for (let tries = 0; tries < 20; tries++) {
    // Some hosts are chosen more often: that is what there is to balance.
    const host = names[Math.floor(draw() ** 1.6 * names.length)] ?? '';
    const { memoryMb, vcpus } = flavor;
    const found = cloud.hosts.get(host);
    const pins = flavor.extraSpecs['hw:cpu_policy'] === undefined ? 0 : vcpus + 1;
    const claim = { vcpus: pins > 0 ? 0 : vcpus, memoryMb, diskGb: 1, pcpus: pins };
    // A host keeps a quarter of its memory free.
    if (found === undefined || found.used.memoryMb > 0.7 * found.total.memoryMb || !cloud.fits(found, claim)) continue;
    if (cloud.cellsFor(host, flavor) === null) continue;
    const demand = { cpuCores: vcpus * (0.2 + 0.6 * draw()), memoryMb };
    cloud.createServer(nowMs, { name, host, flavor: flavorName, demand });
    return true;
  }
  return false;
}

export function placeAll(cloud: Cloud, nowMs: number, { vms, seed }: EstateSize): void {
  const draw = seeded(seed);
  for (let v = 0; v < vms; v++) createVm(cloud, nowMs, `vm-${v}`, draw);
}

/** Load of a VM now, in cores: its mean, by the hour of day and by chance. */
function coresOf(mean: number, index: number, hour: number): number {
  const wave = Math.sin((2 * Math.PI * (hour + (index % 24))) / 24);
  return mean * (1 + 0.4 * wave);
}

export type Knowledge = {
  /** NUMA cells of hosts and servers are known. */
  readonly cells: boolean;
  /** Placement shows the traits of the hosts. */
  readonly traits: boolean;
};

/** The snapshot that the scorer would take of the cloud. */
export function observeCloud(cloud: Cloud, nowMs: number, cycle: number, knowledge: Knowledge): Snapshot {
  const hour = nowMs / 3_600_000;
  const hosts: Record<string, SketchHost> = {};
  for (const host of cloud.hosts.values()) hosts[host.name] = { set: observedHost(cloud, host.name, knowledge) };
  const vms: Record<string, SketchVm> = {};
  for (const [index, server] of [...cloud.servers.values()].entries()) {
    const cpu = coresOf(server.demand.cpuCores, index, hour) / (4 * CELL.sharedCpus);
    const memory = server.flavor.memoryMb / (2 * CELL.memoryMb);
    vms[server.uuid] = {
      host: server.host,
      vcpus: server.flavor.vcpus,
      ramMb: server.flavor.memoryMb,
      w: { cpu, memory },
      set: observedServer(cloud, server.uuid, knowledge),
    };
  }
  return snapshotOf({
    time: new Date(nowMs).toISOString(),
    policies: { cpu: { threshold: 0.1, weight: 0.6 }, memory: { threshold: 0.1, weight: 0.4 } },
    hosts,
    vms,
    snapshot: { id: `clouds-${cycle}`, cycle },
  });
}

function observedHost(cloud: Cloud, name: string, { cells, traits }: Knowledge): Partial<HostObservation> {
  const host = cloud.hosts.get(name);
  if (host === undefined) throw new Error(`the cloud has no host ${name}`);
  const amount = (total: number, used: number, ratio: number) => ({
    capacity: total * ratio,
    total,
    used,
    minUnit: 1,
    maxUnit: total,
    stepSize: 1,
  });
  const { total, used, ratio } = host;
  return {
    inventory: {
      VCPU: amount(total.vcpus, used.vcpus, ratio.vcpus),
      PCPU: amount(total.pcpus ?? 0, used.pcpus ?? 0, 1),
      MEMORY_MB: amount(total.memoryMb - host.reserved.memoryMb, used.memoryMb, ratio.memoryMb),
    },
    traits: traits ? [...host.traits] : null,
    topology: cells
      ? {
          cells: host.cells.map(
            ({ pages, ...cell }): HostCell => ({
              ...cell,
              pages: Object.entries(pages).map(([sizeKb, count]) => ({ sizeKb: Number(sizeKb), total: count })),
            }),
          ),
        }
      : null,
  };
}

function observedServer(cloud: Cloud, uuid: string, { cells }: Knowledge): Partial<ServerObservation> {
  const { flavor } = cloud.server(uuid);
  const held = cloud.allocations.get(uuid)?.resources;
  const emulator = Math.max(0, (held?.pcpus ?? 0) - flavor.vcpus);
  const own = (held?.cells ?? []).map(
    ({ id, pinned, shared, memoryMb, pageKb }, i): ServerCell => ({
      hostCell: id,
      dedicatedCpus: pinned - (i === 0 ? emulator : 0),
      sharedCpus: shared,
      memoryMb,
      pageSizeKb: pageKb,
    }),
  );
  return {
    extraSpecs: { ...flavor.extraSpecs },
    resources: {
      ...(held?.pcpus === undefined ? { VCPU: flavor.vcpus } : { PCPU: held.pcpus }),
      MEMORY_MB: flavor.memoryMb,
    },
    ...(own.length === 0 ? {} : { topology: cells ? { cells: own } : null }),
  };
}
