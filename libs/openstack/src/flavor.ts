import type { Flavor, Server } from './novaTypes.ts';

/** Resource classes of os-resource-classes that may stand in `resources:*`; others must begin with `CUSTOM_`. */
const STANDARD_CLASSES = new Set([
  'VCPU',
  'MEMORY_MB',
  'DISK_GB',
  'PCI_DEVICE',
  'SRIOV_NET_VF',
  'NUMA_SOCKET',
  'NUMA_CORE',
  'NUMA_THREAD',
  'NUMA_MEMORY_MB',
  'IPV4_ADDRESS',
  'VGPU',
  'VGPU_DISPLAY_HEAD',
  'NET_BW_EGR_KILOBIT_PER_SEC',
  'NET_BW_IGR_KILOBIT_PER_SEC',
  'PCPU',
  'MEM_ENCRYPTION_CONTEXT',
  'FPGA',
  'PGPU',
  'NET_PACKET_RATE_KILOPACKET_PER_SEC',
  'NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC',
  'NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC',
]);

/**
 * The resources that a server with this flavor claims in Placement, as Nova asks for them.
 *
 * VCPU, or PCPU with `hw:cpu_policy` dedicated or mixed (the image's `hw_cpu_policy` where the flavor has none), plus one
 * PCPU for `hw:emulator_threads_policy=isolate`; MEMORY_MB; DISK_GB = root (0 when it boots from a volume) + ephemeral +
 * swap rounded up to whole GB; `resources:CLASS` and `resourcesGROUP:CLASS` replace these; one MEM_ENCRYPTION_CONTEXT
 * with `hw:mem_encryption`; one CUSTOM_PMEM_NAMESPACE_* for each label of `hw:pmem`. Classes with 0 are left out.
 * A flavor does not show the claims of ports, volumes and device profiles.
 *
 * Source: nova/scheduler/utils.py, ResourceRequest.from_request_spec; nova/virt/hardware.py for the CPU policies and masks.
 */
export function flavorResources(
  flavor: Flavor,
  options: {
    readonly bootFromVolume: boolean;
    readonly imageProperties?: Readonly<Record<string, string>> | undefined;
  },
): Record<string, number> {
  const specs = flavor.extraSpecs;
  const image = options.imageProperties ?? {};
  const { unsuffixed, suffixed } = statedResources(specs);
  Object.assign(unsuffixed, pinnedCpus(flavor, image));
  const named = (name: string): boolean => name in unsuffixed || name in suffixed;
  if (!named('VCPU') && !named('PCPU')) unsuffixed.VCPU = flavor.vcpus;
  if (!named('MEMORY_MB')) unsuffixed.MEMORY_MB = flavor.ramMb;
  if (!named('DISK_GB')) {
    const root = options.bootFromVolume ? 0 : flavor.rootGb;
    unsuffixed.DISK_GB = root + flavor.ephemeralGb + Math.ceil(flavor.swapMb / 1024);
  }
  if (isTrue(specs['hw:mem_encryption']) || isTrue(image.hw_mem_encryption)) unsuffixed.MEM_ENCRYPTION_CONTEXT = 1;
  Object.assign(unsuffixed, persistentMemory(specs['hw:pmem'] ?? ''));

  const total: Amounts = {};
  for (const part of [unsuffixed, suffixed]) {
    for (const [name, amount] of Object.entries(part)) if (amount > 0) total[name] = (total[name] ?? 0) + amount;
  }
  return total;
}

type Amounts = Record<string, number>;

/** The amounts that `resources:CLASS` and `resourcesGROUP:CLASS` state. A later key of the same group and class replaces an earlier one. */
function statedResources(specs: Flavor['extraSpecs']): { readonly unsuffixed: Amounts; readonly suffixed: Amounts } {
  const groups = new Map<string, Map<string, number>>();
  for (const [key, value] of Object.entries(specs)) {
    const match = /^resources([a-zA-Z0-9_-]{1,64})?:(.*)$/.exec(key);
    if (match === null || !/^\s*\d+\s*$/.test(value)) continue;
    const [, suffix = '', name = ''] = match;
    if (!(name.startsWith('CUSTOM_') || STANDARD_CLASSES.has(name))) continue;
    groups.set(suffix, (groups.get(suffix) ?? new Map<string, number>()).set(name, Number(value)));
  }
  const stated = { unsuffixed: {} as Amounts, suffixed: {} as Amounts };
  for (const [suffix, group] of groups) {
    const into = suffix === '' ? stated.unsuffixed : stated.suffixed;
    for (const [name, amount] of group) into[name] = (into[name] ?? 0) + amount;
  }
  return stated;
}

/** PCPU, and with `mixed` the VCPU beside it; nothing without a CPU policy that pins. */
function pinnedCpus(flavor: Flavor, image: Readonly<Record<string, string>>): Amounts {
  const specs = flavor.extraSpecs;
  const policy = specs['hw:cpu_policy'] || image.hw_cpu_policy;
  const emulator = specs['hw:emulator_threads_policy'] === 'isolate' ? 1 : 0;
  if (policy === 'dedicated') return { PCPU: flavor.vcpus + emulator };
  if (policy !== 'mixed') return {};
  const pinned = dedicatedCpus(flavor, image);
  return { VCPU: flavor.vcpus - pinned, PCPU: pinned + emulator };
}

/** One CUSTOM_PMEM_NAMESPACE_* for each label of `hw:pmem`. */
function persistentMemory(labels: string): Amounts {
  const amounts: Amounts = {};
  for (const label of labels.split(',').map((one) => one.trim())) {
    if (label === '') continue;
    const name = `CUSTOM_PMEM_NAMESPACE_${label.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`;
    amounts[name] = (amounts[name] ?? 0) + 1;
  }
  return amounts;
}

/** Number of pinned CPUs of a `mixed` server: `hw:cpu_dedicated_mask`, else the realtime mask. */
function dedicatedCpus(flavor: Flavor, image: Readonly<Record<string, string>>): number {
  const specs = flavor.extraSpecs;
  const mask = specs['hw:cpu_dedicated_mask'];
  if (mask) return cpuMask(mask, flavor.vcpus);
  if (!isTrue(specs['hw:cpu_realtime'])) return 0;
  const realtime = image.hw_cpu_realtime_mask || specs['hw:cpu_realtime_mask'];
  return realtime ? cpuMask(realtime, flavor.vcpus) : flavor.vcpus;
}

/** Number of CPUs in a specification such as `1-4,^3,6`; one that begins with `^` excludes from all. */
function cpuMask(mask: string, vcpus: number): number {
  const spec = mask.trim().startsWith('^') ? `0-${vcpus - 1},${mask}` : mask;
  const included = new Set<number>();
  const excluded = new Set<number>();
  for (const rule of spec.split(',')) {
    const match = /^\s*(\^)?\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(rule);
    if (match === null) continue;
    const from = Number(match[2]);
    const to = match[3] === undefined ? from : Number(match[3]);
    for (let cpu = from; cpu <= to; cpu += 1) (match[1] === undefined ? included : excluded).add(cpu);
  }
  return [...included].filter((cpu) => !excluded.has(cpu)).length;
}

/** oslo.utils strutils.bool_from_string. */
function isTrue(value: string | undefined): boolean {
  return value !== undefined && /^(1|t|true|on|y|yes)$/i.test(value.trim());
}

/** The claim of a server and the demands of its flavor; amounts of 0 and no classes where Nova shows no flavor. RAM in MiB, disk in GiB. */
export function claimsOf(server: Pick<Server, 'flavor' | 'bootFromVolume' | 'imageProperties'>): {
  readonly vcpus: number;
  readonly ramMb: number;
  readonly diskGb: number;
  readonly resources: Record<string, number>;
  readonly extraSpecs: Record<string, string>;
  readonly bootFromVolume: boolean;
} {
  const { flavor, bootFromVolume, imageProperties } = server;
  if (flavor === null) return { vcpus: 0, ramMb: 0, diskGb: 0, resources: {}, extraSpecs: {}, bootFromVolume };
  return {
    vcpus: flavor.vcpus,
    ramMb: flavor.ramMb,
    diskGb: (bootFromVolume ? 0 : flavor.rootGb) + flavor.ephemeralGb + flavor.swapMb / 1024,
    resources: flavorResources(flavor, { bootFromVolume, imageProperties }),
    extraSpecs: { ...flavor.extraSpecs },
    bootFromVolume,
  };
}
