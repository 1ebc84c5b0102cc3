/** Builds a cluster from its parts: hosts, VMs, groups and policies by name. Pure. */
import { byText, type GroupPolicy } from '@kronos/contracts';
import { cpuFits, cpuTraits, traitsFit } from '@kronos/facts';
import type { CellNeeds } from '@kronos/rules';
import { entry, float, item } from '../base/array.ts';
import { sortedBy } from '../base/sort.ts';
import { codeNumber, type ReasonCode } from '../reasons.ts';
import { type Cluster, type Group, keysAt, type PolicyModel } from './cluster.ts';
import { onGrid } from './grid.ts';
import { type CellPart, cellModel } from './hostCells.ts';

type Compatibility = {
  readonly zone: string | null;
  readonly cell: string | null;
  readonly hypervisorType: string;
  readonly hypervisorVersion: number;
  /** Null when unknown: then no VM that asks for traits fits. */
  readonly traits: readonly string[] | null;
};

export type HostPart = Compatibility &
  CellPart & {
    readonly name: string;
    /** By policy, in the order of `policies`. */
    readonly score: readonly number[];
    readonly size: readonly number[];
    readonly fullness: readonly number[];
    readonly counted: boolean;
    readonly refusal: ReasonCode | null;
    readonly leaving: boolean;
    /** By resource class; null: unknown. */
    readonly inventory: Readonly<
      Record<
        string,
        {
          readonly capacity: number;
          readonly used: number;
          readonly minUnit: number | null;
          readonly maxUnit: number | null;
          readonly stepSize: number | null;
        }
      >
    > | null;
  };

export type VmPart = {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly alsoOn: readonly string[];
  /** By policy. */
  readonly weight: readonly number[];
  readonly resources: Readonly<Record<string, number>>;
  readonly refusal: ReasonCode | null;
  /** The AZ it is pinned to, null when it is not, undefined when the cloud cannot tell. */
  readonly pin: string | null | undefined;
  readonly requiredTraits: readonly string[];
  readonly forbiddenTraits: readonly string[];
  /** Names of the hosts that Nova refused for servers of its shape, sorted. Absent: none. */
  readonly refusedBy?: readonly string[];
  /** Why these do not take it. Absent: Nova refused it. */
  readonly refusedFor?: ReasonCode;
  /** NUMA cells that it needs. Absent: none. */
  readonly cells?: CellNeeds;
  /** Its flavor or image asks for a CPU, so it does not depend on the one of its host. */
  readonly anyCpu?: boolean;
  readonly ramMb: number;
  readonly diskGb: number;
  readonly vcpus: number;
  /** GiB that a move of it copies. */
  readonly copyGib: number;
  /** The cost of a move of it in place of `copyGib`, in GiB, by host. Absent: the host does not matter. */
  readonly copyGibTo?: Readonly<Record<string, number>>;
  /** {@link Cluster.recentMoves}. Absent: none. */
  readonly recentMoves?: number;
  readonly evacuationOnly: ReasonCode | null;
};

export type GroupPart = {
  readonly id: string;
  readonly name: string;
  readonly policy: GroupPolicy;
  readonly maxServerPerHost: number;
  readonly members: readonly string[];
};

export type ClusterParts = {
  readonly policies: readonly PolicyModel[];
  readonly hosts: readonly HostPart[];
  readonly vms: readonly VmPart[];
  readonly groups: readonly GroupPart[];
  readonly restrictToAz: boolean;
  /** Null: soft groups are as strict as hard ones. */
  readonly softPenalty: number | null;
  /** VMs may go where NUMA cells are unknown. Absent: they may not. */
  readonly allowUnknownCells?: boolean;
  /** The traits of CPUs of a VM's host do not matter. Absent: they do. */
  readonly anyCpu?: boolean;
};

const noGroups: readonly number[] = [];

/** The server groups with members here, and the groups of each VM. */
function groupsOf(
  parts: Pick<ClusterParts, 'groups' | 'softPenalty'>,
  vmIndex: ReadonlyMap<string, number>,
  V: number,
): { readonly groups: readonly Group[]; readonly vmGroups: readonly (readonly number[])[] } {
  const groups: Group[] = [];
  const vmGroups: (readonly number[])[] = new Array(V).fill(noGroups);
  for (const part of sortedBy(parts.groups, (group) => group.id)) {
    const { id, name, policy } = part;
    const members = [...new Set(part.members)]
      .map((id) => vmIndex.get(id))
      .filter((v) => v !== undefined)
      .sort((a, b) => a - b);
    if (members.length === 0) continue;
    const g = groups.length;
    for (const v of members) vmGroups[v] = [...(vmGroups[v] ?? noGroups), g];
    groups.push({
      id,
      name,
      policy,
      affine: policy === 'affinity' || policy === 'soft-affinity',
      hard: !policy.startsWith('soft-'),
      strict: !policy.startsWith('soft-') || parts.softPenalty === null,
      max: part.maxServerPerHost,
      members,
    });
  }
  return { groups, vmGroups };
}

/** The values and amounts of the hosts: by policy, and by resource class. */
function hostColumns(
  hosts: readonly HostPart[],
  P: number,
  resourceClasses: readonly string[],
): Pick<Cluster, 'score' | 'size' | 'fullness' | 'free' | 'capacity' | 'units'> {
  const H = hosts.length;
  const R = resourceClasses.length;
  const score = new Float64Array(H * P);
  const size = new Float64Array(H * P);
  const fullness = new Float64Array(H * P);
  const free = new Float64Array(H * R);
  const capacity = new Float64Array(H * R);
  const min = new Float64Array(H * R);
  const max = new Float64Array(H * R).fill(Number.POSITIVE_INFINITY);
  const step = new Float64Array(H * R).fill(1);
  let unitsMatter = false;
  hosts.forEach((host, h) => {
    for (let p = 0; p < P; p++) {
      score[h * P + p] = onGrid(item(host.score, p));
      size[h * P + p] = item(host.size, p);
      fullness[h * P + p] = onGrid(item(host.fullness, p));
    }
    resourceClasses.forEach((name, r) => {
      const item = host.inventory !== null && Object.hasOwn(host.inventory, name) ? host.inventory[name] : undefined;
      if (item === undefined) return;
      const i = h * R + r;
      free[i] = item.capacity - item.used;
      capacity[i] = item.capacity;
      min[i] = item.minUnit ?? 0;
      max[i] = item.maxUnit ?? Number.POSITIVE_INFINITY;
      step[i] = item.stepSize ?? 1;
      if ((item.minUnit ?? 0) > 1 || (item.stepSize ?? 1) !== 1 || (item.maxUnit ?? item.capacity) < item.capacity)
        unitsMatter = true;
    });
  });
  return { score, size, fullness, free, capacity, units: unitsMatter ? { min, max, step } : null };
}

/** The places, values and claims of the VMs, and the reasons that they stay. */
function vmColumns(
  vms: readonly VmPart[],
  {
    P,
    size,
    hostIndex,
    classIndex,
  }: Pick<Cluster, 'P' | 'size' | 'hostIndex'> & {
    readonly classIndex: ReadonlyMap<string, number>;
  },
): Pick<Cluster, 'vmHost' | 'weight' | 'load' | 'demand' | 'evacuationOnly' | 'vmRefusal' | 'alsoOn'> {
  const V = vms.length;
  const R = classIndex.size;
  const vmHost = new Int32Array(V);
  const weight = new Float64Array(V * P);
  const load = new Float64Array(V * P);
  const demand = new Float64Array(V * R);
  const evacuationOnly = new Int32Array(V);
  const vmRefusal = new Int32Array(V);
  const alsoOn = new Map<number, readonly number[]>();
  vms.forEach((vm, v) => {
    const host = entry(hostIndex, vm.host);
    vmHost[v] = host;
    for (let p = 0; p < P; p++) {
      weight[v * P + p] = onGrid(item(vm.weight, p));
      load[v * P + p] = onGrid(item(vm.weight, p) * float(size, host * P + p));
    }
    for (const name in vm.resources) demand[v * R + entry(classIndex, name)] = vm.resources[name] ?? 0;
    if (vm.evacuationOnly !== null) evacuationOnly[v] = codeNumber[vm.evacuationOnly];
    if (vm.refusal !== null) vmRefusal[v] = codeNumber[vm.refusal];
    if (vm.alsoOn.length > 0) {
      const others = new Set<number>();
      for (const name of vm.alsoOn) {
        const other = hostIndex.get(name);
        if (other !== undefined && other !== host) others.add(other);
      }
      if (others.size > 0) alsoOn.set(v, ascending(others));
    }
  });
  return { vmHost, weight, load, demand, evacuationOnly, vmRefusal, alsoOn };
}

/** Builds the arrays. Hosts and VMs of equal name are not expected; VMs on unknown hosts are left out. */
export function buildCluster(parts: ClusterParts): Cluster {
  const { policies } = parts;
  const P = policies.length;
  const hosts = sortedBy(parts.hosts, (host) => host.name);
  const H = hosts.length;
  const hostIndex = new Map(hosts.map((host, i) => [host.name, i]));
  const vms = sortedBy(
    parts.vms.filter((vm) => hostIndex.has(vm.host)),
    (vm) => vm.id,
  );
  const V = vms.length;
  const vmIndex = new Map(vms.map((vm, i) => [vm.id, i]));

  const classNames = new Set<string>();
  for (const { resources } of vms) for (const name in resources) classNames.add(name);
  const resourceClasses = [...classNames].sort(byText);
  const R = resourceClasses.length;

  const { score, size, fullness, free, capacity, units } = hostColumns(hosts, P, resourceClasses);
  const classIndex = new Map(resourceClasses.map((name, r) => [name, r]));
  const columns = vmColumns(vms, { P, size, hostIndex, classIndex });
  const { vmHost, weight, load, demand, evacuationOnly, vmRefusal, alsoOn } = columns;
  const { groups, vmGroups } = groupsOf(parts, vmIndex, V);

  return {
    H,
    V,
    P,
    R,
    policies,
    resourceClasses,
    hostNames: hosts.map((host) => host.name),
    hostZone: hosts.map((host) => host.zone),
    score,
    size,
    alike: size.every((x) => x === 1),
    fullness,
    counted: Uint8Array.from(hosts, (host) => (host.counted ? 1 : 0)),
    hostRefusal: Int32Array.from(hosts, (host) => refusalNumber(host)),
    leaving: Uint8Array.from(hosts, (host) => (host.leaving ? 1 : 0)),
    free,
    capacity,
    units,
    numa: cellModel(hosts, vms, { vmHost, alsoOn }, { allowUnknown: parts.allowUnknownCells === true }),
    vmIds: vms.map((vm) => vm.id),
    vmNames: vms.map((vm) => vm.name),
    vmHost,
    weight,
    load,
    demand,
    ramMb: Float64Array.from(vms, (vm) => vm.ramMb),
    diskGb: Float64Array.from(vms, (vm) => vm.diskGb),
    vcpus: Float64Array.from(vms, (vm) => vm.vcpus),
    ...copiedBy(vms, hosts),
    recentMoves: Int32Array.from(vms, (vm) => vm.recentMoves ?? 0),
    evacuationOnly,
    vmRefusal,
    alsoOn,
    vmResources: vms.map((vm) => vm.resources),
    ...compatibility(hosts, vms, vmHost, parts),
    groups,
    softPenalty: parts.softPenalty ?? 0,
    vmGroups,
    hostIndex,
    vmIndex,
  };
}

function copiedBy(vms: readonly VmPart[], hosts: readonly HostPart[]): Pick<Cluster, 'copyGib' | 'copyGibTo'> {
  const copyGib = Float64Array.from(vms, (vm) => vm.copyGib);
  if (!vms.some((vm) => vm.copyGibTo !== undefined)) return { copyGib, copyGibTo: null };
  const to = vms.flatMap((vm) => hosts.map(({ name }) => vm.copyGibTo?.[name] ?? vm.copyGib));
  return { copyGib, copyGibTo: Float64Array.from(to) };
}

const ascending = (numbers: Iterable<number>): number[] => [...numbers].sort((a, b) => a - b);

function refusalNumber(host: HostPart): number {
  if (host.refusal !== null) return codeNumber[host.refusal];
  return host.inventory === null ? codeNumber['host-capacity-unknown'] : 0;
}

/** The kinds of hosts that each kind of VM fits, without regard to amounts and groups. */
function compatibility(
  hosts: readonly HostPart[],
  vms: readonly VmPart[],
  vmHost: Int32Array,
  { restrictToAz, anyCpu }: Pick<ClusterParts, 'restrictToAz' | 'anyCpu'>,
): Pick<Cluster, 'vmKind' | 'vmKey' | 'hostSource' | 'sources' | 'hostClass' | 'classes' | 'keyLegal'> {
  const cpus = anyCpu === true ? null : cpusOf(hosts);
  const asked = new Set<string>();
  for (const vm of vms) for (const trait of [...vm.requiredTraits, ...vm.forbiddenTraits]) asked.add(trait);
  const refusing = new Set(vms.flatMap((vm) => vm.refusedBy ?? []));
  const number = (seen: Map<string, number>, text: string): number => {
    const known = seen.get(text);
    if (known !== undefined) return known;
    seen.set(text, seen.size);
    return seen.size - 1;
  };

  const sourceOf = new Map<string, number>();
  const sourceHosts: HostPart[] = [];
  const hostSource = new Int32Array(hosts.length);
  const classOf = new Map<string, number>();
  const classHosts: HostPart[] = [];
  const hostClass = Int32Array.from(hosts, (host, h) => {
    const kind = [host.zone, host.cell, host.hypervisorType, host.hypervisorVersion, ...(cpus?.get(host.name) ?? [])];
    const s = number(sourceOf, JSON.stringify(kind));
    hostSource[h] = s;
    sourceHosts[s] ??= host;
    const traits = asked.size === 0 ? null : (host.traits?.filter((trait) => asked.has(trait)).sort(byText) ?? '?');
    const refuses = refusing.has(host.name) ? [host.name] : [];
    const c = number(classOf, JSON.stringify([kind, traits, ...refuses]));
    classHosts[c] ??= host;
    return c;
  });
  const classes = classHosts.length;
  const sources = sourceHosts.length;

  const kindOf = new Map<string, number>();
  const kindVms: VmPart[] = [];
  /** By pin: the kind of VMs that ask for no traits. */
  const plain = new Map<string | null | undefined, number>();
  const vmKind = new Int32Array(vms.length);
  vms.forEach((vm, v) => {
    const free = cpus !== null && vm.anyCpu === true;
    const isPlain =
      vm.requiredTraits.length === 0 && vm.forbiddenTraits.length === 0 && vm.refusedBy === undefined && !free;
    let k = isPlain ? plain.get(vm.pin) : undefined;
    if (k === undefined) {
      const pin = vm.pin === undefined ? 0 : [vm.pin];
      const traits = [[...vm.requiredTraits].sort(byText), [...vm.forbiddenTraits].sort(byText)];
      const refused = vm.refusedBy === undefined ? [] : [vm.refusedBy];
      k = number(kindOf, JSON.stringify([pin, traits, ...refused, ...(free ? [true] : [])]));
      kindVms[k] ??= vm;
      if (isPlain) plain.set(vm.pin, k);
    }
    vmKind[v] = k;
  });

  const keyLegal = new Int32Array(kindVms.length * sources * classes);
  kindVms.forEach((vm, k) => {
    sourceHosts.forEach((source, s) => {
      classHosts.forEach((host, c) => {
        const refusal =
          incompatible(vm, source, host, restrictToAz) ??
          (cpus === null || vm.anyCpu === true || cpuFits(source.traits, host.traits) ? null : 'cpu-traits');
        keyLegal[(k * sources + s) * classes + c] = refusal === null ? 0 : codeNumber[refusal];
      });
    });
  });
  const vmKey = keysAt(vmKind, hostSource, sources, vmHost);
  return { vmKind, vmKey, hostSource, sources, hostClass, classes, keyLegal };
}

/**
 * The traits of each host's CPUs; null when they are the same everywhere, or known nowhere: then they decide nothing. One text in a
 * list; an empty one where they are unknown.
 */
function cpusOf(hosts: readonly HostPart[]): ReadonlyMap<string, readonly string[]> | null {
  const texts = hosts.map((host) => (host.traits === null ? '?' : cpuTraits(host.traits).join()));
  if (new Set(texts).size <= 1) return null;
  return new Map(hosts.map((host, i) => [host.name, [item(texts, i)]]));
}

function incompatible(
  vm: VmPart,
  from: Compatibility,
  to: Compatibility & { readonly name: string },
  restrictToAz: boolean,
): ReasonCode | null {
  if (restrictToAz && to.zone !== from.zone) return 'other-zone';
  if (typeof vm.pin === 'string' && to.zone !== vm.pin) return 'pinned-zone';
  if (vm.pin === undefined && to.zone !== from.zone) return 'pin-unknown';
  if (to.cell !== from.cell) return 'other-cell';
  if (to.hypervisorType !== from.hypervisorType) return 'other-hypervisor';
  if (to.hypervisorVersion < from.hypervisorVersion) return 'older-hypervisor';
  if (traitsFit(to.traits, vm) !== true) return 'missing-trait';
  if (vm.refusedBy?.includes(to.name) === true) return vm.refusedFor ?? 'refused-before';
  return null;
}
